"""The models of a service. Each is loaded on first use, and again when its files change."""

from __future__ import annotations

import json
import math
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from dragoman.combine.load_translators import Shortlists, set_shortlist
from dragoman.core.errors import DataError, DragomanError, shorten
from dragoman.core.yaml_files import read_yaml
from dragoman.data.languages import LANGUAGE_NAMES
from dragoman.experiments.directories import SETTINGS_FILE
from dragoman.experiments.trainer import SECONDS_FILE
from dragoman.io.files import is_temporary
from dragoman.io.model_card import choose_examples, read_examples
from dragoman.io.storage import (
    ALIGNER_KIND,
    BACKWARD,
    CARD_FILE,
    CHECKPOINT_FILE,
    CONFIG_FILE,
    EXAMPLES_FILE,
    METRICS_FILE,
    PACE_FILE,
    READ_ERRORS,
    REPORT_FILE,
    TWO_WAY_KIND,
    FileStamp,
)
from dragoman.lab.corpus_files import MANIFEST_FILE
from dragoman.models.language_model import LanguageModel
from dragoman.models.loading import (
    MODEL_CLASSES,
    NEURAL_KINDS,
    TRANSLATOR_KINDS,
    check_precision,
    load_language_model,
    load_translator,
    read_languages,
    read_model_kind,
    read_target_units,
)
from dragoman.models.translation import BaseTranslator
from dragoman.serve.errors import NOT_FOUND, ApiError
from dragoman.serve.schemas import ModelInfo

TRANSLATOR = "translator"
LADDER_DEV_TEXT = Path("text") / "dev.src"  # in the directory of a ladder
NO_PARTS = {METRICS_FILE, PACE_FILE, CHECKPOINT_FILE, CARD_FILE, EXAMPLES_FILE}  # files that do not change a model
MAX_LOADS = 5  # in a row, of a model whose files are being replaced
MAX_FILES = 1_000  # of a model that are compared
EXAMPLE_LINES = 100  # lines of a text to choose examples from
ENSEMBLE_SEPARATOR = "+"  # between the directories of an ensemble
LANGUAGE_PAIR = re.compile(r"(?:^|[^a-z])([a-z]{2})-([a-z]{2})(?![a-z])")


class LanguagePair(NamedTuple):
    """Language codes of a translator."""

    source: str
    target: str


LAB_LANGUAGES, LAB_DIRECTORY = LanguagePair("de", "en"), "lab"  # of a demo, and of a ladder on the lab's corpus


@dataclass
class ModelEntry:
    """A model that requests can name: one directory, or several translators as an ensemble."""

    name: str
    paths: tuple[Path, ...]
    kind: str
    languages: LanguagePair | None  # of a translator, if they are known
    model: LanguageModel | BaseTranslator | None = None  # None until it is loaded
    problem: str | None = None  # why it could not be loaded
    precision: str | None = None  # of a neural model, see `dragoman.load`
    shortlists: Shortlists = "stored"  # of a translator, see `set_shortlist`
    _stamps: list[FileStamp] | None = None  # of the files that the model was loaded from; None: it was given
    _failed_stamps: list[FileStamp] | None = None  # of the files that could not be loaded
    _lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def is_translator(self) -> bool:
        return self.kind == TRANSLATOR

    def load_language_model(self) -> LanguageModel:
        model = self._load()
        assert isinstance(model, LanguageModel)
        return model

    def load_translator(self) -> BaseTranslator:
        model = self._load()
        assert isinstance(model, BaseTranslator)
        return model

    def describe(self) -> ModelInfo:
        units = None
        if isinstance(self.model, BaseTranslator):
            units = {"source": self.model.source.segmenter.kind, "target": self.model.target.segmenter.kind}
        elif self.model is not None:
            units = {"text": self.model.vocab.segmenter.kind}
        source, target = self.languages or (None, None)
        return ModelInfo(
            name=self.name,
            kind=self.kind,
            members=len(self.paths),
            units=units,
            source=source,
            target=target,
            loaded=self.model is not None,
            problem=self.problem,
            has_metrics=(self.paths[0] / METRICS_FILE).is_file(),
            examples=self._examples() if self.is_translator else [],
        )

    def _examples(self) -> list[str]:
        """Return inputs for a translator: those in its directory, or lines of the dev text of its ladder."""
        examples = (read_examples(path) for path in self.paths)
        dev_text = self.paths[0].parent.parent / LADDER_DEV_TEXT
        return next(filter(None, examples), []) or choose_examples(_first_lines(dev_text))

    def _load(self) -> LanguageModel | BaseTranslator:
        """Return the model. It is loaded on first use, and again when any of its files has changed.

        The files are compared before every use: a large table is mapped into memory, and the system would end the
        process if the file had become shorter. Files that cannot be loaded are tried again when they have changed.
        """
        with self._lock:
            stamps = self._current_stamps()
            if self.model is not None and self._stamps in (None, stamps):
                return self.model
            if self.problem is None or self._failed_stamps != stamps:
                self._load_files()
            if self.model is None or self.problem is not None:
                raise ApiError(f"{self.name} cannot be loaded: {self.problem}", NOT_FOUND)
            return self.model

    def _load_model(self, path: Path) -> LanguageModel | BaseTranslator:
        if self.is_translator:
            translator = load_translator(path, self.precision)
            try:
                set_shortlist(translator, path, self.shortlists)
            except DataError as error:  # one aligner is for all translators, and may fit only some
                searched = "its own shortlist" if translator.has_shortlist else "all words"
                warnings.warn(f"{self.name}: searches with {searched} ({error})", stacklevel=2)
            return translator
        return load_language_model(path, self.precision if self.kind in NEURAL_KINDS else None)

    def _load_files(self) -> None:
        """Set the model or the problem. If files are replaced meanwhile, they may not belong together: load again."""
        from dragoman.combine.ensemble import Ensemble

        for _ in range(MAX_LOADS):
            stamps = self._current_stamps()
            try:
                models = [self._load_model(path) for path in self.paths]
                model = models[0] if len(models) == 1 else Ensemble(models, names=list(map(str, self.paths)))
                self.model, self._stamps, self.problem = model, stamps, None
            except DragomanError as error:
                self.problem, self._failed_stamps = str(error), stamps
                for path in self.paths:  # clients do not learn where the models are
                    self.problem = self.problem.replace(str(path), path.name)
            if self._current_stamps() == stamps:
                return

    def _current_stamps(self) -> list[FileStamp]:
        return [stamp for path in self.paths for stamp in _file_stamps(path)]


def _file_stamps(path: Path) -> list[FileStamp]:
    """Return the stamps of the files of a model, without those that training writes beside it."""
    files = (Path(directory, name) for directory, _, names in os.walk(path) for name in names)
    parts = (file for file in files if file.name not in NO_PARTS and not file.name.startswith("."))
    return [FileStamp.of(file) for file in sorted(islice(parts, MAX_FILES))]


def _is_listed(path: Path, directory: Path) -> bool:
    """Return whether a model inside a directory is listed: not if it is hidden, temporary, or behind a link."""
    inside = path.relative_to(directory).parts
    places = [directory.joinpath(*inside[: depth + 1]) for depth in range(len(inside))]
    return not any(place.name.startswith(".") or place.is_symlink() for place in places)


@dataclass(frozen=True)
class RunDirectory:
    """A served directory: of one model, or of the models of a ladder or demo."""

    name: str
    path: Path

    @property
    def report(self) -> Path | None:
        """The report of the run, if it has been written."""
        path = self.path / REPORT_FILE
        return path if path.is_file() else None

    @property
    def languages(self) -> LanguagePair | None:
        """The languages of a ladder, or of a demo or ladder on the lab's corpus; None if they are not known."""
        with suppress(DataError):
            match read_yaml(self.path / SETTINGS_FILE):
                case {"languages": [str(source), str(target)]} if {source, target} <= LANGUAGE_NAMES.keys():
                    return LanguagePair(source, target)
        return LAB_LANGUAGES if (self.path / LAB_DIRECTORY / MANIFEST_FILE).is_file() else None

    def entries(self) -> list[ModelEntry]:
        """Return the models inside the directory: of a ladder, a demo, or a two-way translator; none of a model."""
        if (self.path / CONFIG_FILE).exists() and read_model_kind(self.path) != TWO_WAY_KIND:
            return []
        files = (file for pattern in ("*", "*/*") for file in self.path.glob(f"{pattern}/{CONFIG_FILE}"))
        paths = _in_order_of_training(sorted(file.parent for file in files if _is_listed(file.parent, self.path)))
        models = [path for path in paths if read_model_kind(path) in MODEL_CLASSES]
        languages = self.languages
        return [
            _create_entry(f"{self.name}/{path.relative_to(self.path)}", [path], languages)
            for path in models
            if path.parent not in models  # a model may contain others as its parts
        ]


def _in_order_of_training(paths: Sequence[Path]) -> list[Path]:
    """Return models in the order in which their ladder trained them, translators with the lowest dev loss first."""
    order: dict[Path, int] = {}
    for directory in {path.parent for path in paths}:
        with suppress(*READ_ERRORS):
            names = json.loads((directory / SECONDS_FILE).read_text(encoding="utf-8"))
            order |= {directory / name: number for number, name in enumerate(names)}

    def key(path: Path) -> tuple[str, bool, float, int, str]:
        if path not in order:
            return str(path.parent), False, 0.0, 0, path.name
        is_translator = read_model_kind(path) in TRANSLATOR_KINDS
        return str(path.parent), is_translator, _dev_loss(path) if is_translator else 0.0, order[path], path.name

    return sorted(paths, key=key)


def _dev_loss(path: Path) -> float:
    """Return the lowest loss on the dev text in the training of a model; infinity if it is not known."""
    with suppress(*READ_ERRORS):
        *_, last = (path / METRICS_FILE).read_text(encoding="utf-8").splitlines()
        return float(json.loads(last)["best_dev_loss"])
    return math.inf


def _first_lines(path: Path) -> list[str]:
    """Return some lines of a text; none if it cannot be read."""
    with suppress(*READ_ERRORS), path.open(encoding="utf-8") as file:
        return [line.rstrip("\n") for line in islice(file, EXAMPLE_LINES)]
    return []


class ModelRegistry:
    """All models of a service by name, and the directories that contain them."""

    def __init__(self, entries: Sequence[ModelEntry], runs: Sequence[RunDirectory] = ()):
        for what, named in (("models", entries), ("directories", runs)):
            for name, count in Counter(item.name for item in named).items():
                if count > 1:
                    raise DataError(f"two {what} have the name {name}; rename one of them: NAME=DIR")
        self.entries = {entry.name: entry for entry in entries}
        self.runs = {run.name: run for run in runs}
        self.precision: str | None = None  # of neural models, see `dragoman.load`
        self.shortlists: Shortlists = "stored"  # of translators, see `set_shortlist`

    @classmethod
    def from_arguments(
        cls, arguments: Sequence[str], precision: str | None = None, shortlists: Shortlists = "stored"
    ) -> ModelRegistry:
        """Create a registry from command-line arguments.

        For the precision of neural models see `dragoman.load`, for shortlists `set_shortlist`.

        `DIR` is a model or a directory of models, `ONE+TWO` an ensemble; `NAME=` before either sets its name.
        """
        runs, entries = list[RunDirectory](), list[ModelEntry]()
        for name, paths in map(_parse_argument, arguments):
            inside = list[ModelEntry]()
            if len(paths) == 1 and paths[0].is_dir():
                runs.append(RunDirectory(name, paths[0]))
                inside = runs[-1].entries()
            is_named = name != _directory_name(paths)
            entries += inside or [_create_entry(name, paths, is_named=is_named)]
        registry = cls(entries, runs)
        registry.precision, registry.shortlists = precision, shortlists
        for entry in registry:
            entry.precision, entry.shortlists = precision, shortlists
        _check_precision(list(registry), precision)
        return registry

    def refresh(self) -> None:
        """Add models that were saved since: a running ladder adds models from time to time."""
        for run in self.runs.values():
            try:
                new = [entry for entry in run.entries() if entry.name not in self.entries]
            except DragomanError:  # a model is being written
                continue
            for entry in new:
                entry.precision, entry.shortlists = self.precision, self.shortlists
            self.entries = {**self.entries, **{entry.name: entry for entry in new}}  # other threads may iterate

    def __iter__(self) -> Iterator[ModelEntry]:
        return iter(self.entries.values())

    def get(self, name: str, *, is_translator: bool | None = None) -> ModelEntry:
        """Return the model of this name; raise `ApiError` if there is none or it is of the other kind."""
        entry = self.entries.get(name)
        if entry is None:
            raise ApiError(f"there is no model {shorten(name)!r}; available: {', '.join(self.entries)}", NOT_FOUND)
        if is_translator is not None and entry.is_translator != is_translator:
            kinds = ("a language model", "a translator")
            raise ApiError(f"{name} is {kinds[entry.is_translator]}; this request needs {kinds[is_translator]}")
        return entry

    @property
    def by_languages(self) -> dict[LanguagePair, ModelEntry]:
        """Translators by their languages; if there are several, the first one."""
        translators: dict[LanguagePair, ModelEntry] = {}
        for entry in self:
            if entry.languages is not None:
                translators.setdefault(entry.languages, entry)
        return translators


def _check_precision(entries: Sequence[ModelEntry], precision: str | None) -> None:
    """Raise an error if models cannot be loaded with a precision; warn of other kinds of models beside neural ones."""
    others = [entry for entry in entries if not (entry.is_translator or entry.kind in NEURAL_KINDS)]
    if precision == "int8" and others and len(others) < len(entries):
        names = ", ".join(entry.name for entry in others)
        warnings.warn(f"{names}: served without rounding; only neural models can have 8-bit weights", stacklevel=3)
        entries = [entry for entry in entries if entry not in others]
    for entry in entries:
        for path in entry.paths:
            check_precision(read_model_kind(path), path, precision)


def token_name_of(directory: Path) -> str | None:
    """Return what the losses of a model are per: word, piece or character."""
    try:
        units = read_target_units(directory)
    except DragomanError:
        return None
    return {"word": "word", "char": "character"}.get(units, "piece")


def languages_from_name(name: str) -> LanguagePair | None:
    """Return the languages that a model's name contains.

    >>> languages_from_name("multi30k-de-en"), languages_from_name("xx-en"), languages_from_name("best")
    (LanguagePair(source='de', target='en'), None, None)
    """
    pairs = (LanguagePair(*match.groups()) for match in LANGUAGE_PAIR.finditer(name))
    return next((pair for pair in pairs if pair.source in LANGUAGE_NAMES and pair.target in LANGUAGE_NAMES), None)


def _parse_argument(argument: str) -> tuple[str, list[Path]]:
    """Return the name and the directories of `NAME=DIR`, or of `DIR`, whose name is the name of the directory."""
    name, equals, directories = argument.partition("=")
    if not equals or Path(argument).exists():
        name, directories = "", argument
    if not directories:
        raise DataError(f"{argument}: no directory given; write {name}=DIR")
    paths = [Path(directories)]
    if not paths[0].exists():
        paths = [Path(part) for part in directories.split(ENSEMBLE_SEPARATOR)]
    return name or _directory_name(paths), paths


def _directory_name(paths: Sequence[Path]) -> str:
    return ENSEMBLE_SEPARATOR.join(path.resolve().name for path in paths)


def _create_entry(
    name: str, paths: Sequence[Path], run_languages: LanguagePair | None = None, *, is_named: bool = False
) -> ModelEntry:
    """Create the entry of a model. Languages in a name that was given override those that the model has recorded."""
    for path in paths:
        if is_temporary(path):
            raise DataError(f"{path}: is an incomplete copy that a stopped program left; serve the model itself")
    kinds = {TRANSLATOR if kind in TRANSLATOR_KINDS else kind for kind in map(read_model_kind, paths)}
    if ALIGNER_KIND in kinds:
        raise DataError(f"{paths[0]}: is an aligner, not a model; use it with --lexicon")
    if len(paths) > 1 and kinds != {TRANSLATOR}:
        directories = ENSEMBLE_SEPARATOR.join(map(str, paths))
        raise DataError(f"{directories}: an ensemble needs translators; use dragoman mix for language models")
    [kind] = kinds
    if kind not in MODEL_CLASSES:
        raise DataError(f"{paths[0]}: unknown kind of model {kind!r}; known kinds: {', '.join(MODEL_CLASSES)}")
    if kind != TRANSLATOR:
        return ModelEntry(name, tuple(paths), kind, None)
    languages = languages_from_name(name) or run_languages
    if languages is not None and paths[0].name == BACKWARD:
        languages = LanguagePair(languages.target, languages.source)
    source, target = read_languages(paths[0])
    if source is not None and target is not None and not (is_named and languages):
        languages = LanguagePair(source, target)
    return ModelEntry(name, tuple(paths), kind, languages)
