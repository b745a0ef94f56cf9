"""Errors of the command line: one line on standard error and an exit code."""

from __future__ import annotations

import errno
import os
import re
import sys
import traceback
from typing import Any

import typer

from dragoman.cli.processes import error_prefix, reports
from dragoman.core.errors import DragomanError, closest_match
from dragoman.core.processes import process_rank

FAILED, BAD_USAGE, INTERRUPTED, BROKEN_PIPE, TERMINATED = 1, 2, 130, 141, 143
# The class of typer's errors about options and commands. It is in click or inside typer, depending on typer's version.
UsageError: Any = typer.BadParameter.__bases__[0]
OUT_OF_MEMORY = ("can't allocate memory", "Storage size calculation overflowed")  # messages of torch

COUNTED = (
    "models of counts are estimated in one pass: train on both texts (--vocab DIR keeps a vocabulary), or train one model "
    "per text and combine them with dragoman mix"
)

# Advice for common mistakes: end of the command's path, part of typer's message, advice.
ADVICE = [
    *((kind, "--from", COUNTED) for kind in ("ngram", "class-ngram", "cache")),
    ("train", "'lstm'", "train it with: dragoman train recurrent --cell lstm"),
    ("train", "'gru'", "train it with: dragoman train recurrent --cell gru"),
    ("train", "'rnn'", "train it with: dragoman train recurrent --cell rnn"),
    ("train", "", "name the kind of model first, such as: dragoman train ngram --text FILE -o DIR"),
    ("next", "extra argument", 'put the prefix in quotes, such as: dragoman next DIR "the cat"'),
    ("saliency", "extra argument", 'put the sentence in quotes, such as: dragoman inspect saliency DIR "she sees him"'),
    ("attention", "Missing argument", 'give a translator and a sentence: dragoman attention DIR "ein hund bellt ."'),
    ("translate", "Missing argument", "name a translator, such as: dragoman translate DIR < FILE"),
]
TEXT_OPTIONS = ("--text", "--src", "--tgt", "--pairs")


class Terminated(BaseException):
    """Raised when the process receives SIGTERM."""


def report_error(error: BaseException) -> int:
    """Print an error as one line on standard error and return the exit code for it."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if os.environ.get("DRAGOMAN_DEBUG"):
        traceback.print_exception(error)
    message, code = _describe(error)
    if message and reports(error):
        # Processes other than the first one have no standard error of their own, see `prepare_process`.
        file = sys.__stderr__ if process_rank() else sys.stderr
        print(error_prefix() + " ".join(message.split()), file=file, flush=True)
    return code


def _describe(error: BaseException) -> tuple[str, int]:
    if isinstance(error, UsageError):
        return _describe_usage_error(error), BAD_USAGE
    match error:
        case BrokenPipeError():
            _discard_stdout()
            return "", BROKEN_PIPE
        case KeyboardInterrupt():
            return "interrupted", INTERRUPTED
        case Terminated():
            return "terminated", TERMINATED
        case DragomanError():
            return str(error), error.exit_code
        case RuntimeError() if any(fragment in str(error) for fragment in OUT_OF_MEMORY):
            return "out of memory; reduce the batch size, beam size, model or input", FAILED
        case MemoryError():
            return "out of memory; use less text, a lower --order or --prune", FAILED
        case OSError():
            if error.errno == errno.ENOSPC:
                _discard_stdout()
            return f"{f'{error.filename}: ' if error.filename else ''}{error.strerror or error}", FAILED
    kind = type(error).__name__
    return f"internal error: {kind}: {error} (set DRAGOMAN_DEBUG=1 to see the traceback)", FAILED


def _describe_usage_error(error: Any) -> str:
    path = error.ctx.command_path if error.ctx else "dragoman"
    message = usage_message(error)
    for command, fragment, advice in ADVICE:
        if path.endswith(f" {command}") and fragment in message and "did you mean" not in message.lower():
            return f"{message.rstrip('.')}; {advice}"
    return f"{message} (see {path} --help)"


def usage_message(error: Any) -> str:
    """Return typer's message about an option, or one of this program's where typer has those of a library."""
    from pydantic import ValidationError

    from dragoman.core.settings import describe_requirement

    if isinstance(error.__cause__, ValidationError):  # a value of the wrong type, or out of range
        details = error.__cause__.errors()[0]
        name = max(error.param.opts, key=len) if error.param.param_type_name == "option" else error.param.metavar
        return f"{name} {details['input']}: {describe_requirement(details)}"
    if match := re.match(r"No such option: (\S+)", error.message):
        names = [name.lstrip("-") for parameter in error.ctx.command.params for name in parameter.opts]
        similar = closest_match(match[1].lstrip("-"), names)
        return f"{match[0]}; did you mean --{similar}?" if similar else match[0]
    if match := re.match(r"Option '(\S+)' requires an argument", error.message):
        return f"{match[1]} needs a value"
    if match := re.match(r"Got unexpected extra argument\S* \((.*)\)", error.message):
        names = [name for parameter in error.ctx.command.params for name in parameter.opts if name in TEXT_OPTIONS]
        remedy = f"; name a file after its option: {', '.join(names)}" if names else ""
        return f"unexpected extra argument {match[1]}{remedy}"
    return str(error.format_message())


def _discard_stdout() -> None:
    """Redirect standard output to /dev/null, so that Python does not fail again when it flushes it at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return  # not a real file
