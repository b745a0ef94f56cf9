"""The log-linear (maximum entropy) language model: s = sum_{j: x_j != 0} W_{.,j} x_j + b, p = softmax(s)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from dragoman.core.errors import DataError
from dragoman.core.scorer import Carry, State
from dragoman.core.settings import Settings, validate
from dragoman.data.batches import Batch
from dragoman.data.corpus import Corpus
from dragoman.data.ranges import offsets_of
from dragoman.data.unknown_words import UniformUnknownWords, UnknownWordModel
from dragoman.data.vocabulary import START, Vocab
from dragoman.models.base import SavedModel
from dragoman.models.loglinear import features, scoring
from dragoman.models.loglinear.config import LogLinearConfig
from dragoman.models.loglinear.explain import Explanation, explain
from dragoman.models.loglinear.weights import (
    ActiveFeatures,
    FeatureExtractor,
    FeatureIndex,
    WeightLayout,
    check_layout,
    plan_weights,
)
from dragoman.models.neural import LanguageModelOutput, NeuralLanguageModel, saved_settings
from dragoman.nn.layers import DTYPES, log_unigram

VALUES, NAMES = "values.", "names."  # prefixes of the arrays of a value table
Classes = Mapping[str, str] | NDArray[np.integer]


class LogLinearModel(NeuralLanguageModel):
    """A log-linear language model: scores are sums of feature weights, normalised by a softmax.

    >>> from dragoman import fit
    >>> corpus = Corpus.from_sentences(["farmers eat meat", "cows eat hay"] * 2)
    >>> model = LogLinearModel.create(corpus, features="word1,word2,word1+word2")
    >>> fitted = fit(model, corpus, optimizer="adagrad", learning_rate=0.5, max_epochs=20)
    >>> model.next_words("farmers eat")[0].word
    'meat'
    """

    kind: ClassVar[str] = "log-linear"
    settings: LogLinearConfig

    def __init__(
        self,
        vocab: Vocab,
        unknown: UnknownWordModel,
        settings: LogLinearConfig,
        extractor: FeatureExtractor,
        layout: WeightLayout,
        *,
        windows: int = 0,
        notes: tuple[str, ...] = (),
        training_metadata: Mapping[str, object] | None = None,
    ):
        super().__init__(settings, training_metadata)
        dtype = DTYPES[settings.dtype]
        self.vocab, self.unknown = vocab, unknown
        self.extractor, self.layout = extractor, layout
        self.notes = notes  # automatic decisions about the weights, for the user
        self.bias = nn.Parameter(torch.zeros(len(vocab), dtype=dtype))  # b; that of `<s>` has no effect
        self.pairs = _parameter(len(layout.word), dtype)  # weights of features and next words seen together
        self.windows = _parameter(windows, dtype)  # weights of features and all words

    @classmethod
    def create(
        cls,
        corpus: Corpus,
        settings: LogLinearConfig | None = None,
        *,
        unknown: UnknownWordModel | None = None,
        classes: Classes | None = None,
        **overrides: object,
    ) -> Self:
        """Create an untrained model with the features of a corpus. Its bias is the unigram distribution.

        Args:
            corpus: the training corpus.
            settings: settings of the model; `overrides` are single fields of `LogLinearConfig`.
            unknown: model of unknown words, uniform by default.
            classes: the class of each word, by word or by id. Needed for features of classes.
        """
        base = settings.model_dump(exclude_unset=True) if settings else {}
        settings, vocab = validate(LogLinearConfig, {**base, **overrides}, "settings"), corpus.vocab
        templates = features.parse_features(settings.features)
        tables = _value_tables(templates, vocab, settings, classes)
        plan = plan_weights(corpus, templates, tables, settings)
        extractor = FeatureExtractor(vocab, templates, tables, FeatureIndex.build(plan.key))
        unknown = unknown or UniformUnknownWords(vocab.num_known)
        notes = (plan.note,) if plan.note else ()
        model = cls(vocab, unknown, settings, extractor, plan.layout, windows=plan.windows, notes=notes)
        with torch.no_grad():
            model.bias.copy_(log_unigram(corpus, model.bias.dtype))
        return model.eval()

    def with_settings(self, settings: Settings) -> Self:
        """Return a copy with other settings that need no other parameters, such as dropout."""
        assert isinstance(settings, LogLinearConfig)
        model = type(self)(
            self.vocab,
            self.unknown,
            settings,
            self.extractor,
            self.layout,
            windows=len(self.windows),
            training_metadata=self.training_metadata,
        )
        return model.load_arrays(self.arrays(), "the model")

    def regularized_parameters(self) -> dict[str, nn.Parameter]:
        """Return the weights of features, without the bias."""
        return {name: parameter for name, parameter in self.named_parameters() if name != "bias"}

    def forward(self, batch: Corpus, *, generator: Generator | None = None) -> LanguageModelOutput:
        """Return log P of every token of some sentences."""
        if self.bias.device.type != "cpu":
            raise DataError(f"device {self.bias.device}: a log-linear model needs --device cpu")
        active = self.extractor.extract(features.WordHistories.from_corpus(batch))
        rate = self.settings.dropout
        if self.training and rate > 0:  # drop active features and scale up the others
            retained = (torch.rand(len(active.feature), generator=generator) >= rate).numpy()
            begin = offsets_of(retained)[active.begin]
            active = ActiveFeatures(begin, active.feature[retained], active.value[retained] / (1.0 - rate))
        groups = scoring.group_predictions(active, self.layout, len(self.windows) > 0)
        words = batch.ids_with_boundaries(starts=0)
        tensors = self.bias, self.pairs, self.windows
        log_probs: Tensor = scoring.SparseLogProbs.apply(*tensors, (self.layout, groups, words))  # type: ignore[no-untyped-call]
        return LanguageModelOutput(log_probs)

    def start(self, batch: Batch, carry: Carry = None) -> State:
        """Rows hold the previous words that the features use."""
        rows = torch.full((batch.num_rows, self.extractor.context_length or 1), features.NO_WORD)
        rows[:, -1] = START
        return State(rows)

    def advance(self, state: State, words: Tensor) -> State:
        history = state.rows if self.extractor.context_length is None else state.rows[:, 1:]
        return State(torch.cat([history, words[:, None]], dim=1))

    def log_probs(self, state: State) -> Tensor:
        active = self.extractor.extract(features.WordHistories.from_rows(state.rows.numpy()))
        return torch.log_softmax(torch.from_numpy(self.scores(active)), dim=1)

    def scores(self, active: ActiveFeatures) -> NDArray[np.float64]:
        """Return s of each prediction, -inf for `<s>`.  # (predictions, |V|)"""
        out = np.empty((len(active.begin) - 1, len(self.vocab)))
        scoring.all_scores(self.weights(), *active, out)
        return out

    def weights(self) -> scoring.LogLinearWeights:
        tensors = self.bias, self.pairs, self.windows
        return scoring.LogLinearWeights(*self.layout, *(tensor.detach().numpy() for tensor in tensors))

    def explain(self, prefix: str = "", *, words: Sequence[str] = (), k: int = 5) -> Explanation:
        """Explain the scores of the k most probable next words, and of `words`, by the active features."""
        return explain(self, prefix, words, k)

    def arrays(self) -> Mapping[str, NDArray[np.generic]]:
        tables = {name: values for name, values in self.extractor.tables.items() if name != "word"}
        names = {name: json.dumps(values.names).encode() for name, values in tables.items()}
        return {
            **super().arrays(),
            "keys": self.extractor.index.keys.view(np.int64),
            **self.layout._asdict(),
            **{VALUES + name: values.value_ids for name, values in tables.items()},
            **{NAMES + name: np.frombuffer(encoded, np.uint8) for name, encoded in names.items()},
        }

    @classmethod
    def from_saved(cls, saved: SavedModel) -> Self:
        settings = saved_settings(saved, LogLinearConfig)
        arrays = {name: np.array(array) for name, array in saved.arrays.items()}
        tables = {"word": features.identity_table(saved.vocab), **_saved_tables(arrays, len(saved.vocab))}
        features.load_environment_features()  # user-defined features are not saved; atoms are saved as tables
        try:
            templates = features.parse_features(settings.features, known=tables)
        except DataError as error:
            raise DataError(f"{saved.path}: {error}") from None
        if missing := sorted({atom.table for atom in features.distinct_atoms(templates)} - tables.keys()):
            raise ValueError(f"no values of {', '.join(missing)}")
        if arrays["keys"].dtype != np.int64 or arrays["keys"].ndim != 1:
            raise ValueError("the features have no keys")
        keys, layout = arrays["keys"].view(np.uint64), WeightLayout(*(arrays[name] for name in WeightLayout._fields))
        windows, pairs = len(arrays.get("windows", ())), len(arrays.get("pairs", ()))
        check_layout(layout, windows, len(saved.vocab), len(keys), pairs)
        extractor = FeatureExtractor(saved.vocab, templates, tables, FeatureIndex.build(keys))
        metadata = {key: value for key, value in saved.config.items() if key != "model"}
        model = cls(
            saved.vocab, saved.unknown, settings, extractor, layout, windows=windows, training_metadata=metadata
        )
        return model.load_arrays(arrays, str(saved.path))


def _value_tables(
    templates: tuple[features.FeatureTemplate, ...], vocab: Vocab, settings: LogLinearConfig, classes: Classes | None
) -> dict[str, features.ValueTable]:
    """Return the value tables of all atoms of the templates."""
    tables: dict[str, features.ValueTable] = {}
    for atom in features.distinct_atoms(templates):
        match atom.table:
            case "word":
                tables["word"] = features.identity_table(vocab)
            case "suffix":
                tables["suffix"] = features.suffix_table(vocab, settings.suffix_types)
            case "class":
                if classes is None:
                    remedy = "give classes, or leave the feature out"
                    raise DataError(f"feature {atom.name}: needs the class of each word; {remedy}")
                tables["class"] = features.class_table(vocab, classes)
            case name:
                tables[name] = features.function_table(vocab, partial(features.custom_atom_value, name))
    return tables


def _saved_tables(arrays: Mapping[str, NDArray[np.generic]], vocab_size: int) -> dict[str, features.ValueTable]:
    """Return the value tables; raise ValueError if they are not valid."""
    tables = {}
    for name in (name.removeprefix(VALUES) for name in arrays if name.startswith(VALUES)):
        ids, names = arrays[VALUES + name], json.loads(arrays[NAMES + name].tobytes())
        if ids.dtype != np.int32 or ids.shape != (vocab_size,) or not names:
            raise ValueError("the values do not match the vocabulary")
        tables[name] = features.ValueTable(ids.astype(np.int32, copy=False), tuple(map(str, names)))
        if tables[name].value_ids.min() < 0 or tables[name].value_ids.max() >= len(names):
            raise ValueError("a word has a value that does not exist")
    return tables


def _parameter(size: int, dtype: torch.dtype) -> Tensor:
    """Return zero weights: a parameter, unless there are none."""
    weights = torch.zeros(size, dtype=dtype)
    return nn.Parameter(weights) if size else weights
