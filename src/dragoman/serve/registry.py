"""Which models a service has. Each is loaded when it is first asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from dragoman.core.errors import DataError, DragomanError
from dragoman.io.storage import ALIGNER_KIND, ARRAYS_FILE, BACKWARD, CONFIG_FILE, REPORT_FILE, TWO_WAY_KIND
from dragoman.models.loading import MODEL_CLASSES, load, read_model_kind
from dragoman.serve.errors import NOT_FOUND, ApiError, shorten
from dragoman.serve.language_names import LANGUAGE_NAMES

TRANSLATOR = "translator"
TOGETHER = "+"  # between the directories of an ensemble
PAIR = re.compile(r"(?:^|[^a-z])([a-z]{2})-([a-z]{2})(?![a-z])")


class LanguagePair(NamedTuple):
    """Codes of what a translator reads and writes."""

    source: str
    target: str


@dataclass
class ModelEntry:
    """A model that can be asked for: one directory, or several translators as an ensemble."""

    name: str
    paths: tuple[Path, ...]
    kind: str
    languages: LanguagePair | None  # of a translator, if they are known
    model: Any = None  # once it was loaded
    problem: str | None = None  # why it could not be
    stamp: Any = None  # by which the files that it was loaded from are known again
    lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def is_translator(self) -> bool:
        return self.kind == TRANSLATOR

    def load(self) -> Any:
        """The model, loaded by whoever comes first, and again when a training has written a better one."""
        with self.lock:
            stamp = _stamp(self.paths)
            if self.model is None or (stamp != self.stamp and self.stamp is not None):
                try:
                    self.model, self.stamp = _load(self.paths), stamp
                except DragomanError as error:
                    self.problem = self._without_places(str(error))
                    raise ApiError(f"{self.name} cannot be loaded: {self.problem}", NOT_FOUND) from error
                self.problem = None
            return self.model

    def _units(self) -> dict[str, str] | None:
        """What a translator reads and writes, once it was loaded."""
        if self.model is None or not self.is_translator:
            return None
        return {side: getattr(self.model, side).units.kind for side in ("source", "target")}

    def _without_places(self, told: str) -> str:
        """What went wrong, without where this machine keeps its models."""
        for path in self.paths:
            told = told.replace(str(path), path.name)
        return told

    def describe(self) -> dict[str, Any]:
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
class RunDirectory:
    """A directory that is served: of one model, of a ladder, of a demo."""

    name: str
    path: Path

    @property
    def report(self) -> Path | None:
        """What it found, as a page, if that was written already."""
        path = self.path / REPORT_FILE
        return path if path.is_file() else None

    def entries(self) -> list[ModelEntry]:
        """The models that are in it, if it is none itself."""
        return [
            _entry(f"{self.name}/{path.relative_to(self.path)}", [path]) for path in find_model_directories(self.path)
        ]


class ModelRegistry:
    """All models of a service, by their names, and the directories that they came in."""

    def __init__(self, entries: Sequence[ModelEntry], runs: Sequence[RunDirectory] = ()):
        self.entries = {entry.name: entry for entry in entries}
        self.runs = {run.name: run for run in runs}
        named: tuple[tuple[str, Sequence[ModelEntry | RunDirectory]], ...] = (
            ("models", entries),
            ("directories", runs),
        )
        for what, some in named:
            if twice := [one.name for place, one in enumerate(some) if one.name in _names(some[:place])]:
                raise DataError(f"two {what} are called {twice[0]}; name one of them otherwise: NAME=DIR")

    @classmethod
    def from_arguments(cls, arguments: Sequence[str]) -> ModelRegistry:
        """By what the command line says: `DIR`, `ONE+TWO` for an ensemble, `NAME=DIR` to call it otherwise; a directory
        of models, such as that of a ladder, stands for all of them."""
        runs = [RunDirectory(name, Path(rest)) for name, rest in map(_named, arguments) if Path(rest).is_dir()]
        return cls([entry for one in arguments for entry in entries_from_argument(one)], runs)

    def refresh(self) -> None:
        """Take in what was trained since then: a ladder that runs has more models from time to time."""
        found = [entry for run in self.runs.values() for entry in _readable(run)]
        self.entries = {**self.entries, **{entry.name: entry for entry in found if entry.name not in self.entries}}

    def __iter__(self) -> Iterator[ModelEntry]:
        return iter(self.entries.values())

    def get(self, name: str, *, is_translator: bool | None = None) -> ModelEntry:
        """The model of a name, if it is of the kind that is asked for."""
        entry = self.entries.get(name)
        if entry is None:
            raise ApiError(f"there is no model {shorten(name)!r}; there are {', '.join(self.entries)}", NOT_FOUND)
        if is_translator is not None and entry.is_translator != is_translator:
            kinds = ("a language model", "a translator")
            raise ApiError(f"{name} is {kinds[entry.is_translator]}, and this is for {kinds[is_translator]}")
        return entry

    def get_run(self, name: str) -> RunDirectory:
        """The directory of a name."""
        if name not in self.runs:
            raise ApiError(f"there is no run {shorten(name)!r}; there are {', '.join(self.runs) or 'none'}", NOT_FOUND)
        return self.runs[name]

    @property
    def by_languages(self) -> dict[LanguagePair, ModelEntry]:
        """Translators by their languages; of several, the one that was named first."""
        found: dict[LanguagePair, ModelEntry] = {}
        for entry in self:
            if entry.languages is not None:
                found.setdefault(entry.languages, entry)
        return found


def entries_from_argument(asked: str) -> list[ModelEntry]:
    """What one argument of the command line stands for: a model, an ensemble, or a directory of models."""
    name, rest = _named(asked)
    if Path(rest).is_dir() and (several := RunDirectory(name, Path(rest)).entries()):
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


def _readable(run: RunDirectory) -> list[ModelEntry]:
    """The models of a directory; none while something in it is only half there."""
    try:
        return run.entries()
    except DragomanError:
        return []


def find_model_directories(directory: Path) -> list[Path]:
    """The models of a directory that is none itself: of a ladder, a demo, or two translators trained together."""
    if (directory / CONFIG_FILE).exists() and read_model_kind(directory) != TWO_WAY_KIND:
        return []
    there = sorted(file.parent for pattern in ("*", "*/*") for file in directory.glob(f"{pattern}/{CONFIG_FILE}"))
    found = [path for path in there if read_model_kind(path) in MODEL_CLASSES]
    return [path for path in found if path.parent not in found]  # what is inside a model belongs to it


def _entry(name: str, paths: Sequence[Path]) -> ModelEntry:
    kinds = {read_model_kind(path) for path in paths}
    if ALIGNER_KIND in kinds:
        raise DataError(f"{paths[0]}: is an aligner, not a model; --lexicon takes it")
    if len(paths) > 1 and kinds != {TRANSLATOR}:
        told = "an ensemble is of translators; a mixture of language models is made by dragoman mix"
        raise DataError(f"{TOGETHER.join(map(str, paths))}: {told}")
    [kind] = kinds
    if kind not in MODEL_CLASSES:
        raise DataError(f"{paths[0]}: unknown kind of model {kind!r}; known are {', '.join(MODEL_CLASSES)}")
    languages = languages_from_name(name) if kind == TRANSLATOR else None
    if languages is not None and paths[0].name == BACKWARD:
        languages = LanguagePair(languages.target, languages.source)
    return ModelEntry(name, tuple(paths), kind, languages)


def languages_from_name(name: str) -> LanguagePair | None:
    """The languages that a name tells.

    >>> languages_of("multi30k-de-en"), languages_of("xx-en"), languages_of("best")
    (Languages(source='de', target='en'), None, None)
    """
    found = (LanguagePair(*match.groups()) for match in PAIR.finditer(name))
    return next((pair for pair in found if pair.source in LANGUAGE_NAMES and pair.target in LANGUAGE_NAMES), None)


def _load(paths: Sequence[Path]) -> Any:
    models = [load(path) for path in paths]
    if len(models) == 1:
        return models[0]
    from dragoman.combine.ensemble import Ensemble

    return Ensemble(models, names=[str(path) for path in paths])


def _stamp(paths: Sequence[Path]) -> tuple[tuple[int, int], ...]:
    """When the files of models were written, and how large they are."""
    files = (path / name for path in paths for name in (CONFIG_FILE, ARRAYS_FILE))
    return tuple((told.st_mtime_ns, told.st_size) for told in (file.stat() for file in files if file.is_file()))


def _names(some: Sequence[ModelEntry | RunDirectory]) -> set[str]:
    return {one.name for one in some}
