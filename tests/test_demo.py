"""The demo: two language models and two translators compared with the floor, and a report of all results."""

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
from dragoman.cli import main as command_line
from dragoman.core import errors
from dragoman.evaluation.translation_metrics import score_translations
from dragoman.experiments import demo, recipes
from dragoman.experiments.results import read_learning_curve
from dragoman.report import document
from dragoman.report.document import render_document
from dragoman.report.page import Heatmap, PageFigure, PageSection, PageTable, Paragraphs, Preformatted, section_text

TEST = 60


def run(output: Path) -> Outcome:
    """Run `dragoman demo` on little text with small models."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(demo, "SIZES", {"train": 200, "dev": 20, "test": TEST})
        for name in ("embedding", "hidden", "attention_hidden", "readout"):
            patch.setitem(recipes.TRANSLATOR_NETWORK, name, 8)
        for name in ("embedding", "hidden"):
            patch.setitem(recipes.DEMO_NETWORK, name, 8)
        for training in (recipes.DEMO_TRAINING, recipes.TRANSLATOR_TRAINING):
            patch.setitem(training, "max_epochs", 2)
        code = command_line.main(["demo", "-o", str(output)])
    return Outcome(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Outcome]]:
    output = tmp_path_factory.mktemp("demo") / "new"
    outcome = run(output)
    assert outcome.code == 0, outcome.err
    yield output, outcome


def cells(outcome: Outcome, name: str) -> list[str]:
    """Return the row of a model in the table of all models."""
    row = next(line for line in outcome.lines if line.startswith(f"{name}  ") and "P(E" in line)
    return [cell.strip() for cell in row.removeprefix(name).split("  ") if cell]


def lines(output: Path, name: str) -> list[str]:
    return (output / "lab" / name).read_text().splitlines()


def test_table_has_the_perplexities_of_models_and_floor(finished: tuple[Path, Outcome]) -> None:
    output, outcome = finished
    german, english = lines(output, "test.de"), lines(output, "test.en")
    tokens = TEST + sum(len(line.split()) for line in english)
    log_probs = [[float(number) for number in line.split("\t")] for line in lines(output, "test.logprob")]
    floors = [math.exp(-sum(row[column] for row in log_probs) / tokens) for column in (0, 2)]
    for directory in ("kneser-ney", "lstm"):
        predicts, perplexity, floor, bleu, _ = cells(outcome, demo.NAMES[directory])
        expected = math.exp(-sum(dragoman.load(output / directory).score(english)) / tokens)
        assert float(perplexity.replace(",", "")) == pytest.approx(expected, abs=0.01)
        assert (predicts, floor.partition(" ")[0], bleu) == ("P(E)", f"{floors[0]:.2f}", "-")
    for directory in ("encoder-decoder", "attention"):
        predicts, perplexity, floor, bleu, _ = cells(outcome, demo.NAMES[directory])
        model = dragoman.load(output / directory)
        scores = score_translations([each.text for each in model.translate(german)], english, tokenised=True)
        expected = model.likelihood(german, english).perplexity
        assert float(perplexity.replace(",", "")) == pytest.approx(expected, abs=0.01)
        assert (predicts, floor.partition(" ")[0], bleu) == ("P(E | F)", f"{floors[1]:.2f}", f"{scores.bleu:.1f}")


def test_example_sentence_is_shown_with_translations_and_attention(finished: tuple[Path, Outcome]) -> None:
    output, outcome = finished
    section = outcome.out.partition("One sentence, translated\n")[2].splitlines()
    german = next(line for line in section if line.startswith("German")).removeprefix("German").strip()
    assert german in lines(output, "test.de")
    for directory in ("encoder-decoder", "attention"):
        translation = dragoman.load(output / directory).translate([german])[0]
        assert any(line.split() == [*demo.NAMES[directory].split(), *translation.text.split()] for line in section)
    assert any(line.split() == [*german.split(), "</s>"] for line in section), "the words above the columns"


def test_sample_of_the_text_is_shown_first_and_only_once(finished: tuple[Path, Outcome]) -> None:
    output, outcome = finished
    first = lines(output, "train.raw.de")[0]
    assert outcome.out.count(first) == 1
    assert outcome.out.index(first) < outcome.out.index("Models and the floor")


def test_report_contains_figures_heat_map_and_examples(finished: tuple[Path, Outcome]) -> None:
    output, outcome = finished
    page = (output / "report.html").read_text()
    assert str(output / "report.html") in outcome.err
    assert page.count("<svg") == 2 and page.count('<table class="heat">') == 1
    for text in ("dragoman translate", demo.NAMES["kneser-ney"], "Learning curves", "Example translations"):
        assert text in page
    assert "http" not in page.replace("http-equiv", ""), "nothing is fetched"


def test_suggested_commands_name_existing_files(finished: tuple[Path, Outcome]) -> None:
    output, outcome = finished
    commands = [line.removeprefix("next: ") for line in outcome.err.splitlines() if line.startswith("next: ")]
    echo, pipe, first = commands[0].partition(" | ")
    assert pipe and shlex.split(echo)[0] == "echo" and shlex.split(echo)[1] in lines(output, "test.de")
    page = html.unescape((output / "report.html").read_text())
    assert f"{echo} | dragoman translate {output / 'attention'}" in page
    words = [shlex.split(line)[1:] for line in (first, *commands[1:])]
    assert [command[0] for command in words] == ["translate", "attention", "evaluate", "contrast", "serve"]
    for command in words:
        paths = [word.removeprefix("de-en=") for word in command]
        existing = [Path(path) for path in paths if path.startswith(str(output))]
        assert existing and all(path.exists() for path in existing)


def test_demo_refuses_other_directories_and_trains_again_in_its_own(
    finished: tuple[Path, Outcome], tmp_path: Path
) -> None:
    (tmp_path / "train.txt").write_text("mine\n")
    refused = run(tmp_path)
    assert refused.code == 2 and str(tmp_path) in refused.err and is_one_line(refused.err)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine\n"]
    again = run(finished[0])
    assert again.code == 0, again.err
    assert again.err.count(" parameters, ") == finished[1].err.count(" parameters, ") == 3
    assert not (finished[0] / "seconds.json").exists()


def test_report_without_matplotlib_has_no_figures_and_says_so(
    finished: tuple[Path, Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "find_spec", lambda package: None)
    outcome = run(finished[0])
    assert outcome.code == 0, outcome.err
    page = (finished[0] / "report.html").read_text()
    assert "<svg" not in page and "Learning curves" not in page and "Example translations" in page
    assert "pip install 'dragoman[plot]'" in outcome.err and "dragoman[plot]" in page


# -- parts of the report -----------------------------------------------------------------------------------------------


def test_section_text_leaves_out_figures() -> None:
    heatmap = Heatmap(["a", "</s>"], ["b", "</s>"], [[0.25, 0.75], [1.0, 0.0]], "attention")
    parts = [Paragraphs("One.\n\nTwo."), Preformatted(" x\n  y"), PageFigure("<svg></svg>"), PageTable(["n"], [[7]])]
    text = section_text(PageSection("All of it", [*parts, heatmap]))
    assert text.startswith("All of it\n=========\n\nOne.\n\nTwo.\n\n x\n  y\n\nn\n-\n7\n\nattention\n")
    assert "▒▒ 25% ██ 75%" in text and "svg" not in text


def test_documents_omit_missing_parts_and_keep_values_on_one_line() -> None:
    parts = {"pairs": None}
    assert [section.heading for section in render_document("demo.txt.j2", parts, trained=False)] == ["The text"]
    with pytest.raises(KeyError):
        render_document("demo.txt.j2", {}, trained=False)
    (section,) = render_document("demo.txt.j2", {"pairs": Preformatted("x")}, trained=False)
    assert section.in_summary and section.parts[-1] == Preformatted("x")


def test_comparisons_in_words() -> None:
    words = document.templates().get_template("wording.txt.j2").module
    changes = [words.change(*pair) for pair in ((80, 100), (100.2, 100), (110, 100), (math.inf, 100))]
    assert changes == ["20% lower", "about the same", "10% higher", "about the same"]
    points = [words.points(*pair) for pair in ((30, 20), (20, 20.1), (18, 20))]
    assert points == ["10.0 points higher", "about the same", "2.0 points lower"]
    assert [words.than(each, "before") for each in changes[:2]] == ["20% lower than before", "about the same as before"]
    assert [words.listed(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
    units = [words.units(spec) for spec in ("subword:4000", "word", "char")]
    assert units == ["subwords (a vocabulary of 4000)", "words", "characters"]


def test_learning_curves_contain_only_evaluations_on_dev_text(tmp_path: Path) -> None:
    records = [
        {"seconds": 30.0, "train_loss": 5.0},
        {"seconds": 60.0, "dev_loss": 1.0},
        {"seconds": 90.0, "dev_loss": 700},
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    assert read_learning_curve(tmp_path / "metrics.jsonl") == [(1.0, math.e)]
