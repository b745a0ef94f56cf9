"""dragoman train-many"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.command_lookup import find_command
from dragoman.cli.errors import FAILED
from dragoman.cli.messages import info
from dragoman.cli.option_groups import argument, option
from dragoman.cli.run_progress import run_callbacks

Jobs = Annotated[int | None, option("--jobs N", "Runs at a time. Default: as many as fit the cores.", min=1)]
RunsOutput = Annotated[
    Path | None, option("--output, -o DIR", "Directory of models, logs and results. Default: `output` of the file.")
]


def train_many(
    file: Annotated[Path, argument("FILE", "A YAML file that describes the runs.")],
    output: RunsOutput = None,
    jobs: Jobs = None,
) -> None:
    """Train with every combination of settings and seeds.

    The file names a command, the options that all runs share, and a list of values for each option that varies. Each
    run is a process of its own, with a model directory and a log; several run at a time. At the end, a table shows for
    each setting the mean and the range over the seeds; results.json and results.tsv in the output directory have all
    figures.

    If it is stopped or killed, the same command continues it: finished runs are kept. If a run fails, the others go on.

    \b
    Example of a file:
      command: train recurrent
      options: {text: train.txt, dev-text: dev.txt, max-epochs: 5}
      grid: {hidden: [100, 200], seed: [1, 2, 3]}
      evaluate: {text: test.txt}
      output: runs

    \b
    Example:
      dragoman train-many grid.yaml
      dragoman train-many grid.yaml --jobs 4 -o more-runs
    """
    from dragoman.experiments.grid import read_grid
    from dragoman.experiments.grid import train_many as run_grid
    from dragoman.experiments.grid_results import RESULTS_FILE, TABLE_FILE
    from dragoman.report.runs import grid_table

    grid = read_grid(file, find_command, output)
    with run_callbacks("train-many") as callbacks:
        results = run_grid(grid, jobs, callbacks)
    print(grid_table(results))
    info(f"{grid.output}: {RESULTS_FILE}, {TABLE_FILE}")
    unfinished = [result for result in results.results if result.status != "finished"]
    for result in unfinished:
        info(f"{result.status}: {result.run.name}: {result.failure or 'was stopped'} ({result.run.log})")
    if unfinished:
        info(f"{len(unfinished)} of {len(grid.runs)} runs are not finished; the same command tries them again")
        raise typer.Exit(FAILED)
