"""The check of a model directory: all digests, the structure, and that distributions are finite and sum to one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dragoman.align.aligner import Aligner
from dragoman.core.errors import DataError
from dragoman.core.scorer import Scorer
from dragoman.data.batches import Batch
from dragoman.data.corpus import Corpus
from dragoman.data.tokenizer import TREE, Tokenizer
from dragoman.data.trees import Treebank
from dragoman.data.vocabulary import SPECIALS, START, UNK
from dragoman.evaluation.likelihood import pair_log_probs, token_log_probs
from dragoman.io import storage
from dragoman.io.digests import DIGEST, FILES
from dragoman.models.base import Model
from dragoman.models.loading import BROKEN_MODEL_ERRORS, load, member_names
from dragoman.models.translation import BaseTranslator

SENTENCES, WORDS = 16, 12  # that are sampled
MAX_DEVIATION = 1e-2  # of a sum from one, as in n-gram tables
UNSEEN_WORD = "\u2603qx"  # a word that hardly any vocabulary has


@dataclass
class Verification:
    """The result of checking a model directory."""

    path: Path
    kind: str = ""
    problems: list[str] = field(default_factory=list)  # one line each
    files: int = 0  # whose digests were checked
    contexts: int = 0  # whose distributions were checked

    def __str__(self) -> str:
        """One line per problem, or one line without problems."""
        if self.problems:
            return "\n".join(self.problems)
        digests = f"{self.files} digests" if self.files else "no digests (written by an earlier version)"
        contexts = f", {self.contexts} sampled contexts" if self.contexts else ""
        return f"{self.path}: intact ({self.kind}; {digests}{contexts})"


def verify(path: str | Path) -> Verification:
    """Check everything in a model directory: digests of files of any size, structure, and sampled distributions.

    >>> import tempfile
    >>> from dragoman import Corpus, NgramModel
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     NgramModel.train(Corpus.from_sentences(["a b", "b a"]), order=2).save(f"{directory}/model")
    ...     verify(f"{directory}/model").problems
    []
    """
    result = Verification(Path(path))
    _check_files(result, result.path)
    try:
        if result.kind == storage.TWO_WAY_KIND:
            for name in (storage.FORWARD, storage.BACKWARD):
                result.contexts += check_model(load(result.path / name))
        elif result.kind == storage.ALIGNER_KIND:
            Aligner.load(path)
        else:
            result.contexts = check_model(load(path))
    except (DataError, *BROKEN_MODEL_ERRORS) as error:
        message = " ".join(str(error).split())
        problem = message if str(result.path) in message else f"{result.path}: {message}"
        if problem not in result.problems:
            result.problems.append(problem)
    return result


def _check_files(result: Verification, directory: Path) -> None:
    """Check the digests of a directory and of the models inside it."""
    if not (directory / storage.CONFIG_FILE).exists():
        return  # which is reported when the model is loaded
    try:
        config = storage.read_config(directory)
    except DataError as error:
        result.problems.append(str(error))
        return
    kind = str(config.get("kind"))
    result.kind = result.kind or kind
    listed = config.get(FILES)
    for name, digest in listed.items() if isinstance(listed, dict) else ():
        result.files += 1
        with _collected(result):
            storage.check_digests(directory, {FILES: {name: digest}}, check_all=True)
    for name in (storage.ARRAYS_FILE, storage.SHORTLIST_FILE, storage.CHECKPOINT_FILE):
        if (directory / name).exists():
            with _collected(result):
                metadata = storage.map_arrays_with_metadata(directory / name, check_digest=True)[1]
                result.files += DIGEST in metadata
    for name in _inner_directories(kind, config):
        if (directory / name).is_dir() and not (directory / name).is_symlink():  # otherwise loading refuses it
            _check_files(result, directory / name)


@contextmanager
def _collected(result: Verification) -> Iterator[None]:
    """Turn a `DataError` into a problem of the result."""
    try:
        yield
    except DataError as error:
        result.problems.append(str(error))


def _inner_directories(kind: str, config: dict[str, object]) -> list[str]:
    if kind == storage.TWO_WAY_KIND:
        return [storage.FORWARD, storage.BACKWARD]
    try:
        return member_names(kind, config)
    except BROKEN_MODEL_ERRORS:
        return []  # what is wrong is reported when the model is loaded


# -- distributions -----------------------------------------------------------------------------------------------------


def check_model(model: Model, seed: int = 1) -> int:
    """Raise a `DataError` if a distribution of a model is not finite or does not sum to one.

    All contexts of n-gram tables are checked, and sampled contexts of any model. Return the number of sampled ones.
    """
    from dragoman.ngram.model import IMPORTED, NgramModel
    from dragoman.ngram.table import check_sums

    for part in _with_members(model):
        if isinstance(part, NgramModel) and part.settings.smoothing != IMPORTED:
            check_sums(part.table)
    generator = np.random.default_rng(seed)
    source = random_source(model.source, generator) if isinstance(model, BaseTranslator) else None
    text = check_distributions(model, source, generator)
    if isinstance(model, BaseTranslator) and model.has_shortlist:
        check_distributions(model.search_scorer(), source, generator)
    log_probs = token_log_probs(model, text) if source is None else pair_log_probs(model, source, text)
    spelled = np.array(model.unknown.log_probs([UNSEEN_WORD]))
    for values, name in ((log_probs, "a text"), (spelled, "an unknown word")):
        if np.isnan(values).any() or (values > MAX_DEVIATION).any():
            raise DataError(f"the probability of {name} is not a number between 0 and 1; train the model again")
    return SENTENCES * WORDS


def check_distributions(scorer: Scorer, source: Corpus | None, generator: np.random.Generator) -> Corpus:
    """Sample sentences, raise a `DataError` if a distribution is not one, and return the sentences.

    Half of the words are drawn from the distributions, half from the vocabulary.
    """
    state, sampled = scorer.start(Batch.empty(SENTENCES, source)), []
    for _ in range(WORDS):
        log_probs = scorer.log_probs(state).double()  # (sentences, |V|)
        _check_distribution(log_probs)
        probs = log_probs[:, UNK:].exp().numpy()  # without `<s>` and `</s>`
        likely = [generator.choice(len(row), p=row / row.sum()) if row.sum() > 0 else 0 for row in probs]
        anywhere = generator.integers(0, probs.shape[1], SENTENCES)
        words = UNK + np.where(generator.random(SENTENCES) < 0.5, likely, anywhere)  # (sentences,)
        sampled.append(words)
        state = scorer.advance(state, torch.from_numpy(words))
    tokens = scorer.vocab.tokens
    return Corpus.from_sentences([[tokens[word] for word in row] for row in np.stack(sampled, 1)], scorer.vocab)


def _check_distribution(log_probs: Tensor) -> None:
    """# log_probs: (rows, |V|)"""
    if bool(log_probs.isnan().any()):
        raise DataError("a distribution has values that are not numbers; train the model again")
    totals = log_probs.exp().sum(dim=1)
    wrong = (totals - 1).abs().max()
    if not float(wrong) < MAX_DEVIATION or bool((log_probs[:, START] > -20).any()):
        worst = float(totals[(totals - 1).abs().argmax()])
        raise DataError(f"a distribution sums to {worst:.4g}, not to one; train the model again")


def random_source(tokenizer: Tokenizer, generator: np.random.Generator) -> Corpus:
    """Return random sentences for a translator, also an empty one."""
    tokens = [token for token in tokenizer.vocab.tokens[len(SPECIALS) :] if not set("()") & set(token)] or ["x"]
    lengths = generator.integers(1, WORDS, SENTENCES)
    sentences = [generator.choice(np.array(tokens, object), length).tolist() for length in lengths]
    sentences[0] = []
    if tokenizer.format == TREE:
        return Treebank.from_lines([f"(S {' '.join(words)})" if words else "" for words in sentences], tokenizer.vocab)
    return Corpus.from_sentences(sentences, tokenizer.vocab)


def _with_members(model: Model) -> Iterator[Model]:
    yield model
    for member in (*model.members().values(), *model.unknown.members().values()):
        if isinstance(member, Model):
            yield from _with_members(member)
