"""The base class of all models: a scorer that can be saved. Language models and translators add their methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from dragoman.core.scorer import Carry, State
from dragoman.core.types import Arrays
from dragoman.data.unknown_words import UnknownWordModel
from dragoman.data.vocabulary import Vocab
from dragoman.io import storage
from dragoman.io.files import write_text
from dragoman.io.model_card import CardScore, render_card

if TYPE_CHECKING:
    from torch import Tensor

    from dragoman.data.batches import Batch
    from dragoman.models.language_model import LanguageModel

Config = Mapping[str, Any]  # settings as in YAML or JSON

FORMAT_VERSION = 2  # of model directories; older ones cannot be loaded


@dataclass(frozen=True)
class SavedModel:
    """The contents of a model directory."""

    path: Path
    config: Config
    vocab: Vocab
    unknown: UnknownWordModel
    arrays: Arrays
    members: Mapping[str, LanguageModel] = field(default_factory=dict)  # models in subdirectories, by name


class BaseScorer(ABC):
    """A scorer (see dragoman.core.scorer) that carries no state to the next sentence by default."""

    vocab: Vocab
    unknown: UnknownWordModel

    @abstractmethod
    def start(self, batch: Batch, carry: Carry = None) -> State: ...

    @abstractmethod
    def log_probs(self, state: State) -> Tensor: ...

    @abstractmethod
    def advance(self, state: State, words: Tensor) -> State: ...

    def finish(self, state: State) -> Carry:
        return None

    @property
    def carries(self) -> bool:
        """Whether `finish` returns a state for the next sentence."""
        return False


class Model(BaseScorer):
    """A scorer that can be saved in a directory."""

    kind: ClassVar[str]  # the name in config.yaml

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name.replace(' ', '_')}={size}" for name, size in self.sizes().items())
        return f"{type(self).__name__}({sizes})"

    def config(self) -> Config:
        """Return the model's part of config.yaml, without its kind and unknown-word model."""
        return {}

    def arrays(self) -> Arrays:
        return {}

    def array_files(self) -> Mapping[str, Arrays]:
        """Return further files of arrays by name."""
        return {}

    def members(self) -> Mapping[str, Model]:
        """Return the models inside this one by name; each is saved in a subdirectory."""
        return {}

    @classmethod
    def member_names(cls, config: Config) -> Sequence[str]:
        """Return the names of the models inside one with this configuration."""
        return ()

    def files(self) -> Mapping[str, bytes]:
        """Return the contents of further files by name."""
        return {}

    @classmethod
    @abstractmethod
    def from_saved(cls, saved: SavedModel) -> Self: ...

    def save(
        self,
        path: str | Path,
        *,
        replace: bool = False,
        scores: Sequence[CardScore] = (),
        data: Config | None = None,
    ) -> None:
        """Write the model directory, completely or not at all. `scores` and `data` are for the model card."""
        with storage.new_directory(Path(path), replace=replace) as directory:
            self.write_into(directory)
            if scores or data:
                self.write_card(directory, scores, data)

    def full_config(self) -> Config:
        """Return the contents of config.yaml."""
        return {"kind": self.kind, "format": FORMAT_VERSION, "unknown": self.unknown.config(), **self.config()}

    def sizes(self) -> dict[str, int]:
        """Return the numbers of words, parameters and members, for the model card and `repr`."""
        parameters = sum(int(array.size) for array in self.arrays().values())
        sizes = {"words": self.vocab.num_known, "parameters": parameters, "members": len(self.members())}
        return {name: size for name, size in sizes.items() if size}

    def card(self, scores: Sequence[CardScore] = (), data: Config | None = None) -> str:
        """Return the model card; `data` are fingerprints of the training texts that the config does not have."""
        return render_card({"data": data or {}, **self.full_config()}, self.sizes(), scores)

    def write_card(self, path: str | Path, scores: Sequence[CardScore], data: Config | None = None) -> None:
        """Write the card again with these scores, unless the user has written one."""
        if storage.is_user_written(Path(path) / storage.CARD_FILE):
            return
        write_text(Path(path) / storage.CARD_FILE, self.card(scores, data))

    def write_into(self, directory: Path) -> None:
        """Write the model's files into a new directory."""
        if arrays := self.arrays():
            storage.write_arrays(directory / storage.ARRAYS_FILE, arrays)
        self.write_description(directory)

    def write_description(self, directory: Path) -> None:
        """Write all files of the model but its arrays."""
        (directory / storage.CARD_FILE).write_text(self.card(), encoding="utf-8")
        (directory / storage.VOCAB_FILE).write_text(self.vocab.to_text(), encoding="utf-8", newline="\n")
        for name, arrays in self.array_files().items():
            storage.write_arrays(directory / name, arrays)
        for name, content in self.files().items():
            (directory / name).write_bytes(content)
        config = storage.config_text(directory, self.full_config())
        (directory / storage.CONFIG_FILE).write_text(config, encoding="utf-8")
        for name, member in {**self.unknown.members(), **self.members()}.items():
            (directory / name).mkdir()
            member.write_into(directory / name)
