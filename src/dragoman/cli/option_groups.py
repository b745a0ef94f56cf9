"""Commands whose parameters are groups of options or settings.

    @dataclass(frozen=True)
    class VocabOptions(OptionGroup):
        panel = "Data"
        vocab_from: options.VocabFrom = None
        min_count: options.MinCount = 1

    @with_option_groups
    def train_feedforward(vocab: VocabOptions, training: TrainingConfig = FEED_FORWARD) -> None:
        print(vocab.min_count, training.learning_rate)

The command line has one option for each field of a group. Groups may contain groups. A parameter whose type is a
subclass of `Settings` gets one option for each field of the settings, with the field's docstring as help text; the
parameter's default holds the defaults of its fields. A command with settings also has the option `--config FILE`: a
YAML file with one section for each settings parameter. Options override the file, and the file overrides defaults.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args, get_origin, get_type_hints

import typer
from pydantic import BaseModel

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from dragoman.core.settings import GivenValue, Settings

CONFIG = "config"  # the option that names a settings file
METAVARS = {int: "N", float: "X", str: "TEXT", Path: "FILE"}
Command = Callable[..., None]


class OptionGroup:
    """Base class of groups of options: frozen dataclasses whose fields are annotated as parameters of commands are."""

    panel: ClassVar[str | None] = None  # heading of these options in the help


class GivenSettings(dict[str, frozenset[str]]):
    """The names of the settings that the user gave, for each section. A command may ask for it with a parameter."""


def with_option_groups(
    function: Command | None = None, *, default_texts: Mapping[str, str] | None = None
) -> Callable[..., Any]:
    """Spread the groups and settings in the parameters of a command into one option each.

    Args:
        default_texts: Replaces the default in the help text of these settings, for those that the command chooses.
    """
    if function is None:
        return lambda declared: with_option_groups(declared, default_texts=default_texts)
    return _spread_parameters(function, default_texts or {})


def _spread_parameters(function: Command, default_texts: Mapping[str, str]) -> Command:
    parameters = list(inspect.signature(function, eval_str=True).parameters.values())
    sections = [_SettingsSection.of(parameter, default_texts) for parameter in parameters if _is_settings(parameter)]
    options = [option for parameter in parameters for option in _options_of(parameter)]
    if sections:
        options += [_config_option(sections), *(option.parameter() for section in sections for option in section)]
    repeated = [name for name, times in Counter(option.name for option in options).items() if times > 1]
    if repeated:
        raise ValueError(f"{', '.join(repeated)}: more than one option of this name; rename a field or a parameter")
    signature = inspect.Signature(options)

    @wraps(function)
    def command(**arguments: Any) -> None:
        bound = signature.bind(**arguments)
        bound.apply_defaults()
        values = _group_values(parameters, bound.arguments)
        function(**values, **_settings_values(parameters, sections, bound.arguments))

    vars(command)["__signature__"] = signature
    command.__annotations__ = {option.name: option.annotation for option in options}
    return command


# -- groups of options -------------------------------------------------------------------------------------------------


def _is_group(parameter: inspect.Parameter) -> bool:
    return isinstance(parameter.annotation, type) and issubclass(parameter.annotation, OptionGroup)


def _options_of(parameter: inspect.Parameter, panel: str | None = None) -> Iterator[inspect.Parameter]:
    """Yield the options of a parameter: itself, or those of its group."""
    if _is_group(parameter):
        for field in _group_fields(parameter):
            yield from _options_of(field, parameter.annotation.panel or panel)
    elif not _is_settings(parameter) and parameter.annotation is not GivenSettings:
        annotation = _in_panel(parameter.annotation, panel) if panel else parameter.annotation
        # Keyword-only, so that options with a default may precede options without.
        yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=annotation)


def _in_panel(annotation: Any, panel: str) -> Any:
    """Set the heading of an option that has none of its own."""
    if get_origin(annotation) is not Annotated:
        return annotation
    kind, option, *others = get_args(annotation)
    option = copy(option)
    option.rich_help_panel = option.rich_help_panel or panel
    return Annotated[(kind, option, *others)]


def _group_values(parameters: Sequence[inspect.Parameter], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a function: the groups, and the options that are in none."""
    return {
        parameter.name: parameter.annotation(**_group_values(_group_fields(parameter), options))
        if _is_group(parameter)
        else options[parameter.name]
        for parameter in parameters
        if not _is_settings(parameter) and parameter.annotation is not GivenSettings
    }


def _group_fields(group: inspect.Parameter) -> list[inspect.Parameter]:
    """Return the fields of a group as parameters of a function. The default of the group holds theirs."""
    kinds = get_type_hints(group.annotation, include_extras=True)
    defaults = {field.name: field.default for field in fields(group.annotation)}
    if group.default is not inspect.Parameter.empty:
        defaults = {name: getattr(group.default, name) for name in defaults}
    return [
        _parameter(name, kinds[name], inspect.Parameter.empty if default is MISSING else default)
        for name, default in defaults.items()
    ]


def _parameter(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


# -- settings ----------------------------------------------------------------------------------------------------------


def _is_settings(parameter: inspect.Parameter) -> bool:
    return isinstance(parameter.annotation, type) and issubclass(parameter.annotation, BaseModel)


@dataclass(frozen=True)
class _SettingsSection:
    """A settings parameter of a command."""

    name: str
    settings: type[Settings]
    default: Settings | type[Settings]  # an instance that holds the defaults, or the class if there is none
    default_texts: Mapping[str, str]

    @classmethod
    def of(cls, parameter: inspect.Parameter, default_texts: Mapping[str, str]) -> _SettingsSection:
        has_default = parameter.default is not inspect.Parameter.empty
        kind = parameter.annotation
        return cls(parameter.name, kind, parameter.default if has_default else kind, default_texts)

    def __iter__(self) -> Iterator[_SettingOption]:
        for name, field in self.settings.model_fields.items():
            extra = field.json_schema_extra
            if not (isinstance(extra, dict) and extra.get("option") is False):
                yield _SettingOption(self.name, name, field.annotation, self._help(name, field))

    def _help(self, name: str, field: FieldInfo) -> str:
        """Return the help text with the default at its end, unless it explains the missing value itself."""
        from dragoman.core.settings import format_value

        text = " ".join((field.description or "").split())
        if name in self.default_texts:
            return f"{text.partition(' Default:')[0]} Default: {self.default_texts[name]}."
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        if not isinstance(self.default, type):
            default = getattr(self.default, name)
        if default is None and (field.is_required() or "Default:" in text):
            return text
        return f"{text} Default: {format_value(default)}.".strip()


@dataclass(frozen=True)
class _SettingOption:
    """A field of settings as an option of the command line."""

    section: str
    name: str
    kind: Any  # the annotation of the field
    help: str

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    def parameter(self) -> inspect.Parameter:
        """Return the option for typer, which accepts any text: the settings check and convert it."""
        from dragoman.core.settings import strip_optional

        if strip_optional(self.kind) is bool:
            option = self._option(f"{self.flag}/--no-{self.flag.removeprefix('--')}")
            return _parameter(self.name, Annotated[bool | None, option])
        return _parameter(self.name, Annotated[str | None, self._option(self.flag, _metavar(self.kind, self.name))])

    def _option(self, names: str, metavar: str | None = None) -> Any:
        panel = self.section.capitalize()
        return typer.Option(names, metavar=metavar, help=self.help, show_default=False, rich_help_panel=panel)

    def given(self, value: str | bool) -> GivenValue:
        from dragoman.core.settings import GivenValue, parse_option

        return GivenValue(value if isinstance(value, bool) else parse_option(self.kind, value), self.flag)


def _metavar(kind: Any, name: str) -> str:
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


def _config_option(sections: Sequence[_SettingsSection]) -> inspect.Parameter:
    names = ", ".join(section.name for section in sections)
    text = f"Settings file in YAML with the sections {names}; options override it."
    return _parameter(
        CONFIG, Annotated[Path | None, typer.Option("--config", "-c", metavar="FILE", help=text, show_default=False)]
    )


def _settings_values(
    parameters: Sequence[inspect.Parameter], sections: Sequence[_SettingsSection], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the settings arguments of a function, from options, the settings file and defaults."""
    if not sections:
        return {}
    from dragoman.core.settings import check_sections, read_settings, validate

    path: Path | None = options[CONFIG]
    kinds = {section.name: section.settings for section in sections}
    read = read_settings(path) if path else {}
    if {"kind", "format"} <= read.keys():  # the config.yaml of a model, which contains more than settings
        read = {name: value for name, value in read.items() if name in kinds}
    in_file = check_sections(read, kinds)
    values: dict[str, Any] = {}
    given = GivenSettings()
    for section in sections:
        typed = {
            option.name: option.given(options[option.name]) for option in section if options[option.name] is not None
        }
        merged = in_file.get(section.name, {}) | typed
        source = read[section.name].origin if section.name in read else str(path or "command line")
        values[section.name] = validate(section.default, merged, source, section.name)
        given[section.name] = frozenset(merged)
    return values | {parameter.name: given for parameter in parameters if parameter.annotation is GivenSettings}
