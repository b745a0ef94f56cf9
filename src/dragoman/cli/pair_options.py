"""Options that name pairs of texts, and reading them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli import options
from dragoman.cli.option_groups import OptionGroup
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.corpus import ParallelCorpus
    from dragoman.data.tokenizer import Tokenizer

Src = Annotated[
    str,
    typer.Option("--src", metavar="FILE", help="The text to translate from, one sentence a line.", show_default=False),
]
Tgt = Annotated[
    str,
    typer.Option("--tgt", metavar="FILE", help="Its translation: line i translates line i.", show_default=False),
]
DevSrc = Annotated[
    str | None,
    typer.Option("--dev-src", metavar="FILE", help="Held-out text, to choose the best model by.", show_default=False),
]
DevTgt = Annotated[
    str | None, typer.Option("--dev-tgt", metavar="FILE", help="The translation of --dev-src.", show_default=False)
]
SrcField = Annotated[
    str | None,
    typer.Option("--src-field", metavar="NAME", help="Column or key, of .tsv and .jsonl files.", show_default=False),
]
TgtField = Annotated[
    str | None,
    typer.Option("--tgt-field", metavar="NAME", help="The same of the translation.", show_default=False),
]
SrcFormat = Annotated[
    str,
    typer.Option(
        "--src-format", metavar="text|tree", help="tree: one bracketed tree a line, for tree-structured encoders."
    ),
]
Units = Annotated[
    str,
    typer.Option(
        "--units",
        metavar="KIND",
        help="What lines are cut into: word, char, subword:N (BPE) or unigram:N, N pieces learned from the text. "
        "auto: characters where lines are single words, words where the text is tokenised and few are rare, else as "
        "many subwords as suit the text.",
    ),
]
TargetUnits = Annotated[
    str | None,
    typer.Option(
        "--tgt-units", metavar="KIND", help="The same of the translation. Default: as --units.", show_default=False
    ),
]
MinCount = Annotated[
    int | None,
    typer.Option(
        "--min-count",
        min=1,
        metavar="N",
        help="Units seen less often are unknown. Default: 2 for words, else 1.",
        show_default=False,
    ),
]
MaxSize = Annotated[
    int | None,
    typer.Option("--max-size", min=1, metavar="N", help="Most units a vocabulary may have.", show_default=False),
]
TokenizersFrom = Annotated[
    Path | None,
    typer.Option(
        "--vocab",
        metavar="DIR",
        help="Take over the units and vocabularies of this translator, so that the two can be an ensemble.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class TokenizerOptions(OptionGroup):
    """How lines become numbers."""

    panel = "Data"

    units: Units = "auto"
    tgt_units: TargetUnits = None
    src_format: SrcFormat = "text"
    min_count: MinCount = None
    max_size: MaxSize = None
    vocab_from: TokenizersFrom = None

    def train_tokenizers(self, lines: LinePairs) -> tuple[Tokenizer, Tokenizer]:
        """The two sides, learned from the training text or taken over."""
        from dragoman.data.tokenizer import PLAIN, TREE, Tokenizer
        from dragoman.models.loading import load_translator

        if self.src_format not in (PLAIN, TREE):
            raise DataError(f"--src-format {self.src_format}: it is {PLAIN} or {TREE}")
        if self.vocab_from is not None:
            if self != replace(TokenizerOptions(), vocab_from=self.vocab_from, src_format=self.src_format):
                raise DataError("--vocab takes units as they are: no --units, --tgt-units, --min-count or --max-size")
            return self._lent(load_translator(self.vocab_from))
        if self.src_format == TREE and self.units not in ("auto", "word"):
            raise DataError(f"--src-format tree: the words of trees are not cut; leave --units {self.units} out")
        learn = partial(Tokenizer.train, min_count=self.min_count, max_size=self.max_size)
        source = learn(self.units, lines.source, format=self.src_format, name=lines.name)
        return source, learn(self.tgt_units or self.units, lines.target)

    def _lent(self, lender: Any) -> tuple[Tokenizer, Tokenizer]:
        if lender.source.format != self.src_format:
            told = f"{self.vocab_from} reads {lender.source.format}, and --src-format is {self.src_format}"
            raise DataError(f"{told}; make them the same")
        return lender.source, lender.target


@dataclass(frozen=True)
class LinePairs:
    """Two texts, aligned line by line."""

    source: list[str]
    target: list[str]
    name: str = "source"  # of the source's file, for messages

    @property
    def reversed(self) -> LinePairs:
        """The other way around."""
        return LinePairs(self.target, self.source, "target")


def read_pairs(src: str, tgt: str, src_field: str | None = None, tgt_field: str | None = None) -> LinePairs:
    """Both texts, which must have as many lines."""
    source, target = read_lines(src, src_field), read_lines(tgt, tgt_field)
    if len(source) != len(target):
        told = f"{src} has {len(source):,} lines but {tgt} has {len(target):,}"
        raise DataError(f"{told}: line i of one must translate line i of the other")
    return LinePairs(source, target, src)


def read_lines(path: str, field: str | None = None) -> list[str]:
    """The lines of a text file, whatever system they were written on."""
    from dragoman.data.formats import read_text

    text = read_text(path, options.field_for(path, field)).decode("utf-8")
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def encode_pairs(lines: LinePairs, source: Tokenizer, target: Tokenizer) -> ParallelCorpus:
    from dragoman.data.corpus import ParallelCorpus

    return ParallelCorpus(source.encode(lines.source, lines.name), target.encode(lines.target))
