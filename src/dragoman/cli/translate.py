"""dragoman translate"""

from __future__ import annotations

import sys

from dragoman.cli.messages import info
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
from dragoman.cli.sharding import ShardOptions
from dragoman.cli.translate_documents import (
    DocumentOptions,
    TranslateInput,
    check_distinct_files,
    translate_documents,
)
from dragoman.cli.translate_lines import LineTranslation
from dragoman.cli.translate_options import (
    FusionOptions,
    LineTranslatorOptions,
    OutputOptions,
    SamplingOptions,
    check_dedup,
    check_line_options,
    check_shard_options,
    check_translate_options,
)


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
    sharding: ShardOptions = ShardOptions(),
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

    --shards N --shard K translates one of N parts of a long text and writes it to the directory -o; dragoman merge
    joins them. The result is that of the whole text.

    \b
    Example:
      echo "Ein Hund bellt. Warum?" | dragoman translate de-en
      dragoman translate de-en page.html -o page.en.html
      dragoman translate de-en --text test.de --beam-size 10 --alignments test.align > test.en
      dragoman translate one two three --n-best 5 < test.de
      dragoman translate de-en --lm news --lm-weight 0.1 --shortlist aligner < test.de
      dragoman translate de-en --text big.de --shards 100 --shard 7 -o parts
    """
    given = TranslateInput.from_arguments(paths, text, documents, field)
    if given.documents:
        check_line_options(sampling, output, field, sharding)
    check_translate_options(search, sampling, output)
    check_dedup(sharding, sampling)
    if sharding.is_given:
        sharding.check(given.text, documents.output)
        check_shard_options(output)
    else:
        check_output_file("--output", None if given.documents else documents.output)
    if not given.documents:
        outputs = {"--output": documents.output, "--alignments": output.alignments, "--lattice": output.lattice}
        check_distinct_files(outputs, given.text)
    with limited_threads(threads):
        if sys.stdin is not None and sys.stdin.isatty():
            info("loading ...")
        lines = LineTranslation(given.models, search, sampling, fusion, output, precision, sharding.dedup)
        if given.documents:
            translate_documents(lines.load(), given.documents, search, documents)
        elif sharding.is_given and documents.output is not None:
            lines.run_shard(sharding, given.text, field, documents.output)
        else:
            lines.run(given.text, field, documents.output)
