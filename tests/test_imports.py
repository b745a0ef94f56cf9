"""The layers of the package: no module imports from a layer above it. Imports inside functions count as well."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import dragoman

PACKAGE = Path(dragoman.__file__).parent

# From the lowest layer to the highest. Packages of one layer may import each other.
LAYERS = [
    {"core"},
    {"data"},
    {"io", "search", "evaluation", "training", "nn", "align", "lab", "sharding"},
    {"ngram", "models", "combine", "doctor"},
    {"experiments", "report", "serve", "spark"},
    {"cli"},
]
LAYER_OF = {package: number for number, layer in enumerate(LAYERS) for package in layer}
MODULES = sorted(PACKAGE.rglob("*.py"))
TOP_LEVEL = {"__init__", "__main__"}  # the public names come from anywhere below the command line

# Ways to execute the content of a file. Models are read as plain settings and arrays.
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


def package_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def module_id(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def syntax_tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a module except those that only type checkers read."""
    nodes = [tree]
    while nodes:
        children = [node for node in ast.iter_child_nodes(nodes.pop()) if not is_type_checking(node)]
        yield from children
        nodes += children


def imported_modules(tree: ast.AST) -> Iterator[str]:
    """The full names of all modules that a file imports."""
    for node in runtime_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "use absolute imports"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_packages(path: Path) -> set[str]:
    """The packages of dragoman that a file imports from."""
    packages = set()
    for name in imported_modules(parse(path)):
        top, _, rest = name.partition(".")
        package = rest.partition(".")[0]
        if top == "dragoman":
            packages.add(package if (PACKAGE / package).is_dir() and package else "__init__")
    return packages


def called_functions(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield ast.unparse(node.func)


def test_no_module_imports_from_a_higher_layer() -> None:
    too_high = {module_id(path): sorted(imported_from_above(path)) for path in MODULES}
    assert not {module: packages for module, packages in too_high.items() if packages}


def imported_from_above(path: Path) -> set[str]:
    """The packages that a module must not import from, but does."""
    package, imported = package_of(path), imported_packages(path)
    if package in TOP_LEVEL:
        return imported & {"cli"} if path.name != "__main__.py" else set()
    assert package in LAYER_OF, f"{package}: add it to LAYERS"
    allowed = {"__init__"} if package == "cli" else set()
    return {name for name in imported if LAYER_OF.get(name, len(LAYERS)) > LAYER_OF[package]} - allowed


def test_spark_is_imported_in_its_package_only() -> None:
    """The other packages work without the extra."""
    for path in MODULES:
        packages = {name.partition(".")[0] for name in imported_modules(parse(path))}
        assert package_of(path) == "spark" or not packages & {"pyspark", "py4j", "pyarrow", "pandas"}, module_id(path)


def test_no_code_from_files_is_executed() -> None:
    for path in MODULES:
        tree = parse(path)
        banned = {name.partition(".")[0] for name in imported_modules(tree)} & BANNED_IMPORTS
        assert not banned | (set(called_functions(tree)) & BANNED_CALLS), module_id(path)


@pytest.mark.parametrize(
    ("source", "package"),
    [
        ("def f():\n    from dragoman.cli.main import app", "cli"),
        ("import dragoman.ngram.model as m", "ngram"),
        ("from dragoman import search", "search"),
        ("from dragoman import Corpus", "__init__"),
        ("if X:\n    import dragoman", "__init__"),
    ],
)
def test_every_form_of_import_is_detected(tmp_path: Path, source: str, package: str) -> None:
    (tmp_path / "module.py").write_text(source)
    assert package in imported_packages(tmp_path / "module.py")


def test_imports_for_type_checking_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("if TYPE_CHECKING:\n    from dragoman.cli import main\n")
    assert not imported_packages(tmp_path / "module.py")


def test_every_form_of_call_is_detected() -> None:
    tree = ast.parse("import pickle as p\nx = [yaml.load(f) for f in y]\ndef g(): return eval('1')")
    assert set(called_functions(tree)) & BANNED_CALLS == {"yaml.load", "eval"}
    assert set(imported_modules(tree)) & BANNED_IMPORTS == {"pickle"}


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


def test_counting_models_do_not_import_torch(tmp_path: Path) -> None:
    """Importing torch takes longer than training on a small text, so it waits until a distribution is needed."""
    run = subprocess.run(
        [sys.executable, "-c", COUNTING, str(tmp_path / "model")], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["False", "True"]
