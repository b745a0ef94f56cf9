"""The documentation refers to things that exist: files, modules, commands and options."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
NOT_OURS = {"nn.Linear", "nn.Module"}
MODULE = re.compile(
    r"`((?:core|data|io|nn|search|training|evaluation|align|lab|ngram|models|combine|doctor|experiments|report|spark|serve|cli)"
    r"\.[\w.]+)`"
)
FILE_SUFFIXES = (".yaml", ".html", ".safetensors", ".jsonl", ".md", ".json")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def page_id(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for link in LINK.findall(CODE.sub("", text)):
        link = link.strip("<>")
        if "://" in link or link.startswith("mailto:"):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page_id(page)}: {link} does not exist"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target.read_text(encoding="utf-8")), f"{page_id(page)}: {link} has no such heading"


def resolve(path: str) -> bool:
    """Whether `package.module.attribute...` exists below dragoman."""
    parts = path.split(".")
    for split in range(len(parts), 0, -1):
        try:
            target = importlib.import_module(".".join(["dragoman", *parts[:split]]))
        except ModuleNotFoundError:
            continue
        for name in parts[split:]:
            if not hasattr(target, name):
                return False
            target = getattr(target, name)
        return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_modules_and_functions_exist(page: Path) -> None:
    paths = [
        path
        for path in MODULE.findall(page.read_text(encoding="utf-8"))
        if not path.endswith(FILE_SUFFIXES) and path not in NOT_OURS
    ]
    missing = [path for path in paths if not resolve(path)]
    assert not missing, f"{page_id(page)}: {missing}"


def test_missing_names_are_noticed() -> None:
    assert resolve("core.scorer.fold")
    assert not resolve("core.scorer.no_such_function")
    assert not resolve("core.no_such_module.fold")


def test_reference_pages_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run `python docs/generate_reference.py` if this fails."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    monkeypatch.setenv("COLUMNS", "100")
    import generate_reference

    for name, text in generate_reference.pages().items():
        assert (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8") == text, name
