"""Training from the command line: killed, stopped, finished, refused."""

from __future__ import annotations

import io
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from command import COMMAND, DEV, TRAIN, good, run  # noqa: F401
from dragoman.cli.main import main
from dragoman.cli.progress import TrainingProgress, training_bar
from dragoman.io.storage import ARRAYS_FILE, CHECKPOINT_FILE, METRICS_FILE, map_arrays_with_metadata
from dragoman.training.fit import TrainingStarted
from dragoman.training.loop import StepReport
from dragoman.training.progress import Progress
from small_translators import ENGLISH, GERMAN

SETTINGS = ("--order", "3", "--embedding", "6", "--hidden", "8", "--dropout", "0.2", "--threads", "1")
LONG = (*SETTINGS, "--batch-size", "10", "--save-every", "1", "--report-every", "10", "--max-updates", "120")
KILLS = 2


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("texts")
    (place / "train.txt").write_text(TRAIN)
    (place / "dev.txt").write_text(DEV)
    return place


def command(texts: Path, output: Path, *settings: str) -> list[str]:
    files = ("--text", str(texts / "train.txt"), "--dev-text", str(texts / "dev.txt"), "-o", str(output))
    return ["train", "feed-forward", *files, *settings]


def begin(arguments: list[str]) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, *arguments], stderr=subprocess.PIPE, text=True, env=environment
    )


def wait_for(process: subprocess.Popen[str], directory: Path, updates: int) -> None:
    """Until training has got so far."""
    patience = time.monotonic() + 60
    while time.monotonic() < patience and process.poll() is None:
        if (directory / METRICS_FILE).is_file() and len(
            (directory / METRICS_FILE).read_text().splitlines()
        ) > updates // 10:
            return
        time.sleep(0.01)
    raise AssertionError(f"it did not get to update {updates}: {process.communicate()[1]}")


@pytest.fixture(scope="module")
def whole(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training run without interruption."""
    directory = tmp_path_factory.mktemp("whole") / "model"
    assert main(command(texts, directory, *LONG)) == 0
    return directory


def assert_same_training(item: Path, two: Path) -> None:
    assert (item / ARRAYS_FILE).read_bytes() == (two / ARRAYS_FILE).read_bytes()
    (mine, _), (theirs, _) = (map_arrays_with_metadata(directory / CHECKPOINT_FILE) for directory in (item, two))
    assert mine.keys() == theirs.keys()
    assert all(mine[name].tobytes() == theirs[name].tobytes() for name in mine)


def test_killed_training_resumes_to_the_same_model(texts, whole, tmp_path, good):  # noqa: F811
    generator = random.Random()
    directory = tmp_path / "model"
    for kill in range(KILLS):
        process = begin(command(texts, directory, *LONG))
        wait_for(process, directory, 40 * kill)
        time.sleep(0.1 * generator.random())
        process.kill()
        assert process.wait() == -signal.SIGKILL
        assert map_arrays_with_metadata(directory / CHECKPOINT_FILE)[0], "the last checkpoint is whole"
    assert "resuming after update" in good(*command(texts, directory, *LONG)).err
    assert_same_training(directory, whole)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_interrupted_training_saves_and_can_be_resumed(texts, whole, tmp_path, good, number, code):  # noqa: F811
    directory = tmp_path / "model"
    process = begin(command(texts, directory, *LONG))
    wait_for(process, directory, 50)
    process.send_signal(number)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == code, said
    assert "run the same command again" in said
    assert "Traceback" not in said
    evaluate = ("evaluate", directory, "--text", texts / "dev.txt")
    for unfinished in (evaluate, ("quantize", directory, "-o", tmp_path / "small")):
        assert "the training of this model is not finished" in good(*unfinished).err
    good(*command(texts, directory, *LONG))
    assert_same_training(directory, whole)
    assert "not finished" not in good(*evaluate).err


SHORT = (*SETTINGS, "--max-epochs", "2")


def test_finished_training_is_not_repeated(texts, tmp_path, good):  # noqa: F811
    first = good(*command(texts, tmp_path / "model", *SHORT))
    assert "next: " in first.err
    assert first.out == ""
    assert "was still improving when training ended; the same command with --max-epochs 4 continues\n" in first.err
    again = good(*command(texts, tmp_path / "model", *SHORT))
    assert "already finished" in again.err
    assert "next: " in again.err


def test_only_a_given_average_is_missed(texts, tmp_path, good):  # noqa: F811
    """Nobody who did not choose it needs to know that training ended before the parameters were averaged."""
    settings = (*SETTINGS, "--max-updates", "1", "--max-epochs", "1000")
    assert "averaged" not in good(*command(texts, tmp_path / "planned", *settings, "--minutes", "9")).err
    patient = (*SETTINGS, "--max-epochs", "50", "--patience", "1", "--learning-rate", "1", "--average", "0.01")
    assert "before parameters were averaged" in good(*command(texts, tmp_path / "given", *patient)).err


def test_resuming_with_other_settings_raises(texts, tmp_path, good, run):  # noqa: F811
    good(*command(texts, tmp_path / "model", *SHORT))
    refused = run(*command(texts, tmp_path / "model", *SHORT, "--learning-rate", "0.5"))
    assert refused.code == 2
    assert "training.learning_rate" in refused.err
    assert "0.5" in refused.err
    assert len(refused.err.splitlines()) == 1
    good(*command(texts, tmp_path / "model", *SHORT, "--learning-rate", "0.5", "--force"))


def test_divergence_has_exit_code_3(texts, tmp_path, run):  # noqa: F811
    settings = ("--optimizer", "sgd", "--learning-rate", "1e30", "--clip", "1e30", "--batch-size", "10")
    failed = run(*command(texts, tmp_path / "model", *SETTINGS, *settings))
    assert failed.code == 3
    assert "not finite" in failed.err
    assert "Traceback" not in failed.err


def test_settings_from_a_file_and_from_options(texts, tmp_path, good, run):  # noqa: F811
    config = tmp_path / "small.yaml"
    config.write_text("model:\n  embedding: 5\n  hidden: [4]\ntraining:\n  max_epochs: 1\n  learning_rate: 1e-2\n")
    good(*command(texts, tmp_path / "model", "-c", str(config), "--embedding", "7", "--threads", "1"))
    saved = (tmp_path / "model" / "config.yaml").read_text()
    assert "embedding: 7" in saved
    assert "max_epochs: 1" in saved
    assert "learning_rate: 0.01" in saved
    config.write_text("training:\n  max_epochs: 1\n  lerning_rate: 0.1\n")
    refused = run(*command(texts, tmp_path / "other", "-c", str(config)))
    assert refused.code == 2
    assert f"{config}:3" in refused.err
    assert "learning_rate" in refused.err
    assert not (tmp_path / "other").exists()


def test_reported_steps_are_in_the_metrics(texts, tmp_path, good):  # noqa: F811
    good(*command(texts, tmp_path / "model", *SHORT, "--report-every", "1"))
    lines = [json.loads(line) for line in (tmp_path / "model" / METRICS_FILE).read_text().splitlines()]
    assert [line["update"] for line in lines] == list(range(1, len(lines) + 1))
    assert all(line["train_loss"] > 0 and line["learning_rate"] > 0 for line in lines)
    assert sum("dev_loss" in line for line in lines) == 2


def test_trained_models_work_with_all_commands(texts, tmp_path, good):  # noqa: F811
    directory = tmp_path / "model"
    good(*command(texts, directory, *SHORT))
    assert "perplexity" in good("evaluate", directory, "--text", texts / "dev.txt").out
    assert len(good("sample", directory, "-n", "3").lines) == 3
    assert good("score", directory, stdin="the cat met nobody .\n").lines
    assert good("next", directory, "the cat").lines
    ngram = tmp_path / "ngram"
    good("train", "ngram", "--text", texts / "train.txt", "--vocab", directory, "-o", ngram, "--order", "2")
    good("mix", directory, ngram, "--dev-text", texts / "dev.txt", "-o", tmp_path / "mixed")


def log_linear(texts: Path, output: Path, *settings: str) -> list[str]:
    return ["train", "log-linear", *command(texts, output, "--threads", "1", "--max-epochs", "2", *settings)[2:]]


def test_log_linear_models_are_trained_and_explained(texts, tmp_path, good):  # noqa: F811
    features = "word1,word1+word2,class1,suffix1,bag"
    result = good(*log_linear(texts, tmp_path / "model", "--features", features, "--classes", "brown:4"))
    assert "next: dragoman explain" in result.err
    assert "word1=cat" in good("explain", tmp_path / "model", "the cat").out


def test_choose_selects_settings_on_the_dev_text(texts, tmp_path, good, run):  # noqa: F811
    choices = ("--choose", "l2=0.001,1000", "--choose", "l1=0", "--learning-rate", "0.1")
    result = good(*log_linear(texts, tmp_path / "model", *choices))
    assert "l2=0.001,l1=0 is the best" in result.err
    assert "l2: 0.001" in (tmp_path / "model" / "config.yaml").read_text()
    tried = sorted(place.name for place in (tmp_path / "model.candidates").glob("[!.]*"))
    assert tried == ["l2=0.001,l1=0", "l2=1000,l1=0"]
    for wrong, told_so in [("l2", "such as l2="), ("l3=1,2", "l2"), ("l2=-1", "l2"), ("optimizer=newton", "adam")]:
        refused = run(*log_linear(texts, tmp_path / "other", "--choose", wrong))
        assert refused.code == 2
        assert told_so in refused.err
    without_dev = run("train", "log-linear", "--text", texts / "train.txt", "-o", tmp_path / "x", "--choose", "l2=1,2")
    assert without_dev.code == 2
    assert "--dev-text" in without_dev.err


def test_user_defined_features(texts, tmp_path, good, run, monkeypatch):  # noqa: F811
    features_file = tmp_path / "features.py"
    features_file.write_text(
        "from dragoman import atom, feature\n"
        "@atom('vowel')\ndef vowel(word): return word[-1] in 'aeiou'\n"
        "@feature('long')\ndef long(words): return ['long'] if len(words) > 3 else []\n"
    )
    given = ("--features", "word1,vowel1+word2,long", "--features-from", str(features_file))
    good(*log_linear(texts, tmp_path / "model", *given))
    monkeypatch.setenv("DRAGOMAN_FEATURES", str(features_file))
    assert "long" in good("explain", tmp_path / "model", "the cat saw the").out


def test_initial_word_vectors(texts, tmp_path, good, run):  # noqa: F811
    good(*command(texts, tmp_path / "model", *SHORT))
    good("export", tmp_path / "model", "--word-vectors", tmp_path / "vectors.txt")
    result = good(*command(texts, tmp_path / "again", *SHORT, "--word-vectors", str(tmp_path / "vectors.txt")))
    assert "has 14 of 14 words" in result.err
    refused = run(
        *command(texts, tmp_path / "x", *SHORT, "--embedding", "7", "--word-vectors", str(tmp_path / "vectors.txt"))
    )
    assert refused.code == 2
    assert "use the same size" in refused.err
    changed = run(*command(texts, tmp_path / "again", *SHORT))
    assert changed.code == 2
    assert "other initial words, classes or parameters" in changed.err


def test_choose_does_not_replace_other_models(texts, tmp_path, good, run):  # noqa: F811
    good(*log_linear(texts, tmp_path / "model"))
    before = (tmp_path / "model" / ARRAYS_FILE).read_bytes()
    refused = run(*log_linear(texts, tmp_path / "model", "--choose", "l2=1,2"))
    assert refused.code == 2
    assert "already contains a model" in refused.err
    assert (tmp_path / "model" / ARRAYS_FILE).read_bytes() == before
    good(*log_linear(texts, tmp_path / "model", "--choose", "l2=1,2", "--force"))
    good(*log_linear(texts, tmp_path / "model", "--choose", "l2=1,2"))


def test_diverged_candidates_are_last(texts, tmp_path, good, run):  # noqa: F811
    wild = ("--optimizer", "sgd", "--batch-size", "10", "--clip", "none")
    result = good(*command(texts, tmp_path / "model", *SHORT, *wild, "--choose", "learning-rate=0.01,1e300"))
    assert "learning_rate=0.01 is the best" in result.err
    assert "infinite" in result.err
    none = run(*command(texts, tmp_path / "other", *SHORT, *wild, "--choose", "learning-rate=1e300,1e301"))
    assert none.code == 3
    wrong = run(*command(texts, tmp_path / "third", *SHORT, "--choose", "l2=0.1,,1"))
    assert wrong.code == 2
    assert not (tmp_path / "third.candidates").exists()


def test_config_of_a_model_can_be_reused(texts, tmp_path, good):  # noqa: F811
    good(*command(texts, tmp_path / "model", *SHORT, "--learning-rate", "0.0125"))
    good(*command(texts, tmp_path / "again", "-c", str(tmp_path / "model" / "config.yaml")))
    assert (tmp_path / "model" / "config.yaml").read_text() == (tmp_path / "again" / "config.yaml").read_text()


def test_useless_training_is_reported(texts, tmp_path, good):  # noqa: F811
    result = good(*command(texts, tmp_path / "model", *SHORT, "--learning-rate", "100"))
    assert "lower --learning-rate" in result.err


def test_a_line_is_printed_when_none_was_for_a_while(good, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr("dragoman.cli.progress.REPORT_INTERVAL", 0.0)
    (tmp_path / "text").write_text("a b c\n" * 20)
    command = ("train", "feed-forward", "--text", tmp_path / "text", "--max-updates", 3, "--batch-size", 5)
    lines = good(*command, "--report-every", 100, "-o", tmp_path / "model").err.splitlines()
    assert sum(": training loss " in line and "words/s" in line for line in lines) == 3


def progress_bar_lines(steps: list[tuple[float, float, int]], time_limit: float, loss: float) -> list[str]:
    """Return what a terminal of 80 columns shows after each step, given as (seconds, fraction done, epoch)."""
    console = Console(width=80, file=io.StringIO(), force_terminal=True, color_system=None)
    bar = training_bar(console)
    progress = TrainingProgress(lambda line: None, "character", bar)
    progress(TrainingStarted(Progress(), 10, 10, 10, "", False, time_limit=time_limit))
    shown = []
    for seconds, fraction, epoch in steps:
        position = Progress(epoch=epoch, update=1, seconds=seconds)
        progress(StepReport(position, loss, 10, 0.1, 1.0, fraction, False, False, None, None))
        with console.capture() as capture:
            console.print(bar.get_renderable())
        shown.append(capture.get().rstrip("\n"))
    return shown


def test_remaining_time_after_resumption_is_at_most_the_rest_of_the_limit():
    first, *_, last = progress_bar_lines([(31.5, 0.5, 0), (40.0, 0.52, 0), (50.0, 0.75, 0)], 60.0, 3.631)
    assert first.endswith("epoch 1, perplexity 37.75, 28 s left")
    assert last.endswith(" 10 s left")
    without_limit = progress_bar_lines([(31.5, 0.5, 0), (36.5, 0.6, 0)], math.inf, 3.631)
    assert without_limit[0].endswith(" ? left")
    assert without_limit[1].endswith(" 20 s left")  # 10 % in 5 s: the other 40 % take 20 s


def test_bar_and_text_fit_into_80_columns():
    (line,) = progress_bar_lines([(1.0, 0.999, 122)], 3599.0, 9.9)
    assert line.endswith("epoch 123, perplexity 19,930.37, 59 min 58 s left")
    assert len(line) <= 80
    assert "…" not in line
    assert sum(character in "━╸╺" for character in line) >= 10


def test_problems_of_training_texts_are_reported(good: Any, run: Any, tmp_path: Path) -> None:  # noqa: F811
    for name, lines in (("t.de", [*GERMAN, ""]), ("t.en", [*ENGLISH, ENGLISH[0]])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    source, target = tmp_path / "t.de", tmp_path / "t.en"
    command = ("train", "translator", "--src", source, "--tgt", target, "--max-updates", 1, "--units", "char")
    refused = run(*command, "--dev-src", target, "--dev-tgt", source, "-o", tmp_path / "m")
    assert refused.code == 2 and "exchange --dev-src and --dev-tgt" in refused.err
    result = good(*command, "--dev-src", source, "--dev-tgt", target, "-o", tmp_path / "n").err
    assert "exchange" not in result and "pairs with one blank side: 1" in result
    refused = run("train", "translator", "--src", source, "--tgt", source, "-o", tmp_path / "same")
    assert refused.code == 2 and "the same text" in refused.err and "--tgt-field" in refused.err
