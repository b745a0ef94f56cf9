"""Golden tests of the command line: options, JSON keys, files and exit codes that a refactoring must keep.

The expected contract is in `tests/golden/cli.json`. New commands, options, keys and files are allowed; those on record
must stay. After a deliberate change, regenerate the file and review the difference:

    PYTHONPATH=src python tests/test_golden_cli.py --write
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import contextlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest

from dragoman.cli import main as command_line
from dragoman.cli.app import root_command

GOLDEN = Path(__file__).parent / "golden" / "cli.json"


# -- options -----------------------------------------------------------------------------------------------------------


def resolve(command: Any, name: str, parent: Any = None) -> Any:
    """Return a context whose command has all its options: some commands create them when first used."""
    return command.make_context(name, [], parent=parent, resilient_parsing=True)


def walk(context: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path of each command and the command itself."""
    command = context.command
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from walk(resolve(child, name, context), f"{path} {name}".strip())


def as_json(value: Any) -> Any:
    """Return a default value as JSON has it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    return str(value)


def stated_default(parameter: Any) -> str | None:
    """Return the default that the help text ends with, where the option itself has none."""
    match = re.search(r"Default: (\S+?)\.$", (getattr(parameter, "help", None) or "").strip())
    return match.group(1) if match else None


def effective_default(parameter: Any) -> Any:
    default = as_json(parameter.default() if callable(parameter.default) else parameter.default)
    if default is None or repr(parameter.default).startswith("Sentinel"):
        return stated_default(parameter)
    return default


def comparable(value: Any) -> str:
    """Return a default as text; `none` in a help text and no default at all are the same."""
    return str(value).lower() if value is None else str(value)


def accepted_values(parameter: Any) -> list[str]:
    """Return the choices of an option that is declared with click.Choice, Literal or Enum."""
    annotation = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    if get_origin(annotation) is Literal:
        return [str(choice) for choice in get_args(annotation)]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [str(choice.value) for choice in annotation]
    return [str(choice) for choice in getattr(getattr(parameter, "type", None), "choices", None) or []]


def describe_parameter(parameter: Any) -> dict[str, Any]:
    metavar = parameter.metavar or ""
    choices = accepted_values(parameter)
    if not choices and "|" in metavar:
        choices = metavar.strip("[]").split("|")
    return {
        "options": [*parameter.opts, *parameter.secondary_opts],
        "kind": parameter.param_type_name,
        "default": effective_default(parameter),
        "flag": bool(getattr(parameter, "is_flag", False)),
        "required": bool(parameter.required),
        "multiple": bool(getattr(parameter, "multiple", False)) or parameter.nargs == -1,
        "choices": choices,
        "metavar": metavar,
    }


@cache
def commands() -> dict[str, list[dict[str, Any]]]:
    return {
        path: [describe_parameter(parameter) for parameter in command.params]
        for path, command in walk(resolve(root_command(), "dragoman"))
    }


# -- running commands --------------------------------------------------------------------------------------------------


def run(*arguments: str, stdin: str | bytes = "") -> tuple[int, str, str]:
    """Run a command in this process. Return its exit code, standard output and standard error."""
    raw = stdin if isinstance(stdin, bytes) else stdin.encode()
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(raw)))
    try:
        with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
            code = command_line.main(list(arguments))
    finally:
        sys.stdin = before
    for stream in streams:
        stream.flush()
    out, err = (stream.buffer.getvalue().decode() for stream in streams)
    return code, out, err


def succeed(line: str, stdin: str = "", expected_code: int = 0) -> str:
    """Run a command that must succeed, given as one line. `_` in an argument stands for a space."""
    code, out, err = run(*(word.replace("_", " ") for word in line.split()), stdin=stdin)
    assert code == expected_code, f"dragoman {line}: {err}"
    return out


NOUNS = {"hund": "dog", "mann": "man", "vogel": "bird", "fisch": "fish"}
VERBS = {"schläft": "sleeps", "bellt": "barks", "singt": "sings", "rennt": "runs"}
GERMAN = [f"der {noun} {verb} ." for noun in NOUNS for verb in VERBS]
ENGLISH = [f"the {NOUNS[noun]} {VERBS[verb]} ." for noun in NOUNS for verb in VERBS]
TREES = [f"(S (NP {a} {b}) (VP {c} {d}))" for a, b, c, d in map(str.split, GERMAN)]
SIZES = "--embedding 6 --hidden 8 --dropout 0.1"
TRAINING = "--max-updates 4 --batch-size 30 --report-every 1 --threads 1 --seed 1"
LANGUAGE = "--text train.en --dev-text dev.en"
PAIRS = "--src train.de --tgt train.en --dev-src dev.de --dev-tgt dev.en"
NEURAL = f"{TRAINING} {SIZES}"

# Directories and the commands that write them, in order.
MODELS = {
    "lab": "lab -o lab --pairs 20 --dev 1 --test 1",
    "lab-model": "train ngram --text lab/train.en -o lab-model --order 2 --smoothing witten-bell",
    "ngram": "train ngram --text train.en -o ngram --order 3 --smoothing witten-bell",
    "spelled": "train ngram --text train.en -o spelled --order 2 --smoothing katz --unknown characters",
    "bigram": "train ngram --text train.en -o bigram --order 2 --smoothing witten-bell --vocab ngram",
    "classes": "train class-ngram --text train.en --classes brown:3 -o classes --order 2 --smoothing witten-bell",
    "cache": "train cache --text train.en --vocab ngram -o cache",
    "mixture": "mix ngram cache --dev-text dev.en -o mixture",
    "log-linear": f"train log-linear {LANGUAGE} -o log-linear {TRAINING} --features 3-gram",
    "feed-forward": f"train feed-forward {LANGUAGE} -o feed-forward {NEURAL} --order 3",
    "recurrent": f"train recurrent {LANGUAGE} -o recurrent {NEURAL}",
    "translator": f"train translator {PAIRS} -o translator {NEURAL} --units word",
    "translator-lexicon": f"train translator {PAIRS} -o translator-lexicon {NEURAL} --units word --lexicon",
    "translator-subwords": f"train translator {PAIRS} -o translator-subwords {NEURAL} --units subword:30",
    "translator-tree": "train translator --src train.tree --tgt train.en -o translator-tree --src-format tree "
    f"--encoder tree-lstm {NEURAL}",
    "two-way": f"train translator {PAIRS} -o two-way {NEURAL} --units word --symmetry 0.5",
    "aligner": "align --src train.de --tgt train.en -o aligner",
    "imported": "import ngram.arpa -o imported",
    "fixed": "doctor --text train.en --fix -o fixed",
}

# Commands that print JSON: a value, or one per line.
JSON_COMMANDS = {
    "evaluate": "evaluate ngram --text dev.en --json",
    "evaluate several": "evaluate ngram bigram --text dev.en --json",
    "evaluate laboratory": "evaluate lab-model --text lab/test.en --json",
    "evaluate recurrent, dynamic": "evaluate recurrent --text dev.en --dynamic 0.1 --json",
    "evaluate translator": "evaluate translator --src dev.de --ref dev.en --json --by-length",
    "evaluate translators": "evaluate translator translator-lexicon --src dev.de --ref dev.en --json",
    "translate": "translate translator --text dev.de --json",
    "translate n-best": "translate translator --text dev.de --json --n-best 2",
    "translate sample": "translate translator --text dev.de --json --sample 2",
    "translate tree": "translate translator-tree --text dev.tree --json",
    "translate unknowns": "translate translator --text dev.de --json --replace-unknowns --explain-unknowns",
    "compare": "compare --ref train.en --sys system.en --sys other.en --src train.de --json --resamples 20",
    "contrast": "contrast lab-model --count 2 --json",
    "doctor text": "doctor --text faulty.en --dev-text dev.en --json",
    "doctor pairs": "doctor --src train.de --tgt train.en --dev-src dev.de --dev-tgt dev.en --json",
    "align": "align --src train.de --tgt train.en --gold gold.align --json",
    "explain": "explain log-linear the_dog --json",
}

# Commands that print rows of text for other programs. Their exact output is on record.
TEXT_COMMANDS = {
    "score": "score ngram --text dev.en",
    "score words": "score ngram --text dev.en --words",
    "score log10": "score ngram --text dev.en --log10",
    "score several": "score ngram bigram --text dev.en",
    "score several, words": "score ngram bigram --text dev.en --words",
    "next": "next ngram the_dog -k 4",
    "sample": "sample ngram -n 3 --seed 5",
    "sample narrowed": "sample ngram -n 3 --seed 5 --temperature 0.7 --top-k 3 --top-p 0.9 --prefix the",
    "align": "align --src train.de --tgt train.en --model ibm1",
    "align with": "align --src dev.de --tgt dev.en --with aligner",
    "units": "units translator-subwords --text dev.en",
    "export arpa": "export bigram --arpa -",
}
# Commands whose output has numbers of float32 networks: only its shape is on record.
SHAPE_COMMANDS = {
    "translate": "translate translator --text dev.de",
    "translate n-best": "translate translator --text dev.de --n-best 2",
    "score translator": "score translator --src dev.de --text dev.en",
    "score translator, words": "score translator --src dev.de --text dev.en --words",
    "inspect cells": "inspect cells recurrent --text dev.en --cells 0,2",
    "inspect saliency": "inspect saliency recurrent the_dog_sleeps --all",
    "inspect gradients": "inspect gradients recurrent --text dev.en --words 2",
    "export word vectors": "export feed-forward --word-vectors -",
    "attention": "attention translator der_hund_bellt_.",
}

BAD_COMMANDS = {
    "no such command": "trian ngram",
    "no such option": "evaluate ngram --text dev.en --jsno",
    "missing option": "train ngram --text train.en",
    "missing text": "evaluate ngram --text nowhere.en",
    "missing model": "evaluate nowhere --text dev.en",
    "not UTF-8": "train ngram --text latin1.en -o new",
    "empty text": "train ngram --text empty.en -o new",
    "output exists": "train ngram --text train.en -o ngram",
    "output exists, aligner": "align --src train.de --tgt train.en -o aligner",
    "value out of range": "sample ngram -n 0",
    "value of wrong type": "train feed-forward --text train.en -o new --hidden many",
    "no such choice": "train recurrent --text train.en -o new --cell abacus",
    "text for a translator": "evaluate translator --text dev.en",
    "diverged": f"train recurrent --text train.en -o diverged {TRAINING} --optimizer sgd --learning-rate 1e30",
    "doctor strict": "doctor --text latin1.en --strict",
    "doctor errors": "doctor --text latin1.en",
    "help": "train translator --help",
    "version": "--version",
    "nothing": "",
}


def write_texts(place: Path) -> None:
    texts = {
        "train.de": GERMAN,
        "train.en": ENGLISH,
        "train.tree": TREES,
        "dev.de": [GERMAN[1], GERMAN[6], "der wolf singt ."],
        "dev.en": [ENGLISH[1], ENGLISH[6], "the wolf sings ."],
        "dev.tree": [TREES[1], TREES[6]],
        "system.en": [*ENGLISH[:12], *ENGLISH[:4]],
        "other.en": [*ENGLISH[:8], *ENGLISH[4:12]],
        "gold.align": ["0-0 1-1 2-2 3?3"] * len(GERMAN),
        "faulty.en": [*ENGLISH, "the  dog", "", "word " * 300, "x" * 100, "\ufeffthe dog", ENGLISH[1]],
    }
    for name, lines in texts.items():
        (place / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (place / "latin1.en").write_bytes("das mädchen schläft\n".encode("latin-1"))
    (place / "empty.en").write_text("")


def build(place: Path) -> None:
    """Write the texts and models that the commands use, relative to the current directory."""
    write_texts(place)
    for name, line in MODELS.items():
        if name == "imported":
            succeed("export ngram --arpa ngram.arpa")
        succeed(line)
    succeed("cluster --text train.en -n 3 -o classes.tsv")


# -- measurements ------------------------------------------------------------------------------------------------------


def key_paths(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and the type of each nested value, such as `systems[].bleu` and `number`."""
    if isinstance(value, dict):
        yield path, "object"
        for key, item in value.items():
            yield from key_paths(item, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        yield path, "array"
        for item in value:
            yield from key_paths(item, f"{path}[]")
    elif isinstance(value, bool):
        yield path, "boolean"
    elif value is None:
        yield path, "null"
    else:
        yield path, "string" if isinstance(value, str) else "number"


def structure(values: list[Any]) -> dict[str, list[str]]:
    """Return the types that each key path has in these values."""
    result: dict[str, set[str]] = {}
    for value in values:
        for path, kind in key_paths(value):
            result.setdefault(path, set()).add(kind)
    return {path: sorted(kinds) for path, kinds in sorted(result.items())}


def json_structure(name: str) -> dict[str, list[str]]:
    code = 1 if name == "doctor pairs" else 0  # most pairs of the dev text are in train, which is an error
    return structure([json.loads(line) for line in succeed(JSON_COMMANDS[name], expected_code=code).splitlines()])


def lattice_structure() -> dict[str, list[str]]:
    succeed("translate translator --text dev.de --lattice lattice.jsonl")
    return structure([json.loads(line) for line in Path("lattice.jsonl").read_text(encoding="utf-8").splitlines()])


NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?%?")


def shape(name: str) -> list[str]:
    """Return for each line of the output the kinds of its fields; a field of text counts as one word."""
    rows = []
    for line in succeed(SHAPE_COMMANDS[name]).splitlines():
        parts = re.split(r"\t| \|\|\| ", line) if "\t" in line or " ||| " in line else line.split(" ")
        kinds = ["number" if NUMBER.fullmatch(part.strip()) else "text" for part in parts]
        rows.append(" ".join(kinds) if "number" in kinds or "\t" in line else "text")
    if name == "attention":  # a drawing for people: only that the command succeeds
        return ["text"]
    return rows


def file_names(name: str) -> list[str]:
    """Return the paths of all files in a directory, relative to it."""
    place = Path(name)
    return sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())


def metrics_keys(name: str) -> dict[str, list[str]]:
    paths = sorted(Path(name).rglob("metrics.jsonl"))
    return structure([json.loads(line) for path in paths for line in path.read_text().splitlines()])


def exit_code(name: str) -> int:
    return run(*BAD_COMMANDS[name].split())[0]


TRAINED = ["log-linear", "feed-forward", "recurrent", "translator", "two-way"]


def contract() -> dict[str, Any]:
    """Return the whole contract, with the models in the current directory."""
    return {
        "commands": commands(),
        "json": {name: json_structure(name) for name in JSON_COMMANDS},
        "lattice": lattice_structure(),
        "text": {name: succeed(line).splitlines() for name, line in TEXT_COMMANDS.items()},
        "shapes": {name: shape(name) for name in SHAPE_COMMANDS},
        "files": {name: file_names(name) for name in MODELS},
        "metrics": {name: metrics_keys(name) for name in TRAINED},
        "exit_codes": {name: exit_code(name) for name in BAD_COMMANDS},
    }


# -- tests -------------------------------------------------------------------------------------------------------------


@cache
def golden() -> dict[str, Any]:
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with texts and models, which is the current one during the tests of this module."""
    place = tmp_path_factory.mktemp("golden")
    with contextlib.chdir(place):
        build(place)
        yield place


def lost_keys(expected: dict[str, list[str]], actual: dict[str, list[str]]) -> list[str]:
    """Return the key paths that are missing, or whose values are of other types. Null may become a value."""
    lost = [path for path in expected if path not in actual]
    for path in expected.keys() & actual.keys():
        if not set(expected[path]) - {"null"} <= set(actual[path]):
            lost.append(f"{path}: {expected[path]} became {actual[path]}")
    return lost


@pytest.mark.parametrize("path", golden()["commands"] if GOLDEN.exists() else [])
def test_options_are_unchanged(path: str) -> None:
    assert path in commands(), f"the command {path!r} is gone"
    expected, current = golden()["commands"][path], commands()[path]
    options = {
        option: parameter for parameter in current if parameter["kind"] == "option" for option in parameter["options"]
    }
    problems = []
    for parameter in expected:
        if parameter["kind"] != "option":
            continue
        for option in parameter["options"]:
            if option not in options:
                problems.append(f"{option} is gone")
                continue
            for key in ("default", "flag", "required", "multiple"):
                if comparable(parameter[key]) != comparable(options[option][key]):
                    problems.append(f"{option}: {key} was {parameter[key]!r}, is {options[option][key]!r}")
            if missing := set(parameter["choices"]) - set(options[option]["choices"]):
                problems.append(f"{option}: no longer takes {sorted(missing)}")
    assert not problems


@pytest.mark.parametrize("path", golden()["commands"] if GOLDEN.exists() else [])
def test_arguments_are_unchanged(path: str) -> None:
    def arguments(parameters: list[dict[str, Any]]) -> list[tuple[bool, bool, Any]]:
        return [
            (parameter["required"], parameter["multiple"], parameter["default"])
            for parameter in parameters
            if parameter["kind"] == "argument"
        ]

    assert arguments(golden()["commands"][path]) == arguments(commands()[path])


@pytest.mark.parametrize("name", JSON_COMMANDS)
def test_json_keys_are_unchanged(name: str, models: Path) -> None:
    assert not lost_keys(golden()["json"][name], json_structure(name))


def test_lattice_keys_are_unchanged(models: Path) -> None:
    assert not lost_keys(golden()["lattice"], lattice_structure())


@pytest.mark.parametrize("name", TEXT_COMMANDS)
def test_text_output_is_unchanged(name: str, models: Path) -> None:
    assert succeed(TEXT_COMMANDS[name]).splitlines() == golden()["text"][name]


@pytest.mark.parametrize("name", SHAPE_COMMANDS)
def test_shape_of_output_is_unchanged(name: str, models: Path) -> None:
    assert shape(name) == golden()["shapes"][name]


@pytest.mark.parametrize("name", MODELS)
def test_files_are_unchanged(name: str, models: Path) -> None:
    assert not set(golden()["files"][name]) - set(file_names(name))


@pytest.mark.parametrize("name", TRAINED)
def test_metrics_keys_are_unchanged(name: str, models: Path) -> None:
    assert not lost_keys(golden()["metrics"][name], metrics_keys(name))


@pytest.mark.parametrize("name", BAD_COMMANDS)
def test_exit_codes_are_unchanged(name: str, models: Path) -> None:
    assert exit_code(name) == golden()["exit_codes"][name]


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python tests/test_golden_cli.py --write")
    with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):
        build(Path(directory))
        written = json.dumps(contract(), ensure_ascii=False, indent=1)
    GOLDEN.write_text(written + "\n", encoding="utf-8")
