"""The examples in docstrings print what they show."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import dragoman

PACKAGE = Path(dragoman.__file__).parent
PROMPT = ">>> "


def modules_with_examples() -> list[str]:
    """Return the names of all modules with examples, without importing any."""
    paths = [path for path in PACKAGE.rglob("*.py") if PROMPT in path.read_text(encoding="utf-8")]
    return sorted(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in paths)


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_of_a_module(name: str) -> None:
    results = doctest.testmod(import_module(name.removesuffix(".__init__")), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.attempted, "this module has examples that are not in a docstring"
    assert not results.failed, "the output above shows the differences"
