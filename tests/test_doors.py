"""Which way the doors open: no room knows of those above it. Read from the source, imports inside functions too."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dragoman

PACKAGE = Path(dragoman.__file__).parent

# Each room, and the rooms it may know besides itself. A room is a module or a folder of the package.
GROUND = {"errors", "kernels", "memory"}
MODEL = {*GROUND, "threads", "storage", "text", "scorer", "card", "model", "language_model"}
MAY_KNOW = {
    "errors": set[str](),
    "kernels": set[str](),
    "memory": set[str](),
    "threads": set[str](),
    "storage": GROUND,
    "text": {*GROUND, "threads"},
    "lab": {*GROUND, "threads", "storage", "text"},
    "scorer": {*GROUND, "text"},
    "search": {*GROUND, "text", "scorer"},
    "combination": {"errors", "text", "scorer"},
    "evaluation": {*GROUND, "text", "scorer", "trainable"},
    "card": {"storage"},
    "model": {"text", "scorer", "storage", "card"},
    "language_model": {*GROUND, "text", "scorer", "model", "search"},
    "conditioned": {"errors", "text", "scorer", "model", "language_model"},
    "unknowns": {"text", "align"},
    "translating": {"errors", "text", "scorer", "language_model", "search", "conditioned", "unknowns"},
    "ensembles": {"errors", "combination", "translating"},
    "shortlist": {"errors", "text", "scorer", "align", "translating"},
    "align": {*GROUND, "threads", "storage", "text", "card"},
    "trainable": {*GROUND, "text"},
    "settings": {*GROUND, "text"},
    "layers": {*GROUND, "text"},
    "ngram": MODEL,
    "buckets": {*MODEL, "ngram", "models"},  # contexts by what an n-gram model or a cache knows of them
    "mixture": {*MODEL, "buckets"},
    "models": {
        *MODEL,
        "ngram",
        "layers",
        "align",
        "settings",
        "translating",
        "search",
    },  # of search, lengths alone: see below
    "training": {*GROUND, "threads", "storage", "text", "settings", "trainable"},  # no model by name
    "loading": {*MODEL, "ngram", "translating"},
    "doctor": {*MODEL, "ngram"},
    "serve": {
        *{"errors", "storage", "text", "align", "search", "evaluation", "loading"},
        *{"translating", "unknowns", "ensembles"},
    },
    "ladder": {  # makes and measures every kind of model, as the command line does for one
        *{*MODEL, "ngram", "mixture", "models", "align", "settings", "training", "loading", "evaluation", "report"},
        *{"lab", "search", "translating", "unknowns", "ensembles"},
    },
    "report": {*MODEL, "evaluation", "lab"},  # the floor: evaluation's numbers of the laboratory's truth
}
FACE = {"__init__", "__main__"}  # the package's own names come from anywhere below the command line
MODULES = sorted(PACKAGE.rglob("*.py"))

# Ways to run what a file says. Models are read as plain settings and arrays.
BANNED_IMPORTS = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
BANNED_CALLS = {
    "eval",
    "exec",
    "torch.load",
    "yaml.load",
    "yaml.unsafe_load",
    "yaml.full_load",
    "np.load",
    "numpy.load",
}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


BELOW_THE_COMMAND_LINE = [path for path in MODULES if room_of(path) != "cli"]


def shown(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def imports(tree: ast.AST) -> Iterator[str]:
    """All modules that a file imports, by their full names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide where a door leads"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def rooms_known(path: Path) -> set[str]:
    found = set()
    for name in imports(ast.parse(path.read_text(encoding="utf-8"))):
        top, _, rest = name.partition(".")
        if top == "dragoman" and rest:
            room = rest.partition(".")[0]
            is_room = (PACKAGE / room).is_dir() or (PACKAGE / f"{room}.py").is_file()
            found.add(room if is_room else "__init__")
        elif name == "dragoman":
            found.add("__init__")
    return found


def calls(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


@pytest.mark.parametrize("path", BELOW_THE_COMMAND_LINE, ids=shown)
def test_a_room_knows_only_those_below(path: Path) -> None:
    room, known = room_of(path), rooms_known(path)
    assert "cli" not in known, "nothing knows the command line"
    if room not in FACE:
        assert room in MAY_KNOW, f"{room}: say here which rooms it may know"
        assert known <= {*MAY_KNOW[room], room}, f"{room} must not know {sorted(known - MAY_KNOW[room] - {room})}"


def test_the_doors_make_no_circle() -> None:
    """`language_model` draws samples by `search`, which knows scorers alone: so there is an order of the rooms."""
    order: list[str] = []
    left = dict(MAY_KNOW)
    while left:
        free = [room for room, below in left.items() if below - {room} <= set(order)]
        assert free, f"these know each other in a circle: {sorted(left)}"
        order += free
        left = {room: below for room, below in left.items() if room not in free}
    rooms = ["text", "scorer", "search", "language_model", "translating", "models"]
    assert rooms == sorted(rooms, key=order.index)
    assert order.index("language_model") < order.index("ngram")


@pytest.mark.parametrize("path", [path for path in MODULES if room_of(path) == "models"], ids=shown)
def test_models_do_not_know_how_anything_is_searched_for(path: Path) -> None:
    """A translator keeps the lengths of its training text for whoever searches, and that is all."""
    known = {
        name for name in imports(ast.parse(path.read_text(encoding="utf-8"))) if name.startswith("dragoman.search")
    }
    assert known <= {"dragoman.search.length", "dragoman.search.length.LengthPrior"}


@pytest.mark.parametrize("path", MODULES, ids=shown)
def test_nothing_runs_what_a_file_says(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not {name.partition(".")[0] for name in imports(tree)} & BANNED_IMPORTS
    assert not set(calls(tree)) & BANNED_CALLS


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("def f():\n    from dragoman.cli.main import app", "cli"),
        ("import dragoman.ngram.model as m", "ngram"),
        ("from dragoman import search", "search"),
        ("from dragoman import Corpus", "__init__"),
        ("if X:\n    import dragoman", "__init__"),
    ],
)
def test_the_reader_of_imports_sees_them_all(tmp_path: Path, source: str, wrong: str) -> None:
    (tmp_path / "room.py").write_text(source)
    assert wrong in rooms_known(tmp_path / "room.py")


def test_the_reader_of_calls_sees_them_all() -> None:
    tree = ast.parse("import pickle as p\nx = [yaml.load(f) for f in y]\ndef g(): return eval('1')")
    assert set(calls(tree)) & BANNED_CALLS == {"yaml.load", "eval"}
    assert set(imports(tree)) & BANNED_IMPORTS == {"pickle"}


COUNTING = """
import sys, warnings
warnings.simplefilter("ignore")
import dragoman
from dragoman.models.cache import CacheModel
corpus = dragoman.Corpus.from_sentences(["the cat sat", "the dog sat", "a cat ran"])
model = dragoman.NgramModel.train(corpus, order=2)
model.save(sys.argv[1])
both = dragoman.Mixture.fit([dragoman.load(sys.argv[1]), CacheModel.train(corpus)], corpus)
assert len(both.score(["the cat ran", "a dog"])) == 2
print("torch" in sys.modules)
model.next_words("the")
print("torch" in sys.modules)
"""


def test_counting_models_do_without_torch(tmp_path: Path) -> None:
    """Importing torch takes longer than training on a small text; it waits until a distribution is asked for."""
    run = subprocess.run(
        [sys.executable, "-c", COUNTING, str(tmp_path / "model")], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["False", "True"]
