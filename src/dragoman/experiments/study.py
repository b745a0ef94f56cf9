"""Runs the trials of a search: Optuna chooses settings, and a pool of processes trains with them."""

from __future__ import annotations

import math
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import mean
from time import monotonic

import numpy as np
import optuna
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock, JournalStorage
from optuna.trial import FrozenTrial, Trial, TrialState

from dragoman.core.errors import DataError, DragomanError
from dragoman.core.threads import available_cores
from dragoman.core.yaml_files import read_yaml
from dragoman.experiments.directories import check_settings, claim_directory
from dragoman.experiments.grid import SHOW_SECONDS, describe_jobs
from dragoman.experiments.run_pool import PoolStatus, RunCallbacks, RunPool, possible_jobs, wait_for_writers
from dragoman.experiments.runs import Run, read_metrics
from dragoman.experiments.search_space import Value
from dragoman.experiments.study_results import StudyResults, TrialResult, format_objective
from dragoman.experiments.tuning import Tuning
from dragoman.io.files import LockedError, directory_lock
from dragoman.io.storage import CONFIG_FILE

JOURNAL_FILE = "study.journal"
STUDY = "tune"
RANDOM_TRIALS = 5  # before the sampler learns from results
MIN_TRIALS_TO_STOP = 4  # finished trials before bad ones are stopped
PARTS = 10  # of a training run, at the ends of which trials are compared
FIRST_PART = 3  # at which a trial may be stopped
MIN_TRIALS_OF_INFLUENCE = 8
TOP_SHARE = 0.25  # of the trials: their settings are compared with those of all trials
MAX_REPEATED = 10  # trials in a row with settings that were tried before: then there is hardly anything new to try
MAX_FAILURES = 3  # of the first trials, if no trial has succeeded
SECONDS, FAILURE, RUN_SECONDS, SAME_AS = "seconds", "failure", "run_seconds", "same_as"  # attributes
BEHAVIOUR = "keeps finished trials and continues the others when it runs again"


class _NoLock(JournalFileOpenLock):
    """The lock of a journal in a directory that is locked already. Optuna's would outlive a process that is killed."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        """Do nothing."""


def open_study(tuning: Tuning) -> optuna.Study:
    """Open the study in the output directory, or create it. The directory must be locked."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    path = tuning.output / JOURNAL_FILE
    _remove_incomplete_line(path)
    pruner = optuna.pruners.MedianPruner(n_startup_trials=MIN_TRIALS_TO_STOP, n_warmup_steps=FIRST_PART)
    try:
        storage = JournalStorage(JournalFileBackend(str(path), _NoLock(str(path))))
        return optuna.create_study(
            study_name=STUDY,
            storage=storage,
            pruner=pruner,
            direction="maximize" if tuning.is_maximized else "minimize",
            load_if_exists=True,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path}: damaged ({' '.join(str(error).split())}); delete {tuning.output} to start again"
        ) from None


def _remove_incomplete_line(path: Path) -> None:
    """Remove what a process that was killed has written of the last line of a journal."""
    if path.is_file():
        content = path.read_bytes()
        complete = content.rfind(b"\n") + 1
        if complete < len(content):
            with path.open("r+b") as file:
                file.truncate(complete)


def tune(tuning: Tuning, jobs: int | None = None, callbacks: RunCallbacks = RunCallbacks()) -> StudyResults:
    """Run trials until there are enough, or the time is over, and return the results of all trials.

    Results are also written to the output directory after each trial.

    Args:
        jobs: Trials at a time. Default: as many as fit the cores.
    """
    with directory_lock(tuning.output):
        claim_directory(tuning.output, "tune", BEHAVIOUR)
        check_settings(tuning.output, tuning.identity(), experiment="search")
        cores, threads = available_cores(), tuning.source.threads
        jobs = jobs or possible_jobs(cores, threads, tuning.settings.trials or cores)
        callbacks.info(describe_jobs(tuning.settings.trials, jobs, threads, cores).replace("run", "trial"))
        search = _Search(tuning, open_study(tuning), callbacks)
        with warnings.catch_warnings(), RunPool(jobs, threads) as pool, search.counting_seconds():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            search.run_all(pool)
        return search.write_results()


class _Search:
    """The state of a search while it runs."""

    def __init__(self, tuning: Tuning, study: optuna.Study, callbacks: RunCallbacks):
        self.tuning, self.study, self.callbacks = tuning, study, callbacks
        self.interrupted = self.study.get_trials(states=(TrialState.RUNNING,))
        self.running: dict[str, Trial] = {}  # by the names of their runs
        self.stopped: set[str] = set()  # runs that are worse than the others
        self.said: set[str] = set()  # messages
        self.start = monotonic()
        self.earlier_seconds = float(study.user_attrs.get(SECONDS, 0.0))

    @property
    def seconds(self) -> float:
        """Seconds that the search has taken, in all runs."""
        return self.earlier_seconds + monotonic() - self.start

    @contextmanager
    def counting_seconds(self) -> Iterator[None]:
        """Save the seconds at the end, as after each trial."""
        try:
            yield
        finally:
            self._save_seconds()

    def _save_seconds(self) -> None:
        self.study.set_user_attr(SECONDS, round(self.seconds, 3))

    def run_all(self, pool: RunPool) -> None:
        """Run all trials."""
        wait_for_writers((self.tuning.run(trial.number, {}) for trial in self.interrupted), self.callbacks.info)
        while True:
            while pool.has_room and (trial := self._next_trial()) is not None:
                self._start(pool, trial)
            if pool.is_idle:
                return
            for run in pool.wait(SHOW_SECONDS):
                self._finish(run)
            self._stop_bad_trials(pool)
            self.callbacks.show(self._status(pool))

    def _next_trial(self) -> Trial | None:
        """Return a trial that was interrupted, or a new one; None if there is none to start."""
        number = len(self.study.trials)
        if self.interrupted:
            interrupted = self.interrupted.pop(0)
            self._seed_sampler(interrupted.number)
            return Trial(self.study, interrupted._trial_id)
        settings = self.tuning.settings
        if settings.trials is not None and number >= settings.trials:
            return None
        if self._is_time_over():
            return None
        if all(SAME_AS in trial.user_attrs for trial in self.study.trials[-MAX_REPEATED:]) and number >= MAX_REPEATED:
            self._say_once(
                f"the last {MAX_REPEATED} trials had settings of earlier ones: there is hardly anything new to try"
            )
            return None
        self._seed_sampler(number)
        return self.study.ask()

    def _say_once(self, message: str) -> None:
        if message not in self.said:
            self.said.add(message)
            self.callbacks.info(message)

    def _seed_sampler(self, number: int) -> None:
        """Let the settings of a trial depend only on the seed, its number and the results before it."""
        seed = int(np.random.SeedSequence([self.tuning.settings.seed, number]).generate_state(1)[0])
        self.study.sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=RANDOM_TRIALS)

    def _is_time_over(self) -> bool:
        """Return whether there is no time for another trial that takes as long as those before."""
        if self.tuning.settings.minutes is None:
            return False
        finished = self.study.get_trials(states=(TrialState.COMPLETE,))
        seconds = [trial.user_attrs[RUN_SECONDS] for trial in finished if RUN_SECONDS in trial.user_attrs]
        return self.seconds + (mean(seconds) if seconds else 0.0) > 60 * self.tuning.settings.minutes

    def _start(self, pool: RunPool, trial: Trial) -> None:
        """Start a trial, unless its settings were tried before: then it has the same result."""
        values = {parameter.name: parameter.suggest(trial) for parameter in self.tuning.parameters}
        run = self.tuning.run(trial.number, values)
        same = self._finished_trial(trial.number, values)
        if same is not None:
            trial.set_user_attr(SAME_AS, same.number)
            self.study.tell(trial.number, same.value)
            self.callbacks.info(f"{run.name}: the same settings as trial {same.number}")
            return
        state = "resumed" if run.is_started else "started"
        self.callbacks.info(f"{run.name}: {state}: {describe_values(run)}")
        self.running[run.name] = trial
        pool.start(run)

    def _finished_trial(self, number: int, values: dict[str, Value]) -> FrozenTrial | None:
        """Return an earlier finished trial with these settings; None if there is none."""
        return next(
            (
                other
                for other in self.study.get_trials(states=(TrialState.COMPLETE,))
                if other.number != number and self._values(other) == values
            ),
            None,
        )

    def _values(self, trial: FrozenTrial) -> dict[str, Value]:
        """Return the values of a trial that has been started."""
        fixed = optuna.trial.FixedTrial(trial.params)
        return {parameter.name: parameter.suggest(fixed) for parameter in self.tuning.parameters}

    def _finish(self, run: Run) -> None:
        """Tell the study the result of a run."""
        self._is_bad(run)  # reports the rest of its losses, for trials to come
        trial, record = self.running.pop(run.name), run.read_record()
        trial.set_user_attr(RUN_SECONDS, record.seconds)
        if record.failure:
            self._fail(run, trial, record.failure)
        elif run.pending_steps(record) and run.name in self.stopped:
            self.study.tell(trial.number, state=TrialState.PRUNED)
            self.callbacks.info(f"{run.name}: stopped: worse than the median of the trials before")
        elif run.pending_steps(record):
            self.callbacks.info(f"{run.name}: was stopped; the same command continues it")
        else:
            value = self.tuning.value(run, record)
            if value is None or not math.isfinite(value):
                self._fail(run, trial, f"{self.tuning.objective} is infinite")
            else:
                self.study.tell(trial.number, value)
                result = f"{self.tuning.objective} {format_objective(value)}"
                self.callbacks.info(f"{run.name}: {result}, {record.seconds / 60:.1f} minutes")
        self._save_seconds()
        self._remove_models()
        self.write_results()
        self._check_failures()

    def _fail(self, run: Run, trial: Trial, failure: str) -> None:
        trial.set_user_attr(FAILURE, failure)
        self.study.tell(trial.number, state=TrialState.FAIL)
        self.callbacks.info(f"{run.name}: failed: {failure} ({run.log})")

    def _check_failures(self) -> None:
        """Raise an error if all trials fail: then the reason is not their settings."""
        finished = [trial for trial in self.study.get_trials(deepcopy=False) if trial.state.is_finished()]
        if len(finished) >= MAX_FAILURES and all(trial.state == TrialState.FAIL for trial in finished):
            last = finished[-1].user_attrs.get(FAILURE, "")
            raise DragomanError(f"{self.tuning.output}: all {len(finished)} trials failed, the last one: {last}")

    def _remove_models(self) -> None:
        """Remove the models of finished trials that are not the best."""
        if self.tuning.settings.keep == "all":
            return
        best = self._best()
        for trial in self.study.get_trials(deepcopy=False):
            if trial.state.is_finished() and (best is None or trial.number != best.number):
                self._remove_model(self.tuning.run(trial.number, {}).model)

    def _remove_model(self, model: Path) -> None:
        """Remove a model, unless a process still writes to its directory: then it is removed after a later trial."""
        if model.is_dir():
            with suppress(LockedError), directory_lock(model):
                shutil.rmtree(model, ignore_errors=True)

    def _best(self) -> FrozenTrial | None:
        """Return the first trial with the best value; None if none is finished."""
        finished = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        sign = -1 if self.tuning.is_maximized else 1
        return min(finished, key=lambda trial: (sign * (trial.value or 0.0), trial.number), default=None)

    def _stop_bad_trials(self, pool: RunPool) -> None:
        """Stop runs whose dev loss is worse than the median of finished trials at the same point."""
        for run in pool.running:
            if run.name not in self.stopped and self._is_bad(run):
                self.stopped.add(run.name)
                pool.stop(run)

    def _is_bad(self, run: Run) -> bool:
        """Report the dev losses of a run, and return whether it should be stopped."""
        if not self.tuning.stops_bad_trials:
            return False
        trial, sign = self.running[run.name], -1 if self.tuning.is_maximized else 1
        reported, is_bad = self.study.trials[trial.number].intermediate_values, False
        for part, loss in losses_by_part(run.model).items():
            if part not in reported:
                trial.report(sign * loss, part)
                is_bad = is_bad or trial.should_prune()
        return is_bad

    def _status(self, pool: RunPool) -> PoolStatus:
        trials = self.study.get_trials(deepcopy=False)
        failed = sum(trial.state == TrialState.FAIL for trial in trials)
        finished = sum(trial.state.is_finished() for trial in trials) - failed
        settings, left = self.tuning.settings, None
        if settings.minutes is not None:
            left = max(0.0, 60 * settings.minutes - self.seconds)
        best = self._best()
        note = (
            ""
            if best is None
            else f"best {self.tuning.objective} {format_objective(best.value or 0.0)} in trial {best.number}"
        )
        return PoolStatus(pool.status(), finished, failed, settings.trials, left, note)

    def write_results(self) -> StudyResults:
        """Return the results of all trials so far, and write them to the output directory."""
        best, trials = self._best(), []
        for trial in self.study.get_trials(deepcopy=False):
            if all(parameter.name in trial.params for parameter in self.tuning.parameters):
                trials.append(self._result(trial))
        influence = influence_of_parameters(self.study)
        results = StudyResults(self.tuning, tuple(trials), None if best is None else best.number, influence)
        results.write()
        return results

    def _result(self, trial: FrozenTrial) -> TrialResult:
        run = self.tuning.run(trial.number, self._values(trial))
        states = {TrialState.COMPLETE: "finished", TrialState.PRUNED: "stopped", TrialState.FAIL: "failed"}
        value = trial.value if trial.state == TrialState.COMPLETE else None
        return TrialResult(
            trial.number,
            run,
            states.get(trial.state, "unfinished"),
            value,
            self._values(trial),
            float(trial.user_attrs.get(RUN_SECONDS, 0.0)),
            str(trial.user_attrs.get(FAILURE, "")),
            trial.user_attrs.get(SAME_AS),
        )


def describe_values(run: Run) -> str:
    """Return the settings in which a run differs from others."""
    return ", ".join(f"{name} {value}" for name, value in run.varied.items())


def losses_by_part(model: Path) -> dict[int, float]:
    """Return the lowest dev loss until the end of each tenth of a training run, as far as it has come.

    How far it has come is the largest share of its limits: epochs, updates, or minutes.
    """
    metrics = read_metrics(model)
    if not metrics or not (model / CONFIG_FILE).is_file():
        return {}
    try:
        config = read_yaml(model / CONFIG_FILE)
    except DataError:
        return {}  # it is being replaced
    training = config.get("training") if isinstance(config, dict) else None
    if not isinstance(training, dict):
        return {}
    limits = {"epoch": training.get("max_epochs"), "update": training.get("max_updates")}
    if isinstance(minutes := training.get("minutes"), int | float):
        limits["seconds"] = 60 * minutes
    losses: dict[int, float] = {}
    lowest = math.inf
    for record in metrics:
        share = max((record.get(name, 0) / limit for name, limit in limits.items() if limit), default=0.0)
        lowest = min(lowest, record.get("dev_loss", math.inf))
        for part in range(1, min(PARTS, int(PARTS * share)) + 1):
            if math.isfinite(lowest):
                losses.setdefault(part, lowest)
    return losses


def influence_of_parameters(study: optuna.Study) -> dict[str, float]:
    """Return the share of each option in the difference between the best quarter of the trials and all (PED-ANOVA).

    Trials with the settings of earlier ones do not count. Empty if there are too few trials.
    """
    finished = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    distinct = [trial for trial in finished if SAME_AS not in trial.user_attrs]
    if len(distinct) < MIN_TRIALS_OF_INFLUENCE or len({trial.value for trial in distinct}) < 2:
        return {}
    copy = optuna.create_study(direction=study.direction)
    copy.add_trials(distinct)
    with warnings.catch_warnings(action="ignore"):
        shares = get_param_importances(copy, evaluator=PedAnovaImportanceEvaluator(target_quantile=TOP_SHARE))
    return {name: float(share) for name, share in shares.items()}
