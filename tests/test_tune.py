"""dragoman tune: searches for settings, with failures, interruptions, resuming, and trials that are stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import TRAIN
from dragoman import DataError, DragomanError
from dragoman.cli.command_lookup import find_command
from dragoman.experiments.directories import MARK_FILE
from dragoman.experiments.run_pool import RunCallbacks
from dragoman.experiments.runs import best_dev_loss
from dragoman.experiments.study import BEHAVIOUR, JOURNAL_FILE, losses_by_part, tune
from dragoman.experiments.study_results import StudyResults
from dragoman.experiments.tuning import Tuning, read_tuning
from dragoman.report.runs import trials_table
from dragoman.report.tuning_charts import OptionPanel, draw_trials
from test_train_many import events, hold_lock, place

pytestmark = pytest.mark.slow

__all__ = ["place"]
EXAMPLES = Path(__file__).parent.parent / "examples" / "experiments"
RANGES = """search:
  order: {low: 2, high: 12}
  activation: [relu, tanh]
  learning-rate: {low: 0.001, high: 1.0, log: true}
objective: loss
stop_bad_trials: false
"""
LOSS = "search: {learning-rate: {low: 0.0001, high: 1.0, log: true}}\nobjective: loss\n"


def search(text: str, command: str = "train ngram", trials: int | None = None) -> Tuning:
    Path("search.yaml").write_text(
        f"command: {command}\noptions: {{text: train.txt, dev-text: dev.txt}}\noutput: tuned\n{text}\n"
    )
    return read_tuning(Path("search.yaml"), find_command, trials=trials)


def trials(results: StudyResults) -> list[tuple[object, ...]]:
    return [(trial.status, trial.value, *trial.values.values()) for trial in results.trials]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("trials: 3", "search.yaml: search is missing"),
        ("search: {order: [2, 3]}", "the search has no end; write `trials: N` or `minutes: N`"),
        ("search: {ordr: [2, 3]}\ntrials: 3", "search.yaml:4: unknown option 'ordr' of train ngram"),
        ("search: {order: {low: 3, high: 2}}\ntrials: 3", "search.yaml:4: search, order: low must be below high"),
        ("search: {order: {low: 3, hihg: 2}}\ntrials: 3", "unknown key 'hihg' in search, order; did you mean 'high'?"),
        ("search: {order: {low: 0, high: 2, log: true}}\ntrials: 3", "with log, low must be above 0"),
        ("search: {order: {low: 1, high: 2, step: 0.5}}\ntrials: 3", "must be a whole number"),
        ("search: {order: [3]}\ntrials: 3", "search.yaml:4: order [3]: nothing to choose from"),
        ("search: {order: [3, x]}\ntrials: 3", "search.yaml:4: --order x: must be a whole number"),
        ("search: {text: [a, b]}\ntrials: 3", "search.yaml:4: text is also in options"),
        ("search: {}\ntrials: 3", "search.yaml:4: search names no options"),
        ("search: {order: [2, 3]}\ntrials: 3\nobjective: BLUE", "search.yaml:6: objective BLUE: did you mean 'BLEU'?"),
        ("search: {order: [2, 3]}\ntrials: 3\nobjective: BLEU", "objective BLEU: is for translators"),
        ("search: {order: [2, 3]}\ntrials: 3\nobjective: loss", "objective loss: train ngram has none"),
        ("search: {order: [2, 3]}\ntrials: 3\nevaluate: {text: test.txt}", "unknown key 'evaluate'"),
    ],
)
def test_mistakes_are_reported_before_anything_starts(place: Path, text: str, problem: str) -> None:
    with pytest.raises(DataError) as error:
        search(text)
    assert problem in str(error.value)
    assert not Path("tuned").exists()


@pytest.mark.parametrize("minutes", [0.0, -1.0, float("nan")])
def test_a_search_needs_time(place: Path, minutes: float) -> None:
    search("search: {order: [2, 3]}", trials=3)
    with pytest.raises(DataError, match=f"--minutes {minutes:g}: must be above 0"):
        read_tuning(Path("search.yaml"), find_command, trials=3, minutes=minutes)


def test_losses_of_different_tokens_are_not_compared(place: Path) -> None:
    text = "search: {units: [word, char]}\ntrials: 3\nobjective: loss"
    with pytest.raises(DataError, match="trials with different units have different tokens"):
        search(text, "train feed-forward")
    assert not search(text.replace("loss", "perplexity"), "train feed-forward").stops_bad_trials
    assert search(f"{LOSS}trials: 3", "train feed-forward").stops_bad_trials
    with pytest.raises(DataError, match="no dev text to choose settings on; add dev-text"):
        Path("search.yaml").write_text("command: train ngram\noptions: {text: train.txt}\nsearch: {order: [2, 3]}\n")
        read_tuning(Path("search.yaml"), find_command, Path("tuned"), trials=3)


def test_an_interrupted_search_tries_the_same(place: Path) -> None:
    """Seeds and results decide what is tried: not how often the search is stopped."""
    network = "train feed-forward"
    whole = tune(search(RANGES, network, trials=9), jobs=1)
    Path("tuned").rename("whole")

    for moment in ("trial-003: started", "trial-006: loss"):

        def interrupt(message: str, moment: str = moment) -> None:
            if message.startswith(moment):
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            tune(search(RANGES, network, trials=9), 1, RunCallbacks(interrupt))
        with Path("tuned", JOURNAL_FILE).open("ab") as journal:
            journal.write(b'{"op_code": 4, "wor')  # what a process that is killed may write
    assert trials(tune(search(RANGES, network, trials=9), jobs=1)) == trials(whole)
    assert whole.best is not None and whole.best.value == min(value for _, value, *_ in trials(whole) if value)
    models = sorted(path.name for path in Path("tuned").glob("trial-*"))
    assert models == [f"trial-{whole.best_number:03}"], "only the best model is kept"
    with pytest.raises(DataError, match="contains another search"):
        tune(search(RANGES.replace("12", "11"), network, trials=9))


def test_trials_that_still_save_their_state_are_waited_for(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither are they failures, nor is a directory removed while a process writes to it."""

    def interrupt(message: str) -> None:
        if message.startswith("trial-001: started"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(search(RANGES, "train feed-forward", trials=2), 1, RunCallbacks(interrupt))
    messages: list[str] = []
    with hold_lock(Path("tuned/trial-001"), 0.5) as process:
        tune(search(RANGES, "train feed-forward", trials=2), 1, RunCallbacks(messages.append))
        assert process.poll() is not None, "the trial was started before the other process had ended"
    assert messages[1].startswith(f"trial-001: waiting for process {process.pid}")
    results = tune(search(RANGES, "train feed-forward", trials=2), 1)
    [other] = [trial for trial in results.trials if trial.number != results.best_number]
    other.run.model.mkdir()
    with hold_lock(other.run.model, 60) as process:
        tune(search(RANGES, "train feed-forward", trials=3), 1)
        assert other.run.model.is_dir()
        process.kill()


def test_settings_are_not_repeated(place: Path) -> None:
    text = "search: {order: {low: 2, high: 4, step: 2}}\nobjective: perplexity per character\nkeep: all\nthreads: 3"
    results = tune(search(text, trials=20), jobs=1)
    assert len(events("tuned")) == 4, "two trials started and ended"
    assert len(results.trials) < 20, "the search ends when nothing is new"
    assert "as trial" in trials_table(results)
    assert {trial.values["order"] for trial in results.trials} == {2, 4} and results.trials[0].value == 2.0
    models = list(Path("tuned").glob("trial-*/options.json"))
    assert len(models) == 2, "all models are kept"
    assert json.loads(models[0].read_text())["OMP_NUM_THREADS"] == "3"


def test_a_metric_of_translators_is_maximized(place: Path) -> None:
    Path("search.yaml").write_text(
        "command: train translator\n"
        "options: {src: train.txt, tgt: train.txt, dev-src: dev.txt, dev-tgt: test.txt, max-epochs: 1}\n"
        "search: {learning-rate: {low: 0.001, high: 1.0}}\nobjective: BLEU\n"
    )
    tuning = read_tuning(Path("search.yaml"), find_command, Path("other"), trials=4, minutes=60)
    results = tune(tuning, jobs=2)
    assert results.best is not None
    assert results.best.value == max(trial.value or 0 for trial in results.trials)
    assert results.best.values == min(
        (trial.values for trial in results.trials), key=lambda values: values["learning-rate"]
    )
    log = results.best.run.log.read_text().splitlines()
    assert "--src dev.txt --ref test.txt --metrics BLEU --json" in log[-1]


def test_damaged_files_are_reported(place: Path) -> None:
    Path("tuned").mkdir()
    Path("tuned", MARK_FILE).write_text(
        f"Written by dragoman tune, which {BEHAVIOUR}. Do not keep your own files here.\n"
    )
    Path("tuned", JOURNAL_FILE).write_text("not JSON\n")
    with pytest.raises(DataError, match=r"tuned/study.journal: damaged .*; delete tuned to start again"):
        tune(search("search: {order: [2, 4]}", trials=2))
    Path("tuned", JOURNAL_FILE).unlink()
    Path("tuned/logs").mkdir()
    Path("tuned/logs/trial-000.json").write_text('{"trained": 7}')
    with pytest.raises(DataError, match=r"logs/trial-000.json: damaged; delete it"):
        tune(search("search: {order: [2, 4]}", trials=2))


def test_failed_trials_are_reported(place: Path) -> None:
    results = tune(search("search: {order: [13, 3]}", trials=6), jobs=1)
    assert {trial.status for trial in results.trials} == {"failed", "finished"}
    assert results.best is not None and results.best.values == {"order": 3}
    assert "--order 3" in results.best_command and results.best_command.endswith("-o DIR")
    Path("tuned").rename("earlier")
    with pytest.raises(DragomanError, match="all 3 trials failed, the last one: --order 13: out of luck"):
        tune(search("search: {order: [13, '13']}".replace("'13'", "'013'"), trials=6), jobs=1)


def test_bad_trials_are_stopped(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fifth trial has higher losses than the four before it."""
    text = "search: {learning-rate: {low: 0.001, high: 0.01}, max-epochs: [200, 300]}\nobjective: loss\n"
    first = tune(search(text, "train feed-forward", trials=4), jobs=1)
    assert {trial.status for trial in first.trials} == {"finished"}
    monkeypatch.setenv("EXTRA_LOSS", "0.5")
    monkeypatch.setenv("EPOCH_SECONDS", "0.01")
    monkeypatch.setattr("dragoman.experiments.study.SHOW_SECONDS", 0.05)
    results = tune(search(text, "train feed-forward", trials=5), jobs=1)
    assert results.trials[4].status == "stopped" and results.trials[4].value is None
    assert events("tuned")[-1] == "save trial-004", "it was told to save its state"
    assert results.best_number == first.best_number


def test_time_ends_a_search(place: Path) -> None:
    text, network = f"{RANGES}minutes: 0.02", "train feed-forward"
    results = tune(search(text, network), jobs=1)
    number = len(results.trials)
    assert number >= 1
    assert len(tune(search(text, network), jobs=1).trials) == number, "the time of all runs counts"


def test_progress_of_a_real_training(run, tmp_path: Path) -> None:
    """A training run writes what trials are compared by."""
    (tmp_path / "train.txt").write_text(TRAIN)
    files = ("--text", tmp_path / "train.txt", "--dev-text", tmp_path / "train.txt")
    sizes = ("--order", "2", "--embedding", "4", "--hidden", "4", "--max-epochs", "4")
    assert run("train", "feed-forward", *files, *sizes, "-o", tmp_path / "model").code == 0
    losses = losses_by_part(tmp_path / "model")
    assert list(losses) == list(range(1, 11)), "all tenths of four epochs are over"
    assert sorted(losses.values(), reverse=True) == list(losses.values())
    assert min(losses.values()) == best_dev_loss(tmp_path / "model")


def test_the_command_on_ngram_models(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("train", "dev"):
        Path(f"{name}.txt").write_text(TRAIN)
    text = "search: {order: {low: 1, high: 3}, smoothing: [witten-bell, kneser-ney]}"
    search(f"{text}\ntrials: 2")
    outcome = run("tune", "search.yaml", "--jobs", 2)
    assert outcome.code == 0, outcome.err
    assert outcome.lines[0].split() == ["trial", "order", "smoothing", "perplexity", "minutes"]
    assert outcome.lines[-1].startswith("dragoman train ngram --text train.txt --dev-text dev.txt --order")
    report = json.loads(Path("tuned/trials.json").read_text())
    assert Path(report["best"]["model"], "config.yaml").is_file() and len(report["trials"]) == 2
    assert Path("tuned/trials.svg").read_bytes().startswith(b"<?xml")


def test_the_figure_is_a_function_of_the_trials(tmp_path: Path) -> None:
    values = {0: 180.0, 2: 150.5, 3: 150.5, 4: 700.0}
    panels = [
        OptionPanel("order", {number: 2.0 + number for number in range(5)}, [], False, 0.75),
        OptionPanel("learning-rate", {number: 10.0**-number for number in range(5)}, [], True, None),
        OptionPanel(
            "smoothing", dict.fromkeys(range(5), "kneser-ney"), ["absolute-discounting", "kneser-ney"], False, 0.2
        ),
        OptionPanel("prune", dict.fromkeys(range(5), ""), ["", "0,0,1"], False, 0.05),
    ]
    for name in ("a.svg", "b.svg"):
        draw_trials(values, {1: "failed"}, panels, tmp_path / name, objective="perplexity", is_maximized=False)
    picture = (tmp_path / "a.svg").read_text()
    assert picture == (tmp_path / "b.svg").read_text()
    for text in (
        "best: 150.5 in trial 2",
        "order: influence 75%",
        ">learning-rate<",
        "absolute-discou…",
        ">none<",
        "failed",
    ):
        assert text in picture, text


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.name)
def test_the_examples_are_valid(place: Path, file: Path) -> None:
    from dragoman.experiments.grid import read_grid

    for directory, names in {"ptb": ["train.txt", "valid.txt"], "tanaka10k_jaen": ["train", "dev", "test"]}.items():
        Path(directory).mkdir()
        for name in names:
            for ending in ("", ".ja", ".en"):
                Path(directory, f"{name}{ending}").write_text(TRAIN)
    if "search" in file.name:
        assert read_tuning(file, find_command).parameters
    else:
        assert read_grid(file, find_command).runs
