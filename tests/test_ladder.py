"""The ladder on the lab's text: a row for each model and the floor, nothing trained twice, stopped training resumed."""

from __future__ import annotations

import io
import json
import math
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

import dragoman
from command import Outcome, is_one_line, written
from dragoman import DataError
from dragoman.cli import main as command_line
from dragoman.evaluation.minimal_pairs import MinimalPairAccuracy
from dragoman.experiments import lab, lab_ladder, recipes, trainer
from dragoman.experiments.directories import MARK_FILE, claim_directory
from dragoman.experiments.pipeline import RESUME
from dragoman.experiments.recipes import LAB_TRANSLATORS, LANGUAGE_MODELS, train_feed_forward, train_mixture
from dragoman.experiments.results import ACCURACY_COLUMNS, NGRAM_WINDOW, AccuracyColumn, LanguageModelRung
from dragoman.experiments.trainer import ModelTrainer, Recipe, TrainingContext, select_models
from dragoman.io.storage import model_megabytes
from dragoman.lab.minimal_pairs import PHENOMENA
from dragoman.models.loading import load_language_model
from dragoman.report.charts import FLOOR_LABEL, Proportion
from dragoman.report.ladder import distance_proportions, distance_tables
from test_figures import texts_of
from training_helpers import Clock

PAIRS = 150
SHORT = 0.0005  # minutes: a step or two of each network
SMALL = ("embedding", "hidden", "attention_hidden", "filters", "readout")  # sizes of translators


def run(output: Path, *options: str | Path | float) -> Outcome:
    """Run `dragoman ladder` on little text."""
    out, err = io.StringIO(), io.StringIO()
    arguments = ["ladder", "-o", output, "--pairs", PAIRS, "--minutes", SHORT, *options]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name, value in {"DEV": 10, "TEST": 10, "MINIMAL_PAIRS": 4}.items():
            patch.setattr(lab_ladder, name, value)
        for name in SMALL:
            patch.setitem(recipes.TRANSLATOR_NETWORK, name, 8)
        code = command_line.main(list(map(str, arguments)))
    return Outcome(code, out.getvalue(), err.getvalue())


def modification_times(output: Path) -> dict[Path, int]:
    files = [file for part in ("lab", "rungs") for file in (output / part).rglob("*") if file.is_file()]
    return {file: file.stat().st_mtime_ns for file in files}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Outcome]]:
    """A ladder of all models."""
    output = tmp_path_factory.mktemp("ladder") / "new"
    outcome = run(output)
    assert outcome.code == 0, outcome.err
    yield output, outcome


# -- the command -----------------------------------------------------------------------------------------------------


def test_every_model_and_the_floor_have_a_row(finished: tuple[Path, Outcome]) -> None:
    output, outcome = finished
    starts = [line.partition("  ")[0] for line in outcome.lines]
    markdown = (output / "ladder.md").read_text()
    for name in (*LANGUAGE_MODELS, *LAB_TRANSLATORS):
        assert starts.count(name) == 2, "perplexity and accuracy, or scores and lengths"
        assert markdown.count(f"\n| {name} |") == 2
    assert starts.count(FLOOR_LABEL) == 2, "of P(E), and of P(E | F)"


def test_json_has_the_values_of_language_models(finished: tuple[Path, Outcome]) -> None:
    output, _ = finished
    values = json.loads((output / "ladder.json").read_text())
    assert values["pairs"] == PAIRS
    assert [model["model"] for model in values["models"]] == list(LANGUAGE_MODELS)
    test = output / "lab" / "test.en"
    for model in values["models"]:
        loaded = dragoman.load(output / "rungs" / model["model"])
        total = sum(loaded.score(test.read_text().splitlines()))
        assert model["log_likelihood"] + model["log_likelihood_unknown"] == pytest.approx(total)
        assert model["above_floor"]["nats"] > 0
        assert model["megabytes"] == round(model_megabytes(output / "rungs" / model["model"]), 3)
        assert {kind["phenomenon"] for kind in model["contrasts"]} <= set(PHENOMENA["en"])


def test_json_has_the_values_of_translators(finished: tuple[Path, Outcome]) -> None:
    output, _ = finished
    translators = json.loads((output / "ladder.json").read_text())["translators"]
    assert [values["model"] for values in translators] == list(LAB_TRANSLATORS)
    data = output / "lab"
    english = (data / "test.en").read_text().splitlines()
    log_probs = [float(line.split("\t")[2]) for line in (data / "test.logprob").read_text().splitlines()]
    floor = math.exp(-sum(log_probs) / (len(english) + sum(len(line.split()) for line in english)))
    for values in translators:
        model = dragoman.load(output / "rungs" / values["model"])
        extension = "de.trees" if model.source.format == "tree" else "de"
        german = (data / f"test.{extension}").read_text().splitlines()
        assert values["perplexity"] == pytest.approx(model.likelihood(german, english).perplexity)
        assert values["perplexity_floor"] == pytest.approx(floor)
        assert values["perplexity"] > floor
        assert ("alignment" in values) == values["model"].startswith("attn")
        assert sum(length_class["sentences"] for length_class in values["by_length"]) == len(english)
        assert values["parameters"] == model.num_parameters


def test_figures_name_the_models(finished: tuple[Path, Outcome]) -> None:
    output, _ = finished
    columns = {column.name for column in ACCURACY_COLUMNS}
    assert {*LANGUAGE_MODELS, *columns} <= texts_of(output / "ladder.svg")
    assert set(LAB_TRANSLATORS) <= texts_of(output / "translators.svg")
    in_lengths = texts_of(output / "lengths.svg")
    assert set(lab_ladder.LENGTH_MODELS) <= in_lengths
    assert not (set(LAB_TRANSLATORS) - set(lab_ladder.LENGTH_MODELS)) & in_lengths, "there are too many for all"


def test_report_contains_all_models_figures_and_heat_maps(finished: tuple[Path, Outcome]) -> None:
    output, outcome = finished
    page = (output / "report.html").read_text()
    assert all(f"<td>{name}</td>" in page for name in (*LANGUAGE_MODELS, *LAB_TRANSLATORS))
    with_attention = [name for name in LAB_TRANSLATORS if name.startswith("attn")]
    assert page.count('<table class="heat">') == len(with_attention)
    assert all(f"{name}: each row sums to 1" in page for name in with_attention)
    figures = outcome.err.partition("report.html, ")[2].splitlines()[0].split(", ")
    assert page.count("<svg") == len(figures) >= 3
    assert "http" not in page.replace("http-equiv", ""), "nothing is fetched"


def test_ladder_of_translators_only(finished: tuple[Path, Outcome], tmp_path: Path) -> None:
    shutil.copytree(finished[0], tmp_path / "copy")
    outcome = run(tmp_path / "copy", "--models", "attn-recursive,encdec-reverse")
    assert outcome.code == 0, outcome.err
    values = json.loads((tmp_path / "copy" / "ladder.json").read_text())
    assert [model["model"] for model in values["translators"]] == ["encdec-reverse", "attn-recursive"]
    assert "models" not in values
    assert "kn-5" not in outcome.out and "kn-5" not in (tmp_path / "copy" / "ladder.md").read_text()


def test_suggested_commands_use_the_best_model(finished: tuple[Path, Outcome]) -> None:
    output, outcome = finished
    models = json.loads((output / "ladder.json").read_text())["models"]
    best = min(models, key=lambda model: model["perplexity"])["model"]
    commands = [line for line in outcome.err.splitlines() if line.startswith("next: ")]
    assert len(commands) == 4
    assert all(str(output / "rungs" / best) in line for line in commands[:3])
    assert f"evaluate {output / 'rungs'}" in commands[3] and "--src" in commands[3]


def test_finished_models_are_loaded_and_not_trained_again(finished: tuple[Path, Outcome]) -> None:
    output, outcome = finished
    before = modification_times(output)
    again = run(output)
    assert again.code == 0
    assert again.out == outcome.out, "including the seconds of training"
    assert modification_times(output) == before
    assert all(f"{name}: already trained" in again.err for name in (*LANGUAGE_MODELS, *LAB_TRANSLATORS))


def test_deleted_model_is_trained_again(finished: tuple[Path, Outcome], tmp_path: Path) -> None:
    (finished[0] / "rungs" / "kn-2").rename(tmp_path / "kn-2")
    again = run(finished[0], "--models", "kn-1, kn-2")
    assert "kn-2: training in" in again.err
    assert "kn-1: training in" not in again.err
    assert (finished[0] / "rungs" / "kn-2" / "config.yaml").is_file()


@pytest.mark.parametrize(
    ("options", "difference"), [(("--pairs", 160), "pairs: 150 -> 160"), (("--seed", 2), "seed: 1 -> 2")]
)
def test_other_settings_are_an_error(
    finished: tuple[Path, Outcome], options: tuple[str | int, ...], difference: str
) -> None:
    before = modification_times(finished[0])
    outcome = run(finished[0], *options)
    assert outcome.code == 2
    assert is_one_line(outcome.err)
    assert difference in outcome.err
    assert modification_times(finished[0]) == before


def test_unknown_model_is_an_error_with_a_similar_name(tmp_path: Path) -> None:
    outcome = run(tmp_path / "new", "--models", "kn-5,feed-foward")
    assert outcome.code == 2
    assert is_one_line(outcome.err)
    assert "did you mean feed-forward?" in outcome.err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("minutes", "problem"), [("0", "above 0"), ("nan", "finite")])
def test_invalid_time_limit_is_an_error_before_anything_is_trained(tmp_path: Path, minutes: str, problem: str) -> None:
    outcome = run(tmp_path / "new", "--minutes", minutes, "--models", "kn-1")
    assert outcome.code == 2
    assert is_one_line(outcome.err)
    assert "--minutes" in outcome.err and problem in outcome.err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("content", [b"pairs: [150", b"\xff\xfe", b"", b"when: 2001-99-99\n", b"[" * 5000])
def test_damaged_settings_are_an_error_of_one_line(tmp_path: Path, content: bytes) -> None:
    claim_directory(tmp_path / "new", "ladder", RESUME)
    settings = tmp_path / "new" / "settings.yaml"
    settings.write_bytes(content)
    outcome = run(tmp_path / "new", "--models", "kn-1")
    assert outcome.code == 2
    assert is_one_line(outcome.err)
    assert f"{settings}: damaged" in outcome.err
    assert settings.read_bytes() == content


@pytest.mark.parametrize("name", ["feed-forward", "attn-mlp"])
def test_stopped_training_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A signal while a network is trained saves its state; the next run resumes training there."""
    reports: list[object] = []

    def stop_once(report: object, throughput: object, unit: str, **_: object) -> str:
        if not reports:
            os.kill(os.getpid(), signal.SIGTERM)
        reports.append(report)
        return "a step"

    training = {"max_updates": 6, "check_every": 2}
    network = {"order": 3, "embedding": 4, "hidden": (4,)}
    small = partial(train_feed_forward, network=network, training=training)
    monkeypatch.setitem(LANGUAGE_MODELS, "feed-forward", Recipe(small, uses_gradients=True))
    for setting, value in training.items():
        monkeypatch.setitem(recipes.TRANSLATOR_TRAINING, setting, value)
    monkeypatch.setattr("dragoman.cli.progress.format_step", stop_once)
    options = ("--minutes", 9, "--models", f"kn-1,{name}")
    stopped = run(tmp_path / "new", *options)
    assert stopped.code == 143
    resumed = run(tmp_path / "new", *options)
    assert resumed.code == 0, resumed.err
    assert "kn-1: already trained" in resumed.err
    lines = (tmp_path / "new" / "rungs" / name / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["update"] for line in lines] == [2, 4, 6], "no step was taken twice"


def test_other_directories_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "train.txt").write_text("mine")
    claim_directory(tmp_path / "other", "demo", "does something else")
    for name in ("file", "mine", "other"):
        outcome = run(tmp_path / name)
        assert outcome.code == 2
        assert is_one_line(outcome.err)
        assert str(tmp_path / name) in outcome.err
    files = sorted(path.name for path in tmp_path.rglob("*") if path.suffix != ".lock")
    assert files == sorted([MARK_FILE, "file", "mine", "other", "train.txt"]), "nothing was written"


# -- recipes ---------------------------------------------------------------------------------------------------------


def test_models_are_selected_by_name_in_the_order_of_the_ladder() -> None:
    known = [*LANGUAGE_MODELS, *LAB_TRANSLATORS]
    assert select_models("", known) == known
    assert len(set(known)) == len(known), "they share a directory"
    first, second, *_ = known
    assert select_models(f" {second},{first},{second}", known) == [first, second]
    with pytest.raises(DataError, match="there are kn-1, "):
        select_models("zzz", known)


def test_parts_of_models_come_before_them() -> None:
    names = list(LANGUAGE_MODELS)
    for name, recipe in LANGUAGE_MODELS.items():
        assert all(names.index(part) < names.index(name) for part in recipe.parts)


def test_translators_differ_only_in_what_their_names_say() -> None:
    attentions = {"dot", "bilinear", "mlp"}
    for name, recipe in LAB_TRANSLATORS.items():
        kind, _, what = name.partition("-")
        encoder = "bidirectional" if what in attentions else what
        attention = "none" if kind == "encdec" else what if what in attentions else "mlp"
        assert isinstance(recipe.train, partial)
        assert recipe.train.keywords == {"encoder": encoder, "attention": attention}
        assert recipe.uses_gradients


def test_translators_are_trained_on_a_limited_number_of_pairs(
    finished: tuple[Path, Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("lab", MARK_FILE, "settings.yaml"):
        copy = shutil.copytree if (finished[0] / part).is_dir() else shutil.copy
        copy(finished[0] / part, tmp_path / part)
    monkeypatch.setattr(lab, "MAX_LAB_PAIRS", 70)
    assert run(tmp_path, "--models", "attn-dot").code == 0
    config = dragoman.load(tmp_path / "rungs" / "attn-dot").training_metadata
    assert config["data"]["train"]["target"]["sentences"] == 70


def test_seconds_of_a_mixture_include_its_members(
    training: dragoman.Corpus, held_out: dragoman.Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LANGUAGE_MODELS, "both", Recipe(train_mixture, ("kn-1", "kn-2")))
    monkeypatch.setattr(trainer, "perf_counter", Clock())
    context = TrainingContext(training, held_out, 1, tmp_path)
    models = ModelTrainer(context, LANGUAGE_MODELS, load_language_model)
    assert models.train("both").seconds == 3.0, "a second for itself, and one for each member"
    assert [models.train(name).seconds for name in ("kn-1", "kn-2")] == [1.0, 1.0]
    assert [path.name for path in written(tmp_path)] == ["both", "kn-1", "kn-2", "seconds.json"]


# -- accuracy on minimal pairs ---------------------------------------------------------------------------------------


def test_every_phenomenon_has_a_column() -> None:
    assert {column.phenomenon for column in ACCURACY_COLUMNS} == set(PHENOMENA["en"])


def test_near_and_far_pairs_are_separated_at_the_window_of_ngrams() -> None:
    accuracies = {
        ("selection", 1): MinimalPairAccuracy(8, 8.0, 2, 2),
        ("selection", 4): MinimalPairAccuracy(4, 1.0, 1, 0),
        ("selection", 16): MinimalPairAccuracy(4, 2.0, 1, 1),
        ("topic", 0): MinimalPairAccuracy(10, 5.0, 10, 5),
    }
    assert AccuracyColumn("", "selection", below=NGRAM_WINDOW).accuracy(accuracies)[0] == 1.0
    assert AccuracyColumn("", "selection", minimum=NGRAM_WINDOW).accuracy(accuracies)[0] == 3 / 8
    assert AccuracyColumn("", "selection", minimum=NGRAM_WINDOW, by_group=True).accuracy(accuracies)[0] == 1 / 2
    assert math.isnan(AccuracyColumn("", "reflexive").accuracy(accuracies)[0])


def test_accuracy_by_distance_needs_enough_pairs() -> None:
    def rung(name: str, near: float, far: float) -> LanguageModelRung:
        accuracies = {
            ("reflexive", 1): MinimalPairAccuracy(20, near, 20, 0),
            ("reflexive", 4): MinimalPairAccuracy(40, far, 40, 0),
            ("reflexive", 16): MinimalPairAccuracy(2, 2.0, 2, 0),  # too few
            ("topic", 0): MinimalPairAccuracy(20, 20.0, 20, 0),  # not shown by distance
        }
        return LanguageModelRung(name, cast(Any, None), accuracies, 0.0, 0.0)

    rungs = [rung("kn-5", 14.0, 20.0), rung("lstm", 18.0, 38.0)]
    (table,) = distance_tables(rungs)
    assert table.headers == ["% correct, reflexive", "1 to 3 between", "4 to 7 between"]
    assert table.rows == [["kn-5", "70.0", "50.0"], ["lstm", "90.0", "95.0"]]
    assert distance_proportions(rungs) == {
        "reflexive": {
            "kn-5": {"1 to 3": Proportion(0.7, 20), "4 to 7": Proportion(0.5, 40)},
            "lstm": {"1 to 3": Proportion(0.9, 20), "4 to 7": Proportion(0.95, 40)},
        }
    }
