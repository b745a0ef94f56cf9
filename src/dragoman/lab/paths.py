"""Where laboratory text lies on disk, told without making the grammar."""

from __future__ import annotations

import warnings
from pathlib import Path

SETTINGS = "lab.yaml"  # beside the texts: the mark of a laboratory's directory, and how it was written
KIND = "dragoman laboratory"  # what the file says of itself under `kind`
VERSION = 1  # of the grammar: one more whenever rules, words or weights change, as the truth does then
LANGUAGES = ("de", "en")
RAW = ".raw"  # before the language: text as it would be printed, of which no probabilities are known


def language_of(path: str | Path) -> str | None:
    """The language of a laboratory's text, by its name and by what lies beside it; None for text from elsewhere."""
    stem, _, language = Path(path).name.removesuffix(".gz").rpartition(".")
    if language not in LANGUAGES or not _is_laboratory(Path(path).parent):
        return None
    if stem.endswith(RAW):
        words = f"{stem.removesuffix(RAW)}.{language}"
        warnings.warn(f"{path}: no floor is known of text as printed; take {words} instead", stacklevel=2)
        return None
    return language


def _is_laboratory(directory: Path) -> bool:
    import yaml

    try:
        settings = yaml.safe_load((directory / SETTINGS).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return False  # none there, or someone else's
    if not isinstance(settings, dict) or settings.get("kind") != KIND:
        return False
    if settings.get("grammar") != VERSION:
        warnings.warn(f"{directory}: written by another version of the laboratory, so no floor is known", stacklevel=2)
        return False
    return True
