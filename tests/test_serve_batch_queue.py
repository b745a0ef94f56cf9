"""The batch queue: batching, full queues, timeouts and cancelled requests."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient

from dragoman.models.text_pipeline import TranslationOptions
from dragoman.serve.app import create_app
from dragoman.serve.batch_queue import BatchQueue, CheckNeeded, WorkCancelled
from dragoman.serve.registry import ModelRegistry
from dragoman.serve.service import Service
from serving import BASE_URL, LIMITS, assert_error, place, registry, wait_until
from small_translators import ENGLISH, GERMAN, translators

__all__ = ["place", "registry"]


async def wait_for_jobs(queue: BatchQueue, number: int) -> None:
    while queue.num_waiting < number:
        await asyncio.sleep(0.001)


def test_waiting_requests_are_translated_in_one_batch(registry: ModelRegistry) -> None:
    service = Service(registry, LIMITS.model_copy(update={"queue": 50}))
    release = threading.Event()
    with TestClient(create_app(service), base_url=BASE_URL) as client, ThreadPoolExecutor(9) as pool:
        blocking = pool.submit(lambda: client.portal.call(service.queue.run, release.wait))
        wait_until(lambda: service.queue.num_batches)
        lines = GERMAN[:8]
        requests = [{"q": line, "source": "de", "target": "en"} for line in lines]
        responses = [pool.submit(client.post, "/translate", json=request) for request in requests]
        wait_until(lambda: service.queue.num_waiting == len(lines))
        release.set()
        translations = [response.result().json()["translatedText"] for response in responses]
        assert blocking.result()
    assert translations == [line.removesuffix(" .") + "." for line in ENGLISH[:8]]
    assert service.queue.num_batches == 2, "the blocking job and one batch"


def test_full_queue_refuses_requests(registry: ModelRegistry) -> None:
    service = Service(registry, LIMITS.model_copy(update={"queue": 1, "seconds": 60.0}))
    release = threading.Event()
    with TestClient(create_app(service), base_url=BASE_URL) as client, ThreadPoolExecutor(2) as pool:
        blocking = pool.submit(lambda: client.portal.call(service.queue.run, release.wait))
        wait_until(lambda: service.queue.num_batches)
        request = {"q": GERMAN[0], "source": "de", "target": "en"}
        waiting = pool.submit(client.post, "/translate", json=request)
        wait_until(lambda: service.queue.num_waiting)
        refused = client.post("/translate", json=request)
        assert_error(refused, 503, "the queue is full")
        assert int(refused.headers["retry-after"]) >= 1
        release.set()
        assert blocking.result() and waiting.result().status_code == 200


def test_request_that_waits_too_long_times_out(registry: ModelRegistry) -> None:
    service = Service(registry, LIMITS.model_copy(update={"seconds": 0.3}))
    release = threading.Event()
    with TestClient(create_app(service), base_url=BASE_URL) as client, ThreadPoolExecutor(1) as pool:
        blocking = pool.submit(lambda: client.portal.call(service.queue.run, release.wait))
        wait_until(lambda: service.queue.num_batches)
        response = client.post("/translate", json={"q": GERMAN[0], "source": "de", "target": "en"})
        assert_error(response, 504, "longer than 0.3 seconds")
        assert blocking.exception() is not None, "the blocking job timed out as well"
        assert not service.queue.num_waiting
        release.set()
    assert not service.queue.is_alive, "the worker ended with the application"


def test_failing_job_does_not_fail_others_of_its_batch() -> None:
    queue = BatchQueue(10, 20.0)
    release = threading.Event()

    def upper(items: list[str], check_needed: CheckNeeded) -> list[str]:
        if "bad" in items:
            raise ValueError("bad")
        return [item.upper() for item in items]

    async def submit() -> list[Any]:
        blocking = asyncio.create_task(queue.run(release.wait))
        jobs = [asyncio.create_task(queue.submit("key", [item], upper)) for item in ("a", "bad", "b")]
        await wait_for_jobs(queue, 3)
        release.set()
        await blocking
        return await asyncio.gather(*jobs, return_exceptions=True)

    first, failed, last = asyncio.run(submit())
    assert (first, last) == (["A"], ["B"]) and isinstance(failed, ValueError)
    queue.close()
    assert not queue.is_alive


def test_queue_survives_jobs_cancelled_at_any_time() -> None:
    queue = BatchQueue(100, 20.0)

    async def submit() -> Any:
        for pause in (0.0, 0.001, 0.003, 0.006) * 3:
            cancelled = asyncio.create_task(queue.run(lambda: None))
            await asyncio.sleep(pause)
            cancelled.cancel()
            await asyncio.gather(cancelled, return_exceptions=True)
        return await queue.run(lambda: "alive")

    assert asyncio.run(submit()) == "alive"
    queue.close()


def test_translation_is_cancelled_when_no_client_waits(
    registry: ModelRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A translation checks at every search step whether a client waits."""
    service, entry = Service(registry, LIMITS), registry.get("de-en")
    steps = list[int]()

    def search_forever(*_: Any, on_step: Callable[[], None], **__: Any) -> None:
        while True:
            on_step()
            steps.append(1)
            time.sleep(0.001)

    monkeypatch.setattr(service.pipeline(entry), "translate", search_forever)

    async def cancel() -> str:
        request = asyncio.create_task(service.translate(entry, ["Ein Hund."], TranslationOptions()))
        while not steps:
            await asyncio.sleep(0.001)
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)
        return await service.queue.run(lambda: "next")

    assert asyncio.run(cancel()) == "next", "the search ended"
    service.queue.close()


def test_search_can_be_cancelled_at_any_step() -> None:
    steps = list[int]()

    def cancel_third_step() -> None:
        steps.append(1)
        if len(steps) == 3:
            raise WorkCancelled

    with pytest.raises(WorkCancelled):
        translators()["one"].n_best("der hund schläft .", on_step=cancel_third_step)
    assert len(steps) == 3


def test_cancelled_batch_is_not_tried_again() -> None:
    queue, release, batch_sizes = BatchQueue(10, 20.0), threading.Event(), list[int]()

    def process(items: list[str], check_needed: CheckNeeded) -> list[str]:
        batch_sizes.append(len(items))
        release.wait(20)
        check_needed()
        return items

    async def submit() -> None:
        blocking = asyncio.create_task(queue.run(lambda: release.wait(20)))
        jobs = [asyncio.create_task(queue.submit("key", [item], process)) for item in "abc"]
        await wait_for_jobs(queue, 3)
        release.set()
        await blocking
        release.clear()
        while not batch_sizes:
            await asyncio.sleep(0.001)
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
        release.set()
        assert await queue.run(lambda: "next") == "next"

    asyncio.run(submit())
    assert batch_sizes == [3]
    queue.close()
