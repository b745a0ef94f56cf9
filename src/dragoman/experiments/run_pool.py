"""Several runs at a time, each in a process of its own, so that threads and crashes are isolated.

A process that is stopped by SIGTERM saves its state. Processes are stopped when the pool is left for any reason, and on
Linux also when this process is killed.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from time import monotonic, sleep
from types import TracebackType
from typing import IO, Self

from dragoman.core.errors import shell_command
from dragoman.experiments.runs import TRAIN, Run, RunRecord, Step, read_metrics, read_scores
from dragoman.io.files import LockedError, create_directory, directory_lock, lock_file

PROGRAM = (sys.executable, "-P", "-m", "dragoman")  # -P: no modules from the current directory
POLL_SECONDS = 0.05
SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl
STOPPED_CODES = (-signal.SIGTERM, 128 + signal.SIGTERM)  # of a process that was stopped, and may be continued
LOG_TAIL = 4096  # bytes at the end of a log that are read to find its last line


@dataclass(frozen=True)
class RunStatus:
    """What a run is doing."""

    name: str
    step: str  # train, dev or test
    seconds: float  # since the step was started
    epochs: int | None = None  # that are completed, if the run writes metrics
    dev_loss: float | None = None  # the lowest so far, in nats per token


@dataclass(frozen=True)
class PoolStatus:
    """What all runs are doing."""

    running: Sequence[RunStatus]
    finished: int
    failed: int
    total: int | None  # None: not known in advance
    seconds_left: float | None  # None: not known
    note: str = ""


def _ignore(event: object) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class RunCallbacks:
    """Receivers of messages and of the status, which changes all the time. By default they do nothing."""

    info: Callable[[str], None] = _ignore
    show: Callable[[PoolStatus], None] = _ignore


@dataclass
class _RunningStep:
    run: Run
    step: Step
    process: subprocess.Popen[bytes]
    output: IO[bytes] | None  # what an evaluation prints
    log_start: int  # size of the log before this step
    start: float = field(default_factory=monotonic)


class RunPool:
    """Runs at most `jobs` processes at a time, with `threads` threads each.

    with RunPool(jobs=2, threads=1) as pool:
        pool.start(run)
        finished = pool.wait(seconds=1.0)
    """

    def __init__(self, jobs: int, threads: int):
        self.jobs, self.threads = jobs, threads
        self._running: dict[str, _RunningStep] = {}
        self._done: list[Run] = []  # runs that had nothing left to do
        self._is_stopping = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_all()

    @property
    def has_room(self) -> bool:
        return len(self._running) < self.jobs

    @property
    def is_idle(self) -> bool:
        return not self._running and not self._done

    @property
    def running(self) -> list[Run]:
        return [running.run for running in self._running.values()]

    def status(self) -> list[RunStatus]:
        """Return what each run is doing."""
        return [_status(running) for running in self._running.values()]

    def start(self, run: Run) -> None:
        """Start the first step of a run that is not done. A run that is done is returned by the next `wait`."""
        record = run.read_record()
        steps = run.pending_steps(record)
        if steps:
            self._start_step(run, steps[0])
        else:
            self._done.append(run)

    def wait(self, seconds: float) -> list[Run]:
        """Return runs that are finished, stopped or failed, as soon as there are any, or none after some seconds.

        Steps that follow others are started. A run that was stopped has steps left, and no failure in its record.
        """
        end = monotonic() + seconds
        while True:
            ended, self._done = self._done, []
            ended += [running.run for running in list(self._running.values()) if self._has_ended(running)]
            if ended or not self._running or monotonic() >= end:
                return ended
            sleep(POLL_SECONDS)

    def stop(self, run: Run) -> None:
        """Let a run save its state and end; `wait` returns it."""
        self._running[run.name].process.terminate()

    def stop_all(self) -> None:
        """Let all runs save their state, and wait for them; a second interruption ends them at once."""
        processes = [running.process for running in self._running.values()]
        self._is_stopping = True
        try:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait()
        except BaseException:
            for process in processes:
                process.kill()
            raise
        finally:
            for running in self._running.values():
                self._save(running)
            self._running.clear()

    def _start_step(self, run: Run, step: Step) -> None:
        words = list(step.words)
        if step.name == TRAIN:
            is_left_over = run.model.is_dir() and not run.is_started  # finished just before the process was killed
            words += ["-o", str(run.model), *(["--force"] if is_left_over else [])]
            record = run.read_record()
            run.write_record(record.model_copy(update={"identity": dict(step.identity), "trained": False}))
        create_directory(run.log.parent)
        output = None if step.name == TRAIN else tempfile.TemporaryFile()  # noqa: SIM115 (closed with the step)
        with run.log.open("ab") as log:
            log_start = log.tell()
            log.write(f"$ {shell_command(['dragoman', *words])}\n".encode())
            log.flush()
            process = subprocess.Popen(
                [*PROGRAM, *words],
                stdin=subprocess.DEVNULL,
                stdout=output or log,
                stderr=log,
                env={**os.environ, "OMP_NUM_THREADS": str(self.threads)},
                process_group=0,  # the terminal sends Ctrl-C to this process only
                preexec_fn=_end_with_parent() if sys.platform == "linux" else None,
            )
        self._running[run.name] = _RunningStep(run, step, process, output, log_start)

    def _has_ended(self, running: _RunningStep) -> bool:
        """Return whether a run has ended: its process has, and there is no next step, or the process did not succeed."""
        if running.process.poll() is None:
            return False
        del self._running[running.run.name]
        record = self._save(running)
        steps = running.run.pending_steps(record)
        if running.process.returncode or not steps:
            return True
        self._start_step(running.run, steps[0])
        return False

    def _save(self, running: _RunningStep) -> RunRecord:
        """Write the result of a step to the record of its run."""
        run, step, record = running.run, running.step, running.run.read_record()
        code = running.process.returncode
        if step.name == TRAIN:
            changes = {"seconds": round(record.seconds + monotonic() - running.start, 3)}
            record = record.model_copy(update={**changes, "trained": code == 0, "scores": {}, "evaluations": {}})
        failure = "" if code == 0 or code in STOPPED_CODES or self._is_stopping else _reason(running)
        if running.output is not None:
            running.output.seek(0)
            content = running.output.read()
            running.output.close()
            if code == 0:
                scores = {**record.scores, step.name: read_scores(json.loads(content))}
                evaluations = {**record.evaluations, step.name: dict(step.identity)}
                record = record.model_copy(update={"scores": scores, "evaluations": evaluations})
        record = record.model_copy(update={"failure": failure})
        run.write_record(record)
        return record


def _status(running: _RunningStep) -> RunStatus:
    status = RunStatus(running.run.name, running.step.name, monotonic() - running.start)
    metrics = read_metrics(running.run.model) if running.step.name == TRAIN else []
    if not metrics:
        return status
    losses = [record["dev_loss"] for record in metrics if "dev_loss" in record]
    epochs = int(metrics[-1].get("epoch", 0))
    return RunStatus(status.name, status.step, status.seconds, epochs, min(losses, default=None))


def _reason(running: _RunningStep) -> str:
    """Return why a step failed: the last line that it wrote to the log, or the signal that ended it."""
    code = running.process.returncode
    if code < 0:
        return f"ended by {signal.Signals(-code).name}" + (", perhaps out of memory" if code == -9 else "")
    with running.run.log.open("rb") as log:
        size = log.seek(0, os.SEEK_END)
        log.seek(max(running.log_start, size - LOG_TAIL))
        lines = log.read().decode("utf-8", "replace").splitlines()
    written = [line for line in lines if line.strip() and not line.startswith("$ dragoman ")]
    return written[-1].removeprefix("dragoman: ") if written else f"exit code {code}"


def _end_with_parent() -> Callable[[], None]:
    """Return a function that a new process calls, so that it receives SIGTERM when its parent ends for any reason."""
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def end_with_parent() -> None:
        prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() != parent:  # it ended before
            os._exit(128 + signal.SIGTERM)

    return end_with_parent


def wait_for_writers(runs: Iterable[Run], info: Callable[[str], None]) -> None:
    """Wait until no process writes to the models of runs.

    When this program is killed, its processes save their state, and lock their directories until that is done.
    """
    for run in runs:
        is_waiting = False
        while lock_file(run.model).exists():
            try:
                with directory_lock(run.model):
                    break
            except LockedError as error:
                if not is_waiting:
                    info(f"{run.name}: waiting for {error.holder}, which saves its state")
                is_waiting = True
                sleep(POLL_SECONDS)


def possible_jobs(cores: int, threads: int, runs: int) -> int:
    """Return how many runs fit the cores at a time.

    >>> possible_jobs(cores=8, threads=2, runs=10), possible_jobs(cores=2, threads=4, runs=10)
    (4, 1)
    """
    return max(1, min(cores // threads, runs))
