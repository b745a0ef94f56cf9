"""dragoman align"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

from dragoman.cli.messages import info, status, suggest_command
from dragoman.cli.option_groups import OptionGroup, option, with_option_groups
from dragoman.cli.options import Force, PairFileOptions, Src, SrcField, Tgt, TgtField, lock_output
from dragoman.core.errors import DataError, did_you_mean

if TYPE_CHECKING:
    from dragoman.align.aligner import Aligner
    from dragoman.align.em import EMProgress
    from dragoman.data.corpus import ParallelCorpus
    from dragoman.data.tokenizer import LinePairs


@dataclass(frozen=True)
class AlignerOptions(OptionGroup):
    """How an aligner is trained, or which one is used."""

    model: Annotated[
        str,
        option(
            "--model ibm1|ibm2|hmm",
            "ibm1: lexical probabilities; ibm2: also the distance from the diagonal; hmm: also the position of the "
            "previous word, fertilities and agreement of the directions.",
        ),
    ] = "hmm"
    iterations: Annotated[int, option("--iterations N", "EM iterations of each model.", min=1)] = 5
    prior: Annotated[
        float | None,
        option(
            "--prior X",
            "Dirichlet prior: smaller values give fewer translations per word; 0: none, maximum likelihood. Default: 0.1 "
            "for hmm, otherwise 0.01.",
            min=0.0,
        ),
    ] = None
    trained: Annotated[Path | None, option("--with DIR", "Use this aligner instead of training one.")] = None
    output: Annotated[
        Path | None, option("--output, -o DIR", "Directory for the aligner, with its lexicon in lexicon.tsv.")
    ] = None
    force: Force = False

    def check(self) -> None:
        from dragoman.io.storage import ALIGNER_DIRECTORY, check_output_directory

        if self.trained is not None:
            if self.output is not None:
                raise DataError(f"--with {self.trained}: is saved already; remove --output")
            if self != AlignerOptions(trained=self.trained, force=self.force):
                raise DataError("--with uses an aligner without changes; remove --model, --iterations and --prior")
        if self.output is not None:
            check_output_directory(self.output, replace=self.force, kind=ALIGNER_DIRECTORY)
            lock_output(self.output)


Symmetrization = Annotated[
    str,
    option(
        "--symmetrise NAME",
        "Symmetrisation of the two directions: grow-diag-final-and, intersection, union; forward or backward for one "
        "direction only.",
    ),
]


@with_option_groups
def align(
    src: Src = None,
    tgt: Tgt = None,
    src_field: SrcField = None,
    tgt_field: TgtField = None,
    pair_file: PairFileOptions = PairFileOptions(),
    options: AlignerOptions = AlignerOptions(),
    symmetrise: Symmetrization = "grow-diag-final-and",
    gold: Annotated[
        Path | None,
        option("--gold FILE", "Gold alignments to compare with: 0-0 is a sure link, 1?2 a possible one."),
    ] = None,
    as_json: Annotated[bool, option("--json", "With --gold: print one JSON object instead of alignments.")] = False,
) -> None:
    """Align the words of two texts.

    Prints one line for each sentence pair: in `0-0 1-2` the first words are linked, and the second word of the source
    with the third of the target. The aligner is trained on the texts in both directions; words are separated by spaces.
    Ten thousand sentence pairs or more give good alignments.

    With --gold, precision, recall and alignment error rate are reported.

    \b
    Example:
      dragoman align --src train.de --tgt train.en -o aligner > train.align
      dragoman align --pairs memory.tmx --src-lang de --tgt-lang en -o aligner > memory.align
      dragoman align --src test.de --tgt test.en --with aligner --gold test.align --json
    """
    from dragoman.align.symmetrization import SYMMETRIZATIONS
    from dragoman.evaluation.alignment import count_all_links, read_gold_alignments, to_pharaoh
    from dragoman.io.storage import LEXICON_FILE

    options.check()
    if symmetrise not in SYMMETRIZATIONS:
        raise DataError(f"--symmetrise {symmetrise}: {did_you_mean(symmetrise, SYMMETRIZATIONS)}")
    if as_json and gold is None:
        raise DataError("--json prints a comparison; give gold alignments with --gold FILE")
    lines = pair_file.read(src, tgt, src_field, tgt_field)
    gold_alignments = None if gold is None else read_gold_alignments(gold)
    if gold_alignments is not None and len(gold_alignments) != len(lines.source):
        number = f"{len(gold_alignments):,} lines and there are {len(lines.source):,} pairs"
        raise DataError(f"{gold} has {number}; give one line per pair")
    pairs, aligner = _train_or_load(options, lines)
    with status("aligning"):
        links = aligner.align(pairs, symmetrise)
    if options.output is not None:
        aligner.save(options.output, replace=options.force, data={"train": pairs.fingerprint()})
    alignments = [links[pair] for pair in range(len(links))]
    if not as_json:
        sys.stdout.writelines(f"{to_pharaoh(alignment)}\n" for alignment in alignments)
    if gold_alignments is not None:
        counts = count_all_links(alignments, gold_alignments)
        if as_json:
            print(json.dumps({**counts.as_dict(), "model": aligner.forward.model, "symmetrise": symmetrise}))
        shares = {"precision": counts.precision, "recall": counts.recall, "alignment error rate": counts.error_rate}
        defined = [f"{name} {100 * share:.1f}%" for name, share in shares.items() if not math.isnan(share)]
        info(f"{gold}: {', '.join(defined)}")
    if options.output is not None:
        info(f"{options.output}: the aligner; its lexicon is in {options.output / LEXICON_FILE}")
        suggest_command("align", "--src", "FILE", "--tgt", "FILE", "--with", options.output)


def _train_or_load(options: AlignerOptions, lines: LinePairs) -> tuple[ParallelCorpus, Aligner]:
    """Return the encoded texts and an aligner, trained on them or loaded."""
    from dragoman.align.aligner import Aligner
    from dragoman.data.corpus import Corpus, ParallelCorpus
    from dragoman.data.vocabulary import UNK

    if options.trained is not None:
        aligner = Aligner.load(options.trained)
        lexicon = aligner.forward.lexicon
        source = Corpus.from_sentences(lines.source, lexicon.source)
        target = Corpus.from_sentences(lines.target, lexicon.target)
        for name, text in (("--src", source), ("--tgt", target)):
            unknown = int((text.ids == UNK).sum())
            if 2 * unknown > text.num_words:
                problem = f"{unknown:,} of {text.num_words:,} words are unknown to --with {options.trained}"
                info(f"{name}: {problem}; are --src and --tgt in the languages of the aligner?")
        return ParallelCorpus(source, target), aligner
    pairs = ParallelCorpus(Corpus.from_sentences(lines.source), Corpus.from_sentences(lines.target))
    start_time = perf_counter()

    def report(direction: str, progress: EMProgress) -> None:
        if sys.stderr.isatty() or progress.iteration == 1:
            name = f"{direction}, {progress.model}, iteration {progress.iteration}"
            info(f"{name}: perplexity {progress.perplexity:,.2f}; {perf_counter() - start_time:,.1f} s")

    aligner = Aligner.train(pairs, options.model, options.iterations, prior=options.prior, report=report)
    info(f"{len(pairs):,} pairs: trained in {perf_counter() - start_time:,.1f} seconds")
    return pairs, aligner
