"""dragoman translate"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TextIO

import typer

from dragoman.cli import options
from dragoman.cli.input_lines import InputLine, read_line_batches
from dragoman.cli.messages import info
from dragoman.cli.option_groups import OptionGroup, with_option_groups
from dragoman.cli.translator_options import (
    BeamSize,
    CoveragePenalty,
    FusionOptions,
    Length,
    ShortlistFrom,
    Threads,
    Translators,
    UnknownLineReporter,
    UnknownReplacementOptions,
    attention_links,
    attention_matrix,
    check_output_file,
    check_tree,
    limited_threads,
    load_translators,
    reads_characters,
    reads_trees,
    require_attention,
)
from dragoman.core.errors import DataError, error_at_line

if TYPE_CHECKING:
    from dragoman.align.unknown_words import UnknownReplacer
    from dragoman.models.translation import BaseTranslator, Translation
    from dragoman.search.lattice import Lattice

DIGITS = 4  # of attention in JSON
Text = Annotated[
    str,
    typer.Option("--text", metavar="FILE", help="One sentence a line: plain, .gz, .tsv or .jsonl.", show_default=False),
]
MaxUnits = Annotated[
    int, typer.Option("--max-units", min=1, metavar="N", help="Lines with more units are translated in pieces.")
]


@dataclass(frozen=True)
class SearchOptions(OptionGroup):
    """How translations are looked for."""

    beam_size: BeamSize = 5
    length: Length = "norm"
    coverage: CoveragePenalty = 0.0
    max_units: MaxUnits = 250


@dataclass(frozen=True)
class SamplingOptions(OptionGroup):
    """Translations drawn at random rather than looked for."""

    sample: Annotated[
        int | None,
        typer.Option(
            "--sample",
            min=1,
            metavar="N",
            help="Draw N translations of each line from P(E | F) instead of looking for the best.",
            show_default=False,
        ),
    ] = None
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", min=0, help="The same seed draws the same translations. Default: 1.", show_default=False
        ),
    ] = None
    temperature: Annotated[
        float | None,
        typer.Option(
            "--temperature", help="Of drawing: below 1, more of the probable. Default: 1.", show_default=False
        ),
    ] = None


@dataclass(frozen=True)
class OutputOptions(OptionGroup):
    """What is written, and where to."""

    n_best: Annotated[
        int | None,
        typer.Option(
            "--n-best",
            min=1,
            metavar="N",
            help="The N best translations of each line as Moses writes them: number, translation, log P, score. A "
            "smaller beam is widened to N.",
            show_default=False,
        ),
    ] = None
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, with scores and attention.")] = False
    alignments: Annotated[
        Path | None,
        typer.Option(
            "--alignments",
            metavar="FILE",
            help="Also write which words belong together by the attention: pairs source-target, counted from 0. If the "
            "source is read letter by letter, which units.",
            show_default=False,
        ),
    ] = None
    lattice: Annotated[
        Path | None,
        typer.Option(
            "--lattice",
            metavar="FILE",
            help="Also write what the search did, every hypothesis kept, and the best of those pruned: .jsonl, else as "
            "text.",
            show_default=False,
        ),
    ] = None


@with_option_groups
def translate(
    models: Translators,
    text: Text = "-",
    field: options.Field = None,
    search: SearchOptions = SearchOptions(),
    shown: OutputOptions = OutputOptions(),
    drawing: SamplingOptions = SamplingOptions(),
    fusion: FusionOptions = FusionOptions(),
    shortlist: ShortlistFrom = None,
    unknowns: UnknownReplacementOptions = UnknownReplacementOptions(),
    explain_unknowns: Annotated[
        bool,
        typer.Option(
            "--explain-unknowns",
            help="Tell which rule gave which word in the place of an unknown one.",
            show_default=False,
        ),
    ] = False,
    threads: Threads = None,
) -> None:
    """Translate standard input or a file line by line.

    One line comes out for each line that goes in, blank ones too, in order and as soon as may be: each by itself where
    they are typed, many together where many are there. Several translators that share their units (see --vocab of
    train translator) are an ensemble: their probabilities are averaged.

    Lines that are very long are translated in pieces, and told of; trees are refused then, and so is any such line with
    --sample. A sample of one prints lines, of more the format of --n-best.

    \b
    Example:
      echo "ein hund bellt ." | dragoman translate de-en
      dragoman translate de-en --text test.de --beam-size 10 --alignments test.align > test.en
      dragoman translate one two three --n-best 5 < test.de
      dragoman translate de-en --lm news --lm-weight 0.1 < test.de
      dragoman translate de-en --shortlist aligner < test.de
      dragoman translate words --lexicon aligner --explain-unknowns < test.de
    """
    _check_models(models)
    for option, path in (("--alignments", shown.alignments), ("--lattice", shown.lattice)):
        if path is not None:
            check_output_file(option, path)
    _check(search, shown, drawing, unknowns)
    with limited_threads(threads):
        if _at_terminal():
            info("loading ...")
        model = load_translators(models, fusion, shortlist)
        rules = unknowns.rules(model)
        if explain_unknowns and rules is None:
            raise DataError(
                "--explain-unknowns: none are replaced; ask for it with --replace-unknowns or --lexicon DIR"
            )
        if rules is not None:
            require_attention(model, models[0])
        if search.coverage:
            require_attention(model, models[0])
        job = TranslationJob(model, search, shown, drawing, rules, explain_unknowns)
        model.length_handling(search.length)  # refused now rather than after the first line
        if shown.alignments is not None:
            _require_words(model, models[0])
        if text == "-" and _at_terminal():
            info("type a sentence and press Enter; Ctrl-D ends")
        _translate_all(job, read_line_batches(text, field, _line_check(job)))


def _at_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


@dataclass(frozen=True)
class TranslationJob:
    """Who translates, and how."""

    model: BaseTranslator
    search: SearchOptions
    shown: OutputOptions
    drawing: SamplingOptions
    unknowns: UnknownReplacer | None = None
    explained: bool = False

    @property
    def as_list(self) -> bool:
        """Whether several translations of a line are printed."""
        return self.shown.n_best is not None or (self.drawing.sample or 1) > 1


def _check_models(paths: Sequence[Path]) -> None:
    for path in paths:
        if path.is_file():
            raise DataError(f"{path}: is a file, not a translator; to translate a file: --text {path}")


def _check(
    search: SearchOptions, shown: OutputOptions, drawing: SamplingOptions, unknowns: UnknownReplacementOptions
) -> None:
    if drawing.sample is None and (drawing.seed is not None or drawing.temperature is not None):
        raise DataError("--seed and --temperature are for drawing; say how many with --sample N")
    if drawing.sample is not None and shown.n_best is not None:
        raise DataError("--sample draws translations and --n-best looks for the best ones; choose one")
    if drawing.sample is not None and unknowns != UnknownReplacementOptions():
        raise DataError("--sample shows what was drawn, unknown words too; leave --replace-unknowns and --lexicon out")
    if drawing.sample is not None and shown.lattice is not None:
        raise DataError("--lattice shows a search, and --sample does not search; leave one out")
    if drawing.sample is not None and replace(search, max_units=SearchOptions.max_units) != SearchOptions():
        options = "--beam-size, --length and --coverage-penalty"
        raise DataError(f"{options} are for searching, and --sample does not search; leave them out")


def _require_words(model: BaseTranslator, path: Path) -> None:
    """Alignments are between words."""
    require_attention(model, path)
    if reads_trees(model):
        remedy = "dragoman attention draws what it looks at"
        raise DataError(f"{path}: attends to the phrases of a tree, so no words are aligned; {remedy}")


def _line_check(job: TranslationJob) -> Callable[[str, str, int], None] | None:
    """What refuses a line that cannot be translated, if there is such a thing."""
    most, remedy = job.search.max_units, "split it, or allow more with --max-units"

    def check_whole(line: str, source: str, number: int) -> None:
        if job.model.is_too_long(line, most):
            raise error_at_line(
                source, number, f"more than {most:,} units, and --sample draws for whole lines; {remedy}"
            )

    def check_as_tree(line: str, source: str, number: int) -> None:
        check_tree(line, source, number, most, remedy)

    if reads_trees(job.model):
        return check_as_tree
    return check_whole if job.drawing.sample is not None else None


def _translate_all(job: TranslationJob, batches: Iterator[list[InputLine]]) -> None:
    with ExitStack() as stack:
        alignments, lattices = (
            None if path is None else stack.enter_context(path.open("w", encoding="utf-8", newline="\n"))
            for path in (job.shown.alignments, job.shown.lattice)
        )
        strangers = UnknownLineReporter(job.model)
        for lines in batches:
            for line in lines:
                strangers.look(line.number, line.text)
            results = _results(job, lines)
            if job.explained:
                _explain(results)
            _write(sys.stdout, (_printed(job, result) for result in results))
            if alignments is not None:
                _write(alignments, (_aligned(job, result) for result in results))
            if lattices is not None:
                _write(lattices, (_lattice(job, result) for result in results))
        strangers.sum_up()


def _explain(results: Sequence[LineResult]) -> None:
    """Where the words came from that stand for unknown ones."""
    from dragoman.align.unknown_words import COPIED

    for result in results:
        for one in result.found[0].replacements:
            how = "copied from" if one.rule == COPIED else "the lexicon's translation of"
            where = f"line {result.line.number}, word {one.place + 1}"
            info(f"{where}: {one.word}, {how} {one.source} ({100 * one.attention:.0f}% of the attention)")


def _write(file: TextIO, texts: Iterator[str]) -> None:
    file.writelines(f"{text}\n" for text in texts)
    file.flush()


# -- translating -------------------------------------------------------------------------------------------------------


class LineResult(NamedTuple):
    """A line with its translations, the best first, or in the order in which they were drawn."""

    line: InputLine
    found: list[Translation]
    lattice: Lattice | None = None


def _results(job: TranslationJob, lines: Sequence[InputLine]) -> list[LineResult]:
    if job.drawing.sample is not None:
        return [LineResult(line, _drawn(job, line)) for line in lines]
    for line in lines:
        if job.model.is_too_long(line.text, job.search.max_units):
            info(f"line {line.number}: more than {job.search.max_units} units, so it is translated in pieces")
    if job.shown.lattice is not None:
        return [_recorded(job, line) for line in lines]
    found = _searched(job, [line.text for line in lines])
    return [LineResult(line, best) for line, best in zip(lines, found, strict=True)]


def _searched(job: TranslationJob, lines: list[str], **how: Any) -> list[list[Translation]]:
    choice = job.search
    best = job.shown.n_best or 1
    limits: dict[str, Any] = {"length": choice.length, "max_tokens": choice.max_units, "unknown_replacer": job.unknowns}
    limits |= {"coverage": choice.coverage} if choice.coverage else {}
    return job.model.n_best(lines, best, choice.beam_size, **limits, **how)


def _recorded(job: TranslationJob, line: InputLine) -> LineResult:
    """A line by itself, with what the search did."""
    from dragoman.search.lattice import Lattice

    lattice = Lattice()
    [best] = _searched(job, [line.text], lattice=lattice)
    in_pieces = job.model.is_too_long(line.text, job.search.max_units)
    return LineResult(line, best, Lattice() if in_pieces else lattice)


def _drawn(job: TranslationJob, line: InputLine) -> list[Translation]:
    """Samples of a line: by the seed and the line's number alone, whatever else is translated with it."""
    import numpy as np

    from dragoman.models.translation import Translation

    choice = job.drawing
    assert choice.sample is not None
    if not line.text.strip():
        return [Translation("", (), 0.0, 0.0, ())] * choice.sample
    own = np.random.SeedSequence([1 if choice.seed is None else choice.seed, line.number])
    seed = int(own.generate_state(1, np.uint64)[0])
    temperature = 1.0 if choice.temperature is None else choice.temperature
    return job.model.sample(line.text, choice.sample, seed, temperature=temperature)[0]


# -- what is written ---------------------------------------------------------------------------------------------------


def _printed(job: TranslationJob, result: LineResult) -> str:
    if job.shown.as_json:
        return json.dumps(_as_dict(job.model, result), ensure_ascii=False, allow_nan=False)
    if job.as_list:
        return "\n".join(moses_line(result.line.number - 1, one) for one in result.found)
    return result.found[0].text


def moses_line(number: int, told: Translation) -> str:
    """A line of an n-best list in the format of Moses; lines are counted from 0.

    >>> from dragoman.models.translation import Translated
    >>> moses(0, Translated("a dog", ("a", "dog"), -1.5, -0.5, ("ein", "hund")))
    '0 ||| a dog ||| LogProb= -1.5 ||| -0.5'
    """
    return f"{number} ||| {told.text} ||| LogProb= {told.log_prob:.7g} ||| {told.score:.7g}"


def _as_dict(model: BaseTranslator, result: LineResult) -> dict[str, Any]:
    best = [_scores(one) for one in result.found]
    return {"source": result.line.text, **best[0], "n_best": best, "attention": _attention(model, result.found[0])}


def _scores(told: Translation) -> dict[str, Any]:
    from dragoman.evaluation.likelihood import finite_or_none

    scores = {"log_prob": finite_or_none(told.log_prob), "score": finite_or_none(told.score)}
    found = {"translation": told.text, **scores, "finished": told.finished}
    return found | ({"replaced": [one.as_dict() for one in told.replacements]} if told.replacements else {})


def _attention(model: BaseTranslator, told: Translation) -> dict[str, Any] | None:
    """Between words, or between units if letters are read, `</s>` the last; null where it is not known."""
    found = attention_matrix(model, told, units=reads_characters(model))
    if found is None:
        return None
    return {"target": found.target, "source": found.source, "weights": found.matrix.round(DIGITS).tolist()}


def _aligned(job: TranslationJob, result: LineResult) -> str:
    """The pairs of the translation; none if the line is blank or was translated in pieces."""
    from dragoman.evaluation.alignment import to_pharaoh

    best = result.found[0]
    found = attention_matrix(job.model, best, units=reads_characters(job.model))
    return "" if found is None else to_pharaoh(attention_links(found, best))


@dataclass(frozen=True)
class LatticeWord:
    """A hypothesis of a search, its word spelled out."""

    id: int
    parent: int | None
    word: str
    log_prob: float
    score: float
    fate: str


def _lattice(job: TranslationJob, result: LineResult) -> str:
    from dragoman.report.lattice import lattice_text

    assert job.shown.lattice is not None and result.lattice is not None
    words = job.model.target.vocab.tokens
    nodes = [
        LatticeWord(node.id, node.parent, words[node.token], node.log_prob, node.score, node.fate)
        for node in result.lattice.nodes
    ]
    line = result.line
    if job.shown.lattice.suffix in (".jsonl", ".json"):
        about = {"line": line.number, "source": line.text, "translation": result.found[0].text}
        return json.dumps({**about, "nodes": [vars(node) for node in nodes]}, ensure_ascii=False)
    tree = lattice_text(result.lattice.nodes, spell=words.__getitem__) if nodes else ""
    return (
        f"line {line.number}: {line.text}\n\n{tree or '(blank, or translated in pieces: no single search to show)'}\n"
    )
