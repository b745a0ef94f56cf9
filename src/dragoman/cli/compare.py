"""dragoman compare"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.messages import info, status
from dragoman.cli.option_groups import OptionGroup, with_option_groups
from dragoman.cli.pair_options import read_lines
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.evaluation.comparison import Comparison, ComparisonInput


@dataclass(frozen=True, kw_only=True)
class ComparisonFiles(OptionGroup):
    """The texts that belong together line by line, and what the systems are called."""

    reference: Annotated[
        str, typer.Option("--ref", metavar="FILE", help="The references, one sentence a line.", show_default=False)
    ]
    systems: Annotated[
        list[str],
        typer.Option(
            "--sys", metavar="FILE", help="Translations by one system, one a line. Give it twice.", show_default=False
        ),
    ]
    source: Annotated[
        str | None,
        typer.Option("--src", metavar="FILE", help="The source, for lengths and examples.", show_default=False),
    ] = None
    training: Annotated[
        str | None,
        typer.Option(
            "--train-tgt",
            metavar="FILE",
            help="Training text of the target language, to tell rare words. Default: by the references.",
            show_default=False,
        ),
    ] = None
    names: Annotated[
        str, typer.Option("--names", metavar="A,B", help="What to call the systems. Default: as their files.")
    ] = ""

    def texts(self) -> ComparisonInput:
        """Read all files; those that belong together line by line must have as many lines."""
        from dragoman.evaluation.comparison import ComparisonInput

        if len(self.systems) != 2:
            raise DataError(f"--sys: {len(self.systems)} given; two are compared: say --sys twice")
        names = _names(self.systems, self.names)
        references = read_lines(self.reference)
        first, second = (_in_step(path, self.reference, len(references)) for path in self.systems)
        sources = None if self.source is None else _in_step(self.source, self.reference, len(references))
        training = None if self.training is None else read_lines(self.training)
        return ComparisonInput(references, first, second, names, sources, training)


@dataclass(frozen=True)
class ComparisonOutput(OptionGroup):
    """How much is shown, and how."""

    examples: Annotated[int, typer.Option("--examples", min=0, metavar="N", help="Sentences shown each way.")] = 3
    ngrams: Annotated[int, typer.Option("--ngrams", min=0, metavar="N", help="n-grams shown each way.")] = 10
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object; what is undefined is null.")] = False
    as_markdown: Annotated[bool, typer.Option("--markdown", help="The tables as Markdown.")] = False


@with_option_groups
def compare(
    files: ComparisonFiles,
    tokenised: Annotated[
        bool | None,
        typer.Option(
            "--tokenised/--raw",
            help="Take words as they are (tok:none), or let sacreBLEU split them (13a). Default: by looking.",
            show_default=False,
        ),
    ] = None,
    resamples: Annotated[int, typer.Option("--resamples", min=1, metavar="N", help="Of the paired bootstrap.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same resamples for the same seed.")] = 12345,
    shown: ComparisonOutput = ComparisonOutput(),
) -> None:
    """Compare the translations of two systems.

    Gives BLEU and chrF by sacreBLEU; whether the difference could be luck with the test sentences (paired bootstrap);
    BLEU by sentence length; how well rare and frequent words are translated; n-grams that the second system gains and
    loses; what is said twice or left out; and the sentences that differ most. The first system is the one to beat.

    \b
    Example:
      dragoman compare --ref test.en --sys plain.en --sys attention.en
      dragoman compare --ref test.en --sys a.en --sys b.en --src test.de --train-tgt train.en --names old,new
      dragoman compare --ref test.en --sys a.en --sys b.en --json
    """
    if shown.as_json and shown.as_markdown:
        raise DataError("--json and --markdown: choose one")
    texts = files.texts()
    tokenised = _looks_tokenised(texts.references) if tokenised is None else tokenised
    from dragoman.evaluation.comparison import compare_systems as compared

    with status("comparing"):
        found = compared(
            texts,
            tokenised=tokenised,
            resamples=resamples,
            seed=seed,
            max_ngrams=shown.ngrams,
            max_examples=shown.examples,
        )
    print(_written(found, shown))


def _written(found: Comparison, shown: ComparisonOutput) -> str:
    from dragoman.report.comparison import comparison_markdown, comparison_text

    if shown.as_json:
        return json.dumps(found.as_dict(), allow_nan=False)
    return comparison_markdown(found) if shown.as_markdown else comparison_text(found)


def _in_step(path: str, reference: str, wanted: int) -> list[str]:
    """The lines of a file, as many as there are references."""
    from dragoman.data.formats import display_name

    lines = read_lines(path)
    if len(lines) != wanted:
        told = f"{display_name(path)} has {len(lines):,} lines, {display_name(reference)} has {wanted:,}"
        raise DataError(f"{told}; line i of both must belong to the same sentence")
    return lines


def _names(systems: Sequence[str], names: str) -> tuple[str, str]:
    """What the systems are called: as was said, else as their files, with the path if that tells them apart."""
    if names:
        given = [name.strip() for name in names.split(",")]
        if len(given) != 2 or not all(given) or given[0] == given[1]:
            raise DataError(f"--names {names}: give two different names with a comma between them, such as old,new")
        return given[0], given[1]
    for found in ([Path(path).name for path in systems], systems):
        if found[0] != found[1]:
            return found[0], found[1]
    info(f"warning: {systems[0]}: the same file twice; nothing can differ")
    return "first", "second"


def _looks_tokenised(lines: Sequence[str]) -> bool:
    from dragoman.data.words import looks_tokenised

    found = looks_tokenised(lines)
    if found:
        info("the references look tokenised: words are taken as they are (--raw if they are not)")
    else:
        info("the references look like raw text: sacreBLEU splits it into words (--tokenised if it is)")
    return found
