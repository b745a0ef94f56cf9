"""`dragoman translate` and `dragoman units`: a line out for each line in, and what is refused."""

from __future__ import annotations

import io
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dragoman
from command import COMMAND, is_one_line, modules_after
from dragoman.combine.ensemble import Ensemble
from dragoman.data import formats
from dragoman.evaluation.alignment import argmax_links, to_pharaoh
from small_translators import ENGLISH, GERMAN, TREES, letters, place, translators

__all__ = ["letters", "place"]

TEXT = "".join(f"{line}\n" for line in GERMAN)


def test_translate_prints_one_line_per_input_line(good: Any, place: Path) -> None:
    done = good("translate", place / "one", stdin=f"{GERMAN[0]}\n\n  \n{GERMAN[7]}\r\n{GERMAN[3]}")
    assert done.out == f"{ENGLISH[0]}\n\n\n{ENGLISH[7]}\n{ENGLISH[3]}\n"
    assert done.err == ""
    assert good("translate", place / "one", stdin="").out == ""


def test_batches_do_not_change_translations(good: Any, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together = good("translate", place / "two", "--json", stdin=TEXT).lines
    monkeypatch.setattr(formats, "MAX_BATCH_LINES", 3)
    apart = good("translate", place / "two", "--json", stdin=TEXT).lines
    assert [json.loads(line)["translation"] for line in apart] == [json.loads(line)["translation"] for line in together]
    assert [json.loads(line)["source"] for line in apart] == GERMAN


class Slow:
    """Bytes that come in these parts."""

    def __init__(self, *parts: bytes):
        self.parts = [*parts, b""]
        self.read = 0

    def read1(self, size: int, /) -> bytes:
        self.read += 1
        return self.parts.pop(0)


def test_lines_are_yielded_as_they_arrive() -> None:
    stream = Slow(b"a\nb\nc", b"d", b"e\n", b"\n", b"f")
    came = [(lines, stream.read) for lines in formats.split_stream(stream)]
    assert came == [([b"a", b"b"], 1), ([b"cde"], 3), ([b""], 4), ([b"f"], 6)]


def test_each_typed_line_is_translated_immediately(place: Path) -> None:
    """The second line is not typed until the first one's translation is there."""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-c", COMMAND, "translate", str(place / "one")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=buffered) as process:
        assert process.stdin is not None and process.stdout is not None
        patience = threading.Timer(90, process.kill)  # a translation that does not come fails the test
        patience.start()
        for german, english in list(zip(GERMAN, ENGLISH, strict=True))[:2]:
            process.stdin.write(f"{german}\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"{english}\n"
        process.stdin.close()
        assert process.wait() == 0
        patience.cancel()


def test_translate_reads_files(good: Any, place: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"{n}\t{line}\n" for n, line in enumerate(GERMAN[:3])))
    done = good("translate", place / "one", "--text", tmp_path / "pairs.tsv", "--field", 2, "--beam-size", 1)
    assert done.lines == ENGLISH[:3]


def test_empty_files_have_no_lines(good: Any, place: Path, tmp_path: Path) -> None:
    for name in ("empty", "empty.tsv"):
        (tmp_path / name).write_text("")
        done = good("translate", place / "one", "--text", tmp_path / name)
        assert (done.out, done.err) == ("", "")


# -- other forms ------------------------------------------------------------------------------------------------------


def test_n_best_lists_in_moses_format(good: Any, place: Path) -> None:
    lines = good("translate", place / "one", "--n-best", 3, stdin=f"{GERMAN[0]}\n\n{GERMAN[4]}\n").lines
    parts = [line.split(" ||| ") for line in lines]
    assert [part[0] for part in parts] == ["0", "0", "0", "1", "2", "2", "2"]
    assert parts[0][1] == ENGLISH[0] and parts[4][1] == ENGLISH[4]
    assert parts[3] == ["1", "", "LogProb= 0", "0"]
    best = translators()["one"].n_best(GERMAN[0], 3)[0]
    for part, item in zip(parts[:3], best, strict=True):
        assert part[2].startswith("LogProb= ")
        assert float(part[2].removeprefix("LogProb= ")) == pytest.approx(item.log_prob, rel=1e-4)
        assert float(part[3]) == pytest.approx(item.score, rel=1e-4)
    assert [float(part[3]) for part in parts[:3]] == sorted((float(part[3]) for part in parts[:3]), reverse=True)


def test_json_has_scores_and_attention(good: Any, place: Path) -> None:
    arguments = ("--json", "--n-best", 2, "--length", "none")
    actual, blank = map(json.loads, good("translate", place / "one", *arguments, stdin=f"{GERMAN[1]}\n\n").lines)
    assert actual["source"] == GERMAN[1] and actual["translation"] == ENGLISH[1] and actual["finished"]
    assert actual["score"] == actual["log_prob"]  # no length handling
    assert len(actual["n_best"]) == 2 and actual["n_best"][0]["translation"] == ENGLISH[1]
    attention = actual["attention"]
    assert attention["target"] == [*ENGLISH[1].split(), "</s>"] and attention["source"] == [*GERMAN[1].split(), "</s>"]
    assert np.array(attention["weights"]).sum(1) == pytest.approx(1, abs=1e-3)
    assert (blank["translation"], blank["log_prob"], blank["attention"]) == ("", 0, None)


def test_alignments_are_written_to_a_file(good: Any, place: Path, tmp_path: Path) -> None:
    done = good("translate", place / "one", "--alignments", tmp_path / "a", stdin=f"{GERMAN[1]}\n\n{GERMAN[2]}\n")
    assert done.lines == [ENGLISH[1], "", ENGLISH[2]]
    result = translators()["one"].translate([GERMAN[1], GERMAN[2]])
    first, second = (to_pharaoh(argmax_links(item.attention)) for item in result)
    assert (tmp_path / "a").read_text() == f"{first}\n\n{second}\n"
    assert "1-1" in first.split()  # hund and dog


def test_alignments_of_subwords_are_between_words(good: Any, place: Path, tmp_path: Path) -> None:
    good("translate", place / "pieces", "--alignments", tmp_path / "a", stdin=f"{GERMAN[1]}\n")
    [line] = (tmp_path / "a").read_text().splitlines()
    result = translators()["pieces"].translate(GERMAN[1])[0]
    words = [tuple(map(int, pair.split("-"))) for pair in line.split()]
    assert all(source < 4 and target < len(result.text.split(" ")) for source, target in words)


def test_alignments_of_characters(good: Any, letters: Path, tmp_path: Path) -> None:
    good("translate", letters, "--alignments", tmp_path / "a", stdin=f"{GERMAN[1]}\n")
    result = dragoman.load(letters).translate(GERMAN[1])[0]
    none = np.zeros((0 if result.finished else 1, len(result.source_tokens) + 1))
    assert (tmp_path / "a").read_text() == f"{to_pharaoh(argmax_links(np.concatenate([result.attention, none])))}\n"
    actual = json.loads(good("translate", letters, "--json", stdin=GERMAN[1]).out)["attention"]
    assert actual["source"] == [*GERMAN[1].replace(" ", "▁"), "</s>"] and actual["target"] == list(
        result.tokens_with_end
    )


def test_lattice_is_written(good: Any, place: Path, tmp_path: Path) -> None:
    for name in ("l.jsonl", "l.txt"):
        done = good("translate", place / "one", "--lattice", tmp_path / name, stdin=f"{GERMAN[1]}\n\n{GERMAN[5]}\n")
        assert done.lines == [ENGLISH[1], "", ENGLISH[5]]
    first, blank, last = map(json.loads, (tmp_path / "l.jsonl").read_text().splitlines())
    assert (first["line"], blank["nodes"], last["source"]) == (1, [], GERMAN[5])
    ends = [node for node in first["nodes"] if node["fate"] == "finished"]
    assert max(node["score"] for node in ends) == pytest.approx(translators()["one"].translate(GERMAN[1])[0].score)
    assert {node["word"] for node in ends} == {"</s>"}
    drawn = (tmp_path / "l.txt").read_text()
    assert drawn.startswith(f"line 1: {GERMAN[1]}\n") and drawn.count("<- best") == 2


def test_samples_depend_on_seed_and_line_number_only(good: Any, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("translate", place / "two", "--temperature", 2, "--sample", 4)
    first = good(*arguments, stdin=TEXT).out
    assert [line.split(" ||| ")[0] for line in first.splitlines()[:5]] == ["0", "0", "0", "0", "1"]
    monkeypatch.setattr(formats, "MAX_BATCH_LINES", 7)
    assert good(*arguments, stdin=TEXT).out == first
    assert good(*arguments, "--seed", 2, stdin=TEXT).out != first
    same = good(*arguments, stdin=f"{GERMAN[0]}\n" * 2).lines
    assert [line.split(" ||| ")[1] for line in same[:4]] != [line.split(" ||| ")[1] for line in same[4:]]


def test_single_samples_are_printed_as_text(good: Any, place: Path) -> None:
    cold = good("translate", place / "one", "--sample", 1, "--temperature", 0.01, stdin=f"{GERMAN[2]}\n\n")
    assert cold.out == f"{ENGLISH[2]}\n\n"


# -- sentences --------------------------------------------------------------------------------------------------------


def test_plain_text_is_tokenised_and_detokenised(good: Any, place: Path) -> None:
    """The translator has learnt lower-cased tokenised text. Tokenised lines stay tokenised."""
    done = good("translate", place / "one", stdin="Der Hund bellt.\nDER FISCH SCHWIMMT .\nder hund bellt .\nDer Hund\n")
    assert done.lines[:3] == ["The dog barks.", "the fish swims .", "the dog barks ."]
    assert done.lines[3].startswith("The dog")
    assert done.err == ""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Der Hund bellt. Der Vogel singt.", "The dog barks. The bird sings."),
        ("  Der Hund bellt.  Der Vogel singt. ", "The dog barks.  The bird sings."),
        ("der hund bellt . der vogel singt .", "the dog barks . the bird sings ."),
    ],
)
def test_sentences_of_a_line_are_translated_one_by_one(good: Any, place: Path, line: str, expected: str) -> None:
    assert good("translate", place / "one", stdin=f"{line}\n").lines == [expected]
    whole = good("translate", place / "one", "--no-split", "--json", stdin=f"{line}\n").out
    unsplit = json.loads(whole)
    [sentence] = unsplit["sentences"]
    assert (sentence["source"], sentence["attention"]) == (line, unsplit["attention"]) and sentence["attention"]
    [record] = map(json.loads, good("translate", place / "one", "--json", stdin=f"{line}\n").lines)
    first, second = record["sentences"]
    assert record["translation"] == expected and record["attention"] is None and record["source"] == line
    assert first["translation"].lower().startswith("the dog barks") and second["attention"]["source"][1] == "vogel"
    assert record["log_prob"] == pytest.approx(first["log_prob"] + second["log_prob"])


def test_n_best_list_of_several_sentences(good: Any, place: Path) -> None:
    """The n best sums of the scores of all combinations."""
    parts = GERMAN[1], GERMAN[7], GERMAN[3]
    lines = good("translate", place / "two", "--n-best", 4, "--length", "none", stdin=f"{' '.join(parts)}\n").lines
    lists = translators()["two"].n_best(parts, 4, 5, length="none")
    sums = sorted((sum(item.score for item in choice) for choice in itertools.product(*lists)), reverse=True)
    assert [float(line.split(" ||| ")[3]) for line in lines] == pytest.approx(sums[:4], rel=1e-4)
    assert lines[0].split(" ||| ")[1] == " ".join(best[0].text for best in lists)


def test_alignments_and_lattices_of_several_sentences(good: Any, place: Path, tmp_path: Path) -> None:
    arguments = ("--alignments", tmp_path / "a", "--lattice", tmp_path / "l.jsonl")
    good("translate", place / "one", *arguments, stdin=f"{GERMAN[1]} {GERMAN[7]}\n{GERMAN[2]}\n")
    first, second, third = translators()["one"].translate([GERMAN[1], GERMAN[7], GERMAN[2]])
    offset = len(GERMAN[1].split()), len(first.tokens)
    links = argmax_links(first.attention)
    links += [(source + offset[0], target + offset[1]) for source, target in argmax_links(second.attention)]
    assert (tmp_path / "a").read_text() == f"{to_pharaoh(links)}\n{to_pharaoh(argmax_links(third.attention))}\n"
    records = list(map(json.loads, (tmp_path / "l.jsonl").read_text().splitlines()))
    assert [(record["line"], record["source"]) for record in records] == [
        (1, GERMAN[1]),
        (1, GERMAN[7]),
        (2, GERMAN[2]),
    ]


def test_samples_of_several_sentences(good: Any, place: Path) -> None:
    """The first sentence has the samples that it has as a line."""
    arguments = ("translate", place / "two", "--temperature", 2, "--sample", 3)
    alone, both = (good(*arguments, stdin=text).lines for text in (GERMAN[0], f"{GERMAN[0]} {GERMAN[0]}"))
    texts = [[line.split(" ||| ")[1] for line in lines] for lines in (alone, both)]
    assert all(longer.startswith(shorter) for shorter, longer in zip(*texts, strict=True))
    assert any(longer != f"{shorter} {shorter}" for shorter, longer in zip(*texts, strict=True))


# -- several models ---------------------------------------------------------------------------------------------------


def test_several_translators_are_an_ensemble(good: Any, place: Path) -> None:
    actual = json.loads(good("translate", place / "one", place / "two", "--json", stdin=f"{GERMAN[8]}\n").out)
    both = Ensemble([translators()["one"], translators()["two"]])
    assert actual["log_prob"] == pytest.approx(both.translate(GERMAN[8])[0].log_prob, rel=1e-4)
    assert actual["log_prob"] != pytest.approx(translators()["one"].translate(GERMAN[8])[0].log_prob, rel=1e-4)
    assert len(actual["attention"]["weights"]) == 5


@pytest.fixture(scope="module")
def language_model(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that knows dogs alone, by the verbs that are there to make it."""
    from dragoman.cli.main import main

    directory = tmp_path_factory.mktemp("lm")
    (directory / "dogs").write_text("the dog sleeps .\nthe dog runs .\n" * 5)
    cut = ["train", "ngram", "--text", str(directory / "dogs"), "--vocab", str(place / "one"), "--order", "2"]
    assert main([*cut, "--smoothing", "witten-bell", "-o", str(directory / "lm")]) == 0
    return directory / "lm"


def test_fusion_with_a_language_model(good: Any, place: Path, language_model: Path) -> None:
    line = f"{GERMAN[5]}\n"  # a cat
    assert dragoman.load(language_model).vocab == translators()["one"].vocab
    without = good("translate", place / "one", "--json", stdin=line).out
    mute = good("translate", place / "one", "--lm", language_model, "--lm-weight", 0, "--json", stdin=line).out
    assert json.loads(mute)["log_prob"] == pytest.approx(json.loads(without)["log_prob"], rel=1e-3)
    for fusion, weight in (("linear", 0.99), ("log-linear", 20)):
        arguments = ("--lm", language_model, "--lm-weight", weight, "--fusion", fusion)
        assert "dog" in good("translate", place / "one", *arguments, stdin=line).out
        assert good("translate", place / "one", place / "two", *arguments, stdin=line).out.count("\n") == 1


def test_units_splits_and_joins(good: Any, place: Path) -> None:
    cut = good("units", place / "pieces", stdin="the cat\n\nthe dog\r\n")
    assert cut.lines == ["t h e ▁ c a t", "", "t h e ▁ d o g"]
    assert good("units", place / "pieces", "--join", stdin=cut.out).lines == ["the cat", "", "the dog"]
    source = good("units", place / "pieces", "--source", stdin=GERMAN[0]).out.removesuffix("\n")
    assert source.split(" ") == translators()["pieces"].source.segmenter.segment(GERMAN[0])
    assert good("units", place / "pieces", "--source", "--join", stdin=source).lines == [GERMAN[0]]


# -- trouble ----------------------------------------------------------------------------------------------------------


def test_long_lines_are_split_and_reported(good: Any, place: Path, tmp_path: Path) -> None:
    text = f"{GERMAN[0]}\n{GERMAN[1]} {GERMAN[2]}\n"
    arguments = ("--no-split", "--max-units", 4, "--alignments", tmp_path / "a", "--lattice", tmp_path / "l.jsonl")
    done = good("translate", place / "one", *arguments, stdin=text)
    assert done.lines == [ENGLISH[0], f"{ENGLISH[1]} {ENGLISH[2]}"]
    assert done.err == "line 2: more than 4 tokens, so it is split\n"
    assert (tmp_path / "a").read_text().count("\n") == 2
    assert json.loads((tmp_path / "l.jsonl").read_text().splitlines()[1])["nodes"] == []


def test_sampling_of_long_lines_raises(run: Any, good: Any, place: Path) -> None:
    arguments = ("translate", place / "one", "--sample", 1, "--temperature", 0.01, "--no-split")
    text = f"{GERMAN[0]}\n{GERMAN[1]} {GERMAN[2]}\n"
    outcome = run(*arguments, "--max-units", 7, stdin=text)
    assert outcome.code == 2 and is_one_line(outcome.err)
    assert "<stdin>:2: more than 7 tokens" in outcome.err and "--max-units" in outcome.err
    assert outcome.lines == [ENGLISH[0]]
    assert len(good(*arguments, "--max-units", 8, stdin=text).lines) == 2


def test_large_trees_raise(run: Any, good: Any, place: Path) -> None:
    for arguments in ((), ("--sample", 1)):
        outcome = run("translate", place / "tree", *arguments, "--max-units", 3, stdin=f"(NP der hund)\n{TREES[0]}\n")
        assert outcome.code == 2 and is_one_line(outcome.err) and len(outcome.lines) == 1
        assert "<stdin>:2: a tree of 4 words, and at most 3 are allowed" in outcome.err
    assert len(good("translate", place / "tree", "--max-units", 4, stdin=TREES[0]).lines) == 1


@pytest.mark.parametrize(
    ("model", "lines", "message"),
    [
        (
            "one",
            [GERMAN[0], "", "bello belt."],
            ("line 3: 2 of 3 words", "is this the language that the model translates from?"),
        ),
        ("one", ["a dog barks ."], ("line 1: 3 of 4 words", "is this the language that the model translates from?")),
        (
            "tree",
            ["(S (NP a dog) barks)"],
            ("line 1: 3 of 3 words", "is this the language that the model translates from?"),
        ),
    ],
)
def test_lines_of_unknown_words_are_reported(
    good: Any, place: Path, model: str, lines: list[str], message: tuple[str, str]
) -> None:
    done = good("translate", place / model, stdin="".join(f"{line}\n" for line in lines))
    assert done.err == " do not occur in the training text; ".join(message) + "\n"
    assert len(done.lines) == len(lines)


def test_lines_in_another_script_are_copied_and_reported(good: Any, place: Path) -> None:
    done = good("translate", place / "pieces", stdin=f"{GERMAN[0]}\nпривет мир\n1984 !\n")
    assert done.lines[1:] == ["привет мир", "1984 !"]
    [message] = done.err.splitlines()
    assert message.startswith("line 2: most of its letters do not occur in the training text, so it is copied; is this")
    assert good("translate", place / "pieces", "--verbatim", stdin="привет мир\n").lines != ["привет мир"]


def test_a_copied_line_has_no_scores_of_another_translation(good: Any, place: Path) -> None:
    record = json.loads(good("translate", place / "pieces", "--json", "--n-best", 3, stdin="привет мир\n").out)
    copied = {"translation": "привет мир", "log_prob": 0.0, "score": 0.0, "finished": True}
    assert record == {
        "source": "привет мир",
        **copied,
        "n_best": [copied],
        "attention": None,
        "sentences": [{"source": "привет мир", **copied, "attention": None}],
    }
    samples = good("translate", place / "pieces", "--sample", 2, stdin="привет мир\n").lines
    assert [line.split(" ||| ")[1] for line in samples] == ["привет мир"] * 2


def test_translators_of_characters_read_lines_as_they_are_if_asked_to(good: Any, letters: Path) -> None:
    assert not good("translate", letters, stdin="DER HUND\n").err, "read in lower case"
    [message] = good("translate", letters, "--verbatim", stdin="DER HUND\n").err.splitlines()
    assert message.startswith("line 1: 7 of 8 characters") and "the model was trained on lower-cased text" in message


def test_lines_of_unknown_words_are_counted(good: Any, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "MAX_BATCH_LINES", 2)
    first, last = good("translate", place / "one", stdin="a dog\n\nthe cat\nder hund\na bird\n").err.splitlines()
    assert first.startswith("line 1: 2 of 2 words")
    assert last == "3 of 5 lines consist mostly of words that do not occur in the training text: lines 1, 3, 5"
    assert good("translate", place / "one", stdin="der dog\n").err == "", "as many are known"


class Terminal(io.TextIOWrapper):
    """Standard input that is typed."""

    def isatty(self) -> bool:
        return True


def test_messages_on_a_terminal(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dragoman.cli.main import main

    monkeypatch.setattr(sys, "stdin", Terminal(io.BytesIO(f"{GERMAN[0]}\n".encode())))
    assert main(["translate", str(place / "one")]) == 0
    stderr = capsys.readouterr()
    assert stderr.err == "loading ...\ntype a sentence and press Enter; Ctrl-D ends\n"
    assert stderr.out == f"{ENGLISH[0]}\n"
    assert main(["translate", str(place / "one"), "--text", str(place / "test.de")]) == 0
    assert capsys.readouterr().err == "loading ...\n"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (b"ein \xff\n", "<stdin>:3: not UTF-8 (byte 0xff at column 5); convert it"),
        (b"a\0b\n", "<stdin>:3: NUL byte at column 2"),
    ],
)
def test_lines_before_a_wrong_line_are_translated(run: Any, place: Path, wrong: bytes, message: str) -> None:
    before = "\n".join(GERMAN[:2]).encode() + b"\n"
    outcome = run("translate", place / "one", stdin=before + wrong + before)
    assert outcome.code == 2 and is_one_line(outcome.err) and message in outcome.err
    assert outcome.lines == ENGLISH[:2]


def test_tree_translators_need_trees(run: Any, good: Any, place: Path) -> None:
    outcome = run("translate", place / "tree", stdin=f"{TREES[0]}\n\n{GERMAN[0]}\n")
    assert outcome.code == 2 and is_one_line(outcome.err)
    assert "<stdin>:3: no brackets" in outcome.err and "plain text" in outcome.err
    assert len(outcome.lines) == 2
    attention = json.loads(good("translate", place / "tree", "--json", stdin=TREES[0]).out)["attention"]
    assert attention["source"][-1] == GERMAN[0]  # the root


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["translate"], "name a translator, such as"),
        (["translate", "NOWHERE"], "no such directory; pass a directory written by dragoman train"),
        (["translate", "FILE"], "test.de: is a file, not a translator; name a translator before it"),
        (["translate", "ONE", "nonexist.html"], "nonexist.html: no such file or directory; check its name"),
        (["translate", "ONE", "Ein Hund."], "or translate a sentence by: echo 'Ein Hund.' | dragoman translate"),
        (
            ["translate", "ONE", "Ein", "Hund"],
            "Ein: no such file or directory; check its name, or translate a sentence by: echo",
        ),
        (["translate", "ONE", "--text", "FILE", "--alignments", "FILE"], "is the text to translate as well"),
        (["translate", "ONE", "--text", "FILE", "-o", "FILE"], "is the text to translate as well"),
        (["translate", "ONE", "-o", "OUT", "--alignments", "OUT"], "is the file of --output as well"),
        (["translate", "ONE", "--lattice", "OUT", "--alignments", "OUT"], "is the file of --alignments as well"),
        (["translate", "ONE", "FILE", "--text", "FILE"], "is given already; name all files, or one with --text"),
        (["translate", "ONE", "FILE", "--overwrite"], "--overwrite is for PO and XLIFF files; remove it"),
        (["translate", "ONE", "FILE", "--format", "html", "--json"], "--json is for text line by line"),
        (["translate", "TREE", "FILE", "--format", "markdown"], "a translator of trees cannot translate documents"),
        (["translate", "LM"], "is a model of kind ngram, not a translator"),
        (["translate", "ONE", "OTHER"], "different target vocabularies"),
        (["translate", "ONE", "TREE"], "segments its source differently"),
        (["translate", "ONE", "ONE"], "named twice"),
        (["translate", "ONE", "--length", "long"], "penalty:X"),
        (["translate", "ONE", "--length", "penalty:much"], "give a number"),
        (["translate", "ONE", "--beam-size", "0"], "--beam-size"),
        (["translate", "ONE", "--seed", "3"], "--sample N"),
        (["translate", "ONE", "--sample", "2", "--n-best", "2"], "choose one of them"),
        (["translate", "ONE", "--sample", "2", "--lattice", "OUT"], "remove one of them"),
        (["translate", "ONE", "--sample", "2", "--length", "none"], "--sample does not search; remove them"),
        (["translate", "ONE", "--sample", "2", "--beam-size", "2"], "--sample does not search; remove them"),
        (["translate", "PLAIN", "--alignments", "OUT"], "has no attention"),
        (["translate", "TREE", "--alignments", "OUT"], "phrases of a tree"),
        (["translate", "ONE", "--fusion", "linear"], "name it with --lm"),
        (["translate", "ONE", "--lm", "LM", "--fusion", "cubic"], "linear or log-linear"),
        (["translate", "ONE", "--lm", "LM", "--fusion", "linear", "--lm-weight", "1"], "below 1"),
        (["translate", "ONE", "--lm", "TWO"], "not a language model"),
        (["translate", "OTHER", "--lm", "LM"], "dragoman train ngram"),
        (["translate", "ONE", "--text", "NOWHERE"], "no such file"),
        (["units", "TREE", "--source"], "nothing to split"),
        (["units", "LM", "--source"], "has no source"),
    ],
)
def test_bad_usage(
    run: Any, place: Path, language_model: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    places = {name.upper(): place / name for name in translators()}
    places |= {"LM": language_model, "OUT": tmp_path / "out", "NOWHERE": tmp_path / "nowhere"}
    places["FILE"] = place / "test.de"
    outcome = run(*[places.get(word, word) for word in arguments], stdin=TREES[0])
    assert (outcome.code, outcome.out) == (2, ""), outcome.err
    assert is_one_line(outcome.err) and message in outcome.err, outcome.err
    assert list(tmp_path.iterdir()) == []


def test_no_break_spaces_do_not_separate_words(good: Any, place: Path, tmp_path: Path) -> None:
    """A no-break space is none of them."""
    done = good("translate", place / "one", "--alignments", tmp_path / "a", stdin="der\u00a0hund bellt .\n")
    assert len(done.lines) == 1
    assert (tmp_path / "a").read_text().count("\n") == 1


def test_line_numbers_continue_over_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "MAX_BATCH_LINES", 2)
    parts: Iterator[list[bytes]] = iter([[b"a", b"b", b"c"], [b"d"]])
    calls: list[tuple[str, str, int]] = []
    batches = list(formats.number_lines(parts, "x", lambda *line: calls.append(line)))
    assert [[line.number for line in batch] for batch in batches] == [[1, 2], [3], [4]]
    assert calls[3] == ("d", "x", 4)


@pytest.mark.parametrize("option", ["--alignments", "--lattice"])
def test_unwritable_files_raise_before_translating(run: Any, place: Path, tmp_path: Path, option: str) -> None:
    for path, result in (
        (tmp_path / "no" / "where", "there is no directory"),
        (tmp_path, "is a directory"),
        ("-", "file"),
    ):
        refused = run("translate", place / "one", option, path, stdin=f"{GERMAN[0]}\n")
        assert refused.code == 2 and result in refused.err and option in refused.err and refused.out == ""


def test_translating_imports_no_compilers(place: Path) -> None:
    """numba and torch._dynamo, which imports sympy, take longer to import than a line to translate."""
    modules = modules_after(("translate", place / "one", "--text", place / "test.de"))
    assert "torch" in modules
    assert not {"numba", "sympy", "torch._dynamo", "sacrebleu", "matplotlib", "rich"} & modules
    assert not {"dragoman.align.aligner", "dragoman.combine.ensemble", "dragoman.ngram"} & modules
