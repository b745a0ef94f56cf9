"""Translators: encoder-decoders, with and without attention (tutorial, sections "Neural Encoder-Decoder Models" and
"Attentional Neural MT")."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor
from torch.nn.functional import embedding

from dragoman.core.errors import DataError
from dragoman.core.scorer import Carry, State
from dragoman.core.settings import validate
from dragoman.data.batches import Batch
from dragoman.data.corpus import Corpus, ParallelCorpus
from dragoman.data.segmenters import WordSegmenter
from dragoman.data.tokenizer import PLAIN as PLAIN_TEXT
from dragoman.data.tokenizer import TREE, Tokenizer
from dragoman.data.unknown_words import UniformUnknownWords, UnknownWordModel
from dragoman.data.vocabulary import START, Vocab
from dragoman.io.storage import LEXICON_FILE as LEXICON_FILE
from dragoman.io.storage import SOURCE_PREFIX, SOURCE_VOCAB_FILE, TARGET_PREFIX
from dragoman.models.base import SavedModel
from dragoman.models.neural import saved_settings
from dragoman.models.softmax_model import (
    SoftmaxModel,
    begin_as_unigram,
    saved_classes,
    softmax_classes,
)
from dragoman.models.translation import BaseTranslator
from dragoman.models.translator_config import TranslatorConfig, inapplicable_setting
from dragoman.models.translator_lexicon import learned_table, table_arrays, table_from, table_text
from dragoman.models.translator_losses import taught
from dragoman.models.translator_parts import M_SOURCE, encoder_of, first_parameters, priors_of
from dragoman.nn.attention import SCORES, Memory, Places, Score, remember
from dragoman.nn.attention_priors import History
from dragoman.nn.cells import CELLS, CellState
from dragoman.nn.class_softmax import WordClasses
from dragoman.nn.decoder import (
    Decoder,
    DecoderRows,
    Unrolled,
    step,
    step_alone,
    unroll_alone,
    unroll_attending,
)
from dragoman.nn.dropout import dropout
from dragoman.nn.encoders import Encoder, EncoderOutput, Noise
from dragoman.nn.init import PRECISIONS
from dragoman.nn.lexicon_softmax import Candidates, LexiconTable, boosts, candidates, look
from dragoman.nn.lexicon_softmax import target_log_probs as boosted_target_log_probs
from dragoman.nn.lexicon_softmax import word_log_probs as boosted_log_probs
from dragoman.nn.lexicon_softmax import word_scores as boosted_scores
from dragoman.nn.mlp import affine
from dragoman.nn.recurrent import Layer
from dragoman.nn.step_products import PLAIN
from dragoman.search.length import LengthPrior

T = TypeVar("T")

RATIO = "prior.position.log_ratio"  # words of the target for each of the source
LENGTH_PRIOR, LEXICON = "length_prior.", "lexicon."  # before the names of their tables on disk


MOST_LOOKED_UP = 1 << 26  # numbers of a table that makes searching quicker


class TranslatorOutput(NamedTuple):
    """What a translator says of given pairs."""

    log_probs: Tensor  # (tokens,) of the targets, with what training has to pay besides
    attention: Tensor | None = None  # (steps, pairs, longest source) where was looked; anything where padded


class Asked(NamedTuple):
    """Which words' log-probabilities are wanted, while a batch is read."""

    targets: NDArray[Any]  # (tokens,)
    own: Tensor  # (tokens,) where they stand among steps * rows
    lexical: Any  # what the lexicon has for the sources, or none
    alphas: Tensor  # (steps, rows, longest source)
    smoothing: float  # of labels


class WordSubset(NamedTuple):
    """Words that are compared among themselves."""

    words: Tensor  # (n,)
    W: Tensor  # (n, outputs) of the output layer
    b: Tensor  # (n,)


class Translator(SoftmaxModel, BaseTranslator):
    """P(E | F): an encoder reads F, and a decoder that begins where it ended predicts E word by word.

    >>> from dragoman import fit
    >>> german, english = ["ein hund bellt .", "eine katze schläft ."] * 2, ["a dog barks .", "a cat sleeps ."] * 2
    >>> source, target = Side.learn("word", german), Side.learn("word", english)
    >>> pairs = ParallelCorpus(source.read(german), target.read(english))
    >>> model = Translator.create(pairs, source, target, embedding=16, embedding_reach=1.0, hidden=16, dropout=0.0)
    >>> fitted = fit(model, pairs, max_epochs=40, learning_rate=0.02)
    >>> model.translate("ein hund bellt .")[0].text
    'a dog barks .'
    """

    kind: ClassVar[str] = "translator"
    settings: TranslatorConfig
    supports_label_smoothing: ClassVar[bool] = True
    _inputs: Tensor | None = None  # (|V|, sums * H) what words bring to the decoder, if that is looked up

    def __init__(
        self,
        source: Tokenizer,
        target: Tokenizer,
        unknown: UnknownWordModel,
        settings: TranslatorConfig,
        parameters: Mapping[str, Tensor],
        length_prior: LengthPrior,
        classes: WordClasses | None = None,
        record: Mapping[str, Any] | None = None,
        lexicon: LexiconTable | None = None,
    ):
        self.source, self.target, self.unknown, self.settings = source, target, unknown, settings
        self.source_vocab, self.vocab = source.vocab, target.vocab
        self.length_prior = length_prior
        self._parameters = dict(parameters)
        self.classes = classes
        self.lexicon = lexicon
        self.record = dict(record or {})

    @classmethod
    def create(
        cls,
        pairs: ParallelCorpus,
        source: Tokenizer | None = None,
        target: Tokenizer | None = None,
        settings: TranslatorConfig | None = None,
        *,
        unknown: UnknownWordModel | None = None,
        seed: int = 1,
        **others: Any,
    ) -> Self:
        """An untrained translator of the words of some pairs; other settings are those of its configuration.

        Without sides, texts are taken to be words with spaces between them.
        """
        settings = validate(settings or TranslatorConfig, others, "settings")
        source = source or Tokenizer(
            WordSegmenter(), pairs.source.vocab, format=TREE if settings.reads_trees else PLAIN_TEXT
        )
        target = target or Tokenizer(WordSegmenter(), pairs.target.vocab)
        _require_format(settings, source)
        if wrong := inapplicable_setting(settings, ()):
            raise DataError(wrong)
        if settings.symmetry:
            raise DataError("symmetry is between two translators; create them together, with TwoWay.create")
        classes = softmax_classes(pairs.target, settings)
        chance = Generator().manual_seed(seed)
        first = first_parameters(len(source.vocab), len(target.vocab), settings, chance, classes)
        begin_as_unigram(first, pairs.target, classes)
        if RATIO in first:
            first[RATIO].fill_(math.log(pairs.target.sizes.sum() / pairs.source.sizes.sum()))
        prior = LengthPrior.estimate(pairs.source.sizes - 1, pairs.target.sizes - 1)
        lexicon = learned_table(pairs, PRECISIONS[settings.precision]) if settings.lexicon else None
        unknown = unknown or UniformUnknownWords(target.vocab.num_known)
        return cls(source, target, unknown, settings, first, prior, classes, lexicon=lexicon)

    @property
    def has_auxiliary_loss(self) -> bool:
        """Whether training pays for more than log P: for where attention looks."""
        return bool(self.settings.supervision or self.settings.fertility_penalty)

    # -- its parts -----------------------------------------------------------------------------------------------------

    @cached_property
    def encoder(self) -> Encoder:
        return encoder_of(self.settings)

    @cached_property
    def _decoder(self) -> Decoder:
        found = _named(self._parameters, "decoder.")
        numbers = range(1, self.settings.layers + 1)
        layers = tuple(Layer(*(found[f"{name}{number}"] for name in Layer._fields)) for number in numbers)
        attention = _named(self._parameters, "attention.")
        priors = tuple(
            (prior, _named(self._parameters, f"prior.{name}.")) for name, prior in priors_of(self.settings).items()
        )
        score, hard = self._score, self.settings.hard
        return Decoder(self.settings.cell, layers, score, found.get("W_c"), attention, priors, hard)

    @property
    def has_attention(self) -> bool:
        return self.settings.attention != "none"

    @property
    def _score(self) -> Score | None:
        return SCORES.get(self.settings.attention)

    # -- reading the source --------------------------------------------------------------------------------------------

    def encode(self, source: Any, noise: Generator | None = None) -> EncoderOutput:
        """The source sentences read."""
        left_out = Noise(self.settings.embedding_dropout, self.settings.dropout, noise)
        return self.encoder.encode(_named(self._parameters, "encoder."), self._parameters[M_SOURCE], source, left_out)

    def _remember(self, encoded: EncoderOutput, source: Any) -> Memory | None:
        if self._score is None:
            return None
        decoder = self._decoder
        memory = remember(self._score, decoder.attention, encoded.vectors, encoded.mask)
        memory = memory._replace(believed=tuple(one.remember(own, encoded.vectors) for one, own in decoder.priors))
        if self.lexicon is None:
            return memory
        return memory._replace(lexical=candidates(self.lexicon, Batch.from_sentences(source).ids, len(self.vocab)))

    def _bridge(self, encoded: EncoderOutput) -> tuple[CellState, ...]:
        """h_0 of each layer of the decoder, by the encoder's: the last goes with the last, and so on downwards; if the
        encoder has fewer, its lowest serves for several."""
        below = len(encoded.ends) - self.settings.layers
        ends = [encoded.ends[max(0, below + layer)] for layer in range(self.settings.layers)]
        names = CELLS[self.settings.cell].state
        return tuple(
            tuple(self._begin(name, number, end, place) for place, name in enumerate(names))
            for number, end in enumerate(ends, 1)
        )

    def _begin(self, name: str, layer: int, end: CellState, place: int) -> Tensor:
        """h_0 = tanh(W h + b), or h itself; an encoder without c lets h begin both.  # (sentences, H)"""
        part = end[min(place, len(end) - 1)]
        W, b = (self._parameters.get(f"bridge.{letter}_{name}{layer}") for letter in "Wb")
        return part if W is None or b is None else affine(part, W, b).tanh()

    def _first_rows(self, encoded: EncoderOutput) -> DecoderRows:
        """Before the first word; c_0 = 0."""
        sentences, longest, D = encoded.vectors.shape
        zeros = encoded.vectors.new_zeros
        history = History(zeros(sentences), zeros(sentences, longest)) if self._decoder.priors else None
        return DecoderRows(self._bridge(encoded), zeros(sentences, D), zeros(sentences, longest), history)

    # -- all words of sentences at once --------------------------------------------------------------------------------

    def batch_log_probs(self, pairs: ParallelCorpus, noise: Generator | None = None, smoothing: float = 0.0) -> Tensor:
        """log P of every token of the targets given those before it and the source; with noise, as in training."""
        return self.read_pairs(pairs, noise, smoothing).log_probs

    def read_pairs(
        self, pairs: ParallelCorpus, noise: Generator | None = None, smoothing: float = 0.0
    ) -> TranslatorOutput:
        """The same, and where was looked."""
        if not len(pairs):
            return TranslatorOutput(self._parameters["M"].new_zeros(0))
        batch, encoded = Batch.from_sentences(pairs.target), self.encode(pairs.source, noise)
        memory = self._remember(encoded, pairs.source)
        unrolled = self._unrolled(batch, encoded, memory, noise)
        own = _own_places(batch).to(self.device)
        h = unrolled.h.flatten(0, 1).index_select(0, own)  # (tokens, H)
        c = None if unrolled.contexts is None else unrolled.contexts.flatten(0, 1).index_select(0, own)
        chance = None if noise is None else noise.get_state()
        x, targets = self._read_out(h, c, noise), pairs.target.ids_with_boundaries(starts=0)
        if memory is None or unrolled.alphas is None:
            return TranslatorOutput(self._target_log_probs(x, targets, smoothing))
        asked = Asked(targets, own, memory.lexical, unrolled.alphas, smoothing)
        found, baseline = self._log_probs_of(x, asked), None
        if chance is not None:
            if self.settings.hard:
                baseline = self._by_soft(h, memory, asked, chance)
            found = taught(found, unrolled, own, pairs, memory, self.settings, baseline)
        return TranslatorOutput(found, unrolled.alphas)

    def _by_soft(self, h: Tensor, memory: Memory, asked: Asked, chance: Tensor) -> Tensor:
        """log P of the targets if each word were predicted by soft attention, for once, all else being equal: dropout,
        too, whose state of chance is given.  # (tokens,)"""
        with torch.no_grad():
            contexts = torch.einsum("trs,rsd->trd", asked.alphas, memory.vectors)  # (steps, rows, D)
            c = contexts.flatten(0, 1).index_select(0, asked.own)
            again = torch.Generator(self.device)
            again.set_state(chance)
            return self._log_probs_of(self._read_out(h, c, again), asked)

    def _log_probs_of(self, x: Tensor, asked: Asked) -> Tensor:
        """log P of the targets by what the softmax reads, with the lexicon's say if it has one.  # (tokens,)"""
        if asked.lexical is None:
            return self._target_log_probs(x, asked.targets, asked.smoothing)
        return self._boosted(x, asked.targets, Candidates(*asked.lexical), asked.alphas, asked.own, asked.smoothing)

    def _unrolled(
        self, batch: Batch, encoded: EncoderOutput, memory: Memory | None, noise: Generator | None
    ) -> Unrolled:
        """The decoder over all words of the targets."""
        read = torch.cat([torch.full((1, batch.num_rows), START), batch.ids.T[:-1]])  # (steps, rows)
        m = dropout(embedding(read.to(self.device), self._parameters["M"]), self.settings.embedding_dropout, noise)
        masks = self._masks(m, noise)
        if memory is None:
            return unroll_alone(self._decoder, m, self._bridge(encoded), masks)
        return unroll_attending(self._decoder, m, self._first_rows(encoded), memory, masks, noise)

    def _boosted(
        self, x: Tensor, targets: NDArray[Any], lexical: Candidates, alphas: Tensor, own: Tensor, smoothing: float
    ) -> Tensor:
        """The same with the lexicon's say.  # x: (tokens, outputs), alphas: (steps, rows, longest)"""
        steps, rows, _ = alphas.shape
        places = own % rows * steps + own // rows  # sentences first
        looked = look(lexical, alphas, x, places, self._output(), self.settings.lexicon_floor)
        words = torch.from_numpy(targets).long().to(x.device)
        return boosted_target_log_probs(x, *self._output(), words, looked, smoothing)

    def pair_log_probs(self, source: Any, target: Corpus) -> NDArray[np.float64]:
        """log P of every token of target sentences given their sources.  # (tokens,)"""
        with torch.no_grad():
            return self.batch_log_probs(ParallelCorpus(source, target)).double().cpu().numpy()

    def _masks(self, m: Tensor, noise: Generator | None) -> list[Tensor]:
        """Dropout between layers of the decoder, for all steps.  # (steps, rows, H) each"""
        if noise is None or not self.settings.dropout:
            return []
        ones = m.new_ones(*m.shape[:2], self.settings.hidden)
        return [dropout(ones, self.settings.dropout, noise) for _ in range(self.settings.layers - 1)]

    def _read_out(self, h: Tensor, c: Tensor | None, noise: Generator | None = None) -> Tensor:
        """What the softmax reads: [h; c], or a tanh layer of them.  # (rows, outputs)"""
        x = dropout(h if c is None else torch.cat([h, c], dim=1), self.settings.dropout, noise)
        if self.settings.readout:
            found = self._parameters
            x = dropout(affine(x, found["readout.W"], found["readout.b"]).tanh(), self.settings.dropout, noise)
        return self._outward(x)

    # -- the scorer ----------------------------------------------------------------------------------------------------

    def start(self, batch: Batch, carry: Carry = None) -> State:
        with torch.no_grad():
            encoded = self.encode(batch.source)
            memory = self._remember(encoded, batch.source)
            rows = self._first_rows(encoded)
            sentence = None if memory is None else torch.arange(batch.num_rows)
            state = State(rows, memory, sentence)
            return self._after(state, torch.full((batch.num_rows,), START))

    def log_probs(self, state: State) -> Tensor:
        with torch.no_grad():
            found = self._word_log_probs(self._before_softmax(state))
            boosted = self._lexical_boosts(state)
            return found if boosted is None else boosted_log_probs(found, *boosted)

    def word_subset(self, words: Tensor) -> WordSubset:
        """The output layer of some words.  # words: (n,)"""
        assert self.classes is None, "a softmax over all words at once"
        W, b = self._output()
        own = words.to(self.device)
        return WordSubset(words, W[own], b[own])

    def prepare_for_search(self) -> Self:
        """The same with W_x embed(e_{t-1}) + b looked up, which is computed once for every word. It is for searching
        alone, as it would not notice that its parameters were trained."""
        if self._score is None or len(self.vocab) * self._decoder.layers[0].W_x.shape[0] > MOST_LOOKED_UP:
            return self
        found, first = copy.copy(self), self._decoder.layers[0]
        with torch.no_grad():
            found._inputs = torch.addmm(first.b, self._parameters["M"], first.W_x.t())  # (|V|, sums * H)
        return found

    def subset_scores(self, state: State, subset: WordSubset) -> Tensor:
        """log P of some words, each row's up to a number of its own.  # (rows, n)"""
        with torch.no_grad():
            found = torch.addmm(subset.b, self._before_softmax(state), subset.W.t()).cpu()
            boosted = self._lexical_boosts(state)
            return found if boosted is None else boosted_scores(found, subset.words, *boosted, len(self.vocab))

    def _before_softmax(self, state: State) -> Tensor:
        """# (rows, outputs)"""
        rows: DecoderRows = DecoderRows(*state.rows)
        return self._read_out(rows.layers[-1][0], None if state.memory is None else rows.context)

    def _lexical_boosts(self, state: State) -> tuple[Tensor, Tensor] | None:
        """If there is a lexicon, the candidates of each row, and how much they are boosted.  # (rows, K) each"""
        if self.lexicon is None or state.sentence is None:
            return None
        lexical = Candidates(*Memory(*state.memory).lexical or ())
        places = Places.of(state.sentence, len(lexical.words))
        alpha = DecoderRows(*state.rows).alpha
        boost = places.rows(boosts(lexical, places.grid(alpha), self.settings.lexicon_floor))
        return lexical.words[state.sentence], boost.cpu()

    def advance(self, state: State, words: Tensor) -> State:
        with torch.no_grad():
            return self._after(state, words)

    def finish(self, state: State) -> Carry:
        return None

    def attention(self, state: State) -> Tensor | None:
        """alpha_t: where the decoder looks as it predicts the next word.  # (rows, longest source)"""
        return None if state.memory is None else DecoderRows(*state.rows).alpha.cpu()

    def _after(self, state: State, words: Tensor) -> State:
        """One word on.  # words: (rows,)"""
        decoder, rows = self._decoder, DecoderRows(*state.rows)
        if state.memory is None or state.sentence is None:
            m = embedding(words.to(self.device), self._parameters["M"])  # (rows, L_m)
            return State(rows._replace(layers=step_alone(decoder, m, rows.layers)))
        memory = Memory(*state.memory)
        places = Places.of(state.sentence, len(memory.vectors))
        p = self._word_inputs(decoder, words.to(self.device))
        return State(tuple(step(decoder, p, rows, memory, places, PLAIN)), tuple(memory), state.sentence)

    def _word_inputs(self, decoder: Decoder, words: Tensor) -> Tensor:
        """W_x embed(e_{t-1}) + b of the first layer.  # (rows,) -> (rows, sums * H)"""
        if self._inputs is not None:
            return self._inputs.index_select(0, words)
        first = decoder.layers[0]
        return torch.addmm(first.b, embedding(words, self._parameters["M"]), first.W_x.t())

    # -- on disk -------------------------------------------------------------------------------------------------------

    def config(self) -> dict[str, Any]:
        return {**super().config(), "source": self.source.config(), "target": self.target.config()}

    def sizes(self) -> dict[str, int]:
        return {"source words": self.source_vocab.num_known, **super().sizes()}

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        prior = {LENGTH_PRIOR + name: array for name, array in self.length_prior.arrays().items()}
        entries = {} if self.lexicon is None else table_arrays(self.lexicon)
        return {**super().arrays(), **prior, **{LEXICON + name: array for name, array in entries.items()}}

    def files(self) -> Mapping[str, bytes]:
        sides = {SOURCE_PREFIX: self.source, TARGET_PREFIX: self.target}
        units = {prefix + name: data for prefix, side in sides.items() for name, data in side.segmenter.files().items()}
        words = {SOURCE_VOCAB_FILE: self.source_vocab.to_text().encode()}
        if self.lexicon is not None:
            words[LEXICON_FILE] = table_text(self.lexicon, self.source_vocab, self.vocab).encode()
        return {**units, **words}

    @classmethod
    def from_saved(cls, saved: SavedModel) -> Self:
        settings = saved_settings(saved, TranslatorConfig)
        source_vocab = Vocab.read(saved.path / SOURCE_VOCAB_FILE)
        source = Tokenizer.from_saved(saved.config["source"], source_vocab, _files(saved.path, SOURCE_PREFIX))
        target = Tokenizer.from_saved(saved.config["target"], saved.vocab, _files(saved.path, TARGET_PREFIX))
        _require_format(settings, source)
        classes = saved_classes(saved, settings)
        first = first_parameters(len(source.vocab), len(target.vocab), settings, Generator(), classes)
        prior = LengthPrior.from_arrays(_named(saved.arrays, LENGTH_PRIOR))
        record = {name: value for name, value in saved.config.items() if name not in ("model", "source", "target")}
        sizes = (len(source.vocab), len(target.vocab))
        lexicon = table_from(_named(saved.arrays, LEXICON), *sizes) if settings.lexicon else None
        model = cls(source, target, saved.unknown, settings, first, prior, classes, record, lexicon)
        return model.load_arrays(saved.arrays, str(saved.path))


def _files(directory: Path, prefix: str) -> dict[str, bytes]:
    """The files of one side, by their names without the prefix."""
    found = [path for path in directory.glob(f"{prefix}*") if path.is_file()]
    return {path.name.removeprefix(prefix): path.read_bytes() for path in found}


def _named(tensors: Mapping[str, T], prefix: str) -> dict[str, T]:
    """Those whose names begin so, without that."""
    return {name.removeprefix(prefix): one for name, one in tensors.items() if name.startswith(prefix)}


def _require_format(settings: TranslatorConfig, source: Tokenizer) -> None:
    """Trees for encoders that read trees, and text for the others."""
    if settings.reads_trees and source.format != TREE:
        remedy = "give trees with --src-format tree, or choose another --encoder"
        raise DataError(f"encoder {settings.encoder} reads bracketed trees, and the source is plain text; {remedy}")
    if source.format == TREE and not settings.reads_trees:
        raise DataError(
            f"encoder {settings.encoder} reads plain text; for trees choose --encoder tree-lstm or recursive"
        )


def _own_places(batch: Batch) -> Tensor:
    """Where the tokens of a batch stand, sentence after sentence, in what has steps first.  # (tokens,)"""
    rows, steps = torch.nonzero(batch.mask, as_tuple=True)
    return steps * batch.num_rows + rows
