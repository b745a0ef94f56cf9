"""Lines and pairs: each fault is found where it was put, and sound text is left in peace."""

import numpy as np
import pytest

from doctor_texts import SOURCE, TARGET, pairs, vocabulary, write
from dragoman.core.errors import DataError
from dragoman.data.corpus import Corpus
from dragoman.doctor.alignment_checks import LinePairScorer, check_alignment, divergence_line, word_sets
from dragoman.doctor.cost import WHOLE, _extrapolated, estimate_training_cost
from dragoman.doctor.examination import DoctorDocuments, DoctorInput, check_documents, examine
from dragoman.doctor.reader import Document, FileLayout
from dragoman.doctor.single_text import DoctorLimits, TextStatistics, file_statistics, style_findings, writing_habits
from dragoman.ngram.model import NgramModel

FOREIGN = "Пётр читает книгу в саду"


def document(lines, name="text", part="train"):
    return Document(name, part, list(lines), np.arange(len(lines)), FileLayout(name, "text", "", lines))


def found(material, kind=None, limits=None):
    findings = check_documents(material, limits or DoctorLimits()).findings
    return [f.line for f in findings if f.kind == kind] if kind else {f.kind for f in findings}


def one(lines, dev=()):
    return DoctorDocuments((document(lines),), (document(dev, "dev", "dev"),) if dev else ())


def two(source, target, dev=None):
    held = (document(dev[0], "dev.s", "dev"), document(dev[1], "dev.t", "dev")) if dev else ()
    return DoctorDocuments((document(source, "s"), document(target, "t")), held)


# -- one text ---------------------------------------------------------------------------------------------------------


def test_figures():
    result = file_statistics(TextStatistics.from_document(document(["a b", "", "b c d", "é"])))
    assert (result.lines, result.tokens, result.types, result.characters) == (4, 6, 5, 9)
    assert (result.mean, result.longest, result.empty, result.once) == (1.5, 3, 1, 4)


def test_lines_that_stand_out():
    lines = ["a b c", "", "x" * 61, "w " * 250 + "w", "a b c", "d"]
    material = one(lines)
    assert found(material, "empty") == [2]
    assert found(material, "long-word") == [3]
    assert found(material, "long-line") == [4]
    assert found(material, "duplicate") == [5]
    assert found(material, "duplicate", DoctorLimits(keep_duplicates=True)) == []
    assert found(material, "long-line", DoctorLimits(max_words=251)) == []


def test_lines_in_another_script():
    latin = list(pairs()[0][:200])
    assert found(one([*latin[:50], FOREIGN, *latin[50:]]), "odd-script") == [51]
    assert "odd-script" not in found(one([*latin[:50], "za Ωμέγα go du ka", *latin[50:]]))  # a word is no line
    mixed = [FOREIGN if number % 3 else line for number, line in enumerate(latin)]
    assert "odd-script" not in found(one(mixed))  # a text in two scripts has no other


def test_a_line_in_another_language():
    lines = list(pairs()[0])
    lines[700] = pairs()[1][3]
    assert found(one(lines), "odd-language") == [701]
    assert "odd-language" not in found(one(pairs()[0]))


def test_too_little_text_is_said_to_be_so():
    remarks = check_documents(two(*(side[:50] for side in pairs())), DoctorLimits()).remarks
    assert all(any(missed in remark for remark in remarks) for missed in ("misaligned pairs", "swapped sides"))


def test_a_text_sorted_by_length():
    lines = sorted(pairs()[0], key=len)
    assert "sorted" in found(one(lines)) and "sorted" not in found(one(pairs()[0]))


def test_words_that_are_hardly_separated():
    assert "unsegmented" in found(one(["これは文章です。そしてこれもまた文章なのです。"] * 3))


def test_two_ways_of_writing():
    def styles(lines):
        return " / ".join(finding.message for finding in style_findings(document(lines)))

    assert "apostrophes" in styles(["it's"] * 20 + ["it’s"] * 20)
    assert styles(["it's"] * 2000 + ["it’s"] * 6) == ""
    assert styles(["„so“ sagte er"] * 30) == ""  # one way, of two signs
    half = styles(["The end ."] * 100 + ["the end."] * 100)
    assert "50% of the lines begin with a capital letter" in half and "50% of the lines have a space" in half


# -- pairs ------------------------------------------------------------------------------------------------------------


def test_sound_pairs_are_left_in_peace():
    assert found(two(*pairs())) <= {"duplicate-pair"}


def test_pairs_with_other_targets():
    source, target = map(list, pairs())
    moved = [100, 300, 500, 700, 900]
    for line, other in zip(moved, [*moved[1:], moved[0]], strict=True):
        target[line] = pairs()[1][other]
    assert found(two(source, target), "misaligned") == [line + 1 for line in moved]


@pytest.mark.parametrize("step", [1, -2])
def test_a_run_that_is_out_of_step(step):
    source, target = map(list, pairs())
    target[400:440] = target[400 + step : 440 + step]
    run = next(f for f in check_alignment(document(source, "s"), document(target, "t")).findings if f.kind == "shifted")
    direction = "1 line later" if step == 1 else "2 lines earlier"
    assert abs(run.line - 401) <= 2 and abs(run.last_line - 440) <= 2 and direction in run.message


def test_the_pairs_themselves_do_not_vouch_for_themselves():
    """Two rare words that meet in wrong pairs alone are no evidence: a pair's own share is taken out."""
    source, target = map(list, pairs())
    source[10] += " quux quux quux"
    target[10], target[20] = target[20] + " blah", target[10]
    source[30], target[30] = source[30] + " quux", target[30] + " blub"
    source[40], target[40] = source[40] + " other", target[40] + " blah"
    lines = np.arange(len(source))
    result = LinePairScorer.train(word_sets(source), word_sets(target)).scores(lines, lines)
    assert result[10] < 0.5 < np.median(result)


def test_a_sentence_with_several_translations_is_no_run_out_of_step():
    source, target = map(list, pairs())
    target[400:412] = [target[399]] * 12  # so do corpora of short sentences; here all but one are wrong
    assert "shifted" not in found(two(source, target))


@pytest.mark.parametrize("alike", ["sources", "targets"])
def test_neighbours_that_are_alike_do_not_vouch_for_each_other(alike):
    """Source line a was learned beside target line a. If target line b says the same, a must not look better beside b
    than beside its own: in a sorted text whole runs would seem to be out of step."""
    source, target = map(list, pairs())
    rare, strange = "dagu doga duga dogo dugo dago", "nefi nifi newi nawi nafi nife"  # known, but not of each other
    source[501], target[501] = f"{source[501]} {rare}", f"{target[501]} {strange}"
    source[700], target[800] = f"{source[700]} {rare}", f"{target[800]} {strange}"
    same = source if alike == "sources" else target
    same[500] = same[501]
    mixed = ([500], [501]) if alike == "sources" else ([501], [500])  # the neighbour instead of the line itself
    scorer = LinePairScorer.train(word_sets(source), word_sets(target))
    own, beside = (scorer.scores(np.array(one), np.array(two))[0] for one, two in (([501], [501]), mixed))
    assert beside <= own + 0.05


def test_lines_in_the_wrong_language():
    source, target = map(list, pairs())
    target[100] = source[600]  # a source sentence among the targets
    target[200] = source[200]  # copied
    source[300], target[300] = target[300], source[300]
    material = two(source, target)
    assert found(material, "wrong-language") == [101]
    assert found(material, "untranslated") == [201]
    assert found(material, "swapped") == [301]
    assert found(material, "misaligned") == []  # something plainer is known of these


@pytest.mark.parametrize(("lines", "copies"), [(50, 20), (200, 100), (1200, 720), (1200, 1200)])
def test_copies_are_found_however_many_there_are(lines, copies):
    source, target = (list(side[:lines]) for side in pairs())
    target[:copies] = source[:copies]
    diagnosis = check_documents(two(source, target), DoctorLimits())
    by_kind = {kind: [f for f in diagnosis.findings if f.kind == kind] for kind in ("untranslated", "same-text")}
    assert [f.line for f in by_kind["untranslated"]] == list(range(1, copies + 1))
    assert [f.message for f in by_kind["same-text"]] == [f"{copies:,} of {lines:,} pairs are the same in s and t"]
    assert {"swapped", "wrong-language"}.isdisjoint(f.kind for f in diagnosis.findings)


def test_a_few_copies_do_not_make_the_sides_the_same_text():
    source, target = (list(side[:100]) for side in pairs())
    target[:20] = source[:20]
    assert "same-text" not in found(two(source, target)) and len(found(two(source, target), "untranslated")) == 20
    assert "same-text" not in found(two(source[:19], source[:19]))  # too few to say so


def test_other_faults_are_seen_beside_many_copies():
    source, target = map(list, pairs(3000))
    target[:1800] = source[:1800]
    source[2500], target[2500] = target[2500], source[2500]
    assert found(two(source, target), "swapped") == [2501]


def test_names_and_numbers_may_be_the_same_on_both_sides():
    source, target = map(list, pairs())
    source[100] = target[100] = "Miri Zatopek 1984"
    source[101] = target[101] = "42 , 43 ."
    assert not {"untranslated", "wrong-language", "swapped"} & found(two(source, target))


def test_one_language_on_both_sides_is_said_to_be_so():
    source = list(pairs()[0])
    diagnosis = check_documents(two(source, [f"{line} {line.split()[0]}" for line in source]), DoctorLimits())
    assert any("too similar" in remark for remark in diagnosis.remarks)
    assert not {"untranslated", "wrong-language", "swapped"} & {f.kind for f in diagnosis.findings}


def test_empty_overlong_and_repeated_pairs_and_lengths():
    source, target = map(list, pairs())
    target[5], source[6], target[7] = "", "", " ".join(pairs()[1][:3])
    source[8] = target[8] = ""
    source[20], target[20] = source[19], target[19]
    material = two(source, target)
    assert found(material, "empty-side") == [6, 7, 9]
    assert found(material, "length-ratio") == [8]
    assert 21 in found(material, "duplicate-pair")
    assert found(material, "long-pair", DoctorLimits(max_words=20)) == [8]


@pytest.mark.parametrize("lost", [700, 3])
def test_where_files_of_different_length_go_apart(lost):
    source, target = map(list, pairs())
    del target[lost]
    assert abs(divergence_line(source, target) - lost) <= 2
    diagnosis = check_documents(two(source, target), DoctorLimits())
    assert [f.kind for f in diagnosis.findings] == ["line-counts"] and len(diagnosis.remarks) == 1
    assert f"has {len(source):,} lines" in diagnosis.findings[0].message
    assert divergence_line(source, target[:10]) is None


# -- dev --------------------------------------------------------------------------------------------------------------


def test_dev_lines_in_the_training_text():
    lines = list(pairs()[0][:50])
    material = one(lines, dev=[lines[7], "", lines[3] + " ba"])
    assert found(material, "overlap") == [8]
    source, target = (list(side[:50]) for side in pairs())
    material = two(source, target, dev=([source[7], source[9]], [target[7], target[8]]))
    assert found(material, "overlap") == [8] and found(material, "overlap-source") == [2]


def test_a_dev_text_unlike_the_training_text():
    source, target = pairs()
    assert found(one(source[:200], dev=target[:20])) >= {"unknown-words"}
    capital = [f"{line.capitalize()} ." for line in source]
    kinds = found(one(capital[:200], dev=[line.lower() for line in capital[200:400]]))
    assert "dev-differs" in kinds and "dev-differs" not in found(one(capital[:200], dev=capital[200:400]))


def test_figures_of_pairs_and_dev(tmp_path):
    source, target = pairs()
    paths = [write(tmp_path / name, lines) for name, lines in (("s", source), ("t", target))]
    dev = [write(tmp_path / name, lines) for name, lines in (("ds", ["new", source[0]]), ("dt", ["new", target[1]]))]
    report = examine(DoctorInput(tuple(paths), tuple(dev)), with_cost=False)
    assert report.pairs.pairs == len(source) and report.pairs.word_ratio == pytest.approx(1)
    assert report.pairs.other_target == 0 and report.pairs.identical == 0
    first = report.dev[0]
    assert (first.lines, first.in_train, first.source_in_train) == (2, 0, 1)
    assert first.unknown_tokens == pytest.approx(1 / (1 + len(source[0].split())))


@pytest.mark.parametrize(
    ("train", "dev"), [((), ()), (("a", "b", "c"), ()), (("a",), ("b", "c")), (("a", "b"), ("c",))]
)
def test_files_that_do_not_go_together(train, dev):
    with pytest.raises(DataError):
        DoctorInput(train, dev)


# -- cost -------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:order")
def test_the_cost_of_a_small_text_is_counted():
    lines = list(pairs()[0][:200])
    result = estimate_training_cost(TextStatistics.from_document(document(lines)))
    model = NgramModel.train(Corpus.from_sentences(lines))
    assert result.ngrams == sum(model.table.trie.sizes())
    assert result.basis == "trained on the whole text" and result.tokens == result.tokens_tried
    assert result.seconds > 0 and result.memory > result.disk > 0
    assert estimate_training_cost(TextStatistics.from_document(document(["", ""]))) is None


@pytest.mark.filterwarnings("ignore:order")
def test_the_cost_of_a_large_text_is_extrapolated(monkeypatch):
    lines = list(pairs()[0])
    monkeypatch.setattr("dragoman.doctor.cost.WHOLE", 4000)
    result = estimate_training_cost(TextStatistics.from_document(document(lines)))
    model = NgramModel.train(Corpus.from_sentences(lines))
    assert result.tokens_tried <= 4000 < result.tokens and "extrapolated" in result.basis
    assert result.ngrams == pytest.approx(sum(model.table.trie.sizes()), rel=0.1)
    assert WHOLE > 4000


def test_growth_goes_on_by_a_sinking_power():
    straight = _extrapolated([np.array([1.0]), np.array([2.0]), np.array([4.0])], 3.0)
    assert straight.tolist() == pytest.approx([12])
    flat, sinking = (
        _extrapolated([np.array([1.0]), np.array([b]), np.array([c])], 4.0)[0] for b, c in ((1.5, 2.25), (1.5, 2.1))
    )
    assert flat == pytest.approx(2.25 * 1.5**2) and 2.1 < sinking < 2.1 * 1.4**2


def test_the_languages_have_no_word_in_common():
    assert not set(vocabulary(SOURCE, 1)) & set(vocabulary(TARGET, 2))


def test_words_that_are_always_capital_are_no_habit_of_writing():
    lines = ["I see the dog", "the dog sees me", "what do I see"] * 200
    assert writing_habits(document(lines))["begin with a capital letter"] == 0
    mixed = ["The dog sees me", "the dog sees me"] * 300
    assert writing_habits(document(mixed))["begin with a capital letter"] == 0.5
