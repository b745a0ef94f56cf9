"""Translation of a text line by line by `dragoman translate`: all of it, or one shard."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from dragoman.cli.messages import info, warn_if_unfinished
from dragoman.cli.option_groups import option_values
from dragoman.cli.sharding import ShardOptions, is_planned, new_job, open_shard, with_progress
from dragoman.cli.translate_documents import whole_file
from dragoman.cli.translate_options import FusionOptions, LineTranslatorOptions, OutputOptions, SamplingOptions
from dragoman.core.errors import DataError, error_at_line

if TYPE_CHECKING:
    from dragoman.data.formats import NumberedLine
    from dragoman.io.output_formats import TranslationWriter
    from dragoman.models.line_translation import LineSampler, LineTranslator
    from dragoman.models.translation import BaseTranslator
    from dragoman.sharding.manifest import LineJob


@dataclass(frozen=True)
class LineTranslation:
    """Translators and the options for lines of text."""

    models: Sequence[Path]
    search: LineTranslatorOptions
    sampling: SamplingOptions
    fusion: FusionOptions
    output: OutputOptions
    precision: str | None
    dedup: bool = False

    def run(self, text: str, field: str | None, path: Path | None) -> None:
        """Translate a text, and write the results to a file or standard output."""
        from dragoman.data.formats import read_line_batches

        model = self.load()
        translator = self._line_translator(model)
        if text == "-" and sys.stdin is not None and sys.stdin.isatty():
            info("type a sentence and press Enter; Ctrl-D ends")
        check = _line_check(translator, self.search.max_units)
        batches = read_line_batches(text, field, check, self._batch_lines)
        with ExitStack() as files:
            stream = sys.stdout if path is None else files.enter_context(whole_file(path))
            self._translate(translator, batches, files, stream)

    def run_shard(self, sharding: ShardOptions, text: str, field: str | None, directory: Path) -> None:
        """Translate one shard of a text, and write the results into a directory; nothing if it is finished."""
        loaded = None if is_planned(directory) else self._line_translator(self.load())
        with open_shard(sharding, directory, self._job(), [(text, field)]) as task:
            if task is None:
                return
            translator = loaded or self._line_translator(self.load())
            check = _line_check(translator, self.search.max_units)
            batches = task.read_line_batches(check, self._batch_lines)
            with ExitStack() as files, task.output() as stream:
                self._translate(translator, with_progress(task, batches), files, stream)

    def _job(self) -> LineJob:
        from dragoman.data import formats

        options = option_values(self.search, self.sampling, self.fusion, self.output)
        is_list = self.output.n_best is not None or (self.sampling.sample or 1) > 1
        return new_job(
            "translate",
            self.models,
            {**options, "precision": self.precision, "dedup": self.dedup},
            suffix=".jsonl" if self.output.as_json else ".txt",
            one_line_each=self.output.as_json or not is_list,
            block_lines=formats.MAX_BATCH_LINES,
        )

    @property
    def _batch_lines(self) -> int | None:
        """The lines that are read at once; None for the default."""
        from dragoman.models.duplicates import DEDUP_BATCH_LINES

        return DEDUP_BATCH_LINES if self.dedup else None

    def load(self) -> BaseTranslator:
        """Load translators as one, and check the options that depend on it before the first line is read."""
        from dragoman.combine.load_translators import load_translators, parse_shortlist, require_attention

        shortlist = parse_shortlist(self.search.shortlist)
        model = load_translators(self.models, **vars(self.fusion), shortlist=shortlist, precision=self.precision)
        warn_if_unfinished(self.models)
        if isinstance(shortlist, Path):
            info(f"--shortlist {shortlist}: probabilities are normalised over the words of each line's shortlist")
        model.length_handling(self.search.length)
        needs_attention = self.output.alignments is not None
        if needs_attention or self.search.replaces_unknowns or self.search.coverage_penalty:
            require_attention(model, self.models[0])
        return model

    def _line_translator(self, model: BaseTranslator) -> LineTranslator | LineSampler:
        from dragoman.models.line_translation import LineSampler, LineTranslator
        from dragoman.models.text_pipeline import TextPipeline

        search, sampling = self.search, self.sampling
        pipeline = TextPipeline(
            model, split_sentences=not search.no_split, keep_tokenised=True, verbatim=search.verbatim
        )
        if sampling.sample is not None:
            seed, temperature = sampling.seed, sampling.temperature
            seed, temperature = 1 if seed is None else seed, 1.0 if temperature is None else temperature
            return LineSampler(pipeline, sampling.sample, seed, temperature)
        n_best, kwargs, has_lattice = (
            self.output.n_best or 1,
            search.search_kwargs(model),
            self.output.lattice is not None,
        )
        return LineTranslator(pipeline, n_best, search.beam_size, search.max_units, kwargs, has_lattice)

    def _translate(
        self,
        translator: LineTranslator | LineSampler,
        batches: Iterable[Sequence[NumberedLine]],
        files: ExitStack,
        stream: TextIO,
    ) -> None:
        """Translate batches of lines, and write the results."""
        from dragoman.models.line_translation import LineTranslator, translate_all

        writers = list(_writers(translator, self.models[0], self.output, files, stream))
        explain = self.output.explain_unknowns
        if not self.dedup or not isinstance(translator, LineTranslator):
            translate_all(translator, batches, writers, info, explain_unknowns=explain)
            return
        from dragoman.models.duplicates import DuplicateTranslator

        output = self.output
        is_text = not (explain or output.as_json or output.alignments is not None or output.lattice is not None)
        duplicates = DuplicateTranslator(translator, keep_details=not is_text)
        translate_all(duplicates, batches, writers, info, explain_unknowns=explain)
        info(duplicates.summary())


def _line_check(translator: LineTranslator | LineSampler, max_tokens: int) -> Callable[[str, str, int], None] | None:
    """Return a function that raises an error for a line that cannot be translated."""
    from dragoman.data.tokenizer import TREE
    from dragoman.models.line_translation import LineTranslator, check_tree

    pipeline, remedy = translator.pipeline, "split it, or allow more with --max-units"

    def check_length(line: str, source: str, number: int) -> None:
        if any(sentence.segmented.is_split for sentence in pipeline.split(line, max_tokens)):
            raise error_at_line(source, number, f"more than {max_tokens:,} tokens, too long for --sample; {remedy}")

    if pipeline.model.source.format == TREE:
        return partial(check_tree, max_words=max_tokens, remedy=remedy)
    return None if isinstance(translator, LineTranslator) else check_length


def _writers(
    translator: LineTranslator | LineSampler, path: Path, output: OutputOptions, files: ExitStack, stream: TextIO
) -> Iterator[TranslationWriter]:
    from dragoman.data.tokenizer import TREE
    from dragoman.io import output_formats as formats
    from dragoman.models.line_translation import LineSampler

    model = translator.pipeline.model
    is_list = output.n_best is not None or (isinstance(translator, LineSampler) and translator.samples > 1)
    attention = partial(model.attention_matrix, tokens=model.source.segmenter.kind == "char")
    if output.as_json:
        yield formats.JsonLinesWriter(stream, attention)
    else:
        yield formats.MosesNBestWriter(stream) if is_list else formats.TextWriter(stream)
    if output.alignments is not None:
        if model.source.format == TREE:
            remedy = "dragoman attention shows its attention"
            raise DataError(f"{path}: attends to the phrases of a tree, so words are not aligned; {remedy}")
        yield formats.PharaohWriter(files.enter_context(whole_file(output.alignments)), attention)
    if output.lattice is not None:
        from dragoman.report.lattice import lattice_text

        tokens = model.target.vocab.tokens
        as_text = output.lattice.suffix not in (".jsonl", ".json")
        render = partial(lattice_text, spell=tokens.__getitem__) if as_text else None
        yield formats.LatticeWriter(files.enter_context(whole_file(output.lattice)), tokens, render)
