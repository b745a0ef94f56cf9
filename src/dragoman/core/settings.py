"""Settings of models and of training: each field is defined once, with its default, its limits and its description.

Values come from a YAML file, the command line or Python. A wrong value is reported in one line that names its origin
and the allowed values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Literal, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from dragoman.core.errors import (
    DataError,
    closest_match,
    did_you_mean,
    encoding_error,
    error_at_line,
    file_errors,
    shorten,
)
from dragoman.core.yaml_files import check_yaml_events

SURROGATES = re.compile("[\ud800-\udfff]")  # what Python decodes invalid UTF-8 to


class Settings(BaseModel):
    """The settings of a component. They are immutable, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


S = TypeVar("S", bound=Settings)


@dataclass(frozen=True)
class GivenValue:
    """A value given by the user, with its origin: `exp.yaml:4` or the option `--order`."""

    value: object  # the values of a mapping are `GivenValue`s
    origin: str


# -- reading a file -------------------------------------------------------------------------------------------------


def read_settings(path: str | Path) -> dict[str, GivenValue]:
    """Read a YAML file of plain values, each with the line of its key.

    Scalars follow the rules of YAML 1.2, so `1e-3` is a number and `no` is a word. Nothing in the file is executed.
    """
    source = str(path)
    with file_errors(Path(path)):
        content = Path(path).read_bytes()
    try:
        text = content.decode()
        check_yaml_events(text, source)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except UnicodeDecodeError as error:
        raise encoding_error(content, error.start, source) from None
    except yaml.MarkedYAMLError as error:
        mark, problem = error.problem_mark or error.context_mark, f"not YAML ({error.problem})"
        line = mark.line + 1 if mark else 1
        raise error_at_line(source, line, f"{problem}; check indentation, colons and quotes") from None
    except yaml.reader.ReaderError as error:
        line, problem = text.count("\n", 0, error.position) + 1, f"character U+{error.character:04X} is not allowed"
        raise error_at_line(source, line, f"{problem}; remove it") from None
    if node is None or not isinstance(node, yaml.MappingNode):
        line = node.start_mark.line + 1 if node else 1
        raise error_at_line(source, line, "no settings; write `section:` and under it, indented, `key: value` lines")
    return _parse_mapping(node, source)


def _parse_mapping(node: yaml.MappingNode, source: str) -> dict[str, GivenValue]:
    result: dict[str, GivenValue] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode) or SURROGATES.search(key.value):
            raise error_at_line(source, line, "a key that is not a name; write `key: value`")
        if key.value in result:
            first = result[key.value].origin.rpartition(":")[2]
            problem = f"key {_quote(key.value)} is repeated (first in line {first}); remove one of them"
            raise error_at_line(source, line, problem)
        result[key.value] = GivenValue(_parse_node(value, source), f"{source}:{line}")
    return result


def _parse_node(node: yaml.Node, source: str) -> object:
    if isinstance(node, yaml.MappingNode):
        return _parse_mapping(node, source)
    if isinstance(node, yaml.SequenceNode):
        return [_parse_node(item, source) for item in node.value]
    assert isinstance(node, yaml.ScalarNode)
    return node.value if node.style else parse_scalar(node.value)  # scalars with a style (quotes, blocks) are text


NULLS = {"", "~", "null", "Null", "NULL"}
BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
INTEGER = re.compile(r"[-+]?[0-9]{1,18}")  # a longer number fits no array: it is read as a float, and then rejected
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
NON_FINITE = re.compile(r"([-+]?)\.?(inf|nan)", re.IGNORECASE)  # also Python's `inf`, to reject it as a number


def parse_scalar(text: str) -> int | float | str | bool | None:
    """Return the value of an unquoted YAML 1.2 scalar.

    >>> [parse_scalar(text) for text in ("5", "1e-3", "true", "null", "no", "1:30")]
    [5, 0.001, True, None, 'no', '1:30']
    """
    if text in NULLS:
        return None
    return BOOLEANS[text] if text in BOOLEANS else parse_number(text)


def parse_number(text: str) -> int | float | str:
    """Return a number if the text is one, else the text."""
    if INTEGER.fullmatch(text):
        return int(text)
    if FLOAT.fullmatch(text):
        return float(text)
    match = NON_FINITE.fullmatch(text)
    return float("".join(match.groups())) if match else text


# -- validating -----------------------------------------------------------------------------------------------------


def check_sections(
    given: Mapping[str, GivenValue], kinds: Mapping[str, type[Settings]]
) -> dict[str, dict[str, GivenValue]]:
    """Return the sections of a file, or raise an error for an unknown or malformed one."""
    sections = {}
    for name, section in given.items():
        if name not in kinds:
            owner = next((other for other, kind in kinds.items() if name in kind.model_fields), None)
            problem = f"unknown section {_quote(name)}; {did_you_mean(name, kinds, 'the sections are')}"
            if owner is not None:
                problem = f"{name} belongs to section {owner}; write it under `{owner}:`, indented"
            raise DataError(f"{section.origin}: {problem}")
        if not isinstance(section.value, dict | None):
            remedy = "write `key: value` lines under it, indented"
            raise DataError(f"{section.origin}: section {name} holds {shorten(format_value(section.value))}; {remedy}")
        sections[name] = section.value or {}
    return sections


def validate(kind: type[S] | S, values: Mapping[str, object], source: str, section: str = "") -> S:
    """Return values as settings of this kind, or raise an error of one line for the first wrong value.

    An instance as `kind` provides the defaults. Values may be `GivenValue`s with their own origins; the others came
    from `source`. Types are strict: no numbers in quotes, no `true` for 1, nothing infinite.
    """
    settings, defaults = (kind, {}) if isinstance(kind, type) else (type(kind), kind.model_dump(mode="json"))
    given = {
        str(key): value if isinstance(value, GivenValue) else GivenValue(value, source) for key, value in values.items()
    }
    plain = defaults | {key: _without_origins(value) for key, value in given.items()}
    try:
        # Validated as JSON: there lists may become tuples, while numbers must be numbers.
        return settings.model_validate_json(json.dumps(plain, default=str), strict=True)
    except ValidationError as error:
        raise DataError(_error_message(error.errors(), settings, given, source, section)) from None


def _without_origins(value: object) -> object:
    if isinstance(value, GivenValue):
        return _without_origins(value.value)
    if isinstance(value, Mapping):
        return {str(key): _without_origins(item) for key, item in value.items()}
    return [_without_origins(item) for item in value] if isinstance(value, list | tuple) else value


def _error_message(
    errors: Sequence[ErrorDetails], kind: type[Settings], given: Mapping[str, GivenValue], source: str, section: str
) -> str:
    """Return one line for the first error; an unknown key comes first because it may explain the others."""
    error = min(errors, key=lambda error: error["type"] != "extra_forbidden")
    texts = {key: json.dumps(_without_origins(value), ensure_ascii=False, default=str) for key, value in given.items()}
    invalid = next((key for key, text in texts.items() if SURROGATES.search(text)), "")  # JSON cannot hold surrogates
    key = str(error["loc"][0]) if error["loc"] else invalid
    origin, where = given[key].origin if key in given else source, f" in {section}" if section else ""
    if error["type"] == "extra_forbidden" and key not in kind.model_fields:
        shown = key[:600]
        return f"{origin}: unknown key {_quote(key)}{where}; {did_you_mean(shown, kind.model_fields)}"
    if not key:  # values that exclude each other
        return f"{origin}: {section}{': ' if section else ''}{describe_requirement(error)}"
    if key not in given:
        return f"{origin}: {key} is missing{where}; give it a value"
    value, shown = given[key].value, shorten(format_value(given[key].value))
    if not origin.startswith("--"):  # an option is both origin and key
        origin, shown = f"{origin}: {key}", f"[{shown}]" if isinstance(value, list | tuple) else shown
    return f"{origin} {shown}: {describe_requirement(error)}{_suggest_value(value, kind.model_fields[key].annotation)}"


REQUIREMENTS = {
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "dict_type": "must be an object with named values",
    "model_type": "must be an object with named values",
    "model_attributes_type": "must be an object with named values",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text; put it in quotes",
    "missing": "is missing; give it a value",
    "extra_forbidden": "is unknown; remove it",
    "tuple_type": "must be a list in square brackets",
    "list_type": "must be a list in square brackets",
    "literal_error": "must be {expected}",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "value_error": "{error}",
    "json_invalid": "is not UTF-8 text; write it again",
}


def describe_requirement(error: ErrorDetails) -> str:
    """Return what a value must be, in the words of this program rather than of pydantic.

    >>> describe_requirement({"type": "greater_than_equal", "loc": ("n",), "msg": "...", "input": 0, "ctx": {"ge": 1}})
    'must be at least 1'
    """
    if error["type"] not in REQUIREMENTS:
        return " ".join(error["msg"].split())
    limits = {name: f"{value:g}" if isinstance(value, float) else value for name, value in error.get("ctx", {}).items()}
    return REQUIREMENTS[error["type"]].format(**limits)


def _suggest_value(value: object, annotation: object) -> str:
    match = closest_match(str(value), [str(choice) for choice in literal_choices(annotation)])
    if match is not None:
        return f"; did you mean {_quote(match)}?"
    is_quoted = isinstance(value, str) and not isinstance(parse_scalar(value), str)
    return "; remove the quotes" if is_quoted and strip_optional(annotation) in (int, float, bool) else ""


# -- types of fields ------------------------------------------------------------------------------------------------


def strip_optional(annotation: object) -> object:
    """Return `X` for the type `X | None`, and other types unchanged."""
    parts = get_args(annotation)
    if get_origin(annotation) not in (Union, UnionType) or len(parts) != 2 or type(None) not in parts:
        return annotation
    return parts[parts[0] is type(None)]


def literal_choices(annotation: object) -> tuple[object, ...]:
    """Return the values of a `Literal` type; empty for other types."""
    inner = strip_optional(annotation)
    return get_args(inner) if get_origin(inner) is Literal else ()


def item_type(annotation: object) -> object:
    """Return the item type of a list or tuple if all items have the same; None for other types."""
    inner = strip_optional(annotation)
    items = {get_args(item)[0] if get_origin(item) is Annotated else item for item in get_args(inner)} - {Ellipsis}
    return items.pop() if get_origin(inner) in (list, tuple) and len(items) == 1 else None


def parse_option(annotation: object, text: str) -> object:
    """Return the value of a command-line argument for a field of this type; text that does not fit stays text.

    >>> parse_option(tuple[int, ...], "400,200"), parse_option(float | None, "1e-3"), parse_option(float | None, "none")
    ([400, 200], 0.001, None)
    """
    inner = strip_optional(annotation)
    if inner is not annotation and text == "none":
        return None
    item = item_type(inner)
    if item is not None:
        return [parse_option(item, part.strip()) for part in text.split(",")] if text else []
    if inner in (int, float):
        return parse_number(text)
    return {str(choice): choice for choice in literal_choices(inner)}.get(text, text)


# -- formatting -----------------------------------------------------------------------------------------------------


def format_value(value: object) -> str:
    """Return a value as it is written on the command line.

    >>> [format_value(value) for value in (0.001, True, None, (400, 200), "adam", "5", "")]
    ['0.001', 'true', 'none', '400,200', 'adam', '"5"', '""']
    """
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {format_value(_without_origins(item))}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return ",".join(map(format_value, value)) or "[]"
    if not isinstance(value, str):
        return str(value)
    is_plain = value.isprintable() and value != "none" and isinstance(parse_scalar(value), str)
    return value if is_plain and value == value.strip() else json.dumps(value)


def _quote(name: str) -> str:
    return shorten(repr(name), end="…'")


def config_differences(old_config: Mapping[str, object], new_config: Mapping[str, object]) -> list[str]:
    """Return the differences between two nested configurations, one line per key.

    >>> old, new = {"training": {"learning_rate": 0.001, "seed": 1}}, {"training": {"learning_rate": 0.01, "seed": 1}}
    >>> config_differences(old, new)
    ['training.learning_rate: 0.001 -> 0.01']
    """
    before, after = dict(_flatten(old_config)), dict(_flatten(new_config))
    names = dict.fromkeys([*before, *after])
    values = ((name, before.get(name, "not set"), after.get(name, "not set")) for name in names)
    return [f"{name}: {old} -> {new}" for name, old, new in values if old != new]


def _flatten(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield all leaf values as (dotted name, formatted value)."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", format_value(value)
