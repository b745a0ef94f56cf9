"""Being asked to stop, between two steps rather than within one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from dragoman.core.errors import DragomanError

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


class StoppedError(DragomanError):
    """Training was asked to stop, and did after saving."""

    def __init__(self, number: int, message: str):
        super().__init__(message)
        self.exit_code = CODES[signal.Signals(number)]


class StopRequest:
    """Which signal has come, if one has."""

    def __init__(self) -> None:
        self.number = 0


@contextmanager
def catch_stop_signals() -> Iterator[StopRequest]:
    """Note the first SIGINT or SIGTERM, to be seen to at the end of a step; a second one has its usual effect at once.

    Signals reach the main thread alone; in others nothing is noted.
    """
    requests = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield requests
        return
    before = {number: signal.getsignal(number) for number in CODES}

    def note(number: int, frame: FrameType | None) -> None:
        requests.number = number
        for each, handler in before.items():
            signal.signal(each, handler)

    for number in CODES:
        signal.signal(number, note)
    try:
        yield requests
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
