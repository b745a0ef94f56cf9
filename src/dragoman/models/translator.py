"""Translators: encoder-decoders, with and without attention (tutorial, sections "Neural Encoder-Decoder Models" and
"Attentional Neural MT")."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from dragoman.align.shortlist import Shortlist
from dragoman.core.defaults import LETTERS_FILE, SENTENCEPIECE_FILE
from dragoman.core.errors import DataError
from dragoman.core.scorer import Carry, Scorer, State
from dragoman.core.settings import Settings, validate
from dragoman.core.types import Arrays
from dragoman.data.batches import Batch
from dragoman.data.corpus import Corpus, ParallelCorpus
from dragoman.data.detokenize import looks_tokenised
from dragoman.data.languages import saved_languages
from dragoman.data.tokenizer import PLAIN_TEXT, TREE, Tokenizer
from dragoman.data.unknown_words import UniformUnknownWords, UnknownWordModel
from dragoman.data.vocabulary import START, Vocab
from dragoman.data.vocabulary_extension import extend_tokenizer
from dragoman.io.storage import (
    CONFIG_FILE,
    LEXICON_FILE,
    SOURCE_PREFIX,
    SOURCE_VOCAB_FILE,
    TARGET_PREFIX,
)
from dragoman.models import translator_parts as parts
from dragoman.models.base import Config, SavedModel
from dragoman.models.configs import TranslatorConfig, inapplicable_setting
from dragoman.models.extension import (
    check_lines,
    extend_input,
    extend_lexicon_source,
    extend_output,
    extend_unknown_words,
)
from dragoman.models.neural import (
    CLASSES,
    NeuralModel,
    build_saved,
    create_output,
    saved_classes,
    saved_settings,
    softmax_classes,
)
from dragoman.models.stored_shortlist import read_shortlist, shortlist_arrays, with_current_decision
from dragoman.models.translation import BaseTranslator
from dragoman.models.translator_parts import TargetTokens, TranslatorOutput, gather_tokens
from dragoman.models.translator_scorer import ScorerCache, TranslatorScorer
from dragoman.nn.activations import tanh
from dragoman.nn.attention import Memory, reinforce
from dragoman.nn.attention_priors import PositionPrior
from dragoman.nn.decoder import DecoderState
from dragoman.nn.encoders import EncoderOutput
from dragoman.nn.layers import (
    DTYPES,
    Dropout,
    default_generator,
    empty_embedding,
    empty_linear,
    log_unigram,
    reset_linear,
    uniform_,
)
from dragoman.nn.lexicon import LexiconBias, LexiconTable
from dragoman.nn.output import FullSoftmax, OutputLayer, WordClasses, WordSubset
from dragoman.nn.packed import pack_float32
from dragoman.search.length import LengthPrior

LENGTH_PRIOR = "length_prior."  # prefix of its arrays in a model directory


class Translator(NeuralModel, BaseTranslator):
    """P(E | F): an encoder reads F, and a decoder that starts from its final state predicts E word by word.

    >>> from dragoman import fit
    >>> german, english = ["ein hund bellt .", "eine katze schläft ."] * 2, ["a dog barks .", "a cat sleeps ."] * 2
    >>> source, target = Tokenizer.train("word", german), Tokenizer.train("word", english)
    >>> pairs = ParallelCorpus(source.encode(german), target.encode(english))
    >>> model = Translator.create(pairs, source, target, embedding=16, embedding_reach=1.0, hidden=16, dropout=0.0)
    >>> result = fit(model, pairs, max_epochs=40, learning_rate=0.02)
    >>> model.translate("ein hund bellt .")[0].text
    'a dog barks .'
    """

    kind: ClassVar[str] = "translator"
    settings: TranslatorConfig
    supports_label_smoothing: ClassVar[bool] = True
    output: OutputLayer

    def __init__(
        self,
        source: Tokenizer,
        target: Tokenizer,
        unknown: UnknownWordModel,
        settings: TranslatorConfig,
        length_prior: LengthPrior,
        classes: WordClasses | None = None,
        lexicon: LexiconTable | None = None,
        training_metadata: Config | None = None,
    ):
        """Create a translator without initial parameters; see `create`."""
        super().__init__(settings, training_metadata)
        self.source, self.target, self.unknown = source, target, unknown
        self.source_vocab, self.vocab = source.vocab, target.vocab
        self.length_prior, self.classes = length_prior, classes
        self.has_auxiliary_loss = bool(settings.supervision or settings.fertility_penalty)
        self.source_embedding = empty_embedding(len(source.vocab), settings.embedding)  # M^(f)
        self.embedding = empty_embedding(len(target.vocab), settings.embedding)  # M
        self.embedding_dropout, self.dropout = Dropout(settings.embedding_dropout), Dropout(settings.dropout)
        self.encoder = parts.create_encoder(settings)
        self.bridge = parts.create_bridge(settings, self.encoder)
        context_size = self.encoder.output_size if settings.attention != "none" else 0
        self.decoder = parts.create_decoder(settings, context_size)
        size = settings.hidden + context_size
        self.readout = empty_linear(size, settings.readout) if settings.readout else None
        words = len(target.vocab)
        self.projection, self.output = create_output(settings.readout or size, words, settings, classes)
        self.lexicon = None if lexicon is None else LexiconBias(lexicon, words, settings.lexicon_floor)
        self._prepared = ScorerCache()
        self.shortlist: Shortlist | None = None  # that searches use; it is saved, and `train` removes it
        self.to(DTYPES[settings.dtype])

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
        **overrides: object,
    ) -> Self:
        """Create an untrained translator.

        Args:
            pairs: Sentence pairs whose vocabularies, lengths and word frequencies are used.
            source: Tokenizer of the source; by default, texts are words separated by spaces.
            target: Tokenizer of the target.
            settings: Settings of the translator.
            unknown: Model of unknown words; by default all are equally probable.
            seed: Random seed of the initial parameters.
            **overrides: Single settings.
        """
        settings = validate(settings or TranslatorConfig, overrides, "settings")
        text_format = TREE if settings.reads_trees else PLAIN_TEXT
        source = source or Tokenizer(pairs.source.vocab, format=text_format)
        target = target or Tokenizer(pairs.target.vocab)
        parts.check_source_format(settings, source)
        if problem := inapplicable_setting(settings, ()):
            raise DataError(" ".join(problem))
        if settings.symmetry:
            raise DataError("symmetry needs two translators; create them with TwoWayTranslator.create")
        prior = LengthPrior.estimate(pairs.source.sizes - 1, pairs.target.sizes - 1)
        lexicon = parts.learn_lexicon(pairs) if settings.lexicon else None
        unknown = unknown or UniformUnknownWords(target.vocab.num_known)
        model = cls(source, target, unknown, settings, prior, softmax_classes(pairs.target, settings), lexicon)
        model.reset_parameters(Generator().manual_seed(seed))
        model.output.start_as_unigram(log_unigram(pairs.target, model.embedding.weight.dtype))
        priors = () if model.decoder.attention is None else model.decoder.attention.priors.values()
        for attention_prior in priors:
            if isinstance(attention_prior, PositionPrior):
                ratio = pairs.target.sizes.sum() / pairs.source.sizes.sum()
                torch.nn.init.constant_(attention_prior.log_ratio, math.log(ratio))
        return model.eval()

    def with_settings(self, settings: Settings) -> Self:
        """Return a copy with other settings that need no other parameters, such as dropout."""
        assert isinstance(settings, TranslatorConfig)
        return self._rebuilt(self.source, self.target, settings, self.arrays())

    def for_text(
        self,
        source: Sequence[str],
        target: Sequence[str],
        *,
        keep_tokenised: bool = False,
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> Self:
        """Return a copy for texts that may be written differently: raw, or with separated punctuation.

        Args:
            source, target: The texts.
            keep_tokenised: A translator of tokenised text remains one, and reads plain text as tokenised text.
            source_language, target_language: Codes that replace the recorded ones, if they are given.
        """
        source_tokenizer, target_tokenizer = (
            replace(
                tokenizer,
                tokenised=looks_tokenised(lines)
                if tokenizer.format == PLAIN_TEXT and not (keep_tokenised and tokenizer.tokenised)
                else tokenizer.tokenised,
                language=language or tokenizer.language,
            )
            for tokenizer, lines, language in (
                (self.source, source, source_language),
                (self.target, target, target_language),
            )
        )
        return self._rebuilt(source_tokenizer, target_tokenizer, self.settings, self.arrays())

    def extend_vocabulary(self, source: Sequence[str], target: Sequence[str], *, min_count: int | None = None) -> Self:
        """Return a translator whose vocabularies also have what new texts have.

        Words and characters become new tokens. Subwords get new pieces for words that the old ones cannot write or
        split badly. Pairs without new tokens keep their probabilities.

        Args:
            source: The new source text.
            target: The new target text.
            min_count: Words with a lower count are not added. Default: 2.
        """
        check_lines(source)
        check_lines(target)
        source_tokenizer, new_source = extend_tokenizer(self.source, source, min_count=min_count)
        target_tokenizer, new_target = extend_tokenizer(self.target, target, min_count=min_count)
        arrays = extend_input(self.arrays(), "source_embedding.weight", new_source)
        arrays = extend_lexicon_source(extend_output(arrays, new_target, tied=self.settings.tied), new_source)
        return self._rebuilt(source_tokenizer, target_tokenizer, self.settings, arrays)

    def _rebuilt(self, source: Tokenizer, target: Tokenizer, settings: TranslatorConfig, arrays: Arrays) -> Self:
        """Return a translator of the same kind with these parameters."""
        classes = None if self.classes is None else WordClasses.from_numbers(arrays[CLASSES])
        sizes = len(source.vocab), len(target.vocab)
        lexicon = None if self.lexicon is None else parts.saved_lexicon(arrays, *sizes)
        unknown = extend_unknown_words(self.unknown, target.vocab)
        model = type(self)(
            source, target, unknown, settings, self.length_prior, classes, lexicon, self.training_metadata
        )
        return model.load_arrays(arrays, "the model")

    def reset_parameters(self, generator: Generator) -> None:
        """Draw initial parameters."""
        for embedding in (self.source_embedding, self.embedding):
            uniform_(embedding.weight, self.settings.embedding_reach, generator)
        self.encoder.reset_parameters(generator)
        self.bridge.reset_parameters(generator)
        self.decoder.reset_parameters(generator)
        if self.readout is not None:
            reset_linear(self.readout, generator)
        if self.projection is not None:
            reset_linear(self.projection, generator)
        self.output.reset_parameters(generator)

    @property
    def has_attention(self) -> bool:
        return self.decoder.attention is not None

    @property
    def has_shortlist(self) -> bool:
        return self.shortlist is not None

    @property
    def tied_weight(self) -> Tensor | None:
        """The matrix of a tied output layer."""
        return self.embedding.weight if self.settings.tied else None

    def shape(self) -> dict[str, object]:
        names = ("encoder", "attention", "cell", "layers", "embedding", "hidden")
        return {name: getattr(self.settings, name) for name in names} | {"source_vocabulary": len(self.source_vocab)}

    # -- all words of sentences at once --------------------------------------------------------------------------------

    def encode(self, source: Corpus, generator: Generator | None = None) -> EncoderOutput:
        """Encode source sentences."""
        return self.encoder(source, self.source_embedding, generator)

    def forward(
        self, pairs: ParallelCorpus, *, generator: Generator | None = None, label_smoothing: float = 0.0
    ) -> TranslatorOutput:
        """Return log P of every token of the targets given those before it and the source.

        Args:
            pairs: Sentence pairs, a selection of a `ParallelCorpus`.
            generator: Generator of dropout and hard attention, in training; by default torch's own.
            label_smoothing: Epsilon of label smoothing.
        """
        if not len(pairs):
            return TranslatorOutput(self.embedding.weight.new_zeros(0))
        generator = generator or default_generator(self.device)
        batch, encoded = Batch.from_sentences(pairs.target), self.encode(pairs.source, generator)
        memory = self.memory(encoded, pairs.source)
        previous = torch.cat([torch.full((1, batch.num_rows), START), batch.ids.T[:-1]])  # (steps, pairs) e_{t-1}
        m = self.embedding_dropout(self.embedding(previous.to(self.device)), generator)  # (steps, pairs, L_m)
        decoded = self.decoder(m, self.initial_state(encoded), memory, generator)
        row, step = torch.nonzero(batch.mask, as_tuple=True)  # (tokens,) each, sentence after sentence
        flat_indices = (step * batch.num_rows + row).to(self.device)  # in the flat (steps * pairs)
        h = gather_tokens(decoded.h, flat_indices)  # (tokens, H)
        context = None if decoded.contexts is None else gather_tokens(decoded.contexts, flat_indices)
        random_state = generator.get_state() if self.training and decoded.choices is not None else None
        x = self._output_features(h, context, generator)
        words = torch.from_numpy(pairs.target.ids_with_boundaries(starts=0)).long().to(x.device)
        candidates = None if memory is None else memory.candidates
        targets = TargetTokens(words, flat_indices, label_smoothing, decoded.attention, candidates)
        log_probs = self._target_log_probs(x, targets)
        if memory is None or decoded.attention is None or not self.training:
            return TranslatorOutput(log_probs, decoded.attention)
        if decoded.choices is not None and random_state is not None:
            baseline = self._soft_attention_baseline(h, memory, targets, random_state)
            attention, choices = (gather_tokens(part, flat_indices) for part in (decoded.attention, decoded.choices))
            log_probs = reinforce(log_probs, attention, choices, baseline)
        loss = parts.attention_loss(decoded.attention, pairs, memory, self.settings)
        return TranslatorOutput(
            log_probs, decoded.attention, None if loss is None else gather_tokens(loss, flat_indices)
        )

    def memory(self, encoded: EncoderOutput, source: Corpus) -> Memory | None:
        """Return what the decoder needs of the source at every step, if it attends to it."""
        if self.decoder.attention is None:
            return None
        memory = self.decoder.attention.memory(encoded.vectors, encoded.mask)
        if self.lexicon is None:
            return memory
        return memory._replace(candidates=self.lexicon.candidates(Batch.from_sentences(source).ids))

    def initial_state(self, encoded: EncoderOutput) -> DecoderState:
        """Return the state of the decoder before the first word."""
        return self.decoder.initial_state(self.bridge(encoded.final_states), encoded.vectors)

    def _output_features(self, h: Tensor, context: Tensor | None, generator: Generator | None = None) -> Tensor:
        """Return the input of the output layer: [h; c], or a tanh layer of it.  # (rows, inputs)"""
        x = self.dropout(h if context is None else torch.cat([h, context], dim=1), generator)
        if self.readout is not None:
            x = self.dropout(tanh(self.readout(x)), generator)
        return x if self.projection is None else self.projection(x)

    def _target_log_probs(self, x: Tensor, targets: TargetTokens) -> Tensor:
        """Return log P of the targets, with the lexicon's bias if there is one.  # x: (tokens, inputs) -> (tokens,)"""
        words, flat_indices, label_smoothing, attention, candidates = targets
        if self.lexicon is None or candidates is None or attention is None:
            return self.output.target_log_probs(x, words, label_smoothing, self.tied_weight)
        assert isinstance(self.output, FullSoftmax), "a lexicon needs a full softmax"
        return self.lexicon.target_log_probs(
            self.output, x, words, candidates, attention, flat_indices, label_smoothing, self.tied_weight
        )

    def _soft_attention_baseline(
        self, h: Tensor, memory: Memory, targets: TargetTokens, random_state: Tensor
    ) -> Tensor:
        """Return log P of the targets if each word were predicted with soft attention and the same dropout."""
        assert targets.attention is not None
        with torch.no_grad():
            contexts = torch.einsum("trs,rsd->trd", targets.attention, memory.vectors)  # (steps, pairs, D)
            generator = torch.Generator(self.device)
            generator.set_state(random_state)
            x = self._output_features(h, gather_tokens(contexts, targets.flat_indices), generator)
            return self._target_log_probs(x, targets)

    def pair_log_probs(self, source: Corpus, target: Corpus) -> NDArray[np.float64]:
        """Return log P of every token of target sentences given their sources.  # (tokens,)"""
        with self.evaluation_mode():
            return self(ParallelCorpus(source, target)).log_probs.double().cpu().numpy()

    # -- the scorer ----------------------------------------------------------------------------------------------------

    def start(self, batch: Batch, carry: Carry = None) -> State:
        return TranslatorScorer(self).start(batch, carry)

    def advance(self, state: State, words: Tensor) -> State:
        return TranslatorScorer(self).advance(state, words)

    def log_probs(self, state: State) -> Tensor:
        return TranslatorScorer(self).log_probs(state)

    def attention(self, state: State) -> Tensor | None:
        """alpha_t: attention while the next word is predicted.  # (rows, longest source)"""
        return TranslatorScorer(self).attention(state)

    def word_subset(self, state: State, words: Tensor) -> WordSubset:
        """Return the parameters of some words for each sentence of the state.  # words: (sentences, n)"""
        return TranslatorScorer(self).word_subset(state, words)

    def subset_scores(self, state: State, subset: WordSubset) -> Tensor:
        """Return log P of the words of each row's sentence, up to a constant per row.  # (rows, n)"""
        return TranslatorScorer(self).subset_scores(state, subset)

    def prepare_for_search(self) -> TranslatorScorer:
        """Return an equivalent scorer for one search, which is faster with few rows.

        It is prepared again when parameters have changed; in training mode nothing is prepared. A change of only some
        values of a row by way of a parameter's `.data` may not be noticed: change parameters under `torch.no_grad()`.
        """
        return TranslatorScorer(self) if self.training else self._prepared.get(self, pack_float32)

    def search_scorer(self, *, use_shortlist: bool = True) -> Scorer:
        from dragoman.combine.shortlist import ShortlistScorer  # which is for translators

        scorer = self.prepare_for_search()
        if self.shortlist is None or not use_shortlist:
            return scorer
        return ShortlistScorer(self, self.shortlist, scorer)

    def train(self, mode: bool = True) -> Self:
        """Set training mode, as in torch. It removes the shortlist, which was chosen for the parameters as they were."""
        if mode:
            self._prepared, self.shortlist = ScorerCache(), None
        return super().train(mode)

    # -- saving and loading --------------------------------------------------------------------------------------------

    def config(self) -> Config:
        languages = {"source": self.source.language, "target": self.target.language}
        known: Config = {"languages": languages} if any(languages.values()) else {}
        common = with_current_decision(super().config(), self.shortlist)
        return {**common, **known, "source": self.source.config(), "target": self.target.config()}

    def sizes(self) -> dict[str, int]:
        from dragoman.evaluation.task_scores import token_kind  # which imports much

        sizes = {f"source {token_kind(self.source)}s": self.source_vocab.num_known, **super().sizes()}
        return {f"target {token_kind(self.target)}s" if name == "words" else name: sizes[name] for name in sizes}

    def arrays(self) -> Arrays:
        prior = {LENGTH_PRIOR + name: array for name, array in self.length_prior.arrays().items()}
        return {**super().arrays(), **prior}

    def files(self) -> Mapping[str, bytes]:
        tokenizers = {SOURCE_PREFIX: self.source, TARGET_PREFIX: self.target}
        files = {
            prefix + name: data for prefix, tokenizer in tokenizers.items() for name, data in tokenizer.files().items()
        }
        files[SOURCE_VOCAB_FILE] = self.source_vocab.to_text().encode()
        if self.lexicon is not None:
            files[LEXICON_FILE] = parts.lexicon_text(self.lexicon.table, self.source_vocab, self.vocab).encode()
        return files

    def array_files(self) -> Mapping[str, Arrays]:
        return shortlist_arrays(self.shortlist)

    @classmethod
    def from_saved(cls, saved: SavedModel) -> Self:
        settings = saved_settings(saved, TranslatorConfig)
        source_vocab = Vocab.read(saved.path / SOURCE_VOCAB_FILE)
        languages = saved_languages(saved.config)
        source_files, target_files = (_files(saved.path, prefix) for prefix in (SOURCE_PREFIX, TARGET_PREFIX))
        source = Tokenizer.from_saved(saved.config["source"], source_vocab, source_files, languages[0])
        target = Tokenizer.from_saved(saved.config["target"], saved.vocab, target_files, languages[1])
        parts.check_source_format(settings, source)
        if problem := inapplicable_setting(settings, ()):
            raise DataError(f"{saved.path / CONFIG_FILE}: {' '.join(problem)}; train or copy the model again")
        prior = LengthPrior.from_arrays(
            {
                name.removeprefix(LENGTH_PRIOR): np.array(array)  # a part would keep the whole file in memory
                for name, array in saved.arrays.items()
                if name.startswith(LENGTH_PRIOR)
            }
        )
        classes = saved_classes(saved, settings)
        lexicon = parts.saved_lexicon(saved.arrays, len(source_vocab), len(saved.vocab)) if settings.lexicon else None
        metadata = {name: value for name, value in saved.config.items() if name not in ("model", "source", "target")}
        model = build_saved(
            lambda: cls(source, target, saved.unknown, settings, prior, classes, lexicon, metadata), saved
        )
        if model.decoder.attention is not None:
            for attention_prior in model.decoder.attention.priors.values():
                attention_prior.check_strength()
        model.shortlist = read_shortlist(saved.path, saved.config, source_vocab, saved.vocab)
        return model


def _files(directory: Path, prefix: str) -> dict[str, bytes]:
    """Return the files of one tokenizer, by their names without the prefix."""
    paths = {name: directory / (prefix + name) for name in (SENTENCEPIECE_FILE, LETTERS_FILE)}
    return {name: path.read_bytes() for name, path in paths.items() if path.is_file()}
