"""dragoman align"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.messages import info, status, suggest_command
from dragoman.cli.option_groups import OptionGroup, with_option_groups
from dragoman.cli.options import Force
from dragoman.cli.pair_options import Src, SrcField, Tgt, TgtField, read_pairs
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.align.aligner import Aligner
    from dragoman.align.em import EMProgress
    from dragoman.data.alignments import WordAlignments
    from dragoman.data.corpus import Corpus, ParallelCorpus
    from dragoman.evaluation.alignment import AlignmentCounts, GoldAlignment


@dataclass(frozen=True)
class AlignerOptions(OptionGroup):
    """How an aligner is learned, if not taken as it is."""

    model: Annotated[
        str,
        typer.Option(
            "--model",
            metavar="ibm1|ibm2|hmm",
            help="ibm1: words alone count; ibm2: and how near they are to the diagonal; hmm: and where the word before "
            "came from.",
        ),
    ] = "hmm"
    iterations: Annotated[int, typer.Option("--iterations", min=1, metavar="N", help="Of EM, with each model.")] = 5
    prior: Annotated[
        float,
        typer.Option(
            "--prior",
            min=0.0,
            metavar="X",
            help="The smaller, the fewer translations a word has; 0: none, maximum likelihood.",
        ),
    ] = 0.01
    ready: Annotated[
        Path | None,
        typer.Option("--with", metavar="DIR", help="Use this aligner instead of learning one.", show_default=False),
    ] = None

    def check(self) -> None:
        if self.ready is not None and AlignerOptions(ready=self.ready) != self:
            raise DataError("--with takes an aligner as it is: no --model, --iterations or --prior")


@with_option_groups
def align(
    src: Src,
    tgt: Tgt,
    src_field: SrcField = None,
    tgt_field: TgtField = None,
    learning: AlignerOptions = AlignerOptions(),
    symmetrise: Annotated[
        str,
        typer.Option(
            "--symmetrise",
            metavar="HOW",
            help="How the two directions are brought together: grow-diag-final-and, intersection, union; forward or "
            "backward: one of them alone.",
        ),
    ] = "grow-diag-final-and",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Keep the aligner, with its lexicon as lexicon.tsv.",
            show_default=False,
        ),
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option(
            "--gold",
            metavar="FILE",
            help="True alignments, to be compared with: 0-0 is a sure link, 1?2 a possible one.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --gold: one JSON object instead of alignments.", show_default=False)
    ] = False,
    force: Force = False,
) -> None:
    """Align the words of two texts.

    Prints one line for each pair of sentences: `0-0 1-2` says that the first words belong together, and the second of
    the source and the third of the target. Learned from the two texts themselves, in both directions; words are what
    is between spaces. The more sentences there are, the better: ten thousand do.

    With --gold, precision, recall and alignment error rate (0% is perfect) are told.

    \b
    Example:
      dragoman align --src train.de --tgt train.en -o aligner > train.align
      dragoman align --src test.de --tgt test.en --with aligner --gold test.align --json
    """
    from dragoman.align.symmetrization import SYMMETRIZATIONS
    from dragoman.evaluation.alignment import count_all_links

    learning.check()
    if symmetrise not in SYMMETRIZATIONS:
        raise DataError(f"--symmetrise {symmetrise}: there are {', '.join(SYMMETRIZATIONS)}")
    if as_json and gold is None:
        raise DataError("--json tells of a comparison: give the true alignments with --gold FILE")
    _check_output(output, learning, force=force)
    lines = read_pairs(src, tgt, src_field, tgt_field)
    true = None if gold is None else _read_gold(gold, len(lines.source))
    pairs, aligner = _made(learning, lines)
    with status("aligning"):
        links = aligner.align(pairs, symmetrise)
    if output is not None:
        aligner.save(output, replace=force, data={"train": pairs.fingerprint()})
    counts = None if true is None else count_all_links([links[pair] for pair in range(len(links))], true)
    if as_json and counts is not None:
        print(json.dumps({**counts.as_dict(), "model": aligner.forward.model, "symmetrise": symmetrise}))
    else:
        _write(links)
    if counts is not None:
        info(f"{gold}: {_told(counts)}")
    if output is not None:
        from dragoman.io.storage import LEXICON_FILE

        info(f"{output}: the aligner; {output / LEXICON_FILE} has its lexicon")
        suggest_command("align", "--src", "FILE", "--tgt", "FILE", "--with", output)


def _check_output(output: Path | None, learning: AlignerOptions, *, force: bool) -> None:
    from dragoman.io.storage import ALIGNER_DIRECTORY, check_output_directory

    if output is None:
        return
    if learning.ready is not None:
        raise DataError(f"--with {learning.ready}: is kept already; leave --output out")
    check_output_directory(output, replace=force, kind=ALIGNER_DIRECTORY)


def _made(learning: AlignerOptions, lines: Any) -> tuple[ParallelCorpus, Aligner]:
    """The texts as numbers, and an aligner: learned from them, or a ready one."""
    from dragoman.align.aligner import Aligner
    from dragoman.data.corpus import Corpus, ParallelCorpus

    ready = None if learning.ready is None else Aligner.load(learning.ready)
    vocabs = (None, None) if ready is None else (ready.forward.lexicon.source, ready.forward.lexicon.target)
    texts = zip((lines.source, lines.target), vocabs, strict=True)
    source, target = (Corpus.from_sentences(text, vocab) for text, vocab in texts)
    pairs = ParallelCorpus(source, target)
    if ready is not None:
        _warn_of_strangers(learning, source, target)
        return pairs, ready
    began = perf_counter()
    told = _Teller(began)
    aligner = Aligner.train(pairs, learning.model, learning.iterations, prior=learning.prior, report=told)
    info(f"{len(pairs):,} pairs: learned in {perf_counter() - began:,.1f} seconds")
    return pairs, aligner


def _warn_of_strangers(learning: AlignerOptions, *texts: Corpus) -> None:
    """Tell if a text is mostly of words that an aligner never saw: it may be the wrong one."""
    from dragoman.data.vocabulary import UNK

    for option, text in zip(("--src", "--tgt"), texts, strict=True):
        unknown = int((text.ids == UNK).sum())
        if 2 * unknown > text.num_words:
            told = f"{unknown:,} of {text.num_words:,} words are unknown to --with {learning.ready}"
            info(f"{option}: {told}; are --src and --tgt the languages that it learned from?")


@dataclass
class _Teller:
    """A line after each model of each direction."""

    began: float

    def __call__(self, direction: str, progress: EMProgress) -> None:
        if sys.stderr.isatty() or progress.iteration == 1:
            seconds = perf_counter() - self.began
            what = f"{direction}, {progress.model}, iteration {progress.iteration}"
            info(f"{what}: perplexity {progress.perplexity:,.2f}; {seconds:,.1f} s")


def _read_gold(path: Path, pairs: int) -> list[GoldAlignment]:
    """The true alignments, refused before anything is learned if there are more or fewer than pairs."""
    from dragoman.evaluation.alignment import read_gold_alignments

    found = read_gold_alignments(path)
    if len(found) != pairs:
        raise DataError(f"{path} has {len(found):,} lines but there are {pairs:,} pairs; give one alignment for each")
    return found


def _told(counts: AlignmentCounts) -> str:
    """Precision, recall and error rate, those that there are."""
    shares = {"precision": counts.precision, "recall": counts.recall, "alignment error rate": counts.error_rate}
    return ", ".join(f"{name} {100 * share:.1f}%" for name, share in shares.items() if not math.isnan(share))


def _write(links: WordAlignments) -> None:
    """One line for each pair."""
    from dragoman.evaluation.alignment import to_pharaoh

    for pair in range(len(links)):
        sys.stdout.write(f"{to_pharaoh(links[pair])}\n")
    sys.stdout.flush()
