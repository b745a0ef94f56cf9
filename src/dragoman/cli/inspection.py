"""What the verbs of `inspect` have in common."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from dragoman.cli.messages import doubt
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.corpus import Corpus
    from dragoman.data.scanner import Scan
    from dragoman.models.recurrent import RecurrentModel

Picture = Annotated[
    Path | None,
    typer.Option("--picture", metavar="FILE", help="Also draw it: .svg or .png.", show_default=False),
]


def load_recurrent(path: Path) -> RecurrentModel:
    """A model that has an inside to look at."""
    from dragoman.models.loading import load_language_model
    from dragoman.models.recurrent import RecurrentModel

    model = load_language_model(path)
    if not isinstance(model, RecurrentModel):
        remedy = "name one that dragoman train recurrent wrote"
        raise DataError(f"{path}: a {model.kind} model has no recurrent cells to look at; {remedy}")
    return model


class Read(NamedTuple):
    """A text that was read once, for models that each have their own numbers for its words."""

    source: str
    scanned: Scan

    def by(self, model: RecurrentModel) -> Corpus:
        """The text as a model reads it."""
        from dragoman.data.corpus import Corpus

        corpus = Corpus.from_scan(self.scanned, model.vocab)
        doubt(corpus, self.source)
        return corpus


def read_once(text: str, field: str | None) -> Read:
    """A text; one without words is refused."""
    from dragoman.data.formats import read_text, source_name
    from dragoman.data.scanner import scan

    read = Read(source_name(text), scan(read_text(text, field)))
    if not len(read.scanned.tokens):
        raise DataError(f"{read.source}: has no words; give at least one sentence")
    return read


def check_picture(picture: Path | None) -> None:
    """Before any work: can a picture be written under this name?"""
    from dragoman.report.figures import format_of

    if picture is not None:
        format_of(picture)
