"""Run commands on damaged inputs of every format.

    python -m torture.inputs [--count 10000] [--minutes M] [--seed S]

No traceback, no signal, no hang, and exit codes 0 to 3 only. Commands that work line by line write as many lines as
they read.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from damage import damaged
from dragoman.models.translator import Translator
from small_translators import ENGLISH, GERMAN, translators
from torture.commands import Finished, run_forked, write_inputs

FORMATS = Path(__file__).parent.parent / "formats"
TIME_LIMIT = 60  # seconds of a command
SEPARATORS = ("\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\u00a0")  # are not line breaks
BYTES = b"\x00\x01\x08\t\n\r \x1b\"#%&'(),-./0:;<=>@[\\]_{|}~\x7f\x80\xbf\xc0\xe2\xef\xf0\xff"
TEXTS = {
    "plain.de": "".join(f"{line}\n" for line in GERMAN[:8]),
    "plain.en": "".join(f"{line}\n" for line in ENGLISH[:8]),
    "pairs.tsv": "".join(f"{source}\t{target}\n" for source, target in zip(GERMAN[:8], ENGLISH[:8], strict=True)),
    "named.tsv": "source\ttarget\n" + "".join(f"{a}\t{b}\n" for a, b in zip(GERMAN[:8], ENGLISH[:8], strict=True)),
    "pairs.jsonl": "".join(f'{{"src": "{a}", "tgt": "{b}"}}\n' for a, b in zip(GERMAN[:6], ENGLISH[:6], strict=True)),
    "text.jsonl": "".join(f'{{"text": "{line}"}}\n' for line in GERMAN[:6]),
    "classes.tsv": "dog\tA\ncat\tA\nsleeps\tB\nbarks\tB\n",
    "links.align": "0-0 1-1 2-2 3-3\n" * 8,
    "pairs.contrast.tsv": "the dog sleeps .\tthe dog sleep .\n" * 4,
}
TRAIN = ("--order", "2", "-o", "out")
SMALL = ("--embedding", "3", "--hidden", "3", "--max-updates", "1", "--threads", "1", "-o", "out")


@dataclass(frozen=True)
class Reading:
    """A command that reads a file, and whether it writes one line per line."""

    file: str
    arguments: Sequence[str]  # FILE stands for the file
    by_line: bool = False


READINGS = [
    Reading("plain.de", ("translate", "translator", "--text", "FILE"), by_line=True),
    Reading("plain.de", ("translate", "translator", "--text", "FILE", "--no-split", "--beam-size", "1"), by_line=True),
    Reading("plain.de", ("translate", "translator", "--text", "FILE", "--json"), by_line=True),
    Reading("plain.en", ("score", "first", "--text", "FILE"), by_line=True),
    Reading("plain.en", ("units", "first", "--text", "FILE"), by_line=True),
    Reading("plain.en", ("evaluate", "first", "--text", "FILE")),
    Reading("plain.en", ("train", "ngram", "--text", "FILE", *TRAIN)),
    Reading("plain.en", ("train", "ngram", "--text", "FILE", "--units", "subword:40", *TRAIN)),
    Reading("plain.en", ("train", "recurrent", "--text", "FILE", *SMALL)),
    Reading("plain.en", ("cluster", "--text", "FILE", "-n", "3", "-o", "out")),
    Reading("plain.en", ("doctor", "--text", "FILE")),
    Reading("plain.en", ("split", "--text", "FILE", "-o", "out")),
    Reading("plain.de", ("doctor", "--src", "FILE", "--tgt", "plain.en")),
    Reading("plain.de", ("doctor", "--src", "FILE", "--tgt", "plain.en", "--fix", "-o", "out")),
    Reading("plain.de", ("align", "--src", "FILE", "--tgt", "plain.en")),
    Reading("plain.de", ("evaluate", "translator", "--src", "FILE", "--ref", "plain.en")),
    Reading("plain.de", ("score", "translator", "--src", "FILE", "--text", "plain.en")),
    Reading("pairs.tsv", ("train", "translator", "--pairs", "FILE", *SMALL)),
    Reading("pairs.tsv", ("split", "--pairs", "FILE", "-o", "out")),
    Reading("named.tsv", ("doctor", "--pairs", "FILE")),
    Reading("named.tsv", ("translate", "translator", "--text", "FILE", "--field", "source")),
    Reading("pairs.jsonl", ("align", "--pairs", "FILE")),
    Reading("text.jsonl", ("translate", "translator", "--text", "FILE")),
    Reading("classes.tsv", ("train", "class-ngram", "--text", "train.en", "--classes", "FILE", *TRAIN)),
    Reading(
        "links.align",
        (
            "train",
            "translator",
            "--src",
            "plain.de",
            "--tgt",
            "plain.en",
            "--alignments",
            "FILE",
            "--supervision",
            "1",
            *SMALL,
        ),
    ),
    Reading("first.arpa", ("import", "FILE", "-o", "out")),
    Reading("memory.tmx", ("split", "--pairs", "FILE", "--src-lang", "de", "--tgt-lang", "en", "-o", "out")),
    Reading("memory.tmx", ("train", "translator", "--pairs", "FILE", *SMALL)),
    *(
        Reading(name, ("translate", "translator", "FILE", "-o", "out"))
        for name in ("app-1.2.xlf", "app-2.0.xlf", "app.po", "film.de.srt", "film.vtt", "guide.md", "page.html")
    ),
    *(Reading(name, ("doctor", "--pairs", "FILE")) for name in ("app-1.2.xlf", "app-2.0.xlf", "app.po")),
]


def write_all(directory: Path) -> None:
    """Write the inputs of all commands."""
    write_inputs(directory)
    for name, text in TEXTS.items():
        (directory / name).write_text(text, encoding="utf-8")
    for path in FORMATS.iterdir():
        (directory / path.name).write_bytes(path.read_bytes())
    translator: Translator = translators()["one"]
    translator.save(directory / "translator")


def mutate(content: bytes, generator: random.Random) -> bytes:
    """Damage a file in one of several ways."""
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
    if finished.code == 0 and reading.by_line and count_lines(output.read_bytes()) != count_lines(content):
        return f"{command}: {count_lines(content)} lines in, {count_lines(output.read_bytes())} out"
    return None


def try_damaged(reading: Reading, directory: Path, generator: random.Random) -> tuple[int, str | None]:
    """Run a command on a damaged file. Return its exit code, and what is wrong."""
    name = f"damaged.{reading.file}"
    content = mutate((directory / reading.file).read_bytes(), generator)
    (directory / name).write_bytes(content)
    output = directory / "out"
    _remove(output)
    standard_output = directory / "stdout"
    arguments = [name if word == "FILE" else word for word in reading.arguments]
    finished = run_forked(arguments, directory, lambda: signal.alarm(TIME_LIMIT), standard_output)
    return finished.code, problem_of(reading, finished, content, standard_output)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000, help="number of damaged files")
    parser.add_argument("--minutes", type=float, default=600.0, help="stop after this time")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--keep", type=Path, help="keep damaged files that cause problems in this directory")
    options = parser.parse_args()
    end, codes, problems = perf_counter() + 60 * options.minutes, Counter[int](), list[str]()
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary) / "inputs"
        write_all(directory)
        for number in range(options.count):
            if perf_counter() > end:
                break
            reading = READINGS[number % len(READINGS)]
            code, problem = try_damaged(reading, directory, random.Random(f"{options.seed} {number}"))
            codes[code] += 1
            if problem is not None:
                problems.append(f"{number}: {problem}")
                print(problems[-1], flush=True)
                if options.keep is not None:
                    options.keep.mkdir(exist_ok=True)
                    kept = options.keep / f"{number}.{reading.file}"
                    kept.write_bytes((directory / f"damaged.{reading.file}").read_bytes())
    print(f"{sum(codes.values())} damaged files, exit codes {dict(sorted(codes.items()))}, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
