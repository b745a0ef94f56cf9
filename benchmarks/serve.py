"""Load test of the service: many clients, texts of different lengths.

    python benchmarks/serve.py de-en=MODEL --text FILE [--clients 32] [--seconds 60] [--json FILE]

Starts `dragoman serve` on 127.0.0.1 with the given models and sends translation requests: single words, sentences, texts
of several sentences, and lists of texts, sampled from FILE (plain text in the source language, one sentence per line).
First one client for a quarter of the time, then all clients, to measure the gain from batching. The test fails if there
is any response other than 200 or 503 with Retry-After, or if the memory of the service keeps growing. The texts are
sampled with a fixed random seed; how many are sent depends on the machine. Linux only, because it reads /proc.

With `--before SRC`, the service of an older source tree is measured as well, in turns with this one:

    git worktree add /tmp/before REVISION
    python benchmarks/serve.py de-en=MODEL --text FILE --before /tmp/before/src --rounds 3 --seconds 20
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
from texts_and_results import processor

SERVE = "from dragoman.cli.main import main; main()"
TIMEOUT = 120  # seconds for a response
MAX_GROWTH = 0.05  # of the memory from the middle of the test to its end
OK, UNAVAILABLE = 200, 503


class TextSample(NamedTuple):
    """The text or texts of one request."""

    q: str | list[str]
    num_sentences: int


@dataclass
class ClientResult:
    """The responses that one client received."""

    latencies: list[float] = field(default_factory=list)  # seconds, of successful requests
    num_sentences: int = 0
    statuses: Counter[str] = field(default_factory=Counter)

    def add(self, status: str, seconds: float, num_sentences: int) -> None:
        self.statuses[status] += 1
        if status == str(OK):
            self.latencies.append(seconds)
            self.num_sentences += num_sentences


@dataclass(frozen=True)
class Row:
    """Results of one measurement."""

    system: str
    clients: int
    seconds: float
    requests: int
    sentences_per_second: float
    p50: float  # milliseconds
    p99: float
    statuses: dict[str, int]
    memory: list[float]  # MB at the start, in the middle, at the end
    flat: bool  # whether the memory stopped growing


# -- clients -----------------------------------------------------------------------------------------------------------


def sample_texts(lines: Sequence[str], seed: int) -> Iterator[TextSample]:
    """Yield words, sentences, long texts and lists of texts, without end."""
    generator = random.Random(seed)
    while True:
        kind = generator.random()
        if kind < 0.25:
            yield TextSample(generator.choice(generator.choice(lines).split()), 1)
        elif kind < 0.7:
            yield TextSample(generator.choice(lines), 1)
        else:
            several = generator.choices(lines, k=generator.randint(2, 8))
            if kind < 0.85:
                yield TextSample(several, len(several))
            else:
                yield TextSample(" ".join(several[:4]), len(several[:4]))


def run_client(port: int, texts: Iterator[TextSample], languages: dict[str, str], end: float) -> ClientResult:
    """Send one request after the other until a point in time."""
    result, connection = ClientResult(), HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    while time.monotonic() < end:
        text, start = next(texts), time.monotonic()
        try:
            status, pause = post(connection, {"q": text.q, **languages})
        except (OSError, HTTPException) as error:
            connection.close()
            status, pause = type(error).__name__, 0.1
        result.add(status, time.monotonic() - start, text.num_sentences)
        time.sleep(min(pause, max(0.0, end - time.monotonic())))
    connection.close()
    return result


def post(connection: HTTPConnection, request: dict[str, Any]) -> tuple[str, float]:
    """Return the status and the seconds to wait before the next request."""
    connection.request("POST", "/translate", json.dumps(request), {"content-type": "application/json"})
    response = connection.getresponse()
    body, retry_after = json.load(response), response.headers.get("retry-after")
    if response.status == OK:
        texts, translations = request["q"], body["translatedText"]
        if isinstance(texts, list):
            matches = isinstance(translations, list) and len(translations) == len(texts)
        else:
            matches = isinstance(translations, str)
        return str(OK) if matches else "200 with the wrong number of texts", 0.0
    if response.status == UNAVAILABLE and retry_after is None:
        return "503 without Retry-After", 0.0
    return str(response.status), float(retry_after or 0)


# -- the service -------------------------------------------------------------------------------------------------------


class RunningService(NamedTuple):
    process: subprocess.Popen[str]
    port: int

    def memory(self) -> float:
        """Return the resident memory of the service in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        [size] = re.findall(r"VmRSS:\s+([0-9]+) kB", status)
        return int(size) / 1024


@contextmanager
def run_service(models: Sequence[str], options: Sequence[str], source: Path) -> Iterator[RunningService]:
    """Run the service of a source tree on a free port."""
    command = [sys.executable, "-c", SERVE, "serve", *models, "--port", "0", *options]
    environment = {**os.environ, "PYTHONPATH": str(source.resolve())}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if match := re.search(r"http://127\.0\.0\.1:([0-9]+)", line):
                    messages = Thread(target=sys.stderr.writelines, args=(process.stderr,), daemon=True)
                    messages.start()
                    try:
                        yield RunningService(process, int(match[1]))
                    finally:
                        process.send_signal(signal.SIGINT)
                        messages.join()  # the stream must not be closed while it is read
                    return
                sys.stderr.write(line)
            sys.exit("the service did not start")
        finally:
            process.send_signal(signal.SIGINT)


def find_languages(port: int) -> dict[str, str]:
    """Return the languages of the first translator, after a few requests that load and warm up the model."""
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    connection.request("GET", "/v1/models")
    models = json.load(connection.getresponse())["models"]
    pairs = ({"source": model["source"], "target": model["target"]} for model in models if model["source"])
    languages = next(pairs, None)
    if languages is None:
        sys.exit("no translator with known languages; name one like this: de-en=DIR")
    for _ in range(3):
        if post(connection, {"q": "Guten Tag!", **languages})[0] != str(OK):
            sys.exit("the translator does not work")
    return languages


# -- measurements ------------------------------------------------------------------------------------------------------


def measure_service(
    system: str, source: Path, lines: Sequence[str], arguments: argparse.Namespace, options: Sequence[str]
) -> list[Row]:
    """Return the results with one client and with all clients."""
    with run_service(arguments.models, options, source) as service:
        languages = find_languages(service.port)
        durations = {1: arguments.seconds / 4, arguments.clients: arguments.seconds}
        return [measure(system, service, lines, languages, *item) for item in durations.items()]


def measure(
    system: str, service: RunningService, lines: Sequence[str], languages: dict[str, str], clients: int, seconds: float
) -> Row:
    memory, finished = [service.memory()], Event()

    def watch_memory() -> None:
        while not finished.wait(seconds / 60):
            memory.append(service.memory())

    watcher = Thread(target=watch_memory)
    watcher.start()
    start = time.monotonic()
    with ThreadPoolExecutor(clients) as pool:
        futures = [
            pool.submit(run_client, service.port, sample_texts(lines, seed), languages, start + seconds)
            for seed in range(clients)
        ]
        results = [future.result() for future in futures]
    duration = time.monotonic() - start
    finished.set()
    watcher.join()
    return summarize(system, results, clients, duration, memory)


def summarize(
    system: str, results: Sequence[ClientResult], clients: int, duration: float, memory: Sequence[float]
) -> Row:
    latencies = sorted(1000 * latency for result in results for latency in result.latencies)
    statuses = sum((result.statuses for result in results), Counter[str]())
    third = max(1, len(memory) // 3)
    middle, end = statistics.median(memory[third : 2 * third] or memory), statistics.median(memory[-third:])
    return Row(
        system,
        clients,
        round(duration, 1),
        statuses.total(),
        round(sum(result.num_sentences for result in results) / duration, 1),
        round(quantile(latencies, 0.5), 1),
        round(quantile(latencies, 0.99), 1),
        dict(sorted(statuses.items())),
        [round(value, 1) for value in (memory[0], middle, end)],
        end <= middle * (1 + MAX_GROWTH),
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def find_failures(rows: Sequence[Row]) -> list[str]:
    failures = []
    for row in rows:
        unexpected = sorted(set(row.statuses) - {str(OK), str(UNAVAILABLE)})
        failures += [f"{row.clients} clients: {row.statuses[status]} responses {status}" for status in unexpected]
        if str(OK) not in row.statuses:
            failures.append(f"{row.clients} clients: no request succeeded")
        if row.clients > 1 and not row.flat:
            failures.append(f"memory grew from {row.memory[1]} to {row.memory[2]} MB")
    return failures


def print_table(rows: Sequence[Row]) -> None:
    cells = [
        [
            *(row.system, row.clients, f"{row.seconds:.0f}", f"{row.requests:,}", f"{row.sentences_per_second:.1f}"),
            *(f"{row.p50:,.0f}", f"{row.p99:,.0f}", ", ".join(f"{n:,} x {code}" for code, n in row.statuses.items())),
            *(f"{value:,.0f}" for value in row.memory),
        ]
        for row in rows
    ]
    headers = ["system", "clients", "seconds", "requests", "sentences/s", "p50 ms", "p99 ms", "responses"]
    print(format_table([*headers, "MB start", "middle", "end"], cells))
    print(f"\nprocessor: {processor()}; load average {os.getloadavg()[0]:.1f}")


def print_gains(rows: Sequence[Row]) -> None:
    """Print how much batching gains and, if two source trees were measured, how much the newer one gains."""
    speeds: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        speeds.setdefault((row.system, row.clients), []).append(row.sentences_per_second)
    medians = {key: statistics.median(values) for key, values in speeds.items()}
    for (system, clients), speed in medians.items():
        if clients > 1 and medians[system, 1]:
            print(f"{system}: batching gains {speed / medians[system, 1]:.2f} times the sentences per second")
        if system == "now" and medians.get(("before", clients)):
            print(f"{clients} clients: now {speed / medians['before', clients]:.2f} times as fast as before (medians)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="MODEL", help="as for dragoman serve: de-en=DIR")
    parser.add_argument(
        "--text", type=Path, required=True, help="plain text in the source language, one sentence per line"
    )
    parser.add_argument("--clients", type=int, default=32, choices=range(1, 129), metavar="N")
    parser.add_argument("--seconds", type=float, default=60.0, help="duration with all clients; at most 600")
    parser.add_argument("--before", type=Path, help="src of an older revision")
    parser.add_argument("--rounds", type=int, default=1, help="measurements of each source tree")
    parser.add_argument("--threads", type=int, help="option of the service")
    parser.add_argument("--max-queue", type=int, help="option of the service")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    if not 0 < arguments.seconds <= 600:
        parser.error("--seconds: must be from 0 to 600")
    lines = [line for line in arguments.text.read_text(encoding="utf-8").splitlines() if line.strip()]
    given = {"--threads": arguments.threads, "--max-queue": arguments.max_queue}
    options = [f"{name}={value}" for name, value in given.items() if value is not None]
    sources = {"now": Path(__file__).parent.parent / "src"}
    if arguments.before:
        sources = {"before": arguments.before, **sources}
    rows = [
        row
        for _ in range(arguments.rounds)
        for system, source in sources.items()
        for row in measure_service(system, source, lines, arguments, options)
    ]
    print_table(rows)
    print_gains(rows)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    if failures := find_failures(rows):
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
