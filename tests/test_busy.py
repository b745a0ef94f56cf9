"""The wait policy of threads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dragoman.core import busy
from dragoman.core.busy import WAIT_SETTINGS, other_running_threads, set_wait_policy


@pytest.fixture
def load_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "loadavg"
    monkeypatch.setattr(busy, "LOAD_FILE", path)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1}, raising=False)
    for name in (*WAIT_SETTINGS, "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    return path


@pytest.mark.parametrize(
    ("running", "threads", "expected"), [(1, "", None), (2, "", "0"), (2, "1", None), (3, "2", "0")]
)
def test_threads_give_up_their_cores_if_others_need_them(
    load_file: Path, monkeypatch: pytest.MonkeyPatch, running: int, threads: str, expected: str | None
) -> None:
    load_file.write_text(f"0.10 0.20 0.30 {running}/161 4711\n")
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    monkeypatch.setenv("GOMP_SPINCOUNT", "")
    monkeypatch.delenv("GOMP_SPINCOUNT")
    set_wait_policy()
    assert os.environ.get("GOMP_SPINCOUNT") == expected


@pytest.mark.parametrize(("running", "expected"), [(9, None), (65, "0")])
def test_other_cores_of_the_machine_do_not_count(
    load_file: Path, monkeypatch: pytest.MonkeyPatch, running: int, expected: str | None
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    load_file.write_text(f"0.10 0.20 0.30 {running}/161 4711\n")
    monkeypatch.setenv("GOMP_SPINCOUNT", "")
    monkeypatch.delenv("GOMP_SPINCOUNT")
    set_wait_policy()
    assert os.environ.get("GOMP_SPINCOUNT") == expected


def test_a_policy_of_the_user_stays(load_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_file.write_text("0.10 0.20 0.30 9/161 4711\n")
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    set_wait_policy()
    assert "GOMP_SPINCOUNT" not in os.environ


@pytest.mark.parametrize("content", [None, "", "1 2 3", "0.1 0.2 0.3 x/5 1"])
def test_systems_that_do_not_tell_count_as_idle(load_file: Path, content: str | None) -> None:
    if content is not None:
        load_file.write_text(content)
    assert other_running_threads() == 0
