"""Speed of scoring with 5-gram models on one thread, compared with the `kenlm` module, and what the models take.

    python benchmarks/ngram_scoring.py --data DIR               # DIR has ptb/ and wikitext2/
    python benchmarks/ngram_scoring.py --text TRAIN TEST        # another text, and nothing else
    python benchmarks/ngram_scoring.py --data DIR --before SRC  # also another version, such as ../old/src

The same modified Kneser-Ney model is scored by each system in its own process, which loads it once. In each round the
systems score the same lines one after the other, so that other load affects them equally. The tables show medians over
the rounds, and the smallest and the largest ratio to kenlm of a round.

- `lines`: `model.score(lines)`, for kenlm `[model.score(line) for line in lines]`, which has no call for many lines.
- `one by one`: `model.score(line)` for each of 2,000 lines.
- `training`: lines of the training text instead of the test text, where all 5-grams are known.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from dragoman.report.tables import format_table

ORDER = 5
SINGLE_LINES = 2_000
VOCABULARY_SIZE = 1_000_000
BYTES = 5_000_000  # of each text that is scored
OURS, BEFORE, KENLM = "dragoman", "before", "kenlm"


# -- processes of the systems ------------------------------------------------------------------------------------------


def resident_bytes() -> int:
    """Return the memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def load_model(system: str, path: str) -> Any:
    """Load a model directory, or an ARPA file with kenlm."""
    if system == KENLM:
        import kenlm

        return kenlm.Model(path)
    from dragoman.models.loading import load

    model = load(path)
    model.score(["the a of"] * 3)
    return model


def score_lines(system: str, model: Any, lines: list[str]) -> float:
    """Return the seconds that a system takes for all lines at once."""
    start = time.perf_counter()
    scores = [model.score(line) for line in lines] if system == KENLM else model.score(lines)
    seconds = time.perf_counter() - start
    assert len(scores) == len(lines) and scores[0] < 0
    return seconds


def score_one_by_one(model: Any, lines: list[str]) -> float:
    """Return the seconds for one call per line."""
    start = time.perf_counter()
    for line in lines:
        model.score(line)
    return time.perf_counter() - start


def serve(system: str, warm_up: str, path: str, texts: list[str]) -> None:
    """Load a model, then answer requests: the name of a measurement and the index of a text."""
    load_model(system, warm_up)  # loads all code
    before, start = resident_bytes(), time.perf_counter()
    model = load_model(system, path)
    print(json.dumps([resident_bytes() - before, time.perf_counter() - start]), flush=True)
    lines = [Path(text).read_text(encoding="utf-8").split("\n")[:-1] for text in texts]
    for request in sys.stdin:
        measurement, index = request.split()
        text = lines[int(index)]
        is_single = measurement == "one"
        seconds = score_one_by_one(model, text[:SINGLE_LINES]) if is_single else score_lines(system, model, text)
        print(json.dumps(seconds), flush=True)


def time_vocabulary(path: str) -> None:
    """Print the seconds to read a vocabulary in a new process, and again."""
    from dragoman.data.vocabulary import Vocab

    seconds = []
    for _ in range(4):
        start = time.perf_counter()
        vocab = Vocab.read(Path(path))
        seconds.append(time.perf_counter() - start)
        assert len(vocab) == VOCABULARY_SIZE
    print(json.dumps([seconds[0], median(seconds[1:])]))


class System:
    """A process that scores texts with a model."""

    def __init__(self, system: str, source: str | None, arguments: list[str]):
        command = [sys.executable, __file__, "--serve", KENLM if system == KENLM else OURS, *arguments]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment(source),
        )
        self.memory, self.load_seconds = self._answer()

    def measure(self, measurement: str, index: int) -> float:
        assert self.process.stdin is not None
        print(measurement, index, file=self.process.stdin, flush=True)
        return float(self._answer())

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())


def environment(source: str | None) -> dict[str, str]:
    """Return the environment of a process with one thread and, if given, the code of another version."""
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    return variables if source is None else {**variables, "PYTHONPATH": source}


# -- measurements ------------------------------------------------------------------------------------------------------


def prepare(text: Path, held_out: Path, scratch: Path) -> tuple[list[Path], int]:
    """Write the models of a text, as a directory and as ARPA, and the lines to score; return the number of n-grams."""
    from dragoman.data.corpus import Corpus
    from dragoman.data.unknown_words import ClosedVocabulary
    from dragoman.ngram.arpa import write_arpa
    from dragoman.ngram.model import NgramModel

    train = scratch / "train"
    train.write_bytes(text.read_bytes().replace(b"<unk>", b"UNKNOWN"))  # kenlm has its own <unk>
    test = held_out.read_bytes().replace(b"<unk>", b"UNKNOWN")
    (scratch / "test").write_bytes(test * max(1, BYTES // len(test)))
    seen = train.read_bytes()
    (scratch / "seen").write_bytes(seen[: seen.index(b"\n", min(BYTES, len(seen) - 2)) + 1])
    corpus = Corpus.read(train)
    model = NgramModel.train(corpus, order=ORDER, unknown=ClosedVocabulary(corpus.vocab.num_known))
    write_arpa(model, scratch / "model.arpa")
    model.save(scratch / OURS)
    return [scratch / "test", scratch / "seen"], sum(model.table.trie.sizes())


def train_before(source: str, scratch: Path) -> None:
    """Write the model directory of another version."""
    program = (
        "import sys\nfrom dragoman.data.corpus import Corpus\nfrom dragoman.data.unknown_words import ClosedVocabulary\n"
        "from dragoman.ngram.model import NgramModel\ncorpus = Corpus.read(sys.argv[1])\n"
        f"model = NgramModel.train(corpus, order={ORDER}, unknown=ClosedVocabulary(corpus.vocab.num_known))\n"
        "model.save(sys.argv[2])\n"
    )
    command = [sys.executable, "-c", program, str(scratch / "train"), str(scratch / BEFORE)]
    subprocess.run(command, check=True, env=environment(source))


def warm_up_models(scratch: Path) -> dict[str, str]:
    """Write a tiny model in both formats."""
    from dragoman import Corpus, NgramModel, write_arpa

    model = NgramModel.train(
        Corpus.from_sentences(["the a of the a of", "of a the", "a"]), order=3, smoothing="witten-bell"
    )
    model.save(scratch / "warm-up")
    write_arpa(model, scratch / "warm-up.arpa")
    return {OURS: str(scratch / "warm-up"), KENLM: str(scratch / "warm-up.arpa")}


def tokens_of(path: Path, lines: int | None = None) -> int:
    """Return the number of words and sentence ends of a text."""
    return sum(len(line.split()) + 1 for line in path.read_text(encoding="utf-8").split("\n")[:-1][:lines])


def measure_text(name: str, text: Path, held_out: Path, before: str | None, rounds: int) -> None:
    """Print the rates of all systems on one text, and the sizes of their models."""
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        texts, ngrams = prepare(text, held_out, scratch)
        warm_up = warm_up_models(scratch)
        sources: dict[str, str | None] = {OURS: None}
        if importlib.util.find_spec(KENLM):
            sources[KENLM] = None
        if before is not None:
            train_before(before, scratch)
            sources = {BEFORE: before, **sources}
        paths = {system: scratch / (system if system != KENLM else "model.arpa") for system in sources}
        systems = {}
        for system, source in sources.items():
            if system == BEFORE:  # it may not read directories of this version
                warm_up[BEFORE] = str(paths[BEFORE])
            arguments = [warm_up[system], str(paths[system]), *map(str, texts)]
            systems[system] = System(system, source, arguments)
        rows = []
        for label, measurement, index, lines in (
            ("test, lines", "lines", 0, None),
            ("test, one by one", "one", 0, SINGLE_LINES),
            ("training, lines", "lines", 1, None),
        ):
            tokens = tokens_of(texts[index], lines)
            seconds: dict[str, list[float]] = {system: [] for system in systems}
            for _ in range(rounds):
                for system, process in systems.items():
                    seconds[system].append(process.measure(measurement, index))
            rows += [rate_row(f"{name} {label}", system, tokens, seconds) for system in systems]
        for process in systems.values():
            process.close()
        print(
            format_table(["text", "system", "million tokens/s", "us per line", "to kenlm", "smallest", "largest"], rows)
        )
        print()
        files = {
            system: path.stat().st_size if path.is_file() else (path / "model.safetensors").stat().st_size
            for system, path in paths.items()
        }
        sizes = [
            [
                name,
                system,
                f"{files[system] / ngrams:.2f}",
                f"{process.memory / ngrams:.2f}",
                f"{process.load_seconds:.2f}",
            ]
            for system, process in systems.items()
        ]
        print(format_table(["model", "system", "bytes per n-gram in the file", "in memory", "seconds to load"], sizes))
        print(f"{ngrams:,} n-grams; for kenlm the file is ARPA and the structure in memory its hash tables\n")


def rate_row(name: str, system: str, tokens: int, seconds: dict[str, list[float]]) -> list[object]:
    """Return the row of one system: its rate, and how it compares with kenlm round by round."""
    ratios = [theirs / ours for ours, theirs in zip(seconds[system], seconds.get(KENLM, []), strict=False)]
    middle = median(seconds[system])
    per_line = f"{middle / SINGLE_LINES * 1e6:.1f}" if "one by one" in name else ""
    cells = [name, system, f"{tokens / middle / 1e6:.2f}", per_line]
    if not ratios:  # kenlm is not installed
        return [*cells, "", "", ""]
    spread = ("", "") if system == KENLM else (f"{min(ratios):.2f}", f"{max(ratios):.2f}")
    return [*cells, f"{median(ratios):.2f}", *spread]


def measure_vocabulary(before: str | None, rounds: int) -> None:
    """Print the time to read a vocabulary of a million words, in a new process and again."""
    generator, words = random.Random(1), {}
    while len(words) < VOCABULARY_SIZE - 3:
        words["".join(generator.choices("abcdefghijklmnopqrstuvwxyzäöüß", k=generator.randint(3, 13)))] = len(words)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "vocab.tsv")
        lines = [f"{special}\t0\n" for special in ("<s>", "</s>", "<unk>")]
        path.write_text("".join([*lines, *(f"{word}\t{count}\n" for word, count in words.items())]), encoding="utf-8")
        sources: dict[str, str | None] = {OURS: None} if before is None else {BEFORE: before, OURS: None}
        seconds: dict[str, list[list[float]]] = {system: [] for system in sources}
        for _ in range(rounds):
            for system, source in sources.items():
                command = [sys.executable, __file__, "--vocabulary", str(path)]
                output = subprocess.run(
                    command, check=True, capture_output=True, text=True, env=environment(source)
                ).stdout
                seconds[system].append(json.loads(output))
    rows = [
        [system, *(f"{median(column):.3f}" for column in zip(*values, strict=True))]
        for system, values in seconds.items()
    ]
    print(format_table([f"{VOCABULARY_SIZE:,} words", "first time in a process, s", "again, s"], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory with ptb/ and wikitext2/")
    parser.add_argument("--text", type=Path, nargs=2, metavar=("TRAIN", "TEST"), help="another text, and nothing else")
    parser.add_argument("--before", help="the directory `src` of another version")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=["ptb", "wikitext2", "vocabulary"], help="one measurement")
    parser.add_argument("--serve", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--vocabulary", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        system, warm_up, path, *texts = arguments.serve
        serve(system, warm_up, path, texts)
    elif arguments.vocabulary:
        time_vocabulary(arguments.vocabulary)
    elif arguments.text:
        measure_text(arguments.text[0].name, *arguments.text, arguments.before, arguments.rounds)
    else:
        for name, directory in (("PTB", "ptb"), ("WikiText-2", "wikitext2")):
            if arguments.data and arguments.only in (None, directory):
                data = arguments.data / directory
                measure_text(name, data / "train.txt", data / "test.txt", arguments.before, arguments.rounds)
        if arguments.only in (None, "vocabulary"):
            measure_vocabulary(arguments.before, arguments.rounds)


if __name__ == "__main__":
    main()
