"""Errors of the command line: one line on standard error and an exit code."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from typing import Any

import typer

from dragoman.core.errors import DragomanError

FAILED, BAD_USAGE, INTERRUPTED, BROKEN_PIPE, TERMINATED = 1, 2, 130, 141, 143
# The class of typer's errors about options and commands. It is in click or inside typer, depending on typer's version.
UsageError = typer.BadParameter.__bases__[0]
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


class Terminated(BaseException):
    """Raised when the process receives SIGTERM."""


def report_error(error: BaseException) -> int:
    """Print an error as one line on standard error and return the exit code for it."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if os.environ.get("DRAGOMAN_DEBUG"):
        traceback.print_exception(error)
    message, code = _describe(error)
    if message:
        print("dragoman: " + " ".join(message.split()), file=sys.stderr)
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
    message = error.format_message()
    for command, fragment, advice in ADVICE:
        if path.endswith(f" {command}") and fragment in message and "Did you mean" not in message:
            return f"{message.rstrip('.')}; {advice}"
    return f"{message} (see {path} --help)"


def _discard_stdout() -> None:
    """Redirect standard output to /dev/null, so that Python does not fail again when it flushes it at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return  # not a real file
