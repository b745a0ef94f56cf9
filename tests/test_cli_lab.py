"""`dragoman lab` and `dragoman contrast`: files, output and errors."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from command import is_one_line
from dragoman import Corpus, DataError, Mixture, NgramModel
from dragoman.evaluation.minimal_pairs import MinimalPairAccuracy, accuracy_by_kind
from dragoman.lab.corpus_files import LINE_FORMATS, detokenized
from dragoman.lab.lab import german_english_lab
from dragoman.models.cache import CacheModel

SPLITS = ("train", "dev", "test")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """A small corpus of the lab, written by the command."""
    from dragoman.cli.main import main

    path = tmp_path_factory.mktemp("lab") / "lab"
    assert main(["lab", "--pairs", "1500", "--dev", "60", "--test", "80", "-o", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def models(corpus, tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("models")
    for language in ("de", "en"):
        text = Corpus.read(corpus / f"train.{language}")
        NgramModel.train(text, order=2, smoothing="witten-bell").save(directory / f"{language}2")
    NgramModel.train(text, order=1, smoothing="witten-bell").save(directory / "en1")
    return directory


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_every_file_is_written_with_the_same_number_of_lines(corpus):
    assert {path.name for path in corpus.iterdir()} == {"lab.yaml", *(f"{p}.{e}" for p in SPLITS for e in LINE_FORMATS)}
    for split, size in zip(SPLITS, (1500, 60, 80), strict=True):
        assert {len(lines(corpus / f"{split}.{ending}")) for ending in LINE_FORMATS} == {size}


def test_files_agree_with_each_other(corpus):
    lab_pairs = german_english_lab().pairs(60, seed=1, split="dev")
    columns = (lines(corpus / f"dev.{ending}") for ending in ("de", "en", "en.trees", "align", "logprob", "raw.de"))
    for pair, (de, en, tree, align, logprob, raw) in zip(lab_pairs, zip(*columns, strict=True), strict=True):
        assert de.split() == list(pair.german.words)
        assert re.findall(r" ([^\s()]+)\)", tree) == en.split()
        links = [tuple(map(int, link.split("-"))) for link in align.split()]
        assert all(0 <= german < len(de.split()) and 0 <= english < len(en.split()) for german, english in links)
        english, german, given = map(float, logprob.split("\t"))
        assert english == pytest.approx(pair.log_probs.english, abs=1e-8)
        assert german == pytest.approx(pair.log_probs.german, abs=1e-8)
        assert given == pytest.approx(pair.log_probs.both - pair.log_probs.german, abs=1e-8)
        assert given < 1e-8
        assert raw == detokenized(pair.german)


def test_raw_text_has_capitals_and_punctuation(corpus):
    for language in ("de", "en"):
        for tokens, raw in zip(lines(corpus / f"dev.{language}"), lines(corpus / f"dev.raw.{language}"), strict=True):
            assert re.sub(r"([,.!?])", r" \1", raw).lower() == tokens
            assert raw[0].isupper()
            assert raw[-1] in ".!?"
    german = " ".join(lines(corpus / "train.raw.de"))
    assert "der Bauer" in german
    assert "bauer" not in german


def test_same_seed_writes_same_files(corpus, good, tmp_path):
    size = ("--pairs", 300, "--dev", 60, "--test", 80)
    good("lab", *size, "-o", tmp_path / "same")
    good("lab", *size, "--seed", 2, "-o", tmp_path / "other")
    for ending in LINE_FORMATS:
        assert (tmp_path / "same" / f"dev.{ending}").read_bytes() == (corpus / f"dev.{ending}").read_bytes()
        assert lines(tmp_path / "same" / f"train.{ending}") == lines(corpus / f"train.{ending}")[:300]
    assert lines(tmp_path / "other" / "test.en") != lines(corpus / "test.en")


def test_train_dev_and_test_are_different_sentences(corpus):
    train, dev, test = (set(lines(corpus / f"{split}.en")) for split in SPLITS)
    assert len(dev & train) < len(dev) / 4  # some sentences are short enough to occur twice
    assert len(test & dev) < len(test) / 4


def test_corpus_has_rare_and_unknown_words(corpus):
    """Rare words and names; unknown names have to be copied, so they are the same in both languages."""
    counts = Counter(" ".join(lines(corpus / "train.en")).split())
    assert sum(count == 1 for count in counts.values()) > 100
    unknown = {language: unknown_words(corpus, language) for language in ("de", "en")}
    assert len(unknown["en"] & unknown["de"]) > 5


def unknown_words(corpus: Path, language: str) -> set[str]:
    known = set(" ".join(lines(corpus / f"train.{language}")).split())
    return set(" ".join(lines(corpus / f"test.{language}")).split()) - known


def test_manifest(corpus):
    manifest = yaml.safe_load((corpus / "lab.yaml").read_text(encoding="utf-8"))
    assert manifest["kind"] == "dragoman laboratory"
    assert "ynthetic" in manifest["about"]
    assert manifest["pairs"] == {"train": 1500, "dev": 60, "test": 80}
    assert manifest["entropy_nats_a_sentence"]["en"] == pytest.approx(german_english_lab().entropy.english, abs=1e-5)


def test_next_command_is_suggested(good, tmp_path):
    outcome = good("lab", "--pairs", 5, "--dev", 1, "--test", 1, "-o", tmp_path / "x")
    assert outcome.out == ""
    assert f"train ngram --text {tmp_path / 'x' / 'train.en'}" in outcome.err
    assert outcome.err.endswith(f" -o {tmp_path / 'kn5'}\n"), "as in the README"


def test_corpus_is_replaced_only_with_force_and_other_files_are_preserved(run, good, tmp_path):
    size, path = ("--pairs", 5, "--dev", 1, "--test", 1), tmp_path / "x"
    good("lab", *size, "-o", path)
    refused = run("lab", *size, "-o", path)
    assert (refused.code, is_one_line(refused.err)) == (2, True)
    assert "--force" in refused.err
    good("lab", *size, "--seed", 3, "--force", "-o", path)
    (path / "notes.txt").write_text("mine")
    assert run("lab", *size, "--force", "-o", path).code == 2
    assert (path / "notes.txt").read_text() == "mine"


def test_training_reports_the_floor_of_its_dev_text(good, corpus, tmp_path):
    train = ("train", "ngram", "--text", corpus / "train.en", "--order", 2, "--smoothing", "witten-bell")
    messages = good(*train, "--dev-text", corpus / "dev.en", "-o", tmp_path / "model").err
    perplexity, floor = map(float, re.search(r"perplexity ([\d.]+) per word \(floor ([\d.]+) ± ", messages).groups())
    assert floor < perplexity
    other = tmp_path / "dev.txt"
    other.write_bytes((corpus / "dev.en").read_bytes())
    assert "(floor " not in good(*train, "--dev-text", other, "-o", tmp_path / "other").err


def test_text_of_another_version_has_no_floor(good, corpus, models, tmp_path):
    (tmp_path / "test.en").write_bytes((corpus / "test.en").read_bytes())
    manifest = (corpus / "lab.yaml").read_text(encoding="utf-8")
    (tmp_path / "lab.yaml").write_text(manifest.replace("grammar: 1", "grammar: 0"), encoding="utf-8")
    outcome = good("evaluate", models / "en2", "--text", tmp_path / "test.en")
    assert "floor" not in outcome.out
    assert "another version" in outcome.err


def test_working_directory_is_not_replaced(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = run("lab", "--pairs", 5, "-o", ".")
    assert outcome.code == 2
    assert "name a new one" in outcome.err


# -- minimal pairs -------------------------------------------------------------------------------------------------------


def test_contrast_prints_a_table_for_each_language(good, models):
    english = good("contrast", models / "en2", models / "en1", "--count", 6)
    assert english.lines[0].split()[:3] == ["English", "distance", "pairs"]
    assert {"agreement", "reflexive", "selection"} <= {line.split()[0] for line in english.lines if line.strip()}
    german = good("contrast", models / "de2", "--count", 6)
    assert german.lines[0].startswith("German")
    assert any(line.startswith("verb-final") for line in german.lines)


def test_bigram_model_is_at_chance_on_crossed_quadruples(good, models):
    report = json.loads(good("contrast", models / "en2", "--count", 12, "--json").out)
    assert report["language"] == "en"
    parts = report["models"][0]["contrasts"]
    selection = [part for part in parts if part["phenomenon"] == "selection"]
    assert sum(part["contrasts"] for part in selection) >= 12
    assert {part["accuracy"] for part in selection} == {0.5}
    assert {part["groups_accuracy"] for part in selection} == {0.0}
    article = next(part for part in parts if part["phenomenon"] == "article")
    assert article["accuracy"] > 0.8, "adjacent words, which a bigram model sees"


def test_minimal_pairs_can_be_written_and_shown(good, tmp_path):
    good("contrast", "--language", "de", "--count", 3, "--write", tmp_path / "c.tsv")
    header, *rows = lines(tmp_path / "c.tsv")
    assert header.split("\t") == ["phenomenon", "distance", "right", "wrong", "group"]
    assert len(rows) > 20
    assert {len(row.split("\t")) for row in rows} == {5}
    shown = good("contrast", "--language", "de", "--count", 3, "--examples").out
    assert shown.count("right: ") == shown.count("wrong: ") == 9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--examples"),
        (("--language", "fr", "--examples"), "de and en"),
        (("nowhere",), "nowhere"),
        (("--examples", "--json"), "--json"),
    ],
)
def test_contrast_errors_are_one_line(run, arguments, message):
    outcome = run("contrast", *arguments)
    assert outcome.code == 2
    assert is_one_line(outcome.err)
    assert message in outcome.err


def test_warning_for_a_model_of_the_other_language(good, models):
    messages = good("contrast", models / "en2", "--language", "DE", "--count", 2).err
    assert "German words are unknown" in messages
    assert good("contrast", models / "en2", "--count", 2).err == ""


def test_contrast_does_not_overwrite_a_file(run, tmp_path):
    (tmp_path / "c.tsv").write_text("mine")
    assert run("contrast", "--language", "de", "--count", 1, "--write", tmp_path / "c.tsv").code == 2
    assert (tmp_path / "c.tsv").read_text() == "mine"


@pytest.mark.parametrize("wrong", [("fr", "train"), ("en", "tets")])
def test_unknown_language_or_split_is_an_error(wrong):
    language, split = wrong
    with pytest.raises(DataError, match="the lab"):
        german_english_lab().sentences(language, 1, seed=1, split=split)


def test_detokenized_text_has_no_floor_and_a_warning(good, corpus, models):
    outcome = good("evaluate", models / "en2", "--text", corpus / "test.raw.en")
    assert "floor" not in outcome.out
    assert "use test.en instead" in outcome.err


def test_model_of_other_text_is_an_error(run, shared):
    outcome = run("contrast", shared / "bi")
    assert outcome.code == 2
    assert "dragoman lab" in outcome.err
    assert run("contrast", shared / "bi", "--language", "en", "--count", 2).code == 0, "unless the language is given"


# -- accuracy -----------------------------------------------------------------------------------------------------


class Pair:
    def __init__(self, right, wrong, group):
        self.right, self.wrong, self.group = right, wrong, group


def test_accuracy_counts_ties_as_half_and_whole_groups():
    model = NgramModel.train(Corpus.from_sentences(["a b", "a b", "a c"]), order=2, smoothing="witten-bell")
    right, wrong, tied = Pair("a b", "a c", 1), Pair("a c", "a b", 1), Pair("a b", "a b", 2)
    accuracies = accuracy_by_kind(model, [right, wrong, tied, Pair("a b", "a c", 3)], kind=lambda pair: "all")
    assert accuracies == {"all": MinimalPairAccuracy(pairs=4, right=2.5, groups=3, groups_right=1)}


def test_no_state_is_carried_between_sentences_of_a_minimal_pair():
    """A cache model would otherwise see the right sentence before the wrong one."""
    text = Corpus.from_sentences(["a b", "a c", "b a", "c a"])
    ngram = NgramModel.train(text, order=1, smoothing="witten-bell")
    model = Mixture([ngram, CacheModel.train(text, order=1)], [0.1, 0.9])
    pairs = [Pair("a a a b", "a a a c", 1), Pair("c c c b", "b b b c", 2)]
    separate = [accuracy_by_kind(model, [pair], kind=lambda pair: 0)[0].right for pair in pairs]
    both = accuracy_by_kind(model, pairs, kind=lambda pair: pair.group)
    assert [both[1].right, both[2].right] == separate


def test_rounding_differences_count_as_ties():
    """The probabilities of a unigram model depend on the order of words only by rounding."""
    text = Corpus.from_sentences(["a b c d e", "b c d", "e e a", "c c c c d"])
    first, second = (NgramModel.train(text, order=1, smoothing=name) for name in ("witten-bell", "interpolated"))
    words = ["a", "b", "c", "d", "e", "a", "a", "b", "c"]
    pairs = [Pair(" ".join(words), " ".join(words[turn:] + words[:turn]), turn) for turn in range(1, len(words))]
    accuracy = accuracy_by_kind(Mixture([first, second], [0.3, 0.7]), pairs, kind=lambda pair: 0)[0]
    assert accuracy.right == len(pairs) / 2
