"""Loading of models from their directories."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from dragoman.core.defaults import SENTENCEPIECE_FILE
from dragoman.core.errors import DataError
from dragoman.data.languages import saved_languages
from dragoman.data.segmenters import Segmenter, load_segmenter
from dragoman.data.unknown_words import ClosedVocabulary, UniformUnknownWords, UnknownWordModel
from dragoman.data.vocabulary import Vocab
from dragoman.io import storage
from dragoman.models.base import FORMAT_VERSION, Config, Model, SavedModel
from dragoman.models.language_model import LanguageModel

if TYPE_CHECKING:
    from dragoman.models.translator import Translator

# The class of each kind of model; imported when needed.
MODEL_CLASSES = {
    "ngram": "dragoman.ngram.model:NgramModel",
    "class-ngram": "dragoman.ngram.class_model:ClassNgramModel",
    "cache": "dragoman.models.cache:CacheModel",
    "feed-forward": "dragoman.models.feedforward:FeedForwardModel",
    "log-linear": "dragoman.models.loglinear.model:LogLinearModel",
    "recurrent": "dragoman.models.recurrent:RecurrentModel",
    "mixture": "dragoman.combine.mixture:Mixture",
    "translator": "dragoman.models.translator:Translator",
}


def load(path: str | Path) -> Any:
    """Load any model from its directory. Arrays are mapped into memory and checked once.

    >>> import tempfile
    >>> from dragoman import Corpus, NgramModel, load
    >>> model = NgramModel.train(Corpus.from_sentences(["a b", "b a"]), order=2, smoothing="witten-bell")
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     model.save(f"{directory}/model")
    ...     load(f"{directory}/model").score("a b") == model.score("a b")
    True
    """
    directory = Path(path)
    config = _read_config(directory)
    kind = _check_kind(config.pop("kind", None), directory)
    version = config.pop("format", None)
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise DataError(f"{directory}: model format {version} is from a newer version of dragoman; update dragoman")
    if version != FORMAT_VERSION:
        problem = f"model format {version} is from an older version of dragoman and cannot be loaded"
        raise DataError(f"{directory}: {problem}; train the model again")
    if not (directory / storage.VOCAB_FILE).exists():
        raise DataError(
            f"{directory / storage.VOCAB_FILE}: missing; this model directory is broken, train or copy it again"
        )
    vocab = Vocab.read(directory / storage.VOCAB_FILE)
    if "units" in config:  # of a language model; without it, the tokens are words
        vocab = vocab.with_segmenter(_load_segmenter(config.pop("units"), directory))
    members = {file.parent.name: load(file.parent) for file in sorted(directory.glob(f"*/{storage.CONFIG_FILE}"))}
    arrays_file = directory / storage.ARRAYS_FILE
    arrays = storage.map_arrays(arrays_file) if arrays_file.exists() or kind == "ngram" else {}
    try:
        unknown = load_unknown_model(config.pop("unknown"), vocab, members)
        module, _, name = MODEL_CLASSES[kind].partition(":")
        model_class: type[Model] = getattr(import_module(module), name)
        return model_class.from_saved(SavedModel(directory, config, vocab, unknown, arrays, members))
    except DataError as error:
        if str(directory) in str(error):
            raise
        raise DataError(f"{directory}: {error}") from error
    except KeyError as error:
        raise DataError(f"{directory}: broken model directory: {error} is missing; train or copy it again") from error
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        problem = f"broken model directory ({type(error).__name__}: {error})"
        raise DataError(f"{directory}: {problem}; train or copy it again") from error


def read_model_kind(path: str | Path) -> str:
    """Return the kind of the model in a directory without loading it."""
    kind = _read_config(Path(path)).get("kind")
    return kind if isinstance(kind, str) else ""


def read_target_units(path: str | Path) -> str:
    """Return the specification of the tokens that a model predicts, such as `subword:4000`, without loading it."""
    config = _read_config(Path(path))
    target = config.get("target")
    units = target.get("units") if isinstance(target, dict) else config.get("units")
    return units if isinstance(units, str) else "word"


def read_languages(path: str | Path) -> tuple[str | None, str | None]:
    """Return the recorded languages of the translator in a directory without loading it."""
    return saved_languages(_read_config(Path(path)))


def load_language_model(path: str | Path) -> LanguageModel:
    """Load a language model; raise an error for other models."""
    model = load(path)
    if not isinstance(model, LanguageModel):
        remedy = "try dragoman translate, or dragoman score with --src"
        raise DataError(f"{path}: is a model of kind {model.kind}, not a language model; {remedy}")
    return model


def load_translator(path: str | Path) -> Translator:
    """Load a translator; raise an error for other models."""
    from dragoman.models.translator import Translator

    model = load(path)
    if not isinstance(model, Translator):
        raise DataError(f"{path}: is a model of kind {model.kind}, not a translator; try dragoman score or next")
    return model


def check_distinct(paths: Sequence[Path]) -> None:
    """Raise an error if a directory is named twice."""
    real_paths = [os.path.realpath(path) for path in paths]
    for number, path in enumerate(paths):
        if real_paths[number] in real_paths[:number]:
            raise DataError(f"{path}: named twice; name each model once")


def _read_config(directory: Path) -> dict[str, Any]:
    path = directory / storage.CONFIG_FILE
    if directory.is_file():
        remedy = "convert an ARPA file to one with dragoman import"
        raise DataError(f"{directory}: is a file, not a model directory; {remedy}")
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if not directory.exists():
            raise DataError(f"{directory}: no such directory; pass a directory written by dragoman train") from None
        problem = f"not a model directory (it has no {storage.CONFIG_FILE})"
        raise DataError(f"{directory}: {problem}; pass a directory written by dragoman train") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
        place = f"{path}:{mark.line + 1}" if mark else f"{path}"
        raise DataError(f"{place}: broken or incomplete; train the model or copy its directory again") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    if not isinstance(config, dict):
        raise DataError(f"{path}: contains no settings; train the model or copy its directory again")
    return config


def _check_kind(kind: object, directory: Path) -> str:
    if kind == storage.ALIGNER_KIND:
        remedy = "use it with dragoman align --with, or --lexicon and --shortlist of translate and evaluate"
        raise DataError(f"{directory}: is an aligner, not a model; {remedy}")
    if kind == storage.TWO_WAY_KIND:
        names = f"{directory / storage.FORWARD} or {directory / storage.BACKWARD}"
        raise DataError(f"{directory}: contains two translators; choose {names}")
    if not isinstance(kind, str) or kind not in MODEL_CLASSES:
        known = ", ".join(MODEL_CLASSES)
        raise DataError(f"{directory / storage.CONFIG_FILE}: unknown kind of model {kind!r}; known are {known}")
    return kind


def _load_segmenter(units: object, directory: Path) -> Segmenter:
    """Return the segmenter of a language model."""
    file = directory / SENTENCEPIECE_FILE
    try:
        return load_segmenter(str(units), {SENTENCEPIECE_FILE: file.read_bytes()} if file.is_file() else {})
    except DataError as error:
        raise DataError(f"{directory}: {error}") from None


def load_unknown_model(config: Config, vocab: Vocab, members: Mapping[str, object]) -> UnknownWordModel:
    """Return the unknown-word model of a vocabulary by its entries of config.yaml and the models inside it."""
    match config["kind"]:
        case "none":
            return ClosedVocabulary(vocab.num_known)
        case "uniform":
            return UniformUnknownWords(vocab.num_known, config["total"])
        case "characters":
            from dragoman.ngram.spelling import SPELLING_DIR, SpellingModel

            characters = members[SPELLING_DIR]
            assert isinstance(characters, LanguageModel)
            return SpellingModel.from_character_model(vocab, characters)
        case kind:
            raise ValueError(f"unknown-word model {kind!r}")
