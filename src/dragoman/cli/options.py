"""Options that several commands share, and functions that several commands call."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from dragoman.cli.option_groups import OptionGroup
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.align.unknown_words import UnknownReplacer
    from dragoman.models.translation import BaseTranslator
    from dragoman.ngram.model import NgramConfig

N = TypeVar("N", int, float)


def option(*names: str, help: str, metavar: str | None = None, **settings: Any) -> Any:
    """Declare an option that does not show its default: it has none, or the help text states it."""
    return typer.Option(*names, help=help, metavar=metavar, show_default=False, **settings)


def argument(metavar: str, help: str) -> Any:
    return typer.Argument(metavar=metavar, help=help, show_default=False)


def file_option(*names: str, help: str, **settings: Any) -> Any:
    return option(*names, help=help, metavar="FILE", **settings)


# -- texts -------------------------------------------------------------------------------------------------------------

FORMATS = "plain, .gz, .tsv or .jsonl"
Text = Annotated[str, file_option("--text", help=f"Text, one sentence per line: {FORMATS}; - is standard input.")]
InputText = Annotated[
    str, file_option("--text", help=f"Text, one sentence per line: {FORMATS}. Default: standard input.")
]
DevText = Annotated[str | None, file_option("--dev-text", help="Held-out text, to fit settings on and to evaluate.")]
Field = Annotated[
    str | None,
    option(
        "--field",
        metavar="NAME",
        help="Column of .tsv files, by number (default 1) or by name if the first line is a header; key of .jsonl "
        "files (default text).",
    ),
]
Src = Annotated[str, file_option("--src", help="Source text, one sentence per line.")]
Tgt = Annotated[str, file_option("--tgt", help="Target text: line i is the translation of line i of --src.")]
DevSrc = Annotated[str | None, file_option("--dev-src", help="Held-out source text, to select the best model.")]
DevTgt = Annotated[str | None, file_option("--dev-tgt", help="Translation of --dev-src.")]
SrcField = Annotated[
    str | None, option("--src-field", metavar="NAME", help="Column or key of the source, for .tsv and .jsonl files.")
]
TgtField = Annotated[
    str | None, option("--tgt-field", metavar="NAME", help="Column or key of the target, for .tsv and .jsonl files.")
]

# -- models and files --------------------------------------------------------------------------------------------------

Model = Annotated[Path, argument("DIR", "A model directory.")]
Models = Annotated[list[Path], argument("DIR...", "Model directories.")]
Translators = Annotated[list[Path], argument("DIR...", "A translator; several are used as an ensemble.")]
Output = Annotated[
    Path, option("--output", "-o", metavar="DIR", help="The model directory to write.", rich_help_panel="Output")
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing model.", rich_help_panel="Output")]
ForceFile = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
Picture = Annotated[Path | None, file_option("--picture", help="Also draw a figure: .svg or .png.")]
Prefix = Annotated[str, typer.Argument(help="The beginning of the sentence.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object; infinite values are null.")]
Threads = Annotated[int | None, option("--threads", min=1, metavar="N", help="Number of threads. Default: all cores.")]

# -- vocabularies ------------------------------------------------------------------------------------------------------

VocabFrom = Annotated[Path | None, option("--vocab", metavar="DIR", help="Use the vocabulary of this model.")]
MinCount = Annotated[
    int, typer.Option("--min-count", min=1, metavar="N", help="Words with a lower count become <unk>.")
]
MaxSize = Annotated[
    int | None, option("--max-size", min=1, metavar="N", help="Maximum number of words in the vocabulary.")
]
ReplaceSingletons = Annotated[
    bool, typer.Option("--replace-singletons", help="Words that occur once are unknown; the same as --min-count 2.")
]
Unknown = Annotated[
    str | None,
    option(
        "--unknown",
        metavar="KIND",
        help="Model of unknown words. none: they have probability 0; uniform: all have the same probability; "
        "characters: a character model. Default: uniform, or that of the model of --vocab.",
    ),
]
UnknownTotal = Annotated[
    int | None,
    option(
        "--unknown-words",
        min=1,
        metavar="N",
        help="Number of words in the language, for --unknown uniform. Default: 10000000.",
    ),
]

# -- n-grams -----------------------------------------------------------------------------------------------------------

VocabPad = Annotated[
    int | None,
    option(
        "--vocab-pad",
        min=1,
        metavar="N",
        help="Number of words in the language: <unk> in the ARPA file then has the probability of one unknown word, "
        "as in KenLM.",
    ),
]


@dataclass(frozen=True)
class NgramOptions(OptionGroup):
    """Settings of n-gram models."""

    panel = "Model"

    order: Annotated[int | None, option("--order", metavar="N", help="Length of the longest n-grams. Default: 5.")] = (
        None
    )
    smoothing: Annotated[str, typer.Option("--smoothing", metavar="NAME", help="Smoothing method.")] = (
        "modified-kneser-ney"
    )
    coefficients: Annotated[
        str,
        typer.Option("--coefficients", metavar="A,A,...", help="alpha_1,alpha_2,... for --smoothing interpolated."),
    ] = ""
    prune: Annotated[
        str,
        typer.Option(
            "--prune",
            metavar="N,N,...",
            help="Remove n-grams of each order that occur at most this often: 0,0,1 removes trigrams that occur once.",
        ),
    ] = ""

    def config(self, **others: Any) -> NgramConfig:
        """Return the settings of the model."""
        from dragoman.core.settings import GivenValue, validate
        from dragoman.ngram.model import NgramConfig

        if self.smoothing == "whole-prefix" and self.order is not None:
            raise DataError(f"--order {self.order}: whole-prefix uses the whole sentence and has no order; remove it")
        if self.order is not None:
            others["order"] = self.order
        values = others | {
            "smoothing": self.smoothing,
            "coefficients": parse_numbers("--coefficients", self.coefficients, float, "0.05,0.5"),
            "prune": parse_numbers("--prune", self.prune, int, "0,0,1"),
        }
        given = {name: GivenValue(value, f"--{name.replace('_', '-')}") for name, value in values.items()}
        return validate(NgramConfig, given, "n-gram settings")


# -- translating -------------------------------------------------------------------------------------------------------

BeamSize = Annotated[
    int, typer.Option("--beam-size", min=1, metavar="N", help="Hypotheses kept in each step; 1 is greedy search.")
]
Length = Annotated[
    str,
    typer.Option(
        "--length",
        metavar="NAME",
        help="Length handling. none; norm: mean log-probability per word; prior: times P(|E| given |F|) of the "
        "training text; penalty:X: plus X per word.",
    ),
]
CoveragePenalty = Annotated[
    float,
    typer.Option(
        "--coverage-penalty", min=0.0, metavar="X", help="Penalty for source words that receive little attention."
    ),
]
ShortlistFrom = Annotated[
    Path | None,
    option(
        "--shortlist",
        metavar="DIR",
        help="For speed: restrict each translation to frequent words and the translations of its source words in the "
        "lexicon of this aligner (see dragoman align). Probabilities are normalised over these words.",
    ),
]


@dataclass(frozen=True)
class UnknownReplacementOptions(OptionGroup):
    """Replacement of unknown words in translations."""

    replace: Annotated[
        bool,
        option(
            "--replace-unknowns",
            help="Replace unknown words by the source words with the highest attention. For translators of words.",
        ),
    ] = False
    lexicon: Annotated[
        Path | None,
        option(
            "--lexicon",
            metavar="DIR",
            help="Replace them by translations of these source words in the lexicon of this aligner.",
        ),
    ] = None

    @property
    def enabled(self) -> bool:
        """Whether unknown words are replaced."""
        return self.replace or self.lexicon is not None

    def load(self, model: BaseTranslator) -> UnknownReplacer | None:
        from dragoman.combine.load_translators import load_unknown_replacer

        return load_unknown_replacer(model, self.lexicon) if self.enabled else None

    def as_dict(self) -> dict[str, Any]:
        if self.lexicon is not None:
            return {"lexicon": str(self.lexicon)}
        return {"replace_unknowns": True} if self.replace else {}


# -- checks and conversions --------------------------------------------------------------------------------------------


def field_arguments(field: str | None) -> list[str]:
    """Return the option --field for the suggestion of another command."""
    return [] if field is None else ["--field", field]


def parse_numbers(name: str, text: str, kind: Callable[[str], N], example: str) -> tuple[N, ...]:
    """Parse a list such as `0.05,0.5`."""
    try:
        return tuple(kind(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise DataError(f"{name} {text!r}: give numbers separated by commas, such as {example}") from None


def limited_threads(threads: int | None) -> AbstractContextManager[None]:
    from dragoman.core.threads import limit_threads

    return nullcontext() if threads is None else limit_threads(threads)


def check_utf8_argument(text: str, name: str = "prefix") -> None:
    """Raise an error if an argument is not UTF-8: the shell may pass any bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError(f"the {name} is not UTF-8; check the encoding of the terminal") from None


def check_picture(picture: Path | None) -> None:
    """Raise an error if a figure cannot be written to a file of this name, or matplotlib is missing."""
    from dragoman.report.figures import image_format

    if picture is not None:
        image_format(picture)


def check_new_file(path: Path, *, replace: bool) -> None:
    """Raise an error if something exists at `path`, unless it is a file that may be replaced."""
    if path.exists() and not path.is_file():
        raise DataError(f"{path}: is not a file that can be replaced; choose another name")
    if path.exists() and not replace:
        raise DataError(f"{path}: exists already; choose another name, or --force to replace it")


def check_output_file(name: str, path: Path) -> None:
    """Raise an error if a file cannot be written, before the work for it begins."""
    if str(path) == "-":
        raise DataError(f"{name} -: standard output is used for other results; name a file")
    if path.is_dir():
        raise DataError(f"{name} {path}: is a directory; name a file")
    if not path.parent.is_dir():
        raise DataError(f"{name} {path}: there is no directory {path.parent}; create it, or name another file")
    if not os.access(path.parent, os.W_OK):
        raise DataError(f"{name} {path}: {path.parent} is not writable; name another file")


def short_names(paths: Sequence[str]) -> list[str]:
    """Return the last parts of paths if these are distinct, otherwise the paths."""
    names = [Path(path).name for path in paths]
    return names if len(set(names)) == len(names) else list(paths)
