"""Options of `dragoman translate`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from dragoman.cli.option_groups import OptionGroup, option
from dragoman.cli.options import NoSplit, SearchOptions, check_output_file
from dragoman.cli.sharding import ShardOptions
from dragoman.core.defaults import MAX_TOKENS
from dragoman.core.errors import DataError


@dataclass(frozen=True)
class LineTranslatorOptions(SearchOptions):
    panel = "Search"

    max_units: Annotated[int, option("--max-units N", "Split sentences that have more tokens than this.", min=1)] = (
        MAX_TOKENS
    )
    no_split: NoSplit = False


@dataclass(frozen=True)
class SamplingOptions(OptionGroup):
    panel = "Sampling"

    sample: Annotated[
        int | None, option("--sample N", "Sample N translations per line from P(E | F); do not search.", min=1)
    ] = None
    seed: Annotated[int | None, option("--seed N", "Random seed of samples. Default: 1.", min=0)] = None
    temperature: Annotated[
        float | None,
        option("--temperature X", "Temperature of sampling; below 1, probable words are preferred. Default: 1."),
    ] = None


@dataclass(frozen=True)
class OutputOptions(OptionGroup):
    panel = "Output"

    n_best: Annotated[
        int | None,
        option(
            "--n-best N",
            "Print the N best translations per line in the format of Moses: number, translation, log P, score. The "
            "beam has at least N hypotheses.",
            min=1,
        ),
    ] = None
    as_json: Annotated[bool, option("--json", "Print one JSON object per line, with scores and attention.")] = False
    alignments: Annotated[
        Path | None,
        option(
            "--alignments FILE",
            "Also write word alignments by attention: source-target pairs, counted from 0. For translators of "
            "characters, alignments of characters.",
        ),
    ] = None
    lattice: Annotated[
        Path | None,
        option(
            "--lattice FILE",
            "Also write the hypotheses of each search, with the best pruned ones: .jsonl, otherwise text.",
        ),
    ] = None
    explain_unknowns: Annotated[bool, option("--explain-unknowns", "Report how each unknown word was replaced.")] = (
        False
    )


@dataclass(frozen=True)
class FusionOptions(OptionGroup):
    panel = "Fusion with a language model"

    language_model: Annotated[
        Path | None, option("--lm DIR", "Language model over the target's tokens (see dragoman units).")
    ] = None
    lm_weight: Annotated[
        float | None,
        option(
            "--lm-weight X",
            "Weight of the language model. linear: its share, below 1; log-linear: its exponent. Default: 0.2.",
            min=0.0,
        ),
    ] = None
    fusion: Annotated[
        str | None,
        option("--fusion linear|log-linear", "Average the probabilities, or multiply them. Default: log-linear."),
    ] = None


def check_line_options(
    sampling: SamplingOptions, output: OutputOptions, field: str | None, sharding: ShardOptions
) -> None:
    """Raise an error for options that documents do not have."""
    given = {
        "--shards": sharding.is_given,
        "--dedup": sharding.dedup,
        "--field": field is not None,
        "--sample": sampling != SamplingOptions(),
        "--n-best": output.n_best is not None,
        "--json": output.as_json,
        "--alignments": output.alignments is not None,
        "--lattice": output.lattice is not None,
        "--explain-unknowns": output.explain_unknowns,
    }
    if name := next((name for name, is_given in given.items() if is_given), None):
        raise DataError(f"{name} is for text line by line, not for documents; remove it, or add --format text")


def check_shard_options(output: OutputOptions) -> None:
    """Raise an error for options that shards do not have."""
    for name, path in (("--alignments", output.alignments), ("--lattice", output.lattice)):
        if path is not None:
            remedy = "; --json writes the attention" if name == "--alignments" else ""
            raise DataError(f"{name} is not for --shards, which write one file each{remedy}; remove it")


def check_dedup(sharding: ShardOptions, sampling: SamplingOptions) -> None:
    if sharding.dedup and sampling.sample is not None:
        raise DataError("--dedup: samples of equal lines differ; remove it, or --sample")


def check_translate_options(search: LineTranslatorOptions, sampling: SamplingOptions, output: OutputOptions) -> None:
    check_output_file("--alignments", output.alignments)
    check_output_file("--lattice", output.lattice)
    if output.explain_unknowns and not search.replaces_unknowns:
        raise DataError("--explain-unknowns: no words are replaced; add --replace-unknowns or --lexicon DIR")
    if sampling.sample is None:
        if sampling != SamplingOptions():
            raise DataError("--seed and --temperature are for sampling; add --sample N")
        return
    if output.n_best is not None:
        raise DataError("--sample samples translations and --n-best searches for the best; choose one of them")
    if search.replaces_unknowns:
        raise DataError("--sample prints samples as they are; remove --replace-unknowns and --lexicon")
    if output.lattice is not None:
        raise DataError("--lattice records a search, and --sample does not search; remove one of them")
    if search != LineTranslatorOptions(max_units=search.max_units, no_split=search.no_split, verbatim=search.verbatim):
        names = "--beam-size, --length, --coverage-penalty, --allow-repetition and --shortlist"
        raise DataError(f"{names} are for searching, and --sample does not search; remove them")
