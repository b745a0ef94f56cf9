"""The vocabulary of a text: words, how often each occurs and where first, as DataFrame jobs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import functions as sf

from dragoman.core.errors import DataError
from dragoman.data.corpus import Corpus
from dragoman.data.detokenize import SAMPLE_LINES, looks_tokenised
from dragoman.data.text_chunks import MOSTLY_KNOWN
from dragoman.data.vocabulary import SPECIALS, UNK, Vocab
from dragoman.spark.lines import MAX_LINE_BYTES, NumberedLines
from dragoman.spark.shipping import ship_vocab
from dragoman.spark.workers import known_words

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

POSITION_BITS = MAX_LINE_BYTES.bit_length()  # a line has fewer words than bytes


@dataclass(frozen=True)
class TextVocabulary:
    """The vocabulary of a text, and what else its words say."""

    vocab: Vocab
    words: int  # occurrences of words
    unknown_types: tuple[
        str, ...
    ] = ()  # the words outside the vocabulary in order of first use, if they were collected
    is_split: bool = False  # the text is split into tokens already, which the segmenter must not split


def count_words(lines: NumberedLines) -> DataFrame:
    """Return the columns `word`, `count` and `first`: a number that orders words by their first use.

    Words are separated by spaces and TABs only.
    """
    pieces = sf.split(sf.translate("text", "\t", " "), " ")
    tokens = lines.frame.select("number", sf.posexplode(pieces).alias("position", "word")).where(sf.col("word") != "")
    first = sf.shiftleft("number", POSITION_BITS) + sf.col("position")
    return tokens.groupBy("word").agg(sf.count("*").alias("count"), sf.min(first).alias("first"))


def build_vocabulary(
    lines: NumberedLines, *, min_count: int = 1, max_size: int | None = None, with_unknown: bool = False
) -> TextVocabulary:
    """Build the vocabulary that `Vocab.build` would build from the whole text, with the same ids.

    Args:
        lines: the training text.
        min_count: words with a lower count become `<unk>`.
        max_size: the maximum number of words; of equally frequent ones, earlier words are kept.
        with_unknown: collect the words that are not kept as well.
    """
    table = count_words(lines).persist()
    try:
        words = int(table.agg(sf.sum("count")).collect()[0][0] or 0)
        if not words:
            raise DataError("the text has no words")
        candidates = table.where((sf.col("word") != SPECIALS[UNK]) & (sf.col("count") >= min_count))
        kept = candidates
        if max_size is not None and candidates.count() > max_size:
            kept = candidates.orderBy(sf.desc("count"), "first").limit(max_size)
        known = kept.orderBy("first").select("word", "count").toArrow()
        tokens, counts = known.column("word").to_pylist(), known.column("count").to_numpy()
        vocab = Vocab([*SPECIALS, *tokens], [0, 0, words - int(counts.sum()), *counts.tolist()])
        others: tuple[str, ...] = ()
        if with_unknown:
            outside = table.where(sf.col("word") != SPECIALS[UNK]).join(kept.select("word"), "word", "left_anti")
            others = tuple(outside.orderBy("first").select("word").toArrow().column("word").to_pylist())
        return TextVocabulary(vocab, words, others)
    finally:
        table.unpersist()


def is_split_into_tokens(lines: NumberedLines, vocab: Vocab) -> bool:
    """Return whether a text is already split into the tokens of a vocabulary: most of its words are in it."""
    if vocab.segmenter.kind == "word":
        return True
    task = partial(known_words, vocab=ship_vocab(lines.frame.sparkSession, vocab))
    counts = lines.frame.select("text").mapInArrow(task, "words long, known long")
    words, known = counts.agg(sf.sum("words"), sf.sum("known")).collect()[0]
    return bool(known > MOSTLY_KNOWN * words)


def is_tokenised(lines: NumberedLines) -> bool:
    """Return whether the text is tokenised, by lines from all parts of it."""
    step = max(1, lines.total // SAMPLE_LINES)
    sample = lines.frame.where(sf.col("number") % step == 1 % step).orderBy("number").select("text").toArrow()
    return looks_tokenised(sample.column("text").to_pylist())


def without_text(vocabulary: TextVocabulary) -> Corpus:
    """Return a corpus with the words of a text and no sentences: what unknown-word models are trained on."""
    nothing = np.zeros(0, np.int32)
    places = np.zeros(0, np.int64)
    return Corpus(vocabulary.vocab, nothing, np.zeros(1, np.int64), places, nothing, vocabulary.unknown_types)
