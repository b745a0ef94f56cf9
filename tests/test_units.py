"""Units of text: there and back for any line, what cannot be asked for, and from units to words."""

from __future__ import annotations

import io
import math
import unicodedata
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman import Corpus, DataError
from dragoman.data.segmenters import (
    CharUnits,
    Lengths,
    Units,
    UnitsSpec,
    WordUnits,
    choose_units,
    from_saved,
    learn_units,
)
from dragoman.data.subwords import MODEL_FILE, SubwordUnits, characters_in, recommended_size
from dragoman.data.tokenization import looks_tokenised, looks_unsegmented
from dragoman.data.vocabulary import SPECIALS
from dragoman.data.word_alignment import pairs_of_words, to_words, with_end

RAW = [
    "The old farmer sold two brown cows, didn't he?",
    "Two farmers buy the cows; they're happy.",
    "«No», says she: the cow isn't old!",
    "An older cow was sold (for $20) to the happiest farmer.",
] * 5
APART = ["the old farmer sold two brown cows , did n't he ?", "mr. x and the u.s. sold two cows .", "they left ."]
JAPANESE = ["彼は私の隣に住んでいる。", "彼女は、その川を泳いで渡ろうとした。", "私の家は川の隣にある。"]
THAI = ["เขาอาศัยอยู่ข้างบ้านของฉัน", "บ้านของฉันอยู่ริมแม่น้ำ เขาว่ายน้ำข้ามแม่น้ำ"]
LEARNED: list[Units] = [
    learn_units("subword:120", RAW),
    learn_units("unigram:50", RAW),
    learn_units("subword:60", JAPANESE),
    learn_units("unigram:28", THAI * 3),
]
EVERY: list[Units] = [WordUnits(), CharUnits(), *LEARNED]
names = pytest.mark.parametrize("units", EVERY, ids=lambda units: units.spec)

# Any text, with what is most likely to be mistaken for something else.
signs = st.one_of(
    st.characters(exclude_categories=("Cs", "Cc")),
    st.sampled_from("▁▅\ue580\ue581\ue585\u00a0\u3000\u2028<>s/unkéﬁ\u0301 "),
)
lines = st.one_of(st.text(signs, max_size=30), st.sampled_from([*RAW, *JAPANESE, *THAI]))


def tidy(line: str) -> str:
    return " ".join(part for part in line.split(" ") if part)


# -- there and back --------------------------------------------------------------------------------------------------


@names
@given(line=lines)
@example(line="▁ ▁▁ ▅ \ue580\ue581 x\ue581")
@example(line="<s> </s> <unk> a<s>b</s>c<unk>d")
@example(line="no piece")
def test_a_line_comes_back(units: Units, line: str) -> None:
    tokens = units.cut(tidy(line))
    assert units.join(tokens) == tidy(line)
    assert not any(set(token) & set(" \t\n") or not token for token in tokens)


@pytest.mark.parametrize("units", [WordUnits(), *LEARNED], ids=lambda units: units.spec)
def test_spaces_are_collapsed(units: Units) -> None:
    assert units.join(units.cut("  two \t old\tcows  \r")) == "two old cows"
    assert units.cut("  two \t old\tcows  \r") == units.cut("two old cows")
    assert units.cut(" \t ") == [] == units.cut("")


@given(line=lines)
@example(line="  a▁ ▁▁b ")
def test_characters_keep_every_space(line: str) -> None:
    units = CharUnits()
    assert units.join(units.cut(line)) == line
    assert len(units.cut(line)) == len(line)
    assert units.join(units.cut("a\tb")) == "a b"


@names
@settings(max_examples=30)
@given(several=st.lists(lines, max_size=5))
def test_many_lines_are_cut_as_each_alone(units: Units, several: list[str]) -> None:
    assert units.cut_all(iter(several)) == [units.cut(line) for line in several]


@pytest.mark.parametrize("units", [CharUnits(), *LEARNED], ids=lambda units: units.spec)
@given(line=lines)
@example(line="<s>")
@example(line="x<unk></s>")
def test_no_unit_is_one_of_ours(units: Units, line: str) -> None:
    tokens = units.cut(line)
    assert not set(tokens) & set(SPECIALS)
    corpus = Corpus.from_sentences([tokens])  # a training text: `<s>` in it would be refused
    assert [corpus.vocab.words[number] for number in corpus[0]] == tokens


def test_a_piece_that_reads_like_one_of_ours_is_taken_apart() -> None:
    """To a Japanese model `<s>` is a run of unknown characters, which SentencePiece makes one piece."""
    japanese = LEARNED[2]
    assert japanese.cut("川<unk>川</s>") == ["▁", "川", *"<unk>", "川", *"</s>"]


def test_unknown_characters_stay_readable() -> None:
    for units in LEARNED[:2]:
        assert isinstance(units, SubwordUnits)
        tokens = units.cut("cow Жук!")
        assert "Жук" in tokens
        heard = Corpus.from_sentences([tokens], Corpus.from_sentences([units.pieces]).vocab)
        assert heard.unknown_words == ["Жук"]


@names
def test_what_is_not_a_line_is_refused(units: Units) -> None:
    with pytest.raises(DataError, match="sentences:2: contains a line break"):
        units.cut_all(["a", "b\nc"])
    with pytest.raises(DataError, match="sentences:1: holds half a surrogate pair"):
        units.cut("a\ud800")


@pytest.mark.parametrize("text", [JAPANESE, THAI], ids=["japanese", "thai"])
@pytest.mark.parametrize("kind", ["subword", "unigram"])
def test_scripts_without_spaces_are_cut(text: list[str], kind: str) -> None:
    units = learn_units(f"{kind}:{characters_in(text) + 4}", text * 3)
    tokens = units.cut(text[0])
    assert 1 < len(tokens) < len(text[0]) + 1
    assert units.join(tokens) == text[0]


# -- learning --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["subword:90", "unigram:50"])
def test_the_same_text_gives_the_same_pieces(spec: str) -> None:
    one, two = learn_units(spec, RAW), learn_units(spec, iter(RAW))
    assert one == two
    assert dict(one.files()) == dict(two.files())


def test_pieces_that_are_asked_for_are_there() -> None:
    units = learn_units("bpe:100", RAW)
    assert isinstance(units, SubwordUnits)
    assert (units.spec, units.kind, units.size) == ("subword:100", "subword", 100)
    assert len(units.pieces) == 99, "and one for what is unknown"
    assert {token for line in units.cut_all(RAW) for token in line} < set(units.pieces)
    assert set("cows▁") < set(units.pieces), "every character is a piece, so that new words can be cut"
    assert "▁cow" in units.pieces, "the word is frequent"


@pytest.mark.parametrize("kind", ["subword", "unigram"])
def test_more_pieces_than_the_text_has(kind: str) -> None:
    with pytest.warns(UserWarning, match=f"{kind}:90000: the text has no more than [0-9]+ pieces"):
        units = learn_units(f"{kind}:90000", RAW)
    assert isinstance(units, SubwordUnits)
    assert characters_in(RAW) < units.size < 90_000
    assert units.spec == f"{kind}:90000", "the same question asks for the same units"


@pytest.mark.parametrize("kind", ["subword", "unigram"])
def test_fewer_pieces_than_characters(kind: str) -> None:
    least = characters_in(RAW)
    with pytest.raises(DataError, match=f"characters alone are {least} pieces; ask for {kind}:{2 * least} or so"):
        learn_units(f"{kind}:{least - 1}", RAW)
    units = learn_units(f"{kind}:{least}", RAW)
    assert isinstance(units, SubwordUnits)
    assert units.size == least


@pytest.mark.parametrize("text", [[], ["", "  "]])
def test_nothing_to_learn_from(text: list[str]) -> None:
    with pytest.raises(DataError, match="no words to learn pieces from"):
        learn_units("subword:100", text)


def test_long_lines_and_odd_signs_are_learned_from() -> None:
    """By itself SentencePiece would skip lines of more than 4,192 bytes and lines with U+2585."""
    units = learn_units("subword:20", ["xyz " * 2000, "▅▅ ab▁"])
    assert "▁xyz" in units.cut("xyz")
    assert isinstance(units, SubwordUnits)
    assert set(units.cut("▅ b▁")) <= set(units.pieces), "none of these is unknown"


def test_two_texts_share_their_pieces() -> None:
    german = ["Der alte Bauer verkauft zwei braune Kühe."] * 10
    units = learn_units("subword:100", RAW, german)
    assert len(units.cut("Kühe Bauer cows")) < len(learn_units("subword:100", RAW).cut("Kühe Bauer cows"))
    assert isinstance(units, SubwordUnits)
    assert "ü" in units.pieces


def test_learning_is_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learn_units("subword:80", RAW).cut_all(RAW)
    assert capfd.readouterr() == ("", "")


# -- kept and asked for ----------------------------------------------------------------------------------------------


@names
def test_saved_units_are_the_same(units: Units) -> None:
    again = from_saved(units.spec, units.files())
    assert again == units
    assert again.cut_all(RAW) == units.cut_all(RAW)


def other_model() -> bytes:
    """A model with SentencePiece's own settings, which changes texts."""
    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    SentencePieceTrainer.train(sentence_iterator=iter(RAW), model_writer=model, vocab_size=50, minloglevel=2)
    return model.getvalue()


def test_a_damaged_model_is_refused() -> None:
    whole = LEARNED[0].files()[MODEL_FILE]
    for damaged in (b"", b"nonsense", whole[:-20], whole[: len(whole) // 2], whole[3:], other_model()):
        with pytest.raises(DataError, match="damaged, or not one that dragoman has learned"):
            from_saved("subword:120", {MODEL_FILE: damaged})
    with pytest.raises(DataError, match="model is missing"):
        from_saved("subword:120", {})
    with pytest.raises(DataError, match="name the units"):
        from_saved("auto", {})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("subwrod:8000", "did you mean 'subword'?"),
        ("pieces", "there are auto, word, char, subword:N and unigram:N"),
        ("", "there are auto, word"),
        ("word:8000", "word takes no number; ask for word"),
        ("auto:8000", "auto takes no number"),
        ("subword:", "how many pieces; ask for subword:8000, say"),
        ("subword:0", "how many pieces"),
        ("subword:-5", "how many pieces"),
        ("unigram:8k", "ask for unigram:8000, say"),
        ("subword:٣", "how many pieces"),
        ("bpe:99999999999", "how many pieces"),
    ],
)
def test_units_that_cannot_be_asked_for(text: str, problem: str) -> None:
    with pytest.raises(DataError) as error:
        UnitsSpec.parse(text)
    assert problem in str(error.value)


@pytest.mark.parametrize("text", ["auto", "word", "char", "subword", "unigram", "subword:8000", "unigram:1"])
def test_a_spec_reads_as_it_was_asked_for(text: str) -> None:
    assert str(UnitsSpec.parse(text)) == text


# -- chosen by the text ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tokenised"),
    [
        (RAW, False),
        (APART, True),
        (['"That is true, \'he said."', "« Oui, peut-être ! »", "Ah non !"], False),
        (["彼 は 、 その 川 を 泳 い で 渡 ろ う と し た 。"], True),
        (JAPANESE, False),
        ([line.replace("。", "").replace("、", "") for line in JAPANESE], False),
        (THAI, False),
        (["เขา อาศัย อยู่ ข้าง บ้าน ของ ฉัน"], True),
        (["AA K AH N", "AE JH ER"], True),
        (["no marks at all", "in this text"], True),
        (["it lost $ 3 million in the u.s. said mr. x"] * 50 + ["he heads x corp."], True),
        (["he said &quot; i can &apos;t &quot; ."], True),
        (["yes . . .", "well ... ?"], True),
        (["ہے؟", "अच्छा।"], False),
        (["Ein kurzer Hirte spürt, Tanten haben die Schweine gefüttert!"], False),  # the laboratory, as printed
        (["ein kurzer hirte spürt , tanten haben die schweine gefüttert !"], True),  # and in words
        (["She said “I know.”", "(So he is.)"], False),
        (["はい。", "いいえ、違う。"], False),  # too short to tell that no word is apart
        ([], True),
        ([""], True),
    ],
)
def test_punctuation_apart_or_not(text: list[str], tokenised: bool) -> None:
    assert looks_tokenised(text) is tokenised
    assert looks_tokenised(iter(text * 3)) is tokenised


def test_a_text_is_judged_from_all_over_it() -> None:
    """The first tenth has no punctuation, as the short lines of a sorted text may not."""
    assert not looks_tokenised(["yes"] * 2_000 + ["Yes, he is."] * 18_000)


def test_segmented_or_not() -> None:
    assert looks_unsegmented(JAPANESE) and looks_unsegmented(THAI)
    assert not looks_unsegmented(["彼 は 私 の 隣 に 住 ん で い る 。"])
    assert not looks_unsegmented([*RAW, "東京特許許可局局長"])


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        ([RAW], "subword"),
        ([APART * 2], "word"),
        ([APART], "subword"),  # nearly every word is seen once
        ([APART * 2, RAW], "subword"),
        ([JAPANESE], "subword"),
        ([["彼は私の隣に住んでいる"]], "subword"),
        ([["AACHEN", "AAKER"]], "char"),
        ([["AA K AH N"] * 2], "word"),
        ([["festquatschen", "sagen", "quatschtet fest"]], "char"),
        ([[]], "word"),
    ],
)
def test_units_chosen_by_the_text(texts: list[list[str]], kind: str) -> None:
    assert choose_units(*texts) == kind
    if any(texts):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the texts here are tiny
            units = learn_units("auto", *texts)
        assert units.kind == kind
        assert UnitsSpec.parse(units.spec).kind == kind, "what was chosen is said"


def test_larger_texts_get_more_pieces() -> None:
    sizes = [recommended_size(10**power) for power in range(9)]
    assert sizes == sorted(sizes)
    assert sizes[0] == 200 and sizes[-1] == 32_000
    assert 4_000 <= recommended_size(30_000) <= 8_000
    assert 8_000 <= recommended_size(150_000) <= 16_000
    assert recommended_size(30_000, types=900) == 900


def test_a_number_that_nobody_gave_fits_the_characters() -> None:
    """Three lines would have 200 pieces, but these have more characters than that."""
    many = ["".join(map(chr, range(0x4E00 + 200 * line, 0x4E00 + 200 * (line + 1)))) for line in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        units = learn_units("subword", many)
    assert UnitsSpec.parse(units.spec).size == 2 * characters_in(many) == 2 * (600 + 2)


# -- from units to words ---------------------------------------------------------------------------------------------


@names
@given(line=lines)
@example(line=" lead  and trail ")
def test_units_know_their_words(units: Units, line: str) -> None:
    tokens = units.cut(line)
    numbers = units.word_of_unit(tokens)
    words = [word for word in line.split(" ") if word]
    by_word = [[token for token, at in zip(tokens, numbers, strict=True) if at == word] for word in range(len(words))]
    assert numbers == sorted(numbers)
    assert [units.join(part).strip(" ") for part in by_word] == words
    assert set(numbers) <= {*range(len(words)), 0}


@given(tokens=st.lists(st.sampled_from(["▁", "▁a", "b", "▁cd", "<unk>", "é"])))
def test_a_model_may_write_what_no_line_is_cut_into(tokens: list[str]) -> None:
    units = LEARNED[0]
    words, numbers = WordUnits().cut(units.join(tokens)), units.word_of_unit(tokens)
    assert len(numbers) == len(tokens)
    assert max(numbers, default=0) == max(len(words) - 1, 0)
    for word, spelled in enumerate(words):
        assert units.join([token for token, at in zip(tokens, numbers, strict=True) if at == word]) == spelled


@st.composite
def attentions(draw: st.DrawFn) -> tuple[np.ndarray, list[int], list[int]]:
    sizes = st.lists(st.integers(1, 3), min_size=1, max_size=4)
    target, source = (np.repeat(np.arange(len(s)), s).tolist() for s in (draw(sizes), draw(sizes)))
    drawn = np.random.default_rng(draw(st.integers(0, 99))).random((len(target), len(source))) + 0.01
    return drawn / drawn.sum(axis=1, keepdims=True), target, source


@given(attentions())
def test_attention_between_words(case: tuple[np.ndarray, list[int], list[int]]) -> None:
    matrix, target, source = case
    found = to_words(matrix, target, source)
    assert found.shape == (target[-1] + 1, source[-1] + 1)
    assert found.sum(axis=1) == pytest.approx(np.ones(len(found)))
    for row, word in enumerate(found):
        for column, value in enumerate(word):
            inside = matrix[np.equal(target, row)][:, np.equal(source, column)]
            assert value == pytest.approx(inside.sum(axis=1).mean())


def test_attention_of_nothing() -> None:
    assert to_words(np.zeros((0, 2)), [], [0, 1]).shape == (0, 2)
    assert to_words(np.ones((1, 1)), with_end([]), with_end([])).tolist() == [[1.0]]
    with pytest.raises(AssertionError):
        to_words(np.ones((2, 3)), [0], [0, 1, 1])


def test_pairs_between_units_become_pairs_between_words() -> None:
    source, target = LEARNED[0], CharUnits()
    source_words = source.word_of_unit(source.cut("old brown farmers"))
    target_words = target.word_of_unit(target.cut("alte Bauern"))
    everything = [(i, j) for i in range(len(source_words)) for j in range(len(target_words))]
    assert pairs_of_words(reversed(everything), source_words, target_words) == [
        (i, j) for i in range(3) for j in (0, 1)
    ]
    assert pairs_of_words([], source_words, target_words) == []


# -- lengths ---------------------------------------------------------------------------------------------------------


@given(several=st.lists(lines, max_size=6))
def test_lengths_are_those_of_the_text_in_words(several: list[str]) -> None:
    corpus = Corpus.from_sentences([line.replace("<s>", "x").replace("</s>", "y") for line in several])
    lengths = Lengths.of(line.replace("<s>", "x").replace("</s>", "y") for line in several)
    assert lengths == Lengths(corpus.words, corpus.characters, corpus.sentences)
    assert lengths.tokens == corpus.tokens


def test_perplexities_do_not_depend_on_the_units() -> None:
    """A uniform choice among k units, and the end, prices a line at (units + 1) log k, whatever the units are."""
    lengths = Lengths.of(["ab cd", ""])
    assert lengths == Lengths(words=2, characters=7, sentences=2)
    assert lengths.perplexity(-4 * math.log(8)) == pytest.approx(8)
    assert lengths.perplexity_characters(-7 * math.log(3)) == pytest.approx(3)
    assert lengths.perplexity(-math.inf) == lengths.perplexity(-1e9) == math.inf
    assert math.isnan(Lengths.of([]).perplexity(0.0)) and math.isnan(Lengths.of([]).perplexity_characters(0.0))


def test_nothing_is_normalised() -> None:
    """Composed and decomposed letters are different lines, and stay so."""
    for units in EVERY:
        composed, decomposed = (unicodedata.normalize(form, "é Å ﬁ") for form in ("NFC", "NFD"))
        assert units.join(units.cut(composed)) == composed != decomposed == units.join(units.cut(decomposed))
