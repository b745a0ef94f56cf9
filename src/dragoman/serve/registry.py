"""Which models a service has. Each is loaded when it is first asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from dragoman.core.errors import DataError, DragomanError
from dragoman.io.storage import ALIGNER_KIND, ARRAYS, BACKWARD, CONFIG, REPORT, TWO_WAY
from dragoman.models.loading import KINDS, kind_of, load
from dragoman.serve.errors import MISSING, Refusal, shortened
from dragoman.serve.language_names import NAMES

TRANSLATOR = "translator"
TOGETHER = "+"  # between the directories of an ensemble
PAIR = re.compile(r"(?:^|[^a-z])([a-z]{2})-([a-z]{2})(?![a-z])")


class Languages(NamedTuple):
    """Codes of what a translator reads and writes."""

    source: str
    target: str


@dataclass
class Entry:
    """A model that can be asked for: one directory, or several translators as an ensemble."""

    name: str
    paths: tuple[Path, ...]
    kind: str
    languages: Languages | None  # of a translator, if they are known
    model: Any = None  # once it was loaded
    problem: str | None = None  # why it could not be
    stamp: Any = None  # by which the files that it was loaded from are known again
    lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def translates(self) -> bool:
        return self.kind == TRANSLATOR

    def loaded(self) -> Any:
        """The model, loaded by whoever comes first, and again when a training has written a better one."""
        with self.lock:
            stamp = _stamp(self.paths)
            if self.model is None or (stamp != self.stamp and self.stamp is not None):
                try:
                    self.model, self.stamp = _load(self.paths), stamp
                except DragomanError as error:
                    self.problem = self._without_places(str(error))
                    raise Refusal(f"{self.name} cannot be loaded: {self.problem}", MISSING) from error
                self.problem = None
            return self.model

    def _units(self) -> dict[str, str] | None:
        """What a translator reads and writes, once it was loaded."""
        if self.model is None or not self.translates:
            return None
        return {side: getattr(self.model, side).units.kind for side in ("source", "target")}

    def _without_places(self, told: str) -> str:
        """What went wrong, without where this machine keeps its models."""
        for path in self.paths:
            told = told.replace(str(path), path.name)
        return told

    def described(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": self.kind,
            "members": len(self.paths),
            "units": self._units(),
            "source": None if self.languages is None else self.languages.source,
            "target": None if self.languages is None else self.languages.target,
            "loaded": self.model is not None,
            "problem": self.problem,
        }


@dataclass(frozen=True)
class Run:
    """A directory that is served: of one model, of a ladder, of a demo."""

    name: str
    path: Path

    @property
    def report(self) -> Path | None:
        """What it found, as a page, if that was written already."""
        path = self.path / REPORT
        return path if path.is_file() else None

    def entries(self) -> list[Entry]:
        """The models that are in it, if it is none itself."""
        return [_entry(f"{self.name}/{path.relative_to(self.path)}", [path]) for path in models_in(self.path)]


class Shelf:
    """All models of a service, by their names, and the directories that they came in."""

    def __init__(self, entries: Sequence[Entry], runs: Sequence[Run] = ()):
        self.entries = {entry.name: entry for entry in entries}
        self.runs = {run.name: run for run in runs}
        named: tuple[tuple[str, Sequence[Entry | Run]], ...] = (("models", entries), ("directories", runs))
        for what, some in named:
            if twice := [one.name for place, one in enumerate(some) if one.name in _names(some[:place])]:
                raise DataError(f"two {what} are called {twice[0]}; name one of them otherwise: NAME=DIR")

    @classmethod
    def of(cls, asked: Sequence[str]) -> Shelf:
        """By what the command line says: `DIR`, `ONE+TWO` for an ensemble, `NAME=DIR` to call it otherwise; a directory
        of models, such as that of a ladder, stands for all of them."""
        runs = [Run(name, Path(rest)) for name, rest in map(_named, asked) if Path(rest).is_dir()]
        return cls([entry for one in asked for entry in entries_of(one)], runs)

    def look_again(self) -> None:
        """Take in what was trained since then: a ladder that runs has more models from time to time."""
        found = [entry for run in self.runs.values() for entry in _readable(run)]
        self.entries = {**self.entries, **{entry.name: entry for entry in found if entry.name not in self.entries}}

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries.values())

    def find(self, name: str, *, translates: bool | None = None) -> Entry:
        """The model of a name, if it is of the kind that is asked for."""
        entry = self.entries.get(name)
        if entry is None:
            raise Refusal(f"there is no model {shortened(name)!r}; there are {', '.join(self.entries)}", MISSING)
        if translates is not None and entry.translates != translates:
            kinds = ("a language model", "a translator")
            raise Refusal(f"{name} is {kinds[entry.translates]}, and this is for {kinds[translates]}")
        return entry

    def find_run(self, name: str) -> Run:
        """The directory of a name."""
        if name not in self.runs:
            raise Refusal(f"there is no run {shortened(name)!r}; there are {', '.join(self.runs) or 'none'}", MISSING)
        return self.runs[name]

    @property
    def pairs(self) -> dict[Languages, Entry]:
        """Translators by their languages; of several, the one that was named first."""
        found: dict[Languages, Entry] = {}
        for entry in self:
            if entry.languages is not None:
                found.setdefault(entry.languages, entry)
        return found


def entries_of(asked: str) -> list[Entry]:
    """What one argument of the command line stands for: a model, an ensemble, or a directory of models."""
    name, rest = _named(asked)
    if Path(rest).is_dir() and (several := Run(name, Path(rest)).entries()):
        return several
    return [_entry(name, _paths(rest))]


def _named(asked: str) -> tuple[str, str]:
    """The name and the directories of an argument: `NAME=DIR`, or what the directories are called."""
    name, equals, rest = asked.partition("=")
    if not equals or Path(asked).exists():
        name, rest = "", asked
    if not rest:
        raise DataError(f"{asked}: names no directory; give {name}=DIR")
    return name or TOGETHER.join(path.resolve().name for path in _paths(rest)), rest


def _paths(rest: str) -> list[Path]:
    return [Path(rest)] if Path(rest).exists() else [Path(part) for part in rest.split(TOGETHER)]


def _readable(run: Run) -> list[Entry]:
    """The models of a directory; none while something in it is only half there."""
    try:
        return run.entries()
    except DragomanError:
        return []


def models_in(directory: Path) -> list[Path]:
    """The models of a directory that is none itself: of a ladder, a demo, or two translators trained together."""
    if (directory / CONFIG).exists() and kind_of(directory) != TWO_WAY:
        return []
    there = sorted(file.parent for pattern in ("*", "*/*") for file in directory.glob(f"{pattern}/{CONFIG}"))
    found = [path for path in there if kind_of(path) in KINDS]
    return [path for path in found if path.parent not in found]  # what is inside a model belongs to it


def _entry(name: str, paths: Sequence[Path]) -> Entry:
    kinds = {kind_of(path) for path in paths}
    if ALIGNER_KIND in kinds:
        raise DataError(f"{paths[0]}: is an aligner, not a model; --lexicon takes it")
    if len(paths) > 1 and kinds != {TRANSLATOR}:
        told = "an ensemble is of translators; a mixture of language models is made by dragoman mix"
        raise DataError(f"{TOGETHER.join(map(str, paths))}: {told}")
    [kind] = kinds
    if kind not in KINDS:
        raise DataError(f"{paths[0]}: unknown kind of model {kind!r}; known are {', '.join(KINDS)}")
    languages = languages_of(name) if kind == TRANSLATOR else None
    if languages is not None and paths[0].name == BACKWARD:
        languages = Languages(languages.target, languages.source)
    return Entry(name, tuple(paths), kind, languages)


def languages_of(name: str) -> Languages | None:
    """The languages that a name tells.

    >>> languages_of("multi30k-de-en"), languages_of("xx-en"), languages_of("best")
    (Languages(source='de', target='en'), None, None)
    """
    found = (Languages(*match.groups()) for match in PAIR.finditer(name))
    return next((pair for pair in found if pair.source in NAMES and pair.target in NAMES), None)


def _load(paths: Sequence[Path]) -> Any:
    models = [load(path) for path in paths]
    if len(models) == 1:
        return models[0]
    from dragoman.combine.ensemble import Ensemble

    return Ensemble(models, names=[str(path) for path in paths])


def _stamp(paths: Sequence[Path]) -> tuple[tuple[int, int], ...]:
    """When the files of models were written, and how large they are."""
    files = (path / name for path in paths for name in (CONFIG, ARRAYS))
    return tuple((told.st_mtime_ns, told.st_size) for told in (file.stat() for file in files if file.is_file()))


def _names(some: Sequence[Entry | Run]) -> set[str]:
    return {one.name for one in some}
