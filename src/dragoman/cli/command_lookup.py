"""The options of `dragoman train KIND` and `dragoman evaluate` for commands that run them: train-many and tune."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any

from dragoman.cli.app import build_command
from dragoman.cli.commands import COMMANDS, TRAIN_COMMANDS
from dragoman.cli.errors import UsageError, usage_message
from dragoman.core.errors import DataError, did_you_mean
from dragoman.experiments.command_options import CommandLine, CommandOption

EVALUATE = "evaluate"


@cache
def find_command(name: str) -> CommandLine:
    """Return a command that trains or evaluates, such as `train recurrent`. Its module is imported."""
    group, _, kind = " ".join(name.split()).partition(" ")
    if name == EVALUATE:
        place = COMMANDS[name][0]
    elif group == "train" and kind in TRAIN_COMMANDS:
        place = TRAIN_COMMANDS[kind][0]
    else:
        raise DataError(f"command {name}: {did_you_mean(name, [f'train {kind}' for kind in TRAIN_COMMANDS])}")
    module, _, function = place.partition(":")
    declared = getattr(import_module(f"dragoman.cli.{module}"), function)
    command = build_command(declared.check)
    options = [_describe(option) for option in command.params if option.param_type_name == "option"]
    by_name = {option.flag.removeprefix("--"): option for option in options}
    by_name.pop("help", None)
    return CommandLine(name, by_name, partial(_check, command, name))


def _describe(option: Any) -> CommandOption:
    flags = [flag for flag in option.opts if flag.startswith("--")]
    return CommandOption(
        flags[0], next(iter(option.secondary_opts), None), option.is_flag, option.multiple, option.metavar or ""
    )


def _check(command: Any, name: str, words: Sequence[str]) -> None:
    """Raise an error if the command line of a command has wrong options or settings."""
    try:
        with command.make_context(f"dragoman {name}", list(words)) as context:
            command.invoke(context)
    except UsageError as error:
        raise DataError(usage_message(error)) from None
