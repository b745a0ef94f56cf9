"""The output directory of an experiment: which command it belongs to, and with which settings it was started."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dragoman.core.errors import DataError
from dragoman.core.settings import config_differences
from dragoman.core.yaml_files import read_yaml
from dragoman.io.digests import to_yaml
from dragoman.io.files import write_text

SETTINGS_FILE = "settings.yaml"
MARK_FILE = "ABOUT-THESE-FILES.txt"  # by which a command recognises the directory of an earlier run


def claim_directory(output: Path, command: str, behaviour: str) -> None:
    """Create a directory, or accept one that is empty or from an earlier run of the same command.

    Args:
        behaviour: what the command does when it is run again, for the file that marks the directory.
    """
    remedy = "choose another directory with -o"
    about = f"Written by dragoman {command}, which {behaviour}. Do not keep your own files here.\n"
    mark = output / MARK_FILE
    if output.exists() and not output.is_dir():
        raise DataError(f"{output}: is a file, not a directory; {remedy}")
    is_claimed = mark.is_file() and mark.read_text(encoding="utf-8", errors="replace") == about
    if output.is_dir() and any(output.iterdir()) and not is_claimed:
        raise DataError(f"{output}: contains files that dragoman {command} did not write; {remedy}")
    write_text(mark, about)


def check_settings(
    output: Path, settings: Mapping[str, object], notes: Mapping[str, object] | None = None, experiment: str = "ladder"
) -> None:
    """Save the settings of an experiment; raise an error if it was started with others.

    Models that were trained with different settings could not be compared. `notes` are saved as well, but may change.
    """
    notes = notes or {}
    path = output / SETTINGS_FILE
    if path.exists():
        try:
            saved = read_yaml(path)
        except DataError:
            saved = None
        if not isinstance(saved, dict):
            remedy = "delete the directory to start again, or choose another one with -o"
            raise DataError(f"{path}: damaged, so the settings of the {experiment} are not known; {remedy}")
        saved = {name: value for name, value in saved.items() if name not in notes}
        if changes := config_differences(saved, settings):
            remedy = "repeat the settings it was started with, or choose another directory with -o"
            raise DataError(f"{output}: contains another {experiment} ({'; '.join(changes)}); {remedy}")
    write_text(path, to_yaml({**settings, **notes}))
