"""Where requests wait: those that arrive together and ask for the same are answered together, by one worker.

The models need all of the processor's cores for one batch, so there is one worker, and the rest waits. What waits too
long is refused, and not begun any more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import Any

from dragoman.serve.refusal import busy, too_slow

LINGER = 0.005  # seconds that the first of several waits for others

Work = Callable[[list[Any]], Sequence[Any]]  # answers to some questions, in their order


@dataclass(eq=False)
class _Errand:
    """What somebody waits for."""

    key: Hashable  # errands of one key are done together
    questions: list[Any]
    work: Work
    answers: Future[Sequence[Any]] = field(default_factory=Future)


class Desk:
    """One worker, and those who wait for it."""

    def __init__(self, most: int, seconds: float, together: int = 64):
        self.most, self.seconds, self.together = most, seconds, together
        self._waiting: deque[_Errand] = deque()
        self._change = Condition()
        self._open = True
        self.batches = 0  # how often the worker worked
        self._worker = Thread(target=self._run, name="desk", daemon=True)
        self._worker.start()

    async def ask(self, key: Hashable, questions: Sequence[Any], work: Work) -> Sequence[Any]:
        """The answers to some questions, by a function that may be given others' of the same key as well."""
        errand = _Errand(key, list(questions), work)
        with self._change:
            if len(self._waiting) >= self.most:
                raise busy(len(self._waiting))
            self._waiting.append(errand)
            self._change.notify()
        try:
            return await asyncio.wait_for(asyncio.wrap_future(errand.answers), self.seconds)
        except TimeoutError:
            raise too_slow(self.seconds) from None
        finally:
            self._leave(errand)

    async def do(self, work: Callable[[], Any]) -> Any:
        """What one function gives, done for itself."""
        [answer] = await self.ask(object(), [None], lambda _: [work()])
        return answer

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def close(self) -> None:
        with self._change:
            self._open = False
            self._change.notify()
        self._worker.join(timeout=self.seconds)

    def _leave(self, errand: _Errand) -> None:
        """Whoever has gone does not wait any more."""
        with self._change:
            if errand in self._waiting:
                self._waiting.remove(errand)

    # -- the worker ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while some := self._next():
            self._answer(some)

    def _next(self) -> list[_Errand]:
        """The first that waits, and those that can be done with it; none when the desk is closed."""
        with self._change:
            self._change.wait_for(lambda: self._waiting or not self._open)
            if not self._waiting:
                return []
            self._change.wait_for(lambda: len(self._waiting) >= self.together, timeout=LINGER)
            first = self._waiting.popleft()
            taken, size = [first], len(first.questions)
            for other in list(self._waiting):
                if other.key == first.key and size + len(other.questions) <= self.together:
                    self._waiting.remove(other)
                    taken.append(other)
                    size += len(other.questions)
            return taken

    def _answer(self, some: Sequence[_Errand]) -> None:
        wanted = [errand for errand in some if errand.answers.set_running_or_notify_cancel()]
        if not wanted:
            return
        self.batches += 1
        questions = [question for errand in wanted for question in errand.questions]
        try:
            answers = list(wanted[0].work(questions))
        except BaseException as error:  # told to those who wait for it
            for errand in wanted:
                errand.answers.set_exception(error)
            return
        start = 0
        for errand in wanted:
            errand.answers.set_result(answers[start : start + len(errand.questions)])
            start += len(errand.questions)
