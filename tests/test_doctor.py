"""Checks of lines and pairs: each problem is reported at its line, and sound text has no findings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from doctor_texts import SOURCE, TARGET, pairs, vocabulary, write
from dragoman.core.errors import DataError
from dragoman.data.corpus import Corpus
from dragoman.doctor.alignment_checks import LinePairScorer, _is_surely_wrong, check_alignment, word_sets
from dragoman.doctor.arrangement import DoctorDocuments
from dragoman.doctor.documents import Document, FileLayout
from dragoman.doctor.examination import DoctorInput, check_documents, examine
from dragoman.doctor.findings import DROP, LEAVE
from dragoman.doctor.text_checks import DoctorLimits, file_statistics, style_findings, writing_habits
from dragoman.doctor.training_cost import MAX_TRIAL_TOKENS, _extrapolate, estimate_training_cost
from dragoman.ngram.model import NgramModel

RUSSIAN = "Пётр читает книгу в саду"

Pair = tuple[Sequence[str], Sequence[str]]


def make_document(lines: Sequence[str], name: str = "text", part: str = "train") -> Document:
    return Document(name, part, list(lines), np.arange(len(lines)), FileLayout(name, "text", "", lines))


def text_documents(lines: Sequence[str], dev: Sequence[str] = ()) -> DoctorDocuments:
    return DoctorDocuments((make_document(lines),), (make_document(dev, "dev", "dev"),) if dev else ())


def pair_documents(source: Sequence[str], target: Sequence[str], dev: Pair | None = None) -> DoctorDocuments:
    dev_documents = (make_document(dev[0], "dev.s", "dev"), make_document(dev[1], "dev.t", "dev")) if dev else ()
    return DoctorDocuments((make_document(source, "s"), make_document(target, "t")), dev_documents)


def lines_with(kind: str, documents: DoctorDocuments, limits: DoctorLimits | None = None) -> list[int | None]:
    """The line numbers of all findings of a kind."""
    findings = check_documents(documents, limits or DoctorLimits()).findings
    return [finding.line for finding in findings if finding.kind == kind]


def kinds(documents: DoctorDocuments) -> set[str]:
    return {finding.kind for finding in check_documents(documents, DoctorLimits()).findings}


# -- one text ---------------------------------------------------------------------------------------------------------


def test_file_statistics() -> None:
    result = file_statistics(make_document(["a b", "", "b c d", "é"]))
    assert (result.lines, result.tokens, result.types, result.characters) == (4, 6, 5, 9)
    assert (result.mean, result.longest, result.empty, result.once) == (1.5, 3, 1, 4)


def test_unusual_lines() -> None:
    documents = text_documents(["a b c", "", "x" * 61, "w " * 250 + "w", "a b c", "d"])
    assert lines_with("empty", documents) == [2]
    assert lines_with("long-word", documents) == [3]
    assert lines_with("long-line", documents) == [4]
    assert lines_with("duplicate", documents) == [5]
    assert lines_with("duplicate", documents, DoctorLimits(keep_duplicates=True)) == []
    assert lines_with("long-line", documents, DoctorLimits(max_words=251)) == []


def test_lines_in_another_script() -> None:
    latin = list(pairs()[0][:200])
    assert lines_with("odd-script", text_documents([*latin[:50], RUSSIAN, *latin[50:]])) == [51]
    assert "odd-script" not in kinds(text_documents([*latin[:50], "za Ωμέγα go du ka", *latin[50:]]))
    mixed = [RUSSIAN if number % 3 else line for number, line in enumerate(latin)]
    assert "odd-script" not in kinds(text_documents(mixed)), "a text in two scripts has no other script"


def test_a_line_in_another_language() -> None:
    lines = list(pairs()[0])
    lines[700] = pairs()[1][3]
    assert lines_with("odd-language", text_documents(lines)) == [701]
    assert "odd-language" not in kinds(text_documents(pairs()[0]))


def test_remarks_about_texts_that_are_too_short() -> None:
    remarks = check_documents(pair_documents(*(side[:50] for side in pairs())), DoctorLimits()).remarks
    assert all(any(check in remark for remark in remarks) for check in ("misaligned pairs", "swapped sides"))


def test_sorted_lines() -> None:
    assert "sorted" in kinds(text_documents(sorted(pairs()[0], key=len)))
    assert "sorted" not in kinds(text_documents(pairs()[0]))


def test_text_without_spaces() -> None:
    assert "unsegmented" in kinds(text_documents(["これは文章です。そしてこれもまた文章なのです。"] * 3))


def test_mixed_styles() -> None:
    def styles(lines: list[str]) -> str:
        return " / ".join(finding.message for finding in style_findings(make_document(lines)))

    assert "apostrophes" in styles(["it's"] * 20 + ["it’s"] * 20)
    assert styles(["it's"] * 2000 + ["it’s"] * 6) == "", "exceptions are not reported"
    assert styles(["„so“ sagte er"] * 30) == "", "the two marks of one style"
    mixed = styles(["The end ."] * 100 + ["the end."] * 100)
    assert "50% of the lines begin with a capital letter" in mixed and "50% of the lines have a space" in mixed


def test_words_that_are_always_capitalised_do_not_count_as_a_habit() -> None:
    lines = ["I see the dog", "the dog sees me", "what do I see"] * 200
    assert writing_habits(make_document(lines))["begin with a capital letter"] == 0
    mixed = ["The dog sees me", "the dog sees me"] * 300
    assert writing_habits(make_document(mixed))["begin with a capital letter"] == 0.5


# -- pairs ------------------------------------------------------------------------------------------------------------


def test_the_artificial_languages_share_no_word() -> None:
    assert not set(vocabulary(SOURCE, 1)) & set(vocabulary(TARGET, 2))


def test_sound_pairs_have_no_findings() -> None:
    assert kinds(pair_documents(*pairs())) <= {"duplicate-pair"}


def test_misaligned_pairs() -> None:
    source, target = map(list, pairs())
    moved = [100, 300, 500, 700, 900]
    for line, other in zip(moved, [*moved[1:], moved[0]], strict=True):
        target[line] = pairs()[1][other]
    assert lines_with("misaligned", pair_documents(source, target)) == [line + 1 for line in moved]


def test_only_pairs_that_are_surely_wrong_are_dropped() -> None:
    """The ranks of wrong pairs among random pairs are anywhere, those of free translations are high."""
    anywhere, high = np.linspace(0, 1, 40), np.linspace(0.01, 1, 200) ** 0.1
    assert _is_surely_wrong(anywhere).all()
    assert not _is_surely_wrong(high).any()
    mixed = np.concatenate([anywhere, high])
    is_dropped = _is_surely_wrong(mixed)
    assert is_dropped[:20].all() and not is_dropped[40:].any() and not is_dropped[20:40].all()
    assert not _is_surely_wrong(anywhere[::10]).any(), "four pairs are too few"


def test_misaligned_pairs_are_kept_if_there_are_few() -> None:
    source, target = map(list, pairs())
    target[100], target[300], target[500] = target[300], target[500], target[100]
    findings = check_documents(pair_documents(source, target), DoctorLimits()).findings
    assert [(f.line, f.fix) for f in findings if f.kind == "misaligned"] == [(line, LEAVE) for line in (101, 301, 501)]


def test_lengths_in_lists_of_words() -> None:
    """An abbreviation has a long pronunciation, and some long words a short one."""
    words = [*vocabulary(SOURCE, 1)[:100], "cd", "mp", "featherstonehaugh"]
    phones = [*(" ".join(word) for word in words[:100]), "ts e: d e:", "m a: S o t p E r t s", "f"]
    assert not {"length-ratio", "misaligned"} & kinds(pair_documents(words, phones))
    lemmas = [*words[:100], "en küçük ortak kat"]
    assert "untranslated" not in kinds(pair_documents(lemmas, [*(f"{word}en" for word in words[:100]), lemmas[-1]]))


def test_lengths_in_scripts_without_spaces() -> None:
    """A long sentence has many characters and, as all others, no space."""
    japanese = ["これは私の本です。"] * 30 + ["これは私の本ではありませんが、あなたの本でもないと思います。"]
    english = ["this is my book ."] * 30 + ["this is not my book , but i also do not think that it is your book ."]
    assert "length-ratio" not in kinds(pair_documents(japanese, english))
    assert lines_with("length-ratio", pair_documents([*japanese, "本"], [*english, english[-1]])) == [32]


def test_only_very_different_lengths_are_dropped() -> None:
    source, target = map(list, pairs())
    source[10], target[10] = " ".join(source[10].split()[:4]), " ".join([*target[10].split(), *target[11].split()][:12])
    source[20], target[20] = source[20].split()[0], f"{target[20]} {target[21]}"
    findings = check_documents(pair_documents(source, target), DoctorLimits(max_ratio=2)).findings
    fixes = {f.line: f.fix for f in findings if f.kind == "length-ratio"}
    assert fixes == {11: LEAVE, 21: DROP}


@pytest.mark.parametrize("shift", [1, -2])
def test_a_shifted_run(shift: int) -> None:
    source, target = map(list, pairs())
    target[400:440] = target[400 + shift : 440 + shift]
    findings = check_alignment(make_document(source, "s"), make_document(target, "t")).findings
    run = next(finding for finding in findings if finding.kind == "shifted")
    assert run.line is not None and run.last_line is not None
    assert abs(run.line - 401) <= 2 and abs(run.last_line - 440) <= 2
    assert ("1 line later" if shift == 1 else "2 lines earlier") in run.message


def test_a_pair_does_not_support_itself() -> None:
    """Two rare words that occur together only in wrong pairs are not evidence: the counts of the pair itself are removed."""
    source, target = map(list, pairs())
    source[10] += " quux quux quux"
    target[10], target[20] = target[20] + " blah", target[10]
    source[30], target[30] = source[30] + " quux", target[30] + " blub"
    source[40], target[40] = source[40] + " other", target[40] + " blah"
    lines = np.arange(len(source))
    scores = LinePairScorer.train(word_sets(source), word_sets(target)).scores(lines, lines)
    assert scores[10] < 0.5 < np.median(scores)


def test_pairs_of_which_only_one_side_has_known_words() -> None:
    """There is nothing to train on."""
    source = [*(f"s{number}" for number in range(200)), *["same words"] * 200]
    target = [*["same words"] * 200, *(f"t{number}" for number in range(200))]
    remarks = check_alignment(make_document(source, "s"), make_document(target, "t")).remarks
    assert len(remarks) == 1 and "too few words" in remarks[0]


def test_a_sentence_with_several_translations_is_not_a_shifted_run() -> None:
    source, target = map(list, pairs())
    target[400:412] = [target[399]] * 12
    assert "shifted" not in kinds(pair_documents(source, target))


@pytest.mark.parametrize("repeated", ["source", "target"])
def test_equal_neighbours_do_not_support_each_other(repeated: str) -> None:
    """Source line a was trained on with target line a. If target line b is the same as target line a, source line a must
    not score higher with line b: otherwise whole runs of a sorted text would seem to be shifted."""
    source, target = map(list, pairs())
    source_words, target_words = "dagu doga duga dogo dugo dago", "nefi nifi newi nawi nafi nife"  # otherwise unrelated
    source[501], target[501] = f"{source[501]} {source_words}", f"{target[501]} {target_words}"
    source[700], target[800] = f"{source[700]} {source_words}", f"{target[800]} {target_words}"
    lines = source if repeated == "source" else target
    lines[500] = lines[501]
    neighbor = ([500], [501]) if repeated == "source" else ([501], [500])
    scorer = LinePairScorer.train(word_sets(source), word_sets(target))
    score, neighbor_score = (
        scorer.scores(np.array(first), np.array(second))[0] for first, second in (([501], [501]), neighbor)
    )
    assert neighbor_score <= score + 0.05


def test_lines_in_the_wrong_language() -> None:
    source, target = map(list, pairs())
    target[100] = source[600]
    target[200] = source[200]
    source[300], target[300] = target[300], source[300]
    documents = pair_documents(source, target)
    assert lines_with("wrong-language", documents) == [101]
    assert lines_with("untranslated", documents) == [201]
    assert lines_with("swapped", documents) == [301]
    assert lines_with("misaligned", documents) == [], "a more specific finding replaces it"


@pytest.mark.parametrize(("lines", "copies"), [(50, 20), (1200, 720), (1200, 1200)])
def test_copied_lines(lines: int, copies: int) -> None:
    source, target = (list(side[:lines]) for side in pairs())
    target[:copies] = source[:copies]
    findings = check_documents(pair_documents(source, target), DoctorLimits()).findings
    by_kind = {kind: [f for f in findings if f.kind == kind] for kind in ("untranslated", "same-text")}
    assert [finding.line for finding in by_kind["untranslated"]] == list(range(1, copies + 1))
    messages = [finding.message for finding in by_kind["same-text"]]
    assert messages == [f"{copies:,} of {lines:,} pairs are the same in s and t"]
    assert {"swapped", "wrong-language"}.isdisjoint(finding.kind for finding in findings)


def test_a_few_copies_do_not_make_the_sides_the_same_text() -> None:
    source, target = (list(side[:100]) for side in pairs())
    target[:20] = source[:20]
    documents = pair_documents(source, target)
    assert "same-text" not in kinds(documents) and len(lines_with("untranslated", documents)) == 20
    assert "same-text" not in kinds(pair_documents(source[:19], source[:19])), "too few pairs"


def test_single_words_may_be_the_same_on_both_sides() -> None:
    """As in inflection, where most lemmas are also forms; but not all of them."""
    words = vocabulary(SOURCE, 1)[:100]
    forms = [word if number % 4 else f"{word}en" for number, word in enumerate(words)]
    assert not {"same-text", "untranslated"} & kinds(pair_documents(words, forms))
    assert "same-text" in kinds(pair_documents(words, words))


def test_sentences_without_spaces_that_are_the_same_on_both_sides() -> None:
    japanese = "これは私の本ではありません。"
    documents = pair_documents([japanese, "東京大学"], [japanese, "東京大学"])
    assert lines_with("untranslated", documents) == [1], "a name may be the same"


def test_other_problems_are_found_among_many_copies() -> None:
    source, target = map(list, pairs(3000))
    target[:1800] = source[:1800]
    source[2500], target[2500] = target[2500], source[2500]
    assert lines_with("swapped", pair_documents(source, target)) == [2501]


def test_names_and_numbers_may_be_the_same_on_both_sides() -> None:
    source, target = map(list, pairs())
    source[100] = target[100] = "Miri Zatopek 1984"
    source[101] = target[101] = "42 , 43 ."
    assert not {"untranslated", "wrong-language", "swapped"} & kinds(pair_documents(source, target))


def test_a_remark_about_the_same_language_on_both_sides() -> None:
    source = list(pairs()[0])
    result = check_documents(pair_documents(source, [f"{line} {line.split()[0]}" for line in source]), DoctorLimits())
    assert any("too similar" in remark for remark in result.remarks)
    assert not {"untranslated", "wrong-language", "swapped"} & {finding.kind for finding in result.findings}


def test_empty_long_and_repeated_pairs() -> None:
    source, target = map(list, pairs())
    target[5], source[6], target[7] = "", "", " ".join(pairs()[1][:3])
    source[8] = target[8] = ""
    source[20], target[20] = source[19], target[19]
    documents = pair_documents(source, target)
    assert lines_with("empty-side", documents) == [6, 7, 9]
    assert lines_with("length-ratio", documents) == [8]
    assert 21 in lines_with("duplicate-pair", documents)
    assert lines_with("long-pair", documents, DoctorLimits(max_words=20)) == [8]


@pytest.mark.parametrize("removed", [700, 3])
def test_where_files_of_different_length_diverge(removed: int) -> None:
    source, target = map(list, pairs())
    del target[removed]
    result = check_documents(pair_documents(source, target), DoctorLimits())
    assert [finding.kind for finding in result.findings] == ["line-counts"]
    assert f"has {len(source):,} lines" in result.findings[0].message
    line = result.findings[0].line
    assert line is not None and abs(line - 1 - removed) <= 2
    short = check_documents(pair_documents(source, target[:10]), DoctorLimits()).findings
    assert [(finding.kind, finding.line) for finding in short if finding.kind != "sorted"] == [("line-counts", None)]


# -- dev --------------------------------------------------------------------------------------------------------------


def test_dev_lines_in_the_training_text() -> None:
    source, target = (list(side[:50]) for side in pairs())
    new, new_target = (list(side[100:105]) for side in pairs())
    assert lines_with("overlap", text_documents(source, dev=[source[7], "", f"{source[3]} ba", *new])) == [8]
    documents = pair_documents(source, target, dev=([source[7], source[9], *new], [target[7], target[8], *new_target]))
    assert lines_with("overlap", documents) == [8] and lines_with("overlap-source", documents) == [2]


def test_a_dev_text_that_differs_from_the_training_text() -> None:
    source, target = pairs()
    assert "unknown-words" in kinds(text_documents(source[:200], dev=target[:20]))
    capital = [f"{line.capitalize()} ." for line in source]
    assert "dev-differs" in kinds(text_documents(capital[:200], dev=[line.lower() for line in capital[200:400]]))
    assert "dev-differs" not in kinds(text_documents(capital[:200], dev=capital[200:400]))


def test_statistics_of_pairs_and_dev(tmp_path) -> None:
    source, target = pairs()
    train = [write(tmp_path / name, lines) for name, lines in (("s", source), ("t", target))]
    dev = [write(tmp_path / name, lines) for name, lines in (("ds", ["new", source[0]]), ("dt", ["new", target[1]]))]
    report = examine(DoctorInput(tuple(train), tuple(dev)), with_cost=False)
    assert report.pairs is not None
    assert report.pairs.pairs == len(source) and report.pairs.word_ratio == pytest.approx(1)
    assert report.pairs.other_target == 0 and report.pairs.identical == 0
    first = report.dev[0]
    assert (first.lines, first.in_train, first.source_in_train) == (2, 0, 1)
    assert first.unknown_tokens == pytest.approx(1 / (1 + len(source[0].split())))


@pytest.mark.parametrize(
    ("train", "dev"), [((), ()), (("a", "b", "c"), ()), (("a",), ("b", "c")), (("a", "b"), ("c",))]
)
def test_wrong_numbers_of_files_are_rejected(train: tuple[str, ...], dev: tuple[str, ...]) -> None:
    with pytest.raises(DataError):
        DoctorInput(train, dev)


# -- training cost ----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:order")
def test_a_small_text_is_trained_on() -> None:
    lines = list(pairs()[0][:200])
    cost = estimate_training_cost(make_document(lines))
    model = NgramModel.train(Corpus.from_sentences(lines))
    assert cost is not None and cost.ngrams == sum(model.table.trie.sizes())
    assert cost.basis == "trained on the whole text" and cost.tokens == cost.tokens_tried
    assert cost.seconds > 0 and cost.memory > cost.disk > 0
    assert estimate_training_cost(make_document(["", ""])) is None


@pytest.mark.filterwarnings("ignore:order")
def test_the_cost_of_a_large_text_is_extrapolated(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = list(pairs()[0])
    assert MAX_TRIAL_TOKENS > 4000
    monkeypatch.setattr("dragoman.doctor.training_cost.MAX_TRIAL_TOKENS", 4000)
    cost = estimate_training_cost(make_document(lines))
    model = NgramModel.train(Corpus.from_sentences(lines))
    assert cost is not None and cost.tokens_tried <= 4000 < cost.tokens and "extrapolated" in cost.basis
    assert cost.ngrams == pytest.approx(sum(model.table.trie.sizes()), rel=0.1)


def test_extrapolation_with_a_decreasing_exponent() -> None:
    linear = _extrapolate([np.array([1.0]), np.array([2.0]), np.array([4.0])], 3.0)
    assert linear.tolist() == pytest.approx([12])
    constant, decreasing = (
        _extrapolate([np.array([1.0]), np.array([b]), np.array([c])], 4.0)[0] for b, c in ((1.5, 2.25), (1.5, 2.1))
    )
    assert constant == pytest.approx(2.25 * 1.5**2) and 2.1 < decreasing < 2.1 * 1.4**2
