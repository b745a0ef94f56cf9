"""dragoman train log-linear: word classes and user-defined features."""

from __future__ import annotations

from pathlib import Path

import pytest

import dragoman
from command import is_one_line, run  # noqa: F401

LINES = "the cat saw a dog\na dog met the cat\nthe bird saw a cat\n"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "train.txt"
    path.write_text(LINES)
    return path


@pytest.fixture
def train(run, text, tmp_path):  # type: ignore[no-untyped-def]  # noqa: F811
    """Train for one update with these options."""

    def call(*options, output="model"):  # type: ignore[no-untyped-def]
        settings = ("--max-updates", "1", "--threads", "1", *options)
        return run("train", "log-linear", "--text", text, "-o", tmp_path / output, *settings)

    return call


def feature_file(tmp_path: Path, body: str) -> Path:
    path = tmp_path / "features.py"
    path.write_text(f"from dragoman.models.loglinear.features import atom, feature\n{body}\n")
    return path


def test_small_text_has_fewer_classes(train, tmp_path) -> None:  # type: ignore[no-untyped-def]
    trained = train("--features", "word1,class1")
    assert trained.code == 0, trained.err
    names = dragoman.load(tmp_path / "model").extractor.tables["class"].names
    words = set(LINES.split())
    assert len(set(names) - {"", "<s>", "</s>", "<unk>"}) == len(words) // 2


def test_text_with_one_word_has_one_class(train, text, tmp_path) -> None:  # type: ignore[no-untyped-def]
    text.write_text("so\nso so\n")
    trained = train("--features", "class1")
    assert trained.code == 0, trained.err
    assert "so" in dragoman.load(tmp_path / "model").extractor.tables["class"].names


def test_more_classes_than_words_are_an_error(train) -> None:  # type: ignore[no-untyped-def]
    refused = train("--features", "class1", "--classes", "brown:100")
    assert refused.code == 2
    assert is_one_line(refused.err)
    assert "only 7 different words" in refused.err


def test_classes_without_a_feature_of_classes_are_an_error(train, tmp_path) -> None:  # type: ignore[no-untyped-def]
    refused = train("--features", "3-gram,bag", "--classes", "brown:3")
    assert refused.code == 2
    assert is_one_line(refused.err)
    assert "--classes brown:3: no feature uses classes; add such a feature" in refused.err
    assert not (tmp_path / "model").exists()


def test_custom_atom_named_subclass_needs_no_classes(train, tmp_path) -> None:  # type: ignore[no-untyped-def]
    file = feature_file(tmp_path, "@atom('subclass')\ndef subclass(word): return word[0]")
    given = ("--features", "subclass1", "--features-from", file)
    assert "no feature uses classes" in train(*given, "--classes", "brown:3").err
    assert train(*given).code == 0
    assert set(dragoman.load(tmp_path / "model").extractor.tables) == {"word", "subclass"}


def test_feature_file_of_the_environment_variable(train, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    file = feature_file(tmp_path, "@atom('ending')\ndef ending(word): return word[-1]")
    monkeypatch.setenv("DRAGOMAN_FEATURES", str(file))
    trained = train("--features", "ending1")
    assert trained.code == 0, trained.err


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("import sys; sys.exit()", "SystemExit"),
        ("@feature('odd')\ndef odd(words): return 'text'", "feature 'odd', called with []: returned 'text'"),
        ("@feature('odd')\ndef odd(words): return words[-1:][0]", "feature 'odd', called with []: failed (IndexError"),
        ("@atom('odd')\ndef odd(word): return 1 / 0", "failed (ZeroDivisionError"),
    ],
)
def test_errors_of_feature_files_are_one_line(train, tmp_path, body, problem) -> None:  # type: ignore[no-untyped-def]
    name = "odd1" if "atom" in body else "odd"
    refused = train("--features", f"word1,{name}", "--features-from", feature_file(tmp_path, body))
    assert refused.code == 2
    assert is_one_line(refused.err)
    assert problem in refused.err
