"""Scores of a text by `dragoman score`: of all of it, or of one shard."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli import options
from dragoman.cli.messages import info
from dragoman.cli.option_groups import option_values
from dragoman.cli.score_options import ScoreOptions
from dragoman.cli.sharding import ShardOptions, is_planned, new_job, open_shard, with_progress
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dragoman.data.corpus import Corpus
    from dragoman.models.language_model import LanguageModel
    from dragoman.models.score_blocks import Block, ModelInputs
    from dragoman.report.score_text import ScoreFormat
    from dragoman.sharding.manifest import LineJob

    Encode = Callable[[Block], ModelInputs]

MAX_WIDTH = 10_000  # columns of a table, however narrow the terminal is
NOT_IN_JOB = ("src", "src-field", "picture")  # options that are texts of the job, or not for shards


@dataclass(frozen=True)
class TextScores:
    """Models, and the text that they score."""

    paths: Sequence[Path]
    options: ScoreOptions
    text: str
    field: str | None
    dedup: bool

    def run(self) -> None:
        """Print the scores of the whole text."""
        from dragoman.models.score_blocks import BLOCK_LINES

        encode, carries = self._load()
        is_table = len(self.paths) > 1 and sys.stdout.isatty()
        is_whole = carries or is_table or self.options.picture is not None
        if self.options.src is None and self._has_no_lines():
            return  # no lines in, no lines out
        blocks = self._blocks(None if is_whole else BLOCK_LINES)
        if is_table or self.options.picture is not None:
            blocks = list(blocks)
            inputs = encode(blocks[0])
            self._draw(inputs)
            if is_table:
                self._print_table(inputs)
                return
        for part in self._texts(blocks, encode, is_start=True):
            print(part, end="")

    def run_shard(self, sharding: ShardOptions, directory: Path) -> None:
        """Score one shard of the text, and write the results into a directory; nothing if it is finished."""
        from dragoman.models.score_blocks import split_blocks

        texts = self._shard_texts()
        loaded = None if is_planned(directory) else self._load(is_shard=True)
        with open_shard(sharding, directory, self._job(), texts) as task:
            if task is None:
                return
            encode, _ = loaded or self._load(is_shard=True)
            blocks = with_progress(task, split_blocks(task.read_blocks()))
            with task.output() as stream:
                stream.writelines(self._texts(blocks, encode, is_start=task.number == 1))

    def _shard_texts(self) -> list[tuple[str, str | None]]:
        """Return the files to divide, with their fields."""
        from dragoman.data.file_formats import recognise_format

        source, fields = self.options.src, (self.options.src_field, self.field)
        if source is None:
            return [(self.text, self.field)]
        if source == "-":
            raise DataError("--shards: standard input cannot be divided; give a file with --src FILE")
        for path in (source, self.text):
            if recognise_format(path, ("tmx", "po", "xliff")) is not None:
                raise DataError(f"{path}: --shards divides texts, TSV and JSONL only; give two texts")
        if source == self.text and None in fields:
            raise DataError(f"{source}: choose the columns or keys of both sides with --src-field and --field")
        return list(zip((source, self.text), fields, strict=True))

    def _job(self) -> LineJob:
        from dragoman.models.score_blocks import BLOCK_LINES

        values = {name: value for name, value in option_values(self.options).items() if name not in NOT_IN_JOB}
        has_rows = self.options.has_rows
        return new_job(
            "score",
            self.paths,
            {**values, "dedup": self.dedup},
            suffix=".txt" if len(self.paths) == 1 and not has_rows else ".tsv",
            one_line_each=len(self.paths) == 1 and not has_rows,
            block_lines=BLOCK_LINES,
        )

    def _texts(self, blocks: Iterable[Block], encode: Encode, *, is_start: bool) -> Iterator[str]:
        """Yield the scores of blocks."""
        from dragoman.report.score_text import DuplicateScores

        def body(block: Block) -> str:
            return score_format.body(encode(block))

        score_format, names = self._format(), [str(path) for path in self.paths]
        duplicates = DuplicateScores(body)
        yield from score_format.texts(blocks, duplicates.body if self.dedup else body, names, is_start=is_start)
        if self.dedup:
            info(duplicates.summary())

    def _format(self) -> ScoreFormat:
        from dragoman.report.score_text import ScoreFormat

        base = math.log(10) if self.options.log10 else 1.0
        return ScoreFormat(base, self.options.has_rows, self.options.by_token)

    def _load(self, *, is_shard: bool = False) -> tuple[Encode, bool]:
        """Load the models. Return how they read a block, and whether one keeps its state from line to line."""
        from dragoman.models.loading import load_translator
        from dragoman.models.score_blocks import encode_pairs

        if self.options.src is not None:
            return partial(encode_pairs, {str(path): load_translator(path) for path in self.paths}), False
        models = {str(path): _load_model(path, raw=self.options.raw) for path in self.paths}
        carrying = next((name for name, model in models.items() if model.carries), None)
        if carrying is not None and (is_shard or self.dedup):
            problem = "keeps its state from line to line, so the score of a line depends on the lines before"
            raise DataError(f"{carrying}: {problem}; remove {'--shards' if is_shard else '--dedup'}")
        return self._encode_lines(models), carrying is not None

    def _encode_lines(self, models: Mapping[str, LanguageModel]) -> Encode:
        """Return how language models read a block. It warns if they do not know most words of the first one."""
        from dragoman.data.formats import display_name
        from dragoman.models.score_blocks import encode_lines

        is_first = True

        def encode(block: Block) -> ModelInputs:
            nonlocal is_first
            inputs = encode_lines(models, block)
            if is_first:
                corpora = [corpus for _, corpus in inputs.values()]
                options.warn_of_unknown_words(list(inputs), corpora, display_name(self.text))
            is_first = False
            return inputs

        return encode

    def _has_no_lines(self) -> bool:
        """Return whether standard input, if it is the text, is empty."""
        if self.text != "-" or self.options.picture is not None or sys.stdin is None:
            return False
        return not sys.stdin.buffer.peek(1)  # type: ignore[union-attr]

    def _blocks(self, block_lines: int | None) -> Iterable[Block]:
        """Return the lines of the whole text in blocks; with None, in one."""
        from dragoman.data.formats import field_for, read_text
        from dragoman.data.pair_files import read_pairs
        from dragoman.models.score_blocks import line_blocks, pair_blocks

        if self.options.src is None:
            return line_blocks(read_text(self.text, field_for(self.text, self.field)), block_lines)
        lines = read_pairs(self.options.src, self.text, self.options.src_field, self.field)
        return pair_blocks(lines.source, lines.target, block_lines)

    def _draw(self, inputs: ModelInputs) -> None:
        """Draw the surprisals of a text, if they should be."""
        from dragoman.evaluation.surprisal import surprisal_table
        from dragoman.report.surprisal import draw_surprisals

        if self.options.picture is None:
            return
        named = dict(zip(options.short_names(list(inputs)), inputs.values(), strict=True))
        table = surprisal_table(named, by_token=self.options.by_token)
        draw_surprisals(table, self.options.picture, title="Surprisal: -log2 P(word | words before)")
        info(f"{self.options.picture}: the surprisal of each word, in bits")

    def _print_table(self, inputs: ModelInputs) -> None:
        """Print the scores of several models on a terminal."""
        from rich.console import Console

        from dragoman.evaluation.surprisal import surprisal_table
        from dragoman.report.language_models import sentence_columns
        from dragoman.report.surprisal import surprisal_grid

        if not self.options.has_rows:
            print(sentence_columns(inputs, self._format().base, is_terminal=True))
            return
        table = surprisal_table(inputs, by_token=self.options.by_token)
        Console(width=MAX_WIDTH).print(surprisal_grid(table))  # words and names are not truncated


def _load_model(path: Path, *, raw: bool) -> LanguageModel:
    """Load a language model; if `raw`, a stupid back-off model with its unnormalised scores as probabilities."""
    from dragoman.models.loading import load_language_model
    from dragoman.ngram.model import NgramModel

    model = load_language_model(path)
    if not raw:
        return model

    class RawScores(NgramModel):
        def token_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
            return self.raw_token_scores(corpus)

    if not isinstance(model, NgramModel):
        raise DataError(f"--raw is for stupid-backoff; a {model.kind} model has probabilities")
    return RawScores(model.vocab, model.table, model.unknown, model.settings)
