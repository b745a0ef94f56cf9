"""The shortlist of a translator in its directory, and why it has one or none."""

from __future__ import annotations

from pathlib import Path

from dragoman.align.shortlist import Shortlist
from dragoman.core.settings import Settings, validate
from dragoman.core.types import Arrays
from dragoman.data.vocabulary import Vocab
from dragoman.io.files import atomic_file, write_text
from dragoman.io.storage import (
    CONFIG_FILE,
    SHORTLIST,
    SHORTLIST_FILE,
    config_text,
    map_arrays,
    read_config,
    saving_run,
    write_arrays,
)
from dragoman.models.base import Config


class ShortlistDecision(Settings):
    """Whether a translator has a shortlist and, if training made it, what decided it."""

    used: bool
    metric: str | None = None
    score: float | None = None
    """Of the dev text."""
    score_of_all_words: float | None = None
    """The same without the shortlist."""
    speedup: float | None = None
    """Estimated speed of the search with the shortlist, relative to that over all words."""
    reason: str | None = None
    """Why it is not used."""


def read_decision(config: Config, path: Path) -> ShortlistDecision | None:
    """Return the decision in the contents of config.yaml; None if there was none."""
    section = config.get(SHORTLIST)
    return None if section is None else validate(ShortlistDecision, section, str(path))


def read_shortlist(path: Path, config: Config, source: Vocab, target: Vocab) -> Shortlist | None:
    """Return the shortlist in the directory of a translator with these vocabularies; None if it has none."""
    decision = read_decision(config, path)
    if decision is None or not decision.used:
        return None
    return Shortlist.from_arrays(map_arrays(path / SHORTLIST_FILE), source, target)


def shortlist_arrays(shortlist: Shortlist | None) -> dict[str, Arrays]:
    """Return the file of a shortlist, for a model directory."""
    return {} if shortlist is None else {SHORTLIST_FILE: shortlist.arrays()}


def with_current_decision(config: Config, shortlist: Shortlist | None) -> Config:
    """Return a configuration whose decision agrees with the shortlist, which may have been set or removed since."""
    is_used = bool(config.get(SHORTLIST, {}).get("used"))
    if is_used == (shortlist is not None):
        return config
    others = {name: value for name, value in config.items() if name != SHORTLIST}
    return others if shortlist is None else {**others, SHORTLIST: {"used": True}}


def store_decision(path: Path, decision: ShortlistDecision, shortlist: Shortlist) -> None:
    """Write a decision, and the shortlist if it is used, into the directory of a finished training run.

    The shortlist is written first: without the decision, it is ignored.
    """
    with saving_run(path):
        if decision.used:
            with atomic_file(path / SHORTLIST_FILE, create_parents=False) as temporary:
                write_arrays(temporary, shortlist.arrays())
        config = {**read_config(path), SHORTLIST: decision.model_dump(mode="json")}
        write_text(path / CONFIG_FILE, config_text(path, config), create_parents=False)
        if not decision.used:
            (path / SHORTLIST_FILE).unlink(missing_ok=True)
