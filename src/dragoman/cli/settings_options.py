"""Verbs with settings: one option for each field of some `Settings`, and `--config` to take them from a file.

    @configured(model="dragoman.models.feedforward_config:FeedForwardConfig", training=TrainingConfig(seed=7))
    def train_feedforward(text: options.Text, settings: Configured) -> None:
        print(settings.model.hidden, settings.training.learning_rate)

    train.command("feed-forward", cls=ConfiguredCommand)(train_feedforward)

Names, types, defaults and help all come from the fields. The command line comes before the file, the file before the
defaults. Settings may be named by their place rather than given, as importing them (that is, pydantic) takes a tenth of
a second: they and the options made from them then wait until the verb is used.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import update_wrapper
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

if TYPE_CHECKING:
    from dragoman.core.settings import Settings

    Section = type[Settings] | Settings  # of an instance, its values are the defaults

SETTINGS, CONFIG = "settings", "config"  # the parameter that takes the settings, and the option that names a file


@dataclass(frozen=True)
class CommandSettings:
    """The settings of a verb, a section each: `settings.training.seed`."""

    sections: Mapping[str, Settings]
    given: Mapping[str, frozenset[str]] = field(default_factory=dict)  # of each section, what is not by default

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["sections"][name]
        except KeyError:
            raise AttributeError(f"no section {name}") from None

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """The whole configuration as plain values, as it is saved and compared."""
        return {name: settings.model_dump(mode="json") for name, settings in self.sections.items()}


def with_settings(
    default_texts: Mapping[str, str] | None = None, **sections: Section | str
) -> Callable[[Callable[..., None]], SettingsCommand]:
    """Give a verb the settings of these sections: classes, instances that hold other defaults, or `module:name`.

    Of settings that the verb chooses itself where they are not given, `left_open` says how, in the place of a default.
    """

    def decorate(action: Callable[..., None]) -> SettingsCommand:
        verb = SettingsCommand(action, sections, default_texts or {})
        if not any(isinstance(section, str) for section in sections.values()):
            verb.check_names()
        return verb

    return decorate


class LazySettingsCommand(TyperCommand):
    """What typer knows of a verb with settings: its name and help, until it is used."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        verb = getattr(self.callback, "__wrapped__", None)  # typer wraps a function before it hands it on
        assert isinstance(verb, SettingsCommand), "ConfiguredCommand is for functions that are @configured"
        return verb.command().make_context(info_name, args, parent, **extra)


class SettingsCommand:
    """A function of the command line that takes settings, and the sections these come in."""

    def __init__(
        self, action: Callable[..., None], sections: Mapping[str, Section | str], left_open: Mapping[str, str]
    ) -> None:
        update_wrapper(self, action)
        self._action = action
        self._named = sections
        self._left_open = left_open
        # As long as the options have not been made, typer is to find none.
        self.__signature__ = inspect.Signature()

    def __call__(self, **arguments: Any) -> None:
        """Run the function: options that are settings, and the file, become its `settings`."""
        file: Path | None = arguments.pop(CONFIG, None)
        typed = {option.name: arguments.pop(option.name, None) for option in self._options()}
        self._action(**arguments, **{SETTINGS: self.settings(file, typed)})

    def settings(self, file: Path | None, typed: Mapping[str, Any]) -> CommandSettings:
        """The command line before the file, the file before the defaults."""
        from dragoman.core.settings import GivenValue, check_sections, read_settings, validate

        named = self._sections()
        kinds = {name: _kind(section) for name, section in named.items()}
        read = read_settings(file) if file else {}
        if {"kind", "format"} <= read.keys():  # a model's own config.yaml, which says more than settings
            read = {name: value for name, value in read.items() if name in kinds}
        in_file = check_sections(read, kinds)
        options = [option for option in self._options() if typed.get(option.name) is not None]
        result, names = {}, {}
        for name, section in named.items():
            given = {
                one.name: GivenValue(one.value(typed[one.name]), one.flag) for one in options if one.section == name
            }
            source = read[name].origin if name in read else str(file or "command line")
            values = in_file.get(name, {}) | given
            result[name], names[name] = validate(section, values, source, name), frozenset(values)
        return CommandSettings(result, names)

    def command(self) -> Any:
        """The whole command, with all its options."""
        self.check_names()

        def whole(**arguments: Any) -> None:
            self(**arguments)

        whole.__doc__ = self.__doc__
        vars(whole)["__signature__"] = inspect.Signature([*self._own(), self._config(), *self._generated()])
        app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        app.command()(whole)
        command = get_command(app)
        _refuse_twice([flag for one in command.params for flag in (*one.opts, *one.secondary_opts)])
        return command

    def check_names(self) -> None:
        """Names that mean two things are a mistake in the program."""
        own = [name for name in inspect.signature(self._action).parameters if name != SETTINGS]
        _refuse_twice([*own, CONFIG, *(option.name for option in self._options())])

    def _sections(self) -> dict[str, Section]:
        return {name: _found(one) if isinstance(one, str) else one for name, one in self._named.items()}

    def _options(self) -> Iterator[SettingOption]:
        for name, section in self._sections().items():
            yield from _options_of(name, section, self._left_open)

    def _own(self) -> list[inspect.Parameter]:
        parameters = inspect.signature(self._action, eval_str=True).parameters.values()
        return [_by_keyword(one) for one in parameters if one.name != SETTINGS]

    def _config(self) -> inspect.Parameter:
        told = f"Settings in YAML, in sections ({', '.join(self._named)}); what is given as an option comes before it."
        option = typer.Option("--config", "-c", metavar="FILE", help=told, show_default=False)
        return _parameter(CONFIG, Annotated[Path | None, option])

    def _generated(self) -> list[inspect.Parameter]:
        return [_parameter(option.name, option.annotation()) for option in self._options()]


@dataclass(frozen=True)
class SettingOption:
    """A field of settings as an option of the command line."""

    section: str
    name: str
    annotation_type: Any  # the type of the field
    help: str

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    def annotation(self) -> Any:
        """What typer reads. Apart from flags, typer takes any text: what it means is for the settings to say."""
        if _is_flag(self.annotation_type):
            both = f"{self.flag}/--no-{self.flag.removeprefix('--')}"
            return Annotated[bool | None, typer.Option(both, help=self.help, show_default=False)]
        metavar = _metavar(self.annotation_type, self.name)
        return Annotated[str | None, typer.Option(self.flag, metavar=metavar, help=self.help, show_default=False)]

    def value(self, typed: Any) -> Any:
        """What was typed, as a value."""
        from dragoman.core.settings import parse_option

        return typed if isinstance(typed, bool) else parse_option(self.annotation_type, typed)


def _options_of(name: str, section: Section, left_open: Mapping[str, str]) -> Iterator[SettingOption]:
    for field_name, one in _kind(section).model_fields.items():
        extra = one.json_schema_extra
        if isinstance(extra, dict) and extra.get("option") is False:
            continue
        default = one.get_default(call_default_factory=True) if not one.is_required() else None
        if not isinstance(section, type):
            default = getattr(section, field_name)
        told = " ".join((one.description or "").split())
        if field_name in left_open:
            told = f"{told.partition(' Default:')[0]} Default: {left_open[field_name]}."
        shown = told if field_name in left_open else _with_default(told, default, needed=one.is_required())
        yield SettingOption(name, field_name, one.annotation, shown)


def _with_default(told: str, default: Any, *, needed: bool) -> str:
    """A help text that ends in the default; a text that explains what it means to give nothing does so itself."""
    from dragoman.core.settings import format_value

    if default is None and (needed or "Default:" in told):
        return told
    return f"{told} Default: {format_value(default)}.".strip()


def _kind(section: Section) -> type[Settings]:
    return section if isinstance(section, type) else type(section)


def _found(place: str) -> Section:
    """The settings that stand at `module:name`."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _is_flag(kind: Any) -> bool:
    from dragoman.core.settings import strip_optional

    return strip_optional(kind) is bool


METAVARS = {int: "N", float: "X", str: "TEXT", Path: "FILE"}


def _metavar(kind: Any, name: str) -> str:
    """What stands for the value in the help: its type, or its choices."""
    from dragoman.core.settings import item_type, literal_choices, strip_optional

    inner, item = strip_optional(kind), item_type(kind)
    if names := literal_choices(inner):
        return f"[{'|'.join(map(str, names))}]"
    if item is not None:
        return "{0},{0},...".format(_metavar(item, name))
    if inner not in METAVARS:
        raise TypeError(f"{name}: no option can hold {kind}; say json_schema_extra={{'option': False}}")
    return METAVARS[inner]


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    """A parameter that is None unless it is given."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _by_keyword(parameter: inspect.Parameter) -> inspect.Parameter:
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)


def _refuse_twice(names: Sequence[str]) -> None:
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ValueError(f"{', '.join(twice)}: more than one option of this name; rename a field or a parameter")
