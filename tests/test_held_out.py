"""Duplicates, near-duplicates, and dividing a corpus without leaks; `dragoman split`."""

from __future__ import annotations

import gzip
import random
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command import is_one_line
from dragoman.core.errors import DataError
from dragoman.data import held_out
from dragoman.data.held_out import divide, hold_out, hold_out_by_equality
from dragoman.data.near_duplicates import NGRAM, find_duplicates, find_leaks, group_duplicates, simplify
from dragoman.io.corpus_split import part_names

FORMATS = Path(__file__).parent / "formats"

WORDS = [f"{a}{b}{c}" for a in ("ka", "lo", "mi", "tu") for b in ("ren", "sto", "fal") for c in ("d", "gen", "s", "um")]


def jaccard(first: str, second: str) -> float:
    """The similarity by its definition."""
    a, b = ({text[i : i + NGRAM] for i in range(len(text) - NGRAM + 1)} for text in (simplify(first), simplify(second)))
    return len(a & b) / len(a | b) if a | b else float(first == second)


def random_lines(count: int, seed: int) -> list[str]:
    """Random sentences; every fourth is an earlier one with one word changed."""
    generator = random.Random(seed)
    lines: list[str] = []
    for number in range(count):
        words = generator.choices(WORDS, k=generator.randint(4, 14))
        if number % 4 == 3:
            words = generator.choice(lines).split()
            words[generator.randrange(len(words))] = generator.choice(WORDS)
        lines.append(" ".join(words))
    return lines


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("Der Hund, er bellt!", "der hund er bellt", True),
        ("In 1999 left 12 men.", "in 2004, left 7 men", True),
        ("Straße", "STRASSE", True),
        ("ｆｕｌｌ width", "full width", True),
        ("कि", "की", False),  # vowel signs are not punctuation
        ("...", "!!!", False),
        ("彼は去った。", "彼は去った", True),
    ],
)
def test_lines_are_compared_without_case_punctuation_and_numbers(first: str, second: str, same: bool) -> None:
    assert (simplify(first) == simplify(second)) is same
    assert (len(set(group_duplicates([[first, second]]).tolist())) == 1) is same


def test_near_duplicates_are_those_of_the_definition() -> None:
    """An oracle that compares all pairs. LSH misses few similar pairs, and joins no others."""
    lines = random_lines(400, seed=3)
    groups = group_duplicates([lines], similarity=0.7)
    parents = list(range(len(lines)))

    def root(number: int) -> int:
        while parents[number] != number:
            number = parents[number]
        return number

    for i, j in combinations(range(len(lines)), 2):
        if jaccard(lines[i], lines[j]) >= 0.7:
            parents[max(root(i), root(j))] = min(root(i), root(j))
    expected = [root(number) for number in range(len(lines))]
    assert len(set(expected)) < 370, "there are near-duplicates"
    together = sum(groups[i] == groups[j] for i, j in combinations(range(len(lines)), 2))
    wrong = [i for i, group in enumerate(groups.tolist()) if expected[i] != expected[group]]
    assert wrong == [] and together >= 0.95 * sum(a == b for a, b in combinations(expected, 2))


def test_hashes_find_nearly_all_pairs_at_the_threshold() -> None:
    """The bands of hashes are chosen for 97.5 % of the pairs of similarity 0.7."""
    generator = random.Random(4)
    pairs = []
    while len(pairs) < 400:
        words = ["".join(generator.choices("abcdefghijklmnop", k=5)) for _ in range(14)]
        other = [*words[:-2], *("".join(generator.choices("abcdefghijklmnop", k=5)) for _ in range(2))]
        if 0.7 <= jaccard(" ".join(words), " ".join(other)) < 0.8:
            pairs.append((" ".join(words), " ".join(other)))
    groups = group_duplicates([[line for pair in pairs for line in pair]])
    assert np.mean(groups[::2] == groups[1::2]) > 0.94


def test_duplicates_in_another_text_are_those_of_the_definition() -> None:
    lines = random_lines(400, seed=3)
    others, lines = [*lines[:300], "", "Tuston !"], [*lines[300:], "", "tuston", "tu"]
    duplicates = find_duplicates(lines, others).tolist()
    assert duplicates[-3:] == [-1, 301, -1], "blank lines are in no text, short ones only if they are equal"
    for line, other in zip(lines, duplicates, strict=True):
        assert other < 0 or jaccard(line, others[other]) >= 0.7
        assert other >= 0 or not any(jaccard(line, text) >= 0.8 for text in others if text)
    assert find_duplicates(lines, others, similarity=1).tolist().count(-1) > duplicates.count(-1)
    assert find_duplicates([], others).tolist() == [] and find_duplicates(["a"], []).tolist() == [-1]


def test_pairs_are_grouped_by_either_side() -> None:
    source = ["ein hund", "Ein Hund!", "eine katze", "", ""]
    target = ["a dog", "the dog", "The dog.", "nothing", "none"]
    assert group_duplicates([source, target], similarity=1).tolist() == [0, 0, 0, 3, 4]


def test_bad_similarities_raise() -> None:
    for similarity in (0, 1.1, -1, float("nan")):
        with pytest.raises(DataError, match="similarity"):
            group_duplicates([["a"]], similarity)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 30))
def test_held_out_lines_do_not_leak(seed: int, size: int) -> None:
    lines = random_lines(120, seed=5)
    train, dev = hold_out([lines], size, seed)
    assert len(dev) == size
    assert sorted([*train.tolist(), *dev.tolist()]) == list(range(len(lines)))
    groups = group_duplicates([lines])
    assert not set(groups[train].tolist()) & set(groups[dev].tolist())
    again = hold_out([lines], size, seed)
    assert np.array_equal(again[1], dev)


def test_near_duplicates_that_the_hashes_miss_do_not_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no near-duplicate had been found: all comparisons are those of the definition."""
    lines = random_lines(200, seed=5)
    monkeypatch.setattr(held_out, "group_duplicates", lambda sides, similarity: np.arange(len(sides[0])))
    expected = [
        [other for other, text in enumerate(lines) if other != number and jaccard(line, text) >= 0.7]
        for number, line in enumerate(lines)
    ]
    for seed in range(5):
        divided = divide([lines], [30, 20], seed)
        parts = [divided.train, *divided.parts]
        assert [len(part) for part in parts] == [150, 30, 20]
        part_of = {int(line): number for number, part in enumerate(parts) for line in part}
        assert all(part_of[other] == part_of[line] for line in part_of if part_of[line] for other in expected[line])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.3, 0.5, 0.7, 0.9]))
def test_leaks_are_those_of_the_definition(seed: int, similarity: float) -> None:
    generator = random.Random(seed)
    letters = [
        "".join(generator.choices("ab", k=generator.randint(4, 12))) for _ in range(60)
    ]  # all degrees of similarity
    lines = [*random_lines(40, seed), *letters, "", "ab", "ab"]
    parts = np.random.default_rng(seed).integers(-1, 3, len(lines))
    others = [[b for b in range(len(lines)) if 0 <= parts[b] != parts[a]] for a in range(len(lines))]
    leaks = {
        a
        for a in np.flatnonzero(parts > 0).tolist()
        if len(lines[a]) >= NGRAM and any(jaccard(lines[a], lines[b]) >= similarity for b in others[a])
    }
    assert set(find_leaks([lines], parts, similarity).tolist()) == leaks


def test_seeds_give_different_lines() -> None:
    lines = random_lines(120, seed=5)
    assert hold_out([lines], 10, seed=1)[1].tolist() != hold_out([lines], 10, seed=2)[1].tolist()


def test_blank_lines_stay_in_training_data() -> None:
    train, dev = hold_out([["a b c", "", "d e f", "g h i"], ["x", "y", " ", "z"]], 1)
    assert {1, 2} <= set(train.tolist()) and len(dev) == 1
    assert divide([["", ""]], [1]).parts[0].tolist() == []


def test_large_groups_are_trained_on() -> None:
    """One group of 50 lines would be all of the dev data."""
    lines = ["the same line"] * 50 + random_lines(300, seed=1)
    for seed in range(5):
        divided = divide([lines], [50, 50], seed)
        assert [len(part) for part in divided.parts] == [50, 50] and set(range(50)) <= set(divided.train.tolist())


def labelled_lines(count: int = 600) -> tuple[list[str], list[str]]:
    """Different sentences with a label each: two frequent labels, one that is less so, and many that are rare."""
    generator = random.Random(3)
    sources = [" ".join("".join(generator.choices("abcdefghij", k=6)) for _ in range(6)) for _ in range(count)]
    labels = generator.choices(["good", "bad", "neutral"], [10, 8, 1], k=count)
    return sources, [f"rare{number}" if number % 20 == 0 else label for number, label in enumerate(labels)]


@pytest.mark.parametrize("first", [0, 1])
def test_labels_are_not_held_out_as_whole_classes(first: int) -> None:
    """The side of the labels is not compared, whether it is the source or the target."""
    sides = labelled_lines()
    divided = divide(sides[::-1] if first else sides, [60, 60])
    assert divided.compared == (first,) and [len(part) for part in divided.parts] == [60, 60]
    for part in (divided.train, *divided.parts):
        assert {"good", "bad", "neutral"} < {sides[1][index] for index in part}


def test_sentences_with_several_translations_are_still_kept_together() -> None:
    """Five translations of each sentence are not five sentences with a label."""
    sources = [line for line in dict.fromkeys(random_lines(100, seed=4)) for _ in range(5)]
    targets = labelled_lines(len(sources))[0]
    divided = divide([sources, targets], [50])
    assert divided.compared == (0, 1)
    assert not {sources[index] for index in divided.train} & {sources[index] for index in divided.parts[0]}


def test_groups_that_are_too_large_stay_in_the_training_data() -> None:
    lines = [f"{line} {word}" for line in random_lines(8, seed=2) for word in ("now",) * 6]
    assert len(hold_out([lines], 10)[1]) > 0 == len(hold_out([lines], 10, max_group_share=0.5)[1])


@pytest.mark.parametrize("copies", [[1] * 300, [10] * 300, [100] * 300, [5000, *[1] * 300], [50] * 30 + [1] * 270])
def test_lines_that_are_all_alike_are_held_out_by_equality(copies: list[int]) -> None:
    """A tenth of the different lines, and of all lines, are held out at most; copies are not divided."""
    sides = [[f"{word} {i} was deleted" for i, count in enumerate(copies) for _ in range(count)] for word in "ab"]
    random.Random(1).shuffle(sides[0])
    sides[1] = [line.replace("a ", "b ") for line in sides[0]]
    train, dev = hold_out_by_equality(sides)
    assert sorted([*train.tolist(), *dev.tolist()]) == list(range(sum(copies)))
    held_out = {sides[0][index] for index in dev}
    assert not held_out & {sides[0][index] for index in train}
    assert 20 <= len(held_out) <= len(copies) // 10 and len(dev) <= sum(copies) // 10


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    source = [*random_lines(300, seed=8), "", "leer"]
    target = [*(line.upper()[::-1] for line in source[:300]), "blank", ""]
    (tmp_path / "all.de").write_text("".join(f"{line}\n" for line in source))
    (tmp_path / "all.en").write_text("".join(f"{line}\n" for line in target))
    rows = [f"{number}\t{a}\t{b}" for number, (a, b) in enumerate(zip(source, target, strict=True))]
    (tmp_path / "all.tsv").write_text("".join(f"{row}\n" for row in ["id\tde\ten", *rows]))
    return tmp_path


def test_split_pairs(good: Any, corpus: Path) -> None:
    arguments = ("split", "--src", corpus / "all.de", "--tgt", corpus / "all.en", "--dev", 20, "--test", "10%")
    done = good(*arguments, "-o", corpus / "new")
    assert done.out == ""
    assert sorted(path.name for path in (corpus / "new").iterdir()) == [
        f"{part}.{side}" for part in ("dev", "test", "train") for side in ("de", "en")
    ]
    pairs = {
        part: [(corpus / "new" / f"{part}.{side}").read_text().splitlines() for side in ("de", "en")]
        for part in ("train", "dev", "test")
    }
    assert [len(pairs[part][0]) for part in ("train", "dev", "test")] == [250, 20, 30]
    for sources, targets in pairs.values():
        assert [line.upper()[::-1] for line in sources] == targets
    assert (
        "2 pairs with a blank side were left out" in done.err
        and "similar ones are in the same part (all were kept)" in done.err
    )
    files = [
        f"--{part}{side} {corpus}/new/{name}"
        for part, name in (("", "train"), ("dev-", "dev"))
        for side in ("src", "tgt")
    ]
    endings = [file + ending for file, ending in zip(files, (".de", ".en", ".de", ".en"), strict=True)]
    assert f"next: dragoman train translator {' '.join(endings)} -o model" in done.err
    trained = pairs["train"][0]
    assert not [line for line in pairs["dev"][0] if any(jaccard(line, other) >= 0.8 for other in trained)]
    good(*arguments, "-o", corpus / "again")
    assert (corpus / "again" / "dev.de").read_text() == (corpus / "new" / "dev.de").read_text()


def test_split_rows_of_tables(good: Any, corpus: Path) -> None:
    fields = ("--src-field", "de", "--tgt-field", "en")
    good("split", "--text", corpus / "all.tsv", *fields, "--dev", 9, "--test", 0, "-o", corpus, "--prefix", "x.")
    train, dev = ((corpus / f"x.{part}.tsv").read_text().splitlines() for part in ("train", "dev"))
    assert train[0] == dev[0] == "id\tde\ten" and (len(train), len(dev)) == (292, 10)
    assert {row.count("\t") for row in train} == {2} and not (corpus / "x.test.tsv").exists()
    good("split", "--text", corpus / "all.tsv", "--dev", 9, "--test", 0, "-o", corpus / "same", "--prefix", "x.")
    assert (corpus / "same" / "x.dev.tsv").read_text().splitlines() == dev, "columns by the header"
    (corpus / "all.txt.gz").write_bytes(gzip.compress((corpus / "all.de").read_bytes()))
    good("split", "--text", corpus / "all.txt.gz", "-o", corpus)
    assert gzip.decompress((corpus / "dev.txt.gz").read_bytes()).count(b"\n") == 30


@pytest.mark.parametrize("name", ["pairs.tsv", "pairs.txt", "pairs"])
@pytest.mark.parametrize("option", ["--text", "--pairs"])
def test_split_tables_by_their_header(good: Any, corpus: Path, name: str, option: str) -> None:
    """The header is no row, blank and ragged rows are left out, and the columns of languages are compared."""
    same = [f"{number}\t{word}\t{word[::-1]}" for number, word in enumerate(WORDS) for _ in range(2)]
    (corpus / name).write_text("\n".join(["id\tde\ten", *same[:50], "", "ragged", *same[50:]]) + "\n")
    done = good("split", option, corpus / name, "--dev", 10, "--test", 10, "-o", corpus / "new")
    assert f"{name}: 3 of {len(same) + 3} lines are not used" in done.err
    [train, dev, test] = (
        (corpus / "new" / part_names([name], part)[0]).read_text().splitlines() for part in ("train", "dev", "test")
    )
    assert train[0] == dev[0] == test[0] == "id\tde\ten"
    assert sorted([*train[1:], *dev[1:], *test[1:]]) == sorted(same)
    assert not set(dev[1:]) & set(train) and 2 < len(dev) <= 11 and all(dev.count(row) == 2 for row in dev[1:])
    ending = Path(part_names([name], "train")[0]).name.removeprefix("train")
    pairs = f"--pairs {corpus}/new/train{ending} --dev-pairs {corpus}/new/dev{ending}"
    assert f"next: dragoman train translator {pairs} -o model" in done.err


def write_formats(directory: Path, pairs: list[tuple[str, str]]) -> dict[str, list[str | Path]]:
    """The same pairs in all formats, and how they are given to a command."""
    for number, language in enumerate(("de", "en")):
        cues = (
            f"{place + 1}\n0:{place // 60:02}:{place % 60:02},000 --> 0:{place // 60:02}:{place % 60:02},9\n{pair[number]}\n"
            for place, pair in enumerate(pairs)
        )
        (directory / f"film.{language}.srt").write_text("\n".join(cues))
    units = "".join(
        f'<tu><tuv xml:lang="de"><seg>{a}</seg></tuv><tuv xml:lang="en"><seg>{b}</seg></tuv></tu>' for a, b in pairs
    )
    (directory / "all.tmx").write_text(f'<tmx><header srclang="de"/><body>{units}</body></tmx>')
    units = "".join(f"<trans-unit><source>{a}</source><target>{b}</target></trans-unit>" for a, b in pairs)
    file = f'<file source-language="de" target-language="en"><body>{units}</body></file>'
    (directory / "all.xlf").write_text(f'<xliff version="1.2">{file}</xliff>')
    entries = "\n".join(f'msgid "{a}"\nmsgstr "{b}"\n' for a, b in pairs)
    (directory / "all.de-en.po").write_text(f'msgid ""\nmsgstr "Language: en\\n"\n\n{entries}')
    film = [directory / f"film.{language}.srt" for language in ("de", "en")]
    names = ("all.tmx", "all.xlf", "all.de-en.po")
    return {"srt": ["--src", film[0], "--tgt", film[1]], **{name: ["--pairs", directory / name] for name in names}}


def test_split_writes_pairs_of_all_formats_as_text(good: Any, tmp_path: Path) -> None:
    lines = random_lines(120, seed=8)
    pairs = [(f"{line} {number % 7}", line.upper()[::-1]) for number, line in enumerate(dict.fromkeys(lines))]
    for name, arguments in write_formats(tmp_path, pairs).items():
        output = tmp_path / f"new-{name}"
        good("split", *arguments, "--dev", 10, "--test", 10, "-o", output)
        parts = [
            [(output / f"{part}.{side}").read_text().splitlines() for side in ("de", "en")]
            for part in ("train", "dev", "test")
        ]
        assert len(list(output.iterdir())) == 6 and [len(part[0]) for part in parts][1:] == [10, 10]
        assert sorted(pair for part in parts for pair in zip(*part, strict=True)) == sorted(pairs), name


def test_split_standard_input_and_columns(good: Any, corpus: Path) -> None:
    text = (corpus / "all.de").read_text()
    good("split", "--text", "-", "--dev", 20, "--test", 0, "-o", corpus / "new", stdin=text)
    parts = [(corpus / "new" / f"{part}.txt").read_text().splitlines() for part in ("train", "dev")]
    assert sorted([*parts[0], *parts[1]]) == sorted(filter(None, text.splitlines())) and len(parts[1]) == 20
    good("split", "--text", corpus / "all.tsv", "--field", 2, "--dev", 20, "--test", 0, "-o", corpus / "rows")
    rows = (corpus / "rows" / "dev.tsv").read_text().splitlines()
    assert rows[0] == "id\tde\ten" and len(rows) == 21 and rows.count(rows[0]) == 1
    good("split", "--text", FORMATS / "film.vtt", "--dev", 1, "--test", 0, "-o", corpus / "film")
    assert "-->" not in (corpus / "film" / "train.txt").read_text()


def test_split_reports_what_cannot_be_held_out(run: Any, good: Any, tmp_path: Path) -> None:
    (tmp_path / "same").write_text("ein hund bellt .\n" * 90 + "".join(f"{word}\n" for word in WORDS[:10]))
    done = good("split", "--text", tmp_path / "same", "--dev", 20, "--test", 0, "-o", tmp_path)
    assert "only 10 of 20 lines can be held out without leaks" in done.err and "90 lines" in done.err
    (tmp_path / "same").write_text("ein hund bellt .\n" * 90)
    outcome = run("split", "--text", tmp_path / "same", "-o", tmp_path / "no")
    assert outcome.code == 2 and is_one_line(outcome.err) and "--similarity 1" in outcome.err
    outcome = run("split", "--text", tmp_path / "same", "--similarity", 1, "-o", tmp_path / "no")
    assert outcome.code == 2 and "a text with more different lines" in outcome.err


def test_split_of_sentences_with_labels(good: Any, tmp_path: Path) -> None:
    for name, lines in zip(("text", "label"), labelled_lines(), strict=True):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    done = good("split", "--src", tmp_path / "text", "--tgt", tmp_path / "label", "-o", tmp_path / "new")
    assert "only the sources were compared: most targets are equal" in done.err
    files = sorted((tmp_path / "new").iterdir())
    assert len(files) == 6 and all({"good", "bad"} < set(p.read_text().split()) for p in files if "label" in p.name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give either --text FILE, or --src FILE and --tgt FILE"),
        (["--text", "DE", "--src", "DE", "--tgt", "EN"], "give either"),
        (["--src", "DE"], "give either"),
        (["--text", "DE", "--dev", "many"], "such as 500 or 5%"),
        (["--text", "DE", "--dev", "-5"], "such as 500 or 5%"),
        (["--text", "DE", "--dev", "nan%"], "such as 500 or 5%"),
        (["--text", "DE", "--dev", "200", "--test", "200"], "has 302 lines; 200 for dev and 200 for test leave none"),
        (["--text", "DE", "--dev", "0", "--test", "0"], "has 302 lines, of which --dev and --test are 0; give"),
        (["--text", "SHORT"], "has 1 line, too few to hold some out; use at least 10"),
        (["--text", "DE", "--seed", "-1"], "seed -1: give 0 or more"),
        (["--pairs", "TSV", "--src-field", "2"], "column 2 is both source and target"),
        (["--pairs", "TSV", "--field", "2"], "--src-field and --tgt-field"),
        (["--src", "TMX", "--tgt", "EN"], "has both sides of sentence pairs; give it alone, with --pairs"),
        (["--text", "DE", "--similarity", "7"], "above 0, at most 1"),
        (["--src", "DE", "--tgt", "SHORT"], "each line must belong to the same line of the other file"),
        (["--text", "DE", "--field", "2"], ".tsv and .jsonl files only"),
        (["--text", "NOWHERE"], "no such file"),
    ],
)
def test_bad_usage_of_split(run: Any, corpus: Path, arguments: list[str], message: str) -> None:
    (corpus / "short").write_text("one\n")
    (corpus / "pairs.tsv").write_text("eins\tone\n" * 50)
    names = {"DE": "all.de", "EN": "all.en", "SHORT": "short", "NOWHERE": "nowhere", "TSV": "pairs.tsv"}
    places = {**names, "TMX": FORMATS / "memory.tmx"}
    before = sorted(corpus.iterdir())
    words = [corpus / places[word] if word in places else word for word in arguments]
    outcome = run("split", *words, "-o", corpus / "new")
    assert (outcome.code, outcome.out) == (2, "") and is_one_line(outcome.err) and message in outcome.err, outcome.err
    assert sorted(corpus.iterdir()) == before


def test_split_replaces_nothing_by_accident(run: Any, good: Any, corpus: Path) -> None:
    (corpus / "dev.de").write_text("mine\n")
    outcome = run("split", "--text", corpus / "all.de", "-o", corpus)
    assert outcome.code == 2 and "dev.de: exists already" in outcome.err and not (corpus / "train.de").exists()
    good("split", "--text", corpus / "all.de", "-o", corpus, "--force")
    assert (corpus / "dev.de").read_text() != "mine\n"
    outcome = run("split", "--text", corpus / "dev.de", "-o", corpus, "--force")
    assert outcome.code == 2 and "would replace the text that is divided" in outcome.err
