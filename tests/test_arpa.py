"""ARPA files: round trips, the meaning of <unk>, and errors."""

from __future__ import annotations

import gzip
import math
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import Corpus
from dragoman.core.errors import DataError, DragomanError
from dragoman.data.unknown_words import ClosedVocabulary, UniformUnknownWords
from dragoman.data.vocabulary import END, START, UNK
from dragoman.ngram import arpa, arpa_lines
from dragoman.ngram.arpa import read_arpa, write_arpa
from dragoman.ngram.arpa_lines import _parse_number, _write_number
from dragoman.ngram.model import NgramConfig, NgramModel

LOG_10 = math.log(10)

# P(a) = 0.5, P(b) = 0.2, P(</s>) = 0.2, P(<unk>) = 0.1; P(b | a) = 0.6, so a backs off with 0.4 / 0.8;
# P(a | <s>) = 0.9, so <s> backs off with 0.1 / 0.5; P(</s> | a b) = 0.84, so a b backs off with 0.16 / 0.8.
SMALL = """\\data\\
ngram 1=5
ngram 2=2
ngram 3=1

\\1-grams:
-1\t<unk>
-99\t<s>\t-0.69897
-0.69897\t</s>
-0.30103\ta\t-0.30103
-0.69897\tb

\\2-grams:
-0.0457575\t<s> a
-0.2218487\ta b\t-0.69897

\\3-grams:
-0.0757207\ta b </s>

\\end\\
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "model.arpa"


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    lines = ["the cat sat", "the cat <unk> on the mat", "", "a dog sat on the cat", "the dog ran", "a cat ran off"]
    return Corpus.from_sentences([*lines, *lines[:3]])


def train(corpus: Corpus, **settings: object) -> NgramModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so small a text falls back on fixed discounts
        return NgramModel.train(corpus, **{"order": 3, **settings})


def read_text(file: Path, text: str | bytes, **options: object) -> NgramModel:
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_arpa(file, **options)  # type: ignore[arg-type]


def prob(model: NgramModel, prefix: str) -> dict[str, float]:
    return {word: round(p, 5) for word, p in model.next_words(prefix, k=None)}


def assert_same(first: NgramModel, second: NgramModel) -> None:
    """Both have the same tables."""
    assert first.vocab == second.vocab
    assert first.table.trie.levels == second.table.trie.levels
    for name in ("word", "begin", "suffix"):
        np.testing.assert_array_equal(getattr(first.table.trie, name), getattr(second.table.trie, name))
    for order in range(1, first.table.trie.order + 1):
        np.testing.assert_allclose(first.table.values(order), second.table.values(order), rtol=0, atol=1e-6)
    weights = first.table.log_backoff[1:], second.table.log_backoff[1:]  # that of the empty context is never used
    np.testing.assert_allclose(*weights, rtol=0, atol=1e-6)


# -- reading -----------------------------------------------------------------------------------------------------


def test_reads_probabilities_and_weights(file: Path) -> None:
    model = read_text(file, SMALL)
    assert model.vocab.tokens == ("<s>", "</s>", "<unk>", "a", "b")
    assert model.settings == NgramConfig(order=3, smoothing="imported")
    assert model.unknown == UniformUnknownWords(3, 10_000_000)
    assert not model.vocab.counts.any()
    assert prob(model, "") == {"a": 0.9, "b": 0.04, "</s>": 0.04, "<unk>": 0.02, "<s>": 0.0}
    assert prob(model, "b a") == {"b": 0.6, "a": 0.25, "</s>": 0.1, "<unk>": 0.05, "<s>": 0.0}
    assert prob(model, "a b") == {"</s>": 0.84, "a": 0.1, "b": 0.04, "<unk>": 0.02, "<s>": 0.0}
    assert model.score(["a b"]) == pytest.approx([math.log(0.9 * 0.6 * 0.84)], abs=1e-5)


def test_imported_model_can_be_saved_but_not_trained(file: Path, tmp_path: Path, corpus: Corpus) -> None:
    model = read_text(file, SMALL)
    model.save(tmp_path / "model")
    assert dragoman.load(tmp_path / "model").score(["a b x"]) == model.score(["a b x"])
    with pytest.raises(DataError, match="imported models are read"):
        NgramModel.train(corpus, smoothing="imported")


@pytest.mark.parametrize(
    "changed",
    [
        SMALL.replace("\t", " "),
        SMALL.replace("\t", " \t "),
        SMALL.replace("\n", "\r\n"),
        "\ufeff" + SMALL,
        "made by hand\n\n" + SMALL,
        SMALL.removesuffix("\n"),
        SMALL + "\nanything may follow",
        SMALL.replace("\n\n", "\n\n\n"),
        SMALL.replace("-0.69897\tb\n", "\n-0.69897\tb\n"),
        SMALL.replace("ngram 2=2", "ngram  2 = 2 "),
        SMALL.replace("-99\t<s>", "0\t<s>"),
        SMALL.replace("-99\t<s>", "-inf\t<s>"),
        SMALL.replace("-1\t<unk>", "-1\t<unk>\t0"),
        SMALL.replace("-1\t<unk>", "-1.0e+00\t<UNK>"),
        SMALL.replace("a b </s>\n", "a b </s>\t0\n"),
        SMALL.replace("-0.0457575\t<s> a\n", "").replace("-0.69897\n\n\\3", "-0.69897\n-4.57575e-2\t<s> a\n\n\\3"),
        SMALL.replace("ngram 3=1", "ngram 3=1\nngram 4=0").replace("\\end", "\\4-grams:\n\n\\end"),
    ],
    ids=lambda text: "",
)
def test_equivalent_forms_give_the_same_model(changed: str, file: Path) -> None:
    assert changed != SMALL
    assert_same(read_text(file, SMALL), read_text(file, changed))


def test_missing_contexts_are_added(file: Path) -> None:
    """Trigrams whose contexts were pruned, and a 4-gram without any shorter n-grams."""
    rows = "-0.5\tb b a\n-0.0757207\ta b </s>\n-0.7\ta a a\n"
    text = SMALL.replace("-0.0757207\ta b </s>\n", rows).replace("ngram 3=1", "ngram 3=3\nngram 4=1")
    model = read_text(file, text.replace("\\end", "\\4-grams:\n-0.1\tb a a b\n\n\\end"))
    assert model.table.trie.sizes() == [5, 5, 4, 1]  # a a, b b, b a and b a a are new
    assert prob(model, "b b")["a"] == round(10**-0.5, 5)
    assert prob(model, "b a a")["b"] == round(10**-0.1, 5)
    assert prob(model, "b")["a"] == 0.5  # b b and b a have what backing off gives them
    assert prob(model, "b a")["a"] == prob(model, "a")["a"] == 0.25  # with the weight of a
    assert prob(model, "a a")["a"] == round(10**-0.7, 5)
    assert prob(model, "a b")["</s>"] == 0.84  # as before
    assert prob(model, "b b")["b"] == 0.2  # new contexts have weight 1
    assert np.isfinite(model.table.log_prob[model.table.trie.levels[2] :]).all()


def test_log_probs_slightly_above_zero_are_rounded(file: Path) -> None:
    model = read_text(file, SMALL.replace("-0.0457575\t<s> a", "0.0000004\t<s> a"))
    assert prob(model, "")["a"] == 1
    assert (model.table.log_prob <= 0).all()


def test_missing_suffixes_are_skipped(file: Path) -> None:
    """a b </s> is there, b </s> is not: after `x a b` the context is `a b`, after only `b` it is `b`."""
    model = read_text(file, SMALL)
    assert prob(model, "b")["</s>"] == 0.2
    assert prob(model, "a a b") == prob(model, "a b")


def test_an_order_without_ngrams(file: Path) -> None:
    text = SMALL.replace("ngram 3=1", "ngram 3=0").replace("-0.0757207\ta b </s>\n", "")
    model = read_text(file, text)
    assert model.settings.order == 2
    assert prob(model, "a b")["</s>"] == 0.2


def test_block_size_does_not_change_what_is_read(file: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    write_arpa(train(corpus), file)
    whole = read_arpa(file)
    for size in (1, 7, 100):
        monkeypatch.setattr(arpa_lines, "BLOCK_BYTES", size)
        assert_same(read_arpa(file), whole)


# -- what <unk> means ----------------------------------------------------------------------------------------------


def test_closed(file: Path) -> None:
    model = read_text(file, SMALL, closed=True)
    assert model.unknown == ClosedVocabulary(3)
    assert model.score(["x"]) == [-math.inf]
    assert prob(model, "b")["<unk>"] == 0.1


def test_vocab_pad_turns_a_share_into_the_unknown_class(file: Path) -> None:
    """In a language of 103 words, 100 are unknown."""
    text = SMALL.replace("-1\t<unk>", "-3\t<unk>")
    model = read_text(file, text, vocab_pad=103)
    assert model.unknown == UniformUnknownWords(3, 103)
    assert prob(model, "b")["<unk>"] == 0.1
    assert model.score(["b x"]) == pytest.approx([math.log(0.04 * 0.001 * 0.2)], abs=1e-5)
    with pytest.raises(DataError, match="has no unknown ones"):
        read_arpa(file, vocab_pad=3)
    with pytest.raises(DataError, match="choose one of the two"):
        read_arpa(file, vocab_pad=103, closed=True)


def test_every_ngram_that_predicts_unk_is_a_share(file: Path) -> None:
    text = SMALL.replace("-1\t<unk>", "-3\t<unk>").replace("-0.0457575\t<s> a", "-2.3\t<s> <unk>")
    model = read_text(file, text, vocab_pad=103)
    assert prob(model, "")["<unk>"] == round(10**-0.3, 5)


def test_sum_far_from_one_gives_a_warning(file: Path) -> None:
    share = SMALL.replace("-1\t<unk>", "-3\t<unk>")
    with pytest.warns(UserWarning, match=r"unigrams sum to 0\.9010.*--vocab-pad; about 103 would fit"):
        read_text(file, share)
    with pytest.warns(UserWarning, match=r"sum to 2.*is --vocab-pad the number"):
        read_text(file, share, vocab_pad=1103)
    with pytest.warns(UserWarning, match=r"sum to 1\.2.*are not changed"):
        model = read_text(file, SMALL.replace("-0.30103\ta", "-0.1549\ta"))
    assert sum(prob(model, "b").values()) == pytest.approx(1.2, abs=1e-3)


def test_end_symbol_with_probability_zero_gives_a_warning(file: Path) -> None:
    text = SMALL.replace("-0.69897\t</s>", "-99\t</s>").replace("-0.69897\tb", "-0.39794\tb")
    with pytest.warns(UserWarning, match="sentences cannot end"):
        model = read_text(file, text)
    assert prob(model, "b")["</s>"] == 0.0


def test_valid_file_gives_no_warning(file: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = read_text(file, SMALL)
    assert sum(prob(model, "b").values()) == pytest.approx(1.0, abs=1e-4)


def test_a_file_without_unk(file: Path) -> None:
    text = SMALL.replace("-1\t<unk>\n", "").replace("1=5", "1=4").replace("-0.69897\tb", "-0.5228787\tb")
    model = read_text(file, text)
    assert prob(model, "b") == {"a": 0.5, "b": 0.3, "</s>": 0.2, "<s>": 0.0, "<unk>": 0.0}


# -- what can be wrong ---------------------------------------------------------------------------------------------

WRONG = {
    "empty": ("", r": not an ARPA file.*\\data\\"),
    "other text": ("the cat\nsat\n", r": not an ARPA file.*\\data\\"),
    "no counts": ("\\data\\\n\n\\end\\\n", "declares no n-grams"),
    "bad count": (SMALL.replace("2=2", "2=two"), r":3: expected `ngram 2=COUNT`, found 'ngram 2=two'"),
    "order left out": (SMALL.replace("ngram 2=2\n", ""), r":3: expected `ngram 2=COUNT`"),
    "wrong count": (SMALL.replace("2=2", "2=3"), r":3: 3 2-grams are declared, but 2 follow"),
    "wrong count of words": (SMALL.replace("1=5", "1=4"), r":2: 4 1-grams are declared, but 5 follow"),
    "no section": (SMALL.replace("\\2-grams:\n", ""), r":13: the field before or after one word is not a base-10"),
    "sections in disorder": (SMALL.replace("\\2-g", "\\7-g"), r":13: \\7-grams: found instead of \\2-grams:"),
    "too many sections": (SMALL.replace("\nngram 3=1", ""), r":16: \\3-grams: found instead of \\end\\"),
    "cut short": (SMALL.replace("\\end\\\n", ""), r": ends before \\end\\.*truncated"),
    "unknown word": (SMALL.replace("a b </s>", "a c </s>"), r":18: a word that is not in the 1-grams.*a c </s>"),
    "repeated n-gram": (
        SMALL.replace("\\3-g", "-1\t<s> a\n\n\\3-g").replace("2=2", "2=3"),
        r":17: this n-gram is repeated; remove '-1\\t<s> a'",
    ),
    "repeated word": (
        SMALL.replace("-0.69897\tb", "-0.69897\tb\n-1\ta").replace("1=5", "1=6"),
        r":12: this n-gram is repeated",
    ),
    "bad number": (
        SMALL.replace("-0.0457575", "-0.04x"),
        r":14: the field before or after .* is not a base-10 logarithm",
    ),
    "not a number": (
        SMALL.replace("-0.0457575", "nan"),
        r":14: the field before or after .* is not a base-10 logarithm",
    ),
    "bad weight": (
        SMALL.replace("a b\t-0.69897", "a b\t--1"),
        r":15: the field before or after .* is not a base-10 logarithm",
    ),
    "infinite weight": (
        SMALL.replace("a b\t-0.69897", "a b\t1e9"),
        r":15: the field before or after .* is not a base-10 logarithm",
    ),
    "positive": (SMALL.replace("-0.0457575", "0.0457575"), r":14: a log10 probability above 0"),
    "too few words": (SMALL.replace("a b </s>", "a b"), r":18: expected log10 probability, 3 words"),
    "too many words": (SMALL.replace("a b </s>", "a b a 0 a"), r":18: expected log10 probability, 3 words"),
    "NUL": (SMALL.replace("\tb\n", "\t\0\n"), r":11: NUL byte"),
    "NUL in a bigram": (SMALL.replace("<s> a", "<s> \0"), r":14: NUL byte"),
    "not UTF-8": (SMALL.encode().replace(b"\tb\n", b"\t\xff\n"), r":11: not UTF-8 \(byte 0xff\)"),
    "not UTF-8 in a bigram": (SMALL.encode().replace(b"<s> a", b"<s> \xff"), r":14: not UTF-8 \(byte 0xff\)"),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG.keys())
@pytest.mark.parametrize("block", [1 << 22, 5])
def test_errors_name_file_line_and_problem(
    text: str | bytes, message: str, block: int, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arpa_lines, "BLOCK_BYTES", block)
    with pytest.raises(DataError, match=re.escape(str(file)) + ".*" + message) as error:
        read_text(file, text)
    assert "\n" not in str(error.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_arpa(tmp_path / "none.arpa")
    with pytest.raises(DataError, match="is a directory"):
        read_arpa(tmp_path)
    damaged = tmp_path / "damaged.arpa.gz"
    for content in (SMALL.encode(), gzip.compress(SMALL.encode())[:-20]):
        damaged.write_bytes(content)
        with pytest.raises(DataError, match="not a complete gzip file"):
            read_arpa(damaged)


# -- writing -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["model.arpa", "model.arpa.gz"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"order": 1},
        {"order": 5, "smoothing": "katz"},
        {"smoothing": "maximum-likelihood"},
        {"smoothing": "stupid-backoff"},
        {"smoothing": "whole-prefix"},
        {"prune": (0, 1)},
        {"quantise": True},
    ],
    ids=str,
)
def test_written_model_can_be_read_again(
    settings: dict[str, object], name: str, corpus: Corpus, tmp_path: Path
) -> None:
    model = train(corpus, **settings)
    write_arpa(model, tmp_path / name)
    assert_same(read_arpa(tmp_path / name), model)


def test_written_file_has_the_expected_lines(corpus: Corpus, file: Path, tmp_path: Path) -> None:
    write_arpa(read_text(file, SMALL), tmp_path / "again.arpa")
    written = (tmp_path / "again.arpa").read_text()
    assert written.startswith("\\data\\\nngram 1=5\nngram 2=2\nngram 3=1\n\n\\1-grams:\n-99\t<s>\t-0.6989700\n")
    assert written.endswith("\n-0.2218487\ta b\t-0.6989700\n\n\\3-grams:\n-0.0757207\ta b </s>\n\n\\end\\\n")
    write_arpa(train(corpus, smoothing="maximum-likelihood"), file)
    assert "inf" not in file.read_text() and "nan" not in file.read_text()


def test_block_size_does_not_change_what_is_written(
    corpus: Corpus, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = train(corpus)
    write_arpa(model, file)
    whole = file.read_bytes()
    for rows, line in ((1, 1), (3, 0), (50, 2)):
        monkeypatch.setattr(arpa, "BLOCK_ROWS", rows)
        monkeypatch.setattr(arpa, "TYPICAL_LINE_BYTES", line)  # too little room for most lines
        write_arpa(model, file)
        assert file.read_bytes() == whole


def test_vocab_pad_writes_the_unknown_class_as_a_share(corpus: Corpus, file: Path) -> None:
    model = train(corpus, unknown=UniformUnknownWords(corpus.vocab.num_known, 1000))
    write_arpa(model, file, vocab_pad=1000)
    assert_same(read_arpa(file, vocab_pad=1000), model)
    assert read_arpa(file, vocab_pad=1000).score(["the x"]) == pytest.approx(model.score(["the x"]), abs=1e-5)
    unigram = next(line for line in file.read_text().split("\n") if "\t<unk>" in line)
    share = model.table.log_prob[1 + UNK] - math.log(1000 - corpus.vocab.num_known)
    assert float(unigram.split("\t")[0]) == pytest.approx(share / LOG_10, abs=1e-6)
    with pytest.raises(DataError, match="has no unknown ones"):
        write_arpa(model, file, vocab_pad=2)


def test_long_words(file: Path) -> None:
    model = train(Corpus.from_sentences([f"{'x' * 9000} {'ж' * 500} b", "b a", "a"]), smoothing="witten-bell")
    write_arpa(model, file)
    assert_same(read_arpa(file), model)


def test_unsupported_models_and_words_raise_an_error(corpus: Corpus, file: Path) -> None:
    file.write_text("before")
    with pytest.raises(DataError, match="skips words"):
        write_arpa(train(corpus, gap=1), file)
    with pytest.raises(DataError, match=r"'a\\rb' cannot be written"):
        write_arpa(train(Corpus.from_sentences(["a\rb c"]), smoothing="witten-bell"), file)
    assert file.read_text() == "before"


def test_failed_write_leaves_no_file(corpus: Corpus, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    file.write_text("before")
    monkeypatch.setattr(arpa_lines, "write_lines", full)
    with pytest.raises(DragomanError, match="No space left on device"):
        write_arpa(train(corpus), file)
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert file.read_text() == "before"


# -- numbers -----------------------------------------------------------------------------------------------------


@given(st.floats(-98, 98))
def test_written_numbers_are_read_back(value: float) -> None:
    out = np.zeros(16, np.uint8)
    used = _write_number(out, 2, value * LOG_10)
    assert float(out[2:used].tobytes()) == pytest.approx(value, abs=5.1e-8)
    assert _parse_number(out, 2, used) == pytest.approx(value, abs=5.1e-8)


@given(st.floats(allow_nan=False, allow_infinity=False, width=32) | st.integers(-(10**30), 10**30))
def test_numbers_are_parsed_like_python_floats(value: float) -> None:
    for text in (repr(value), f"{value:.25f}", f"{value:e}", f"{value:+E}"):
        read = _parse_number(np.frombuffer(text.encode(), np.uint8), 0, len(text))
        assert read == pytest.approx(float(text), rel=1e-14)


@pytest.mark.parametrize(
    "text", ["", "-", "+", ".", "-.", "e5", "1e", "1e+", "1e-", "1.2.3", "1,5", "0x1", "inf", "nan"]
)
def test_invalid_numbers_are_nan(text: str) -> None:
    padded = np.frombuffer(f" {text} ".encode(), np.uint8)  # what surrounds it must not be read
    assert math.isnan(_parse_number(padded, 1, 1 + len(text)))


def test_start_and_end(file: Path) -> None:
    model = read_text(
        file, SMALL.replace("-0.2218487\ta b\t-0.69897", "-0.2218487\ta b\t-0.69897\n-1\tb <s>").replace("2=2", "2=3")
    )
    distributions = np.exp(model.table.distributions(np.arange(model.table.trie.contexts)))
    assert (distributions[:, START] == 0).all()
    assert (distributions[:, END] > 0).all()
