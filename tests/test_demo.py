"""The demo: two language models and two translators beside the truth, and a report of it all."""

from __future__ import annotations

import html
import io
import json
import math
import shlex
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

import dragoman
from command import Outcome, is_one_line
from dragoman.cli import demo
from dragoman.cli import main as command_line
from dragoman.evaluation.translation_metrics import score_translations
from dragoman.experiments import translators as translator_rungs
from dragoman.report.demo import read_learning_curve, section_text
from dragoman.report.page import Heatmap, PageFigure, PageSection, PageTable, Paragraphs, Preformatted

TEST = 60


def run(output: Path) -> Outcome:
    """Run `dragoman demo` on a tiny laboratory."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(demo, "SIZES", {"train": 200, "dev": 20, "test": TEST})
        for name, size in {"embedding": 8, "hidden": 8, "attention_hidden": 8, "readout": 8}.items():
            patch.setitem(translator_rungs.NETWORK, name, size)
        for name in ("embedding", "hidden"):
            patch.setitem(demo.NETWORK, name, 8)
        for training in (demo.TRAINING, demo.TRANSLATOR_TRAINING):
            patch.setitem(training, "max_epochs", 2)
        code = command_line.main(["demo", "-o", str(output)])
    return Outcome(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Outcome]]:
    output = tmp_path_factory.mktemp("demo") / "new"
    outcome = run(output)
    assert outcome.code == 0, outcome.err
    yield output, outcome


def cells(outcome: Outcome, name: str) -> list[str]:
    """The row of a model in the table of all."""
    row = next(line for line in outcome.lines if line.startswith(f"{name}  ") and "P(E" in line)
    return [cell for cell in row.removeprefix(name).split("  ") if cell]


def lines(output: Path, name: str) -> list[str]:
    return (output / "lab" / name).read_text().splitlines()


def test_the_table_is_that_of_the_models_and_of_the_truth(whole: tuple[Path, Outcome]) -> None:
    output, outcome = whole
    german, english = lines(output, "test.de"), lines(output, "test.en")
    tokens = TEST + sum(len(line.split()) for line in english)
    truth = [[float(number) for number in line.split("\t")] for line in lines(output, "test.logprob")]
    floors = {what: math.exp(-sum(row[column] for row in truth) / tokens) for what, column in (("P(E)", 0), ("F", 2))}
    for name in (demo.KNESER_NEY, demo.LSTM):
        predicts, perplexity, floor, bleu, _ = map(str.strip, cells(outcome, name))
        loaded = dragoman.load(output / demo.PLACES[name])
        assert float(perplexity.replace(",", "")) == pytest.approx(
            math.exp(-sum(loaded.score(english)) / tokens), abs=0.01
        )
        assert (predicts, floor.partition(" ")[0], bleu) == ("P(E)", f"{floors['P(E)']:.2f}", "-")
    for name in (demo.PLAIN, demo.ATTENTION):
        predicts, perplexity, floor, bleu, _ = map(str.strip, cells(outcome, name))
        model = dragoman.load(output / demo.PLACES[name])
        own = model.likelihood(german, english).perplexity
        judged = score_translations([told.text for told in model.translate(german)], english, tokenised=True)
        assert float(perplexity.replace(",", "")) == pytest.approx(own, abs=0.01)
        assert (predicts, floor.partition(" ")[0], bleu) == ("P(E | F)", f"{floors['F']:.2f}", f"{judged.bleu:.1f}")


def test_one_sentence_is_translated_by_both_with_its_attention_drawn(whole: tuple[Path, Outcome]) -> None:
    output, outcome = whole
    shown = outcome.out.partition("One sentence, translated\n")[2].splitlines()
    german = next(line for line in shown if line.startswith("German")).removeprefix("German").strip()
    assert german in lines(output, "test.de")
    for name in (demo.PLAIN, demo.ATTENTION):
        told = dragoman.load(output / demo.PLACES[name]).translate([german])[0]
        assert any(line.split() == [*name.split(), *told.words] for line in shown)
    assert any(line.split() == [*german.split(), "</s>"] for line in shown), "the words above the columns"


def test_the_report_has_pictures_heat_map_and_examples(whole: tuple[Path, Outcome]) -> None:
    output, outcome = whole
    page = (output / "report.html").read_text()
    assert str(output / "report.html") in outcome.err
    assert page.count("<svg") == 2 and page.count('<table class="heat">') == 1
    for line in ("dragoman translate", demo.KNESER_NEY, "Learning curves", "Example translations", "reference"):
        assert line in page
    assert "http" not in page.replace("http-equiv", ""), "nothing is fetched"


def test_the_next_commands_name_what_is_there(whole: tuple[Path, Outcome]) -> None:
    output, outcome = whole
    said = [line.removeprefix("next: ") for line in outcome.err.splitlines() if line.startswith("next: ")]
    echo, pipe, first = said[0].partition(" | ")
    assert pipe and shlex.split(echo)[0] == "echo" and shlex.split(echo)[1] in lines(output, "test.de")
    assert html.escape(f"{echo} | dragoman translate {output / 'attention'}") in (output / "report.html").read_text()
    suggested = [shlex.split(line)[1:] for line in (first, *said[1:])]
    assert [command[0] for command in suggested] == ["translate", "attention", "evaluate", "contrast", "serve"]
    for command in suggested:
        named = [
            Path(word) for word in (word.removeprefix("de-en=") for word in command) if word.startswith(str(output))
        ]
        assert named and all(path.exists() for path in named)


def test_a_demo_takes_only_its_own_directory(whole: tuple[Path, Outcome], tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("mine\n")
    refused = run(tmp_path)
    assert refused.code == 2 and str(tmp_path) in refused.err and is_one_line(refused.err)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine\n"]
    again = run(whole[0])
    assert again.code == 0, again.err
    assert again.err.count(" parameters, ") == whole[1].err.count(" parameters, ") == 3, "all are trained anew"


# -- parts of the story ------------------------------------------------------------------------------------------------


def test_a_section_for_a_terminal_leaves_pictures_to_the_page() -> None:
    looked = Heatmap(["a", "</s>"], ["b", "</s>"], [[0.25, 0.75], [1.0, 0.0]], "where it looks")
    parts = [
        Paragraphs("One.\n\nTwo."),
        Preformatted(" x\n  y"),
        PageFigure("<svg></svg>"),
        PageTable(["n"], [[7]]),
        looked,
    ]
    told = section_text(PageSection("All of it", parts))
    assert told.startswith("All of it\n=========\n\nOne.\n\nTwo.\n\n x\n  y\n\nn\n-\n7\n\nwhere it looks\n")
    assert "▒▒ 25% ██ 75%" in told and "svg" not in told


def test_a_curve_has_the_looks_at_the_dev_text_alone(tmp_path: Path) -> None:
    noted = [
        {"seconds": 30.0, "train_loss": 5.0},
        {"seconds": 60.0, "dev_loss": 1.0},
        {"seconds": 90.0, "dev_loss": 700},
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in noted))
    assert read_learning_curve(tmp_path / "metrics.jsonl") == [(1.0, math.e)], "and none that no picture holds"
