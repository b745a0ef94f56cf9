"""The command `dragoman`: finds the verb, and turns whatever goes wrong into one line and an exit code."""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command

from dragoman import __version__
from dragoman.cli.messages import info
from dragoman.core.errors import DragomanError

FAILED, BAD_USAGE, INTERRUPTED, BROKEN_PIPE, TERMINATED = 1, 2, 130, 141, 143

# Each verb: the module, and in it the function (or, of `train` and `inspect`, the group of functions) that does it.
COMMANDS = {
    "lab": "lab:lab",
    "doctor": "doctor:doctor",
    "cluster": "cluster:cluster",
    "train": "train:train",
    "translate": "translate:translate",
    "attention": "attention:attention",
    "align": "align:align",
    "evaluate": "evaluate:evaluate",
    "compare": "compare:compare",
    "contrast": "contrast:contrast",
    "mix": "mix:mix",
    "score": "score:score",
    "sample": "sample:sample",
    "next": "next:next_words",
    "explain": "explain:explain",
    "inspect": "inspect:inspect",
    "export": "export:export",
    "import": "import_arpa:import_arpa",
    "units": "units:units",
    "demo": "demo:demo",
    "ladder": "ladder:ladder",
    "serve": "serve:serve",
}

# What typer raises for wrong options and verbs. It lives in click or inside typer, depending on typer's version.
UsageError = typer.BadParameter.__bases__[0]


class CommandGroup(TyperGroup):
    """The verbs, listed in the order in which one meets them."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)


class Terminated(BaseException):
    """The process was asked to end (SIGTERM)."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    with _plain_warnings(), _termination():
        try:
            code = _run(arguments)
            sys.stdout.flush()  # here, so that a full disk or a closed pipe is noticed
            return code
        except (Exception, KeyboardInterrupt, Terminated) as error:
            return _report_error(error)


def _run(arguments: list[str]) -> int:
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(encoding="utf-8", errors="backslashreplace")  # whatever the locale: models speak UTF-8
    command = get_command(_app())
    try:
        with command.make_context("dragoman", arguments) as context:
            command.invoke(context)
    except typer.Exit as done:  # --help and --version
        return done.exit_code
    return 0


def _app() -> typer.Typer:
    app = typer.Typer(
        cls=CommandGroup,
        context_settings={"help_option_names": ["-h", "--help"]},
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_dragoman)
    for verb, place in COMMANDS.items():
        module, _, name = place.partition(":")
        action = getattr(import_module(f"dragoman.cli.{module}"), name)
        if isinstance(action, typer.Typer):
            app.add_typer(action, name=verb)
        else:
            app.command(verb)(action)
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"dragoman {__version__}")
        raise typer.Exit


def _dragoman(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Language models and translators, from counts to attention: train them, use them, look inside.

    \b
    A first walk (no text at hand? dragoman lab -o lab writes one):
      dragoman doctor --text train.txt
      dragoman train ngram --text train.txt --order 5 -o kn5
      dragoman evaluate kn5 --text test.txt
      dragoman sample kn5 -n 3
      dragoman train translator --src train.de --tgt train.en -o de-en
      echo "ein hund bellt ." | dragoman translate de-en

    Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 failed while running,
    2 bad usage or data, 3 training diverged, 130 and 143 interrupted.
    """


# -- what goes wrong ------------------------------------------------------------------------------------------------


def _report_error(error: BaseException) -> int:
    """Say in one line what went wrong; the exit code for it."""
    if os.environ.get("DRAGOMAN_DEBUG"):
        traceback.print_exception(error)
    if isinstance(error, UsageError):
        return _print_error(_usage(error), BAD_USAGE)
    match error:
        case BrokenPipeError():
            _give_up_stdout()
            return BROKEN_PIPE
        case KeyboardInterrupt():
            return _print_error("interrupted", INTERRUPTED)
        case Terminated():
            return _print_error("terminated", TERMINATED)
        case DragomanError():
            return _print_error(str(error), error.exit_code)
        case RuntimeError() if "can't allocate memory" in str(error) or "Storage size calculation overflowed" in str(
            error
        ):
            return _print_error("out of memory; try smaller layers or less text", FAILED)
        case MemoryError():
            return _print_error("out of memory; try less text, a lower --order or --prune", FAILED)
        case OSError():
            if error.errno == errno.ENOSPC:
                _give_up_stdout()
            place = f"{error.filename}: " if error.filename else ""
            return _print_error(f"{place}{error.strerror or error}", FAILED)
    kind = type(error).__name__
    return _print_error(f"internal error: {kind}: {error} (set DRAGOMAN_DEBUG=1 for the traceback)", FAILED)


def _print_error(message: str, code: int) -> int:
    info("dragoman: " + " ".join(message.split()))
    return code


def _usage(error: Any) -> str:
    path = error.ctx.command_path if error.ctx else "dragoman"
    message = error.format_message()
    hint = _hint(path, message)
    return f"{message.rstrip('.')}; {hint}" if hint else f"{message} (see {path} --help)"


def _hint(path: str, message: str) -> str:
    """What was probably meant, where newcomers stumble."""
    if path.endswith(" train") and "Did you mean" not in message:
        return "say first what to train, such as: dragoman train ngram --text FILE -o DIR (see dragoman train --help)"
    if path.endswith(" next") and "extra argument" in message:
        return 'put the prefix in quotes, such as: dragoman next DIR "the cat"'
    if path.endswith(" saliency") and "extra argument" in message:
        return 'put the sentence in quotes, such as: dragoman inspect saliency DIR "she sees herself"'
    if path.endswith(" attention") and "Missing argument" in message:
        return 'give a translator and a sentence in quotes, such as: dragoman attention DIR "ein hund bellt ."'
    if path.endswith(" translate") and "Missing argument" in message:
        return "name a translator, such as: dragoman translate DIR < FILE (dragoman train translator makes one)"
    return ""


def _give_up_stdout() -> None:
    """What is still unwritten cannot be written; keep Python from trying again, loudly, when it ends."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return  # not a real file, so nothing will be tried again


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings as one plain line each."""

    def show(message: Warning | str, *place: Any, **line: Any) -> None:
        info(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


@contextmanager
def _termination() -> Iterator[None]:
    """SIGTERM as an exception, so that half-written files are cleared away."""

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    sys.exit(main())
