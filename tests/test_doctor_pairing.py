"""Texts as a whole: each error is reported at its place, and sound texts have none."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from doctor_texts import pairs, write
from dragoman.core.errors import DataError
from dragoman.data.held_out import hold_out
from dragoman.data.pair_files import Languages
from dragoman.doctor.arrangement import DoctorDocuments
from dragoman.doctor.dev_checks import SAME, Overlap
from dragoman.doctor.documents import Document, FileLayout
from dragoman.doctor.examination import DoctorInput, check_documents, examine
from dragoman.doctor.findings import Finding
from dragoman.doctor.fix import fix_documents
from dragoman.doctor.line_shifts import ShiftedLines, ShiftSearch, paired_lines
from dragoman.doctor.line_similarity import pairing_score
from dragoman.doctor.swap_checks import is_mostly_positive
from dragoman.doctor.text_checks import DoctorLimits
from dragoman.doctor.text_pairing import MIN_PAIRING_SCORE
from dragoman.lab.lab import german_english_lab

Pair = tuple[Sequence[str], Sequence[str]]


def make_documents(train: Pair, dev: Pair | None = None, names: Sequence[str] = ("s", "t")) -> DoctorDocuments:
    parts = []
    for part, sides in (("train", train), ("dev", dev or ())):
        parts.append(
            tuple(
                Document(
                    f"{part}.{name}",
                    part,
                    list(lines),
                    np.arange(len(lines)),
                    FileLayout(f"{part}.{name}", "text", "", lines),
                )
                for name, lines in zip(names, sides, strict=False)
            )
        )
    return DoctorDocuments(parts[0], parts[1])


def errors(documents: DoctorDocuments) -> list[Finding]:
    findings = check_documents(documents, DoctorLimits()).findings
    return [finding for finding in findings if finding.info.severity == "error"]


def kinds(documents: DoctorDocuments) -> list[str]:
    return [finding.kind for finding in errors(documents)]


def shuffled(lines: Sequence[str]) -> list[str]:
    return [lines[line] for line in np.random.default_rng(7).permutation(len(lines))]


SOURCE, TARGET = pairs(2000, seed=3)
TRAIN, DEV = (SOURCE[:1200], TARGET[:1200]), (SOURCE[1200:1500], TARGET[1200:1500])


@pytest.mark.parametrize("size", [300, 1200])
def test_sound_pairs_have_no_errors(size: int) -> None:
    assert kinds(make_documents((SOURCE[:size], TARGET[:size]), DEV)) == []


@pytest.mark.parametrize("size", [300, 1200])
def test_shuffled_sides(size: int) -> None:
    reported = errors(make_documents((SOURCE[:size], shuffled(TARGET[:size]))))
    assert [finding.kind for finding in reported] == ["unpaired"] and "at random" in reported[0].message


def test_the_sentences_of_the_lab() -> None:
    """Its target language is English, its source German: the languages are related."""
    lab = german_english_lab()
    source, target = (lab.sentences(language, 300, seed=1) for language in ("de", "en"))
    assert kinds(make_documents((source, target))) == []
    assert kinds(make_documents((source, shuffled(target)))) == ["unpaired"]


def test_single_words_and_their_spelling() -> None:
    words = sorted({word for line in SOURCE for word in line.split()})
    spelled = [" ".join(word).upper() for word in words]
    assert kinds(make_documents((words, spelled))) == []
    assert kinds(make_documents((words, shuffled(spelled)))) == ["unpaired"]


def test_the_scores_of_random_pairs() -> None:
    """They are as of a normal distribution; pairs that belong together are far from it."""
    source, target, generator = SOURCE[:60], TARGET[:60], np.random.default_rng(1)
    scores = [pairing_score(source, [target[line] for line in generator.permutation(60)], generator) for _ in range(60)]
    values = np.array(scores, np.float64)
    assert abs(values.mean()) < 0.5 and 0.7 < values.std() < 1.4 and values.max() < MIN_PAIRING_SCORE
    assert (pairing_score(source, target, generator) or 0) > 2 * MIN_PAIRING_SCORE


def test_lines_that_are_all_the_same_show_nothing() -> None:
    assert pairing_score(["a b"] * 50, ["c d"] * 50, np.random.default_rng(1)) is None
    assert kinds(make_documents((["a b"] * 300, ["c d"] * 300))) == []


def test_repeated_lines_are_not_shifted() -> None:
    """Every third line is the same: the pairs fit as well if they are shifted by three lines."""
    source, target = (list(side[:3]) * 100 for side in (SOURCE, TARGET))
    assert ShiftSearch.create(source, target, np.random.default_rng(0)).find_segments() == [ShiftedLines(0, 0)]


def test_shuffled_dev_sides() -> None:
    reported = errors(make_documents(TRAIN, (DEV[0][:60], shuffled(DEV[1][:60]))))
    assert [(finding.kind, finding.file) for finding in reported] == [("unpaired", "dev.s")]


@pytest.mark.parametrize("place", [360, 3, 1000])
def test_shifted_lines_with_equal_line_counts(place: int) -> None:
    target = [*TARGET[:place], *TARGET[place + 1 : 1201]]
    reported = errors(make_documents((SOURCE[:1200], target)))
    assert [finding.kind for finding in reported] == ["line-shift"]
    assert reported[0].line is not None and abs(reported[0].line - 1 - place) <= 3


def test_several_shifts() -> None:
    target = [*TARGET[:300], "extra", *TARGET[300:800], *TARGET[803:1200]]
    search = ShiftSearch.create(SOURCE[:1200], target, np.random.default_rng(0))
    segments = search.find_segments()
    assert [segment.shift for segment in segments] == [0, 1, -2]
    assert abs(segments[1].first - 300) <= 3 and abs(segments[2].first - 800) <= 4


def test_lines_after_a_shift_belong_together() -> None:
    source, target = paired_lines([ShiftedLines(0, 0), ShiftedLines(3, -1)], 6, 5)
    assert source.tolist() == [0, 1, 2, 4, 5] and target.tolist() == [0, 1, 2, 3, 4]


def test_fix_pairs_the_lines_again() -> None:
    target = [*TARGET[:360], *TARGET[361:1201]]
    fixed = fix_documents(make_documents((SOURCE[:1200], target)), DoctorLimits())
    translation = dict(zip(SOURCE, TARGET, strict=True))
    kept = list(zip(*(document.lines for document in fixed.documents.train), strict=True))
    assert len(kept) > 1180 and all(translation[source] == line for source, line in kept)
    assert kinds(fixed.documents) == []
    assert {line.finding.kind for line in fixed.dropped} <= {"line-shift", "duplicate-pair", "misaligned", "overlap"}


@pytest.mark.parametrize("first", [400, 700])
def test_sides_exchanged_from_some_line_on(first: int) -> None:
    source = [*SOURCE[:first], *TARGET[first:1200]]
    target = [*TARGET[:first], *SOURCE[first:1200]]
    documents = make_documents((source, target))
    reported = errors(documents)
    assert [finding.kind for finding in reported] == ["swapped-lines"]
    run = reported[0]
    assert run.line is not None and run.last_line is not None  # the smaller part is the exchanged one
    expected = (first + 1, 1200) if first > 600 else (1, first)
    assert abs(run.line - expected[0]) <= 2 and abs(run.last_line - expected[1]) <= 2
    fixed = fix_documents(documents, DoctorLimits()).documents
    assert kinds(fixed) == [] and len({line in set(SOURCE) for line in fixed.train[0].lines}) == 1


def test_exchanged_dev_sides() -> None:
    assert kinds(make_documents(TRAIN, (DEV[1], DEV[0]))) == ["swapped-dev"]
    shifted = errors(make_documents(TRAIN, (DEV[1], [*DEV[0][:90], *DEV[0][91:], DEV[0][0]])))
    assert [(finding.kind, finding.file) for finding in shifted] == [("line-shift", "dev.s"), ("swapped-dev", "dev.s")]


def test_languages_of_file_names() -> None:
    german = ["das ist nicht der hund , und ich bin es auch"] * 30
    english = ["this is not the dog , and i am in it"] * 30
    assert "swapped-names" in kinds(make_documents((english, german), names=("de", "en")))
    assert "swapped-names" not in kinds(make_documents((german, english), names=("de", "en")))
    assert "swapped-names" not in kinds(make_documents((english, german), names=("src", "tgt")))
    exchanged = errors(make_documents((english, german[:-1]), names=("de", "en")))
    assert [finding.kind for finding in exchanged] == ["line-counts", "swapped-names"], "also of different length"


def test_languages_that_are_given(tmp_path: Path) -> None:
    """By options, or by the names of columns."""
    german, english = "das ist nicht der hund , und ich bin es auch", "this is not the dog , and i am in it"
    table = write(tmp_path / "pairs.tsv", ["en\tde", *[f"{german}\t{english}"] * 30])
    source, target = (write(tmp_path / name, [line] * 30) for name, line in (("a", english), ("b", german)))

    def is_swapped(files: DoctorInput) -> bool:
        report = examine(files, with_cost=False)
        return "swapped-names" in {finding.kind for finding in report.findings}

    assert is_swapped(DoctorInput((table, table), fields=("en", "de")))
    assert is_swapped(DoctorInput((source, target), languages=Languages("de", "en-US")))
    assert not is_swapped(DoctorInput((source, target), languages=Languages("en", "de")))
    assert not is_swapped(DoctorInput((source, target)))
    with pytest.raises(DataError, match="--tgt-lang xx"):
        examine(DoctorInput((source, target), languages=Languages("en", "xx")))


def test_most_of_dev_in_train() -> None:
    sources, targets = list(SOURCE[100:200]), list(TARGET[100:200])
    reported = errors(make_documents(TRAIN, (sources, targets)))
    assert [finding.kind for finding in reported] == ["dev-in-train"] and "100 of 100" in reported[0].message
    few = (sources[:30] + list(DEV[0][:70]), targets[:30] + list(DEV[1][:70]))
    assert kinds(make_documents(TRAIN, few)) == [], "a third is a warning"


@pytest.mark.parametrize(
    ("change_source", "change_target", "message"),
    [
        (str, lambda line: line[::-1], "0 the same, 100 with another translation, 0 nearly the same"),
        (lambda line: f"{line.capitalize()} !", str, "0 the same, 0 with another translation, 100 nearly the same"),
        (lambda line: f"{line} ga", str, "0 the same, 0 with another translation, 100 nearly the same"),
    ],
)
def test_most_of_dev_is_in_train_with_changes(change_source: Any, change_target: Any, message: str) -> None:
    """`--fix` drops these lines from train."""
    lines = [line for line in range(1200) if len(SOURCE[line]) > 40][:100]
    dev = [change_source(SOURCE[line]) for line in lines], [change_target(TARGET[line]) for line in lines]
    documents = make_documents(TRAIN, dev)
    reported = [finding for finding in errors(documents) if finding.kind == "dev-in-train"]
    assert len(reported) == 1 and message in reported[0].message
    fixed = fix_documents(documents, DoctorLimits()).documents
    assert "dev-in-train" not in kinds(fixed)
    assert not {SOURCE[line] for line in lines} & set(fixed.train[0].lines)


def test_each_dev_line_is_reported_as_what_it_is() -> None:
    long = max(range(1200), key=lambda line: len(SOURCE[line]))
    dev = [SOURCE[5], SOURCE[7], f"{SOURCE[long]} ga", "", *DEV[0][:6]], [TARGET[5], TARGET[8], *DEV[1][:8]]
    findings = list(Overlap.find(make_documents(TRAIN).train, make_documents(TRAIN, dev).dev).findings())
    assert [(finding.kind, finding.file, finding.line) for finding in findings] == [
        ("overlap", "train.s", 6),
        ("overlap-source", "dev.s", 2),
        ("overlap-near", "dev.s", 3),
    ]
    assert findings[0].message == "the same as dev.s:1" and "train.s:8, with another target" in findings[1].message
    assert findings[2].message.endswith(f"train.s:{long + 1}")


def test_a_text_that_repeats_itself_may_have_dev_lines_in_train() -> None:
    """Two thirds of the lines occur twice: the same share of a dev text that is drawn at random is in train."""
    lines = [*SOURCE[:300], *SOURCE[:200]]
    train = make_documents((lines, lines)).train[:1]

    def level(dev: Sequence[str]) -> int:
        return Overlap.find(train, make_documents((dev, dev)).train[:1]).dominant_level()

    assert level([*SOURCE[:80], *DEV[0][:20]]) == 0, "as expected"
    assert level(SOURCE[200:300]) == SAME, "lines that occur once in train are not expected in dev"
    assert level([*SOURCE[:40], *DEV[0][:60]]) == 0, "less than half"


def test_a_source_with_several_translations_may_be_in_dev() -> None:
    """Every source has three translations: a dev text drawn at random has its sources in train."""
    sources = [line for line in SOURCE[:100] for _ in range(3)]
    targets = [" ".join(random.Random(number).sample(TARGET[number // 3].split(), 3)) for number in range(300)]
    dev = SOURCE[:100], [" ".join(reversed(line.split())) for line in TARGET[:100]]
    train = make_documents((sources, targets)).train
    assert Overlap.find(train, make_documents(dev).train).dominant_level() == 0
    same = sources[:100], targets[:100]
    assert Overlap.find(train, make_documents(same).train).dominant_level() == SAME


def test_a_divided_text_has_no_overlap() -> None:
    """`dragoman split` and the doctor compare lines in the same way."""
    lines = [f"{line} {word}" for line in SOURCE[:200] for word in ("ga", "mobi")]
    train, dev = hold_out([lines], size=40)
    texts = ([lines[line] for line in part.tolist()] for part in (train, dev))
    documents = [make_documents((text, text)).train[:1] for text in texts]
    assert not Overlap.find(documents[0], documents[1]).levels.any()


def test_the_sign_test() -> None:
    assert not is_mostly_positive(np.array([1.0] * 9)) and is_mostly_positive(np.array([1.0] * 10))
    assert not is_mostly_positive(np.zeros(50))
