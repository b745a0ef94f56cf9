"""Fixtures and helpers for tests of the service."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from dragoman import Corpus, NgramModel
from dragoman.align.aligner import Aligner
from dragoman.serve import RequestLimits
from dragoman.serve.app import create_app
from dragoman.serve.registry import ModelRegistry
from dragoman.serve.service import Service
from small_translators import ENGLISH, place, translators

__all__ = ["place"]

BASE_URL = "http://127.0.0.1:5000"
LIMITS = RequestLimits(characters=700, texts=3, beam=6, alternatives=3, body=2_000, queue=2, seconds=20)


def train_ngram_model(order: int = 1) -> NgramModel:
    return NgramModel.train(Corpus.from_sentences(ENGLISH), order=order, smoothing="witten-bell")


@pytest.fixture(scope="module")
def registry(place: Path, tmp_path_factory: pytest.TempPathFactory) -> ModelRegistry:
    """A translator, an ensemble, a translator of unknown languages, a broken one, and two language models."""
    directory = tmp_path_factory.mktemp("models")
    train_ngram_model(2).save(directory / "bigrams")
    train_ngram_model(1).save(directory / "words")
    translators()["one"].save(directory / "broken")
    (directory / "broken" / "model.safetensors").write_bytes(b"?")
    named = [f"de-en={place / 'one'}", f"both={place / 'one'}+{place / 'two'}"]
    paths = [place / "pieces", directory / "broken", directory / "bigrams", directory / "words"]
    return ModelRegistry.from_arguments([*named, *map(str, paths)])


def create_client(
    registry: ModelRegistry, limits: RequestLimits = LIMITS, aligner: Aligner | None = None, **options: Any
) -> TestClient:
    return TestClient(create_app(Service(registry, limits, aligner), **options), base_url=BASE_URL)


@pytest.fixture(scope="module")
def client(registry: ModelRegistry) -> Iterator[TestClient]:
    with create_client(registry) as opened:
        yield opened


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true"
        time.sleep(0.005)


def assert_error(response: Any, status: int, message: str) -> None:
    """Check the status of an error response, and that its message contains a text."""
    assert response.status_code == status, response.text
    assert set(response.json()) == {"error"} and message in response.json()["error"]
