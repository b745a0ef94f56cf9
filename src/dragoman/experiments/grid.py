"""A grid of trainings: every combination of settings and seeds, as many at a time as fit the cores."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from time import monotonic

from pydantic import Field

from dragoman.core.errors import DataError
from dragoman.core.settings import GivenValue
from dragoman.core.threads import available_cores
from dragoman.experiments.command_options import check_scalar, option_text, read_options
from dragoman.experiments.directories import claim_directory
from dragoman.experiments.grid_results import GridResults
from dragoman.experiments.run_files import TRANSLATOR, FindCommand, RunFile, RunSource, read_run_file, run_name
from dragoman.experiments.run_pool import PoolStatus, RunCallbacks, RunPool, possible_jobs, wait_for_writers
from dragoman.experiments.runs import DEV, TEST, Run, RunRecord
from dragoman.io.files import directory_lock

SETTING = "setting"  # the name of the column of `settings`
MAX_RUNS = 1000
SHOW_SECONDS = 0.5  # between two looks at the progress of the runs
BEHAVIOUR = "keeps finished runs and continues the others when it runs again"


class GridFile(RunFile):
    """The file of `dragoman train-many`."""

    grid: dict[str, object] = Field(default_factory=dict)
    """Lists of values of options. There is one run for each combination of values."""
    settings: dict[str, object] = Field(default_factory=dict)
    """Groups of options by their names. Each combination of the grid is run with each group."""
    evaluate: dict[str, object] = Field(default_factory=dict)
    """Options of `dragoman evaluate` for the test text. Default: no test text."""


@dataclass(frozen=True)
class Grid:
    """The runs of a grid."""

    source: RunSource
    output: Path
    runs: tuple[Run, ...]

    @property
    def threads(self) -> int:
        return self.source.threads


def read_grid(path: Path, find_command: FindCommand, output: Path | None = None) -> Grid:
    """Read the file of a grid. All options, files and values are checked.

    Args:
        find_command: Returns a command by its name.
        output: Replaces the output in the file.
    """
    source, settings, given = read_run_file(path, GridFile, find_command)
    directory = output_directory(path, output, settings.output)
    tests = read_options(given["evaluate"], "evaluate") if "evaluate" in given else {}
    if tests:
        source.check_evaluation(tests)
    groups, values = _read_groups(given.get("settings")), _read_values(given.get("grid"))
    _check_disjoint(source, groups, values)
    combinations = [(group, chosen) for group in groups for chosen in product(*values.values())]
    if len(combinations) > MAX_RUNS:
        raise DataError(f"{path}: {len(combinations):,} runs; there may be {MAX_RUNS:,} at most, so leave some out")
    runs, names = [], set[str]()
    for group, chosen in combinations:
        varied = {**groups[group], **dict(zip(values, chosen, strict=True))}
        source.check(varied)
        shown = {SETTING: group} if group else {}
        shown |= {name: option_text(value.value) for name, value in zip(values, chosen, strict=True)}
        name = run_name([("" if key == SETTING else key, value) for key, value in shown.items()], names)
        # The dev loss of translators is that of training, because translating the dev text takes long.
        dev = {} if source.command.name == TRANSLATOR else source.dev_options
        runs.append(source.run(name, directory, varied, {DEV: dev, TEST: tests}, shown))
    return Grid(source, directory, tuple(runs))


def output_directory(path: Path, option: Path | None, in_file: str | None) -> Path:
    """Return the directory of an option, or else that of the file."""
    if option is None and in_file is None:
        raise DataError(f"{path}: output is missing; write `output: DIR`, or give --output DIR")
    return option or Path(in_file or "")


def _read_groups(section: GivenValue | None) -> dict[str, dict[str, GivenValue]]:
    """Return the options of each group by its name; without groups, one without a name and options."""
    if section is None or not section.value:
        return {"": {}}
    if not isinstance(section.value, dict):
        raise DataError(f"{section.origin}: settings holds no groups; write `name:` lines, and options under them")
    groups = {name: read_options(group, name) for name, group in section.value.items()}
    for group in groups.values():
        for option, value in group.items():
            check_scalar(option, value)
    return groups


def _read_values(section: GivenValue | None) -> dict[str, list[GivenValue]]:
    """Return the values of each option of the grid."""
    values: dict[str, list[GivenValue]] = {}
    for name, given in ({} if section is None else read_options(section, "grid")).items():
        if not isinstance(given.value, list) or not given.value:
            problem = f"{name} {option_text(given.value)}: must be a list of values in square brackets"
            raise DataError(f"{given.origin}: {problem}, such as [1, 2, 3]")
        values[name] = [check_scalar(name, GivenValue(value, given.origin)) for value in given.value]
        texts = [option_text(value.value) for value in values[name]]
        if repeated := next((text for text in texts if texts.count(text) > 1), None):
            raise DataError(f"{given.origin}: {name} has {repeated} twice; remove one of them")
    return values


def _check_disjoint(
    source: RunSource, groups: dict[str, dict[str, GivenValue]], values: dict[str, list[GivenValue]]
) -> None:
    """Raise an error if an option is given in two sections: one of them would have no effect."""
    sections = {"options": source.options, **{f"settings, {name}": group for name, group in groups.items()}}
    for name, section in sections.items():
        for option in section.keys() & values.keys():
            raise DataError(f"{values[option][0].origin}: {option} is also in {name}; remove one of them")


def train_many(grid: Grid, jobs: int | None = None, callbacks: RunCallbacks = RunCallbacks()) -> GridResults:
    """Run what is not finished of a grid, and return the results. They are also written to the output directory.

    Args:
        jobs: Runs at a time. Default: as many as fit the cores.
    """
    with directory_lock(grid.output):
        claim_directory(grid.output, "train-many", BEHAVIOUR)
        records = {run.name: run.read_record() for run in grid.runs}
        for run in grid.runs:
            run.check_record(records[run.name])
        waiting = [run for run in grid.runs if run.pending_steps(records[run.name])]
        cores = available_cores()
        jobs = jobs or possible_jobs(cores, grid.threads, len(waiting))
        if len(waiting) < len(grid.runs):
            callbacks.info(f"{grid.output}: {len(grid.runs) - len(waiting)} of {len(grid.runs)} runs are finished")
        if waiting:
            callbacks.info(describe_jobs(len(waiting), jobs, grid.threads, cores))
        wait_for_writers(waiting, callbacks.info)
        results = GridResults(grid.source.command.name, grid.runs)
        with RunPool(jobs, grid.threads) as pool:
            _run_all(pool, waiting, results, grid, callbacks)
        results.write(grid.output)
        return results


def describe_jobs(runs: int | None, jobs: int, threads: int, cores: int) -> str:
    """Return what is going to be done.

    >>> describe_jobs(6, 2, 1, 2), describe_jobs(6, 4, 2, 4)
    ('6 runs, 2 at a time, 1 thread each', '6 runs, 4 at a time, 2 threads each: more threads than the 4 cores')
    """
    caution = f": more threads than the {cores} core{'s' * (cores != 1)}" if jobs * threads > cores else ""
    count = "" if runs is None else f"{runs} run{'s' * (runs != 1)}, "
    return f"{count}{jobs} at a time, {threads} thread{'s' * (threads != 1)} each{caution}"


def _run_all(pool: RunPool, waiting: Iterable[Run], results: GridResults, grid: Grid, callbacks: RunCallbacks) -> None:
    """Run all runs that are waiting."""
    queue, failed, total, start = deque(waiting), 0, len(grid.runs), monotonic()
    first = total - len(queue)
    finished = first
    while queue or not pool.is_idle:
        while queue and pool.has_room:
            run = queue.popleft()
            callbacks.info(f"{run.name}: {'resumed' if run.is_started else 'started'}")
            pool.start(run)
        for run in pool.wait(SHOW_SECONDS):
            record = run.read_record()
            is_finished = not run.pending_steps(record)
            failed, finished = failed + (not is_finished), finished + is_finished
            callbacks.info(_report_end(run, record, results.describe(run)))
            results.write(grid.output)
        done = finished + failed - first
        left = (monotonic() - start) / done * (total - first - done) if done else None
        callbacks.show(PoolStatus(pool.status(), finished, failed, total, left))


def _report_end(run: Run, record: RunRecord, result: str) -> str:
    if record.failure:
        return f"{run.name}: failed: {record.failure} ({run.log})"
    if run.pending_steps(record):
        return f"{run.name}: was stopped; the same command continues it"
    return f"{run.name}: finished{result and ': ' + result}"
