"""`dragoman serve` from the command line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from socket import create_server
from typing import Any
from urllib.request import Request, urlopen

import pytest

from command import COMMAND, is_one_line
from dragoman import Corpus
from dragoman.align.aligner import Aligner
from dragoman.data.corpus import ParallelCorpus
from small_translators import ENGLISH, GERMAN, place

__all__ = ["place"]


def test_a_page_and_a_translation(place: Path, tmp_path: Path) -> None:
    """On whatever port is free, until it is interrupted."""
    Aligner.train(ParallelCorpus(*map(Corpus.from_sentences, (GERMAN, ENGLISH))), "ibm1").save(tmp_path / "aligner")
    options = ["--port", "0", "--threads", "1", "--lexicon", str(tmp_path / "aligner")]
    command = [sys.executable, "-c", COMMAND, "serve", f"de-en={place / 'one'}", str(place / "two"), *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        try:
            assert "two: its languages are not known" in process.stderr.readline()
            address = re.search(r"2 models; the page is at (http://127\.0\.0\.1:[0-9]+)", process.stderr.readline())
            assert address is not None
            page = urlopen(f"{address[1]}/").read().decode()
            assert "<title>dragoman" in page
            for file in re.findall(r'(?:src|href)="(page/[^"]+)"', page):
                assert urlopen(f"{address[1]}/{file}").status == 200
            asked = json.dumps({"q": "Der Hund schläft.", "source": "de", "target": "en"}).encode()
            request = Request(f"{address[1]}/translate", asked, {"content-type": "application/json"})
            assert json.load(urlopen(request)) == {"translatedText": "The dog sleeps."}
        finally:
            process.send_signal(signal.SIGINT)
            said = process.stderr.read()
    assert process.returncode == 130 and "Traceback" not in said and "Hund" not in said


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["nowhere"], "nowhere: no such directory"),
        (["one", "--host", "localhost"], "give an address"),
        (["one", "--lexicon", "nowhere"], "nowhere: there is no aligner"),
        (["one", "one"], "two models are called one"),
        (["test.de"], "is a file"),
    ],
    ids=str,
)
def test_what_cannot_be_served(
    run: Any, place: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], told: str
) -> None:
    monkeypatch.chdir(place)
    refused = run("serve", *options)
    assert refused.code == 2 and told in refused.err and is_one_line(refused.err.splitlines(keepends=True)[-1])


def test_a_port_that_is_taken(run: Any, place: Path) -> None:
    with create_server(("127.0.0.1", 0)) as taken:
        refused = run("serve", f"de-en={place / 'one'}", "--port", taken.getsockname()[1])
    assert refused.code == 2 and "choose another with --port" in refused.err and is_one_line(refused.err)
