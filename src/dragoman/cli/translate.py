"""dragoman translate"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from dragoman.cli.messages import info
from dragoman.cli.option_groups import with_option_groups
from dragoman.cli.options import Field, InputText, Threads, Translators, UnknownReplacementOptions, limited_threads
from dragoman.cli.translate_options import (
    FusionOptions,
    OutputOptions,
    SamplingArguments,
    SearchArguments,
    TranslateUnknownOptions,
    check_translate_options,
)
from dragoman.core.errors import DataError, error_at_line

if TYPE_CHECKING:
    from dragoman.io.output_formats import TranslationWriter
    from dragoman.models.line_translation import LineSampling, LineSearch
    from dragoman.models.translation import BaseTranslator


@with_option_groups
def translate(
    models: Translators,
    text: InputText = "-",
    field: Field = None,
    search: SearchArguments = SearchArguments(),
    unknowns: TranslateUnknownOptions = TranslateUnknownOptions(),
    sampling: SamplingArguments = SamplingArguments(),
    fusion: FusionOptions = FusionOptions(),
    output: OutputOptions = OutputOptions(),
    threads: Threads = None,
) -> None:
    """Translate standard input or a file line by line.

    Writes one output line per input line, blank lines included, in input order. Several translators with the same
    tokens (see --vocab of train translator) are an ensemble: their probabilities are averaged.

    Very long lines are split. Trees cannot be split, and --sample does not split lines: such lines are errors. One
    sample per line is printed as text, several in the format of --n-best.

    \b
    Example:
      echo "ein hund bellt ." | dragoman translate de-en
      dragoman translate de-en --text test.de --beam-size 10 --alignments test.align > test.en
      dragoman translate one two three --n-best 5 < test.de
      dragoman translate de-en --lm news --lm-weight 0.1 < test.de
      dragoman translate de-en --shortlist aligner < test.de
      dragoman translate words --lexicon aligner --explain-unknowns < test.de
    """
    from dragoman.combine.load_translators import check_attention, load_translators
    from dragoman.data.formats import read_line_batches
    from dragoman.models.line_translation import translate_all

    check_translate_options(models, search, unknowns, sampling, output)
    at_terminal = sys.stdin is not None and sys.stdin.isatty()
    with limited_threads(threads):
        if at_terminal:
            info("loading ...")
        model = load_translators(models, **vars(fusion), shortlist=search.shortlist)
        if search.shortlist is not None:
            info(
                f"--shortlist {search.shortlist}: probabilities are normalised over the words of each line's shortlist"
            )
        model.length_handling(search.length)  # raises an error before the first line is read
        if unknowns.enabled or search.coverage or output.alignments is not None:
            check_attention(model, models[0])
        translator = _line_translator(model, search, unknowns, sampling, output)
        if text == "-" and at_terminal:
            info("type a sentence and press Enter; Ctrl-D ends")
        batches = read_line_batches(text, field, _line_check(translator, search.max_units))
        with ExitStack() as files:
            writers = list(_writers(translator, models[0], output, files))
            translate_all(translator, batches, writers, info, explain_unknowns=output.explain_unknowns)


def _line_translator(
    model: BaseTranslator,
    search: SearchArguments,
    unknowns: UnknownReplacementOptions,
    sampling: SamplingArguments,
    output: OutputOptions,
) -> LineSearch | LineSampling:
    from dragoman.models.line_translation import LineSampling, LineSearch

    if sampling.sample is not None:
        seed = 1 if sampling.seed is None else sampling.seed
        return LineSampling(model, sampling.sample, seed, 1.0 if sampling.temperature is None else sampling.temperature)
    return LineSearch(
        model,
        output.n_best or 1,
        search.beam_size,
        search.max_units,
        {"length": search.length, "coverage": search.coverage, "unknown_replacer": unknowns.load(model)},
        with_lattice=output.lattice is not None,
    )


def _line_check(translator: LineSearch | LineSampling, max_tokens: int) -> Callable[[str, str, int], None] | None:
    """Return a function that raises an error for a line that cannot be translated."""
    from dragoman.data.tokenizer import TREE
    from dragoman.models.line_translation import LineSearch, check_tree

    model, remedy = translator.model, "split it, or allow more with --max-units"

    def check_length(line: str, source: str, number: int) -> None:
        if model.is_too_long(line, max_tokens):
            raise error_at_line(source, number, f"more than {max_tokens:,} tokens, too long for --sample; {remedy}")

    if model.source.format == TREE:
        return lambda line, source, number: check_tree(line, source, number, max_tokens, remedy)
    return None if isinstance(translator, LineSearch) else check_length


def _writers(
    translator: LineSearch | LineSampling, path: Path, output: OutputOptions, files: ExitStack
) -> Iterator[TranslationWriter]:
    from dragoman.data.tokenizer import TREE
    from dragoman.io import output_formats as formats
    from dragoman.models.line_translation import LineSampling
    from dragoman.report.lattice import lattice_text

    model = translator.model
    is_list = output.n_best is not None or (isinstance(translator, LineSampling) and translator.samples > 1)
    attention = partial(model.attention_matrix, tokens=model.source.segmenter.kind == "char")
    if output.as_json:
        yield formats.JsonLinesWriter(sys.stdout, attention)
    else:
        yield formats.MosesNBestWriter(sys.stdout) if is_list else formats.TextWriter(sys.stdout)
    if output.alignments is not None:
        if model.source.format == TREE:
            remedy = "dragoman attention shows its attention"
            raise DataError(f"{path}: attends to the phrases of a tree, so words are not aligned; {remedy}")
        yield formats.PharaohWriter(files.enter_context(_open(output.alignments)), attention)
    if output.lattice is not None:
        tokens = model.target.vocab.tokens
        as_text = output.lattice.suffix not in (".jsonl", ".json")
        render = partial(lattice_text, spell=tokens.__getitem__) if as_text else None
        yield formats.LatticeWriter(files.enter_context(_open(output.lattice)), tokens, render)


def _open(path: Path) -> TextIO:
    return path.open("w", encoding="utf-8", newline="\n")
