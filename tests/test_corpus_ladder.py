"""The ladder on the user's text: held-out lines, a shared time budget, a self-contained report."""

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
from dragoman.experiments import recipes
from dragoman.experiments.corpus_data import CorpusPart, draw_held_out, split_corpus
from dragoman.experiments.recipes import (
    ATTENTION,
    CORPUS_LANGUAGE_MODELS,
    CORPUS_TRANSLATORS,
    DESCRIPTIONS,
    ENCODER_DECODER,
    ENSEMBLE,
    SEARCHING,
    SECOND,
    time_weights,
)
from dragoman.experiments.time_budget import (
    NOTES_FILE,
    READY_SHARE,
    REPORT_SHARE,
    TRAINING_SHARE,
    TimeBudget,
    share_time,
)
from dragoman.experiments.trainer import ModelTrainer, TrainingContext
from dragoman.models.loading import load_language_model

SHORT = 0.03  # minutes: a step or two of each network
SUBJECTS = (
    *(("ein hund", "a dog"), ("eine katze", "a cat"), ("der mann", "the man")),
    *(("die frau", "the woman"), ("das kind", "the child"), ("ein vogel", "a bird")),
)
VERBS = (("bellt", "barks"), ("schläft", "sleeps"), ("läuft", "runs"), ("singt", "sings"), ("isst", "eats"))
TIMES = (("heute", "today"), ("jetzt", "now"), ("oft", "often"))


def pairs() -> tuple[list[str], list[str]]:
    """Return ninety sentences of four or five words, one of them twice."""
    sentences = list(product(SUBJECTS, VERBS, TIMES))
    sentences.append(sentences[0])
    source, target = ([" ".join([*(words[side] for words in line), "."]) for line in sentences] for side in (0, 1))
    return source, target


def run(*arguments: str | Path | float) -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = command_line.main(["ladder", *map(str, arguments)])
    return Outcome(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    directory = tmp_path_factory.mktemp("own")
    for name, lines in zip(("text.de", "text.en"), pairs(), strict=True):
        (directory / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return directory / "text.de", directory / "text.en"


def run_parallel(files: tuple[Path, Path], output: Path) -> Outcome:
    return run("--src", files[0], "--tgt", files[1], "--minutes", SHORT, "-o", output)


@pytest.fixture(scope="module")
def finished(files: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Outcome]]:
    """A ladder with everything, including an ensemble."""
    output = tmp_path_factory.mktemp("ladder") / "own"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recipes, "ENSEMBLE_MINUTES", 0.0)
        outcome = run_parallel(files, output)
        assert outcome.code == 0, outcome.err
        yield output, outcome


def read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


# -- the report ------------------------------------------------------------------------------------------------------


def test_page_is_self_contained(finished: tuple[Path, Outcome]) -> None:
    page = (finished[0] / "report.html").read_text(encoding="utf-8")
    assert "http" not in page.replace("http-equiv", ""), "nothing is fetched"
    assert not re.search(r"<(script|link|img|iframe)\b|url\((?!#)", page)
    assert page.count("<svg") >= 3 and page.count('<table class="heat">') == 1


def test_page_and_markdown_contain_every_model(finished: tuple[Path, Outcome]) -> None:
    page = (finished[0] / "report.html").read_text(encoding="utf-8")
    markdown = (finished[0] / "ladder.md").read_text(encoding="utf-8")
    for name in (*CORPUS_LANGUAGE_MODELS, *CORPUS_TRANSLATORS, ENSEMBLE):
        assert f"<td>{name}</td>" in page, name
        assert f"\n| {name} |" in markdown, name
    headings = re.findall(r'<section id="section-\d+">\n<h2>(.*?)</h2>', page)
    assert headings == re.findall(r"^## (.*)$", markdown, re.MULTILINE)
    assert len(headings) == len(set(headings)) >= 14
    assert all((finished[0] / name).is_file() for name in re.findall(r"!\[.*\]\(<(.*)>\)", markdown))
    assert "The ladder, German to English: text.de, text.en" in page
    assert "floor" not in page and "nan" not in page.split()


def test_json_has_the_values_of_the_models(finished: tuple[Path, Outcome]) -> None:
    output, _ = finished
    values = json.loads((output / "ladder.json").read_text())
    assert [model["model"] for model in values["models"]] == list(CORPUS_LANGUAGE_MODELS)
    target = read_lines(output / "text" / "test.tgt")
    for model in values["models"]:
        total = sum(dragoman.load(output / "rungs" / model["model"]).score(target))
        assert model["log_likelihood"] + model["log_likelihood_unknown"] == pytest.approx(total)
    assert [model["model"] for model in values["translators"]] == [ENCODER_DECODER, ATTENTION, SECOND, ENSEMBLE]
    source = read_lines(output / "text" / "test.src")
    assert values["translated"] == len(source), "there are few"
    for model in values["translators"][:3]:
        translator = dragoman.load(output / "rungs" / model["model"])
        assert model["perplexity"] == pytest.approx(translator.likelihood(source, target).perplexity)


def test_tables_are_printed_and_commands_suggested(finished: tuple[Path, Outcome]) -> None:
    output, outcome = finished
    starts = [line.partition("  ")[0] for line in outcome.lines]
    assert all(name in starts for name in (*CORPUS_LANGUAGE_MODELS, *CORPUS_TRANSLATORS))
    commands = [line for line in outcome.err.splitlines() if line.startswith("next: ")]
    assert any(f"translate {output / 'rungs' / ATTENTION}" in line for line in commands)
    assert str(output / "report.html") in outcome.err


# -- held-out lines --------------------------------------------------------------------------------------------------


def test_held_out_lines_are_in_no_other_part(finished: tuple[Path, Outcome]) -> None:
    directory = finished[0] / "text"
    parts = {
        name: [read_lines(directory / f"{name}.{extension}") for extension in ("src", "tgt")]
        for name in ("train", "dev", "test")
    }
    assert [len(parts[name][0]) for name in parts] == [91 - 18, 9, 9]
    for side in (0, 1):
        train, dev, test = (set(parts[name][side]) for name in ("train", "dev", "test"))
        assert not train & dev and not train & test and not dev & test
    together = sorted(pair for source, target in parts.values() for pair in zip(source, target, strict=True))
    assert together == sorted(zip(*pairs(), strict=True)), "nothing is lost, and pairs stay pairs"
    assert "The dev and test text was held out" in (finished[0] / "ladder.md").read_text()


def test_held_out_lines_depend_on_the_seed_and_occur_once() -> None:
    source, target = pairs()
    text = CorpusPart(target, source)
    assert draw_held_out(text, 2, 1) == draw_held_out(text, 2, 1) != draw_held_out(text, 2, 2)
    for seed in range(20):
        assert all(target.count(target[number]) == 1 for numbers in draw_held_out(text, 2, seed) for number in numbers)


def test_given_parts_are_used_and_test_lines_in_training_counted() -> None:
    source, target = pairs()
    text = CorpusPart(target, source)
    split = split_corpus(text, text.select(range(5)), text.select(range(10, 20)), 1, 1.0)
    assert split.held_out == () and split.test_lines_in_training == 10
    assert len(split.train) == len(text)


def test_text_too_large_for_the_time_is_thinned_out_evenly() -> None:
    lines = [f"line {number}" for number in range(1000)]
    split = split_corpus(CorpusPart(lines), None, None, 1, 0.01)
    assert len(split.train) == 100 and split.omitted == 700
    numbers = [int(line.split()[1]) for line in split.train.target]
    assert numbers[0] < 20 and numbers[-1] > 980 and numbers == sorted(numbers)


# -- time ------------------------------------------------------------------------------------------------------------


def test_shares_of_the_time_sum_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipes, "ENSEMBLE_MINUTES", 10.0)
    for is_parallel in (False, True):
        shares = share_time(1200.0, time_weights(is_parallel, 20.0))
        assert sum(shares.values()) == pytest.approx(1200.0)
        assert (SEARCHING in shares) == is_parallel
    assert SECOND in time_weights(True, 20.0) and SECOND not in time_weights(True, 5.0)
    assert set(share_time(-3.0, {"a": 1, "b": 2}).values()) == {0.0}


def test_time_that_a_part_does_not_need_goes_to_the_others(tmp_path: Path) -> None:
    now = [0.0]
    budget = TimeBudget(tmp_path, 10.0, {"a": 1, "b": 1, "c": 2}, lambda: now[0])
    usable = 600 * (1 - REPORT_SHARE)
    assert 60 * budget.minutes_for("a") == pytest.approx(TRAINING_SHARE * usable / 4, abs=0.01)
    now[0] = 10.0
    assert budget.seconds_for("b") == pytest.approx((usable - 10) / 3)
    budget.minutes_for("b")
    now[0] = 700.0
    assert budget.seconds_for("c") == 0.0
    assert 60 * budget.minutes_for("c") > 0, "a step has to be taken anyway"


def test_preparing_a_model_reduces_its_training_time(tmp_path: Path) -> None:
    now = [0.0]
    budget = TimeBudget(tmp_path, 10.0, {"a": 1, "b": 1}, lambda: now[0])
    expected = budget.minutes_for("a")
    now[0] = 300.0
    seconds = READY_SHARE * (600 * (1 - REPORT_SHARE) - 300) / 2
    assert 60 * budget.minutes_left_for("a") == pytest.approx(seconds, abs=0.01)
    now[0] = 400.0
    assert budget.minutes_left_for("a") < expected, "decided once"
    quick = TimeBudget(tmp_path / "quick", 10.0, {"a": 1, "b": 1}, lambda: now[0])
    assert quick.minutes_for("a") == quick.minutes_left_for("a")


def test_decisions_are_kept_when_an_experiment_continues(tmp_path: Path) -> None:
    now = [0.0]
    first = TimeBudget(tmp_path, 10.0, {"a": 1, "b": 1}, lambda: now[0])
    minutes = first.minutes_for("a")
    assert first.decide_once("translated", lambda: 12.7) == 12
    now[0] = 100.0
    first.save()
    later = TimeBudget(tmp_path, 10.0, {"a": 1, "b": 1}, lambda: now[0])
    assert later.spent == 100.0 and later.minutes_for("a") == minutes
    assert later.decide_once("translated", lambda: 99.0) == 12
    assert later.seconds_for("b") == pytest.approx(600 * (1 - REPORT_SHARE) - 100)
    later.finish()
    now[0] = 500.0
    assert later.total_seconds == TimeBudget(tmp_path, 10.0, {}, lambda: now[0]).total_seconds == 100.0


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"spent": "x"}', '{"finished": NaN}', '{"spent": 1, "minutes": []}', "[" * 9000]
)
def test_damaged_time_file_is_an_error_of_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / NOTES_FILE).write_text(content)
    with pytest.raises(DataError, match=f"{NOTES_FILE}: damaged"):
        TimeBudget(tmp_path, 1.0, {})


def test_every_model_has_a_description() -> None:
    assert set(DESCRIPTIONS) == {*CORPUS_LANGUAGE_MODELS, *CORPUS_TRANSLATORS, ENSEMBLE}


def test_finished_models_are_not_trained_again(files: tuple[Path, Path], finished: tuple[Path, Outcome]) -> None:
    output, outcome = finished
    before = {file: file.stat().st_mtime_ns for file in (output / "rungs").rglob("*") if file.is_file()}
    again = run_parallel(files, output)
    assert again.code == 0, again.err
    assert again.out == outcome.out
    assert {file: file.stat().st_mtime_ns for file in before} == before
    names = (*CORPUS_LANGUAGE_MODELS, *CORPUS_TRANSLATORS, "aligner")
    assert all(f"{name}: already trained" in again.err for name in names)
    assert "training in" not in again.err


def test_dev_text_of_unknown_words_only_is_no_problem(training: dragoman.Corpus, tmp_path: Path) -> None:
    unknown = dragoman.Corpus.from_sentences(["zyx", "yxz"], training.vocab)
    context = TrainingContext(training, unknown, 1, tmp_path)
    rung = ModelTrainer(context, CORPUS_LANGUAGE_MODELS, load_language_model).train("brown-5")
    assert rung.model.vocab == training.vocab


# -- one language ----------------------------------------------------------------------------------------------------


def test_text_in_one_language_has_no_translators(files: tuple[Path, Path], tmp_path: Path) -> None:
    outcome = run("--text", files[1], "--minutes", SHORT, "-o", tmp_path / "text")
    assert outcome.code == 0, outcome.err
    values = json.loads((tmp_path / "text" / "ladder.json").read_text())
    assert [model["model"] for model in values["models"]] == list(CORPUS_LANGUAGE_MODELS)
    assert "translators" not in values
    markdown = (tmp_path / "text" / "ladder.md").read_text()
    assert "The ladder, English: text.en" in markdown and "ttention" not in markdown
    assert sorted(path.name for path in (tmp_path / "text" / "text").iterdir()) == ["dev.tgt", "test.tgt", "train.tgt"]


# -- errors ----------------------------------------------------------------------------------------------------------


def assert_error(outcome: Outcome, *parts: str) -> None:
    assert outcome.code == 2
    assert is_one_line(outcome.err), outcome.err
    assert all(part in outcome.err for part in parts), outcome.err


@pytest.mark.parametrize("change", [("--minutes", "9"), ("--seed", "2")])
def test_other_settings_in_the_same_directory_are_an_error(
    files: tuple[Path, Path], finished: tuple[Path, Outcome], change: tuple[str, str]
) -> None:
    options = {"--minutes": str(SHORT), "--seed": "1", **dict([change])}
    words = [word for option in options.items() for word in option]
    outcome = run("--src", files[0], "--tgt", files[1], "-o", finished[0], *words)
    assert_error(outcome, "contains another ladder")


def test_other_text_in_the_same_directory_is_an_error(files: tuple[Path, Path], finished: tuple[Path, Outcome]) -> None:
    outcome = run("--src", files[1], "--tgt", files[0], "--minutes", SHORT, "-o", finished[0])
    assert_error(outcome, "contains another ladder", "training text")


def test_bad_texts_are_errors_and_nothing_is_written(files: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "short").write_text("ein hund\n")
    (tmp_path / "blank").write_text("\n" * 91)
    output = tmp_path / "new"
    assert_error(run("--src", tmp_path / "short", "--tgt", files[1], "-o", output), "1 lines", "91")
    assert_error(run("--src", tmp_path / "empty", "--tgt", files[1], "-o", output), "empty")
    assert_error(run("--src", tmp_path / "none", "--tgt", files[1], "-o", output), str(tmp_path / "none"))
    (tmp_path / "other").write_text("a dog\n")
    outcome = run("--src", tmp_path / "short", "--tgt", tmp_path / "other", "-o", output)
    assert_error(outcome, "too few to hold some out")
    assert_error(run("--src", files[0], "--tgt", tmp_path / "blank", "-o", output), "too few")
    (tmp_path / "blank too").write_text("\n" * 91)
    blank = ("--dev-src", tmp_path / "blank", "--dev-tgt", tmp_path / "blank too")
    assert_error(run("--src", files[0], "--tgt", files[1], *blank, "-o", output), "dev text", "blank")
    assert not output.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--src", "a"), "--src and --tgt go together"),
        (("--src", "a", "--tgt", "b", "--dev-tgt", "c"), "--dev-src and --dev-tgt go together"),
        (("--src", "a", "--tgt", "b", "--text", "c"), "one or the other"),
        (("--test-src", "a", "--test-tgt", "b"), "goes with --src"),
        (("--dev-text", "a"), "goes with --text"),
        (("--text", "a", "--models", "kn-1"), "--models is for the ladder on the text of the lab"),
        (("--text", "a", "--pairs", "9"), "is for the ladder on the text of the lab"),
        (("--text", "a", "--minutes", "0"), "--minutes"),
    ],
)
def test_options_that_do_not_go_together_are_errors(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    assert_error(run(*options, "-o", tmp_path / "new"), message)
    assert not (tmp_path / "new").exists()
