"""Model directories of all kinds, damaged at random, and loaded.

    python -m torture.model_directories [--count N] [--minutes M] [--seed S]

Each directory must be refused in one line, or be sound: its distributions are finite and sum to one. Never a signal, a
traceback, a hang, or more than 2 GB. Directories are loaded in processes of their own, with all array accesses of
compiled kernels checked.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import yaml

from model_files import remove_digests
from torture.commands import TimeLimit

MEMORY = 2 << 30
BATCH = 100  # directories per process
KINDS = (
    "modified-kneser-ney, order 2",
    "quantised",
    "stupid-backoff, order 2",
    "unknown words spelled out",
    "classes",
    "cache",
    "subwords",
    "subwords, unigram model",
    "mixture by everything",
    "mixture of mixtures",
    "log-linear, every sort of feature",
    "log-linear, hashed",
    "feed-forward, deep, tied, direct",
    "feed-forward, softmax by classes",
    "recurrent, GRU, deep",
    "recurrent, LSTM",
)
TRANSLATORS = ("bidirectional, perceptron, lexicon", "bidirectional, perceptron, all priors", "tree-LSTM, perceptron")
ALIGNER, TWO_WAY = "aligner", "two-way"
NUMBERS = (0, 1, -1, 7, 10**6, 2**31 - 1, -(2**31), 2**62, 0.5, -0.5, 1e-300, 1e30, 1e300, float("nan"), float("inf"))
VALUES = (*NUMBERS, None, True, "", "word", "subword:8", [], [1, 2], {}, {"kind": "none"}, "x" * 10_000)


# -- damage ------------------------------------------------------------------------------------------------------------


def files_of(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file() and path.name != "README.md")


def change_bytes(directory: Path, generator: random.Random) -> str:
    file = generator.choice(files_of(directory))
    content = bytearray(file.read_bytes())
    for _ in range(generator.choice((1, 1, 2, 16))):
        if content:
            content[generator.randrange(len(content))] = generator.randrange(256)
    file.write_bytes(content)
    return f"bytes of {file.name}"


def cut_file(directory: Path, generator: random.Random) -> str:
    file = generator.choice(files_of(directory))
    content = file.read_bytes()
    file.write_bytes(content[: generator.randrange(len(content) + 1)])
    return f"{file.name} cut"


def remove_or_empty(directory: Path, generator: random.Random) -> str:
    file = generator.choice(files_of(directory))
    if generator.random() < 0.5:
        file.unlink()
    else:
        file.write_bytes(b"")
    return f"{file.name} removed or empty"


def take_from_another(directory: Path, generator: random.Random) -> str:
    file = generator.choice(files_of(directory))
    others = [path for path in directory.parent.parent.glob(f"models/*/**/{file.name}") if path.is_file()]
    shutil.copy(generator.choice(others), file)
    return f"{file.name} of another model"


def change_setting(directory: Path, generator: random.Random) -> str:
    file = generator.choice([path for path in files_of(directory) if path.name == "config.yaml"])
    config = yaml.safe_load(file.read_text(encoding="utf-8"))
    place: Any = config
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = generator.choice(keys)
        if not isinstance(place[key], dict | list) or not place[key] or generator.random() < 0.2:
            break
        place = place[key]
    if generator.random() < 0.15:
        del place[key]
    else:
        place[key] = generator.choice(VALUES)
    file.write_text(yaml.safe_dump(config, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return f"setting {key}"


def change_array(directory: Path, generator: random.Random) -> str:
    from dragoman.io.storage import map_arrays, write_arrays

    file = generator.choice([path for path in files_of(directory) if path.suffix == ".safetensors"])
    arrays = dict(map_arrays(file))
    name = generator.choice(sorted(arrays))
    array = arrays[name].copy()
    match generator.choice(("value", "value", "value", "values", "type", "shape", "missing")):
        case "value" | "values" if array.size:
            count = generator.choice((1, 1, array.size))
            value = generator.choice(NUMBERS)
            with np.errstate(all="ignore"):
                number = np.array(value).astype(array.dtype)
            for _ in range(count):
                array.flat[generator.randrange(array.size)] = number
            arrays[name] = array
        case "type":
            with np.errstate(all="ignore"):
                arrays[name] = array.astype(generator.choice(("<f8", "<f4", "<i8", "<i4", "|u1")))
        case "shape":
            arrays[name] = generator.choice((array[None], array.reshape(-1), array[:-1] if array.ndim else array[None]))
        case _:
            del arrays[name]
    write_arrays(file, arrays)
    return f"array {name}"


def add_links(directory: Path, generator: random.Random) -> str:
    inner = [path for path in directory.rglob("*") if path.is_dir()]
    if inner and generator.random() < 0.5:
        place = generator.choice(inner)
        shutil.rmtree(place)
    else:
        place = directory / generator.choice(("member-3", "spelling", "classes", ".model.tmp-0a1b2c3d"))
        if place.exists():
            shutil.rmtree(place)
    place.symlink_to(generator.choice((directory, place, directory.parent, Path("/dev"))))
    return f"link {place.name}"


def write_strange_yaml(directory: Path, generator: random.Random) -> str:
    bomb = "a: &a [x,x,x,x,x,x,x,x]\n" + "".join(
        f"{new}: &{new} [{','.join([f'*{old}'] * 8)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    texts = (
        bomb,
        "[" * 10_000,
        "{a: " * 10_000,
        "a: !!binary x",
        "? [a]\n: b",
        "- a",
        "<<: {kind: ngram}",
        "a: 1:99:9",
    )
    file = generator.choice([path for path in files_of(directory) if path.name == "config.yaml"])
    old = file.read_text(encoding="utf-8")
    file.write_text(generator.choice((generator.choice(texts), old + generator.choice(texts))), encoding="utf-8")
    return "strange YAML"


def put_pipe(directory: Path, generator: random.Random) -> str:
    file = generator.choice(files_of(directory))
    file.unlink()
    os.mkfifo(file)
    return f"{file.name} is a pipe"


Damage = Callable[[Path, random.Random], str]
DAMAGES: Sequence[Damage] = (
    *(
        change_bytes,
        change_bytes,
        cut_file,
        remove_or_empty,
        take_from_another,
        add_links,
        write_strange_yaml,
        put_pipe,
    ),
    *(change_setting, change_setting, change_setting, change_array, change_array, change_array, change_array),
)


def damage(directory: Path, generator: random.Random) -> str:
    """Damage a directory in one way or several, usually without the digests that would reveal it."""
    if without := generator.random() < 0.75:
        remove_digests(directory)
    done = []
    for _ in range(generator.choice((1, 1, 1, 2))):
        try:
            done.append(generator.choice(DAMAGES)(directory, generator))
        except Exception as error:  # the first damage may make a second one impossible
            done.append(f"({type(error).__name__})")
    return f"{', '.join(done)}{', without digests' if without else ''}"


# -- loading -----------------------------------------------------------------------------------------------------------


def outcome_of(directory: Path) -> str:
    """Load a directory, and return `refused`, `sound`, or what is wrong."""
    from dragoman.align.aligner import Aligner
    from dragoman.core.errors import DataError, DragomanError
    from dragoman.models.loading import load, read_model_kind
    from dragoman.models.verification import check_model

    try:
        kind = read_model_kind(directory)
        if kind == ALIGNER:
            Aligner.load(directory)
            return "sound"
        models = [load(directory / name) for name in ("forward", "backward")] if kind == TWO_WAY else [load(directory)]
    except DragomanError as error:
        return "refused" if "\n" not in str(error) else f"several lines: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    try:
        for model in models:
            check_model(model)
    except DataError as error:
        return f"not sound: {error}"
    except BaseException as error:
        return f"used, {type(error).__name__}: {error}"
    return "sound"


def load_all(directories: Sequence[str]) -> None:
    """Print the outcome of each directory as a line of JSON."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    import torch

    torch.set_num_threads(1)
    limit = TimeLimit()
    limit.start()
    for directory in directories:
        limit.restart()
        print(json.dumps([directory, outcome_of(Path(directory))]), flush=True)


def outcomes(directories: Sequence[Path], environment: dict[str, str]) -> dict[Path, str]:
    """Load directories in processes of their own and return their outcomes."""
    results: dict[Path, str] = {}
    while remaining := [path for path in directories if path not in results]:
        command = [sys.executable, "-m", "torture.model_directories", "--load", *map(str, remaining)]
        place = Path(__file__).parent.parent
        finished = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
        results |= {Path(path): outcome for path, outcome in map(json.loads, finished.stdout.splitlines())}
        if unfinished := [path for path in remaining if path not in results]:
            results[unfinished[0]] = f"ended with code {finished.returncode}: {finished.stderr[-500:]}"
    return results


# -- the campaign ------------------------------------------------------------------------------------------------------


def save_models(place: Path, kinds: Sequence[str], translators: Sequence[str], *, others: bool = True) -> None:
    """Save one model of each kind."""
    from dragoman.align.aligner import Aligner
    from dragoman.data.corpus import BidirectionalCorpus
    from dragoman.data.tokenizer import Tokenizer
    from dragoman.models.two_way import TwoWayTranslator
    from small_translators import ENGLISH, GERMAN
    from zoo import model, translator

    for name in kinds:
        model(name).save(place / name.replace(" ", "-"))
    for name in translators:
        translator(name).save(place / name.replace(" ", "-"))
    if others:
        source, target = Tokenizer.train("word", GERMAN), Tokenizer.train("subword:60", ENGLISH)
        pairs = BidirectionalCorpus(source.encode(GERMAN), target.encode(ENGLISH))
        Aligner.train(pairs, "hmm", 2).save(place / ALIGNER)
        both = TwoWayTranslator.create(pairs, source, target, symmetry=1.0, embedding=4, hidden=4)
        with_directory = place / TWO_WAY
        with_directory.mkdir()
        both.write_into(with_directory)


def run(place: Path, count: int, seed: int, *, check_bounds: bool, until: float = float("inf")) -> Counter[str]:
    """Damage copies of the models in `place/models`, load them, and count the outcomes. Print what is wrong."""
    sources = sorted(path for path in (place / "models").glob("[!.]*") if path.is_dir())
    environment, tallies = dict(os.environ), Counter[str]()
    if check_bounds:
        cache = Path(environment.get("NUMBA_CACHE_DIR", tempfile.gettempdir()), "dragoman-boundscheck")
        environment |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(cache)}
    for first in range(0, count, BATCH):
        if perf_counter() > until:
            break
        described: dict[Path, str] = {}
        for number in range(first, min(first + BATCH, count)):
            generator = random.Random(f"{seed} {number}")
            source = sources[number % len(sources)]
            copy = place / "damaged" / f"{number}"
            shutil.copytree(source, copy)
            described[copy] = f"{source.name}: {damage(copy, generator)}"
        for path, outcome in outcomes(list(described), environment).items():
            tallies[outcome if outcome in ("refused", "sound") else "wrong"] += 1
            if outcome not in ("refused", "sound"):
                print(f"{path.name} {described[path]}: {outcome}", flush=True)
            shutil.rmtree(path)
    return tallies


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000, help="damaged directories")
    parser.add_argument("--minutes", type=float, default=1e9, help="time for all of them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--load", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load is not None:
        load_all(options.load)
        return 0
    start = perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        save_models(Path(directory) / "models", KINDS, TRANSLATORS)
        until = start + 60 * options.minutes
        tallies = run(Path(directory), options.count, options.seed, check_bounds=True, until=until)
    print(f"{tallies.total()} damaged directories: {dict(tallies)}; {perf_counter() - start:.0f} seconds")
    return 1 if tallies["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
