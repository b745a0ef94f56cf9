"""One small model of every sort, made from any text. A new sort of model joins all laws by a line in `MODELS`, a new
sort of translator by one in `TRANSLATORS`."""

from __future__ import annotations

import random
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman import Corpus, FeedForwardModel, LogLinearModel, Mixture, NgramModel, RecurrentModel, fit
from dragoman.align.aligner import Aligner
from dragoman.align.shortlist import Shortlist
from dragoman.combine.buckets import make_bucketing
from dragoman.combine.ensemble import Ensemble
from dragoman.combine.shortlist import ShortlistScorer
from dragoman.data.batches import Batch
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.tokenizer import PLAIN_TEXT, TREE, Tokenizer
from dragoman.data.trees import Treebank
from dragoman.data.unknown_words import ClosedVocabulary
from dragoman.data.vocabulary import Vocab
from dragoman.models.cache import CacheModel
from dragoman.models.configs import TREE_ENCODERS
from dragoman.models.language_model import LanguageModel
from dragoman.models.quantized_language_model import QuantizedFeedForwardModel, QuantizedRecurrentModel
from dragoman.models.quantized_translator import QuantizedTranslator
from dragoman.models.translator import Translator
from dragoman.ngram.arpa import read_arpa, write_arpa
from dragoman.ngram.class_model import ClassNgramModel
from dragoman.ngram.smoothing import SMOOTHINGS
from dragoman.ngram.spelling import SpellingModel
from dragoman.ngram.trie import Trie

ORDERS = (2, 5)


def _sentence(source: random.Random) -> str:
    """Who does what: `the old dog sees a cat .`, now and then with an unknown word in it."""
    noun = [source.choice(["dog", "cat", "bird", "<unk>"]) for _ in range(2)]
    old = "old " if source.random() < 0.3 else ""
    verb = source.choice(["sees", "hears"])
    end = source.choice([".", ".", "!"])
    return f"the {old}{noun[0]} {verb} {source.choice(['the', 'a'])} {noun[1]} {end}" if noun[1] != noun[0] else "yes !"


TRAINING = [_sentence(random.Random(number)) for number in range(47)] + [""]
HELD_OUT = [
    "the dog sees a cat .",
    "a cat hears the old dog !",
    "",
    "the unicorn sees a <unk> unicorn .",
    "old old the ! yes",
    "the dog sees a cat .",
    "yes",
]
CLASSES = {"dog": "ANIMAL", "cat": "ANIMAL", "bird": "ANIMAL", "sees": "VERB", "hears": "VERB", "!": "END", ".": "END"}
LANGUAGE = Corpus.from_sentences(TRAINING).vocab


@dataclass(frozen=True, eq=False)
class Text:
    """The training data of a model of the zoo."""

    corpus: Corpus
    classes: Mapping[str, str]  # words that go together


TOY = Text(Corpus.from_sentences(TRAINING, LANGUAGE), CLASSES)


def _ngram(text: Text, **settings: Any) -> NgramModel:
    with warnings.catch_warnings():  # a text this small has too few counts of counts, and the model warns
        warnings.simplefilter("ignore")
        return NgramModel.train(text.corpus, **settings)


def _classes(text: Text, **settings: Any) -> ClassNgramModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ClassNgramModel.train(text.corpus, text.classes, **settings)


def _imported(text: Text, name: str, **settings: Any) -> NgramModel:
    """A model exported to an ARPA file and imported again."""
    with tempfile.TemporaryDirectory() as directory:
        write_arpa(_ngram(text, **settings), Path(directory) / name)
        return read_arpa(Path(directory) / name)


def _cache(text: Text, **settings: Any) -> CacheModel:
    return CacheModel.train(text.corpus, **settings)


def _feedforward(text: Text, **settings: Any) -> FeedForwardModel:
    """In 64 bits, so that laws hold to the last digits."""
    model = FeedForwardModel.create(text.corpus, embedding=6, dtype="float64", **settings)
    fit(model, text.corpus, max_updates=30, learning_rate=0.02, batch_size=100, threads=1)
    return model


def _recurrent(text: Text, **settings: Any) -> RecurrentModel:
    model = RecurrentModel.create(text.corpus, dtype="float64", **{"embedding": 6, "hidden": 8, **settings})
    fit(model, text.corpus, max_updates=20, learning_rate=0.02, batch_size=100, steps=10, pool=2, threads=1)
    return model


def _loglinear(text: Text, features: str, **settings: Any) -> LogLinearModel:
    model = LogLinearModel.create(
        text.corpus, features=features, classes=text.classes, dtype="float64", suffix_types=2, **settings
    )
    fit(model, text.corpus, optimizer="adagrad", max_updates=15, learning_rate=0.5, batch_size=200, l2=0.1, threads=1)
    return model


def _split(text: Text, units: str) -> Text:
    """The same text in other tokens."""
    return Text(Corpus.from_sentences(text.corpus.lines(), units=units), {})


def _bucketed(buckets: str, models: list[LanguageModel]) -> Mixture:
    """Weights drawn at random: they differ from bucket to bucket, also where a text has little of one."""
    number = len(make_bucketing(buckets, models).labels)
    rows = np.random.default_rng(1).dirichlet(np.ones(len(models)), number)
    return Mixture(models, buckets=buckets, bucket_weights=rows)


def _extended(text: Text, create: Callable[[Text], Any]) -> Any:
    """A model trained without the last words of the vocabulary, which are added afterwards."""
    lines, tokens = text.corpus.sentences_as_text(), text.corpus.vocab.tokens
    smaller = Corpus.from_sentences(lines, Vocab(tokens[:-3], text.corpus.vocab.counts[:-3]))
    extended = create(Text(smaller, text.classes)).extend_vocabulary([" ".join(tokens[-3:])], min_count=1)
    assert extended.vocab.tokens == tokens
    return extended


MODELS: dict[str, Callable[[Text], LanguageModel]] = {
    **{
        f"{smoothing}, order {order}": partial(_ngram, smoothing=smoothing, order=order)
        for smoothing in SMOOTHINGS
        for order in ORDERS
    },
    "witten-bell, order 1": partial(_ngram, smoothing="witten-bell", order=1),
    "with a closed vocabulary": lambda text: _ngram(
        text, order=2, unknown=ClosedVocabulary(text.corpus.vocab.num_known)
    ),
    "unigrams not interpolated": lambda text: _ngram(text, order=3, interpolate_unigrams=False),
    "with a gap": lambda text: _ngram(text, order=3, gap=1),
    "with a wide gap": lambda text: _ngram(text, order=2, gap=3, smoothing="witten-bell"),
    "pruned": lambda text: _ngram(text, order=4, prune=(0, 1, 2)),
    "pruned to nothing": lambda text: _ngram(text, order=3, prune=(0, 1000)),
    "pruned back-off": lambda text: _ngram(text, order=3, prune=(0, 1, 1), smoothing="katz"),
    "pruned stupid back-off": lambda text: _ngram(text, order=3, prune=(0, 1, 1), smoothing="stupid-backoff"),
    "pruned by entropy": lambda text: _ngram(text, order=4, entropy_prune=0.01),
    "pruned by entropy and by counts": lambda text: _ngram(text, order=3, prune=(0, 0, 1), entropy_prune=0.001),
    "quantised": lambda text: _ngram(text, order=3, quantise=True),
    "quantised back-off": lambda text: _ngram(text, order=3, smoothing="katz", quantise=True),
    "pruned and quantised": lambda text: _ngram(text, order=4, entropy_prune=0.01, quantise=True),
    "unknown words spelled out": lambda text: _ngram(text, order=2, unknown=SpellingModel.train(text.corpus, order=2)),
    "classes": lambda text: _classes(text, order=3),
    "classes with a gap": lambda text: _classes(text, order=2, gap=1, smoothing="witten-bell"),
    "from an ARPA file": lambda text: _imported(text, "model.arpa", order=3),
    "back-off from an ARPA file": lambda text: _imported(text, "model.arpa.gz", order=3, smoothing="katz"),
    "unigrams from an ARPA file": lambda text: _imported(text, "model.arpa", order=1),
    "cache of single words": lambda text: _cache(text, order=1, decay=0.9, prior=1.0),
    "cache": lambda text: _cache(text, order=3, decay=0.8, prior=0.5),
    "feed-forward": lambda text: _feedforward(text, order=3, hidden=(8,)),
    "feed-forward, deep, tied, direct": lambda text: _feedforward(
        text, order=4, hidden=(8, 7), activation="relu", tied=True, direct=True, dropout=0.2, embedding_dropout=0.1
    ),
    "feed-forward, softmax by classes": lambda text: _feedforward(
        text, order=3, hidden=(8,), softmax="frequency", softmax_classes=4, direct=True
    ),
    "feed-forward, softmax by Brown classes": lambda text: _feedforward(
        text, order=3, hidden=(8,), softmax="brown", softmax_classes=3, tied=True
    ),
    "feed-forward, extended vocabulary": lambda text: _extended(
        text, partial(_feedforward, order=3, hidden=(8,), direct=True, softmax="frequency", softmax_classes=3)
    ),
    "feed-forward without a hidden layer": lambda text: _feedforward(text, order=2, hidden=()),
    "log-linear, single words": lambda text: _loglinear(text, "words-2", weights="full", min_seen=5),
    "log-linear, conjunctions": lambda text: _loglinear(text, "4-gram", weights="seen", dropout=0.2),
    "log-linear, hashed": lambda text: _loglinear(text, "word1,word1+word3", weights="hashed", hash_bits=13),
    "log-linear, every sort of feature": lambda text: _loglinear(text, "word1+word2,class1+word3,suffix1,bag"),
    "recurrent, Elman": lambda text: _recurrent(text, cell="rnn"),
    "recurrent, LSTM without forget gate": lambda text: _recurrent(text, cell="lstm-without-forget-gate"),
    "recurrent, LSTM": lambda text: _recurrent(text, cell="lstm", softmax="brown", softmax_classes=3, tied=True),
    "recurrent, LSTM, extended vocabulary": lambda text: _extended(text, partial(_recurrent, tied=True)),
    "recurrent, LSTM, carries": lambda text: _recurrent(text, cell="lstm", carries=True, layers=2),
    "recurrent, GRU, deep": lambda text: _recurrent(
        text, cell="gru", layers=3, residual=True, hidden=6, first_state="learned", dropout=0.2, variational=True
    ),
    "recurrent, GRU, carries": lambda text: _recurrent(
        text, cell="gru", carries=True, first_state="learned", weight_dropout=0.2
    ),
    "recurrent, two LSTMs, tied, quantized": lambda text: QuantizedRecurrentModel.quantize(
        _recurrent(text, cell="lstm", layers=2, tied=True)
    ),
    "recurrent, GRU, carries, softmax by classes, quantized": lambda text: QuantizedRecurrentModel.quantize(
        _recurrent(text, cell="gru", carries=True, softmax="brown", softmax_classes=3, first_state="learned")
    ),
    "feed-forward, direct, quantized": lambda text: QuantizedFeedForwardModel.quantize(
        _feedforward(text, order=3, hidden=(8,), direct=True)
    ),
    "mixture with a quantized recurrent": lambda text: Mixture(
        [_ngram(text, order=3), QuantizedRecurrentModel.quantize(_recurrent(text, cell="rnn"))], [0.5, 0.5]
    ),
    "subwords": lambda text: _ngram(_split(text, "subword:36"), order=3),
    "subwords, unigram model": lambda text: _ngram(_split(text, "unigram:34"), order=2),
    "characters, LSTM": lambda text: _recurrent(_split(text, "char"), cell="lstm"),
    "mixture of subwords": lambda text: (
        lambda split: Mixture([_ngram(split, order=2), _cache(split, order=2)], [0.8, 0.2])
    )(_split(text, "subword:36")),
    "mixture": lambda text: Mixture([_ngram(text, order=3), _cache(text, order=2)], [0.9, 0.1]),
    "mixture with a skip n-gram": lambda text: Mixture(
        [_ngram(text, order=3), _ngram(text, order=2, gap=1)], [0.7, 0.3]
    ),
    "mixture with a member that has no say": lambda text: Mixture(
        [_ngram(text, order=2), _cache(text, order=1)], [1.0, 0.0]
    ),
    "mixture with classes": lambda text: Mixture([_ngram(text, order=3), _classes(text, order=3)], [0.5, 0.5]),
    "mixture of mixtures": lambda text: Mixture(
        [Mixture.uniform([_cache(text, order=1), _cache(text, order=2)]), _ngram(text, order=2)], [0.2, 0.8]
    ),
    "mixture by order": lambda text: _bucketed("order", [_ngram(text, order=4), _cache(text, order=2)]),
    "mixture by order, with a gap": lambda text: _bucketed(
        "order", [_cache(text, order=1), _ngram(text, order=3, gap=1), _ngram(text, order=2)]
    ),
    "mixture by entropy": lambda text: _bucketed(
        "entropy", [_classes(text, order=2), _ngram(text, order=3, smoothing="katz"), _ngram(text, order=1)]
    ),
    "mixture by position": lambda text: _bucketed(
        "position", [_ngram(text, order=1), _feedforward(text, order=3, hidden=(8,))]
    ),
    "mixture by frequency": lambda text: _bucketed("frequency", [_ngram(text, order=2), _cache(text, order=1)]),
    "mixture by recency": lambda text: _bucketed(
        "recent", [_ngram(text, order=2), _cache(text, order=3, decay=0.8, prior=0.5)]
    ),
    "mixture by everything": lambda text: _bucketed(
        "order+position+frequency+recent", [_ngram(text, order=3), _cache(text, order=3)]
    ),
    "mixture of bucketed mixtures": lambda text: _bucketed(
        "position",
        [_bucketed("order+recent", [_ngram(text, order=3), _cache(text, order=2)]), _ngram(text, order=1)],
    ),
    "mixture with a feed-forward": lambda text: Mixture(
        [_ngram(text, order=3), _feedforward(text, order=3, hidden=(8,))], [0.5, 0.5]
    ),
    "mixture with a recurrent that carries": lambda text: Mixture(
        [_ngram(text, order=3), _cache(text, order=1), _recurrent(text, carries=True)], [0.5, 0.1, 0.4]
    ),
    "ensemble": lambda text: Mixture.uniform(
        [_ngram(text, order=2, smoothing="maximum-likelihood"), _ngram(text, order=1)]
    ),
}
MODELS_OF_PIECES = {name for name in MODELS if "subwords" in name or name.startswith("characters")}


# -- translators -------------------------------------------------------------------------------------------------------


def foreign(sentence: str) -> str:
    """A sentence in another language: all capitals, the last word first."""
    return " ".join(reversed(sentence.upper().split()))


def bracketed(sentence: str) -> str:
    """A tree over a sentence: `(S (X (X a b) c) (X d e))`, the last two words together and the others from the left."""
    *before, last = sentence.split() or [""]
    if not before:
        return f"(S {last})" if last else ""
    node, *others = before
    if others:
        last = f"(X {others.pop()} {last})"
    for word in others:
        node = f"(X {node} {word})"
    return f"(S {node} {last})"


def _pairs(text: Text, *, trees: bool) -> ParallelCorpus:
    lines = [foreign(line) for line in text.corpus.sentences_as_text()]
    if trees:
        return ParallelCorpus(Treebank.from_lines([bracketed(line) for line in lines], min_count=2), text.corpus)
    return ParallelCorpus(Corpus.from_sentences(lines, min_count=2), text.corpus)


def _translator(text: Text, seed: int = 1, **settings: Any) -> Translator:
    """In 64 bits, and trained until scores depend on the source."""
    whole = {"embedding": 6, "hidden": 8, "filters": 7, "dtype": "float64", **settings}
    trees = settings["encoder"] in TREE_ENCODERS
    pairs = _pairs(text, trees=trees)
    source = Tokenizer(pairs.source.vocab, format=TREE if trees else PLAIN_TEXT)
    model = Translator.create(pairs, source, seed=seed, embedding_reach=1.0, **whole)
    fit(model, pairs, max_updates=15, learning_rate=0.03, batch_size=100, pool=2, threads=1)
    return model


def _extended_translator(text: Text, **settings: Any) -> Translator:
    """A translator trained without the last target words, and without rare source words."""
    lines, tokens = text.corpus.sentences_as_text(), text.corpus.vocab.tokens
    smaller = Corpus.from_sentences(lines, Vocab(tokens[:-3], text.corpus.vocab.counts[:-3]))
    model = _translator(Text(smaller, text.classes), **settings)
    return model.extend_vocabulary([foreign(line) for line in lines], [" ".join(tokens[-3:])], min_count=1)


def _shortlisted(text: Text, **settings: Any) -> ShortlistScorer:
    """Three words for each, and the four most frequent."""
    model, pairs = _translator(text, **settings), _pairs(text, trees=False)
    lexicon = Aligner.train(pairs, "ibm1").forward.lexicon
    return ShortlistScorer(model, Shortlist.from_lexicon(lexicon, pairs.source.vocab, pairs.target.vocab, 4, 3))


SOURCES = ["the dog sees a cat .", "", "yes", "the old unicorn hears the bird !", "a cat", "the dog sees a cat ."]
TARGETS = ["a cat hears the old dog !", "yes", "", "the <unk> sees a bird", "old", "the dog sees the unicorn ."]
SAME = {"rtol": 1e-11, "atol": 1e-12}

TRANSLATORS: dict[str, Callable[[Text], Any]] = {
    "forward, Elman, copied": lambda text: _translator(
        text, encoder="forward", attention="none", cell="rnn", bridge="copy"
    ),
    "reverse, two LSTMs, copied": lambda text: _translator(
        text, encoder="reverse", attention="none", layers=2, encoder_layers=2, bridge="copy"
    ),
    "bidirectional, perceptron": lambda text: _translator(
        text, encoder="bidirectional", attention="mlp", attention_hidden=5
    ),
    "bidirectional, perceptron, lexicon": lambda text: _translator(
        text, encoder="bidirectional", attention="mlp", lexicon=True, lexicon_floor=0.05
    ),
    "bidirectional, perceptron, lexicon, extended vocabulary": lambda text: _extended_translator(
        text, encoder="bidirectional", attention="mlp", lexicon=True, lexicon_floor=0.05, tied=True
    ),
    "bidirectional, perceptron, all priors": lambda text: _translator(
        text,
        encoder="bidirectional",
        attention="mlp",
        position=1.5,
        markov=0.5,
        fertility=0.8,
        coverage=3,
        local=4.0,
    ),
    "bidirectional, perceptron, readout, quantized": lambda text: QuantizedTranslator.quantize(
        _translator(text, encoder="bidirectional", attention="mlp", readout=5)
    ),
    "reverse, dot, two GRUs, lexicon, quantized": lambda text: QuantizedTranslator.quantize(
        _translator(text, encoder="reverse", attention="dot", cell="gru", layers=2, lexicon=True)
    ),
    "bidirectional, perceptron, lexicon, by a shortlist": lambda text: _shortlisted(
        text, encoder="bidirectional", attention="mlp", lexicon=True, lexicon_floor=0.05
    ),
    "reverse, bilinear, hard": lambda text: _translator(text, encoder="reverse", attention="bilinear", hard=True),
    "tree-LSTM, dot, fertility": lambda text: _translator(text, encoder="tree-lstm", attention="dot", fertility=2.0),
    "bidirectional, dot, two GRUs": lambda text: _translator(
        text, encoder="bidirectional", attention="dot", cell="gru", layers=2
    ),
    "two bidirectional layers, bilinear, no forget gate": lambda text: _translator(
        text,
        encoder="bidirectional",
        attention="bilinear",
        cell="lstm-without-forget-gate",
        encoder_layers=2,
        layers=2,
        encoder_hidden=3,
    ),
    "reverse, perceptron, GRU, readout, tied": lambda text: _translator(
        text, encoder="reverse", attention="mlp", cell="gru", readout=5, tied=True
    ),
    "forward, dot, softmax by classes": lambda text: _translator(
        text, encoder="forward", attention="dot", cell="rnn", softmax="brown", softmax_classes=3
    ),
    "convolutional, average": lambda text: _translator(
        text, encoder="convolutional", attention="none", pooling="average", cell="gru"
    ),
    "convolutional, max, bilinear": lambda text: _translator(
        text, encoder="convolutional", attention="bilinear", pooling="max", filter_width=1, layers=2
    ),
    "convolutional, k-max, perceptron": lambda text: _translator(
        text, encoder="convolutional", attention="mlp", pooling="k-max", k_max=2, filter_width=4
    ),
    "recursive, dot": lambda text: _translator(text, encoder="recursive", attention="dot"),
    "tree-LSTM, perceptron": lambda text: _translator(text, encoder="tree-lstm", attention="mlp", layers=2),
    "tree-LSTM, copied": lambda text: _translator(text, encoder="tree-lstm", attention="none", bridge="copy"),
    "ensemble of translators": lambda text: Ensemble(
        [
            _translator(text, encoder="bidirectional", attention="mlp", seed=2),
            _translator(text, encoder="reverse", attention="none", seed=3),
            _translator(text, encoder="forward", attention="dot", cell="gru", seed=4),
        ]
    ),
    "translator with a language model": lambda text: Ensemble(
        [_translator(text, encoder="forward", attention="bilinear", seed=5), _ngram(text, order=2)],
        [1.0, 0.3],
        "log-linear",
    ),
}

COMPOSED = ("ensemble", "language model", "shortlist", "quantized")  # in the names of models that contain other models
SINGLE = [name for name in TRANSLATORS if not any(word in name for word in COMPOSED)]


def read_by(translator: Any, sentence: str) -> str:
    """A sentence in the translator's source language, as it reads it."""
    return bracketed(foreign(sentence)) if translator.source.format == TREE else foreign(sentence)


def pairs_of(model: Any) -> ParallelCorpus:
    """Pairs that a translator of the zoo has not seen, as its ids."""
    return ParallelCorpus(
        model.source.encode([read_by(model, line) for line in SOURCES]), Corpus.from_sentences(TARGETS, LANGUAGE)
    )


def batch_of(pairs: ParallelCorpus) -> Batch:
    return Batch.from_sentences(pairs.target, pairs.source)


def _conditioned(name: str, text: Text) -> LanguageModel:
    """A translator conditioned on a source is a language model."""
    model = translator(name) if text is TOY else TRANSLATORS[name](text)
    conditioned: LanguageModel = model.condition_on(read_by(model, "the unicorn sees a dog ."))
    return conditioned


GIVEN: dict[str, Callable[[Text], LanguageModel]] = {
    f"given a source: {name}": partial(_conditioned, name) for name in TRANSLATORS
}  # language models that cannot be saved


@cache
def model(name: str) -> LanguageModel:
    """A model of the zoo, or an n-gram model such as `katz, order 3`, created once: no test changes it."""
    models = {**MODELS, **GIVEN}
    if name in models:
        return models[name](TOY)
    smoothing, order = name.split(", order ")
    return _ngram(TOY, smoothing=smoothing, order=int(order))


@cache
def translator(name: str) -> Any:
    """A translator of the zoo, created once: no test changes it."""
    return TRANSLATORS[name](TOY)


def ngram_words(trie: Trie, order: int) -> NDArray[np.int32]:
    """Return all n-grams of one order as rows of words.  # (n-grams, order)"""
    node = np.arange(trie.levels[order], trie.levels[order + 1])
    columns = []
    for k in range(order, 0, -1):
        columns.append(trie.word[node])
        node = trie.parents(k)[node - trie.levels[k]]
    return np.stack(columns[::-1], axis=1)


SEARCHED_MODELS = ["modified-kneser-ney, order 3", "maximum-likelihood, order 2", "with a gap", "cache", "mixture"]
