"""Run commands on damaged inputs of every format.

    python -m torture.inputs [--count 10000] [--minutes M] [--seed S]

No traceback, no signal, no hang, and exit codes 0 to 3 only. Commands that work line by line write as many lines as
they read.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from damage import damaged
from dragoman.data.formats import GZIP_MAGIC
from torture.commands import Finished, TimeLimit, run_forked, run_here
from torture.readings import READINGS, Reading, write_all

SEPARATORS = ("\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\u00a0")  # are not line breaks
BYTES = b"\x00\x01\x08\t\n\r \x1b\"#%&'(),-./0:;<=>@[\\]_{|}~\x7f\x80\xbf\xc0\xe2\xef\xf0\xff"
NUMBERS = re.compile(r"-?[0-9]+\.[0-9]+(e-?[0-9]+)?")
PLACES = 1_000  # lines with a separator that is no line break, and as many without


def mutate(content: bytes, generator: random.Random) -> bytes:
    """Damage a file in one of several ways. A compressed file is damaged before or after it is compressed."""
    if content.startswith(GZIP_MAGIC):
        if generator.random() < 0.5:
            return damaged(content, generator, BYTES, 10)
        return gzip.compress(mutate(gzip.decompress(content), generator))
    match generator.randrange(8):
        case 0:  # separators that are no line breaks, at several places
            text = content.decode()
            for _ in range(generator.randint(1, 20)):
                place = generator.randrange(len(text) + 1)
                text = text[:place] + generator.choice(SEPARATORS) + text[place:]
            return text.encode()
        case 1:
            return content[: generator.randrange(len(content))]
        case 2:
            return b"\xef\xbb\xbf" + content
        case 3:
            return content.replace(b"\n", b"\r\n")
        case 4:  # a very long word
            place = generator.randrange(len(content) + 1)
            return content[:place] + b"x" * generator.choice([1_000, 70_000]) + content[place:]
        case 5:
            return content.decode().encode(generator.choice(["utf-16", "utf-16-le", "latin-1", "cp1252"]), "replace")
        case _:
            return damaged(content, generator, BYTES, 10)


def count_lines(content: bytes) -> int:
    """Return the number of lines: parts that end with a line feed, and a rest that is not empty."""
    return content.count(b"\n") + (not content.endswith(b"\n") and bool(content))


def problem_of(reading: Reading, finished: Finished, content: bytes, output: Path) -> str | None:
    """Return what is wrong with the way a command ended."""
    command = " ".join(reading.arguments)
    if finished.code not in (0, 1, 2, 3):
        return f"{command}: ended with {finished.code}: {finished.last_line}"
    if "Traceback" in finished.error or "internal error" in finished.error:
        return f"{command}: {finished.last_line}"
    if finished.code != 0 and not finished.error.strip() and not output.read_bytes():
        return f"{command}: ended with {finished.code} without a message"
    if finished.code == 0 and reading.by_line and count_lines(output.read_bytes()) != count_lines(content):
        return f"{command}: {count_lines(content)} lines in, {count_lines(output.read_bytes())} out"
    return None


def run_reading(reading: Reading, directory: Path, content: bytes) -> tuple[Finished, str | None, Path]:
    """Run a command on a file with this content. Return how it ended, what is wrong, and its standard output."""
    file, standard_output = directory / f"damaged.{reading.file}", directory / "stdout"
    file.write_bytes(content)
    _remove(directory / "out")
    argument = os.fsdecode(content[:100_000].replace(b"\0", b""))  # as the system passes it
    replaced = {"FILE": file.name, "ARGUMENT": argument}
    arguments = [replaced.get(word, word) for word in reading.arguments]

    def prepare() -> None:
        TimeLimit().start()
        os.dup2(os.open(file, os.O_RDONLY), 0)
        sys.stdin = os.fdopen(0, encoding="utf-8")

    finished = run_forked(arguments, directory, prepare, standard_output)
    return finished, problem_of(reading, finished, content, standard_output), standard_output


def try_damaged(reading: Reading, directory: Path, generator: random.Random) -> tuple[int, str | None]:
    """Run a command on a damaged file. Return its exit code, and what is wrong."""
    content = mutate((directory / reading.file).read_bytes(), generator)
    finished, problem, _ = run_reading(reading, directory, content)
    return finished.code, problem


def with_separators(lines: Sequence[str], places: int, generator: random.Random) -> dict[int, str]:
    """Return lines by number, in which a character is inserted that some take for a line break."""
    changed = {}
    for count, number in enumerate(generator.sample(range(len(lines)), places)):
        place = generator.randrange(1, len(lines[number]))
        separator = SEPARATORS[count % len(SEPARATORS)]
        changed[number] = lines[number][:place] + separator + lines[number][place:]
    return changed


def try_separators(reading: Reading, directory: Path, places: int, generator: random.Random) -> str | None:
    """Insert separators into lines of a text: the command must write for all other lines what it wrote before."""
    given = (directory / reading.file).read_bytes().decode().removesuffix("\n").split("\n")
    lines = [generator.choice(given) for _ in range(2 * places)]
    changed, outputs = with_separators(lines, places, generator), []
    for text in (lines, [changed.get(number, line) for number, line in enumerate(lines)]):
        content = "".join(f"{line}\n" for line in text).encode()
        finished, problem, output = run_reading(reading, directory, content)
        if problem is not None or finished.code != 0:
            return problem or f"{' '.join(reading.arguments)}: {finished.last_line}"
        outputs.append([_comparable(line) for line in output.read_bytes().decode().split("\n")])
    before, after = outputs
    shifted = [number for number in range(len(lines)) if number not in changed and before[number] != after[number]]
    if shifted:
        number = shifted[0]
        line = f"line {number + 1} is {after[number]!r}, and was {before[number]!r}"
        return f"{' '.join(reading.arguments)}: {len(shifted)} other lines changed; {line}"
    return None


def _comparable(line: str) -> str:
    """Round numbers: they depend on the other lines of a batch in the last digits."""
    return NUMBERS.sub(lambda match: f"{float(match[0]):.3g}", line)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def run_campaign(directory: Path, count: int, seed: int, end: float, keep: Path | None) -> tuple[int, list[str]]:
    """Try damaged files, one command after the other. Return how many, and the problems."""
    codes, problems = Counter[int](), list[str]()
    for number in range(count):
        if perf_counter() > end:
            break
        reading = READINGS[number % len(READINGS)]
        code, problem = try_damaged(reading, directory, random.Random(f"{seed} {number}"))
        codes[code] += 1
        if problem is not None:
            problems.append(f"{number}: {problem}")
            print(problems[-1], flush=True)
            if keep is not None:
                keep.mkdir(exist_ok=True)
                kept = keep / f"{number}.{reading.file}"
                kept.write_bytes((directory / f"damaged.{reading.file}").read_bytes())
    print(f"{codes.total():,} damaged files, exit codes {dict(sorted(codes.items()))}, {len(problems)} problems")
    return codes.total(), problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000, help="number of damaged files")
    parser.add_argument("--minutes", type=float, default=600.0, help="stop after this time")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--keep", type=Path, help="keep damaged files that cause problems in this directory")
    options = parser.parse_args()
    end = perf_counter() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary) / "inputs"
        write_all(directory)
        for reading in READINGS:  # so that forked processes need not import
            if "FILE" in reading.arguments:
                run_here([reading.file if word == "FILE" else word for word in reading.arguments], directory)
                _remove(directory / "out")
        by_line = [reading for reading in READINGS if reading.by_line]
        generator = random.Random(options.seed)
        shifted = [try_separators(reading, directory, PLACES, generator) for reading in by_line]
        problems = [problem for problem in shifted if problem is not None]
        what = f"{len(by_line)} commands, {PLACES:,} separators each, {len(problems)} problems"
        print(what, *problems, sep="\n  ", flush=True)
        problems += run_campaign(directory, options.count, options.seed, end, options.keep)[1]
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
