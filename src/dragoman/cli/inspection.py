"""What the verbs of `inspect` have in common."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from dragoman.cli.messages import warn_if_mostly_unknown
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.corpus import Corpus
    from dragoman.data.scanner import ScannedText
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


class InspectedText(NamedTuple):
    """A text that was read once, for models that each have their own numbers for its words."""

    source: str
    scanned: ScannedText

    def by(self, model: RecurrentModel) -> Corpus:
        """The text as a model reads it."""
        from dragoman.data.corpus import Corpus

        corpus = Corpus.from_scan(self.scanned, model.vocab)
        warn_if_mostly_unknown(corpus, self.source)
        return corpus


def scan_text(text: str, field: str | None) -> InspectedText:
    """A text; one without words is refused."""
    from dragoman.data.formats import display_name, read_text
    from dragoman.data.scanner import scan

    read = InspectedText(display_name(text), scan(read_text(text, field)))
    if not len(read.scanned.tokens):
        raise DataError(f"{read.source}: has no words; give at least one sentence")
    return read


def check_picture(picture: Path | None) -> None:
    """Before any work: can a picture be written under this name?"""
    from dragoman.report.figures import image_format

    if picture is not None:
        image_format(picture)
