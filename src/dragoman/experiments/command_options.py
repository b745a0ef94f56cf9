"""The options of a `dragoman` command as values in a YAML file: their names, the files they name, and their values.

The command line declares the options; see `dragoman.cli.command_lookup`. Whatever is wrong is reported with its line in
the YAML file before any training starts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dragoman.core.errors import DataError, did_you_mean
from dragoman.core.settings import GivenValue, format_value
from dragoman.io.digests import file_digest
from dragoman.io.storage import model_digest

FILE, DIRECTORY = "FILE", "DIR"  # what the help of options calls their values
CLASSES_TO_FIND = "brown:"  # the beginning of a value of --classes that is not a file
DIGEST_LENGTH = 16  # of the digest of a file or directory in records
FLAG = re.compile(r"--[\w-]+")

GivenOptions = Mapping[str, GivenValue]  # by names without dashes in front


@dataclass(frozen=True)
class CommandOption:
    """An option of a command."""

    flag: str  # such as --hidden
    off_flag: str | None = None  # of a switch that can be turned off, such as --no-tied
    is_switch: bool = False  # without a value
    is_repeatable: bool = False
    value_name: str = ""  # in the help, such as FILE


@dataclass(frozen=True)
class CommandLine:
    """A command with its options.

    >>> train = CommandLine("train ngram", {"order": CommandOption("--order")}, lambda words: None)
    >>> train.words({"order": GivenValue(3, "grid.yaml:2")})
    ['--order', '3']
    >>> train.check_names({"ordr": GivenValue(3, "grid.yaml:2")})
    Traceback (most recent call last):
    ...
    dragoman.core.errors.DataError: grid.yaml:2: unknown option 'ordr' of train ngram; did you mean 'order'?
    """

    name: str
    options: Mapping[str, CommandOption]  # by names without dashes in front
    check_words: Callable[[Sequence[str]], None]  # raises a `DataError` for options with wrong values

    def check_names(self, given: GivenOptions, reserved: Mapping[str, str] | None = None) -> None:
        """Raise an error for an option that the command does not have, or that is `reserved`, with the reason."""
        for name, value in given.items():
            if name in (reserved or {}):
                raise DataError(f"{value.origin}: {name}: {(reserved or {})[name]}")
            if name not in self.options:
                hint = did_you_mean(name, self.options, "the options are")
                raise DataError(f"{value.origin}: unknown option {name!r} of {self.name}; {hint}")

    def words(self, given: GivenOptions) -> list[str]:
        """Return the options as they are written on the command line."""
        return [word for name, value in given.items() for word in self._words_of(name, value)]

    def _words_of(self, name: str, given: GivenValue) -> list[str]:
        option, value = self.options[name], given.value
        if option.is_switch:
            if not isinstance(value, bool):
                raise DataError(f"{given.origin}: {name} {format_value(value)}: must be true or false")
            return [option.flag] if value else [] if option.off_flag is None else [option.off_flag]
        if option.is_repeatable:
            items = value if isinstance(value, list) else [value]
            return [word for item in items for word in _with_value(option.flag, option_text(item))]
        return _with_value(option.flag, option_text(value))

    def files(self, given: GivenOptions) -> dict[str, str]:
        """Return the names of files that options name, by the names of the options."""
        texts = {name: option_text(value.value) for name, value in given.items()}
        return {
            name: text
            for name, text in texts.items()
            if self.options[name].value_name == FILE and not (name == "classes" and text.startswith(CLASSES_TO_FIND))
        }

    def directories(self, given: GivenOptions) -> dict[str, str]:
        """Return the names of directories that options name, by the names of the options."""
        names = [name for name in given if self.options[name].value_name == DIRECTORY]
        return {name: option_text(given[name].value) for name in names}

    def check_files(self, given: GivenOptions) -> None:
        """Raise an error for a file or directory that does not exist."""
        for name, text in self.files(given).items():
            origin = given[name].origin
            if text == "-":
                raise DataError(f"{origin}: {name} -: several runs cannot share standard input; name a file")
            if not Path(text).is_file():
                problem = "is not a file" if Path(text).exists() else "no such file"
                raise DataError(f"{origin}: {name} {text}: {problem}; paths start in the current directory")
        for name, text in self.directories(given).items():
            if not Path(text).is_dir():
                problem = "no such directory; paths start in the current directory"
                raise DataError(f"{given[name].origin}: {name} {text}: {problem}")

    def check_values(self, given: GivenOptions, arguments: Sequence[str] = (), source: str = "") -> None:
        """Raise an error for an option with a wrong value, or one that is missing.

        Args:
            arguments: The words of the command that are not among these options.
            source: The file of the options, for errors that belong to none of them.
        """
        try:
            self.check_words([*arguments, *self.words(given)])
        except DataError as error:
            flags = {
                option: name for name in given for option in (self.options[name].flag, self.options[name].off_flag)
            }
            name = next((flags[flag] for flag in FLAG.findall(str(error)) if flag in flags), None)
            origin = source if name is None else given[name].origin
            raise DataError(f"{origin}: {error}") from None

    def identity(self, given: GivenOptions) -> dict[str, str]:
        """Return the options as text, with digests of the files and models that they name: what a result depends on."""
        files = {**self.files(given), **self.directories(given)}
        return {
            name: f"sha256:{_digest(files[name])}" if name in files else option_text(value.value)
            for name, value in sorted(given.items())
        }


@cache
def _digest(path: str) -> str:
    named = Path(path)
    return (model_digest(named) if named.is_dir() else file_digest(named))[:DIGEST_LENGTH]


def option_text(value: object) -> str:
    """Return a value as it is written on the command line.

    >>> [option_text(value) for value in (None, True, 0.001, [400, 200], "5", "")]
    ['none', 'true', '0.001', '400,200', '5', '']
    """
    if isinstance(value, list | tuple):
        return ",".join(map(option_text, value))
    return value if isinstance(value, str) else format_value(value)


def _with_value(flag: str, text: str) -> list[str]:
    return [f"{flag}={text}"] if text.startswith("-") else [flag, text]


def read_options(section: GivenValue, name: str) -> dict[str, GivenValue]:
    """Return the options of a section of a YAML file. Underscores in names are read as dashes."""
    if section.value is None:
        return {}
    if not isinstance(section.value, dict):
        remedy = "write `option: value` lines under it, indented"
        raise DataError(f"{section.origin}: {name} holds {option_text(section.value)}; {remedy}")
    options: dict[str, GivenValue] = {}
    for key, given in section.value.items():
        option = key.replace("_", "-").removeprefix("--")
        if option in options:
            raise DataError(f"{given.origin}: {option} is given twice in {name}; remove one of them")
        options[option] = given
    return options


def check_scalar(option: str, given: GivenValue) -> GivenValue:
    """Raise an error unless a value can be written on the command line: a scalar, or a list of scalars."""
    items = given.value if isinstance(given.value, list) else [given.value]
    if any(isinstance(item, list | dict) for item in items):
        raise DataError(f"{given.origin}: {option} holds sections or lists of lists; write a value or a list of values")
    return given
