"""Fine-tuning from the command line: --from, --extend-vocabulary, --freeze and --replay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import dragoman
from command import DEV, TRAIN, good, is_one_line, run  # noqa: F401
from dragoman.io.storage import ARRAYS_FILE, map_arrays
from small_translators import ENGLISH, GERMAN, place  # noqa: F401

NEW = "".join(f"the {animal} saw a zebra .\nnobody met the {animal} .\n" for animal in ("dog", "cat", "mouse", "horse"))
NEW_GERMAN = [line.replace("hund", "wolf") for line in GERMAN[:10]]
NEW_ENGLISH = [line.replace("dog", "wolf") for line in ENGLISH[:10]]
SHORT = ("--max-updates", "4", "--batch-size", "20", "--threads", "1")
SIZES = {
    "feed-forward": ("--order", "3", "--embedding", "6", "--hidden", "8"),
    "recurrent": ("--embedding", "6", "--hidden", "8"),
    "log-linear": ("--features", "word1"),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts, and a trained model of each kind."""
    directory = tmp_path_factory.mktemp("models")
    for name, text in (("train.txt", TRAIN), ("dev.txt", DEV), ("new.txt", NEW)):
        (directory / name).write_text(text)
    for name, lines in (("new.de", NEW_GERMAN), ("new.en", NEW_ENGLISH)):
        (directory / name).write_text("".join(f"{line}\n" for line in lines))
    from dragoman.cli.main import main

    for kind, sizes in SIZES.items():
        texts = ("--text", str(directory / "train.txt"), "--dev-text", str(directory / "dev.txt"))
        assert main(["train", kind, *texts, *sizes, *SHORT, "-o", str(directory / kind)]) == 0
    return directory


def tune(models: Path, kind: str, output: Path, *options: object) -> list[object]:
    texts = ("--text", models / "new.txt", "--dev-text", models / "new.txt")
    return ["train", kind, "--from", models / kind, *texts, *SHORT, "-o", output, *options]


@pytest.mark.parametrize("kind", SIZES)
def test_a_language_model_is_trained_further(good: Any, models: Path, tmp_path: Path, kind: str) -> None:  # noqa: F811
    replay = ("--replay", models / "train.txt", "--replay-dev-text", models / "dev.txt", "--replay-share", "0.5")
    result = good(*tune(models, kind, tmp_path / "new", *replay))
    assert "before training: perplexity" in result.err
    assert result.err.count("old dev") >= 2  # before and after
    assert "50% of them old" in result.err
    old, new = dragoman.load(models / kind), dragoman.load(tmp_path / "new")
    assert new.vocab == old.vocab
    assert sum(new.score(NEW.splitlines())) > sum(old.score(NEW.splitlines()))
    config = yaml.safe_load((tmp_path / "new" / "config.yaml").read_text())
    assert config["trained_from"][0]["train"]["sentences"] == len(TRAIN.splitlines())
    assert {**config["model"], "dropout": None} == {**old.config()["model"], "dropout": None}
    usual = {"feed-forward": 0.001, "recurrent": 0.002, "log-linear": 2.0}[kind]
    assert config["training"]["learning_rate"] == usual / 4


@pytest.mark.parametrize("kind", ["feed-forward", "recurrent"])
def test_new_words_are_added_and_frozen_parts_stay(good: Any, models: Path, tmp_path: Path, kind: str) -> None:  # noqa: F811
    options = ("--extend-vocabulary", "--min-count", "2", "--freeze", "embedding", "--dropout", "0.1")
    result = good(*tune(models, kind, tmp_path / "new", *options))
    assert "vocabulary extended by 2 words" in result.err
    assert "more are frozen" in result.err
    old, new = dragoman.load(models / kind), dragoman.load(tmp_path / "new")
    assert new.vocab.tokens == (*old.vocab.tokens, "zebra", "horse")
    assert new.settings.dropout == 0.1
    old_rows = map_arrays(models / kind / ARRAYS_FILE)["embedding.weight"]
    assert np.array_equal(map_arrays(tmp_path / "new" / ARRAYS_FILE)["embedding.weight"][: len(old_rows)], old_rows)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("recurrent", ("--hidden", "9"), "has 8, not 9, and its architecture stays; remove --hidden"),
        ("recurrent", ("--freeze", "encoder"), "it has embedding, rnn, output"),
        ("recurrent", ("--min-count", "2"), "--from uses the vocabulary of its model"),
        ("recurrent", ("--vocab", "elsewhere"), "--from uses the vocabulary of its model"),
        ("recurrent", ("--unknown", "none"), "--from uses the vocabulary of its model"),
        ("recurrent", ("--word-vectors", "vectors.txt"), "remove --word-vectors"),
        ("log-linear", ("--extend-vocabulary",), "the features of a log-linear model belong to its words"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(
    run: Any,  # noqa: F811
    models: Path,
    tmp_path: Path,
    kind: str,
    options: tuple[str, ...],
    message: str,
) -> None:
    outcome = run(*tune(models, kind, tmp_path / "new", *options))
    assert outcome.code == 2
    assert is_one_line(outcome.err.splitlines(keepends=True)[-1])
    assert message in outcome.err
    assert not (tmp_path / "new").exists()


def test_other_models_and_counting_models_are_refused(run: Any, models: Path, tmp_path: Path) -> None:  # noqa: F811
    text = ("--text", models / "new.txt", "-o", tmp_path / "new")
    outcome = run("train", "recurrent", "--from", models / "feed-forward", *text)
    assert (outcome.code, is_one_line(outcome.err)) == (2, True)
    assert "is a model of kind feed-forward, not recurrent" in outcome.err
    outcome = run("train", "recurrent", "--extend-vocabulary", *text)
    assert (outcome.code, is_one_line(outcome.err)) == (2, True)
    assert "name it with --from DIR" in outcome.err
    outcome = run("train", "ngram", "--from", models / "recurrent", *text)
    assert (outcome.code, is_one_line(outcome.err)) == (2, True)
    assert "estimated in one pass" in outcome.err


def test_new_tokens_have_the_name_of_their_kind(good: Any, models: Path, tmp_path: Path) -> None:  # noqa: F811
    sizes = ("--units", "char", *SIZES["recurrent"], *SHORT)
    good("train", "recurrent", "--text", models / "train.txt", *sizes, "-o", tmp_path / "recurrent")
    (tmp_path / "new.txt").write_text("the žebra ß .\n")
    text = ("--text", tmp_path / "new.txt", *SHORT, "-o", tmp_path / "new", "--extend-vocabulary")
    result = good("train", "recurrent", "--from", tmp_path / "recurrent", *text)
    assert "vocabulary extended by 2 characters" in result.err


def test_a_finished_training_says_how_to_continue(good: Any, models: Path, tmp_path: Path) -> None:  # noqa: F811
    command = tune(models, "recurrent", tmp_path / "new")
    good(*command)
    assert "run again with --max-updates 8 to continue" in good(*command).err
    longer = good(*command, "--max-updates", "8")
    assert "resuming after update 4" in longer.err
    assert "finished after 8 updates" in longer.err


# -- translators -------------------------------------------------------------------------------------------------------


def tune_translator(place: Path, models: Path, output: Path, *options: object) -> list[object]:  # noqa: F811
    texts = ("--src", models / "new.de", "--tgt", models / "new.en")
    dev = ("--dev-src", models / "new.de", "--dev-tgt", models / "new.en")
    return ["train", "translator", "--from", place / "one", *texts, *dev, *SHORT, "-o", output, *options]


def test_a_translator_learns_new_words(good: Any, place: Path, models: Path, tmp_path: Path) -> None:  # noqa: F811
    old_texts = ("--replay-src", place / "test.de", "--replay-tgt", place / "test.en")
    pairs = "".join(f"{german}\t{english}\n" for german, english in zip(GERMAN, ENGLISH, strict=True))
    (tmp_path / "old.tsv").write_text(pairs)
    old_dev = ("--replay-dev-pairs", tmp_path / "old.tsv")
    options = ("--extend-vocabulary", "--max-updates", "60", "--learning-rate", "0.02")
    command = tune_translator(place, models, tmp_path / "new", *options, *old_texts, *old_dev)
    result = good(*command)
    assert "vocabularies extended by 1 and 1 tokens" in result.err
    assert "before training: dev text: " in result.err
    assert "before training: old dev text: " in result.err
    assert f"{tmp_path / 'new'}: old dev text: " in result.err
    new = dragoman.load(tmp_path / "new")
    assert new.translate(["der wolf bellt ."])[0].text == "the wolf barks ."
    assert new.translate(["der hund bellt ."])[0].text == "the dog barks ."
    card = (tmp_path / "new" / "README.md").read_text()
    assert "| old dev | BLEU" in card
    assert "## Trained from" in card
    assert "| replay dev target |" in card
    assert "already finished" in good(*command).err
    plain = good(*tune_translator(place, models, tmp_path / "plain"))
    assert "unknown to the model that is trained further; add them with --extend-vocabulary" in plain.err


def test_raw_text_for_a_translator_of_tokenised_text(good: Any, place: Path, tmp_path: Path) -> None:  # noqa: F811
    """It is read as by dragoman translate; with new tokens, as it is. In both cases, the scores are those of raw text."""
    for name, lines in (("raw.de", GERMAN), ("raw.en", ENGLISH)):
        (tmp_path / name).write_text("".join(f"{line.capitalize().replace(' .', '.')}\n" for line in lines))
    texts = ("--src", tmp_path / "raw.de", "--tgt", tmp_path / "raw.en")
    dev = ("--dev-src", tmp_path / "raw.de", "--dev-tgt", tmp_path / "raw.en")
    command = ("train", "translator", "--from", place / "one", *texts, *dev, *SHORT)
    old = dragoman.load(place / "one")
    assert (old.source.tokenised, old.target.tokenised) == (True, True)
    result = good(*command, "-o", tmp_path / "new")
    assert "before training: dev text: BLEU 100.00" in result.err and "unknown" not in result.err
    assert f"{tmp_path / 'new'}: dev text: BLEU 100.00" in result.err
    new = dragoman.load(tmp_path / "new")
    assert (new.source.tokenised, new.target.tokenised) == (True, True)
    assert new.translate_text("Der Hund bellt. Der Vogel singt.")[0].text == "The dog barks. The bird sings."
    result = good(*command, "--extend-vocabulary", "-o", tmp_path / "extended")
    assert "before training: dev text: BLEU 100.00" in result.err, "as the old translator was"
    new = dragoman.load(tmp_path / "extended")
    assert (new.source.tokenised, new.target.tokenised) == (False, False)
    assert {"Der", "schläft."} <= set(new.source.vocab.tokens)


def test_languages_that_are_given_replace_the_recorded_ones(
    good: Any,  # noqa: F811
    place: Path,  # noqa: F811
    models: Path,
    tmp_path: Path,
) -> None:
    def languages(name: str) -> tuple[str | None, str | None]:
        model = dragoman.load(tmp_path / name)
        return model.source.language, model.target.language

    good(*tune_translator(place, models, tmp_path / "one"))
    assert languages("one") == ("de", "en"), "by the names of the files: none are recorded"
    good(*tune_translator(tmp_path, models, tmp_path / "two", "--tgt-lang", "eng", "--src-lang", "nl"))
    assert languages("two") == ("nl", "en")
    texts = ("--src", models / "new.de", "--tgt", models / "new.en", *SHORT)
    good("train", "translator", "--from", tmp_path / "two", *texts, "-o", tmp_path / "three")
    assert languages("three") == ("nl", "en"), "those that are recorded come before names of files"


def test_translators_trained_with_symmetry_are_trained_further_one_by_one(
    good: Any,  # noqa: F811
    run: Any,  # noqa: F811
    models: Path,
    tmp_path: Path,
) -> None:
    texts = ("--src", models / "new.de", "--tgt", models / "new.en", *SHORT)
    sizes = ("--units", "word", "--embedding", "4", "--hidden", "4", "--symmetry", "1")
    good("train", "translator", *texts, *sizes, "-o", tmp_path / "both")
    outcome = run("train", "translator", "--from", tmp_path / "both", *texts, "-o", tmp_path / "new")
    assert (outcome.code, is_one_line(outcome.err)) == (2, True)
    assert f"contains two translators; choose {tmp_path / 'both' / 'forward'} or" in outcome.err
    good("train", "translator", "--from", tmp_path / "both" / "forward", *texts, "-o", tmp_path / "new")


def test_a_training_without_improvement_gives_the_same_translations(
    good: Any,  # noqa: F811
    place: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    """The translator has memorised the text, and the learning rate is too high to improve it."""
    texts = ("--src", place / "test.de", "--tgt", place / "test.en")
    dev = ("--dev-src", place / "test.de", "--dev-tgt", place / "test.en")
    options = ("--learning-rate", "0.5", "--label-smoothing", "0.5", "--replay-share", "0.1", "-o", tmp_path / "new")
    result = good("train", "translator", "--from", place / "one", *texts, *dev, *SHORT, *options)
    assert "no update improved the dev loss, so the model is as it was" in result.err
    assert "--replay-share has no effect without an old text" in result.err
    old, new = dragoman.load(place / "one"), dragoman.load(tmp_path / "new")
    sources = [*GERMAN, *NEW_GERMAN]
    pairs = zip(old.translate(sources), new.translate(sources), strict=True)
    assert all((first.text, first.log_prob) == (second.text, second.log_prob) for first, second in pairs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--hidden", "9"), "remove --hidden"),
        (("--symmetry", "1"), "remove --symmetry"),
        (("--units", "char"), "--from uses the tokenizers of its translator"),
        (("--min-count", "2"), "--from uses the tokenizers of its translator"),
        (("--replay-src", "old.de"), "--replay-src and --replay-tgt must be given together"),
        (("--freeze", "encoders"), "it has source_embedding, embedding, encoder, bridge, decoder"),
    ],
)
def test_what_does_not_fit_a_translator_is_refused(
    run: Any,  # noqa: F811
    place: Path,  # noqa: F811
    models: Path,
    tmp_path: Path,
    options: tuple[str, ...],
    message: str,
) -> None:
    outcome = run(*tune_translator(place, models, tmp_path / "new", *options))
    assert outcome.code == 2
    assert message in outcome.err.splitlines()[-1]
    assert not (tmp_path / "new").exists()


def test_the_model_to_start_from_is_not_overwritten(run: Any, place: Path, models: Path) -> None:  # noqa: F811
    for command in (
        [*tune_translator(place, models, place / "one"), "--from", place / "one"],
        tune(models, "recurrent", models / "recurrent"),
    ):
        outcome = run(*command, "--force")
        assert (outcome.code, is_one_line(outcome.err)) == (2, True)
        assert "this is the model of --from; give a new directory" in outcome.err
