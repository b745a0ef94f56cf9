"""Attack a running service: damaged requests, silent clients, load, replaced models, and signals.

python -m torture.service [--minutes M] [--seed S] [--load-only]

The service must answer each request as described, stay within its memory, and end when it is told to. If schemathesis is
installed (`pip install schemathesis`), it also tests the service against its OpenAPI description.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep
from typing import NamedTuple

from serving import train_ngram_model
from small_translators import translators

COMMAND = "import sys; from dragoman.cli.main import main; sys.exit(main())"
CLIENTS, SILENT_CLIENTS = 32, 40
MAX_GROWTH = 0.05  # of the memory, from the second third of a load to its last
OPTIONS = ("--threads", "1", "--max-seconds", "3", "--max-write-seconds", "3", "--shutdown-timeout", "3")
SHUTDOWN_SECONDS = 8  # for 3 seconds of the option; the rest is for the end of the interpreter, on a busy machine
DESIGNED = {200, 400, 404, 405, 408, 413, 503, 504}
REQUESTS: tuple[tuple[str, dict[str, object]], ...] = (
    ("/translate", {"q": "Der Hund schläft.", "source": "de", "target": "en"}),
    (
        "/translate",
        {"q": ["Der Hund.", "<b>Die Katze</b> singt."], "target": "en", "format": "html", "alternatives": 2},
    ),
    ("/detect", {"q": "Der Vogel rennt."}),
    ("/v1/translate", {"model": "de-en", "texts": ["Der Fisch schwimmt. Die Katze bellt."], "n": 3}),
    ("/v1/attention", {"model": "de-en", "source": "Der Hund bellt.", "target": "The dog barks."}),
    ("/v1/lattice", {"model": "de-en", "text": "Der Hund bellt.", "beam": 3}),
    ("/v1/score", {"models": ["kn"], "text": "the dog sleeps .\nthe cat"}),
    ("/v1/next", {"models": ["kn", "de-en"], "prefix": "the", "source": "der hund"}),
    ("/v1/sample", {"model": "kn", "n": 3, "seed": 5, "max_words": 20}),
)
PATHS = ("/v1/models", "/v1/metrics/kn", "/v1/runs", "/languages", "/frontend/settings", "/health", "/spec", "/")
VALUES = (
    None,
    True,
    -1,
    0,
    2**70,
    1e308,
    "",
    "a" * 3_000,
    "\ud800",
    "\0",
    [],
    {},
    [[]],
    ["x"] * 100,
    {"a": {}},
    "de-en",
)
HEADER_NAMES = ("Host", "Content-Length", "Transfer-Encoding", "Expect", "Connection", "Range", "Accept", "X", "Origin")
HEADER_VALUES = (
    "",
    "0",
    "-1",
    "99999999999",
    "chunked",
    "100-continue",
    "close",
    "\xff",
    "bytes=0-1",
    "localhost",
    "a" * 9_000,
)
TYPES = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", "")


class Service(NamedTuple):
    process: subprocess.Popen[str]
    port: int
    errors: list[str]  # lines that the service wrote after its start

    def memory(self) -> float:
        """Return the resident memory in MB."""
        [size] = re.findall(r"VmRSS:\s+([0-9]+) kB", Path(f"/proc/{self.process.pid}/status").read_text())
        return int(size) / 1024

    def post(self, path: str, body: object) -> tuple[int, dict[str, str], object]:
        """Return the status, the headers and the JSON of a response."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return response.status, headers, json.loads(response.read())
        finally:
            connection.close()

    def connect(self, data: bytes = b"") -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        connection.sendall(data)
        return connection


@contextmanager
def run_service(models: Path, *options: str) -> Iterator[Service]:
    """Run the service with a translator and an n-gram model on a free port; end it, if it has not ended."""
    arguments = [f"de-en={models / 'de-en'}", str(models / "kn"), "--port", "0", *OPTIONS, *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", COMMAND, "serve", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        try:
            lines = iter(process.stderr.readline, "")
            port = next(int(match[1]) for line in lines if (match := re.search(r"curl.*127\.0\.0\.1:([0-9]+)", line)))
            errors = list[str]()
            reader = Thread(target=lambda: errors.extend(lines), daemon=True)
            reader.start()
            service = Service(process, port, errors)
            for path, body in REQUESTS:  # load and compile everything
                for _ in range(20):  # the first one may take longer than the limit
                    status, _, answer = service.post(path, body)
                    if status == 200:
                        break
                assert status == 200, f"{path}: {answer}"
            yield service
        finally:
            process.kill()
            reader.join(10)


def write_models(directory: Path) -> None:
    translators()["one"].save(directory / "de-en")
    train_ngram_model(2).save(directory / "kn")


# -- damaged requests --------------------------------------------------------------------------------------------------


def damaged_request(generator: random.Random) -> bytes:
    """Return a request with random damage: other values, types, methods and headers, or changed bytes."""
    path, fields = generator.choice(REQUESTS)
    body = dict(fields)
    for _ in range(generator.randint(0, 2)):
        name = generator.choice([*body, "api_key", "other"])
        body.pop(name, None) if generator.random() < 0.3 else body.update({name: generator.choice(VALUES)})
    kind, content = generator.choice(TYPES), json.dumps(body).encode()
    if kind.startswith("multipart"):
        part = "--x\r\nContent-Disposition: form-data; name={}\r\n\r\n{}\r\n"
        content = (
            "".join(part.format(name, value) for name, value in body.items()).encode("utf-8", "replace") + b"--x--"
        )
    method = generator.choices(["POST", "GET", "PUT", "OPTIONS", "BREW"], [8, 1, 1, 1, 1])[0]
    target = generator.choice([*PATHS, "/../x", "/%ff", "/v1/reports/%00"]) if generator.random() < 0.15 else path
    headers = {"Host": "localhost", "Content-Type": kind, "Content-Length": str(len(content)), "Connection": "close"}
    if generator.random() < 0.3:
        headers[generator.choice(HEADER_NAMES)] = generator.choice(HEADER_VALUES)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode("latin-1")
    request = bytearray(f"{method} {target} HTTP/1.1\r\n".encode() + lines + b"\r\n" + content)
    if generator.random() < 0.4:
        first = 0 if generator.random() < 0.3 else len(request) - len(content)
        for _ in range(generator.randint(1, 5)):
            request[generator.randrange(min(first, len(request) - 1), len(request))] = generator.randrange(256)
    return bytes(request[: generator.randrange(len(request))] if generator.random() < 0.05 else request)


def read_response(connection: socket.socket) -> bytes:
    with suppress(ConnectionError):
        return b"".join(iter(lambda: connection.recv(65536), b""))
    return b""


def attack_with_requests(service: Service, seconds: float, seed: int) -> tuple[str, list[str]]:
    """Send damaged requests, several at once. Each must be answered by a designed status; errors by JSON."""
    end, problems, statuses = monotonic() + seconds, list[str](), Counter[int]()

    def send(number: int) -> None:
        generator = random.Random(seed * 1_000 + number)
        while monotonic() < end:
            request = damaged_request(generator)
            with service.connect(request) as connection:
                connection.shutdown(socket.SHUT_WR) if generator.random() < 0.1 else None
                head, _, body = read_response(connection).partition(b"\r\n\r\n")
            status = int(head.split()[1]) if head else 0  # 0: closed without an answer, as of an incomplete request
            statuses[status] += 1
            if status >= 500 and status not in DESIGNED:
                problems.append(f"status {status} of {request[:300]!r}")
            elif status >= 400 and request[:4] != b"HEAD" and set(json.loads(body)) != {"error"}:
                problems.append(f"status {status} without an error message of {request[:300]!r}")

    _run_all([lambda number=number: send(number) for number in range(6)], problems)
    return f"{statuses.total():,} damaged requests: {_describe(statuses)}", problems


# -- silent clients ----------------------------------------------------------------------------------------------------


def attack_with_silence(service: Service, seconds: float, seed: int) -> tuple[str, list[str]]:
    """Open connections that send slowly, or half a request, or read nothing; others must be served meanwhile."""
    generator, problems, end = random.Random(seed), list[str](), monotonic() + seconds
    starts = (
        b"",
        b"POST /translate HTT",
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
    )
    never_read = b"GET /spec HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200
    connections, served = list[socket.socket](), 0
    while monotonic() < end:
        while len(connections) < SILENT_CLIENTS:
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connection.connect(("127.0.0.1", service.port))
            connection.settimeout(0.05)
            with suppress(OSError):
                connection.sendall(generator.choice((*starts, never_read)))
            connections.append(connection)
        for connection in generator.sample(connections, 10):
            try:
                connection.send(b"x")  # one byte at a time
            except OSError:
                connection.close()
                connections.remove(connection)
        path, body = generator.choice(REQUESTS)
        if (status := service.post(path, body)[0]) != 200:
            problems.append(f"{path}: status {status} while others are silent")
        served += 1
    deadline = monotonic() + 30
    while (count := _open_sockets(service)) > 0 and monotonic() < deadline:
        sleep(0.2)
    if count:
        problems.append(f"{count} connections of silent clients are still open")
    for connection in connections:
        connection.close()
    return f"{SILENT_CLIENTS} silent clients; {served:,} requests of others served", problems


def _open_sockets(service: Service) -> int:
    """Return how many connections the service has, by the tables of the system."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    links = {str(link.readlink()) for link in Path(f"/proc/{service.process.pid}/fd").iterdir() if link.is_symlink()}
    port = f":{service.port:04X}"
    return sum(row[1].endswith(port) and row[3] != "0A" and f"socket:[{row[9]}]" in links for row in rows)


# -- load --------------------------------------------------------------------------------------------------------------


def run_load(
    service: Service,
    seconds: float,
    seed: int,
    during: Callable[[], None] = lambda: None,
    refused: Sequence[int] = (503,),
) -> tuple[str, list[str]]:
    """Send mixed requests by many clients, measure the memory, and do something meanwhile, again and again."""
    statuses, problems, memory, finished = Counter[int](), list[str](), [service.memory()], Event()
    end = monotonic() + seconds

    def send(number: int) -> None:
        generator = random.Random(seed * 1_000 + number)
        while monotonic() < end:
            path, body = generator.choice(REQUESTS)
            status, headers, _ = service.post(path, body)
            statuses[status] += 1
            if status != 200 and not (status in refused and (status != 503 or "retry-after" in headers)):
                problems.append(f"{path}: status {status}")

    def watch() -> None:
        while not finished.wait(seconds / 60):
            memory.append(service.memory())

    watcher = Thread(target=watch)
    watcher.start()
    changer = Thread(target=lambda: [during() for _ in iter(lambda: monotonic() < end, False)])
    if during.__name__ != "<lambda>":
        changer.start()
    _run_all([lambda number=number: send(number) for number in range(CLIENTS)], problems)
    finished.set()
    watcher.join()
    if changer.is_alive():
        changer.join()
    third = max(1, len(memory) // 3)
    middle, last = statistics.median(memory[third : 2 * third] or memory), statistics.median(memory[-third:])
    if seconds >= 30 and last > middle * (1 + MAX_GROWTH):
        problems.append(f"memory grew from {middle:.0f} to {last:.0f} MB")
    memory_text = f"{memory[0]:.0f}, {middle:.0f}, {last:.0f} MB at the start, in the middle, at the end"
    return f"{CLIENTS} clients, {seconds:.0f} s: {_describe(statuses)}; {memory_text}", problems


def replace_under_load(service: Service, models: Path, seconds: float, seed: int) -> tuple[str, list[str]]:
    """Replace both models again and again under load: each request is answered by one of the versions."""
    count, versions = 0, (translators()["two"], translators()["one"])

    def replace() -> None:
        nonlocal count
        versions[count % 2].save(models / "de-en", replace=True)
        train_ngram_model(1 + count % 2).save(models / "kn", replace=True)
        count += 1
        sleep(0.1)

    text, problems = run_load(service, seconds, seed, replace)
    return f"{count} replacements; {text}", problems


def truncate_under_load(service: Service, models: Path, seconds: float, seed: int) -> tuple[str, list[str]]:
    """Truncate the files of a model in place under load: requests may be refused, and the service goes on."""
    generator, count = random.Random(seed), 0

    def truncate() -> None:
        nonlocal count
        file = generator.choice(sorted(path for path in (models / "kn").iterdir() if path.name != "README.md"))
        contents = file.read_bytes()
        with file.open("r+b") as opened:
            opened.truncate(generator.randrange(len(contents)))
        sleep(0.1)
        file.write_bytes(contents)
        sleep(0.1)
        count += 1

    text, problems = run_load(service, seconds, seed, truncate, (404, 503))
    for _ in range(20):
        if service.post("/v1/score", {"models": ["kn"], "text": "the dog"})[0] == 200:
            return f"{count} truncated files; {text}", problems
        sleep(0.1)
    return text, [*problems, "the restored model is not served"]


# -- signals -----------------------------------------------------------------------------------------------------------


def end_under_load(models: Path, seed: int, *, signals: int) -> tuple[str, list[str]]:
    """Send SIGTERM while requests are answered and clients are silent. Every response must be complete, or none.

    With several signals, the service has an hour for its shutdown, and the second signal ends it.
    """
    options = (
        () if signals == 1 else ("--shutdown-timeout", "3600", "--max-seconds", "3600", "--max-write-seconds", "3600")
    )
    problems, statuses, stopping = list[str](), Counter[int](), Event()
    with run_service(models, *options) as service:

        def send(number: int) -> None:
            generator = random.Random(seed * 1_000 + number)
            while not stopping.is_set():
                path, body = generator.choice(REQUESTS)
                try:
                    statuses[service.post(path, body)[0]] += 1
                except (OSError, HTTPException) as error:
                    if type(error).__name__ == "IncompleteRead":
                        problems.append(f"{path}: an incomplete response")

        half = service.connect(b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        unread = socket.socket()
        unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        unread.connect(("127.0.0.1", service.port))
        unread.settimeout(0.2)
        with suppress(OSError):
            unread.sendall(b"GET /spec HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3_000)
        with ThreadPoolExecutor(8) as pool, half, unread:
            futures = [pool.submit(send, number) for number in range(8)]
            sleep(0.5)
            start = monotonic()
            for number in range(signals):
                sleep(0.5 if number else 0)
                service.process.send_signal(signal.SIGTERM)
            try:
                code = service.process.wait(SHUTDOWN_SECONDS)
            except subprocess.TimeoutExpired:
                code = None
            seconds = monotonic() - start
            service.process.kill()
            stopping.set()
            problems += [str(error) for future in futures if (error := future.exception())]
    if code not in (-signal.SIGTERM, 128 + signal.SIGTERM):
        problems.append(f"{signals} SIGTERM: exit code {code} after {seconds:.1f} s")
    return f"{signals} SIGTERM under load: ended after {seconds:.1f} s; {_describe(statuses)} before", problems


# -- the OpenAPI description -------------------------------------------------------------------------------------------


def run_schemathesis(service: Service, seconds: float, seed: int) -> tuple[str, list[str]]:
    """Requests that fit the description may be refused: the model may not exist, or a limit be lower."""
    program = shutil.which("schemathesis") or shutil.which("schemathesis", path=str(Path(sys.executable).parent))
    if program is None:
        return "schemathesis is not installed: skipped", []
    settings = ["--config-file", str(Path(__file__).with_name("schemathesis.toml"))]
    options = [
        "--seed",
        str(seed),
        "--max-time",
        str(max(1, int(seconds))),
        "--no-color",
        "--phases",
        "examples,coverage,fuzzing",
    ]
    command = [program, *settings, "run", f"http://127.0.0.1:{service.port}/spec", *options]
    tests = str(Path(__file__).parent.parent)
    paths = [tests, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ,
        "SCHEMATHESIS_HOOKS": "torture.schemathesis_hooks",
        "PYTHONPATH": os.pathsep.join(paths),
    }
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    output = result.stdout + result.stderr
    cases = re.findall(r"([0-9,]+) generated", output)
    return f"schemathesis: {cases[-1] if cases else '?'} cases", [] if result.returncode == 0 else [output[-9_000:]]


# -- all ---------------------------------------------------------------------------------------------------------------


def _run_all(functions: Sequence[Callable[[], None]], problems: list[str]) -> None:
    with ThreadPoolExecutor(len(functions)) as pool:
        futures = [pool.submit(function) for function in functions]
        problems += [f"{type(error).__name__}: {error}" for future in futures if (error := future.exception())]


def _describe(statuses: Counter[int]) -> str:
    return ", ".join(f"{count:,} x {status}" for status, count in sorted(statuses.items()))


def run_campaign(seconds: float, seed: int) -> list[str]:
    """Run all attacks within about this time. Print what was done; return the problems."""
    problems = list[str]()

    def report(result: tuple[str, list[str]]) -> None:
        print(result[0], flush=True)
        problems.extend(result[1][:10])

    with tempfile.TemporaryDirectory() as directory:
        models = Path(directory)
        write_models(models)
        with run_service(models) as service:
            report(attack_with_requests(service, 0.2 * seconds, seed))
            report(attack_with_silence(service, 0.1 * seconds, seed))
            report(run_load(service, 0.25 * seconds, seed))
            report(replace_under_load(service, models, 0.1 * seconds, seed))
            report(truncate_under_load(service, models, 0.1 * seconds, seed))
            report(run_schemathesis(service, 0.2 * seconds, seed))
            if (code := service.process.poll()) is not None:
                problems.append(f"the service ended with {code}")
        problems += [f"the service wrote: {line.rstrip()}" for line in service.errors[:20]]
        for signals in (1, 2):
            report(end_under_load(models, seed, signals=signals))
    return problems


def run_load_only(seconds: float, seed: int) -> list[str]:
    """Send mixed requests for this time. Print the memory; return the problems."""
    with tempfile.TemporaryDirectory() as directory:
        write_models(Path(directory))
        with run_service(Path(directory)) as service:
            text, problems = run_load(service, seconds, seed)
            print(text, flush=True)
            return [*problems[:10], *(f"the service wrote: {line.rstrip()}" for line in service.errors[:20])]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--load-only", action="store_true", help="mixed requests only")
    options = parser.parse_args()
    run = run_load_only if options.load_only else run_campaign
    problems = run(60 * options.minutes, options.seed)
    print("\n".join(problems) if problems else "no problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
