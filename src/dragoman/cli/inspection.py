"""What the commands of `dragoman inspect` share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dragoman.cli.messages import warn_if_mostly_unknown
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.corpus import Corpus
    from dragoman.data.scanner import ScannedText
    from dragoman.models.recurrent import RecurrentModel


def load_recurrent(path: Path) -> RecurrentModel:
    from dragoman.models.loading import load_language_model
    from dragoman.models.recurrent import RecurrentModel

    model = load_language_model(path)
    if not isinstance(model, RecurrentModel):
        remedy = "give a model of dragoman train recurrent"
        raise DataError(f"{path}: a {model.kind} model has no recurrent cells; {remedy}")
    return model


class InspectedText(NamedTuple):
    """A text that is read once and encoded for each model."""

    source: str
    scanned: ScannedText

    def encode(self, model: RecurrentModel) -> Corpus:
        from dragoman.data.corpus import Corpus

        corpus = Corpus.from_scan(self.scanned, model.vocab)
        warn_if_mostly_unknown(corpus, self.source)
        return corpus


def read_inspected_text(text: str, field: str | None) -> InspectedText:
    """Read a text, which must have words."""
    from dragoman.data.formats import display_name, field_for, read_text
    from dragoman.data.scanner import scan

    scanned = scan(read_text(text, field_for(text, field)))
    if not len(scanned.tokens):
        raise DataError(f"{display_name(text)}: has no words; give at least one sentence")
    return InspectedText(display_name(text), scanned)
