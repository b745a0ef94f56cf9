"""dragoman demo"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from dragoman.cli.messages import info, suggest_command
from dragoman.cli.option_groups import option
from dragoman.cli.options import Seed
from dragoman.cli.progress import console_callbacks


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
    from dragoman.io.storage import REPORT_FILE

    report = run_demo(output, seed, console_callbacks())
    print(f"\n{report.summary(colour=sys.stdout.isatty())}", flush=True)
    info("")
    for command in report.commands:
        suggest_command(*command.words, line=command.line)
    info(f"report: {output / REPORT_FILE}")
