"""dragoman tune"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from dragoman.cli.command_lookup import find_command
from dragoman.cli.messages import info
from dragoman.cli.option_groups import argument, option
from dragoman.cli.run_progress import run_callbacks
from dragoman.cli.train_many import Jobs, RunsOutput
from dragoman.core.errors import is_installed, require_extra


def tune(
    file: Annotated[Path, argument("FILE", "A YAML file that describes the search.")],
    output: RunsOutput = None,
    trials: Annotated[int | None, option("--trials N", "Number of trials, instead of that in the file.", min=1)] = None,
    minutes: Annotated[
        float | None,
        option("--minutes N", "Minutes for all trials together, instead of those in the file."),
    ] = None,
    jobs: Jobs = None,
) -> None:
    """Search for the settings that are best on a dev text.

    The file names a command, the options that all trials share, and what to try: ranges of numbers or lists of values.
    Optuna chooses the settings of each trial by the results before it. Prints the trials and the command with the best
    settings, whose model is kept; trials.svg in the output directory shows the trials and the influence of each option.

    If it is stopped or killed, the same command continues it; with more --trials or --minutes it searches further.

    \b
    Example of a file:
      command: train recurrent
      options: {text: train.txt, dev-text: dev.txt, max-epochs: 5}
      search:
        hidden: {low: 64, high: 512, log: true}
        dropout: {low: 0.0, high: 0.6}
        cell: [gru, lstm]
      objective: perplexity
      trials: 20
      output: tuned

    \b
    Example:
      dragoman tune search.yaml
      dragoman tune search.yaml --trials 40 --jobs 2
    """
    require_extra("optuna", "tune")
    from dragoman.experiments.study import tune as run_study
    from dragoman.experiments.study_results import TRIALS_FIGURE, TRIALS_FILE, TRIALS_TABLE_FILE, format_objective
    from dragoman.experiments.tuning import read_tuning
    from dragoman.report.runs import draw_study, influence_text, trials_table

    tuning = read_tuning(file, find_command, output, trials, minutes)
    with run_callbacks("tune") as callbacks:
        results = run_study(tuning, jobs, callbacks)
    print(trials_table(results))
    if influence := influence_text(results):
        print(f"\n{influence}")
    files = [TRIALS_FILE, TRIALS_TABLE_FILE]
    if (best := results.best) is not None:
        print(
            f"\nbest: trial {best.number}, {tuning.objective} {format_objective(best.value or 0.0)}, in {best.run.model}"
        )
        print(results.best_command)
        if is_installed("matplotlib"):
            draw_study(results, tuning.output / TRIALS_FIGURE, f"{tuning.source.command.name}: {file.name}")
            files.append(TRIALS_FIGURE)
        else:
            info("Matplotlib is not installed, so there is no figure; run: pip install 'dragoman[plot]'")
    info(f"{tuning.output}: {', '.join(files)}")
