"""Scoring a text block by block: blocks of lines as language models read them, or of sentence pairs for translators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from dragoman.data.corpus import Corpus
from dragoman.data.formats import decode_lines
from dragoman.data.line_blocks import iter_blocks, split_block
from dragoman.models.language_model import LanguageModel

if TYPE_CHECKING:
    from dragoman.models.translation import BaseTranslator

BLOCK_LINES = 2048  # scored at a time: neural models batch lines of similar lengths

Line = bytes | tuple[str, str]  # a line without its line break, or a sentence pair
Block = Sequence[Line]
ModelInputs = Mapping[str, tuple[LanguageModel, Corpus]]  # models by name, with the text in their vocabularies


def line_blocks(text: bytes, block_lines: int | None = BLOCK_LINES) -> Iterator[Block]:
    """Yield the lines of a text in blocks; with None, in one."""
    blocks = iter([text] if text else []) if block_lines is None else iter_blocks([text], block_lines)
    return map(split_block, blocks)


def pair_blocks(source: Sequence[str], target: Sequence[str], block_lines: int | None = BLOCK_LINES) -> Iterator[Block]:
    """Yield sentence pairs in blocks; with None, in one."""
    for first in range(0, len(source), block_lines or max(1, len(source))):
        lines = slice(first, first + block_lines if block_lines else None)
        yield list(zip(source[lines], target[lines], strict=True))


def split_blocks(blocks: Iterable[Sequence[bytes]]) -> Iterator[Block]:
    """Yield the lines of blocks of one text, or the sentence pairs of blocks of two."""
    for texts in blocks:
        if len(texts) == 1:
            yield split_block(texts[0])
        else:
            yield list(zip(*map(decode_lines, texts), strict=True))


def encode_text(models: Iterable[LanguageModel], text: bytes) -> list[Corpus]:
    """Return a text as each language model reads it. It is encoded once for each vocabulary."""
    corpora: dict[object, Corpus] = {}
    keys = [(model.vocab, model.vocab.segmenter) for model in models]
    for vocab, segmenter in keys:
        if (vocab, segmenter) not in corpora:
            is_word = segmenter.kind == "word"
            corpora[vocab, segmenter] = (
                Corpus.from_text(text, vocab) if is_word else Corpus.from_sentences(decode_lines(text), vocab)
            )
    return [corpora[key] for key in keys]


def encode_lines(models: Mapping[str, LanguageModel], block: Block) -> ModelInputs:
    """Return language models with lines as each of them reads them."""
    text = b"".join(line + b"\n" for line in block if isinstance(line, bytes))
    corpora = encode_text(models.values(), text)
    return dict(zip(models, zip(models.values(), corpora, strict=True), strict=True))


def encode_pairs(translators: Mapping[str, BaseTranslator], block: Block) -> ModelInputs:
    """Return translators for given sources as language models, with the targets as each of them reads them."""
    pairs = [pair for pair in block if not isinstance(pair, bytes)]
    source, target = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return {name: (model.condition_on(source), model.target.encode(target)) for name, model in translators.items()}
