"""Options of `dragoman score`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from dragoman.cli import options
from dragoman.cli.option_groups import OptionGroup, option
from dragoman.cli.sharding import ShardOptions
from dragoman.core.errors import DataError

ShardDirectory = Annotated[
    Path | None,
    option("--output, -o DIR", "With --shards: the directory for the outputs of all parts.", panel="Shards"),
]


@dataclass(frozen=True)
class ScoreOptions(OptionGroup):
    src: Annotated[str | None, option("--src FILE", "For translators: the source of the text, line by line.")] = None
    src_field: options.SrcField = None
    words: Annotated[
        bool,
        option(
            "--words",
            "Print one row per word. For one model, unknown words also show <unk>, its log-probability and that of the "
            "spelling; for several, columns of bits.",
        ),
    ] = False
    tokens: Annotated[
        bool, option("--tokens", "Print one row per token of the model, such as a subword, instead of per word.")
    ] = False
    picture: Annotated[
        Path | None,
        option("--picture FILE", "Also draw the surprisal of each word, for at most 60 words: .svg or .png."),
    ] = None
    raw: Annotated[bool, option("--raw", "Print unnormalised scores of stupid-backoff.")] = False
    log10: Annotated[bool, option("--log10", "Print logarithms to base 10 instead of natural ones.")] = False

    def check(self, models: list[Path], sharding: ShardOptions) -> None:
        from dragoman.models.loading import check_distinct

        options.check_picture(self.picture)
        check_distinct(models)
        several = len(models) > 1
        if several and (files := [path for path in models if path.is_file()]):
            raise DataError(f"{files[0]}: is a file, not a model directory; if it is the text, use --text {files[0]}")
        if self.raw and self.src is not None:
            raise DataError("--raw is for stupid-backoff, and --src for translators; remove one of them")
        if self.raw and (several or self.picture):
            raise DataError("--raw: raw scores are not probabilities; give one model and no --picture")
        if self.log10 and several and self.has_rows:
            name = "--words" if self.words else "--tokens"
            raise DataError(f"--log10: several models with {name} are shown in bits; remove one of the options")
        if self.words and self.tokens:
            raise DataError("--words and --tokens: choose one of them")
        if sharding.is_given and self.picture is not None:
            raise DataError("--picture draws a whole text, not --shards of it; remove one of them")
        if sharding.dedup and (self.has_rows or self.picture is not None):
            raise DataError("--dedup is for one score per line; remove --words, --tokens and --picture")

    @property
    def has_rows(self) -> bool:
        """Whether there is a row for each word or token."""
        return self.words or self.tokens

    @property
    def by_token(self) -> bool:
        """Whether the parts of a sentence are tokens. Those of a translator are."""
        return self.tokens or self.src is not None
