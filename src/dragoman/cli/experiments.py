"""dragoman demo, dragoman ladder"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dragoman.cli.messages import info, suggest_command
from dragoman.cli.option_groups import OptionGroup, option, with_option_groups
from dragoman.cli.options import Seed, SrcLang, TgtLang, lock_output
from dragoman.cli.progress import console_callbacks
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.experiments.pipeline import ExperimentReport


def demo(
    output: Annotated[Path, option("--output, -o DIR", "Directory for texts, models and report.")] = Path("runs/demo"),
    seed: Seed = 1,
) -> None:
    """Train language models and translators on text from the lab.

    The text is sampled from the grammar of the lab (see dragoman lab): German sentences with English translations,
    whose exact probabilities are known. Modified Kneser-Ney, an LSTM, a plain encoder-decoder and one with attention
    are compared with the best possible perplexity. A sentence is translated and its attention is shown. report.html
    contains everything, with figures.

    \b
    Example:
      dragoman demo
    """
    from dragoman.experiments.demo import run_demo

    lock_output(output)
    report = run_demo(output, seed, console_callbacks())
    print(f"\n{report.summary(color=sys.stdout.isatty())}", flush=True)
    info("")
    _suggest_commands(report, output)


@dataclass(frozen=True)
class CorpusOptions(OptionGroup):
    """The user's texts."""

    src: Annotated[str | None, option("--src FILE", "Your text to translate from, one sentence per line.")] = None
    tgt: Annotated[str | None, option("--tgt FILE", "Its translation, line by line.")] = None
    dev_src: Annotated[str | None, option("--dev-src FILE", "Dev text. Default: lines of --src are held out.")] = None
    dev_tgt: Annotated[str | None, option("--dev-tgt FILE", "The translation of --dev-src.")] = None
    test_src: Annotated[
        str | None, option("--test-src FILE", "Text to compare models on. Default: held out as well.")
    ] = None
    test_tgt: Annotated[str | None, option("--test-tgt FILE", "The translation of --test-src.")] = None
    text: Annotated[str | None, option("--text FILE", "Instead of --src and --tgt: text of one language.")] = None
    dev_text: Annotated[str | None, option("--dev-text FILE", "Dev text. Default: held out.")] = None
    test_text: Annotated[str | None, option("--test-text FILE", "Text to compare models on. Default: held out.")] = None
    src_lang: SrcLang = None
    tgt_lang: TgtLang = None


Minutes = Annotated[
    float | None,
    option(
        "--minutes N",
        "With your own text: minutes for everything together (default 20). With the text of the lab: time limit of "
        "each training run by gradient descent (default: none).",
    ),
]


@with_option_groups
def ladder(
    output: Annotated[Path, option("--output, -o DIR", "Directory for texts, models, tables and figures.")] = Path(
        "runs/ladder"
    ),
    corpus: CorpusOptions = CorpusOptions(),
    minutes: Minutes = None,
    seed: Seed = 1,
    pairs: Annotated[
        str | None,
        option(
            "--pairs FILE|N",
            "Instead of --src and --tgt: one file with both sides (TSV, TMX, PO, XLIFF). A number: with the text of the "
            "lab, sentence pairs to train on; default 20,000.",
        ),
    ] = None,
    models: Annotated[str, option("--models NAME,...", "With the text of the lab: train only these models.")] = "",
) -> None:
    """Compare every kind of model on your text or the lab's.

    With --src and --tgt: the topics of the tutorial on your parallel text, within a time limit. N-grams, classes,
    caches, features, networks and mixtures of them predict it; words are aligned; translators without and with
    attention translate it, with several searches and, if there is time, as an ensemble. Lines to compare models on are
    held out unless you give them. report.html is one page with all tables and figures; ladder.md has the same as
    Markdown. With --text: one language.

    Without a text: German and English of the lab are used (see dragoman lab). All models are compared with the exact
    floor of perplexity and on minimal pairs, and translators with every encoder and attention with the true alignment.

    If it is stopped, the same command resumes it.

    \b
    Example:
      dragoman ladder --src train.de --tgt train.en --minutes 20 -o my-ladder
      dragoman ladder --pairs memory.tmx --src-lang de --tgt-lang en -o my-ladder
      dragoman ladder --text book.txt --minutes 5 -o my-book
      dragoman ladder
      dragoman ladder --models kn-5,feed-forward,attn-mlp --pairs 5000 -o small
    """
    lock_output(output)
    report = _run_ladder(output, corpus, minutes, seed, pairs, models)
    print(report.summary(color=sys.stdout.isatty()))
    total = "" if report.minutes is None else f"; {report.minutes:.1f} minutes in total"
    info(f"\n{output}: {', '.join(report.files)}{total}")
    _suggest_commands(report, output)


def _run_ladder(
    output: Path, corpus: CorpusOptions, minutes: float | None, seed: int, pairs: str | None, models: str
) -> ExperimentReport:
    """Run the ladder on the user's text if there is one, otherwise on that of the lab."""
    from dragoman.core.settings import GivenValue, validate
    from dragoman.experiments.corpus_data import CorpusFiles
    from dragoman.experiments.corpus_ladder import MINUTES, run_corpus_ladder
    from dragoman.experiments.lab_ladder import PAIRS, run_lab_ladder
    from dragoman.training.config import TrainingConfig

    validate(TrainingConfig, {"minutes": GivenValue(minutes, "--minutes")}, "command line")
    lab_pairs = int(pairs) if pairs is not None and pairs.isdecimal() else None
    if lab_pairs == 0:
        raise DataError("--pairs 0: give at least one sentence pair")
    files = CorpusFiles(**vars(corpus), pairs=pairs if lab_pairs is None else None)
    files.check()
    callbacks = console_callbacks()
    if not files.given:
        return run_lab_ladder(
            output, pairs=lab_pairs or PAIRS, models=models, seed=seed, minutes=minutes, callbacks=callbacks
        )
    if models or lab_pairs is not None:
        name = "--models" if models else f"--pairs {pairs}"
        raise DataError(f"{name} is for the ladder on the text of the lab; leave it out")
    limit = MINUTES if minutes is None else minutes
    return run_corpus_ladder(output, files, minutes=limit, seed=seed, callbacks=callbacks)


def _suggest_commands(report: ExperimentReport, output: Path) -> None:
    from dragoman.io.storage import REPORT_FILE

    for command in report.commands:
        suggest_command(*command.words, line=command.line)
    info(f"report: {output / REPORT_FILE}")
