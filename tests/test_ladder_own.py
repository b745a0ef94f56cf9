"""The ladder on one's own text: held-out lines, a time that is shared out, a report that needs nothing but itself."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from itertools import product
from pathlib import Path

import pytest

import dragoman
from command import Outcome, is_one_line
from dragoman import DataError
from dragoman.cli import main as command_line
from dragoman.experiments import corpus_models as own_rungs
from dragoman.experiments.corpus_models import (
    ATTENTION,
    CORPUS_TRANSLATORS,
    NAMES,
    PLAIN,
    SEARCHING,
    SECOND,
    sizes_within,
    time_weights,
)
from dragoman.experiments.corpus_split import CorpusPart, draw_held_out, split_corpus
from dragoman.experiments.time_budget import NOTES, READY, SPARE, TRAINED, TimeBudget, share_time
from dragoman.experiments.trainer import ModelTrainer, TrainingContext
from dragoman.models.loading import load_language_model

SHORT = 0.03  # minutes: a step or two of each network
SOURCES = ("ein hund", "eine katze", "der mann", "die frau", "das kind", "ein vogel")
TARGETS = ("a dog", "a cat", "the man", "the woman", "the child", "a bird")
DOES = (("bellt", "barks"), ("schläft", "sleeps"), ("läuft", "runs"), ("singt", "sings"), ("isst", "eats"))
WHEN = (("heute", "today"), ("jetzt", "now"), ("oft", "often"))


def pairs() -> tuple[list[str], list[str]]:
    """Ninety sentences of four or five words, one of them twice."""
    found = list(product(zip(SOURCES, TARGETS, strict=True), DOES, WHEN))
    found.append(found[0])
    source = [f"{who[0]} {does[0]} {when[0]} ." for who, does, when in found]
    return source, [f"{who[1]} {does[1]} {when[1]} ." for who, does, when in found]


def run(*arguments: str | Path | float) -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = command_line.main(["ladder", *map(str, arguments)])
    return Outcome(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    place = tmp_path_factory.mktemp("own")
    for name, lines in zip(("text.de", "text.en"), pairs(), strict=True):
        (place / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return place / "text.de", place / "text.en"


def climb(files: tuple[Path, Path], output: Path) -> Outcome:
    return run("--src", files[0], "--tgt", files[1], "--minutes", SHORT, "-o", output)


@pytest.fixture(scope="module")
def whole(files: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Outcome]]:
    """A ladder with everything, an ensemble too."""
    output = tmp_path_factory.mktemp("ladder") / "own"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_rungs, "ENOUGH", 0.0)
        outcome = climb(files, output)
        assert outcome.code == 0, outcome.err
        yield output, outcome


def read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


# -- the report ------------------------------------------------------------------------------------------------------


def test_the_page_needs_nothing_but_itself(whole: tuple[Path, Outcome]) -> None:
    page = (whole[0] / "report.html").read_text(encoding="utf-8")
    assert "http" not in page.replace("http-equiv", ""), "nothing is fetched"
    assert not re.search(r"<(script|link|img|iframe)\b|url\((?!#)", page)
    assert page.count("<svg") >= 3 and page.count('<table class="heat">') == 1


def test_page_and_markdown_tell_of_every_model(whole: tuple[Path, Outcome]) -> None:
    page = (whole[0] / "report.html").read_text(encoding="utf-8")
    markdown = (whole[0] / "ladder.md").read_text(encoding="utf-8")
    for name in (*NAMES, *CORPUS_TRANSLATORS, "ensemble"):
        assert f"<td>{name}</td>" in page, name
        assert f"\n| {name} |" in markdown, name
    headings = re.findall(r'<section id="section-\d+">\n<h2>(.*?)</h2>', page)
    assert headings == re.findall(r"^## (.*)$", markdown, re.MULTILINE)
    assert len(headings) == len(set(headings)) >= 14
    assert all((whole[0] / name).is_file() for name in re.findall(r"!\[.*\]\(<(.*)>\)", markdown))
    assert "The ladder, German to English: text.de, text.en" in page
    assert "floor" not in page and "nan" not in page.split()


def test_the_plain_values_are_those_of_the_models(whole: tuple[Path, Outcome]) -> None:
    output, _ = whole
    found = json.loads((output / "ladder.json").read_text())
    assert [model["model"] for model in found["models"]] == list(NAMES)
    target = read_lines(output / "text" / "test.tgt")
    for model in found["models"]:
        total = sum(dragoman.load(output / "rungs" / model["model"]).score(target))
        assert model["log_likelihood"] + model["log_likelihood_unknown"] == pytest.approx(total)
    assert [one["model"] for one in found["translators"]] == [PLAIN, ATTENTION, SECOND, "ensemble"]
    source = read_lines(output / "text" / "test.src")
    assert found["translated"] == len(source), "there are few"
    for one in found["translators"][:3]:
        model = dragoman.load(output / "rungs" / one["model"])
        assert one["perplexity"] == pytest.approx(model.likelihood(source, target).perplexity)


def test_the_tables_are_printed_and_the_next_commands_told(whole: tuple[Path, Outcome]) -> None:
    output, outcome = whole
    starts = [line.partition("  ")[0] for line in outcome.lines]
    assert all(name in starts for name in (*NAMES, *CORPUS_TRANSLATORS))
    suggested = [line for line in outcome.err.splitlines() if line.startswith("next: ")]
    assert any(f"translate {output / 'rungs' / ATTENTION}" in line for line in suggested)
    assert str(output / "report.html") in outcome.err


# -- held-out lines --------------------------------------------------------------------------------------------------


def test_held_out_lines_are_in_no_other_part(whole: tuple[Path, Outcome]) -> None:
    place = whole[0] / "text"
    parts = {name: [read_lines(place / f"{name}.{end}") for end in ("src", "tgt")] for name in ("train", "dev", "test")}
    assert [len(parts[name][0]) for name in parts] == [91 - 18, 9, 9]
    for side in (0, 1):
        train, dev, test = (set(parts[name][side]) for name in ("train", "dev", "test"))
        assert not train & dev and not train & test and not dev & test
    together = sorted(pair for source, target in parts.values() for pair in zip(source, target, strict=True))
    assert together == sorted(zip(*pairs(), strict=True)), "nothing is lost, and pairs stay pairs"
    assert "Held out from the training text: dev and test" in (whole[0] / "ladder.md").read_text()


def test_the_same_lines_are_held_out_for_the_same_seed_and_none_that_comes_twice() -> None:
    source, target = pairs()
    text = CorpusPart(target, source)
    assert draw_held_out(text, 2, 1) == draw_held_out(text, 2, 1) != draw_held_out(text, 2, 2)
    for seed in range(20):
        assert all(target.count(target[number]) == 1 for numbers in draw_held_out(text, 2, seed) for number in numbers)


def test_given_parts_are_taken_and_what_was_seen_in_training_is_told() -> None:
    source, target = pairs()
    text = CorpusPart(target, source)
    divided_text = split_corpus(text, text.select(range(5)), text.select(range(10, 20)), 1, 1.0)
    assert divided_text.held_out == () and divided_text.test_lines_in_training == 10
    assert len(divided_text.train) == len(text)


def test_a_text_too_large_for_the_time_is_thinned_out_evenly() -> None:
    lines = [f"line {number}" for number in range(1000)]
    text = split_corpus(CorpusPart(lines), None, None, 1, 0.01)
    assert len(text.train) == 100 and text.omitted == 700
    numbers = [int(line.split()[1]) for line in text.train.target]
    assert numbers[0] < 20 and numbers[-1] > 980 and numbers == sorted(numbers)


# -- time ------------------------------------------------------------------------------------------------------------


def test_the_shares_sum_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_rungs, "ENOUGH", 10.0)
    for translated in (False, True):
        shares = share_time(1200.0, time_weights(translated, 20.0))
        assert sum(shares.values()) == pytest.approx(1200.0)
        assert (SEARCHING in shares) == translated
    assert SECOND in time_weights(True, 20.0) and SECOND not in time_weights(True, 5.0)
    assert set(share_time(-3.0, {"one": 1, "two": 2}).values()) == {0.0}, "there is no time to give back"


def test_what_one_part_leaves_goes_to_the_others(tmp_path: Path) -> None:
    now = [0.0]
    budget = TimeBudget(tmp_path, 10.0, {"one": 1, "two": 1, "three": 2}, lambda: now[0])
    usable = 600 * (1 - SPARE)
    assert 60 * budget.minutes_for("one") == pytest.approx(TRAINED * usable / 4, abs=0.01)
    now[0] = 10.0  # it has taken less than it was given
    assert budget.seconds_for("two") == pytest.approx((usable - 10) / 3)
    budget.minutes_for("two")
    now[0] = 700.0
    assert budget.seconds_for("three") == 0.0
    assert 60 * budget.minutes_for("three") > 0, "a step has to be taken all the same"


def test_what_making_a_model_ready_takes_is_not_spent_on_training_it(tmp_path: Path) -> None:
    now = [0.0]
    budget = TimeBudget(tmp_path, 10.0, {"one": 1, "two": 1}, lambda: now[0])
    expected = budget.minutes_for("one")
    now[0] = 300.0
    assert 60 * budget.bound_for("one") == pytest.approx(READY * (600 * (1 - SPARE) - 300) / 2, abs=0.01)
    now[0] = 400.0
    assert budget.bound_for("one") < expected, "decided once"
    quick = TimeBudget(tmp_path / "quick", 10.0, {"one": 1, "two": 1}, lambda: now[0])
    assert quick.minutes_for("one") == quick.bound_for("one")


def test_a_ladder_that_goes_on_keeps_to_what_was_decided(tmp_path: Path) -> None:
    now = [0.0]
    first = TimeBudget(tmp_path, 10.0, {"one": 1, "two": 1}, lambda: now[0])
    given = first.minutes_for("one")
    assert first.decide_once("translated", lambda: 12.7) == 12
    now[0] = 100.0
    first.save()
    later = TimeBudget(tmp_path, 10.0, {"one": 1, "two": 1}, lambda: now[0])
    assert later.spent == 100.0 and later.minutes_for("one") == given
    assert later.decide_once("translated", lambda: 99.0) == 12
    assert later.seconds_for("two") == pytest.approx(600 * (1 - SPARE) - 100)
    later.finish()
    now[0] = 500.0
    assert later.total_seconds == TimeBudget(tmp_path, 10.0, {}, lambda: now[0]).total_seconds == 100.0, (
        "telling it again takes nothing"
    )


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"spent": "x"}', '{"finished": null}', '{"spent": 1, "minutes": []}', "[" * 9000]
)
def test_damaged_notes_are_told_in_a_line(tmp_path: Path, content: str) -> None:
    (tmp_path / NOTES).write_text(content)
    with pytest.raises(DataError, match=f"{NOTES}: damaged"):
        TimeBudget(tmp_path, 1.0, {})


def test_every_model_is_explained() -> None:
    assert set(own_rungs.DESCRIPTIONS) == {*NAMES, *CORPUS_TRANSLATORS, own_rungs.ENSEMBLE}


def test_translators_are_as_large_as_text_and_time_allow() -> None:
    sizes = [sizes_within(29_000, minutes)["hidden"] for minutes in (0.1, 1, 4, 10, 60)]
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]
    assert sizes_within(500, 60)["hidden"] < sizes[-1], "a small text does not fill a large network"


def test_what_is_finished_is_not_trained_again(files: tuple[Path, Path], whole: tuple[Path, Outcome]) -> None:
    output, outcome = whole
    before = {file: file.stat().st_mtime_ns for file in (output / "rungs").rglob("*") if file.is_file()}
    again = climb(files, output)
    assert again.code == 0, again.err
    assert again.out == outcome.out
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert all(f"{name}: finished already" in again.err for name in (*NAMES, *CORPUS_TRANSLATORS))
    assert "making it" not in again.err and "learning which" not in again.err


def test_held_out_words_that_were_never_seen_stop_nothing(training: dragoman.Corpus, tmp_path: Path) -> None:
    strange = dragoman.Corpus.from_sentences(["zyx", "yxz"], training.vocab)
    ground = TrainingContext(training, strange, 1, None, tmp_path)
    made = ModelTrainer(tmp_path, ground, own_rungs.CORPUS_LANGUAGE_MODELS, load_language_model).train("brown-5")
    assert made.model.vocab == training.vocab


# -- one language ----------------------------------------------------------------------------------------------------


def test_a_text_alone_has_language_models_and_no_translators(files: tuple[Path, Path], tmp_path: Path) -> None:
    outcome = run("--text", files[1], "--minutes", SHORT, "-o", tmp_path / "text")
    assert outcome.code == 0, outcome.err
    found = json.loads((tmp_path / "text" / "ladder.json").read_text())
    assert [model["model"] for model in found["models"]] == list(NAMES)
    assert "translators" not in found
    markdown = (tmp_path / "text" / "ladder.md").read_text()
    assert "The ladder, English: text.en" in markdown and "ttention" not in markdown
    assert sorted(path.name for path in (tmp_path / "text" / "text").iterdir()) == ["dev.tgt", "test.tgt", "train.tgt"]


# -- what is refused -------------------------------------------------------------------------------------------------


def refused(outcome: Outcome, *told: str) -> None:
    assert outcome.code == 2
    assert is_one_line(outcome.err), outcome.err
    assert all(part in outcome.err for part in told), outcome.err


@pytest.mark.parametrize("change", [("--minutes", "9"), ("--seed", "2")])
def test_another_ladder_in_the_same_place_is_refused(
    files: tuple[Path, Path], whole: tuple[Path, Outcome], change: tuple[str, str]
) -> None:
    options = {"--minutes": str(SHORT), "--seed": "1", **dict([change])}
    given = [part for option in options.items() for part in option]
    refused(run("--src", files[0], "--tgt", files[1], "-o", whole[0], *given), "holds another ladder")


def test_another_text_in_the_same_place_is_refused(files: tuple[Path, Path], whole: tuple[Path, Outcome]) -> None:
    told = run("--src", files[1], "--tgt", files[0], "--minutes", SHORT, "-o", whole[0])
    refused(told, "holds another ladder", "training text")


def test_bad_texts_are_told_in_a_line_and_nothing_is_written(files: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "short").write_text("ein hund\n")
    (tmp_path / "blank").write_text("\n" * 91)
    output = tmp_path / "new"
    refused(run("--src", tmp_path / "short", "--tgt", files[1], "-o", output), "1 lines", "91")
    refused(run("--src", tmp_path / "empty", "--tgt", files[1], "-o", output), "empty")
    refused(run("--src", tmp_path / "none", "--tgt", files[1], "-o", output), str(tmp_path / "none"))
    refused(run("--src", tmp_path / "short", "--tgt", tmp_path / "short", "-o", output), "too few to hold some out")
    refused(run("--src", files[0], "--tgt", tmp_path / "blank", "-o", output), "too few")
    same = ("--dev-src", tmp_path / "blank", "--dev-tgt", tmp_path / "blank")
    refused(run("--src", files[0], "--tgt", files[1], *same, "-o", output), "dev text", "blank")
    assert not output.exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--src", "a"), "--src and --tgt go together"),
        (("--src", "a", "--tgt", "b", "--dev-tgt", "c"), "--dev-src and --dev-tgt go together"),
        (("--src", "a", "--tgt", "b", "--text", "c"), "one or the other"),
        (("--test-src", "a", "--test-tgt", "b"), "goes with --src"),
        (("--dev-text", "a"), "goes with --text"),
        (("--text", "a", "--models", "kn-1"), "--models is for the ladder on the laboratory"),
        (("--text", "a", "--pairs", "9"), "--pairs is for the ladder on the laboratory"),
        (("--text", "a", "--minutes", "0"), "--minutes"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: tuple[str, ...], told: str, tmp_path: Path) -> None:
    refused(run(*options, "-o", tmp_path / "new"), told)
    assert not (tmp_path / "new").exists()
