"""Processes that run one command together, started by torchrun or another program that sets the same variables."""

from __future__ import annotations

import os

from dragoman.core.errors import DataError

# Rank of this process, number of processes, and where they meet.
VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
RESTARTS = "TORCHELASTIC_RESTART_COUNT"  # how often torchrun has started the processes again


def process_rank() -> int:
    """Return the number of this process, from 0; 0 if it runs alone."""
    return _value("RANK") if _are_set() else 0


def process_count() -> int:
    """Return the number of processes that run this command together; 1 if this one runs alone."""
    return _value("WORLD_SIZE") if _are_set() else 1


def local_rank() -> int:
    """Return the number of this process among those of this machine."""
    return _value("LOCAL_RANK") if os.environ.get("LOCAL_RANK") else process_rank()


def on_one_machine() -> bool:
    """Return whether all processes are known to run on this machine."""
    return os.environ.get("LOCAL_WORLD_SIZE") == str(process_count())


def was_restarted() -> bool:
    """Return whether torchrun has started this command again, because a process of the first attempt failed."""
    return os.environ.get(RESTARTS, "0") not in ("", "0")


def _are_set() -> bool:
    return all(os.environ.get(name) for name in VARIABLES)


def _value(name: str) -> int:
    text = os.environ[name]
    if not text.isdecimal():
        raise DataError(f"the environment variable {name} is {text!r}, not a number; start the processes with torchrun")
    return int(text)
