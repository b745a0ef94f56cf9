"""Where requests wait: those that arrive together and ask for the same are answered together, by one worker.

The models need all of the processor's cores for one batch, so there is one worker, and the rest waits. What waits too
long is refused and not begun any more; what takes too long is given up once nobody waits for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import Any, TypeVar

from dragoman.serve.errors import busy, too_slow

LINGER = 0.005  # seconds that the first of several waits for others

# When whatever a request asks for must be there, by the loop's clock; a request may come to the desk several times.
DEADLINE: ContextVar[float | None] = ContextVar("DEADLINE", default=None)
Done = TypeVar("Done")
Wanted = Callable[[], bool]  # whether anybody waits still: long work asks now and then
Work = Callable[[list[Any], Wanted], Sequence[Any]]  # answers to some questions, in their order


class GivenUp(Exception):  # noqa: N818  (nothing is wrong)
    """Raised by work that nobody waits for any more."""


def unless_gone(wanted: Wanted) -> Callable[[], None]:
    """To be called by long work at every step: it ends when nobody waits for it."""

    def check() -> None:
        if not wanted():
            raise GivenUp

    return check


@dataclass(eq=False)
class _Errand:
    """What somebody waits for."""

    key: Hashable  # errands of one key are done together
    questions: list[Any]
    work: Work
    answers: Future[Sequence[Any]] = field(default_factory=Future)
    wanted: bool = True


class Desk:
    """One worker, and those who wait for it."""

    def __init__(self, most: int, seconds: float, together: int = 64):
        self.most, self.seconds, self.together = most, seconds, together
        self._waiting: deque[_Errand] = deque()
        self._change = Condition()
        self._open = True
        self.batches = 0  # how often the worker worked
        self._worker = Thread(target=copy_context().run, args=(self._run,), name="desk", daemon=True)
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
            return await asyncio.wait_for(asyncio.wrap_future(errand.answers), self._left())
        except TimeoutError:
            raise too_slow(self.seconds) from None
        finally:
            self._leave(errand)

    def _left(self) -> float:
        """Seconds that an answer may take."""
        until = DEADLINE.get()
        return self.seconds if until is None else max(0.0, until - asyncio.get_running_loop().time())

    async def do(self, work: Callable[[], Done]) -> Done:
        """What one function gives, done for itself."""
        return await self.do_while_wanted(lambda _: work())

    async def do_while_wanted(self, work: Callable[[Wanted], Done]) -> Done:
        """The same for one that takes long, and asks now and then whether anybody waits."""
        answers: Sequence[Done] = await self.ask(object(), [None], lambda _, wanted: [work(wanted)])
        return answers[0]

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    @property
    def works(self) -> bool:
        return self._worker.is_alive()

    def close(self) -> None:
        with self._change:
            self._open = False
            self._change.notify()
        self._worker.join(timeout=self.seconds)

    def _leave(self, errand: _Errand) -> None:
        """Whoever has gone does not wait any more."""
        errand.wanted = False
        with self._change:
            if errand in self._waiting:
                self._waiting.remove(errand)

    # -- the worker ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while self._open:
            self._answer(self._next())

    def _next(self) -> list[_Errand]:
        """The first that waits, and those that can be done with it; none if all have gone, or the desk is closed."""
        with self._change:
            if not self._waiting:  # who waited while others were answered has waited enough
                self._change.wait_for(lambda: self._waiting or not self._open)
                self._change.wait_for(lambda: len(self._waiting) >= self.together or not self._open, timeout=LINGER)
            if not self._waiting:
                return []
            first = self._waiting.popleft()
            taken, size = [first], len(first.questions)
            for other in list(self._waiting):
                if other.key == first.key and size + len(other.questions) <= self.together:
                    self._waiting.remove(other)
                    taken.append(other)
                    size += len(other.questions)
            return taken

    def _answer(self, some: Sequence[_Errand]) -> None:
        """Answer all at once; if that fails, one by one, so that nobody pays for what another asked."""
        begun = [errand for errand in some if errand.answers.set_running_or_notify_cancel()]
        if not begun:
            return
        self.batches += 1
        try:
            answers = self._worked(begun)
        except Exception as error:
            if len(begun) == 1 or isinstance(error, GivenUp):
                for errand in begun:
                    errand.answers.set_exception(error)
                return
            for errand in begun:
                self._alone(errand)
            return
        for errand, own in zip(begun, answers, strict=True):
            errand.answers.set_result(own)

    def _alone(self, errand: _Errand) -> None:
        try:
            [own] = self._worked([errand])
            errand.answers.set_result(own)
        except Exception as error:
            errand.answers.set_exception(error)

    def _worked(self, some: Sequence[_Errand]) -> list[Sequence[Any]]:
        """The answers for each errand."""
        questions = [question for errand in some for question in errand.questions]
        answers = iter(some[0].work(questions, lambda: self._open and any(errand.wanted for errand in some)))
        return [[next(answers) for _ in errand.questions] for errand in some]
