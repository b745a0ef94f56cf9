"""`dragoman serve` on the command line."""

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
from dragoman.serve.api_keys import ApiKeys, create_key
from small_translators import ENGLISH, GERMAN, place

__all__ = ["place"]


def test_serve_answers_until_it_is_interrupted(place: Path, tmp_path: Path) -> None:
    Aligner.train(ParallelCorpus(*map(Corpus.from_sentences, (GERMAN, ENGLISH))), "ibm1").save(tmp_path / "aligner")
    options = ["--port", "0", "--threads", "1", "--lexicon", str(tmp_path / "aligner")]
    command = [sys.executable, "-c", COMMAND, "serve", f"de-en={place / 'one'}", str(place / "two"), *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        try:
            assert "two: its languages are unknown" in process.stderr.readline()
            assert f"de-en={place / 'two'}" in process.stderr.readline()
            address = re.search(r"2 models; the page is at (http://127\.0\.0\.1:[0-9]+)", process.stderr.readline())
            assert address is not None
            curl = f'curl -s {address[1]}/translate -d q="TEXT" -d source=de -d target=en'
            assert process.stderr.readline().endswith(f" {curl}\n")
            page = urlopen(f"{address[1]}/").read().decode()
            assert "<title>dragoman" in page
            for file in re.findall(r'(?:src|href)="(page/[^"]+)"', page):
                assert urlopen(f"{address[1]}/{file}").status == 200
            body = json.dumps({"q": "Der Hund schläft.", "source": "de", "target": "en"}).encode()
            request = Request(f"{address[1]}/translate", body, {"content-type": "application/json"})
            assert json.load(urlopen(request)) == {"translatedText": "The dog sleeps."}
        finally:
            process.send_signal(signal.SIGINT)
            messages = process.stderr.read()
    assert (process.returncode, messages) == (130, "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nowhere"], "nowhere: no such directory"),
        ([], "no model given"),
        (["one", "--host", "localhost"], "not an IP address"),
        (["one", "--forwarded-allow-ips", "127.0.0.1,proxy"], "--forwarded-allow-ips proxy: not an IP address"),
        (["one", "--tls-key", "test.de"], "--tls-cert"),
        (["one", "--tls-cert", "nowhere.pem"], "--tls-cert nowhere.pem: cannot be used (No such file or directory)"),
        (["one", "--tls-cert", "test.de"], "--tls-cert test.de: cannot be used"),
        (["one", "--api-keys", "nowhere.txt"], "nowhere.txt: the API keys cannot be read"),
        (["one", "--api-keys", "test.de"], "test.de:1: not a line of the form NAME sha256:HASH DATE"),
        (["--new-key", "alice"], "--api-keys FILE"),
        (["one", "--lexicon", "nowhere"], "nowhere: "),
        (["one", "one"], "two models have the name one"),
        (["test.de"], "is a file"),
    ],
    ids=str,
)
def test_invalid_arguments(
    run: Any, place: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str
) -> None:
    monkeypatch.chdir(place)
    result = run("serve", *options)
    assert result.code == 2 and message in result.err and is_one_line(result.err.splitlines(keepends=True)[-1])


def test_port_in_use(run: Any, place: Path) -> None:
    with create_server(("127.0.0.1", 0)) as listening:
        result = run("serve", f"de-en={place / 'one'}", "--port", listening.getsockname()[1])
    assert result.code == 2 and is_one_line(result.err)
    assert "is used by another program; choose another with --port" in result.err


def test_missing_extra(run: Any, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.core.errors.is_installed", lambda package: package != "uvicorn")
    result = run("serve", f"de-en={place / 'one'}")
    assert result.code == 2 and "pip install 'dragoman[serve]'" in result.err and is_one_line(result.err)


def test_new_key(run: Any, tmp_path: Path) -> None:
    """The key is on standard output, and nowhere else."""
    path = tmp_path / "keys.txt"
    result = run("serve", "--api-keys", path, "--new-key", "alice")
    key = result.out.strip()
    assert result.code == 0 and result.out == f"{key}\n" and ApiKeys(path).find(key) == "alice"
    assert key not in result.err and key not in path.read_text() and len(result.err.splitlines()) == 1
    assert {file.name for file in tmp_path.iterdir()} <= {"keys.txt", ".keys.txt.lock"}
    again = run("serve", "--api-keys", path, "--new-key", "alice")
    assert (again.code, again.out) == (2, "") and "there is a key alice already" in again.err
    path.write_bytes(b"\xff")
    result = run("serve", "--api-keys", path, "--new-key", "bob")
    assert result.code == 2 and "cannot be read (not UTF-8)" in result.err and is_one_line(result.err)


@pytest.mark.parametrize(
    ("options", "warnings"),
    [
        (["--host", "127.0.0.1"], []),
        (["--host", "::1"], []),
        (["--host", "0.0.0.0"], ["everybody who can reach 0.0.0.0 can use this service", "texts are sent unencrypted"]),
        (["--host", "0.0.0.0", "--api-keys", "keys.txt"], ["keys and texts are sent unencrypted"]),
    ],
)
def test_warnings_beyond_loopback(
    run: Any,
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    warnings: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    create_key(Path("keys.txt"), "alice")
    monkeypatch.setattr("dragoman.serve.server.BoundedServer.run", lambda *_: None)
    result = run("serve", f"de-en={place / 'one'}", "--port", "0", *options)
    lines = [line for line in result.err.splitlines() if line.startswith("warning: ")]
    assert len(lines) == len(warnings) and all(text in line for text, line in zip(warnings, lines, strict=True))
    assert ("-d api_key=KEY" in result.err) == ("--api-keys" in options)
