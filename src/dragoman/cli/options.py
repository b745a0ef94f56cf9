"""Options that several verbs share, said once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from dragoman.cli.option_groups import OptionGroup
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.ngram.model import NgramConfig

N = TypeVar("N", int, float)

Model = Annotated[Path, typer.Argument(metavar="DIR", help="A model directory.", show_default=False)]
Models = Annotated[list[Path], typer.Argument(metavar="DIR...", help="Model directories.", show_default=False)]
Text = Annotated[
    str,
    typer.Option(
        "--text",
        metavar="FILE",
        help="One sentence a line: plain, .gz, .tsv or .jsonl; - is standard input.",
        show_default=False,
    ),
]
DevText = Annotated[
    str | None,
    typer.Option(
        "--dev-text", metavar="FILE", help="Held-out text, to fit on and to report about.", show_default=False
    ),
]
Field = Annotated[
    str | None,
    typer.Option(
        "--field",
        metavar="NAME",
        help="Of .tsv files: the column, by its number if there is no header (default 1), or by its name in a header, "
        "the first line. Of .jsonl files: the key (default text).",
        show_default=False,
    ),
]
Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="The model directory to write.",
        show_default=False,
        rich_help_panel="Output",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing model.", rich_help_panel="Output")]
VocabFrom = Annotated[
    Path | None,
    typer.Option("--vocab", metavar="DIR", help="Take over this model's vocabulary.", show_default=False),
]
MinCount = Annotated[int, typer.Option("--min-count", min=1, metavar="N", help="Words seen less often are unknown.")]
MaxSize = Annotated[
    int | None,
    typer.Option("--max-size", min=1, metavar="N", help="Most words the vocabulary may have.", show_default=False),
]
ReplaceSingletons = Annotated[
    bool, typer.Option("--replace-singletons", help="Words seen once are unknown; the same as --min-count 2.")
]
Unknown = Annotated[
    str | None,
    typer.Option(
        "--unknown",
        metavar="KIND",
        help="What tells unknown words apart. none: they cannot occur; uniform: all alike; characters: spelled out. "
        "Default: uniform, or what the model of --vocab has.",
        show_default=False,
    ),
]
UnknownTotal = Annotated[
    int | None,
    typer.Option(
        "--unknown-words",
        min=1,
        metavar="N",
        help="Words the language has, known and unknown, if uniform. Default: 10000000.",
        show_default=False,
    ),
]
Order = Annotated[
    int | None,
    typer.Option("--order", metavar="N", help="The longest n-grams counted. Default: 5.", show_default=False),
]
Smoothing = Annotated[str, typer.Option("--smoothing", metavar="NAME", help="How counts become probabilities.")]
Coefficients = Annotated[
    str, typer.Option("--coefficients", metavar="A,A,...", help="alpha_1,alpha_2,... of interpolated.")
]
Prune = Annotated[
    str,
    typer.Option("--prune", metavar="N,N,...", help="Drop n-grams seen so often or less: 0,0,1 from order 3 on."),
]
VocabPad = Annotated[
    int | None,
    typer.Option(
        "--vocab-pad",
        min=1,
        metavar="N",
        help="Words the language has: <unk> in the ARPA file is then one unknown word's share, as for KenLM.",
        show_default=False,
    ),
]


def field_for(path: str, field: str | None, *others: str | None) -> str | None:
    """The field to take from a file: plain text among several files has none. Refused if no file has any."""
    from dragoman.data.formats import display_name, has_fields

    if field is None or has_fields(path):
        return field
    if not any(other is not None and has_fields(other) for other in others):
        raise DataError(f"{display_name(path)}: --field {field} goes with .tsv and .jsonl files only")
    return None


def field_arguments(field: str | None) -> list[str]:
    """The option as it is given to another command."""
    return [] if field is None else ["--field", field]


@dataclass(frozen=True)
class NgramOptions(OptionGroup):
    """What n-grams are counted, and how counts become probabilities."""

    order: Order = None
    smoothing: Smoothing = "modified-kneser-ney"
    coefficients: Coefficients = ""
    prune: Prune = ""

    def config(self, **others: Any) -> NgramConfig:
        """The settings of an n-gram model from what was typed."""
        from dragoman.ngram.model import NgramConfig

        order = self.order
        if self.smoothing == "whole-prefix" and order is not None:
            remedy = "whole-prefix looks at the whole sentence so far and has no order; leave it"
            raise DataError(f"--order {order}: {remedy}")
        if order is not None:
            others["order"] = order
        return NgramConfig(
            smoothing=self.smoothing,
            coefficients=parse_numbers("--coefficients", self.coefficients, float, "0.05,0.5"),
            prune=parse_numbers("--prune", self.prune, int, "0,0,1"),
            **others,
        )


def parse_numbers(option: str, text: str, kind: Callable[[str], N], example: str) -> tuple[N, ...]:
    """A list like `0.05,0.5` as numbers."""
    try:
        return tuple(kind(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise DataError(f"{option} {text!r}: give numbers with commas between them, such as {example}") from None
