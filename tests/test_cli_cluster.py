"""`dragoman cluster`, and class n-grams over what it finds."""

import sys

import pytest

import dragoman
from command import is_one_line, written
from dragoman.data.brown import brown_clusters
from dragoman.ngram.class_model import read_classes
from dragoman.report.language_models import CLASSES_SHOWN


def test_classes_are_written_and_printed(good, shared, tmp_path):
    train, classes = shared / "train.txt", tmp_path / "classes.tsv"
    outcome = good("cluster", "--text", train, "-n", 4, "-o", classes)
    clustering = brown_clusters(dragoman.Corpus.read(train), 4)
    assert classes.read_text() == clustering.to_text()
    assert read_classes(classes) == clustering.as_mapping()
    rows = [line.split() for line in outcome.lines[2:]]
    assert [(row[0], int(row[1]), tuple(row[2:])) for row in rows] == [
        (path, len(words), words) for path, words in zip(clustering.paths[3:], clustering.members[3:], strict=True)
    ]
    assert "11 words in 4 classes" in outcome.err
    assert f"{clustering.mutual_information:.4f} nats" in outcome.err
    assert f"next: dragoman train class-ngram --text {train} --classes {classes} -o DIR" in outcome.err
    small = ("--text", train, "--order", 2, "--smoothing", "witten-bell")
    good("train", "class-ngram", *small, "--classes", classes, "-o", tmp_path / "file")
    good("train", "class-ngram", *small, "--classes", "brown:4", "-o", tmp_path / "found")
    from_file, actual = (dragoman.load(tmp_path / name) for name in ("file", "found"))
    assert actual.score(["the cat met nobody ."]) == from_file.score(["the cat met nobody ."])
    assert len(actual.inner.vocab) == 3 + 4


def test_at_most_twelve_classes_are_printed(good, tmp_path):
    text = tmp_path / "t.txt"
    text.write_text("".join(f"w{number} w{number * number % 41}\n" for number in range(40)))
    lines = good("cluster", "--text", text, "-n", 30, "-o", tmp_path / "c").lines
    assert len(lines) == 2 + CLASSES_SHOWN
    assert [line.split()[0] for line in lines[2:]] == sorted(line.split()[0] for line in lines[2:])


def test_the_vocabulary_can_be_chosen(good, shared, tmp_path):
    good("cluster", "--text", shared / "train.txt", "-n", 2, "--max-size", 3, "--passes", 0, "-o", tmp_path / "few")
    assert len(read_classes(tmp_path / "few")) == 3
    text = tmp_path / "talk.txt"
    text.write_text("the mouse sings .\na mouse\n")
    outcome = good("cluster", "--text", text, "-n", 2, "--vocab", shared / "bi", "-o", tmp_path / "lent")
    assert set(read_classes(tmp_path / "lent")) == {"the", "mouse", ".", "a"}
    assert f"--vocab {shared / 'bi'} --classes" in outcome.err


def test_a_file_is_replaced_only_when_asked(run, good, shared, tmp_path):
    command = ("cluster", "--text", shared / "train.txt", "-n", 2, "-o", tmp_path / "c")
    (tmp_path / "c").write_text("precious")
    refused = run(*command)
    assert refused.code == 2 and "--force" in refused.err and (tmp_path / "c").read_text() == "precious"
    good(*command, "--force")
    assert len(read_classes(tmp_path / "c")) == 11


def test_progress_on_a_terminal(good, shared, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    outcome = good("cluster", "--text", shared / "train.txt", "-n", 2, "-o", tmp_path / "c")
    assert "merging" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cluster", "--text", "TEXT"], "--output"),
        (["cluster", "-o", "OUT"], "--text"),
        (["cluster", "--text", "NOWHERE", "-o", "OUT"], "no such file"),
        (["cluster", "--text", "TEXT", "-o", "OUT", "-n", "1"], "1 classes: give 2 or more"),
        (["cluster", "--text", "TEXT", "-o", "OUT", "-n", "few"], "--classes few: must be a whole number"),
        (["cluster", "--text", "TEXT", "-o", "OUT"], "200 classes: the text has only 11 different words"),
        (["cluster", "--text", "TEXT", "-o", "OUT", "--passes", "-1"], "--passes"),
        (["cluster", "--text", "TEXT", "-o", "OUT", "--field", "2"], "--field 2"),
        (["cluster", "--text", "TEXT", "-o", "BI"], "is not a file"),
        (["cluster", "--text", "TEXT", "-o", "OUT", "--vocab", "BI", "--min-count", "2"], "--min-count"),
        (["train", "class-ngram", "--text", "TEXT", "--classes", "brown:", "-o", "OUT"], "such as brown:200"),
        (["train", "class-ngram", "--text", "TEXT", "--classes", "brown:many", "-o", "OUT"], "such as brown:200"),
        (["train", "class-ngram", "--text", "TEXT", "--classes", "brown:0", "-o", "OUT"], "0 classes: give 2"),
        (["train", "class-ngram", "--text", "TEXT", "--classes", "brown:999", "-o", "OUT"], "only 11 different words"),
    ],
)
def test_bad_usage(run, shared, tmp_path, arguments, message):
    places = {"BI": shared / "bi", "TEXT": shared / "train.txt"}
    places |= {"OUT": tmp_path / "out", "NOWHERE": tmp_path / "nowhere"}
    outcome = run(*[str(places.get(word, word)) for word in arguments])
    assert (outcome.code, outcome.out) == (2, ""), outcome.err
    assert is_one_line(outcome.err) and message in outcome.err, outcome.err
    assert written(tmp_path) == []


def test_a_text_without_words_is_refused(run, tmp_path):
    (tmp_path / "t.txt").write_text("\n\n")
    outcome = run("cluster", "--text", tmp_path / "t.txt", "-o", tmp_path / "out")
    assert outcome.code == 2 and "the text has no words" in outcome.err
