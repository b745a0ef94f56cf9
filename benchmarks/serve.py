"""The service under load: many clients at once, texts of all lengths.

    python benchmarks/serve.py de-en=MODEL --text FILE [--clients 32] [--seconds 60] [--json FILE]

Starts `dragoman serve` itself, at 127.0.0.1, for the models that are given as that command takes them, and asks it to
translate: single words, sentences, several sentences in one text, and lists of texts, drawn from FILE (printed text of
the source language, a sentence a line). First one client alone, for a quarter of the time, then all of them together,
so that the gain by batching is seen. It fails if there was any answer but 200 and 503 with Retry-After, or if the
service's memory kept growing. What is asked is drawn with a fixed seed; how much of it is reached depends on the
machine. Linux alone, as it reads /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

from dragoman.report.tables import format_table
from ptb_cache import processor

SERVE = "from dragoman.cli.main import main; main()"
PATIENCE = 120  # seconds for the service to start, and for an answer
ROOM = 0.05  # of the memory in the middle: what it may have grown by at the end
FINE, BUSY = 200, 503


class Texts(NamedTuple):
    """What a request asks for."""

    q: str | list[str]
    sentences: int


@dataclass
class Tally:
    """What some clients saw."""

    seconds: list[float] = field(default_factory=list)  # of each request that was answered
    sentences: int = 0
    statuses: Counter[str] = field(default_factory=Counter)

    def add(self, status: str, took: float, sentences: int) -> None:
        self.statuses[status] += 1
        if status == str(FINE):
            self.seconds.append(took)
            self.sentences += sentences


@dataclass(frozen=True)
class Row:
    clients: int
    seconds: float
    requests: int
    sentences_a_second: float
    p50: float  # milliseconds
    p99: float
    statuses: dict[str, int]
    memory: list[float]  # MB at the start, in the middle, at the end
    flat: bool


# -- what is asked -----------------------------------------------------------------------------------------------------


def texts(lines: Sequence[str], seed: int) -> Iterator[Texts]:
    """Without end: words, sentences, long texts, lists."""
    source = random.Random(seed)
    while True:
        kind = source.random()
        if kind < 0.25:
            yield Texts(source.choice(source.choice(lines).split()), 1)
        elif kind < 0.7:
            yield Texts(source.choice(lines), 1)
        else:
            several = source.choices(lines, k=source.randint(2, 8))
            yield Texts(several if kind < 0.85 else " ".join(several[:4]), len(several if kind < 0.85 else several[:4]))


def client(port: int, asked: Iterator[Texts], languages: dict[str, str], until: float) -> Tally:
    """One that asks again as soon as it is answered, until a moment."""
    tally, connection = Tally(), HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    while time.monotonic() < until:
        one, start = next(asked), time.monotonic()
        try:
            status, pause = post(connection, {"q": one.q, **languages})
        except (OSError, HTTPException) as error:
            connection.close()
            status, pause = type(error).__name__, 0.1
        tally.add(status, time.monotonic() - start, one.sentences)
        time.sleep(min(pause, max(0.0, until - time.monotonic())))
    connection.close()
    return tally


def post(connection: HTTPConnection, asked: dict[str, Any]) -> tuple[str, float]:
    """The status, and how long to wait before one asks again. A 503 that does not say that is another fault."""
    connection.request("POST", "/translate", json.dumps(asked), {"content-type": "application/json"})
    answer = connection.getresponse()
    told, retry = json.load(answer), answer.headers.get("retry-after")
    if answer.status == FINE:
        wanted = len(asked["q"]) if isinstance(asked["q"], list) else None
        got = told["translatedText"]
        return str(FINE) if (len(got) if isinstance(got, list) else None) == wanted else "200, another shape", 0.0
    if answer.status == BUSY and retry is None:
        return "503 without Retry-After", 0.0
    return str(answer.status), float(retry or 0)


# -- the service -------------------------------------------------------------------------------------------------------


class Running(NamedTuple):
    process: subprocess.Popen[str]
    port: int

    @property
    def megabytes(self) -> float:
        """Of memory that the service has."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        [size] = re.findall(r"VmRSS:\s+([0-9]+) kB", status)
        return int(size) / 1024


@contextmanager
def running(models: Sequence[str], options: Sequence[str]) -> Iterator[Running]:
    """The service, on whatever port is free."""
    command = [sys.executable, "-c", SERVE, "serve", *models, "--port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if found := re.search(r"http://127\.0\.0\.1:([0-9]+)", line):
                    told = Thread(target=sys.stderr.writelines, args=(process.stderr,), daemon=True)
                    told.start()
                    try:
                        yield Running(process, int(found[1]))
                    finally:
                        process.send_signal(signal.SIGINT)
                        told.join()  # to its end: what is read must not be closed before
                    return
                sys.stderr.write(line)
            sys.exit("the service did not start")
        finally:
            process.send_signal(signal.SIGINT)


def languages_of(port: int) -> dict[str, str]:
    """The first translator's, as the service tells them; asking for them loads it."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", "/v1/models")
    models = json.load(connection.getresponse())["models"]
    found = next(({"source": one["source"], "target": one["target"]} for one in models if one["source"]), None)
    if found is None:
        sys.exit("no translator whose languages are known; name it so: de-en=DIR")
    for _ in range(3):
        if post(connection, {"q": "Guten Tag!", **found})[0] != str(FINE):
            sys.exit("the translator cannot be used")
    return found


# -- the measurement ---------------------------------------------------------------------------------------------------


def measure(service: Running, lines: Sequence[str], languages: dict[str, str], clients: int, seconds: float) -> Row:
    memory, done = [service.megabytes], Event()

    def watch() -> None:
        while not done.wait(seconds / 60):
            memory.append(service.megabytes)

    watching = Thread(target=watch)
    watching.start()
    start = time.monotonic()
    with ThreadPoolExecutor(clients) as pool:
        ask = [pool.submit(client, service.port, texts(lines, n), languages, start + seconds) for n in range(clients)]
        tallies = [one.result() for one in ask]
    took = time.monotonic() - start
    done.set()
    watching.join()
    return row(tallies, clients, took, memory)


def row(tallies: Sequence[Tally], clients: int, took: float, memory: Sequence[float]) -> Row:
    waits = sorted(1000 * one for tally in tallies for one in tally.seconds)
    statuses = sum((tally.statuses for tally in tallies), Counter[str]())
    third = max(1, len(memory) // 3)
    middle, end = statistics.median(memory[third : 2 * third] or memory), statistics.median(memory[-third:])
    return Row(
        clients,
        round(took, 1),
        statuses.total(),
        round(sum(tally.sentences for tally in tallies) / took, 1),
        round(quantile(waits, 0.5), 1),
        round(quantile(waits, 0.99), 1),
        dict(sorted(statuses.items())),
        [round(value, 1) for value in (memory[0], middle, end)],
        end <= middle * (1 + ROOM),
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def faults(rows: Sequence[Row]) -> list[str]:
    """What must not be."""
    found = []
    for one in rows:
        strange = set(one.statuses) - {str(FINE), str(BUSY)}
        found += [f"{one.clients} clients: {one.statuses[status]} answers {status}" for status in sorted(strange)]
        if str(FINE) not in one.statuses:
            found.append(f"{one.clients} clients: nobody was answered")
    if not rows[-1].flat:
        found.append(f"memory grew from {rows[-1].memory[1]} to {rows[-1].memory[2]} MB")
    return found


def print_table(rows: Sequence[Row]) -> None:
    cells = [
        [
            *(one.clients, f"{one.seconds:.0f}", f"{one.requests:,}", f"{one.sentences_a_second:.1f}"),
            *(f"{one.p50:,.0f}", f"{one.p99:,.0f}", ", ".join(f"{n:,} x {code}" for code, n in one.statuses.items())),
            *(f"{value:,.0f}" for value in one.memory),
        ]
        for one in rows
    ]
    headers = ["clients", "seconds", "requests", "sentences/s", "p50 ms", "p99 ms", "answers"]
    print(format_table([*headers, "MB start", "middle", "end"], cells))
    print(f"\nprocessor: {processor()}; load average {os.getloadavg()[0]:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="MODEL", help="as dragoman serve takes them: de-en=DIR")
    parser.add_argument(
        "--text", type=Path, required=True, help="printed text of the source language, a sentence a line"
    )
    parser.add_argument("--clients", type=int, default=32, choices=range(1, 129), metavar="N")
    parser.add_argument("--seconds", type=float, default=60.0, help="that all clients ask; at most 600")
    parser.add_argument("--threads", type=int, help="of the service")
    parser.add_argument("--max-queue", type=int, help="of the service")
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    asked = parser.parse_args()
    if not 0 < asked.seconds <= 600:
        parser.error("--seconds: from 0 to 600")
    lines = [line for line in asked.text.read_text(encoding="utf-8").splitlines() if line.strip()]
    options = [f"--{name.replace('_', '-')}={getattr(asked, name)}" for name in ("threads", "max_queue")]
    with running(asked.models, [one for one in options if not one.endswith("None")]) as service:
        languages = languages_of(service.port)
        alone = measure(service, lines, languages, 1, asked.seconds / 4)
        rows = [alone, measure(service, lines, languages, asked.clients, asked.seconds)]
    print_table(rows)
    if rows[0].sentences_a_second:
        print(f"together: {rows[1].sentences_a_second / rows[0].sentences_a_second:.2f} times the sentences a second")
    if asked.json:
        asked.json.write_text(json.dumps([asdict(one) for one in rows], indent=1) + "\n")
    if found := faults(rows):
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
