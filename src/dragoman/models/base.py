"""What every model is: a scorer that is kept on disk. Language models and translators add what people ask of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from numpy.typing import NDArray

from dragoman.core.scorer import Carry, State
from dragoman.data.unknown_words import UnknownWordModel
from dragoman.data.vocabulary import Vocab
from dragoman.io.model_card import CardScore, render_card
from dragoman.io.storage import (
    ARRAYS_FILE,
    CARD_FILE,
    CONFIG_FILE,
    VOCAB_FILE,
    atomic_directory,
    atomic_file,
    is_user_written,
    to_yaml,
    write_arrays,
)

if TYPE_CHECKING:
    from torch import Tensor

    from dragoman.data.batches import Batch

FORMAT_VERSION = 2  # of the model directory


@dataclass(frozen=True)
class SavedModel:
    """What a model directory holds."""

    path: Path
    config: dict[str, Any]
    vocab: Vocab
    unknown: UnknownWordModel
    arrays: Mapping[str, NDArray[Any]]
    members: Mapping[str, Any] = field(default_factory=dict)  # models in directories of their own


class Model(ABC):
    """A scorer (see dragoman.core.scorer) that is kept in a directory of its own."""

    kind: ClassVar[str]  # the name in config.yaml
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
        """Whether it knows of the sentences before: `finish` then says what."""
        return False

    # -- on disk -----------------------------------------------------------------------------------------------------

    def config(self) -> dict[str, Any]:
        """What config.yaml says of this model, besides its kind and its unknown-word model."""
        return {}

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        return {}

    def members(self) -> Mapping[str, Model]:
        """Models inside this one; each is kept in a directory of its own."""
        return {}

    def files(self) -> Mapping[str, bytes]:
        """Other files that belong to this model, by their names."""
        return {}

    @classmethod
    @abstractmethod
    def from_saved(cls, saved: SavedModel) -> Self: ...

    def save(self, path: str | Path, *, replace: bool = False) -> None:
        """Write the model directory, whole or not at all."""
        with atomic_directory(Path(path), replace=replace) as directory:
            self.write_into(directory)

    def full_config(self) -> dict[str, Any]:
        """All that config.yaml says."""
        return {"kind": self.kind, "format": FORMAT_VERSION, "unknown": self.unknown.config(), **self.config()}

    def sizes(self) -> dict[str, int]:
        """How large it is, for its card."""
        numbers = sum(int(array.size) for array in self.arrays().values())
        members = len(self.members())
        known = {"words": self.vocab.num_known, "numbers": numbers, "models inside": members}
        return {name: size for name, size in known.items() if size}

    def card(self, scores: Sequence[CardScore] = (), data: Mapping[str, Any] | None = None) -> str:
        """What README.md says of it.  # data: texts as `text.described` tells them, if its settings do not"""
        return render_card({"data": data or {}, **self.full_config()}, self.sizes(), scores)

    def write_card(self, path: str | Path, scores: Sequence[CardScore], data: Mapping[str, Any] | None = None) -> None:
        """Let README.md in the model's directory tell how good it was found to be, and of counts, by which texts they
        were made; unless it is somebody's own."""
        if is_user_written(Path(path) / CARD_FILE):
            return
        with atomic_file(Path(path) / CARD_FILE) as temporary:
            temporary.write_text(self.card(scores, data), encoding="utf-8")

    def write_into(self, directory: Path) -> None:
        """Write the files of the model into a new directory."""
        (directory / CARD_FILE).write_text(self.card(), encoding="utf-8")
        (directory / CONFIG_FILE).write_text(to_yaml(self.full_config()), encoding="utf-8")
        (directory / VOCAB_FILE).write_text(self.vocab.to_text(), encoding="utf-8", newline="\n")
        if arrays := self.arrays():
            write_arrays(directory / ARRAYS_FILE, arrays)
        for name, content in self.files().items():
            (directory / name).write_bytes(content)
        for name, member in {**self.unknown.members(), **self.members()}.items():
            (directory / name).mkdir()
            member.write_into(directory / name)
