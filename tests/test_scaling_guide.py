"""The commands of the guide to scaling, except those of Spark (`test_spark.py`)."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from command import DEV, TRAIN, good
from guide_commands import guide_commands

__all__ = ["good"]  # a fixture
pytestmark = pytest.mark.slow

GRID = """\
command: train ngram
options: {text: train.txt, dev-text: dev.txt, units: word}
grid: {order: [2, 3]}
output: grid
"""
SEARCH = """\
command: train ngram
options: {text: train.txt, dev-text: dev.txt, units: word}
search: {order: {low: 1, high: 3}}
trials: 3
output: tuned
"""
FILES = {"train.txt": TRAIN, "dev.txt": DEV, "big.txt": TRAIN * 300, "grid.yaml": GRID, "search.yaml": SEARCH}


def test_commands_of_the_overview_work(good: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        Path(name).write_text(content)
    commands = [command for command in guide_commands("scaling.md") if "spark" not in command]
    assert len(commands) == 7
    for command in commands:
        program, *arguments = shlex.split(command)
        if program == "dragoman":
            good(*arguments)
        else:  # torchrun is in the directory of the interpreter
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            subprocess.run([Path(sys.executable).parent / program, *arguments], env=environment, check=True)
    whole = good("score", "kn5", "--text", "big.txt").out
    assert Path("big.scores").read_text() == whole
    assert Path("lstm/model.safetensors").is_file()
    assert Path("grid/results.json").is_file() and Path("tuned/trials.json").is_file()
