"""The service and the browser of the tests of the page.

These tests need Debian's Chromium (apt-get install chromium) and Playwright's Python package; without them they are
skipped. The translator uses a dictionary, so that its output is known.
"""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import uvicorn

from dragoman import Corpus, NgramModel, ParallelCorpus, Tokenizer, Translator
from dragoman.io.model_card import write_examples
from dragoman.report.page import Page as Report
from dragoman.report.page import PageFigure, PageSection, PageTable, Paragraphs, write_html
from dragoman.serve import RequestLimits
from dragoman.serve.app import create_app
from dragoman.serve.registry import LanguagePair, ModelEntry, ModelRegistry
from dragoman.serve.server import create_config
from dragoman.serve.service import Service
from serving import wait_until
from word_for_word import WordForWord

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("Chromium is not installed: apt-get install chromium", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make test installs it")

ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
ENGLISH = ["the dog sleeps .", "the bird sings .", "the dog sings .", "the bird sleeps ."]
ARABIC = {"مرحبا": "hello", "بالعالم": "world", "الجميل": "beautiful", "الكبير": "large"}
HOSTILE = '<img src=x onerror="window.hit = 1"><script>window.hit = 1</script>'
TIMEOUT = 60_000  # milliseconds
PHONE = {"width": 360, "height": 740}
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30"><rect width="90" height="30"/></svg>'
REPORT_TITLE = "Ladder of a run"


def write_run(path: Path) -> None:
    """Write three language models, training metrics of one of them, and a report."""
    corpus = Corpus.from_sentences(ENGLISH)
    for order in (1, 2, 3):
        NgramModel.train(corpus, order=order, smoothing="witten-bell").save(path / "rungs" / f"wb-{order}")
    metrics = [{"update": n, "epoch": n // 5, "train_loss": 5 / n, "dev_loss": 6 / n} for n in range(1, 6)]
    (path / "rungs" / "wb-2" / "metrics.jsonl").write_text("".join(f"{json.dumps(entry)}\n" for entry in metrics))
    accuracy = PageTable(["% correct", "agreement", "topic"], [["wb-1", "50.0", "61.5"], ["wb-2", "75.5", "62.5"]])
    lengths = PageTable(["BLEU by words", "up to 5", "6 to 10"], [["word for word", "41.5", "12.5"]])
    sections = [
        PageSection("Language models", [accuracy, Paragraphs(HOSTILE), PageFigure(SVG, "a ladder")]),
        PageSection("BLEU by sentence length", [lengths]),
    ]
    write_html(Report(REPORT_TITLE, sections), path / "report.html")


def write_pieces(path: Path) -> None:
    """Write an untrained translator of subwords to characters, with training metrics and examples."""
    german, english = ["der hund bellt .", "der vogel singt ."], ["the dog barks .", "the bird sings ."]
    source, target = Tokenizer.train("subword:40", german), Tokenizer.train("char", english)
    pairs = ParallelCorpus(source.encode(german), target.encode(english))
    Translator.create(pairs, source, target, embedding=8, hidden=8, seed=3).save(path)
    (path / "metrics.jsonl").write_text('{"update": 7, "epoch": 0, "train_loss": 2.0}\n')
    write_examples(path, german)


@contextmanager
def serve(service: Service) -> Iterator[str]:
    """Run a service on a free port; yield its URL."""
    config = create_config(create_app(service), service.limits)
    config.timeout_graceful_shutdown = 1
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        wait_until(lambda: server.started)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a service with a translator, a missing translator, three language models and a damaged one."""
    directory = tmp_path_factory.mktemp("served")
    write_run(directory / "run")
    shutil.copytree(directory / "run" / "rungs" / "wb-1", directory / "broken")
    (directory / "broken" / "model.safetensors").write_bytes(b"?")
    loaded = ModelRegistry.from_arguments([f"run={directory / 'run'}", str(directory / "broken")])
    translator = ModelEntry("de-en", (directory / "x",), "translator", LanguagePair("de", "en"), model=WordForWord())
    write_pieces(directory / "pieces")
    pieces = ModelEntry("pieces", (directory / "pieces",), "translator", None)
    upper = WordForWord({letter: letter.upper() for letter in "abcdefghijklmnopqrstuvwxyz. "}, "char", word_logit=7.0)
    letters = ModelEntry("letters", (directory / "y",), "translator", None, model=upper)
    from_arabic = ModelEntry("ar-en", (directory / "z",), "translator", None, model=WordForWord(ARABIC))
    to_arabic = WordForWord({english: arabic for arabic, english in ARABIC.items()})
    into_arabic = ModelEntry("en-ar", (directory / "z",), "translator", None, model=to_arabic)
    missing = ModelEntry("missing", (directory / "missing",), "translator", None)
    registry = ModelRegistry(
        [translator, pieces, letters, from_arabic, into_arabic, missing, *loaded], [loaded.runs["run"]]
    )
    with serve(Service(registry, RequestLimits())) as url:
        yield url


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture
def problems() -> list[str]:
    """Errors and warnings in the browser's console, and requests to other servers."""
    return []


@pytest.fixture
def open_page(browser: Any, base_url: str, problems: list[str]) -> Iterator[Callable[..., Any]]:
    """A function that opens the page at a URL fragment. At the end there must be no problems."""
    contexts = []

    def open_at(fragment: str = "", **options: Any) -> Any:
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.set_default_timeout(TIMEOUT)
        page.on("console", lambda message: message.type in ("error", "warning") and problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: request.url.startswith(base_url) or problems.append(request.url))
        page.goto(base_url + fragment)
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert problems == []


def expect_text(page: Any, selector: str, text: str) -> None:
    playwright.expect(page.locator(selector)).to_contain_text(text, timeout=TIMEOUT)


def translate_url(text: str, **inputs: object) -> str:
    return "#translate?" + "&".join(f"{name}={quote(str(value))}" for name, value in {"text": text, **inputs}.items())


TRANSLATION, TARGET_TOKENS = "#translate [data-part=whole]", "#translate button.token"
READOUT = "#translate .readout >> nth=0"
