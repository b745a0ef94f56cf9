"""dragoman translate"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from dragoman.cli.messages import info, warn_if_unfinished
from dragoman.cli.option_groups import with_option_groups
from dragoman.cli.options import (
    Field,
    InputText,
    Precision,
    Threads,
    TranslatorsAndFiles,
    check_output_file,
    limited_threads,
)
from dragoman.cli.translate_documents import (
    DocumentOptions,
    TranslateInput,
    check_distinct_files,
    translate_documents,
    whole_file,
)
from dragoman.cli.translate_options import (
    FusionOptions,
    LineTranslatorOptions,
    OutputOptions,
    SamplingOptions,
    check_line_options,
    check_translate_options,
)
from dragoman.core.errors import DataError, error_at_line

if TYPE_CHECKING:
    from dragoman.data.formats import NumberedLine
    from dragoman.io.output_formats import TranslationWriter
    from dragoman.models.line_translation import LineSampler, LineTranslator
    from dragoman.models.translation import BaseTranslator


@with_option_groups
def translate(
    paths: TranslatorsAndFiles,
    text: InputText = "-",
    field: Field = None,
    documents: DocumentOptions = DocumentOptions(),
    search: LineTranslatorOptions = LineTranslatorOptions(),
    sampling: SamplingOptions = SamplingOptions(),
    fusion: FusionOptions = FusionOptions(),
    output: OutputOptions = OutputOptions(),
    precision: Precision = None,
    threads: Threads = None,
) -> None:
    """Translate standard input, a file line by line, or documents.

    HTML, Markdown, PO, XLIFF, SRT and VTT files keep their format: tags, placeholders, code and everything that is not
    text stay as they are. They are recognised by name or content; --format text translates them line by line.

    For other text, it writes one output line per input line, blank lines included, in input order. A line may have
    several sentences: they are translated one by one, and their translations are joined. Several translators with the
    same tokens (see --vocab of train translator) are an ensemble: their probabilities are averaged.

    A translator of tokenised text reads plain text as well, and then writes plain text. The translation of a tokenised
    line is tokenised. Addresses, code, emoji and unknown characters are copied, see --verbatim.

    For a line of several sentences, --n-best lists the best combinations of their translations, --sample joins one
    sample of each, --alignments counts words through the line, --lattice has one record per sentence, and --json lists
    the sentences. Very long sentences are split. Trees cannot be split, and --sample does not split sentences: such
    lines are errors. One sample per line is printed as text, several in the format of --n-best.

    \b
    Example:
      echo "Ein Hund bellt. Warum?" | dragoman translate de-en
      dragoman translate de-en page.html -o page.en.html
      dragoman translate de-en --text test.de --beam-size 10 --alignments test.align > test.en
      dragoman translate one two three --n-best 5 < test.de
      dragoman translate de-en --lm news --lm-weight 0.1 --shortlist aligner < test.de
    """
    from dragoman.data.formats import read_line_batches

    given = TranslateInput.from_arguments(paths, text, documents, field)
    if given.documents:
        check_line_options(sampling, output, field)
    check_translate_options(search, sampling, output)
    check_output_file("--output", None if given.documents else documents.output)
    if not given.documents:
        outputs = {"--output": documents.output, "--alignments": output.alignments, "--lattice": output.lattice}
        check_distinct_files(outputs, given.text)
    at_terminal = sys.stdin is not None and sys.stdin.isatty()
    with limited_threads(threads):
        if at_terminal:
            info("loading ...")
        model = _load(given.models, search, fusion, precision, needs_attention=output.alignments is not None)
        if given.documents:
            translate_documents(model, given.documents, search, documents)
            return
        translator = _line_translator(model, search, sampling, output)
        if given.text == "-" and at_terminal:
            info("type a sentence and press Enter; Ctrl-D ends")
        batches = read_line_batches(given.text, field, _line_check(translator, search.max_units))
        _translate_lines(translator, batches, given.models[0], output, documents.output)


def _translate_lines(
    translator: LineTranslator | LineSampler,
    batches: Iterable[Sequence[NumberedLine]],
    model: Path,
    output: OutputOptions,
    path: Path | None,
) -> None:
    """Translate lines, and write the results to a file or standard output."""
    from dragoman.models.line_translation import translate_all

    with ExitStack() as files:
        stream = sys.stdout if path is None else files.enter_context(whole_file(path))
        writers = list(_writers(translator, model, output, files, stream))
        translate_all(translator, batches, writers, info, explain_unknowns=output.explain_unknowns)


def _load(
    models: Sequence[Path],
    search: LineTranslatorOptions,
    fusion: FusionOptions,
    precision: str | None,
    *,
    needs_attention: bool,
) -> BaseTranslator:
    """Load translators as one, and check the options that depend on it before the first line is read."""
    from dragoman.combine.load_translators import load_translators, parse_shortlist, require_attention

    shortlist = parse_shortlist(search.shortlist)
    model = load_translators(models, **vars(fusion), shortlist=shortlist, precision=precision)
    warn_if_unfinished(models)
    if isinstance(shortlist, Path):
        info(f"--shortlist {shortlist}: probabilities are normalised over the words of each line's shortlist")
    model.length_handling(search.length)
    if needs_attention or search.replaces_unknowns or search.coverage_penalty:
        require_attention(model, models[0])
    return model


def _line_translator(
    model: BaseTranslator, search: LineTranslatorOptions, sampling: SamplingOptions, output: OutputOptions
) -> LineTranslator | LineSampler:
    from dragoman.models.line_translation import LineSampler, LineTranslator
    from dragoman.models.text_pipeline import TextPipeline

    pipeline = TextPipeline(model, split_sentences=not search.no_split, keep_tokenised=True, verbatim=search.verbatim)
    if sampling.sample is not None:
        seed, temperature = sampling.seed, sampling.temperature
        seed, temperature = 1 if seed is None else seed, 1.0 if temperature is None else temperature
        return LineSampler(pipeline, sampling.sample, seed, temperature)
    n_best, search_kwargs, has_lattice = output.n_best or 1, search.search_kwargs(model), output.lattice is not None
    return LineTranslator(pipeline, n_best, search.beam_size, search.max_units, search_kwargs, has_lattice)


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
