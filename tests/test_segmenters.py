"""Segmenters: round trips, errors, choice by text, and word indices."""

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
from dragoman.core.defaults import SENTENCEPIECE_FILE
from dragoman.data.alignments import append_end, attention_to_words
from dragoman.data.detokenize import looks_tokenised, looks_unsegmented
from dragoman.data.segmenters import (
    CharSegmenter,
    Segmenter,
    SubwordSegmenter,
    WordSegmenter,
    choose_segmenter,
    load_segmenter,
    minimum_size,
    parse_spec,
    recommended_size,
    train_segmenter,
)
from dragoman.data.vocabulary import SPECIALS
from dragoman.evaluation.likelihood import PairLikelihood, TextLengths

RAW = [
    "The old farmer sold two brown cows, didn't he?",
    "Two farmers buy the cows; they're happy.",
    "«No», says she: the cow isn't old!",
    "An older cow was sold (for $20) to the happiest farmer.",
] * 5
APART = ["the old farmer sold two brown cows , did n't he ?", "mr. x and the u.s. sold two cows .", "they left ."]
JAPANESE = ["彼は私の隣に住んでいる。", "彼女は、その川を泳いで渡ろうとした。", "私の家は川の隣にある。"]
THAI = ["เขาอาศัยอยู่ข้างบ้านของฉัน", "บ้านของฉันอยู่ริมแม่น้ำ เขาว่ายน้ำข้ามแม่น้ำ"]
LEARNED: list[Segmenter] = [
    train_segmenter("subword:120", RAW),
    train_segmenter("unigram:50", RAW),
    train_segmenter("subword:60", JAPANESE),
    train_segmenter("unigram:28", THAI * 3),
]
EVERY: list[Segmenter] = [WordSegmenter(), CharSegmenter(), *LEARNED]
names = pytest.mark.parametrize("units", EVERY, ids=lambda units: units.spec)

# Any text, with what is most likely to be mistaken for something else.
signs = st.one_of(
    st.characters(exclude_categories=("Cs", "Cc")),
    st.sampled_from("▁▅\ue580\ue581\ue585\u00a0\u3000\u2028<>s/unkéﬁ\u0301 "),
)
lines = st.one_of(st.text(signs, max_size=30), st.sampled_from([*RAW, *JAPANESE, *THAI]))


def tidy(line: str) -> str:
    return " ".join(part for part in line.split(" ") if part)


# -- round trips -----------------------------------------------------------------------------------------------------


@names
@given(line=lines)
@example(line="▁ ▁▁ ▅ \ue580\ue581 x\ue581")
@example(line="<s> </s> <unk> a<s>b</s>c<unk>d")
@example(line="no piece")
def test_join_inverts_segment(units: Segmenter, line: str) -> None:
    tokens = units.segment(tidy(line))
    assert units.join(tokens) == tidy(line)
    assert not any(set(token) & set(" \t\n") or not token for token in tokens)


@pytest.mark.parametrize("units", [WordSegmenter(), *LEARNED], ids=lambda units: units.spec)
def test_spaces_are_collapsed(units: Segmenter) -> None:
    assert units.join(units.segment("  two \t old\tcows  \r")) == "two old cows"
    assert units.segment("  two \t old\tcows  \r") == units.segment("two old cows")
    assert units.segment(" \t ") == [] == units.segment("")


@given(line=lines)
@example(line="  a▁ ▁▁b ")
def test_characters_keep_every_space(line: str) -> None:
    units = CharSegmenter()
    assert units.join(units.segment(line)) == line
    assert len(units.segment(line)) == len(line)
    assert units.join(units.segment("a\tb")) == "a b"


@names
@settings(max_examples=30)
@given(several=st.lists(lines, max_size=5))
def test_segment_all_equals_segment_of_each_line(units: Segmenter, several: list[str]) -> None:
    assert units.segment_all(iter(several)) == [units.segment(line) for line in several]


@pytest.mark.parametrize("units", [CharSegmenter(), *LEARNED], ids=lambda units: units.spec)
@given(line=lines)
@example(line="<s>")
@example(line="x<unk></s>")
def test_no_token_is_a_special_symbol(units: Segmenter, line: str) -> None:
    tokens = units.segment(line)
    assert not set(tokens) & set(SPECIALS)
    corpus = Corpus.from_sentences([tokens])  # a training text: `<s>` in it would be refused
    assert [corpus.vocab.tokens[number] for number in corpus[0]] == tokens


def test_pieces_equal_to_special_symbols_are_split() -> None:
    """To a Japanese model `<s>` is a run of unknown characters, which SentencePiece makes one piece."""
    japanese = LEARNED[2]
    assert japanese.segment("川<unk>川</s>") == ["▁", "川", *"<unk>", "川", *"</s>"]


def test_unknown_characters_keep_their_spelling() -> None:
    for units in LEARNED[:2]:
        assert isinstance(units, SubwordSegmenter)
        tokens = units.segment("cow Жук!")
        assert "Жук" in tokens
        corpus = Corpus.from_sentences([tokens], Corpus.from_sentences([units.pieces]).vocab)
        assert corpus.unknown_words == ["Жук"]


@names
def test_invalid_lines_raise_an_error(units: Segmenter) -> None:
    with pytest.raises(DataError, match="sentences:2: contains a line break"):
        units.segment_all(["a", "b\nc"])
    with pytest.raises(DataError, match="sentences:1: contains an unpaired surrogate"):
        units.segment("a\ud800")


@pytest.mark.parametrize("text", [JAPANESE, THAI], ids=["japanese", "thai"])
@pytest.mark.parametrize("kind", ["subword", "unigram"])
def test_scripts_without_spaces_are_segmented(text: list[str], kind: str) -> None:
    units = train_segmenter(f"{kind}:{minimum_size(text) + 4}", text * 3)
    tokens = units.segment(text[0])
    assert 1 < len(tokens) < len(text[0]) + 1
    assert units.join(tokens) == text[0]


# -- learning --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["subword:90", "unigram:50"])
def test_training_is_deterministic(spec: str) -> None:
    first, second = train_segmenter(spec, RAW), train_segmenter(spec, iter(RAW))
    assert first == second
    assert dict(first.files()) == dict(second.files())


def test_segmenter_has_the_requested_pieces() -> None:
    units = train_segmenter("bpe:100", RAW)
    assert isinstance(units, SubwordSegmenter)
    assert (units.spec, units.kind, units.size) == ("subword:100", "subword", 100)
    assert len(units.pieces) == 99, "and one for what is unknown"
    assert {token for line in units.segment_all(RAW) for token in line} < set(units.pieces)
    assert set("cows▁") < set(units.pieces), "every character is a piece, so that new words can be cut"
    assert "▁cow" in units.pieces, "the word is frequent"


@pytest.mark.parametrize("kind", ["subword", "unigram"])
def test_too_many_pieces_give_a_warning(kind: str) -> None:
    with pytest.warns(UserWarning, match=f"{kind}:90000: the text gives only [0-9]+ subwords"):
        units = train_segmenter(f"{kind}:90000", RAW)
    assert isinstance(units, SubwordSegmenter)
    assert minimum_size(RAW) < units.size < 90_000
    assert units.spec == f"{kind}:90000", "the same question asks for the same units"


@pytest.mark.parametrize("kind", ["subword", "unigram"])
def test_too_few_pieces_raise_an_error(kind: str) -> None:
    least = minimum_size(RAW)
    with pytest.raises(
        DataError, match=f"needs at least {least} pieces, one per character; use {kind}:{2 * least} or more"
    ):
        train_segmenter(f"{kind}:{least - 1}", RAW)
    units = train_segmenter(f"{kind}:{least}", RAW)
    assert isinstance(units, SubwordSegmenter)
    assert units.size == least


@pytest.mark.parametrize("text", [[], ["", "  "]])
def test_empty_text_raises_an_error(text: list[str]) -> None:
    with pytest.raises(DataError, match="no words to learn from"):
        train_segmenter("subword:100", text)


def test_long_lines_and_special_characters_are_used_in_training() -> None:
    """By itself SentencePiece would skip lines of more than 4,192 bytes and lines with U+2585."""
    units = train_segmenter("subword:20", ["xyz " * 2000, "▅▅ ab▁"])
    assert "▁xyz" in units.segment("xyz")
    assert isinstance(units, SubwordSegmenter)
    assert set(units.segment("▅ b▁")) <= set(units.pieces), "none of these is unknown"


@pytest.mark.parametrize("word", ["a" * 65_536, "日本語" * 30_000])
def test_very_long_words_do_not_end_the_process(word: str) -> None:
    segmenter = train_segmenter("subword:40", ["The cat sat on the mat.", word])
    assert segmenter.join(segmenter.segment_all([word])[0]) == word


def test_two_texts_share_their_pieces() -> None:
    german = ["Der alte Bauer verkauft zwei braune Kühe."] * 10
    units = train_segmenter("subword:100", RAW, german)
    assert len(units.segment("Kühe Bauer cows")) < len(train_segmenter("subword:100", RAW).segment("Kühe Bauer cows"))
    assert isinstance(units, SubwordSegmenter)
    assert "ü" in units.pieces


def test_training_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train_segmenter("subword:80", RAW).segment_all(RAW)
    assert capfd.readouterr() == ("", "")


# -- saving and loading ---------------------------------------------------------------------------------------------


@names
def test_saved_segmenter_is_restored(units: Segmenter) -> None:
    again = load_segmenter(units.spec, units.files())
    assert again == units
    assert again.segment_all(RAW) == units.segment_all(RAW)


def other_model() -> bytes:
    """A model with SentencePiece's default settings, which changes texts."""
    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    SentencePieceTrainer.train(sentence_iterator=iter(RAW), model_writer=model, vocab_size=50, minloglevel=2)
    return model.getvalue()


def test_damaged_model_raises_an_error() -> None:
    whole = LEARNED[0].files()[SENTENCEPIECE_FILE]
    for damaged in (b"", b"nonsense", whole[:-20], whole[: len(whole) // 2], whole[3:], other_model()):
        with pytest.raises(DataError, match="damaged, or not created by dragoman"):
            load_segmenter("subword:120", {SENTENCEPIECE_FILE: damaged})
    with pytest.raises(DataError, match="model is missing"):
        load_segmenter("subword:120", {})
    with pytest.raises(DataError, match="name the units"):
        load_segmenter("auto", {})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("subwrod:8000", "did you mean 'subword'?"),
        ("pieces", "choose auto, word, char, subword:N or unigram:N"),
        ("", "choose auto, word"),
        ("word:8000", "word takes no number; write word"),
        ("auto:8000", "auto takes no number"),
        ("subword:", "the number of subwords follows the colon, as in subword:8000"),
        ("subword:0", "the number of subwords follows the colon"),
        ("subword:-5", "the number of subwords follows the colon"),
        ("unigram:8k", "as in unigram:8000"),
        ("subword:٣", "the number of subwords follows the colon"),
        ("bpe:99999999999", "the number of subwords follows the colon"),
    ],
)
def test_invalid_specs_raise_an_error(text: str, problem: str) -> None:
    with pytest.raises(DataError) as error:
        parse_spec(text)
    assert problem in str(error.value)


def test_specs_are_parsed() -> None:
    assert [parse_spec(spec) for spec in ("auto", "bpe", "unigram:1")] == [
        ("auto", None),
        ("subword", None),
        ("unigram", 1),
    ]


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
        (["Ein kurzer Hirte spürt, Tanten haben die Schweine gefüttert!"], False),  # detokenized text of the lab
        (["ein kurzer hirte spürt , tanten haben die schweine gefüttert !"], True),  # and in words
        (["She said “I know.”", "(So he is.)"], False),
        (["はい。", "いいえ、違う。"], False),  # too short to detect that words are not separated
        ([], True),
        ([""], True),
    ],
)
def test_looks_tokenised(text: list[str], tokenised: bool) -> None:
    assert looks_tokenised(text) is tokenised
    assert looks_tokenised(iter(text * 3)) is tokenised


def test_looks_tokenised_samples_the_whole_text() -> None:
    """The first tenth has no punctuation, as the short lines of a sorted text may not."""
    assert not looks_tokenised(["yes"] * 2_000 + ["Yes, he is."] * 18_000)


def test_looks_unsegmented() -> None:
    assert looks_unsegmented(JAPANESE) and looks_unsegmented(THAI)
    assert not looks_unsegmented(["彼 は 私 の 隣 に 住 ん で い る 。"])
    assert not looks_unsegmented([*RAW, "東京特許許可局局長"])


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        ([RAW], "subword"),
        ([APART * 2], "word"),
        ([APART], "subword"),  # nearly every word occurs once
        ([APART * 2, RAW], "subword"),
        ([JAPANESE], "subword"),
        ([["彼は私の隣に住んでいる"]], "subword"),
        ([["AACHEN", "AAKER"]], "char"),
        ([["AA K AH N"] * 2], "word"),
        ([["festquatschen", "sagen", "quatschtet fest"]], "char"),
        ([[]], "word"),
    ],
)
def test_choose_segmenter(texts: list[list[str]], kind: str) -> None:
    assert choose_segmenter(*texts) == kind
    if any(texts):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the texts here are tiny
            units = train_segmenter("auto", *texts)
        assert units.kind == kind
        assert parse_spec(units.spec)[0] == kind, "what was chosen is said"


def test_larger_texts_get_more_pieces() -> None:
    sizes = [recommended_size(10**power) for power in range(9)]
    assert sizes == sorted(sizes)
    assert sizes[0] == 200 and sizes[-1] == 32_000
    assert 4_000 <= recommended_size(30_000) <= 8_000
    assert 8_000 <= recommended_size(150_000) <= 16_000
    assert recommended_size(30_000, types=900) == 900


def test_default_size_covers_all_characters() -> None:
    """Three lines would have 200 pieces, but these have more characters than that."""
    many = ["".join(map(chr, range(0x4E00 + 200 * line, 0x4E00 + 200 * (line + 1)))) for line in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        units = train_segmenter("subword", many)
    assert parse_spec(units.spec)[1] == 2 * minimum_size(many) == 2 * (600 + 2)


# -- from units to words ---------------------------------------------------------------------------------------------


@names
@given(line=lines)
@example(line=" lead  and trail ")
def test_word_indices_of_segmented_lines(units: Segmenter, line: str) -> None:
    tokens = units.segment(line)
    numbers = units.word_indices(tokens)
    words = [word for word in line.split(" ") if word]
    by_word = [[token for token, at in zip(tokens, numbers, strict=True) if at == word] for word in range(len(words))]
    assert numbers == sorted(numbers)
    assert [units.join(part).strip(" ") for part in by_word] == words
    assert set(numbers) <= {*range(len(words)), 0}


@given(tokens=st.lists(st.sampled_from(["▁", "▁a", "b", "▁cd", "<unk>", "é"])))
def test_word_indices_of_arbitrary_tokens(tokens: list[str]) -> None:
    units = LEARNED[0]
    words, numbers = WordSegmenter().segment(units.join(tokens)), units.word_indices(tokens)
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
    actual = attention_to_words(matrix, target, source)
    assert actual.shape == (target[-1] + 1, source[-1] + 1)
    assert actual.sum(axis=1) == pytest.approx(np.ones(len(actual)))
    for row, word in enumerate(actual):
        for column, value in enumerate(word):
            inside = matrix[np.equal(target, row)][:, np.equal(source, column)]
            assert value == pytest.approx(inside.sum(axis=1).mean())


def test_attention_of_empty_sentences() -> None:
    assert attention_to_words(np.zeros((0, 2)), [], [0, 1]).shape == (0, 2)
    assert attention_to_words(np.ones((1, 1)), append_end([]), append_end([])).tolist() == [[1.0]]
    with pytest.raises(AssertionError):
        attention_to_words(np.ones((2, 3)), [0], [0, 1, 1])


# -- lengths ---------------------------------------------------------------------------------------------------------


@given(several=st.lists(lines, max_size=6))
def test_lengths_agree_with_a_word_corpus(several: list[str]) -> None:
    corpus = Corpus.from_sentences([line.replace("<s>", "x").replace("</s>", "y") for line in several])
    lengths = TextLengths.from_lines(line.replace("<s>", "x").replace("</s>", "y") for line in several)
    assert lengths == TextLengths(corpus.num_words, corpus.num_characters, corpus.num_sentences)
    assert lengths.tokens == corpus.num_tokens


def test_perplexities_do_not_depend_on_the_segmenter() -> None:
    """With a uniform distribution over k tokens, the loss of a line is (tokens + 1) log k, for any units."""
    lengths = TextLengths.from_lines(["ab cd", ""])
    assert lengths == TextLengths(words=2, characters=7, sentences=2)
    assert PairLikelihood(-4 * math.log(8), 0.0, 0, lengths).perplexity == pytest.approx(8)
    assert PairLikelihood(-7 * math.log(3), 0.0, 0, lengths).perplexity_characters == pytest.approx(3)
    assert PairLikelihood(-1e9, -math.inf, 0, lengths).perplexity == math.inf
    assert PairLikelihood(-1e9, 0.0, 0, lengths).perplexity_class == math.inf
    empty = PairLikelihood(0.0, 0.0, 0, TextLengths.from_lines([]))
    assert math.isnan(empty.perplexity) and math.isnan(empty.perplexity_characters)


def test_nothing_is_normalised() -> None:
    """Composed and decomposed letters are different lines, and stay so."""
    for units in EVERY:
        composed, decomposed = (unicodedata.normalize(form, "é Å ﬁ") for form in ("NFC", "NFD"))
        assert units.join(units.segment(composed)) == composed != decomposed == units.join(units.segment(decomposed))


def test_words_are_split_where_there_are_more_than_a_limit() -> None:
    lines = [f"word{letter} again ." for letter in "abcdefgh"] * 300
    assert train_segmenter("auto", lines).kind == "word"
    assert train_segmenter("auto", lines, max_subwords=100).kind == "word"
    assert train_segmenter("auto", lines, max_subwords=9).kind == "subword"
