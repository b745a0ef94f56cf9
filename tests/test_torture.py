"""Short samples of the campaigns in `torture`, which `make torture` runs for hours."""

from __future__ import annotations

import os
import random
import sys
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from time import perf_counter

import pytest

from dragoman.combine import shortlist_choice
from dragoman.io import files
from dragoman.io.storage import SHORTLIST_FILE
from torture.commands import COMMANDS, fresh_copy, run_forked, write_inputs
from torture.concurrency import results, run_together
from torture.crash_points import Campaign, FileOperations, campaigns, crash_everywhere, fail_everywhere, is_left_over
from torture.inputs import READINGS, try_damaged, try_separators, write_all
from torture.kills import kill_until_finished
from torture.torn_writes import try_power_failures

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def replacing(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A training that replaces another model."""
    *_, campaign = campaigns(tmp_path_factory.mktemp("torture") / "place", ["train ngram"])
    assert campaign.name == "train ngram --force"
    return campaign


@pytest.mark.parametrize("disturb", [crash_everywhere, fail_everywhere])
def test_a_disturbed_command_can_be_run_again(replacing: Campaign, disturb: type) -> None:
    disturb(replacing, iter(range(2, 40, 4)))
    assert replacing.tried >= 5
    assert not replacing.problems


def test_the_end_of_a_training_can_be_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first operation on the shortlist to the last one of all."""
    for name in ("MIN_SENTENCES", "MIN_SPEEDUP"):
        monkeypatch.setattr(shortlist_choice, name, 0)
    campaign, *_ = campaigns(tmp_path / "place", ["train translator"])
    first = campaign.first_operation(SHORTLIST_FILE)
    crash_everywhere(campaign, count(first, 4))
    assert campaign.tried >= 4 and not campaign.problems


def test_a_power_failure_loses_nothing(replacing: Campaign) -> None:
    before = replacing.tried
    try_power_failures(replacing, perf_counter() + 100, every=7)
    assert replacing.tried > before
    assert not replacing.problems


def test_killed_trainings_end_with_the_same_model(tmp_path: Path) -> None:
    write_inputs(tmp_path / "inputs")
    killed, problems = kill_until_finished("train recurrent, carried", tmp_path / "inputs", 2, random.Random(1))
    assert killed and not problems


def test_of_two_commands_on_one_directory_one_is_refused(tmp_path: Path) -> None:
    inputs = tmp_path / "inputs"
    write_inputs(inputs)
    names = ("train ngram", "mix")
    expected = results(inputs, names)
    for force in (False, True):
        assert not run_together(names, force=force, inputs=inputs, delay=0.0, expected=expected)


def test_damaged_files_are_refused_or_read(tmp_path: Path) -> None:
    write_all(tmp_path / "inputs")
    generator = random.Random(1)
    outcomes = [try_damaged(reading, tmp_path / "inputs", generator) for reading in READINGS[::4]]
    assert not [problem for _, problem in outcomes if problem is not None]
    assert {code for code, _ in outcomes} >= {0, 2}
    assert not any(try_separators(reading, tmp_path / "inputs", 10, generator) for reading in READINGS[:16:7])


@dataclass
class WritesElsewhere(FileOperations):
    """Ends the process at a file operation outside of `dragoman.io.files`, except on a file with a temporary name."""

    def _count(self, name: str, path: str) -> None:
        place = str(Path(path).absolute()).removeprefix(self.directory)
        if not place.startswith(os.sep) and not is_left_over(place) and not _called_from(files.__file__):
            print(f"{name} {place} is not written by {files.__name__}", file=sys.stderr, flush=True)
            os._exit(98)


def _called_from(file: str) -> bool:
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_filename == file:
            return True
    return False


def test_everything_is_written_by_one_module(tmp_path: Path) -> None:
    write_inputs(tmp_path / "inputs")
    for name, arguments in COMMANDS.items():
        place = fresh_copy(tmp_path / "inputs", tmp_path / "place")
        watch = WritesElsewhere(f"{place}{os.sep}", 0, lambda: None)
        finished = run_forked(arguments, place, watch.install)
        assert finished.code == 0, f"{name}: {finished.last_line}"
