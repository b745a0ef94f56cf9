"""The output directory of an experiment: who may write to it, and the settings that it was started with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dragoman.core.errors import DataError

SETTINGS_FILE = "settings.yaml"
MARK_FILE = "ABOUT-THESE-FILES.txt"  # by which a command recognises the directory of an earlier run


def claim_directory(output: Path, command: str, behaviour: str) -> None:
    """Create a directory, or accept one that is empty or from an earlier run of the same command.

    Args:
        behaviour: what the command does when it is run again, for the file that marks the directory.
    """
    from dragoman.io.storage import atomic_file

    remedy = "choose another directory with -o"
    about = f"Written by dragoman {command}, which {behaviour}. Do not keep your own files here.\n"
    if output.exists() and not output.is_dir():
        raise DataError(f"{output}: is a file, not a directory; {remedy}")
    if output.is_dir() and any(output.iterdir()) and _read_mark(output) != about:
        raise DataError(f"{output}: contains files that dragoman {command} did not write; {remedy}")
    with atomic_file(output / MARK_FILE) as path:
        path.write_text(about, encoding="utf-8")


def _read_mark(output: Path) -> str | None:
    mark = output / MARK_FILE
    return mark.read_text(encoding="utf-8", errors="replace") if mark.is_file() else None


def check_settings(output: Path, settings: Mapping[str, object]) -> None:
    """Save the settings of an experiment; raise an error if it was started with others.

    Models that were trained with different settings could not be compared.
    """
    import yaml

    from dragoman.core.settings import config_differences
    from dragoman.io.storage import atomic_file

    path = output / SETTINGS_FILE
    if path.exists() and (changes := config_differences(_read_settings(path), dict(settings))):
        remedy = "repeat the settings it was started with, or choose another directory with -o"
        raise DataError(f"{output}: contains another ladder ({'; '.join(changes)}); {remedy}")
    with atomic_file(path) as temporary:
        temporary.write_text(yaml.safe_dump(dict(settings), sort_keys=False), encoding="utf-8")


def _read_settings(path: Path) -> dict[str, object]:
    import yaml

    try:
        settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError, OSError, RecursionError):  # a ValueError: not UTF-8, or not a date
        settings = None
    if not isinstance(settings, dict):
        remedy = "delete the directory to start again, or choose another one with -o"
        raise DataError(f"{path}: damaged, so the settings of the ladder are not known; {remedy}")
    return settings
