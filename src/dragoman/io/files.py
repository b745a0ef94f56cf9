"""Writing of files and directories, completely or not at all. Everything that dragoman writes is written here.

A file or directory is written under a temporary name, synchronised with the disk, and moved into place in one step. A
process that is killed, or a computer that loses power, leaves the old contents or the new ones. What it leaves behind
under temporary names is removed by the next process that writes to the same place.

One process at a time writes to a directory: it holds a lock on `.NAME.lock` beside it. The lock file is never removed,
because another process could be waiting for it. The system releases the lock when its process ends for any reason.
"""

from __future__ import annotations

import ctypes
import errno
import gzip
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, cast

from safetensors import SafetensorError

from dragoman.core.errors import DataError, DragomanError

if sys.platform != "win32":
    import fcntl

TEMPORARY, OLD = "tmp", "old"  # in the names of files and directories that are not in their place
SCRATCH = f".dragoman.{TEMPORARY}-"  # how the names of directories for temporary files begin
SCRATCH_LOCK = "lock"  # the file in such a directory that is locked
RANDOM_PART = "[a-z0-9_]{8}"  # of these names, by `tempfile`
AT_CURRENT_DIRECTORY, EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of renameat2
CANNOT_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)
CANNOT_LOCK = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)  # file systems without locks


# -- files -------------------------------------------------------------------------------------------------------------


@contextmanager
def atomic_file(path: Path, *, create_parents: bool = True) -> Iterator[Path]:
    """Yield a temporary file to write to. It replaces `path` at the end, if there was no error.

    Several processes may write the same file: the last one wins.
    """
    with writing_errors(path):
        target = real_path(path)
        if create_parents:
            create_directory(target.parent)
        _remove_unlocked_files(target)
        descriptor, temporary = _create_locked_file(target)
        try:
            yield temporary
            temporary.chmod(0o666 & ~_umask())
            sync(temporary)
            temporary.replace(target)
            sync(target.parent)
        finally:
            temporary.unlink(missing_ok=True)
            os.close(descriptor)


def _create_locked_file(target: Path) -> tuple[int, Path]:
    """Create a temporary file, locked so that other processes do not remove it. Return also its descriptor."""
    while True:
        descriptor, name = tempfile.mkstemp(prefix=_prefix(target, TEMPORARY), dir=target.parent)
        if _lock(descriptor) and os.fstat(descriptor).st_nlink:  # otherwise another process was faster
            return descriptor, Path(name)
        os.close(descriptor)


def write_text(path: Path, text: str, *, create_parents: bool = True) -> None:
    """Write a file of text, completely or not at all."""
    with atomic_file(path, create_parents=create_parents) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def output_file(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file to write to, completely or not at all; it is compressed if its name ends in .gz."""
    is_device = path.exists() and not path.is_file()  # or a pipe, which is not replaced
    with ExitStack() as stack:
        file: IO[bytes] = stack.enter_context(
            (path if is_device else stack.enter_context(atomic_file(path))).open("wb")
        )
        if path.suffix == ".gz":
            file = cast(IO[bytes], stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0)))
        yield file


def remove_file(path: Path) -> None:
    """Remove a file, if there is one."""
    path.unlink(missing_ok=True)


def append_line(path: Path, line: str, *, synchronise: bool = False) -> None:
    """Add a line to a file. With `synchronise`, it is on the disk when this returns."""
    is_new = not path.exists()
    with path.open("ab") as file:
        file.write(f"{line}\n".encode())
        if synchronise:
            file.flush()
            os.fsync(file.fileno())
    if synchronise and is_new:
        sync(path.parent)


def create_directory(path: Path) -> None:
    """Create a directory and its parents, unless they exist."""
    missing = [parent for parent in (path, *path.parents) if not parent.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for directory in missing:
        sync(directory.parent)


def sync(path: Path) -> None:
    """Wait until a file or directory is written to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# -- directories -------------------------------------------------------------------------------------------------------


@contextmanager
def atomic_directory(path: Path) -> Iterator[Path]:
    """Yield a temporary directory to fill. It becomes `path`, or replaces it, at the end, if there was no error."""
    with writing_errors(path), directory_lock(path):
        target = real_path(path)
        temporary = Path(tempfile.mkdtemp(prefix=_prefix(target, TEMPORARY), dir=target.parent))
        try:
            yield temporary
            temporary.chmod(0o777 & ~_umask())
            for file in temporary.rglob("*"):
                if file.is_file():
                    file.chmod(0o666 & ~_umask())  # safetensors writes files that only their owner can read
                sync(file)
            sync(temporary)
            _move_into_place(temporary, target)
            sync(target.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _move_into_place(temporary: Path, target: Path) -> None:
    """Give a directory its name. If there is one with this name, it gets the temporary name, and is removed later."""
    if not target.exists():
        temporary.replace(target)
    elif not _exchange(temporary, target):
        old = Path(tempfile.mkdtemp(prefix=_prefix(target, OLD), dir=target.parent))
        try:
            target.replace(old)  # if the process is killed after this step, the next one restores the old directory
            temporary.replace(target)
        finally:
            if not target.exists():
                old.replace(target)
            shutil.rmtree(old, ignore_errors=True)


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two directories in one step. Return False if the system cannot do this."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    names = os.fsencode(first), os.fsencode(second)
    if renameat2(AT_CURRENT_DIRECTORY, names[0], AT_CURRENT_DIRECTORY, names[1], EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in CANNOT_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number), str(second))


@contextmanager
def scratch_directory(parent: Path) -> Iterator[Path]:
    """Yield a new directory for temporary files in `parent`. It is removed at the end, also after an error.

    A file in it is locked until then. Directories of processes that were killed have no lock any more: they are removed
    first, unless the file system has no locks.
    """
    with writing_errors(parent):
        create_directory(parent)
        _remove_unlocked_directories(parent)
        descriptor, path = _create_locked_directory(parent)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)
            os.close(descriptor)


def directory_bytes(directory: Path) -> int:
    """Return the size of the files in a directory, from which other threads may remove some."""
    size = 0
    with os.scandir(directory) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                size += entry.stat().st_size
    return size


def _create_locked_directory(parent: Path) -> tuple[int, Path]:
    """Create a temporary directory that other processes do not remove. Return also the descriptor of its lock."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=SCRATCH, dir=parent))
        descriptor = os.open(path / SCRATCH_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        if _lock(descriptor) and os.fstat(descriptor).st_nlink:  # otherwise another process was faster
            return descriptor, path
        os.close(descriptor)


def _remove_unlocked_directories(parent: Path) -> None:
    """Remove temporary directories whose lock file exists and is not locked; without it, one is being created."""
    for path in parent.iterdir():
        if re.fullmatch(re.escape(SCRATCH) + RANDOM_PART, path.name) and path.is_dir() and not path.is_symlink():
            with suppress(OSError):
                descriptor = os.open(path / SCRATCH_LOCK, os.O_RDWR)
                try:
                    if _try_lock(descriptor):
                        shutil.rmtree(path, ignore_errors=True)
                finally:
                    os.close(descriptor)


# -- locks -------------------------------------------------------------------------------------------------------------


class LockedError(DataError):
    """Another process or thread writes to a directory."""

    def __init__(self, path: Path, holder: str):
        remedy = "wait until it has ended, or choose another directory"
        super().__init__(f"{path}: is being written by another program ({holder}); {remedy}")
        self.holder = holder


@dataclass
class _HeldLock:
    """A lock of this process."""

    descriptor: int
    thread: int
    uses: int = 1


_held: dict[Path, _HeldLock] = {}
_held_guard = threading.Lock()


def lock_file(path: Path) -> Path:
    """Return the file whose lock is held by the process that writes to a directory."""
    return path.with_name(f".{path.name}.lock")


@contextmanager
def directory_lock(path: Path) -> Iterator[None]:
    """Let no other process or thread write to a directory, which need not exist. The same thread may lock it again.

    What killed processes left behind is restored or removed. Raises a `LockedError` if the lock is held.
    """
    with writing_errors(path):
        target = real_path(path)
        is_new = _acquire(target, path)
        if is_new:
            _clean_up(target)
    try:
        yield
    finally:
        _release(target)


def _acquire(target: Path, path: Path) -> bool:
    """Acquire the lock of a directory. Return False if this thread has it already."""
    thread = threading.get_ident()
    with _held_guard:
        if (lock := _held.get(target)) is not None:
            if lock.thread != thread:
                raise LockedError(path, "another thread")
            lock.uses += 1
            return False
        create_directory(target.parent)
        descriptor = os.open(lock_file(target), os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not _lock(descriptor):
                holder = os.pread(descriptor, 200, 0).decode("utf-8", "replace")
                raise LockedError(path, holder or "another process")
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()}, since {datetime.now():%Y-%m-%d %H:%M:%S}".encode(), 0)
        except BaseException:
            os.close(descriptor)
            raise
        _held[target] = _HeldLock(descriptor, thread)
        return True


def _release(target: Path) -> None:
    with _held_guard:
        lock = _held[target]
        lock.uses -= 1
        if not lock.uses:
            del _held[target]
            with suppress(OSError):
                os.ftruncate(lock.descriptor, 0)
            os.close(lock.descriptor)


def _lock(descriptor: int) -> bool:
    """Lock an open file without waiting, if the system can. Return False if another process has locked it."""
    return _try_lock(descriptor) is not False


def _try_lock(descriptor: int) -> bool | None:
    """Lock an open file without waiting. Return False if another process has locked it, None if there are no locks."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        if error.errno in CANNOT_LOCK:
            return None
        raise
    return True


def _forget_locks() -> None:
    """Close the locks of the parent process, which a forked process would otherwise keep alive."""
    global _held_guard
    _held_guard = threading.Lock()
    for lock in _held.values():
        with suppress(OSError):
            os.close(lock.descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)


# -- what killed processes leave behind --------------------------------------------------------------------------------


def _prefix(target: Path, kind: str) -> str:
    return f".{target.name}.{kind}-"


def _siblings(target: Path, kind: str) -> list[Path]:
    """Return what has a temporary name of this kind for a file or directory."""
    pattern = re.compile(re.escape(_prefix(target, kind)) + RANDOM_PART)
    return [path for path in target.parent.iterdir() if pattern.fullmatch(path.name) and not path.is_symlink()]


def is_temporary(path: Path) -> bool:
    """Return whether a file or directory has a temporary name."""
    return bool(re.fullmatch(rf"\..+\.({TEMPORARY}|{OLD})-{RANDOM_PART}", path.name))


def _clean_up(target: Path) -> None:
    """Restore or remove what a killed process left of a directory. Its lock must be held."""
    old = [path for path in _siblings(target, OLD) if any(path.iterdir())]
    if old and not target.exists():
        max(old, key=lambda path: path.stat().st_mtime).replace(target)
        sync(target.parent)
    for path in (*_siblings(target, TEMPORARY), *_siblings(target, OLD)):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
    if target.is_dir():
        for path in target.rglob(".*"):
            if is_temporary(path) and path.is_file():
                path.unlink(missing_ok=True)


def _remove_unlocked_files(target: Path) -> None:
    """Remove temporary files of a file that no process is writing."""
    for path in _siblings(target, TEMPORARY):
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDWR)
            try:
                if path.is_file() and _try_lock(descriptor):
                    path.unlink(missing_ok=True)
            finally:
                os.close(descriptor)


# -- errors and paths --------------------------------------------------------------------------------------------------


@contextmanager
def writing_errors(path: Path) -> Iterator[None]:
    """Turn errors of writing to a file or directory into a message with its name."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        # NumPy gives no reason for an OSError
        reason = error.strerror or f"{error}; is the disk full?" if isinstance(error, OSError) else error
        raise DragomanError(f"{path}: could not be written ({reason}); nothing was changed") from error


def real_path(path: Path) -> Path:
    """Return the path that a path refers to, also if it does not exist: without symbolic links and `..`."""
    return Path(os.path.realpath(path))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
