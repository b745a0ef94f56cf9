"""Options of `dragoman translate`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.option_groups import OptionGroup
from dragoman.cli.options import (
    BeamSize,
    CoveragePenalty,
    Length,
    ShortlistFrom,
    UnknownReplacementOptions,
    check_output_file,
    file_option,
    option,
)
from dragoman.core.defaults import DEFAULT_LENGTH, MAX_TOKENS
from dragoman.core.errors import DataError


@dataclass(frozen=True)
class SearchArguments(OptionGroup):
    panel = "Search"

    beam_size: BeamSize = 5
    length: Length = DEFAULT_LENGTH
    coverage: CoveragePenalty = 0.0
    max_units: Annotated[
        int, typer.Option("--max-units", min=1, metavar="N", help="Split lines that have more tokens than this.")
    ] = MAX_TOKENS
    shortlist: ShortlistFrom = None


@dataclass(frozen=True)
class SamplingArguments(OptionGroup):
    panel = "Sampling"

    sample: Annotated[
        int | None,
        option("--sample", min=1, metavar="N", help="Sample N translations per line from P(E | F); do not search."),
    ] = None
    seed: Annotated[int | None, option("--seed", min=0, help="Random seed of samples. Default: 1.")] = None
    temperature: Annotated[
        float | None,
        option("--temperature", help="Temperature of sampling; below 1, probable words are preferred. Default: 1."),
    ] = None


@dataclass(frozen=True)
class OutputOptions(OptionGroup):
    panel = "Output"

    n_best: Annotated[
        int | None,
        option(
            "--n-best",
            min=1,
            metavar="N",
            help="Print the N best translations per line in the format of Moses: number, translation, log P, score. "
            "The beam has at least N hypotheses.",
        ),
    ] = None
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line, with scores and attention.")
    ] = False
    alignments: Annotated[
        Path | None,
        file_option(
            "--alignments",
            help="Also write word alignments by attention: source-target pairs, counted from 0. For translators of "
            "characters, alignments of characters.",
        ),
    ] = None
    lattice: Annotated[
        Path | None,
        file_option(
            "--lattice",
            help="Also write the hypotheses of each search, with the best pruned ones: .jsonl, otherwise text.",
        ),
    ] = None
    explain_unknowns: Annotated[
        bool, option("--explain-unknowns", help="Report how each unknown word was replaced.")
    ] = False


@dataclass(frozen=True)
class FusionOptions(OptionGroup):
    panel = "Fusion with a language model"

    language_model: Annotated[
        Path | None,
        option("--lm", metavar="DIR", help="Language model over the target's tokens (see dragoman units)."),
    ] = None
    lm_weight: Annotated[
        float | None,
        option(
            "--lm-weight",
            min=0.0,
            metavar="X",
            help="Weight of the language model. linear: its share, below 1; log-linear: its exponent. Default: 0.2.",
        ),
    ] = None
    fusion: Annotated[
        str | None,
        option(
            "--fusion",
            metavar="linear|log-linear",
            help="Average the probabilities, or multiply them. Default: log-linear.",
        ),
    ] = None


@dataclass(frozen=True)
class TranslateUnknownOptions(UnknownReplacementOptions):
    panel = "Search"


def check_translate_options(
    models: list[Path],
    search: SearchArguments,
    unknowns: UnknownReplacementOptions,
    sampling: SamplingArguments,
    output: OutputOptions,
) -> None:
    for path in models:
        if path.is_file():
            raise DataError(f"{path}: is a file, not a translator; to translate a file use --text {path}")
    for name, file in (("--alignments", output.alignments), ("--lattice", output.lattice)):
        if file is not None:
            check_output_file(name, file)
    if output.explain_unknowns and not unknowns.enabled:
        raise DataError("--explain-unknowns: no words are replaced; add --replace-unknowns or --lexicon DIR")
    if sampling.sample is None:
        if sampling.seed is not None or sampling.temperature is not None:
            raise DataError("--seed and --temperature are for sampling; add --sample N")
        return
    if output.n_best is not None:
        raise DataError("--sample samples translations and --n-best searches for the best; choose one of them")
    if unknowns.enabled:
        raise DataError("--sample prints samples as they are; remove --replace-unknowns and --lexicon")
    if output.lattice is not None:
        raise DataError("--lattice records a search, and --sample does not search; remove one of them")
    if replace(search, max_units=SearchArguments.max_units, shortlist=None) != SearchArguments():
        names = "--beam-size, --length and --coverage-penalty"
        raise DataError(f"{names} are for searching, and --sample does not search; remove them")
