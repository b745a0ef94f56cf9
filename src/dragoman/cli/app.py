"""The command line application: commands that are imported when they are used, and help in sections."""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from dragoman import __version__
from dragoman.cli.commands import COMMANDS, GROUPS, program_help
from dragoman.cli.errors import Terminated, UsageError
from dragoman.cli.messages import warn
from dragoman.cli.options import command_resources

if TYPE_CHECKING:
    from dragoman.cli.option_groups import Command

os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # searching for plugins takes 50 ms
PROGRAM = "dragoman"
RANGE = re.compile(r"(; )?([\d.]+<=)?x[<>]=[\d.]+")  # that typer writes after a help text; errors name it in words
COMPLETION = "_DRAGOMAN_COMPLETE"  # the environment variable with which a shell asks for completions


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit code. Errors are raised."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")  # in any locale
    command = root_command()
    if COMPLETION in os.environ:
        command.main(prog_name=PROGRAM)  # prints completions and exits
    with _handle_warnings_and_signals(), command_resources:
        try:
            with command.make_context(PROGRAM, arguments) as context:
                command.invoke(context)
        except typer.Exit as exit_:
            return exit_.exit_code
    return 0


def root_command() -> TyperGroup:
    """Return the command `dragoman`. The modules of its subcommands are not imported yet."""

    def dragoman(
        version: Annotated[
            bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
        ] = False,
    ) -> None: ...

    app = typer.Typer(
        cls=RootGroup, context_settings={"help_option_names": ["-h", "--help"]}, pretty_exceptions_enable=False
    )
    app.callback()(dragoman)
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    root.commands = {**_deferred(COMMANDS)}
    for name, (table, description) in GROUPS.items():
        root.commands[name] = TyperGroup(
            name=name,
            commands={**_deferred(table)},
            help=description,
            short_help=COMMANDS[name][1],
            rich_markup_mode=None,
        )
    return root


def _show_version(requested: bool) -> None:
    if requested:
        print(f"{PROGRAM} {__version__}")
        raise typer.Exit


def _deferred(table: Mapping[str, tuple[str, str]]) -> dict[str, TyperCommand]:
    return {name: DeferredCommand(name, place, summary) for name, (place, summary) in table.items()}


class RootGroup(TyperGroup):
    """Root command with static help."""

    def get_help(self, ctx: object) -> str:
        return program_help()


class DeferredCommand(TyperCommand):
    """Command that is imported on first use."""

    def __init__(self, name: str, place: str, summary: str) -> None:
        super().__init__(name, short_help=summary, rich_markup_mode=None)
        self.place = place

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        module, _, function = self.place.partition(":")
        command = build_command(getattr(import_module(f"dragoman.cli.{module}"), function))
        try:
            return command.make_context(info_name, args, parent, **extra)
        except UsageError as error:
            if error.ctx is None:  # of an option without its value
                error.ctx = typer.Context(command, info_name=info_name, parent=parent)
            raise


def build_command(function: Command) -> TyperCommand:
    """Return the command that a function with annotated parameters declares."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(cls=SectionedCommand)(function)
    command = get_command(app)
    assert isinstance(command, TyperCommand)
    return command


class SectionedCommand(TyperCommand):
    """A command whose help lists options in sections: those of `rich_help_panel`, as plain text."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = [parameter for parameter in self.get_params(ctx) if parameter.param_type_name == "argument"]
        names = [f"{argument.metavar}" if argument.required else f"[{argument.metavar}]" for argument in arguments]
        return [*names, "[OPTIONS]"]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        for parameter in self.get_params(ctx):
            is_argument = parameter.param_type_name == "argument"
            title = "Arguments" if is_argument else getattr(parameter, "rich_help_panel", None) or "Options"
            if (record := parameter.get_help_record(ctx)) is not None:
                name, text = record
                name = f"{parameter.metavar}" if is_argument else name.partition(" <")[0]  # without Python's types
                sections.setdefault(title, []).append((name, RANGE.sub("", text).replace("  []", "")))
        for title in ("Output", "Options"):  # these last: --help is one of the options
            sections[title] = sections.pop(title, [])
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


@contextmanager
def _handle_warnings_and_signals() -> Iterator[None]:
    """Print warnings as one line, and raise `Terminated` on SIGTERM, so that partly written files are removed."""

    def show(message: Warning | str, *place: object, **line: object) -> None:
        warn(str(message))

    def stop(number: int, frame: object) -> NoReturn:
        raise Terminated

    previous_handler = signal.signal(signal.SIGTERM, stop)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = show
            yield
    finally:
        signal.signal(signal.SIGTERM, previous_handler)
