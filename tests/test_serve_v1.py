"""The API under /v1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from dragoman import Corpus, NgramModel
from dragoman.serve.app import create_app
from dragoman.serve.registry import ModelRegistry
from dragoman.serve.service import Service
from dragoman.serve.v1 import MAX_METRICS, read_metrics
from serving import BASE_URL, LIMITS, assert_error, client, create_client, place, registry, train_ngram_model
from small_translators import translators

__all__ = ["client", "place", "registry"]

JSON = {"content-type": "application/json"}
SENTENCE = "Der Hund schläft."


def test_models_and_limits(client: TestClient) -> None:
    response = client.get("/v1/models").json()
    models = {model["name"]: model for model in response["models"]}
    assert list(models) == ["de-en", "both", "pieces", "broken", "bigrams", "words"]
    assert (models["de-en"]["source"], models["de-en"]["target"], models["both"]["members"]) == ("de", "en", 2)
    assert models["bigrams"]["kind"] == "ngram" and response["limits"]["characters"] == 700


# -- translators -------------------------------------------------------------------------------------------------------


def test_translate_returns_scores_and_attention(client: TestClient) -> None:
    [text] = client.post("/v1/translate", json={"model": "de-en", "texts": [SENTENCE], "n": 2}).json()["texts"]
    [sentence] = text["sentences"]
    best = sentence["translations"][0]
    expected = translators()["one"].n_best("der hund schläft .", 2)[0][0]
    assert text["text"] == best["text"] == "The dog sleeps." and sentence["read"] == "der hund schläft ."
    assert best["units"] == list(expected.tokens) and best["log_prob"] == pytest.approx(expected.log_prob)
    assert len(best["attention"]) == len(best["units"]) + 1 and len(best["attention"][0]) == 5
    assert len(sentence["translations"]) == 2


def test_text_that_the_translator_cannot_read_has_a_warning(client: TestClient) -> None:
    def warnings(model: str, *texts: str) -> list[str | None]:
        response = client.post("/v1/translate", json={"model": model, "texts": texts}).json()
        return [text["warning"] for text in response["texts"]]

    known, foreign = warnings("pieces", "der hund", "привет мир")
    assert known is None and foreign is not None and foreign.startswith("most of its letters do not occur")
    assert "so it is copied" in foreign
    assert warnings("de-en", "a dog barks .")[0] is not None


def test_words_of_pieces_and_the_attention_between_them(client: TestClient) -> None:
    """The translator reads subwords and writes characters."""
    body = {"model": "pieces", "source": "der hund schläft .", "target": "the dog sleeps ."}
    response = client.post("/v1/attention", json=body).json()
    assert [word["text"] for word in response["words"]] == ["the", "dog", "sleeps", "."]
    assert [word["text"] for word in response["source_words"]] == ["der", "hund", "schläft", "."]
    for units, words in (("units", "words"), ("source_units", "source_words")):
        spans = [(word["first"], word["end"]) for word in response[words]]
        assert [number for span in spans for number in range(*span)] == list(range(len(response[units])))
    model = translators()["pieces"]
    expected = model.attention_matrix(model.force_decode([body["source"]], [body["target"]])[0])
    assert expected is not None
    assert response["word_attention"] == [pytest.approx(row, abs=1e-4) for row in expected.matrix.tolist()]
    single = client.post("/v1/attention", json={**body, "source": "hund", "target": "dog"}).json()
    assert [word["text"] for word in single["words"]] == ["d", "o", "g"], "a single word is not joined"
    assert single["word_attention"] == single["attention"]


def test_next_words_of_a_translator_of_characters(client: TestClient) -> None:
    """P(word) is the product of its characters, times the probability that no letter follows."""
    source, prefix = "der hund schläft .", list("the▁dog")
    body = {"models": ["pieces"], "source": source, "prefix": prefix, "k": 5, "whole_words": True}
    [answer] = client.post("/v1/next", json=body).json()["models"]
    conditioned = translators()["pieces"].condition_on(source)
    assert len(answer["words"]) == 5
    for word in answer["words"]:
        tokens = word["prefix"][len(prefix) :]
        assert word["prefix"][: len(prefix)] == prefix
        assert "<unk>" not in tokens
        if word["word"] == "</s>":
            assert tokens[-1] == word["word"]
            continue
        assert "".join(tokens).strip("▁") == word["word"].strip("…") and "▁" not in word["word"]
        prob = 1.0
        for number, token in enumerate(tokens):
            prob *= dict(conditioned.next_words(prefix + tokens[:number], None))[token]
        after = dict(conditioned.next_words(word["prefix"], None))
        letters = sum(p for token, p in after.items() if token.isalpha())
        assert word["prob"] == pytest.approx(prob * (1 - letters if word["word"][-1].isalpha() else 1), rel=1e-4)
    probs = [word["prob"] for word in answer["words"]]
    assert probs == sorted(probs, reverse=True)
    words = {"models": ["de-en"], "source": SENTENCE, "prefix": ["the"], "k": 3}
    assert (
        client.post("/v1/next", json=words | {"whole_words": True}).json() == client.post("/v1/next", json=words).json()
    )


def test_translate_with_a_prefix(client: TestClient) -> None:
    body = {"model": "de-en", "texts": [SENTENCE], "prefix": ["the", "cat"]}
    [text] = client.post("/v1/translate", json=body).json()["texts"]
    assert text["text"].startswith("The cat")
    for texts in (["a", "b"], ["Der Hund bellt. Die Katze singt."]):
        assert_error(client.post("/v1/translate", json={**body, "texts": texts}), 400, "single sentence")
    assert_error(client.post("/v1/translate", json={**body, "prefix": ["the", "zebra"]}), 400, "'zebra'")


def test_attention_of_a_given_translation(client: TestClient) -> None:
    body = {"model": "de-en", "source": SENTENCE, "target": "The cat sleeps."}
    response = client.post("/v1/attention", json=body).json()
    [expected] = translators()["one"].force_decode(["der hund schläft ."], ["the cat sleeps ."])
    assert response["log_prob"] == pytest.approx(expected.log_prob) and response["units"] == list(expected.tokens)


def test_whole_numbers_may_be_written_with_a_point(client: TestClient) -> None:
    body = '{"model": "de-en", "text": "%s", "beam": %s}'
    two, real = (client.post("/v1/lattice", content=body % (SENTENCE, beam), headers=JSON) for beam in ("2", "2.0"))
    assert two.status_code == 200 and two.json() == real.json()
    assert client.post("/v1/lattice", content=body % (SENTENCE, "2.5"), headers=JSON).status_code == 400


def test_lattice(client: TestClient) -> None:
    response = client.post("/v1/lattice", json={"model": "de-en", "text": SENTENCE, "beam": 2}).json()
    nodes = {node["id"]: node for node in response["nodes"]}
    assert {node["fate"] for node in nodes.values()} == {"kept", "finished", "pruned"}
    assert all(node["parent"] is None or node["parent"] in nodes for node in nodes.values())
    assert response["translation"]["text"] == "The dog sleeps."
    assert_error(client.post("/v1/lattice", json={"model": "de-en", "text": " "}), 400, "blank")


def test_attention_in_a_response_is_limited(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"model": "de-en", "texts": [SENTENCE], "n": 3}

    def attentions() -> list[list[list[float]] | None]:
        [sentence] = client.post("/v1/translate", json=body).json()["texts"][0]["sentences"]
        return [translation["attention"] for translation in sentence["translations"]]

    first, second, _ = (len(rows) * len(rows[0]) for rows in attentions() if rows is not None)
    monkeypatch.setattr("dragoman.serve.v1.MAX_ATTENTION_WEIGHTS", first + second)
    assert [attention is None for attention in attentions()] == [False, False, True]


# -- language models ---------------------------------------------------------------------------------------------------


def test_score(client: TestClient) -> None:
    response = client.post("/v1/score", json={"models": ["bigrams", "words"], "text": "the dog zzz\nthe"}).json()
    assert response["models"] == ["bigrams", "words"]
    assert [sentence["words"] for sentence in response["sentences"]] == [["the", "dog", "zzz", "</s>"], ["the", "</s>"]]
    assert [len(row) for row in response["sentences"][0]["bits"]] == [4, 4]


def test_words_of_probability_zero_have_null_bits(tmp_path: Path) -> None:
    certain = NgramModel.train(Corpus.from_sentences(["a b"]), order=2, smoothing="maximum-likelihood")
    certain.save(tmp_path / "certain")
    with create_client(ModelRegistry.from_arguments([str(tmp_path / "certain")])) as client:
        [sentence] = client.post("/v1/score", json={"models": ["certain"], "text": "b"}).json()["sentences"]
    assert sentence == {"words": ["b", "</s>"], "bits": [[None, 0.0]]}


def test_next_words(client: TestClient) -> None:
    models = client.post("/v1/next", json={"models": ["bigrams", "words"], "prefix": "the", "k": 3}).json()["models"]
    assert all(word["text"] == f" {word['word']}" for model in models for word in model["words"])
    assert [model["model"] for model in models] == ["bigrams", "words"]
    assert all(len(model["words"]) == 3 for model in models)
    [everything] = client.post("/v1/next", json={"models": ["bigrams"], "prefix": "the", "k": 100}).json()["models"]
    assert "<unk>" not in {word["word"] for word in everything["words"]}
    assert_error(client.post("/v1/next", json={"models": []}), 400, "at least one")


def test_next_words_of_a_translator(client: TestClient) -> None:
    body = {"models": ["de-en"], "source": SENTENCE}
    by_text = client.post("/v1/next", json={**body, "prefix": "the"}).json()
    assert by_text["models"][0]["words"][0]["word"] == "dog"
    assert client.post("/v1/next", json={**body, "prefix": ["the"]}).json() == by_text
    assert_error(client.post("/v1/next", json={"models": ["de-en"]}), 400, "give a source")


def test_samples(client: TestClient) -> None:
    body = {"model": "bigrams", "n": 3, "seed": 5}
    first, second = (client.post("/v1/sample", json=body).json()["samples"] for _ in range(2))
    assert first == second and len(first) == 3
    translated = client.post("/v1/sample", json={"model": "de-en", "source": SENTENCE, "n": 1, "top_k": 1}).json()
    assert translated["samples"] == ["The dog sleeps."]
    assert_error(client.post("/v1/sample", json={"model": "bigrams", "n": 5}), 400, "4 alternatives")


# -- errors and logging ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("translate", {"model": "other", "texts": ["a"]}, 404, "there is no model 'other'; available: de-en"),
        ("translate", {"model": "bigrams", "texts": ["a"]}, 400, "is a language model; this request needs a trans"),
        ("score", {"models": ["de-en"], "text": "a"}, 400, "is a translator; this request needs a language model"),
        ("translate", {"model": "broken", "texts": ["a"]}, 404, "broken cannot be loaded: broken/model.safetensors"),
        ("translate", {"model": "de-en", "texts": ["a"], "beam": 7}, 400, "beam size 7"),
        ("translate", {"model": "de-en", "texts": ["a"], "beam": 0}, 400, "beam size 0"),
        ("translate", {"model": "de-en", "texts": ["a"], "length": "long"}, 400, "length handling 'long'"),
        (
            "translate",
            {"model": "de-en", "texts": ["a"], "beams": 3},
            400,
            "Invalid request: beams: is unknown; remove",
        ),
        ("translate", {"model": "de-en"}, 400, "Invalid request: missing texts parameter"),
        ("translate", {"model": "de-en", "texts": "a"}, 400, "Invalid request: texts: must be a list in square"),
        ("translate", {"model": "de-en", "texts": ["a", 5]}, 400, "Invalid request: texts[1]: must be text"),
        ("translate", {"model": "de-en", "texts": ["a"], "n": 0}, 400, "Invalid request: n: must be at least 1"),
        ("translate", ["de-en"], 400, "Invalid request: must be an object with named values"),
        ("translate", {"model": "pieces", "texts": ["a"], "n": 9}, 400, "8 alternatives"),
        ("attention", {"model": "pieces", "source": "der hund", "target": "a" * 260}, 400, "more than 250 tokens"),
        ("next", {"models": ["de-en"], "source": "a " * 300}, 400, "more than 250 tokens"),
    ],
    ids=str,
)
def test_invalid_requests(client: TestClient, path: str, body: dict[str, Any], status: int, message: str) -> None:
    assert_error(client.post(f"/v1/{path}", json=body), status, message)


@pytest.mark.parametrize("enabled", [False, True])
def test_texts_are_logged_only_if_enabled(
    registry: ModelRegistry, capsys: pytest.CaptureFixture[str], enabled: bool
) -> None:
    logged = list[str]()
    service = Service(registry, LIMITS, log_text=logged.append if enabled else None)
    with TestClient(create_app(service), base_url=BASE_URL) as client:
        client.post("/translate", json={"q": SENTENCE, "source": "de", "target": "en"})
    assert logged == ([repr(SENTENCE)] if enabled else [])
    output = capsys.readouterr()
    assert "Hund" not in output.out + output.err


# -- metrics and reports -----------------------------------------------------------------------------------------------


def test_metrics_of_a_model(tmp_path: Path) -> None:
    translators()["one"].save(tmp_path / "de-en")
    with create_client(ModelRegistry.from_arguments([str(tmp_path / "de-en")])) as client:
        empty = {"model": "de-en", "metrics": [], "seconds_ago": None, "token": "word"}
        assert client.get("/v1/metrics/de-en").json() == empty
        assert not client.get("/v1/models").json()["models"][0]["has_metrics"]
        (tmp_path / "de-en" / "metrics.jsonl").write_text('{"update": 1, "loss": 2.5}\n{"update": 2, "lo')
        assert client.get("/v1/metrics/de-en").json()["metrics"] == [{"update": 1, "loss": 2.5}]
        assert client.get("/v1/models").json()["models"][0]["has_metrics"]
        assert_error(client.get("/v1/metrics/other"), 404, "no model")


def test_long_metrics_are_thinned_out(tmp_path: Path) -> None:
    entries = [
        {"update": n, "train_loss": 1.0} | ({"dev_loss": 2.0} if n % 10 == 0 else {}) for n in range(3 * MAX_METRICS)
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    metrics = read_metrics(tmp_path / "metrics.jsonl")
    assert len(metrics) < 2 * MAX_METRICS and metrics == sorted(metrics, key=lambda entry: int(entry["update"]))
    assert metrics[-1] == entries[-1]
    assert [entry for entry in metrics if "dev_loss" in entry] == entries[::10], "few evaluations: none is dropped"


def test_report_of_a_run_and_models_added_later(tmp_path: Path) -> None:
    model = train_ngram_model()
    model.save(tmp_path / "rungs" / "kn-1")
    with create_client(ModelRegistry.from_arguments([f"run={tmp_path}"])) as client:
        assert client.get("/v1/runs").json() == {"runs": [{"name": "run", "report": False}]}
        assert_error(client.get("/v1/reports/run"), 404, "run has no report.html")
        assert_error(client.get("/v1/reports/other"), 404, "no run 'other'; available: run")
        assert_error(client.get("/v1/reports/run/../.."), 404, "")
        model.save(tmp_path / "rungs" / "kn-2")
        (tmp_path / "rungs" / "incomplete").mkdir()
        (tmp_path / "metrics.jsonl").write_text('{"update": 1}\n')
        (tmp_path / "report.html").write_text("<!DOCTYPE html><title>report</title>")
        names = [model["name"] for model in client.get("/v1/models").json()["models"]]
        assert names == ["run/rungs/kn-1", "run/rungs/kn-2"]
        assert client.get("/v1/metrics/run").json()["metrics"] == [{"update": 1}], "of models trained together"
        assert client.get("/v1/runs").json() == {"runs": [{"name": "run", "report": True}]}
        report = client.get("/v1/reports/run")
        assert report.text == "<!DOCTYPE html><title>report</title>"
        assert report.headers["content-type"].startswith("text/html")
        policy = report.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script" not in policy and "sandbox" in policy
        (tmp_path / "rungs" / "incomplete" / "config.yaml").write_text("kind: [")
        assert len(client.get("/v1/models").json()["models"]) == 2, "an incomplete model does not hide the others"
