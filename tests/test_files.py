"""Files and directories that are written completely or not at all, and the locks of directories."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from dragoman import DataError, DragomanError
from dragoman.io import files
from dragoman.io.files import atomic_directory, atomic_file, directory_lock, write_text
from dragoman.io.storage import new_directory, write_arrays


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.suffix != ".lock")


def full_disk(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# -- files -------------------------------------------------------------------------------------------------------------


def write_and_fail(path: Path, failure: BaseException) -> None:
    with atomic_file(path) as temporary:
        temporary.write_text("half")
        raise failure


def test_an_atomic_file_appears_when_complete(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.txt"
    with atomic_file(path) as temporary:
        temporary.write_text("new")
        assert not path.exists()
        assert temporary.parent == path.parent
    assert path.read_text() == "new"
    assert list(path.parent.iterdir()) == [path]


def test_an_atomic_file_has_default_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    with atomic_file(tmp_path / "file") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "plain").stat().st_mode
    with new_directory(tmp_path / "model") as directory:
        write_arrays(directory / "arrays", {"a": np.zeros(2)})
    assert (tmp_path / "model" / "arrays").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_an_atomic_file_replaces_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    with atomic_file(tmp_path / "file") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "file").read_text() == "new"


@pytest.mark.parametrize("failure", [ValueError("no"), KeyboardInterrupt()])
def test_after_an_error_the_old_file_remains(tmp_path: Path, failure: BaseException) -> None:
    (tmp_path / "file").write_text("old")
    with pytest.raises(type(failure)):
        write_and_fail(tmp_path / "file", failure)
    assert (tmp_path / "file").read_text() == "old"
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_full_disk_is_reported_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("old")
    monkeypatch.setattr(files, "sync", full_disk)
    with pytest.raises(DragomanError, match=r"file: could not be written \(No space left.*nothing was changed"):
        write_text(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "old"
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_link_to_a_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"


def test_temporary_files_of_killed_processes_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".file.tmp-abcd1234").write_text("half")
    (tmp_path / ".file.tmp-my.notes").write_text("not ours")
    with atomic_file(tmp_path / "file") as temporary:
        temporary.write_text("first")
        write_text(tmp_path / "file", "second")  # by another process, say
        assert temporary.exists()
    assert (tmp_path / "file").read_text() == "first"
    assert names(tmp_path) == [".file.tmp-my.notes", "file"]


# -- directories -------------------------------------------------------------------------------------------------------


def fill(path: Path, text: str) -> None:
    with atomic_directory(path) as directory:
        (directory / "file").write_text(text)


KILLED = """
import os, sys
from pathlib import Path
from dragoman.io import files
def kill(*_, **__): os.kill(os.getpid(), 9)
{patch}
with files.atomic_directory(Path(sys.argv[1])) as directory:
    (directory / "file").write_text("new")
"""


@pytest.mark.parametrize(
    ("patch", "kept"),
    [
        ("files._move_into_place = kill", "old"),
        ("files.shutil.rmtree = kill", "new"),
        ("files._exchange = lambda *_: False; files.shutil.rmtree = kill", "new"),
        (
            "files._exchange = lambda *_: False; replace = Path.replace\n"
            "Path.replace = lambda self, other: replace(self, other) and kill()",
            "old",
        ),
    ],
)
def test_a_process_killed_while_it_replaces_a_directory_leaves_one_of_the_two(
    tmp_path: Path, patch: str, kept: str
) -> None:
    target = tmp_path / "model"
    fill(target, "old")
    process = subprocess.run([sys.executable, "-c", KILLED.format(patch=patch), target], check=False)
    assert process.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 2 or not target.exists()
    with directory_lock(target):
        assert (target / "file").read_text() == kept
    assert names(tmp_path) == ["model"]


def test_a_directory_is_replaced_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader finds the old or the new directory at any time."""
    fill(tmp_path / "model", "old")
    monkeypatch.setattr(Path, "replace", full_disk)  # only a new directory is moved
    fill(tmp_path / "model", "new")
    assert (tmp_path / "model" / "file").read_text() == "new"


# -- locks -------------------------------------------------------------------------------------------------------------

HOLD = """
import sys
from pathlib import Path
from dragoman.io.files import directory_lock
with directory_lock(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


def hold(path: Path) -> subprocess.Popen[str]:
    """Start a process that holds the lock of a directory until its standard input ends."""
    command = [sys.executable, "-c", HOLD, str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "locked\n"
    return process


def test_a_second_process_is_refused_and_a_killed_one_leaves_no_lock(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("model")
    with hold(tmp_path / "link") as process:
        with pytest.raises(
            DataError, match=rf"another program \(process {process.pid}, since \d{{4}}-.*choose another"
        ):
            fill(tmp_path / "model", "new")
        assert names(tmp_path) == ["link"]
        process.kill()
    fill(tmp_path / "model", "new")
    assert (tmp_path / "link" / "file").read_text() == "new"


def test_a_lock_is_held_by_one_thread(tmp_path: Path) -> None:
    refused = []

    def try_to_lock() -> None:
        try:
            fill(tmp_path / "model", "new")
        except DataError as error:
            refused.append(str(error))

    with directory_lock(tmp_path / "model"), directory_lock(tmp_path / "model"):
        thread = threading.Thread(target=try_to_lock)
        thread.start()
        thread.join()
    assert len(refused) == 1 and "another thread" in refused[0]
    fill(tmp_path / "model", "new")


FORK = """
import os, sys
from pathlib import Path
from dragoman.io.files import directory_lock
with directory_lock(Path(sys.argv[1])):
    reader, writer = os.pipe()
    if os.fork():
        os.read(reader, 1)  # the child is running
        print("locked", flush=True)
        os.kill(os.getpid(), 9)
    os.write(writer, b"x")
    sys.stdin.read()
    os._exit(0)
"""


def test_a_forked_process_does_not_keep_the_lock(tmp_path: Path) -> None:
    """The lock is released with the process that holds it, although its child goes on."""
    command = [sys.executable, "-c", FORK, str(tmp_path / "model")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "locked\n"
        process.wait()
        fill(tmp_path / "model", "new")
        assert process.stdin is not None
        process.stdin.close()
