"""Training of n-gram models with counts on disk, for texts and models larger than memory.

The model directory is the one that training in memory writes, to the byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import NamedTuple, TypedDict, Unpack

from dragoman.core.errors import DataError
from dragoman.data.text_chunks import StoredCorpus, build_vocab, choose_segmenter, scan_text, scan_with_vocab
from dragoman.data.unknown_words import UniformUnknownWords, UnknownWordModel
from dragoman.data.vocabulary import SPECIALS, UNK, Vocab
from dragoman.io import storage
from dragoman.io.files import directory_bytes, real_path, scratch_directory
from dragoman.ngram.disk.counting import count_buckets, distribute_corpus
from dragoman.ngram.disk.levels import Pruning
from dragoman.ngram.disk.plan import (
    DiskSpace,
    MemoryPlan,
    check_types,
    check_vocabulary,
    estimate_tokens,
    vocabulary_bytes,
)
from dragoman.ngram.disk.records import RecordFormat
from dragoman.ngram.disk.smoothing import DiskSmoother, StoredStatistics
from dragoman.ngram.disk.table_file import TableFile
from dragoman.ngram.model import NgramConfig, NgramModel, zerogram
from dragoman.ngram.smoothing import METHODS
from dragoman.ngram.table import NgramTable
from dragoman.ngram.trie import Trie

REPORT_SECONDS = 1.0  # after which the temporary files are measured again


class StageReport(NamedTuple):
    """How far a stage of training is."""

    stage: str
    done: int
    total: int  # 0 if it is not known
    unit: str
    temporary: int = 0  # bytes of temporary files


class VocabularyKwargs(TypedDict, total=False):
    """The vocabulary of a text (see `DiskTraining.read`)."""

    vocab: Vocab | None
    units: str
    min_count: int
    max_size: int | None


Progress = Callable[[StageReport], None]


@dataclass(frozen=True)
class DiskTraining:
    """Where and with how much memory a model is trained."""

    scratch: Path  # a directory for temporary files
    budget: int  # bytes of memory, without Python and its libraries
    plan: MemoryPlan | None = None  # None: by the budget
    progress: Progress = lambda report: None

    def plan_for(self, types: int, vocab_size: int, order: int) -> MemoryPlan:
        """Return the plan for a text with this many distinct words, a vocabulary and the order of the n-grams."""
        row_bytes = RecordFormat.of(order, vocab_size).row_bytes
        free = self.budget - vocabulary_bytes(types, vocab_size, order)
        return self.plan or MemoryPlan.of_budget(free, order, row_bytes)

    def read(
        self,
        text: str | Path,
        output: Path,
        order: int,
        *,
        vocab: Vocab | None = None,
        units: str = "word",
        min_count: int = 1,
        max_size: int | None = None,
    ) -> StoredCorpus:
        """Read a text, and check that there is enough disk space and memory for its n-grams.

        Args:
            text: a plain text or .gz, or `-` for standard input.
            output: the model directory that will be written.
            order: of the n-grams.
            vocab: the vocabulary, whose segmenter splits the text; None builds one from the text.
            units, min_count, max_size: for a vocabulary built here. Units are `word`, `char` or `auto`.
        """
        DiskSpace.needed(estimate_tokens(text), 1 << 16, order).check(self.scratch, output)
        size = Path(text).stat().st_size if Path(text).is_file() else 0
        report = self._reporter("reading", size, "bytes")
        chunk_bytes = (self.plan or MemoryPlan.of_budget(self.budget)).chunk_bytes
        files = text, self.scratch, chunk_bytes
        known = 0 if vocab is None else len(vocab)

        def check(types: int) -> None:
            check_types(self.budget, types, known, order)

        if vocab is not None:
            stored = scan_with_vocab(*files, vocab, report, check_types=check)
        else:
            segmenter = choose_segmenter(text, units, chunk_bytes)
            reserved = SPECIALS[:UNK] if segmenter.kind == "word" else ()
            stored = scan_text(*files, segmenter, report, reserved=reserved, check_types=check)
            vocab = build_vocab(stored, segmenter, min_count=min_count, max_size=max_size)
        check_vocabulary(self.budget, len(stored.types), len(vocab), order)
        corpus = StoredCorpus(vocab, stored)
        DiskSpace.needed(corpus.num_tokens, len(vocab), order).check(self.scratch, output)
        return corpus

    def train(
        self, corpus: StoredCorpus, directory: Path, config: NgramConfig, unknown: UnknownWordModel | None = None
    ) -> NgramModel:
        """Train a model and write its arrays into a new directory, from which they are mapped into memory.

        The other files are written by the model's `write_description`. The text is deleted.
        """
        check_config(config)
        unknown = unknown or UniformUnknownWords(corpus.vocab.num_known)
        tokens = corpus.num_tokens + corpus.num_sentences
        plan = self.plan_for(len(corpus.text.types), len(corpus.vocab), config.order)
        report = self._reporter("distributing", corpus.num_tokens, "tokens")
        buckets = distribute_corpus(corpus, config.order, self.scratch, plan, report)
        corpus.delete()
        counts = count_buckets(buckets, self.scratch, self._reporter("counting", tokens, "tokens"))
        pruning = Pruning(counts, config.prune) if config.prune else None
        ngrams = sum(map(len, counts.levels))
        table = TableFile(directory / storage.ARRAYS_FILE, counts, pruning, plan.block_ngrams)
        table.write_ngrams(self._reporter("writing n-grams", ngrams, "n-grams"))
        statistics = StoredStatistics(counts, config.coefficients, plan.block_ngrams)
        distribution = zerogram(corpus.vocab, unknown, config.interpolate_unigrams)
        smoother = DiskSmoother(counts, distribution, self.scratch, plan.block_ngrams, plan.range_ngrams, pruning)
        report = self._reporter("smoothing", ngrams, "n-grams")
        smoother.write(METHODS[config.smoothing](statistics), table, report)
        table.finish(lambda done, total: self.progress(StageReport("checksum", done, total, "bytes")))
        return _map_model(directory, table.levels, corpus.vocab, unknown, config, statistics.notes)

    def _reporter(self, stage: str, total: int, unit: str) -> Callable[[int], None]:
        last, temporary = 0.0, 0

        def report(done: int) -> None:
            nonlocal last, temporary
            if done >= total or monotonic() - last > REPORT_SECONDS:
                last, temporary = monotonic(), directory_bytes(self.scratch)
            self.progress(StageReport(stage, done, total, unit, temporary))

        return report


@contextmanager
def disk_training(
    tmp: Path, budget: int, plan: MemoryPlan | None = None, progress: Progress = lambda report: None
) -> Iterator[DiskTraining]:
    """Yield a `DiskTraining` with a temporary directory inside `tmp`, which is removed at the end."""
    if plan is None:
        MemoryPlan.of_budget(budget)  # raises an error if it is too small
    with scratch_directory(tmp) as scratch:
        yield DiskTraining(scratch, budget, plan, progress)


def train_ngram_on_disk(
    text: str | Path,
    output: str | Path,
    config: NgramConfig | None = None,
    *,
    memory: int = 2 << 30,
    tmp: str | Path | None = None,
    unknown: UnknownWordModel | None = None,
    replace: bool = False,
    progress: Progress = lambda report: None,
    **vocabulary: Unpack[VocabularyKwargs],
) -> NgramModel:
    """Train a model with counts on disk and write its directory, the one that training in memory writes.

    Args:
        text: a plain text or .gz.
        output: the model directory.
        config: the settings; None uses the defaults.
        memory: the budget in bytes.
        tmp: directory for temporary files; None: that of the output.
        unknown: the unknown-word model; None: all unknown words are equally likely.
        replace: replace an existing model.
        progress: is called with a `StageReport` from time to time.
        vocabulary: `vocab`, or `units`, `min_count` and `max_size` of one that is built; see `DiskTraining.read`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     text = Path(directory, "text")
    ...     _ = text.write_text("the cat sat\\nthe dog sat\\n")
    ...     config = NgramConfig(order=2, smoothing="witten-bell")
    ...     model = train_ngram_on_disk(text, f"{directory}/model", config, memory=100 << 20)
    >>> model.next_words("the", k=2)[0].word
    'cat'
    """
    target, config = Path(output), config or NgramConfig()
    scratch = Path(tmp or target.absolute().parent)
    check_config(config)
    check_scratch(scratch, target)
    storage.check_output_directory(target, replace=replace)
    with disk_training(scratch, memory, progress=progress) as training:
        corpus = training.read(text, target, config.order, **vocabulary)
        with storage.new_directory(target, replace=replace) as directory:
            model = training.train(corpus, directory, config, unknown)
            model.write_description(directory)
            model.write_card(directory, [], {"train": corpus.fingerprint()})
    return model


def check_scratch(scratch: Path, output: Path) -> None:
    """Raise an error if temporary files would be in the model directory."""
    if real_path(scratch).is_relative_to(real_path(output)):
        raise DataError(
            f"--tmp {scratch}: is in the output {output}, which is replaced at the end; name another directory"
        )


def check_config(config: NgramConfig) -> None:
    """Raise an error if a model with these settings can only be trained in memory."""
    problems = {
        f"--smoothing {config.smoothing}": config.smoothing not in METHODS,
        f"--gap {config.gap}": config.gap > 0,
        f"--entropy-prune {config.entropy_prune:g}": config.entropy_prune > 0,
        "--quantise": config.quantise,
    }
    for option, is_problem in problems.items():
        if is_problem:
            raise DataError(f"{option} needs all n-grams in memory; leave it out, or --memory")


def _map_model(
    directory: Path,
    levels: tuple[int, ...],
    vocab: Vocab,
    unknown: UnknownWordModel,
    config: NgramConfig,
    notes: list[str],
) -> NgramModel:
    arrays = storage.map_arrays(directory / storage.ARRAYS_FILE)
    trie = Trie(levels, arrays["word"], arrays["begin"])
    table = NgramTable(trie, arrays["log_prob"], arrays["log_backoff"], arrays["codebook"])
    return NgramModel(vocab, table, unknown, config, tuple(notes))
