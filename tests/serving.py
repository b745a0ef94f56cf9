"""A service to be tested: its models, its limits, and how it is asked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from dragoman import Corpus, NgramModel
from dragoman.serve.app import create_app
from dragoman.serve.limits import RequestLimits
from dragoman.serve.registry import ModelRegistry
from dragoman.serve.service import Service
from small_translators import ENGLISH, place, translators

__all__ = ["place"]

HOME = "http://127.0.0.1:5000"
SMALL = RequestLimits(characters=700, texts=3, beam=6, alternatives=3, body=2_000, queue=2, seconds=20)


@pytest.fixture(scope="module")
def shelf(place: Path, tmp_path_factory: pytest.TempPathFactory) -> ModelRegistry:
    """A translator, an ensemble, one without languages, one that is broken, and a language model."""
    corpus, there = Corpus.from_sentences(ENGLISH), tmp_path_factory.mktemp("lm")
    NgramModel.train(corpus, order=2, smoothing="witten-bell").save(there / "bigrams")
    NgramModel.train(corpus, order=1, smoothing="witten-bell").save(there / "words")
    translators()["one"].save(there / "broken")
    (there / "broken" / "model.safetensors").write_bytes(b"?")
    names = [f"de-en={place / 'one'}", f"both={place / 'one'}+{place / 'two'}", f"{place / 'pieces'}"]
    return ModelRegistry.from_arguments(
        [*names, f"broken={there / 'broken'}", f"{there / 'bigrams'}", f"{there / 'words'}"]
    )


def client(shelf: ModelRegistry, limits: RequestLimits = SMALL, **how: Any) -> TestClient:
    return TestClient(create_app(Service(shelf, limits, how.pop("aligner", None)), **how), base_url=HOME)


@pytest.fixture
def web(shelf: ModelRegistry) -> Iterator[TestClient]:
    with client(shelf) as opened:
        yield opened


def until(done: Any) -> None:
    """Wait for something that comes, or fail."""
    patience = time.monotonic() + 60
    while not done():
        assert time.monotonic() < patience, "it did not come"
        time.sleep(0.005)


def refused(answer: Any, status: int, told: str) -> None:
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error"} and told in answer.json()["error"]
