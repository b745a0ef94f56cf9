"""The ladder: a row for each rung and the floor, nothing made twice, and a stopped training that goes on."""

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
from command import Outcome, is_one_line
from dragoman import DataError
from dragoman.cli import main as command_line
from dragoman.evaluation.minimal_pairs import MinimalPairAccuracy
from dragoman.experiments import lab_ladder as laboratory
from dragoman.experiments import trainer as workshop
from dragoman.experiments import translators as translator_rungs
from dragoman.experiments.language_models import LANGUAGE_MODELS, feed_forward, train_mixture
from dragoman.experiments.trainer import ModelTrainer, Recipe, TrainingContext, megabytes, select_models
from dragoman.experiments.translators import TRANSLATORS
from dragoman.experiments.work_directory import MARK_FILE, claim_directory
from dragoman.lab.minimal_pairs import PHENOMENA
from dragoman.models.loading import load_language_model
from dragoman.report.charts import FLOOR_LABEL as FLOOR
from dragoman.report.charts import Proportion, draw_ladder
from dragoman.report.ladder import (
    ACCURACY_COLUMNS,
    WINDOW,
    AccuracyColumn,
    LanguageModelRung,
    distance_shares,
    distances_text,
)
from test_figures import texts_of
from trainings import Clock

PAIRS = 150
SHORT = 0.0005  # minutes: a step or two of each network
SMALL = {"embedding": 8, "hidden": 8, "attention_hidden": 8, "filters": 8, "readout": 8}  # of translators


def climb(output: Path, *options: str | Path | float) -> Outcome:
    """Run `dragoman ladder` on a tiny laboratory."""
    out, err = io.StringIO(), io.StringIO()
    arguments = ["ladder", "-o", output, "--pairs", PAIRS, "--minutes", SHORT, *options]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name, small in {"DEV": 20, "TEST": 20, "CONTRASTS": 4}.items():
            patch.setattr(laboratory, name, small)
        for name, size in SMALL.items():
            patch.setitem(translator_rungs.NETWORK, name, size)
        code = command_line.main(list(map(str, arguments)))
    return Outcome(code, out.getvalue(), err.getvalue())


def stamps(output: Path) -> dict[Path, int]:
    """When each file of the texts and rungs was written."""
    files = [file for part in ("lab", "rungs") for file in (output / part).rglob("*") if file.is_file()]
    return {file: file.stat().st_mtime_ns for file in files}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Outcome]]:
    """A ladder of all rungs."""
    output = tmp_path_factory.mktemp("ladder") / "new"
    outcome = climb(output)
    assert outcome.code == 0, outcome.err
    yield output, outcome


# -- the command -----------------------------------------------------------------------------------------------------


def test_every_rung_and_the_floor_have_a_row(whole: tuple[Path, Outcome]) -> None:
    output, outcome = whole
    starts = [line.partition("  ")[0] for line in outcome.lines]
    for name in LANGUAGE_MODELS:
        assert starts.count(name) == 2, "in either half of the table"
    assert starts.count(FLOOR) == 2, "of P(E), and of P(E | F)"
    for name in TRANSLATORS:
        assert starts.count(name) == 2, "in the table of scores, and by length"
    in_markdown = [
        line.split("|")[1].strip() for line in (output / "ladder.md").read_text().splitlines() if "|" in line
    ]
    assert in_markdown[2 : 3 + len(LANGUAGE_MODELS)] == [*LANGUAGE_MODELS, FLOOR]
    assert in_markdown[6 + len(LANGUAGE_MODELS) :][: len(TRANSLATORS) + 1] == [*TRANSLATORS, FLOOR]


def test_the_plain_values_are_those_of_the_models(whole: tuple[Path, Outcome]) -> None:
    output, _ = whole
    found = json.loads((output / "ladder.json").read_text())
    assert found["pairs"] == PAIRS
    assert [model["model"] for model in found["models"]] == list(LANGUAGE_MODELS)
    test = output / "lab" / "test.en"
    for model in found["models"]:
        loaded = dragoman.load(output / "rungs" / model["model"])
        total = sum(loaded.score(test.read_text().splitlines()))
        assert model["log_likelihood"] + model["log_likelihood_unknown"] == pytest.approx(total)
        assert model["above_floor"]["nats"] > 0
        assert model["megabytes"] == round(megabytes(output / "rungs" / model["model"]), 3)
        assert {kind["phenomenon"] for kind in model["contrasts"]} <= set(PHENOMENA["en"])


def test_the_values_of_translators_are_those_of_the_models_and_of_the_truth(whole: tuple[Path, Outcome]) -> None:
    output, _ = whole
    found = json.loads((output / "ladder.json").read_text())["translators"]
    assert [one["model"] for one in found] == list(TRANSLATORS)
    lab = output / "lab"
    english = (lab / "test.en").read_text().splitlines()
    truth = [float(line.split("\t")[2]) for line in (lab / "test.logprob").read_text().splitlines()]
    floor = math.exp(-sum(truth) / (len(english) + sum(len(line.split()) for line in english)))
    for one in found:
        model = dragoman.load(output / "rungs" / one["model"])
        ending = "de.trees" if model.source.format == "tree" else "de"
        german = (lab / f"test.{ending}").read_text().splitlines()
        assert one["perplexity"] == pytest.approx(model.likelihood(german, english).perplexity)
        assert one["perplexity_floor"] == pytest.approx(floor)
        assert one["perplexity"] > floor
        assert ("alignment" in one) == one["model"].startswith("attn")
        assert sum(own["sentences"] for own in one["by_length"]) == len(english)
        assert one["parameters"] == sum(tensor.numel() for tensor in model.parameters().values())


def test_the_pictures_name_the_translators(whole: tuple[Path, Outcome]) -> None:
    output, _ = whole
    assert set(TRANSLATORS) <= texts_of(output / "translators.svg")
    in_lengths = texts_of(output / "lengths.svg")
    assert set(laboratory.BY_LENGTH) <= in_lengths
    assert not (set(TRANSLATORS) - set(laboratory.BY_LENGTH)) & in_lengths, "there are too many for all"


def test_the_report_has_all_rungs_their_pictures_and_a_heat_map_for_each_attention(whole: tuple[Path, Outcome]) -> None:
    output, outcome = whole
    page = (output / "report.html").read_text()
    assert all(f"<td>{name}</td>" in page for name in (*LANGUAGE_MODELS, *TRANSLATORS))
    attending = [name for name in TRANSLATORS if name.startswith("attn")]
    assert page.count('<table class="heat">') == len(attending)
    assert all(f"{name}: each row sums to 1" in page for name in attending)
    drawn = outcome.err.partition("report.html, ")[2].splitlines()[0].split(", ")
    assert page.count("<svg") == len(drawn) >= 3
    assert "http" not in page.replace("http-equiv", ""), "nothing is fetched"


def test_translators_alone_make_a_ladder_too(whole: tuple[Path, Outcome], tmp_path: Path) -> None:
    shutil.copytree(whole[0], tmp_path / "copy")
    alone = climb(tmp_path / "copy", "--models", "attn-recursive,encdec-reverse")
    assert alone.code == 0, alone.err
    found = json.loads((tmp_path / "copy" / "ladder.json").read_text())
    assert [one["model"] for one in found["translators"]] == ["encdec-reverse", "attn-recursive"]
    assert "models" not in found
    assert "kn-5" not in alone.out and "kn-5" not in (tmp_path / "copy" / "ladder.md").read_text()


def test_the_picture_names_every_rung_and_question(whole: tuple[Path, Outcome]) -> None:
    written = texts_of(whole[0] / "ladder.svg")
    assert {*LANGUAGE_MODELS, *(question.name for question in ACCURACY_COLUMNS)} <= written


def test_the_next_commands_are_about_the_best_rung(whole: tuple[Path, Outcome]) -> None:
    output, outcome = whole
    models = json.loads((output / "ladder.json").read_text())["models"]
    best = min(models, key=lambda model: model["perplexity"])["model"]
    suggested = [line for line in outcome.err.splitlines() if line.startswith("next: ")]
    assert len(suggested) == 4
    assert all(str(output / "rungs" / best) in line for line in suggested[:3])
    assert f"evaluate {output / 'rungs'}" in suggested[3] and "--src" in suggested[3]


def test_what_is_finished_is_loaded_and_not_made_again(whole: tuple[Path, Outcome]) -> None:
    output, outcome = whole
    before = stamps(output)
    again = climb(output)
    assert again.code == 0
    assert again.out == outcome.out, "the seconds, too, are those of the first run"
    assert stamps(output) == before
    assert all(f"{name}: finished already" in again.err for name in (*LANGUAGE_MODELS, *TRANSLATORS))
    assert "making" not in again.err


def test_a_rung_that_was_taken_away_is_made_again(whole: tuple[Path, Outcome], tmp_path: Path) -> None:
    (whole[0] / "rungs" / "kn-2").rename(tmp_path / "kn-2")
    again = climb(whole[0], "--models", "kn-1, kn-2")
    assert "kn-2: making it" in again.err
    assert "kn-1: making it" not in again.err
    assert (whole[0] / "rungs" / "kn-2" / "config.yaml").is_file()


@pytest.mark.parametrize(
    ("options", "difference"), [(("--pairs", 160), "pairs: 150 -> 160"), (("--seed", 2), "seed: 1 -> 2")]
)
def test_another_ladder_is_refused(
    whole: tuple[Path, Outcome], options: tuple[str | int, ...], difference: str
) -> None:
    before = stamps(whole[0])
    refused = climb(whole[0], *options)
    assert refused.code == 2
    assert is_one_line(refused.err)
    assert difference in refused.err
    assert stamps(whole[0]) == before


def test_an_unknown_rung_is_refused_with_the_near_name(tmp_path: Path) -> None:
    refused = climb(tmp_path / "new", "--models", "kn-5,feed-foward")
    assert refused.code == 2
    assert is_one_line(refused.err)
    assert "did you mean feed-forward?" in refused.err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("minutes", "problem"), [("0", "above 0"), ("-1", "above 0"), ("nan", "finite"), ("inf", "finite")]
)
def test_no_time_is_refused_before_anything_is_made(tmp_path: Path, minutes: str, problem: str) -> None:
    refused = climb(tmp_path / "new", "--minutes", minutes, "--models", "kn-1")
    assert refused.code == 2
    assert is_one_line(refused.err)
    assert "--minutes" in refused.err and problem in refused.err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("content", [b"pairs: [150", b"\xff\xfe", b"", b"- 150\n", b"when: 2001-99-99\n", b"[" * 5000])
def test_damaged_settings_are_told_in_a_line(tmp_path: Path, content: bytes) -> None:
    claim_directory(tmp_path / "new", "ladder", "goes on with them when it runs again")
    settings = tmp_path / "new" / "settings.yaml"
    settings.write_bytes(content)
    refused = climb(tmp_path / "new", "--models", "kn-1")
    assert refused.code == 2
    assert is_one_line(refused.err)
    assert f"{settings}: damaged" in refused.err
    assert settings.read_bytes() == content


@pytest.mark.parametrize("name", ["feed-forward", "attn-mlp"])
def test_a_stopped_training_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Asked to end while a network trains, the ladder saves; the next run takes the network up where it was."""
    asked = []

    def stop_once(moment: object, pace: object, unit: str, **_: object) -> str:
        if not asked:
            os.kill(os.getpid(), signal.SIGTERM)
        asked.append(moment)
        return "told"

    training = {"max_updates": 6, "check_every": 2}
    small = partial(feed_forward, order=3, embedding=4, hidden=(4,), training=training)
    monkeypatch.setitem(LANGUAGE_MODELS, "feed-forward", Recipe(small, by_gradients=True))
    for setting, value in training.items():
        monkeypatch.setitem(translator_rungs.TRAINING, setting, value)
    monkeypatch.setattr("dragoman.cli.progress.told", stop_once)
    options = ("--minutes", 9, "--models", f"kn-1,{name}")
    stopped = climb(tmp_path / "new", *options)
    assert stopped.code == 143
    assert "run the same command again to go on" in stopped.err
    resumed = climb(tmp_path / "new", *options)
    assert resumed.code == 0, resumed.err
    assert "kn-1: finished already" in resumed.err
    assert "going on after update" in resumed.err
    lines = (tmp_path / "new" / "rungs" / name / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["update"] for line in lines] == [2, 4, 6], "no step was taken twice"


# -- the directory ---------------------------------------------------------------------------------------------------


def test_only_its_own_directory_is_taken(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "train.txt").write_text("mine")
    claim_directory(tmp_path / "other", "demo", "does as it does")
    for name in ("file", "mine", "other"):
        refused = climb(tmp_path / name)
        assert refused.code == 2
        assert is_one_line(refused.err)
        assert str(tmp_path / name) in refused.err
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted(
        [MARK_FILE, "file", "mine", "other", "train.txt"]
    ), "nothing was written"


# -- rungs -----------------------------------------------------------------------------------------------------------


def test_every_rung_can_be_asked_for() -> None:
    known = [*LANGUAGE_MODELS, *TRANSLATORS]
    assert select_models("", known) == known
    for name in known:
        assert select_models(name, known) == [name]
        assert Path(name).name == name, "the name of a directory"
    assert len(set(known)) == len(known), "they share a directory"
    first, second, *_ = known
    assert select_models(f" {second},{first},{second}", known) == [first, second], "in the ladder's order, once each"


def test_rungs_are_made_of_those_below() -> None:
    names = list(LANGUAGE_MODELS)
    for name, recipe in LANGUAGE_MODELS.items():
        assert all(names.index(part) < names.index(name) for part in recipe.parts)


def test_translators_are_what_their_names_say() -> None:
    """Those called by an attention differ in it alone, and all others in the encoder."""
    attentions = {"dot", "bilinear", "mlp"}
    for name, recipe in TRANSLATORS.items():
        kind, _, what = name.partition("-")
        encoder = "bidirectional" if what in attentions else what
        attention = "none" if kind == "encdec" else what if what in attentions else "mlp"
        assert isinstance(recipe.make, partial)
        assert recipe.make.keywords == {"encoder": encoder, "attention": attention}
        assert recipe.by_gradients


def test_translators_learn_from_so_many_pairs_at_most(
    whole: tuple[Path, Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("lab", MARK_FILE, "settings.yaml"):
        copy = shutil.copytree if (whole[0] / part).is_dir() else shutil.copy
        copy(whole[0] / part, tmp_path / part)
    monkeypatch.setattr(laboratory, "PAIRS", 70)
    assert climb(tmp_path, "--models", "attn-dot").code == 0
    config = dragoman.load(tmp_path / "rungs" / "attn-dot").record
    assert config["data"]["train"]["target"]["sentences"] == 70


def test_an_unknown_rung_far_from_all_is_answered_with_the_list() -> None:
    with pytest.raises(DataError, match="there are kn-1, "):
        select_models("zzz", LANGUAGE_MODELS)


def test_a_mixture_costs_the_time_of_its_members(
    training: dragoman.Corpus, held_out: dragoman.Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LANGUAGE_MODELS, "both", Recipe(train_mixture, ("kn-1", "kn-2")))
    monkeypatch.setattr(workshop, "perf_counter", Clock())
    shop = ModelTrainer(
        tmp_path, TrainingContext(training, held_out, 1, None, tmp_path), LANGUAGE_MODELS, load_language_model
    )
    assert shop.train("both").seconds == 3.0, "a second of its own, and one of each member"
    assert [shop.train(name).seconds for name in ("kn-1", "kn-2")] == [1.0, 1.0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["both", "kn-1", "kn-2", "seconds.json"]


# -- questions and the picture ---------------------------------------------------------------------------------------


def test_every_phenomenon_is_asked_about() -> None:
    assert {question.phenomenon for question in ACCURACY_COLUMNS} == set(PHENOMENA["en"])


def test_near_and_far_part_where_the_window_ends() -> None:
    found = {
        ("selection", 1): MinimalPairAccuracy(8, 8.0, 2, 2),
        ("selection", 4): MinimalPairAccuracy(4, 1.0, 1, 0),
        ("selection", 16): MinimalPairAccuracy(4, 2.0, 1, 1),
        ("topic", 0): MinimalPairAccuracy(10, 5.0, 10, 5),
    }
    assert AccuracyColumn("", "selection", below=WINDOW).share(found) == 1.0
    assert AccuracyColumn("", "selection", least=WINDOW).share(found) == 3 / 8
    assert AccuracyColumn("", "selection", least=WINDOW, all_four=True).share(found) == 1 / 2
    assert math.isnan(AccuracyColumn("", "reflexive").share(found))


def test_the_picture_leaves_out_what_is_infinite_or_undefined(tmp_path: Path) -> None:
    shares = {"one": {"topic": 0.25, "article": math.nan}, "two": {"topic": 0.75, "article": 1.0}}
    draw_ladder({"one": math.inf, "two": 20.0}, 10.0, shares, tmp_path / "picture.svg", title="a <title>")
    written = texts_of(tmp_path / "picture.svg")
    assert {"one", "two", "topic", "article", "25", "75", "100", "20.0", "the floor: 10.0", "a <title>"} <= written
    assert not {"inf", "nan", "infinite"} & written


@pytest.mark.parametrize(("perplexity", "file"), [(math.inf, "picture.svg"), (20.0, "picture.pdf")])
def test_no_picture_of_nothing_or_of_another_format(tmp_path: Path, perplexity: float, file: str) -> None:
    with pytest.raises(DataError, match=file):
        draw_ladder({"one": perplexity}, 10.0, {"one": {"topic": 0.5}}, tmp_path / file)
    assert list(tmp_path.iterdir()) == []


# -- by distance -----------------------------------------------------------------------------------------------------


def test_distances_are_told_apart_where_there_are_contrasts_enough() -> None:
    def rung(name: str, near: float, far: float) -> LanguageModelRung:
        accuracies = {
            ("reflexive", 1): MinimalPairAccuracy(20, near, 20, 0),
            ("reflexive", 4): MinimalPairAccuracy(40, far, 40, 0),
            ("reflexive", 16): MinimalPairAccuracy(2, 2.0, 2, 0),  # too few
            ("topic", 0): MinimalPairAccuracy(20, 20.0, 20, 0),  # not one of those
        }
        return LanguageModelRung(name, cast(Any, None), accuracies, 0.0, 0.0)

    rungs = [rung("kn-5", 14.0, 20.0), rung("lstm", 18.0, 38.0)]
    header, _, *rows = distances_text(rungs).splitlines()
    assert header.split("  ")[0] == "% right, reflexive" and "1 to 3 between" in header and "16" not in header
    assert [row.split() for row in rows] == [["kn-5", "70.0", "50.0"], ["lstm", "90.0", "95.0"]]
    assert distance_shares(rungs) == {
        "reflexive": {
            "kn-5": {"1 to 3": Proportion(0.7, 20), "4 to 7": Proportion(0.5, 40)},
            "lstm": {"1 to 3": Proportion(0.9, 20), "4 to 7": Proportion(0.95, 40)},
        }
    }
