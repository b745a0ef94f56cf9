"""Two commands that write to the same directory at the same time, in all combinations.

    python -m torture.concurrency [--rounds N] [--minutes M] [--seed S]

Each ends with success, or is refused in one line. The directory then holds the complete result of one of them.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from time import perf_counter, sleep

from torture.commands import COMMANDS, REPLACING, Finished, contents, fresh_copy, run_forked, start_forked, write_inputs

# Commands that write directories, by themselves.
DIRECTORIES = [name for name in COMMANDS if name not in ("export", "cluster", "score --shards")]
REFUSALS = (
    "is being written by another program",
    "already contains",
    "contains a different training run",
    "contains other files, so it is not replaced",
    "exists already and is not empty",
    "exists already; choose another directory",
)


def results(inputs: Path, names: Sequence[str] = DIRECTORIES) -> dict[str, dict[str, object]]:
    """Return what each command writes if it runs alone."""
    expected = {}
    for name in names:
        place = fresh_copy(inputs, inputs.with_name("alone"))
        if (finished := run_forked(COMMANDS[name], place)).code != 0:
            raise RuntimeError(f"{name}: {finished.error}")
        expected[name] = contents(place / "out")
    return expected


def refused(finished: Finished) -> bool:
    return finished.code == 2 and any(reason in finished.last_line for reason in REFUSALS)


def run_together(
    names: tuple[str, str], *, force: bool, inputs: Path, delay: float, expected: dict[str, dict[str, object]]
) -> list[str]:
    """Run two commands on one directory, the second a little later, and return what went wrong."""
    place, processes = fresh_copy(inputs, inputs.with_name("together")), []
    for number, name in enumerate(names):
        arguments = [word for word in COMMANDS[name] if word != "--force"] + ["--force"] * force
        processes.append(start_forked(arguments, place, name=str(number)))
        sleep(delay)
    ended = [process.wait() for process in processes]
    what = f"{' and '.join(names)}{' --force' * force}"
    problems = [
        f"{what}: ended with {finished.code}: {finished.last_line}"
        for finished in ended
        if finished.code != 0 and not refused(finished)
    ]
    successful = [name for name, finished in zip(names, ended, strict=True) if finished.code == 0]
    if not successful:
        problems.append(f"{what}: no command was successful: {[finished.last_line for finished in ended]}")
    elif contents(place / "out") not in possible_results(successful, expected):
        problems.append(f"{what}: the directory has the result of none of {successful}")
    return problems


def possible_results(names: Sequence[str], expected: dict[str, dict[str, object]]) -> list[dict[str, object]]:
    """Return what may be in the directory after these commands: the result of one, and the files that `split` adds."""
    results = [expected[name] for name in names]
    if "split" in names:
        results += [{**expected[name], **expected["split"]} for name in names]
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=4, help="how often each combination is tried")
    parser.add_argument("--minutes", type=float, default=600.0, help="stop after this time")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    options = parser.parse_args()
    end, generator, tried, problems = perf_counter() + 60 * options.minutes, random.Random(options.seed), 0, list[str]()
    with tempfile.TemporaryDirectory() as directory:
        inputs = Path(directory) / "inputs"
        write_inputs(inputs)
        expected = results(inputs)
        combinations = [(names, False) for names in product(DIRECTORIES, repeat=2)]
        combinations += [(names, True) for names in product(sorted(REPLACING), repeat=2)]
        for _, (names, force) in product(range(options.rounds), combinations):
            if perf_counter() > end:
                break
            delay = 0.3 * generator.random()
            problems += run_together(names, force=force, inputs=inputs, delay=delay, expected=expected)
            tried += 1
    print(f"{tried} pairs of commands, {len(problems)} problems", *problems, sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
