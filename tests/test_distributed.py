"""Training by several processes: the same updates as one process, and the same decisions in all of them."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributed import HashStore, TCPStore

import distributed_runs
from distributed_runs import ALL_UPDATES, EQUAL_RUNS, arrays_of
from dragoman import DataError, TrainingConfig, fit
from dragoman.cli.processes import reports
from dragoman.core.processes import process_count
from dragoman.io.storage import CHECKPOINT_FILE, read_config
from dragoman.training import distributed
from dragoman.training.batch_order import SENTENCES, STREAM
from dragoman.training.process_store import agree_on_prefix
from dragoman.training.run_directory import read_progress

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parent
TOLERANCES = {"float32": 1e-5, "bfloat16": 1e-5}  # of parameters; the others are float64


def environment() -> dict[str, str]:
    """The variables of processes that are connected by the loopback interface only."""
    paths = os.pathsep.join([str(TESTS), *sys.path])
    return {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


def free_ports(number: int) -> list[str]:
    sockets = [socket.socket() for _ in range(number)]
    for free in sockets:
        free.bind(("127.0.0.1", 0))
    ports = [str(free.getsockname()[1]) for free in sockets]
    for free in sockets:
        free.close()
    return ports


def start_processes(
    commands: Sequence[Sequence[str]], directory: Path, **variables: str
) -> tuple[list[int], list[str]]:
    """Run one command per process. Return exit codes and standard errors."""
    started = [
        subprocess.Popen(
            [sys.executable, *command],
            env={**environment(), **variables, "RANK": str(rank)},
            cwd=directory,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, command in enumerate(commands)
    ]
    errors = [process.communicate(timeout=300)[1] for process in started]
    return [process.returncode for process in started], errors


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of two and of three processes; the last one is killed at the end."""
    directory = tmp_path_factory.mktemp("together")
    command = [str(TESTS / "distributed_runs.py"), str(directory), *free_ports(2)]
    codes, errors = start_processes([command] * 3, directory)
    assert codes == [0, 0, -signal.SIGKILL], "".join(errors)
    return directory


@pytest.mark.parametrize("name", EQUAL_RUNS)
def test_two_processes_give_the_parameters_of_one(together: Path, name: str) -> None:
    run, pieces = EQUAL_RUNS[name]
    alone = arrays_of(run(pieces=pieces))
    first, second = (np.load(together / f"{name}-{rank}.npz") for rank in (0, 1))
    for key, array in alone.items():
        assert np.array_equal(first[key], second[key]), key
        np.testing.assert_allclose(first[key], array, rtol=0, atol=TOLERANCES.get(name, 1e-10), err_msg=key)


def test_a_run_is_resumed_by_other_numbers_of_processes(together: Path) -> None:
    """Two processes make 5 updates, one 5 more, and three the last 5; a batch has two pieces all the time."""
    whole = arrays_of(distributed_runs._stream(ALL_UPDATES, pieces=2))
    assert read_config(together / "resumed")["training"]["pieces"] == 2
    assert read_progress(together / "resumed" / CHECKPOINT_FILE).update == ALL_UPDATES
    for rank in range(3):
        resumed = np.load(together / f"resumed-{rank}.npz")
        for key, array in whole.items():
            np.testing.assert_allclose(resumed[key], array, rtol=0, atol=1e-10, err_msg=key)


def test_a_lost_process_is_an_error_of_one_line_in_the_others(together: Path) -> None:
    for rank in range(2):
        failure = json.loads((together / f"failure-{rank}.json").read_text())
        assert failure["type"] == "ProcessLostError"
        assert failure["error"].startswith(f"process {rank} of 3 has lost the connection to another process (")
        assert "\n" not in failure["error"]


@pytest.fixture(scope="module")
def seen(together: Path) -> list[dict[str, Any]]:
    return [json.loads((together / f"decisions-{rank}.json").read_text()) for rank in (0, 1)]


def test_all_processes_decide_the_same(seen: list[dict[str, Any]]) -> None:
    problems = {
        "another text": "the processes do not have the same train text;",
        "another dropout": "the processes do not have the same model settings;",
        "another type": "do not have the same model settings, parameters;",
        "no output": "the processes do not have the same output directory;",
        "an existing file": "/file: ",
    }
    for name in ("rolled back", "plan", "force of one", *problems):
        assert seen[0][name] == seen[1][name], name
    assert seen[0]["rolled back"][0] is True
    for name, problem in problems.items():
        assert problem in seen[0][name]


def test_a_signal_to_one_process_stops_all_and_process_0_saves(together: Path, seen: list[dict[str, Any]]) -> None:
    messages = [seen[rank]["stopped"][0].replace(f"stopped-{rank}", "stopped") for rank in (0, 1)]
    assert messages[0] == messages[1] and messages[0].startswith("stopped after update 1 and saved to /stopped")
    assert [seen[rank]["stopped"][1] for rank in (0, 1)] == [143, 143]
    assert read_progress(together / "stopped-0" / CHECKPOINT_FILE).update == 1
    assert not (together / "stopped-1").exists()


def test_only_process_0_reports_progress(seen: list[dict[str, Any]]) -> None:
    assert seen[0]["events"] == [1, seen[0]["rolled back"][1]]
    assert seen[1]["events"] == [0, 0]


def test_a_time_limit_ends_all_processes_after_the_same_update(seen: list[dict[str, Any]]) -> None:
    first, second = (seen[rank]["timed"] for rank in (0, 1))
    assert first == second
    assert "minutes" in json.loads(first[0])["stop_reason"]


# -- pieces of a batch -------------------------------------------------------------------------------------------------


def test_without_random_numbers_pieces_change_nothing() -> None:
    """The loss is divided by the tokens of the whole batch, and penalties count once."""
    settings = {"l2": 0.5, "unknown_rate": 0.0, "batch_size": 60, "max_updates": 8, **distributed_runs.COMMON}
    models = []
    for pieces in (1, 3):
        models.append(distributed_runs.FeedForwardModel.create(distributed_runs.CORPUS, order=2, dtype="float64"))
        fit(models[-1], distributed_runs.CORPUS, pieces=pieces, **settings)
    first, second = map(arrays_of, models)
    for key, array in first.items():
        np.testing.assert_allclose(array, second[key], rtol=0, atol=1e-10, err_msg=key)


def test_the_pieces_of_a_batch_are_its_examples_in_about_equal_parts() -> None:
    batch = distributed_runs.PAIRS
    for number in (1, 2, 3, 7, 100):
        divided = SENTENCES.pieces(batch, number, 10**6)
        pieces = [divided[index] for index in range(len(divided))]
        assert len(pieces) == number or number > len(batch)
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


def test_torchrun_restarts_a_training_whose_process_was_killed(
    tmp_path: Path, good: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The restarted training resumes from the checkpoint, although --force is given, and gives the same model."""
    german, english = distributed_runs.GERMAN, distributed_runs.ENGLISH
    for name, lines in (("train.de", german), ("train.en", english)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    sizes = ["--units", "word", "--hidden", 8, "--embedding", 8, "--dtype", "float64", "--threads", 1]
    options = ["--src", "train.de", "--tgt", "train.en", *sizes, "--max-updates", 150, "--batch-size", 60]
    options += ["--save-every", 5]
    command = torchrun("train", "translator", *options, "-o", "model", "--force", restarts=1)
    running = subprocess.Popen(command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True)
    checkpoint = tmp_path / "model" / CHECKPOINT_FILE
    deadline = time.monotonic() + 300
    while not checkpoint.exists() or not 5 <= read_progress(checkpoint).update < 150:
        assert running.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(children(running.pid)[-1], 9)
    _, err = running.communicate(timeout=300)
    assert running.returncode == 0, err
    lines = [line for line in err.splitlines() if line.startswith("dragoman: ")]
    assert len(lines) == 1 and "lost the connection" in lines[0], err
    assert len(re.findall("^resuming after update", err, re.MULTILINE)) == 1
    assert len(re.findall("^finished after 150 updates", err, re.MULTILINE)) == 1
    monkeypatch.chdir(tmp_path)
    good("train", "translator", *options, "-o", "alone", "--pieces", 2)
    first, second = (distributed_parameters(tmp_path / name) for name in ("model", "alone"))
    for name, array in first.items():
        np.testing.assert_allclose(array, second[name], rtol=0, atol=1e-10, err_msg=name)


def distributed_parameters(directory: Path) -> dict[str, Any]:
    from dragoman.io.storage import map_arrays

    return {name: array for name, array in map_arrays(directory / CHECKPOINT_FILE).items() if "parameters/" in name}


def agent_store(monkeypatch: pytest.MonkeyPatch) -> TCPStore:
    """Start a store as torchrun's agent does for its job, and set the variables of the only process."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    variables = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port)}
    for name, value in {**variables, "TORCHELASTIC_USE_AGENT_STORE": "True"}.items():
        monkeypatch.setenv(name, value)
    return store


def test_a_restarted_script_resumes_what_it_has_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finished training run of before is replaced even if the first attempt failed at once."""
    settings = {"output": tmp_path / "model", "max_epochs": 1, "threads": 1}
    fit(distributed_runs._small(), distributed_runs.CORPUS, **settings)
    store = agent_store(monkeypatch)
    for restarts, finished in (("1", False), ("2", True), ("0", False)):
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", restarts)
        result = fit(distributed_runs._small(), distributed_runs.CORPUS, force=True, **settings)
        assert result.already_finished is finished
    assert store.num_keys() >= 1


def test_a_restarted_command_resumes_what_it_has_replaced(
    good: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.txt").write_text("".join(f"{line}\n" for line in distributed_runs.ENGLISH))
    sizes = ["--order", 2, "--embedding", 4, "--hidden", 4, "--max-updates", 1, "--threads", 1]
    command = ["train", "feed-forward", "--text", tmp_path / "train.txt", *sizes, "-o", tmp_path / "model", "--force"]
    good(*command)
    store = agent_store(monkeypatch)
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    assert "already finished" not in good(*command).err
    assert "already finished" in good(*command).err
    assert store.num_keys() >= 1


def test_processes_meet_whatever_an_earlier_attempt_has_left() -> None:
    """Process 1 starts late, and an earlier one has left its name, perhaps with an answer."""
    store, prefixes = HashStore(), set[str]()
    store.set("hello 1", "of an earlier attempt")

    def meet(rank: int) -> str:
        time.sleep(0.1 * (rank == 1))
        return agree_on_prefix(store, rank, 3, timedelta(seconds=20))

    for _ in range(2):
        with ThreadPoolExecutor(3) as threads:
            [prefix] = set(threads.map(meet, range(3)))
        prefixes.add(prefix)
    assert len(prefixes) == 2
    with pytest.raises(RuntimeError, match="no answer from process 1, 2"):
        agree_on_prefix(HashStore(), 0, 3, timedelta(seconds=0.05))


def test_too_little_memory_is_not_a_lost_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    processes = object.__new__(distributed.ProcessGroup)
    processes.rank, processes.world_size = 0, 2
    parameter = torch.nn.Parameter(torch.ones(1))
    parameter.grad = torch.ones(1)

    def fail(*arguments: object, **options: object) -> None:
        raise RuntimeError("not enough memory")

    monkeypatch.setattr(processes, "sum", list)
    with monkeypatch.context() as patch:
        patch.setattr(torch, "cat", fail)
        with pytest.raises(RuntimeError, match=r"^not enough memory"):
            processes.sum_gradients([parameter], 0.0)
    monkeypatch.setattr(torch.distributed, "all_reduce", fail)
    with pytest.raises(distributed.ProcessLostError, match="lost the connection"):
        processes.sum_gradients([parameter], 0.0)


@pytest.mark.parametrize(("local_rank", "expected"), [("0", True), ("1", False)])
def test_the_first_process_of_a_machine_reports_what_fails_before_it_is_connected(
    first_of_two: None, monkeypatch: pytest.MonkeyPatch, local_rank: str, expected: bool
) -> None:
    monkeypatch.setattr("dragoman.training.distributed._store", None)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("LOCAL_RANK", local_rank)
    assert reports(DataError("")) is expected


@pytest.fixture
def first_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
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
    run: Any, first_of_two: None, arguments: list[str], message: str
) -> None:
    outcome = run(*arguments)
    assert outcome.code == 2 and outcome.err.count("\n") == 1 and message in outcome.err


def test_a_variable_that_is_no_number_is_an_error(first_of_two: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "two")
    with pytest.raises(DataError, match="WORLD_SIZE is 'two'"):
        process_count()


def test_the_error_of_one_process_is_the_only_message(tmp_path: Path) -> None:
    """The second process does not find its text; the first one ends because of that, without a message."""
    (tmp_path / "train.txt").write_text("".join(f"{line}\n" for line in distributed_runs.ENGLISH))
    command = ["-m", "dragoman", "train", "recurrent", "-o", "model", "--max-epochs", "1", "--text"]
    connected = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_ports(1)[0]}
    codes, errors = start_processes([[*command, "train.txt"], [*command, "missing.txt"]], tmp_path, **connected)
    assert codes == [1, 2]
    assert errors == ["", "dragoman: process 1 of 2: missing.txt: no such file\n"]
