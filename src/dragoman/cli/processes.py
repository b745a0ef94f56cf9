"""Commands that several processes run together, started by torchrun."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.core.errors import DataError
from dragoman.core.processes import local_rank, process_count, process_rank

if TYPE_CHECKING:
    from dragoman.training.distributed import Communicator

TRAINED_TOGETHER = ("feed-forward", "log-linear", "recurrent", "translator")  # by `dragoman train`


def prepare_process(arguments: Sequence[str]) -> None:
    """Check that several processes can run a command, and silence this one unless it is the first one or runs alone."""
    if process_count() == 1:
        return
    if process_rank():
        sys.stdout = sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115, until the process ends
    if arguments[:1] != ["train"] or not set(arguments[1:2]) & set(TRAINED_TOGETHER):
        names = f"{', '.join(TRAINED_TOGETHER[:-1])} or {TRAINED_TOGETHER[-1]}"
        raise DataError(f"several processes can run dragoman train {names}; run this command without torchrun")
    if any(argument == "-" or argument.endswith("=-") for argument in arguments):
        raise DataError("standard input cannot be read by several processes; write the text to a file and name that")


def connect_processes(device: str) -> Communicator:
    """Connect this process to the others that were started with it, if there are any, until the command has ended."""
    from dragoman.cli.options import command_resources
    from dragoman.training.distributed import communicator, disconnect

    def close(kind: object, *error: object) -> None:
        if kind is None:  # otherwise the end of this process closes them, after its error message
            disconnect()

    command_resources.push(close)
    return communicator(device)


def reports(error: BaseException) -> bool:
    """Return whether this process reports an error, so that there is one message of all processes."""
    if "dragoman.training.distributed" not in sys.modules:
        return local_rank() == 0
    from dragoman.training.distributed import may_report

    return may_report(error)


def error_prefix() -> str:
    """Return what an error message begins with: the program, and the process if it is not the first one."""
    return f"dragoman: process {process_rank()} of {process_count()}: " if process_rank() else "dragoman: "
