"""Commands whose parameters are options, groups of options or settings.

    @dataclass(frozen=True)
    class VocabOptions(OptionGroup):
        panel = "Data"
        vocab_from: Annotated[Path | None, option("--vocab DIR", "Use the vocabulary of this model.")] = None
        min_count: Annotated[int, option("--min-count N", "Words with a lower count become <unk>.", min=1)] = 1

    @with_option_groups
    def train_feedforward(vocab: VocabOptions, training_config: TrainingConfig = FEED_FORWARD) -> None:
        print(vocab.min_count, training_config.learning_rate)

The command line has one option for each field of a group. Groups may contain groups. A parameter whose type is a
subclass of `Settings` gets one option for each field of the settings, with the field's docstring as help text; the
parameter's default holds the defaults of its fields. A command with settings also has the option `--config FILE`: a
YAML file with one section for each settings parameter, whose name is the parameter's without `_config`. Options
override the file, and the file overrides defaults.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, get_args, get_origin, get_type_hints

import typer
from pydantic import BaseModel

if TYPE_CHECKING:
    from dragoman.core.settings import GivenValue

CONFIG = "config"  # the option that names a settings file
METAVARS = {int: "N", float: "X", str: "TEXT", Path: "FILE"}
EMPTY = inspect.Parameter.empty
Command = Callable[..., None]


def option(
    declaration: str,
    help: str,
    *,
    min: float | None = None,
    max: float | None = None,
    panel: str | None = None,
    show_default: bool = True,
) -> object:
    """Declare an option in the way its help shows it: `option("--output, -o DIR", "The directory to write.")`."""
    *names, metavar = declaration.replace(", -", " -").split()
    if metavar.startswith("-"):  # there is none
        names, metavar = [*names, metavar], ""
    return typer.Option(
        *names, metavar=metavar or None, help=help, min=min, max=max, rich_help_panel=panel, show_default=show_default
    )


def argument(metavar: str, help: str) -> object:
    return typer.Argument(metavar=metavar, help=help, show_default=False)


class OptionGroup:
    """Base class of groups of options: frozen dataclasses whose fields are annotated as parameters of commands are."""

    panel: ClassVar[str | None] = None  # heading of these options in the help


class GivenSettings(dict[str, frozenset[str]]):
    """The names of the settings that the user gave, for each section. A command may ask for it with a parameter."""


def with_option_groups(function: Command, default_texts: Mapping[str, str] | None = None) -> Command:
    """Replace the groups and settings in the parameters of a command by one option for each field.

    Args:
        default_texts: Replaces the default in the help text of these settings, for those that the command chooses.
    """
    parameters = list(inspect.signature(function, eval_str=True).parameters.values())
    settings = [parameter for parameter in parameters if _is_a(parameter, BaseModel)]
    sections = {_section(parameter): list(_setting_options(parameter, default_texts or {})) for parameter in settings}
    flat = [field for parameter in parameters for field in _options_of(parameter)]
    if sections:
        text = f"Settings file in YAML with the sections {', '.join(sections)}; options override it."
        flat.append(_parameter(CONFIG, Annotated[Path | None, option("--config, -c FILE", text)]))
        flat += [setting.parameter() for section in sections.values() for setting in section]
    repeated = [name for name, times in Counter(parameter.name for parameter in flat).items() if times > 1]
    if repeated:
        raise ValueError(f"{', '.join(repeated)}: more than one option of this name; rename a field or a parameter")
    signature = inspect.Signature(flat)

    def bind(arguments: Mapping[str, object]) -> dict[str, object]:
        bound = signature.bind(**arguments)
        bound.apply_defaults()
        values = _group_values(parameters, bound.arguments)
        return values | _settings_values(parameters, sections, bound.arguments) if sections else values

    @wraps(function)
    def command(**arguments: object) -> None:
        function(**bind(arguments))

    def check(**arguments: object) -> None:
        bind(arguments)

    for declared in (command, check):
        vars(declared)["__signature__"] = signature
        declared.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}
    vars(command)["check"] = check  # has the same options, and only checks the settings
    return command


def option_values(*groups: OptionGroup) -> dict[str, object]:
    """Return the values of groups by the names of their options, without dashes before them."""
    values = dict[str, object]()
    for group in groups:
        kinds = get_type_hints(type(group), include_extras=True)
        for field in fields(group):  # type: ignore[arg-type]
            declared = get_args(kinds[field.name])[-1]  # typer keeps its first name as its default
            name = next(name for name in (declared.default, *declared.param_decls) if name.startswith("--"))
            values[name.removeprefix("--")] = getattr(group, field.name)
    return values


def _is_a(parameter: inspect.Parameter, *bases: type) -> bool:
    return isinstance(parameter.annotation, type) and issubclass(parameter.annotation, bases)


def _parameter(name: str, annotation: object, default: object = None) -> inspect.Parameter:
    # Keyword-only, so that options with a default may precede options without.
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _options_of(parameter: inspect.Parameter, panel: str | None = None) -> Iterator[inspect.Parameter]:
    """Yield the options of a parameter: itself, or those of its group."""
    if _is_a(parameter, OptionGroup):
        for field in _group_fields(parameter):
            yield from _options_of(field, parameter.annotation.panel or panel)
    elif not _is_a(parameter, BaseModel, GivenSettings):
        annotation = parameter.annotation
        if panel and get_origin(annotation) is Annotated:
            kind, declared = get_args(annotation)
            declared = copy(declared)
            declared.rich_help_panel = declared.rich_help_panel or panel
            annotation = Annotated[kind, declared]
        yield _parameter(parameter.name, annotation, parameter.default)


def _group_values(parameters: Sequence[inspect.Parameter], values: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of a function: the groups, and the options that are in none."""
    return {
        parameter.name: parameter.annotation(**_group_values(_group_fields(parameter), values))
        if _is_a(parameter, OptionGroup)
        else values[parameter.name]
        for parameter in parameters
        if not _is_a(parameter, BaseModel, GivenSettings)
    }


def _group_fields(group: inspect.Parameter) -> list[inspect.Parameter]:
    """Return the fields of a group as parameters of a function. The default of the group holds theirs."""
    kinds = get_type_hints(group.annotation, include_extras=True)
    defaults = {field.name: field.default for field in fields(group.annotation)}
    if group.default is not EMPTY:
        defaults = {name: getattr(group.default, name) for name in defaults}
    return [
        _parameter(name, kinds[name], EMPTY if default is MISSING else default) for name, default in defaults.items()
    ]


@dataclass(frozen=True)
class _SettingOption:
    """A field of settings as an option of the command line."""

    name: str
    panel: str
    kind: object  # the annotation of the field
    help: str

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    def parameter(self) -> inspect.Parameter:
        """Return the option for typer, which accepts any text: the settings check and convert it."""
        from dragoman.core.settings import strip_optional

        if strip_optional(self.kind) is bool:
            declared = option(f"{self.flag}/--no-{self.flag.removeprefix('--')}", self.help, panel=self.panel)
            return _parameter(self.name, Annotated[bool | None, declared])
        declared = option(f"{self.flag} {_metavar(self.kind, self.name)}", self.help, panel=self.panel)
        return _parameter(self.name, Annotated[str | None, declared])

    def given(self, value: object) -> GivenValue:
        from dragoman.core.settings import GivenValue, parse_option

        return GivenValue(parse_option(self.kind, value) if isinstance(value, str) else value, self.flag)


def _setting_options(parameter: inspect.Parameter, default_texts: Mapping[str, str]) -> Iterator[_SettingOption]:
    """Yield the options of a settings parameter, with their defaults at the end of the help texts."""
    from dragoman.core.settings import format_value

    for name, field in parameter.annotation.model_fields.items():
        if isinstance(field.json_schema_extra, dict) and field.json_schema_extra.get("option") is False:
            continue
        text = " ".join((field.description or "").split())
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        if parameter.default is not EMPTY:
            default = getattr(parameter.default, name)
        described, has_default_text, _ = text.partition(" Default:")  # which says what None or an empty list means
        if name in default_texts:
            text = f"{described} Default: {default_texts[name]}."
        elif not (has_default_text and default in (None, ())) and not (default is None and field.is_required()):
            text = f"{described} Default: {format_value(default)}.".strip()
        yield _SettingOption(name, _section(parameter).capitalize(), field.annotation, text)


def _section(parameter: inspect.Parameter) -> str:
    return parameter.name.removesuffix("_config")


def _metavar(kind: object, name: str) -> str:
    """Return what represents a value in the help: its choices, or a letter for its type."""
    from dragoman.core.settings import item_type, literal_choices, strip_optional

    inner, item = strip_optional(kind), item_type(kind)
    if choices := literal_choices(inner):
        return f"[{'|'.join(map(str, choices))}]"
    if item is not None:
        return "{0},{0},...".format(_metavar(item, name))
    if inner not in METAVARS:
        raise TypeError(f"{name}: no option can hold {kind}; declare it with json_schema_extra={{'option': False}}")
    return METAVARS[inner]


def _settings_values(
    parameters: Sequence[inspect.Parameter],
    sections: Mapping[str, Sequence[_SettingOption]],
    arguments: Mapping[str, object],
) -> dict[str, object]:
    """Return the settings arguments of a function, from options, the settings file and defaults."""
    from dragoman.core.settings import check_sections, read_settings, validate

    path = arguments[CONFIG]
    settings = {_section(parameter): parameter for parameter in parameters if _is_a(parameter, BaseModel)}
    kinds = {section: parameter.annotation for section, parameter in settings.items()}
    read = read_settings(path) if isinstance(path, Path) else {}
    if {"kind", "format"} <= read.keys():  # the config.yaml of a model, which contains more than settings
        read = {name: value for name, value in read.items() if name in kinds}
    in_file = check_sections(read, kinds)
    values: dict[str, object] = {}
    given = GivenSettings()
    for name, parameter in settings.items():
        typed = {
            setting.name: setting.given(arguments[setting.name])
            for setting in sections[name]
            if arguments[setting.name] is not None
        }
        merged = in_file.get(name, {}) | typed
        source = read[name].origin if name in read else str(path or "command line")
        default = parameter.annotation if parameter.default is EMPTY else parameter.default
        values[parameter.name] = validate(default, merged, source, name)
        given[name] = frozenset(merged)
    return values | {parameter.name: given for parameter in parameters if _is_a(parameter, GivenSettings)}
