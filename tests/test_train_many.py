"""dragoman train-many: grids of trainings, with failures, interruptions and resuming."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from command import TRAIN, is_one_line
from dragoman import DataError
from dragoman.cli.command_lookup import find_command
from dragoman.experiments import run_pool
from dragoman.experiments.directories import claim_directory
from dragoman.experiments.grid import BEHAVIOUR, Grid, read_grid, train_many
from dragoman.experiments.grid_results import TABLE_FILE
from dragoman.experiments.run_pool import PoolStatus, RunCallbacks, RunPool, possible_jobs
from dragoman.experiments.runs import Run
from dragoman.report.runs import grid_table

pytestmark = pytest.mark.slow

PROGRAM = (sys.executable, "-S", str(Path(__file__).parent / "stand_in_program.py"))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current directory with texts, in which a stand-in trains instead of dragoman."""
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.txt").write_text(f"{TRAIN}{name}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_pool, "PROGRAM", PROGRAM)
    return tmp_path


def grid(text: str, command: str = "train ngram") -> Grid:
    Path("grid.yaml").write_text(f"command: {command}\noptions: {{text: train.txt}}\noutput: runs\n{text}\n")
    return read_grid(Path("grid.yaml"), find_command)


def events(output: str = "runs") -> list[str]:
    """What the stand-in noted."""
    return Path(output, "events.txt").read_text().splitlines()


def test_runs_are_named_by_what_varies(place: Path) -> None:
    runs = grid(
        "grid: {order: [2, 3], prune: ['', '0,0,1']}\nsettings: {plain: {}, small alphabet: {units: char}}"
    ).runs
    names = [run.name for run in runs]
    assert names[:2] == ["plain,order=2,prune=none", "plain,order=2,prune=0-0-1"]
    assert names[-1] == "small-alphabet,order=3,prune=0-0-1" and len(set(names)) == 8
    assert "--units char --order 3 --prune 0,0,1" in runs[-1].command
    taken = grid("settings: {logs: {}, results.json: {order: 2}, ..: {order: 3}, run: {order: 4}}").runs
    assert [run.name for run in taken] == ["logs-2", "results.json-2", "run", "run-2"]
    one, other = grid("grid: {prune: ['0,0', '0-0']}").runs
    assert one.name != other.name, "names are distinct"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("optons: {}", "grid.yaml:4: unknown key 'optons'; did you mean 'options'?"),
        ("grid: {ordr: [2]}", "grid.yaml:4: unknown option 'ordr' of train ngram; did you mean 'order'?"),
        ("grid: {order: 2}", "grid.yaml:4: order 2: must be a list of values"),
        ("grid: {order: [2, x]}", "grid.yaml:4: --order x: must be a whole number"),
        ("grid: {order: [2, 2]}", "grid.yaml:4: order has 2 twice"),
        ("grid: {text: [a.txt]}", "grid.yaml:4: text is also in options"),
        ("grid: {dev-text: [a.txt]}", "grid.yaml:4: dev-text a.txt: no such file"),
        ("grid: {dev-text: ['-']}", "several runs cannot share standard input"),
        ("grid: {vocab: [nothing]}", "grid.yaml:4: vocab nothing: no such directory"),
        ("grid: {quantise: [1]}", "grid.yaml:4: quantise 1: must be true or false"),
        ("grid: {threads: [1]}", "grid.yaml:4: threads: write `threads: N`"),
        ("evaluate: {text: a.txt}", "grid.yaml:4: text a.txt: no such file"),
        ("evaluate: {json: true}", "grid.yaml:4: json: it is chosen for each run"),
        ("settings: {a: {b: {}}}", "grid.yaml:4: b holds sections"),
        ("settings: {a: {order: 2, Order_: 2}}", "unknown option"),
        ("threads: 0", "grid.yaml:4: threads 0: must be at least 1"),
    ],
)
def test_mistakes_are_reported_before_anything_starts(place: Path, line: str, problem: str) -> None:
    with pytest.raises(DataError) as error:
        grid(line)
    assert problem in str(error.value)
    assert not Path("runs").exists()


def test_at_most_so_many_runs_at_a_time(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running: list[int] = []
    start = RunPool.start

    def start_and_count(pool: RunPool, run: Run) -> None:
        start(pool, run)
        running.append(len(pool.running))

    monkeypatch.setattr(RunPool, "start", start_and_count)
    train_many(grid("grid: {order: [1, 2, 3, 4]}"), jobs=2)
    assert max(running) == 2 and len(events()) == 8
    assert [possible_jobs(cores, threads=2, runs=3) for cores in (1, 4, 16)] == [1, 2, 3]


def test_means_and_ranges_over_seeds(place: Path) -> None:
    text = "grid: {order: [3, 5], seed: [1, 2]}\nevaluate: {text: test.txt}"
    results = train_many(grid(text, "train feed-forward"), jobs=2)
    table = grid_table(results)
    assert "test perplexity" in table and "10.00" in table and "50.00" in table
    assert [(summary.settings["order"], summary.runs) for summary in results.summaries()] == [("3", 2), ("5", 2)]
    lines = Path("runs", TABLE_FILE).read_text().splitlines()
    assert lines[0].split("\t")[:4] == ["run", "order", "seed", "status"] and len(lines) == 5
    [mean, *_] = json.loads(Path("runs/results.json").read_text())["settings"]
    assert mean["test perplexity"] == {"mean": 10.0, "standard_deviation": 0.0, "low": 10.0, "high": 10.0}
    dev = json.loads(Path("runs/results.json").read_text())["runs"][0]["dev perplexity per token"]
    assert dev == pytest.approx(2.718281828**2), "from the dev loss of training, 1 + 1 / epoch"


def test_a_failed_run_is_reported_and_the_others_go_on(place: Path) -> None:
    messages: list[str] = []
    results = train_many(grid("grid: {order: [13, 2]}"), 1, RunCallbacks(messages.append))
    assert [result.status for result in results.results] == ["failed", "finished"]
    assert results.results[0].failure == "--order 13: out of luck"
    assert any("order=13: failed: --order 13: out of luck (runs/logs/order=13.log)" in line for line in messages)
    train_many(grid("grid: {order: [13, 2, 3]}"), jobs=1)
    assert events() == ["start order=2", "end order=2", "start order=3", "end order=3"], "finished runs are kept"


def test_an_interrupted_grid_is_resumed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPOCH_SECONDS", "0.05")
    text = "grid: {max-epochs: [2, 200]}"

    def interrupt(status: PoolStatus) -> None:
        if status.finished and any(run.epochs for run in status.running):
            raise KeyboardInterrupt

    monkeypatch.setattr("dragoman.experiments.grid.SHOW_SECONDS", 0.05)
    with pytest.raises(KeyboardInterrupt):
        train_many(grid(text, "train feed-forward"), 1, RunCallbacks(show=interrupt))
    assert events()[-1] == "save max-epochs=200", "the run that was stopped saved its state"
    monkeypatch.setenv("EPOCH_SECONDS", "0")
    results = train_many(grid(text, "train feed-forward"), jobs=1)
    assert [result.status for result in results.results] == ["finished", "finished"]
    assert events()[-2:] == ["resume max-epochs=200", "end max-epochs=200"]
    assert sum(event.endswith("max-epochs=2") for event in events()) == 2, "the finished run is not repeated"
    epochs = [json.loads(line)["epoch"] for line in Path("runs/max-epochs=200/metrics.jsonl").read_text().splitlines()]
    assert epochs == list(range(1, 201))


def test_a_model_without_a_record_is_replaced(place: Path) -> None:
    """A process that is killed between the end of training and its record leaves a model that is complete."""
    train_many(grid("grid: {order: [2]}"), jobs=1)
    Path("runs/logs/order=2.json").unlink()
    train_many(grid("grid: {order: [2]}"), jobs=1)
    assert Path("runs/logs/order=2.log").read_text().splitlines()[-1].endswith("--force")


def test_other_options_and_texts_are_noticed(place: Path) -> None:
    train_many(grid("grid: {order: [2]}"), jobs=1)
    Path("train.txt").write_text(f"{TRAIN}one more\n")
    forget_digests()
    with pytest.raises(DataError, match=r"order=2: was trained with other options or texts \(text: sha256"):
        train_many(grid("grid: {order: [2]}"), jobs=1)


def test_another_model_under_the_same_name_is_noticed(place: Path) -> None:
    Path("base").mkdir()
    for words in ("the\n", "the\ncat\n"):
        Path("base/vocab.tsv").write_text(words)
        forget_digests()
        if words == "the\n":
            train_many(grid("grid: {vocab: [base]}"), jobs=1)
            Path("base/README.md").write_text("a card changes no result")
            forget_digests()
            train_many(grid("grid: {vocab: [base]}"), jobs=1)
    with pytest.raises(DataError, match=r"vocab=base: was trained with other options or texts \(vocab: sha256"):
        train_many(grid("grid: {vocab: [base]}"), jobs=1)


def forget_digests() -> None:
    """Forget the digests of files, as a new process would."""
    from dragoman.experiments import command_options

    command_options._digest.cache_clear()


def test_more_epochs_continue_a_run(place: Path) -> None:
    options = "settings: {a: {max-epochs: %d}}"
    train_many(grid(options % 2, "train feed-forward"), jobs=1)
    train_many(grid(options % 4, "train feed-forward"), jobs=1)
    assert events() == ["start a", "end a", "resume a", "end a"]
    with pytest.raises(DataError, match="learning-rate: not set"):
        train_many(grid("settings: {a: {max-epochs: 4, learning-rate: 0.1}}", "train feed-forward"), jobs=1)


def test_another_evaluation_does_not_train_again(place: Path) -> None:
    train_many(grid("grid: {order: [2]}\nevaluate: {text: test.txt}"), jobs=1)
    results = train_many(grid("grid: {order: [2]}\nevaluate: {text: dev.txt}"), jobs=1)
    assert events() == ["start order=2", "end order=2"] and "test perplexity" in results.results[0].scores
    assert "--text dev.txt" in Path("runs/logs/order=2.log").read_text().splitlines()[-1]


def test_other_directories_are_not_written_to(place: Path) -> None:
    Path("runs").mkdir()
    Path("runs/mine.txt").touch()
    with pytest.raises(DataError, match="contains files that dragoman train-many did not write"):
        train_many(grid("grid: {order: [2]}"))


@pytest.mark.skipif(sys.platform != "linux", reason="needs prctl")
def test_runs_end_with_a_process_that_is_killed(place: Path) -> None:
    """Their state is saved as well, and nobody else may run the grid before."""
    (place / "kill.py").write_text(
        "import sys\nfrom pathlib import Path\nfrom dragoman.experiments import run_pool\n"
        "from dragoman.cli.command_lookup import find_command\n"
        "from dragoman.experiments.grid import read_grid, train_many\n"
        "run_pool.PROGRAM = tuple(sys.argv[1:])\n"
        "train_many(read_grid(Path('grid.yaml'), find_command), jobs=1)\n"
    )
    grid("grid: {max-epochs: [1000]}", "train feed-forward")
    command = [sys.executable, "kill.py", *PROGRAM]
    process = subprocess.Popen(command, env={**os.environ, "EPOCH_SECONDS": "0.05"})
    wait_until(lambda: Path("runs/max-epochs=1000/training.safetensors").exists())
    with pytest.raises(DataError, match="is being written by another program"):
        train_many(grid("grid: {max-epochs: [1000]}", "train feed-forward"))
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until(lambda: events()[-1] == "save max-epochs=1000")


def hold_lock(model: Path, seconds: float) -> subprocess.Popen[bytes]:
    """Start a process that writes to a model directory for some seconds, as one whose parent was killed."""
    text = "import sys, time\nfrom pathlib import Path\nfrom dragoman.io.files import directory_lock\n"
    text += "with directory_lock(Path(sys.argv[1])):\n    print(flush=True)\n    time.sleep(float(sys.argv[2]))\n"
    process = subprocess.Popen([sys.executable, "-c", text, str(model), str(seconds)], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline()
    return process


def test_runs_that_still_save_their_state_are_waited_for(place: Path) -> None:
    messages: list[str] = []
    claim_directory(Path("runs"), "train-many", BEHAVIOUR)
    with hold_lock(Path("runs/order=2"), 0.5) as process:
        train_many(grid("grid: {order: [2]}"), 1, RunCallbacks(messages.append))
        assert process.poll() is not None, "the run was started before the other process had ended"
    assert sum(line.startswith(f"order=2: waiting for process {process.pid}") for line in messages) == 1


def test_a_run_that_was_stopped_has_not_failed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPOCH_SECONDS", "0.05")
    [run] = grid("grid: {max-epochs: [50]}", "train feed-forward").runs
    claim_directory(run.directory, "train-many", BEHAVIOUR)
    with RunPool(jobs=1, threads=1) as pool:
        pool.start(run)
        wait_until(run.model.joinpath("training.safetensors").exists)
        pool.stop(run)
        assert pool.wait(60) == [run]
    assert not run.read_record().failure and run.pending_steps(run.read_record())
    monkeypatch.setenv("EPOCH_SECONDS", "0")
    [result] = train_many(grid("grid: {max-epochs: [50]}", "train feed-forward"), jobs=1).results
    assert result.status == "finished" and events()[-2] == "resume max-epochs=50"


@pytest.mark.skipif(sys.platform != "linux", reason="needs prctl")
def test_a_process_whose_parent_has_ended_before_does_not_begin(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [run] = grid("grid: {order: [2]}").runs
    with RunPool(jobs=1, threads=1) as pool:
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: 1)  # which is not the parent of the new process
            pool.start(run)
        assert pool.wait(60) == [run]
    assert run.pending_steps(run.read_record()) and not Path("runs/events.txt").exists()


def wait_until(condition: object) -> None:
    assert callable(condition)
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_the_command_on_ngram_models(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real thing: a model of order 2 cannot be pruned by three thresholds."""
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text(TRAIN)
    Path("grid.yaml").write_text(
        "command: train ngram\noptions: {text: train.txt, dev-text: train.txt, prune: '0,0,1'}\n"
        "grid: {order: [2, 3]}\nevaluate: {text: train.txt}\noutput: runs\n"
    )
    outcome = run("train-many", "grid.yaml", "--jobs", 2)
    assert outcome.code == 1
    assert "failed: order=2: n-gram settings: prune 0,0,1: 3 thresholds, but order 2" in outcome.err
    [header, _, failed, finished] = outcome.lines
    assert header.split()[:4] == ["order", "runs", "dev", "perplexity"]
    assert failed.split()[:3] == ["2", "0", "-"] and finished.split()[:2] == ["3", "1"]
    assert json.loads(Path("runs/results.json").read_text())["runs"][1]["dev perplexity"] > 1
    outcome = run("evaluate", "runs/order=3", "--text", "train.txt")
    assert outcome.code == 0
    outcome = run("train-many", "missing.yaml")
    assert outcome.code == 2 and is_one_line(outcome.err)
