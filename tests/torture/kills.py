"""Kill trainings at random moments until they end: the result must be that of a training that was never killed.

Of a training that is limited by time, the result must be that of its first checkpoint and its stored decisions.

python -m torture.kills [--kills 200] [--minutes M] [--seed S]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path
from time import perf_counter, sleep

from dragoman.io.storage import ARRAYS_FILE, CHECKPOINT_FILE, PACE_FILE
from torture.commands import COMMANDS, TEXT, contents, fresh_copy, run_forked, start_forked, write_inputs

TRAINERS = [name for name in COMMANDS if name.startswith("train ") and "--max-updates" in COMMANDS[name]]
UPDATES = "12"
NETWORK = ("--embedding", "4", "--hidden", "4", "--threads", "1", "--batch-size", "30")
TIMED = ("train", "feed-forward", *TEXT, "--order", "2", *NETWORK, "--save-every", "5", "--minutes", "0.1")


def longer(name: str) -> list[str]:
    """Return a training command with more updates."""
    arguments = list(COMMANDS[name])
    arguments[arguments.index("--max-updates") + 1] = UPDATES
    return arguments


def kill_until_finished(name: str, inputs: Path, kills: int, generator: random.Random) -> tuple[int, list[str]]:
    """Kill a training several times, let it end, and compare. Return how often it was killed, and problems."""
    arguments = longer(name)
    expected_place = fresh_copy(inputs, inputs.with_name("undisturbed"))
    start = perf_counter()
    if (finished := run_forked(arguments, expected_place)).code != 0:
        return 0, [f"{name}: {finished.last_line}"]
    seconds, place, killed = perf_counter() - start, fresh_copy(inputs, inputs.with_name("killed")), 0
    for _ in range(kills):
        process = start_forked(arguments, place)
        sleep(seconds * generator.random())
        killed += process.kill().code < 0
    if (finished := run_forked(arguments, place)).code != 0:
        return killed, [f"{name}: after {killed} kills: {finished.last_line}"]
    written, expected = contents(place), contents(expected_place)
    different = sorted(path for path in {*written, *expected} if written.get(path) != expected.get(path))
    return killed, [f"{name}: after {killed} kills other contents: {', '.join(different)}"] if different else []


def replay_decisions(inputs: Path, kills: int, generator: random.Random) -> tuple[int, list[str]]:
    """Kill a training that is limited by time several times, and replay its decisions from its first checkpoint."""
    place, killed = fresh_copy(inputs, inputs.with_name("timed")), 0
    process = start_forked(TIMED, place)
    while not (place / "out" / CHECKPOINT_FILE).exists():
        sleep(0.01)
    killed += process.kill().code < 0
    first = fresh_copy(place, inputs.with_name("replayed"))
    for _ in range(kills):
        process = start_forked(TIMED, place)
        sleep(60 * float(TIMED[-1]) * generator.random())
        killed += process.kill().code < 0
    if (finished := run_forked(TIMED, place)).code != 0:
        return killed, [f"with a time limit: after {killed} kills: {finished.last_line}"]
    (first / "out" / PACE_FILE).write_bytes((place / "out" / PACE_FILE).read_bytes())
    if (finished := run_forked(TIMED, first)).code != 0:
        return killed, [f"with a time limit: replay: {finished.last_line}"]
    different = [
        name
        for name in (ARRAYS_FILE, PACE_FILE)
        if (place / "out" / name).read_bytes() != (first / "out" / name).read_bytes()
    ]
    return killed, [f"with a time limit: the replay has another {name}" for name in different]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200, help="number of kills, of all trainings together")
    parser.add_argument("--minutes", type=float, default=600.0, help="stop after this time")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    options = parser.parse_args()
    end, generator = perf_counter() + 60 * options.minutes, random.Random(options.seed)
    total, runs, problems = 0, 0, list[str]()
    with tempfile.TemporaryDirectory() as directory:
        write_inputs(Path(directory) / "inputs")
        inputs = Path(directory) / "inputs"
        while total < options.kills and perf_counter() < end:
            name, kills = [*TRAINERS, "with a time limit"][runs % (len(TRAINERS) + 1)], generator.randint(1, 5)
            if name in TRAINERS:
                killed, new_problems = kill_until_finished(name, inputs, kills, generator)
            else:
                killed, new_problems = replay_decisions(inputs, kills, generator)
            total, runs, problems = total + killed, runs + 1, problems + new_problems
            print(f"{name}: killed {killed} times", *new_problems, sep="\n  ", flush=True)
    print(f"{total} kills in {runs} trainings, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
