"""Requests that arrive together, wait too long, or are left."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from dragoman.serve.app import create_app
from dragoman.serve.batch_queue import BatchQueue, IsNeeded, WorkCancelled, cancellation_check
from dragoman.serve.registry import ModelRegistry
from dragoman.serve.service import Service
from serving import HOME, SMALL, place, refused, shelf, until, web
from small_translators import ENGLISH, GERMAN, translators

__all__ = ["place", "shelf", "web"]


def test_requests_that_arrive_together_are_one_batch(shelf: ModelRegistry) -> None:
    service = Service(shelf, replace(SMALL, queue=50))
    held = threading.Event()
    with TestClient(create_app(service), base_url=HOME) as web, ThreadPoolExecutor(9) as pool:
        blocker = pool.submit(lambda: web.portal.call(service.queue.run, held.wait))
        until(lambda: service.queue.batches)
        lines = GERMAN[:8]
        asked = [{"q": line, "source": "de", "target": "en"} for line in lines]
        answers = [pool.submit(web.post, "/translate", json=one) for one in asked]
        until(lambda: service.queue.waiting == len(lines))
        held.set()
        told = [answer.result().json()["translatedText"] for answer in answers]
        assert blocker.result()
    spelled = [line[:1] + line[1:].removesuffix(" .") + "." for line in ENGLISH[:8]]
    assert told == spelled
    assert service.queue.batches == 2, "the blocker, and all of them"


def test_a_full_queue_and_a_slow_answer(shelf: ModelRegistry) -> None:
    service = Service(shelf, replace(SMALL, queue=1, seconds=2.0))
    held = threading.Event()
    with TestClient(create_app(service), base_url=HOME) as web, ThreadPoolExecutor(4) as pool:
        first = pool.submit(lambda: web.portal.call(service.queue.run, held.wait))
        until(lambda: service.queue.batches)
        asked = {"q": GERMAN[0], "source": "de", "target": "en"}
        waiting = pool.submit(web.post, "/translate", json=asked)
        until(lambda: service.queue.waiting)
        full = web.post("/translate", json=asked)
        refused(full, 503, "waiting already")
        assert int(full.headers["retry-after"]) >= 1
        refused(waiting.result(), 504, "longer than 2 seconds")
        held.set()
        assert first.exception() is not None, "it was too slow as well"
        until(lambda: not service.queue.waiting)
        assert web.portal.call(service.queue.run, lambda: "done") == "done", "the desk goes on"


def test_nobody_pays_for_what_another_asked(shelf: ModelRegistry) -> None:
    """A batch that fails is answered one by one."""
    desk = BatchQueue(10, 20.0)
    held = threading.Event()

    def work(questions: list[str], wanted: IsNeeded) -> list[str]:
        if "bad" in questions:
            raise ValueError("bad")
        return [question.upper() for question in questions]

    async def asked() -> list[Any]:
        first = asyncio.create_task(desk.run(held.wait))
        others = [asyncio.create_task(desk.submit("key", [one], work)) for one in ("a", "bad", "b")]
        while desk.waiting < 3:
            await asyncio.sleep(0.001)
        held.set()
        await first
        return await asyncio.gather(*others, return_exceptions=True)

    one, bad, two = asyncio.run(asked())
    assert (one, two) == (["A"], ["B"]) and isinstance(bad, ValueError)
    desk.close()
    assert not desk.is_alive


def test_those_who_leave_do_no_harm() -> None:
    """Whoever is cancelled at whatever moment, the worker goes on."""
    desk = BatchQueue(100, 20.0)

    async def asked() -> Any:
        for pause in (0.0, 0.001, 0.003, 0.006) * 3:
            gone = asyncio.create_task(desk.run(lambda: None))
            await asyncio.sleep(pause)
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
        return await desk.run(lambda: "still here")

    assert asyncio.run(asked()) == "still here"
    desk.close()


def test_work_that_nobody_waits_for_is_given_up(shelf: ModelRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    """A translation asks at every step of its search whether anybody waits still."""
    service = Service(shelf, replace(SMALL, seconds=0.3))
    steps = list[float]()

    def endless(_: Any, *__: Any, on_step: Any, **___: Any) -> None:
        while True:
            on_step()
            steps.append(time.monotonic())
            time.sleep(0.001)

    monkeypatch.setattr(service.pipeline(shelf.get("de-en")), "translate", endless)
    with TestClient(create_app(service), base_url=HOME) as web:
        refused(web.post("/translate", json={"q": "Ein Hund.", "source": "de", "target": "en"}), 504, "longer")
        assert steps and web.portal is not None
        until(lambda: web.portal.call(service.queue.run, lambda: True))
    assert service.queue.batches == 2


def test_a_search_can_be_given_up() -> None:
    """At any of its steps, not only between texts."""
    asked = list[int]()

    def three_times() -> None:
        asked.append(1)
        if len(asked) == 3:
            raise WorkCancelled

    with pytest.raises(WorkCancelled):
        translators()["one"].n_best("der hund schläft .", on_step=three_times)
    assert len(asked) == 3


def test_a_batch_that_was_given_up_is_not_tried_again() -> None:
    desk, held, tries = BatchQueue(10, 20.0), threading.Event(), list[int]()

    def work(questions: list[str], wanted: IsNeeded) -> list[str]:
        tries.append(len(questions))
        held.wait(20)
        cancellation_check(wanted)()
        return questions

    async def asked() -> None:
        first = asyncio.create_task(desk.run(lambda: held.wait(20)))
        others = [asyncio.create_task(desk.submit("key", [one], work)) for one in "abc"]
        while desk.waiting < 3:
            await asyncio.sleep(0.001)
        held.set()
        await first
        held.clear()
        while not tries:
            await asyncio.sleep(0.001)
        for one in others:
            one.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        held.set()
        assert await desk.run(lambda: "next") == "next"

    asyncio.run(asked())
    assert tries == [3]
    desk.close()
