"""The store that torchrun's agent, or process 0, shares with all processes: where they meet, and notes of a job.

The agent's store outlives the processes. What they write to connect belongs to one attempt, and notes to the whole job.
"""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from torch.distributed.rendezvous import rendezvous

from dragoman.core.errors import DragomanError, shorten
from dragoman.io.files import real_path

TIMEOUT = timedelta(minutes=10)  # without an answer from another process; it may be writing a checkpoint
POLL_SECONDS = 0.02
AGENT_STORE = "TORCHELASTIC_USE_AGENT_STORE"  # "True" if torchrun's agent has the store


def agree_on_prefix(store: Any, rank: int, world_size: int, timeout: timedelta = TIMEOUT) -> str:
    """Return a prefix for the keys of these processes that none of an earlier attempt has used.

    After a failure, agents on several machines count their restarts differently, so the number of the attempt is no
    such prefix. Instead process 0 chooses it, and answers each process that asks under a name of its own.
    """
    if rank:
        name = uuid4().hex
        store.set(f"hello {rank}", name)
        store.wait([f"welcome {name}"], timeout)
        prefix = str(store.get(f"welcome {name}").decode())
        store.set(f"joined {prefix} {name}", "")
        return prefix
    prefix, end = uuid4().hex, time.monotonic() + timeout.total_seconds()
    missing, names = set(range(1, world_size)), dict[int, str]()
    while missing:
        for other in sorted(missing):
            if not store.check([f"hello {other}"]):
                continue
            name = store.get(f"hello {other}").decode()  # of an earlier attempt until the process has started
            if names.get(other) != name:
                names[other] = name
                store.set(f"welcome {name}", prefix)
            if store.check([f"joined {prefix} {name}"]):
                missing.remove(other)
        if time.monotonic() > end:
            raise RuntimeError(f"no answer from process {', '.join(map(str, sorted(missing)))}")
        time.sleep(POLL_SECONDS if missing else 0.0)
    return prefix


def has_replaced(output: Path) -> bool:
    """Return whether this job has noted that it replaced a directory."""
    store = _agent_store()
    return store is not None and bool(store.check([_replaced(output)]))


def note_replaced(output: Path) -> None:
    """Note that this job has replaced a directory, for the processes that torchrun may start after these."""
    if (store := _agent_store()) is not None:
        store.set(_replaced(output), "")


def _replaced(output: Path) -> str:
    return f"dragoman has replaced {real_path(output)}"


def _agent_store() -> Any | None:
    """Return the store of torchrun's agent; None if this process was not started by torchrun."""
    if os.environ.get(AGENT_STORE) != str(True):
        return None
    try:
        return next(rendezvous("env://", timeout=TIMEOUT))[0]
    except (RuntimeError, ValueError) as error:
        why = shorten(" ".join(str(error).split()), 120)
        raise DragomanError(f"the store of torchrun cannot be reached ({why}); start the command again") from None
