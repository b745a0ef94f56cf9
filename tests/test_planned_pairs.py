"""Which pairs a planned training run is trained on, and that it can be resumed with the same ones."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoman.data.alignments import word_links_to_tokens
from dragoman.data.copied_items import PLACEHOLDER
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.tokenizer import LinePairs, Tokenizer
from dragoman.models import translator_training
from dragoman.models.configs import TranslatorConfig
from dragoman.models.dev_report import MIN_SENTENCES, DevResult, explain_poor_result
from dragoman.models.planning import EncodedPairs, StoredRun
from dragoman.models.translator_training import TrainingSetup, relative_length, set_up_training
from dragoman.training import planning as training_planning
from dragoman.training.config import TRANSLATOR, TrainingConfig
from dragoman.training.fit import FitResult
from dragoman.training.planning import Speed
from dragoman.training.progress import Progress
from dragoman.training.protocols import Examples

SIZES = ("--units", "word", "--embedding", 4, "--hidden", 4, "--threads", 1)


def encode_words(lines: LinePairs, max_subwords: object = None, units: object = None) -> EncodedPairs:
    (source, first), (target, second) = (
        Tokenizer.train_and_encode("word", side) for side in (lines.source, lines.target)
    )
    return EncodedPairs(ParallelCorpus(first, second), source, target)


@pytest.fixture
def set_up(monkeypatch: pytest.MonkeyPatch) -> Callable[..., TrainingSetup]:
    """Plan the training of a tiny translator on a machine of constant speed."""

    def measure_speed(model: object, data: Examples, config: TrainingConfig, seconds: float) -> Speed:
        return Speed(0.01, 500.0, config.batch_size)

    monkeypatch.setattr(training_planning, "measure_speed", measure_speed)

    def run(source: list[str], target: list[str], minutes: float = 1.0, dev: LinePairs | None = None) -> TrainingSetup:
        given = {"model": {"embedding", "hidden"}, "training": {"minutes", "threads"}}
        training = TRANSLATOR.model_copy(update={"minutes": minutes, "threads": 1})
        config = TranslatorConfig(embedding=4, hidden=4)
        return set_up_training(encode_words, LinePairs(source, target), dev, config, training, given)

    return run


def sentences(count: int, words: int = 6, seed: int = 1) -> list[str]:
    generator = random.Random(seed)
    vocabulary = ["".join(generator.choices("abcdefghij", k=5)) for _ in range(500)]
    return [" ".join(generator.choices(vocabulary, k=words)) for _ in range(count)]


@pytest.mark.parametrize("copies", [1, 40])
def test_lines_that_differ_in_numbers_only_are_trained_on(set_up: Callable[..., TrainingSetup], copies: int) -> None:
    source, target = ([f"{text} {n}" for n in range(300)] * copies for text in ("datei gelöscht", "file deleted"))
    setup = set_up(source, target)
    assert setup.dev is not None and not set(setup.dev.source) & set(setup.lines.source)
    assert 20 <= len(set(setup.dev.source)) <= 30 and len(setup.dev.source) <= len(source) // 10
    assert len(setup.lines.source) + len(setup.dev.source) == len(source)


def test_no_class_is_held_out_as_a_whole(set_up: Callable[..., TrainingSetup]) -> None:
    source = sentences(900)
    target = random.Random(1).choices(["good", "bad", "neutral"], [10, 8, 1], k=len(source))
    setup = set_up(source, target)
    assert setup.dev is not None and len(setup.dev.source) == 90
    shares = [Counter(lines.target)["neutral"] / len(lines.target) for lines in (setup.lines, setup.dev)]
    assert all(0.01 < share < 0.15 for share in shares)


@pytest.mark.parametrize(("words", "expected"), [(6, 2000), (12, 2000), (60, 2000 * 160 // 719)])
def test_fewer_pairs_are_read_if_they_are_long(
    set_up: Callable[..., TrainingSetup], monkeypatch: pytest.MonkeyPatch, words: int, expected: int
) -> None:
    """Of ordinary sentences, the number of pairs is limited; of longer lines, the number of characters."""
    monkeypatch.setattr(translator_training, "MAX_PAIRS_PER_MINUTE", 2_000)
    text = sentences(3000, words)
    setup = set_up(text, text[::-1], dev=LinePairs(["a"], ["b"]))
    assert len(setup.lines.source) == pytest.approx(expected, rel=0.01)
    assert setup.unused_pairs == 3000 - len(setup.lines.source)
    assert [text[index] for index in setup.lines.indices] == setup.lines.source


@pytest.mark.parametrize("minutes", [1e-5, 1e-3])
def test_almost_no_time_still_gives_some_pairs(set_up: Callable[..., TrainingSetup], minutes: float) -> None:
    text = sentences(500)
    setup = set_up(text, text[::-1], minutes)
    assert setup.dev is not None and len(setup.lines.source) + len(setup.dev.source) == 200


def test_only_the_beginnings_of_long_lines_are_compared(
    set_up: Callable[..., TrainingSetup], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Comparing them takes time in proportion to the square of their length."""
    compared = list[str]()
    hold_out = translator_training.hold_out

    def record(sides: Any, *arguments: Any, **options: Any) -> Any:
        compared.extend(line for side in sides for line in side)
        return hold_out(sides, *arguments, **options)

    monkeypatch.setattr(translator_training, "hold_out", record)
    text = sentences(210, words=100)
    set_up(text, text[::-1])
    assert max(map(len, compared)) == translator_training.MAX_COMPARED < min(map(len, text))


def test_at_least_so_many_sentences_of_the_dev_text_are_translated_unless_they_are_long() -> None:
    short, long = ([*sentences(5, words)] for words in (6, 600))
    assert relative_length(LinePairs(short, short)) == 1.0
    assert 1 < MIN_SENTENCES / relative_length(LinePairs(long, long)) < 5


# -- resuming ----------------------------------------------------------------------------------------------------------


def write_texts(path: Path, **texts: list[str]) -> list[object]:
    """Write texts and return the options that read them."""
    for name, lines in texts.items():
        (path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return ["train", "translator", "--src", path / "de", "--tgt", path / "en"]


def test_a_longer_training_has_the_same_pairs_and_says_how_to_use_more(
    good: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translator_training, "MAX_PAIRS_PER_MINUTE", 20_000)
    command = write_texts(tmp_path, de=sentences(900), en=sentences(900, seed=2))
    options = (*command, *SIZES, "-o", tmp_path / "model")
    first = good(*options, "--minutes", 0.02)
    assert "400 of 900 pairs are used: there is no time to read more" in first.err
    second = good(*options, "--minutes", 0.03)
    assert "400 of 900 pairs are used: those of this training run" in second.err and "--force" in second.err
    assert "no time" not in second.err


def test_more_of_the_text_is_recommended_if_some_was_left_out() -> None:
    result = DevResult.__new__(DevResult)
    object.__setattr__(result, "shuffled_perplexity", None)
    for pairs, epochs in ((10_000, 0.5), (1_000, 5.0), (10_000, 5.0)):
        training = FitResult(Progress(), epochs, 0.0)
        more_text = "start again with --force and more --minutes"
        assert more_text not in explain_poor_result(result, training, pairs)
        assert more_text in explain_poor_result(result, training, pairs, 500)


def test_more_time_is_recommended_for_little_text_if_training_was_improving() -> None:
    result = DevResult.__new__(DevResult)
    object.__setattr__(result, "shuffled_perplexity", None)
    improving, ended = (FitResult(Progress(update=9, best_dev_loss=1.0, best_update=best), 5.0, 0.0) for best in (9, 5))
    assert "give it more time" in explain_poor_result(result, improving, 1_000)
    assert "give it more time" not in explain_poor_result(result, ended, 1_000)


FILES = [f"die datei %s fehlt seit {n // 20} tagen und {n % 20} stunden" for n in range(400)]
NO_FILES = [f"der hund bellt seit {n // 20} tagen und {n % 20} stunden" for n in range(400)]


def translate(lines: list[str]) -> list[str]:
    """Return lines that have only %s in common with these."""
    return [line.upper().replace("%S", "%s") for line in lines]


@pytest.mark.parametrize(
    ("vocabulary_text", "text"),
    [(FILES, FILES), (FILES, NO_FILES), (FILES, [*FILES[:5], *NO_FILES]), (NO_FILES, FILES)],
)
def test_training_with_given_tokenizers_is_resumed(
    good: Any, tmp_path: Path, vocabulary_text: list[str], text: list[str]
) -> None:
    """Placeholders are used if the tokenizers have them, and enough pairs have something to copy."""
    command = write_texts(tmp_path, de=vocabulary_text, en=translate(vocabulary_text))
    placeholders = ("--placeholders",) if vocabulary_text is FILES else ()
    good(*command, *SIZES, "--max-updates", 1, "-o", tmp_path / "old", *placeholders)
    command = write_texts(tmp_path, de=text, en=translate(text))
    sizes = (*SIZES[2:], "--vocab", tmp_path / "old", "-o", tmp_path / "model")
    good(*command, *sizes, "--minutes", 0.02)
    stored = StoredRun.read(tmp_path / "model")
    assert stored is not None and stored.has_placeholders == (text is FILES and vocabulary_text is FILES)
    good(*command, *sizes, "--minutes", 0.03)


def test_placeholders_that_the_given_tokenizers_do_not_know_are_an_error(run: Any, good: Any, tmp_path: Path) -> None:
    command = write_texts(tmp_path, de=NO_FILES, en=translate(NO_FILES))
    good(*command, *SIZES, "--max-updates", 1, "-o", tmp_path / "old")
    command = write_texts(tmp_path, de=FILES, en=translate(FILES))
    options = (*command, "--placeholders", "--vocab", tmp_path / "old", "-o", tmp_path / "model")
    outcome = run(*options)
    assert outcome.code == 2 and "the tokenizers of --vocab" in outcome.err


@pytest.mark.parametrize("text", [FILES, NO_FILES])
def test_training_of_versions_that_did_not_store_placeholders_is_resumed(
    good: Any, tmp_path: Path, text: list[str]
) -> None:
    options = (*write_texts(tmp_path, de=text, en=translate(text)), *SIZES, "-o", tmp_path / "model")
    good(*options, "--minutes", 0.02)
    path = tmp_path / "model" / "config.yaml"
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert config["data"].pop("placeholders") == (text is FILES)
    vocabulary = (tmp_path / "model" / "source-vocab.tsv").read_text(encoding="utf-8")
    assert (PLACEHOLDER in vocabulary) == (text is FILES)
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    good(*options, "--minutes", 0.03)


# -- alignments --------------------------------------------------------------------------------------------------------


def test_alignments_are_those_of_the_chosen_pairs(good: Any, run: Any, tmp_path: Path) -> None:
    """Some pairs are held out; line i of the file belongs to pair i of the text."""
    source = sentences(400)
    command = write_texts(tmp_path, de=source, en=[" ".join(line.split()[::-1]) for line in source])
    (tmp_path / "links").write_text("0-5 5-0\n" * 400)
    options = (*command, *SIZES, "--supervision", 1, "--minutes", 0.02, "--alignments", tmp_path / "links")
    assert "40 pairs are held out" in good(*options, "-o", tmp_path / "model").err
    (tmp_path / "links").write_text("0-5 5-0\n" * 399)
    outcome = run(*options, "-o", tmp_path / "other")
    assert outcome.code == 2 and "has 399 lines and there are 400 pairs" in outcome.err


def test_selected_pairs_know_their_place_in_the_text() -> None:
    lines = LinePairs(list("abcdefgh"), list("ABCDEFGH"))
    chosen = lines.spread(4).select([3, 1])
    assert (chosen.source, list(chosen.indices), chosen.text_size) == (["g", "c"], [6, 2], 8)
    assert list(chosen.reversed.indices) == [6, 2] and list(lines.indices) == list(range(8))
    with pytest.raises(Exception, match=r"t\.align:3: "):
        word_links_to_tokens([[], [(4, 0)]], [([0], [0]), ([0], [0])], "t.align", chosen.indices)
