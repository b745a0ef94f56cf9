"""Loading of models from their directories."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dragoman.core.defaults import SENTENCEPIECE_FILE
from dragoman.core.errors import DataError, shorten
from dragoman.data.languages import saved_languages
from dragoman.data.segmenters import Segmenter, load_segmenter
from dragoman.data.unknown_words import ClosedVocabulary, UniformUnknownWords, UnknownWordModel
from dragoman.data.vocabulary import Vocab
from dragoman.io import storage
from dragoman.io.digests import FILES
from dragoman.models.base import FORMAT_VERSION, Config, Model, SavedModel
from dragoman.models.language_model import LanguageModel

if TYPE_CHECKING:
    from dragoman.models.translation import BaseTranslator
    from dragoman.models.translator import Translator

TRANSLATOR_KINDS = ("translator", "quantized-translator")
# Language models that have a precision.
NEURAL_KINDS = ("recurrent", "feed-forward", "quantized-recurrent", "quantized-feed-forward")
PRECISIONS = ("float32", "int8")  # in which neural models can be loaded
MAX_DEPTH = 8  # of models inside each other
SPELLING_DIR = "spelling"  # the directory of the character model of an unknown-word model
# Errors raised by models whose files do not fit together.
BROKEN_MODEL_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
)
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
    "quantized-translator": "dragoman.models.quantized_translator:QuantizedTranslator",
    "quantized-recurrent": "dragoman.models.quantized_language_model:QuantizedRecurrentModel",
    "quantized-feed-forward": "dragoman.models.quantized_language_model:QuantizedFeedForwardModel",
}


def load(path: str | Path, precision: str | None = None) -> Any:
    """Load any model from its directory. Arrays are mapped into memory and checked once.

    Args:
        path: The model directory.
        precision: "int8" rounds the matrices of a neural model to 8 bits; "float32" refuses a model whose matrices are
            rounded.

    >>> import tempfile
    >>> from dragoman import Corpus, NgramModel, load
    >>> model = NgramModel.train(Corpus.from_sentences(["a b", "b a"]), order=2, smoothing="witten-bell")
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     model.save(f"{directory}/model")
    ...     load(f"{directory}/model").score("a b") == model.score("a b")
    True
    """
    _check_precision_name(precision)
    return _with_precision(_load(Path(path)), path, precision)


def _load(directory: Path, depth: int = 0) -> Any:
    """Load a model that is inside `depth` others."""
    if depth > MAX_DEPTH:
        raise DataError(f"{directory}: models inside each other, more than {MAX_DEPTH} deep; train or copy it again")
    config = _read_config(directory)
    storage.check_digests(directory, config)
    config.pop(FILES, None)
    kind = _check_kind(config.pop("kind", None), directory)
    version = config.pop("format", None)
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise DataError(f"{directory}: model format {version} is from a newer version of dragoman; update dragoman")
    if version != FORMAT_VERSION:
        problem = f"model format {version} is from an older version of dragoman and cannot be loaded"
        raise DataError(f"{directory}: {problem}; train the model again")
    if not (directory / storage.VOCAB_FILE).is_file():
        raise DataError(f"{directory / storage.VOCAB_FILE}: missing; {storage.BROKEN_DIRECTORY}")
    vocab = Vocab.read(directory / storage.VOCAB_FILE)
    if "units" in config:  # of a language model; without it, the tokens are words
        vocab = vocab.with_segmenter(_load_segmenter(config.pop("units"), directory))
    arrays_file = directory / storage.ARRAYS_FILE
    arrays = storage.map_arrays(arrays_file) if arrays_file.exists() or kind == "ngram" else {}
    try:
        members = {name: _load_member(directory / name, depth + 1) for name in member_names(kind, config)}
        unknown = load_unknown_model(config.pop("unknown"), vocab, members)
        return model_class(kind).from_saved(SavedModel(directory, config, vocab, unknown, arrays, members))
    except DataError as error:
        if str(directory) in str(error):
            raise
        raise DataError(f"{directory}: {error}") from error
    except KeyError as error:
        raise DataError(f"{directory}: broken model directory: {error} is missing; train or copy it again") from error
    except BROKEN_MODEL_ERRORS as error:
        problem = f"broken model directory ({type(error).__name__}: {shorten(' '.join(str(error).split()), 200)})"
        raise DataError(f"{directory}: {problem}; train or copy it again") from error


def member_names(kind: str, config: Config) -> list[str]:
    """Return the names of the directories of models inside a model of this kind and configuration."""
    unknown = config["unknown"]
    spelling = [SPELLING_DIR] if isinstance(unknown, dict) and unknown.get("kind") == "characters" else []
    return [*model_class(kind).member_names(config), *spelling]


def model_class(kind: str) -> type[Model]:
    """Return the class of a kind of model."""
    module, _, name = MODEL_CLASSES[kind].partition(":")
    kind_class: type[Model] = getattr(import_module(module), name)
    return kind_class


def _load_member(directory: Path, depth: int) -> LanguageModel:
    """Load a language model inside another model."""
    if directory.is_symlink() or not directory.is_dir():
        problem = "is a symbolic link" if directory.is_symlink() else "missing"
        raise DataError(f"{directory}: {problem}; {storage.BROKEN_DIRECTORY}")
    member = _load(directory, depth)
    if not isinstance(member, LanguageModel):
        raise DataError(f"{directory}: is not a language model; {storage.BROKEN_DIRECTORY}")
    return member


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


def _check_precision_name(precision: str | None) -> None:
    if precision is not None and precision not in PRECISIONS:
        raise DataError(f"precision {precision}: choose float32 or int8")


def check_precision(kind: str, path: str | Path, precision: str | None) -> None:
    """Raise an error if a model of this kind, in a directory, cannot be loaded with a precision."""
    from dragoman.models.quantized import QUANTIZED_CLASSES, check_is_quantizable

    _check_precision_name(precision)
    is_quantized = kind in {f"quantized-{name}" for name in QUANTIZED_CLASSES}
    if precision == "float32" and is_quantized:
        raise DataError(f"{path}: its weights have 8 bits; use precision int8, or the model that it was made from")
    if precision == "int8" and not is_quantized:
        check_is_quantizable(kind, path)


def _with_precision(model: Any, path: str | Path, precision: str | None) -> Any:
    if precision is None:
        return model
    from dragoman.models.quantized import QuantizedModel, quantize_model, warn_if_slow

    check_precision(model.kind, path, precision)
    if precision == "int8" and not isinstance(model, QuantizedModel):
        warn_if_slow(path, "load it without precision int8")
        return quantize_model(model, path)
    return model


def load_language_model(path: str | Path, precision: str | None = None) -> LanguageModel:
    """Load a language model; raise an error for other models. For the precision, see `load`."""
    _check_precision_name(precision)
    model = load(path)
    if not isinstance(model, LanguageModel):
        remedy = "try dragoman translate, or dragoman score with --src"
        raise DataError(f"{path}: is a model of kind {model.kind}, not a language model; {remedy}")
    language_model: LanguageModel = _with_precision(model, path, precision)
    return language_model


def load_translator(path: str | Path, precision: str | None = None) -> BaseTranslator:
    """Load a translator; raise an error for other models. For the precision, see `load`."""
    _check_precision_name(precision)
    model = load(path)
    if model.kind not in TRANSLATOR_KINDS:
        raise DataError(f"{path}: is a model of kind {model.kind}, not a translator; try dragoman score or next")
    translator: BaseTranslator = _with_precision(model, path, precision)
    return translator


def load_trained_translator(path: str | Path) -> Translator:
    """Load a translator with the parameters that it was trained with."""
    model = load_translator(path, "float32")
    return cast("Translator", model)


def check_distinct(paths: Sequence[Path]) -> None:
    """Raise an error if a directory is named twice."""
    real_paths = [os.path.realpath(path) for path in paths]
    for number, path in enumerate(paths):
        if real_paths[number] in real_paths[:number]:
            raise DataError(f"{path}: named twice; name each model once")


def _read_config(directory: Path) -> dict[str, Any]:
    if directory.is_file():
        remedy = "convert an ARPA file to one with dragoman import"
        raise DataError(f"{directory}: is a file, not a model directory; {remedy}")
    if not directory.exists():
        raise DataError(f"{directory}: no such directory; pass a directory written by dragoman train")
    if not (directory / storage.CONFIG_FILE).exists():
        problem = f"not a model directory (it has no {storage.CONFIG_FILE})"
        raise DataError(f"{directory}: {problem}; pass a directory written by dragoman train")
    return storage.read_config(directory)


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
    match config:
        case {"kind": "none"}:
            return ClosedVocabulary(vocab.num_known)
        case {"kind": "uniform", "total": int(total)} if type(total) is int:
            return UniformUnknownWords(vocab.num_known, total)
        case {"kind": "characters"}:
            from dragoman.ngram.spelling import SpellingModel

            characters = members[SPELLING_DIR]
            assert isinstance(characters, LanguageModel)
            return SpellingModel.from_character_model(vocab, characters)
    raise ValueError(f"unknown-word model {shorten(str(config))}")
