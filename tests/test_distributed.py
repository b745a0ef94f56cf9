"""Training by several processes: the same updates as one process, and the same decisions in all of them."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distributed_runs
from distributed_runs import EQUAL_RUNS, arrays_of
from dragoman import DataError, TrainingConfig
from dragoman.core.processes import process_count
from dragoman.io.storage import CHECKPOINT_FILE, read_config
from dragoman.training.batch_order import SENTENCES, STREAM
from dragoman.training.run_directory import read_progress

TESTS = Path(__file__).parent
TOLERANCES = {"float32": 1e-5, "bfloat16": 1e-5}  # of parameters; the others are float64
ALL_UPDATES = 15


def environment() -> dict[str, str]:
    """The variables of processes that are connected by the loopback interface only."""
    paths = os.pathsep.join([str(TESTS), *sys.path])
    return {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


def run_together(directory: Path, processes: int, *names: str) -> list[int]:
    """Make some runs by several processes, and return their exit codes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    together = {"WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    command = [sys.executable, str(TESTS / "distributed_runs.py"), str(directory), *names]
    started = [
        subprocess.Popen(command, env={**environment(), **together, "RANK": str(rank)}, cwd=directory)
        for rank in range(processes)
    ]
    return [process.wait(timeout=300) for process in started]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of two processes."""
    directory = tmp_path_factory.mktemp("two")
    assert run_together(directory, 2, "resume:5", *EQUAL_RUNS, "decisions") == [0, 0]
    return directory


@pytest.mark.parametrize("name", EQUAL_RUNS)
def test_two_processes_give_the_parameters_of_one(two: Path, name: str) -> None:
    run, pieces = EQUAL_RUNS[name]
    alone = arrays_of(run(pieces=pieces))
    first, second = (np.load(two / f"{name}-{rank}.npz") for rank in (0, 1))
    for key, array in alone.items():
        assert np.array_equal(first[key], second[key]), key
        np.testing.assert_allclose(first[key], array, rtol=0, atol=TOLERANCES.get(name, 1e-10), err_msg=key)


def test_a_run_is_resumed_by_other_numbers_of_processes(two: Path) -> None:
    """Two processes make 5 updates, one 5 more, and three the last 5; a batch has two pieces all the time."""
    whole = arrays_of(distributed_runs._stream(ALL_UPDATES, pieces=2))
    assert read_config(two / "resumed")["training"]["pieces"] == 2
    distributed_runs._stream(10, output=two / "resumed")
    assert run_together(two, 3, f"resume:{ALL_UPDATES}", "failure")[:2] == [0, 0]
    for rank in range(2):
        resumed = np.load(two / f"resume:{ALL_UPDATES}-{rank}.npz")
        for key, array in whole.items():
            np.testing.assert_allclose(resumed[key], array, rtol=0, atol=1e-10, err_msg=key)
    assert read_progress(two / "resumed" / CHECKPOINT_FILE).update == ALL_UPDATES
    # The third process was killed after that: the others have an error of one line.
    for rank in range(2):
        failure = json.loads((two / f"failure-{rank}.json").read_text())["failure"]
        assert failure["type"] == "ProcessLostError"
        assert failure["error"].startswith(f"process {rank} of 3 has lost the connection to another process (")
        assert "\n" not in failure["error"]


@pytest.fixture(scope="module")
def seen(two: Path) -> list[dict[str, Any]]:
    return [json.loads((two / f"decisions-{rank}.json").read_text())["decisions"] for rank in (0, 1)]


def test_all_processes_decide_the_same(seen: list[dict[str, Any]]) -> None:
    for name in ("rolled back", "another text", "an existing file", "plan"):
        assert seen[0][name] == seen[1][name], name
    assert seen[0]["rolled back"][0] is True
    assert "do not have the same train text" in seen[0]["another text"]
    assert "/file: " in seen[0]["an existing file"]


def test_a_signal_to_one_process_stops_all_and_process_0_saves(two: Path, seen: list[dict[str, Any]]) -> None:
    messages = [seen[rank]["stopped"][0].replace(f"stopped-{rank}", "stopped") for rank in (0, 1)]
    assert messages[0] == messages[1] and messages[0].startswith("stopped after update 1 and saved to /stopped")
    assert [seen[rank]["stopped"][1] for rank in (0, 1)] == [143, 143]
    assert read_progress(two / "stopped-0" / CHECKPOINT_FILE).update == 1
    assert not (two / "stopped-1").exists()


def test_only_process_0_reports_progress(seen: list[dict[str, Any]]) -> None:
    assert seen[0]["events"] == [1, seen[0]["rolled back"][1]]
    assert seen[1]["events"] == [0, 0]


def test_a_time_limit_ends_all_processes_after_the_same_update(seen: list[dict[str, Any]]) -> None:
    first, second = (seen[rank]["timed"] for rank in (0, 1))
    assert first == second
    assert "minutes" in json.loads(first[0])["stop_reason"]


# -- pieces of a batch -------------------------------------------------------------------------------------------------


def test_the_pieces_of_a_batch_are_its_examples_in_about_equal_parts() -> None:
    batch = distributed_runs.PAIRS
    for number in (1, 2, 3, 7, 100):
        pieces = list(map(SENTENCES.pieces(batch, number, 10**6).__getitem__, range(min(number, 60))))
        assert [line for piece in pieces for line in piece.target.lines()] == batch.target.lines()
        weights = [int(piece.weights.sum()) for piece in pieces]
        assert max(weights) - min(weights) <= 2 * batch.weights.max()
    assert len(SENTENCES.pieces(batch, 2, 50)) > 2  # what does not fit into memory is divided further


def test_the_pieces_of_a_segment_are_its_rows() -> None:
    segment = STREAM.epoch_batches(distributed_runs.CORPUS, TrainingConfig(batch_size=35, steps=5), 0)[0]
    pieces = STREAM.pieces(segment, 3, 10**6)
    rows = np.concatenate([pieces[number].ids for number in range(len(pieces))], axis=1)
    assert len(pieces) == 3 and np.array_equal(rows, segment.ids)
    assert len(STREAM.pieces(segment, 100, 10**6)) == 7


# -- the command line --------------------------------------------------------------------------------------------------


def torchrun(*arguments: object, processes: int = 2, restarts: int = 0) -> list[str]:
    options = ["--standalone", "--nproc-per-node", processes, "--max-restarts", restarts, "-m", "dragoman"]
    return [sys.executable, "-m", "torch.distributed.run", *map(str, [*options, *arguments])]


def children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def test_torchrun_restarts_a_training_whose_process_was_killed(tmp_path: Path) -> None:
    """The restarted training resumes from the checkpoint, although --force is given, and gives the same model."""
    german, english = distributed_runs.GERMAN, distributed_runs.ENGLISH
    for name, lines in (("train.de", german), ("train.en", english), ("dev.de", german[:9]), ("dev.en", english[:9])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    texts = ["--src", "train.de", "--tgt", "train.en", "--dev-src", "dev.de", "--dev-tgt", "dev.en"]
    sizes = ["--units", "word", "--hidden", 8, "--embedding", 8, "--dtype", "float64", "--shortlist", "none"]
    options = [*texts, *sizes, "--max-updates", 400, "--batch-size", 60, "--save-every", 5, "--check-every", 100]
    command = torchrun("train", "translator", *options, "-o", "model", "--force", restarts=1)
    running = subprocess.Popen(command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True)
    checkpoint = tmp_path / "model" / CHECKPOINT_FILE
    deadline = time.monotonic() + 300
    while not checkpoint.exists() or not 5 <= read_progress(checkpoint).update < 400:
        assert running.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(children(running.pid)[-1], 9)
    _, err = running.communicate(timeout=300)
    assert running.returncode == 0, err
    lines = [line for line in err.splitlines() if line.startswith("dragoman: ")]
    assert len(lines) == 1 and "lost the connection" in lines[0], err
    assert len(re.findall("^resuming after update", err, re.MULTILINE)) == 1
    assert len(re.findall("^finished after 400 updates", err, re.MULTILINE)) == 1
    alone = [
        sys.executable,
        "-m",
        "dragoman",
        "train",
        "translator",
        *map(str, options),
        "-o",
        "alone",
        "--pieces",
        "2",
    ]
    subprocess.run(alone, cwd=tmp_path, env=environment(), check=True, capture_output=True)
    first, second = (distributed_parameters(tmp_path / name) for name in ("model", "alone"))
    for name, array in first.items():
        np.testing.assert_allclose(array, second[name], rtol=0, atol=1e-10, err_msg=name)


def distributed_parameters(directory: Path) -> dict[str, Any]:
    from dragoman.io.storage import map_arrays

    return {name: array for name, array in map_arrays(directory / CHECKPOINT_FILE).items() if "parameters/" in name}


@pytest.fixture
def second_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "1")):
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "ngram", "--text", "x", "-o", "y"], "run this command without torchrun"),
        (["translate", "de-en"], "run this command without torchrun"),
        (["train", "recurrent", "--text", "-", "-o", "y"], "standard input cannot be read by several processes"),
    ],
)
def test_what_several_processes_cannot_do_is_refused(
    run: Any, second_of_two: None, arguments: list[str], message: str
) -> None:
    outcome = run(*arguments)
    assert outcome.code == 2 and outcome.err.count("\n") == 1 and message in outcome.err


def test_a_variable_that_is_no_number_is_an_error(second_of_two: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "two")
    with pytest.raises(DataError, match="WORLD_SIZE is 'two'"):
        process_count()
