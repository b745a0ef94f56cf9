"""Settings of models and of training: what may be set, its default and its meaning, each said once.

They come from a YAML file, from the command line or from Python; wherever a wrong one came from, it is refused in one
line that names the place and what is allowed.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from dragoman.core.errors import DataError, error_at_line, file_errors

MAX_DEPTH = 8  # lists and mappings inside each other: more than anybody needs, few enough for any stack
MAX_SHOWN_CHARACTERS = 60  # characters of a value that a message shows
SURROGATES = re.compile("[\ud800-\udfff]")  # of characters: what Python makes of bytes that are not UTF-8


class Settings(BaseModel):
    """A component's settings. They never change, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


S = TypeVar("S", bound=Settings)


@dataclass(frozen=True)
class GivenValue:
    """A value that somebody gave, and where: `exp.yaml:4`, or the option `--order`."""

    value: Any  # of a mapping: names, each with what was given for it
    origin: str


# -- reading a file -------------------------------------------------------------------------------------------------


def read_settings(path: str | Path) -> dict[str, GivenValue]:
    """What a YAML file gives: plain values under names, and of each name the line it stands on.

    Scalars are understood by YAML 1.2's rules, so `1e-3` is a number and `no` a word. Nothing that a file says is run.
    """
    source = str(path)
    text = _read_text(Path(path), source)
    try:
        _check_yaml_events(text, source)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise error_at_line(source, line, f"not YAML ({error.problem}); check indentation, colons and quotes") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise error_at_line(source, line, f"character U+{error.character:04X} is not allowed; take it out") from None
    if node is None or not isinstance(node, yaml.MappingNode):
        line = node.start_mark.line + 1 if node else 1
        raise error_at_line(source, line, "no settings; write `section:` and under it, indented, `key: value` lines")
    return _parse_mapping(node, source)


def _read_text(path: Path, source: str) -> str:
    with file_errors(path):
        raw = path.read_bytes()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line, byte = error.object.count(b"\n", 0, error.start) + 1, error.object[error.start]
        raise error_at_line(
            source, line, f"not UTF-8 (byte 0x{byte:02x}); convert it, for example with iconv -f LATIN1 -t UTF-8"
        ) from None


def _check_yaml_events(text: str, source: str) -> None:
    """Refuse what settings have no need of, before anything is built: a few lines of it can fill a memory."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise error_at_line(source, line, f"alias *{event.anchor}; write the value out")
        if getattr(event, "tag", None) is not None:
            raise error_at_line(source, line, f"tag {event.tag}; write the value without it")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise error_at_line(
                source, line, f"nested more than {MAX_DEPTH} deep; write `section:` and `key: value` lines"
            )


def _parse_mapping(node: yaml.MappingNode, source: str) -> dict[str, GivenValue]:
    result: dict[str, GivenValue] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode) or SURROGATES.search(key.value):
            raise error_at_line(source, line, "a key that is not a name; write `key: value`")
        if key.value in result:
            first = result[key.value].origin.rpartition(":")[2]
            raise error_at_line(
                source, line, f"key {_quote(key.value)} a second time (first in line {first}); leave one of them"
            )
        result[key.value] = GivenValue(_parse_node(value, source), f"{source}:{line}")
    return result


def _parse_node(node: yaml.Node, source: str) -> Any:
    if isinstance(node, yaml.MappingNode):
        return _parse_mapping(node, source)
    if isinstance(node, yaml.SequenceNode):
        return [_parse_node(item, source) for item in node.value]
    assert isinstance(node, yaml.ScalarNode)
    return node.value if node.style else parse_scalar(node.value)  # a style: it stands in quotes, or is a block of text


NULLS = {"", "~", "null", "Null", "NULL"}
BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
INTEGER = re.compile(r"[-+]?[0-9]{1,18}")  # what has more digits fits no array: it is a real number, and refused as one
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
NON_FINITE = re.compile(
    r"([-+]?)\.?(inf|nan)", re.IGNORECASE
)  # `inf` as Python writes it too: to be refused as a number


def parse_scalar(text: str) -> Any:
    """What an unquoted word of YAML 1.2 means.

    >>> [scalar(text) for text in ("5", "1e-3", "true", "null", "no", "1:30")]
    [5, 0.001, True, None, 'no', '1:30']
    """
    if text in NULLS:
        return None
    return BOOLEANS[text] if text in BOOLEANS else parse_number(text)


def parse_number(text: str) -> int | float | str:
    """A number, where a text is one; else the text as it is."""
    if INTEGER.fullmatch(text):
        return int(text)
    if FLOAT.fullmatch(text):
        return float(text)
    special = NON_FINITE.fullmatch(text)
    return float("".join(special.groups())) if special else text


# -- validating -----------------------------------------------------------------------------------------------------


def check_sections(
    given: Mapping[str, GivenValue], kinds: Mapping[str, type[Settings]]
) -> dict[str, dict[str, GivenValue]]:
    """The sections of a file, which must be among those there are."""
    for name, section in given.items():
        if name not in kinds:
            raise DataError(f"{section.origin}: {_unknown_section_message(name, kinds)}")
        if not isinstance(section.value, dict | None):
            remedy = "write `key: value` lines under it, indented"
            raise DataError(f"{section.origin}: section {name} holds {_truncated(section.value)}; {remedy}")
    return {name: section.value or {} for name, section in given.items()}


def _unknown_section_message(name: str, kinds: Mapping[str, type[Settings]]) -> str:
    for section, kind in kinds.items():
        if name in kind.model_fields:
            return f"{name} belongs to section {section}; write it under `{section}:`, indented"
    return f"unknown section {_quote(name)}; {_suggest_name(name, kinds, 'the sections are')}"


def validate(kind: type[S] | S, values: Mapping[str, Any], source: str, section: str = "") -> S:
    """Values as settings of some kind, or one line about the first that will not do.

    Of an instance, its own values are the defaults. Values may be `Given`, which know their places; others came from
    `source`. Types are taken at their word: no number in quotes, no `true` for 1, nothing infinite.
    """
    settings, defaults = (kind, {}) if isinstance(kind, type) else (type(kind), kind.model_dump(mode="json"))
    given = {
        str(key): value if isinstance(value, GivenValue) else GivenValue(value, source) for key, value in values.items()
    }
    raw = defaults | {key: _without_origins(one) for key, one in given.items()}
    try:
        # By way of JSON, whose lists may become tuples while numbers must be numbers.
        return settings.model_validate_json(json.dumps(raw, default=str), strict=True)
    except ValidationError as error:
        raise DataError(_error_message(error.errors(), settings, given, source, section)) from None


def _without_origins(value: Any) -> Any:
    """A value without the places of its parts."""
    if isinstance(value, GivenValue):
        return _without_origins(value.value)
    if isinstance(value, Mapping):
        return {str(key): _without_origins(one) for key, one in value.items()}
    return [_without_origins(one) for one in value] if isinstance(value, list | tuple) else value


def _error_message(
    errors: Sequence[ErrorDetails], kind: type[Settings], given: Mapping[str, GivenValue], source: str, section: str
) -> str:
    """One line for the first of several errors: for an unknown key, if there is one, which may explain the others."""
    error = min(errors, key=lambda error: error["type"] != "extra_forbidden")
    key = str(error["loc"][0]) if error["loc"] else _key_with_invalid_text(given)
    place = given[key].origin if key in given else source
    if error["type"] == "extra_forbidden" and key not in kind.model_fields:
        inside = f" in {section}" if section else ""
        return f"{place}: unknown key {_quote(key)}{inside}; {_suggest_name(key, kind.model_fields, 'there are')}"
    if key in given:
        value, annotation = given[key].value, kind.model_fields[key].annotation
        return f"{_describe_value(key, given[key])}: {_requirement_message(error)}{_suggest_value(value, annotation)}"
    if key:
        return f"{place}: {key} is missing{f' in {section}' if section else ''}; give it a value"
    return f"{place}: {section}{': ' if section else ''}{_requirement_message(error)}"  # values that do not go together


def _key_with_invalid_text(given: Mapping[str, GivenValue]) -> str:
    """The name of a value with half a character in it, which no UTF-8 and so no JSON can hold; none: an empty one."""
    texts = {key: json.dumps(_without_origins(one), ensure_ascii=False, default=str) for key, one in given.items()}
    return next((key for key, text in texts.items() if SURROGATES.search(text)), "")


def _describe_value(key: str, given: GivenValue) -> str:
    """A value, its name and its place; an option is its own place."""
    value = _truncated(given.value)
    if given.origin.startswith("--"):
        return f"{given.origin} {value}"
    return f"{given.origin}: {key} {f'[{value}]' if isinstance(given.value, list | tuple) else value}"


REQUIREMENTS = {
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "string_type": "must be text; put it in quotes",
    "tuple_type": "must be a list, such as [400, 200]",
    "list_type": "must be a list, such as [400, 200]",
    "literal_error": "must be {expected}",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "value_error": "{error}",
    "json_invalid": "is not UTF-8 text; write it anew",
}


def _requirement_message(error: ErrorDetails) -> str:
    """What pydantic asks of a value, in our words where we have some."""
    told = REQUIREMENTS.get(error["type"])
    if told is None:
        return " ".join(error["msg"].split())
    context = error.get("ctx", {})
    return told.format(**{name: f"{one:g}" if isinstance(one, float) else one for name, one in context.items()})


def _suggest_value(value: Any, annotation: Any) -> str:
    """What was probably meant."""
    names = [str(choice) for choice in literal_choices(annotation)]
    near = difflib.get_close_matches(str(value), names, n=1)
    if near:
        return f"; did you mean {_quote(near[0])}?"
    in_quotes = isinstance(value, str) and not isinstance(parse_scalar(value), str)
    return "; take away the quotes" if in_quotes and strip_optional(annotation) in (int, float, bool) else ""


def _suggest_name(name: str, known: Iterable[str], introduction: str) -> str:
    """The name that was probably meant, or else all there are."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {_quote(near[0])}?" if near else f"{introduction} {', '.join(known)}"


# -- types of fields ------------------------------------------------------------------------------------------------


def strip_optional(annotation: Any) -> Any:
    """`X` of the type `X | None`; of other types, the type itself."""
    parts = get_args(annotation)
    if get_origin(annotation) not in (Union, UnionType) or len(parts) != 2 or type(None) not in parts:
        return annotation
    return parts[parts[0] is type(None)]


def literal_choices(annotation: Any) -> tuple[Any, ...]:
    """The values that a `Literal` type has; none of other types."""
    inner = strip_optional(annotation)
    return get_args(inner) if get_origin(inner) is Literal else ()


def item_type(annotation: Any) -> Any:
    """The type of the items of a list or a tuple, if they are all of one type; None of other types."""
    inner = strip_optional(annotation)
    items = [_strip_annotated(item) for item in get_args(inner) if item is not Ellipsis]
    return items[0] if get_origin(inner) in (list, tuple) and len(set(items)) == 1 else None


def _strip_annotated(annotation: Any) -> Any:
    """The type itself, without what pydantic is told to check besides."""
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def parse_option(annotation: Any, text: str) -> Any:
    """What a word of the command line means for a field of this type; what makes no sense stays text.

    >>> from_text(tuple[int, ...], "400,200"), from_text(float | None, "1e-3"), from_text(float | None, "none")
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


# -- showing --------------------------------------------------------------------------------------------------------


def format_value(value: Any) -> str:
    """A value as one would write it on the command line.

    >>> [shown(value) for value in (0.001, True, None, (400, 200), "adam", "5", "")]
    ['0.001', 'true', 'none', '400,200', 'adam', '"5"', '""']
    """
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {format_value(_without_origins(one))}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return ",".join(map(format_value, value)) or "[]"
    if not isinstance(value, str):
        return str(value)
    is_plain = value.isprintable() and value != "none" and isinstance(parse_scalar(value), str)
    return value if is_plain and value == value.strip() else json.dumps(value)


def _truncated(value: Any) -> str:
    text = format_value(value)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else text[:MAX_SHOWN_CHARACTERS] + "..."


def _quote(name: str) -> str:
    text = repr(name)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else text[:MAX_SHOWN_CHARACTERS] + "...'"


def config_differences(old_config: Mapping[str, Any], new_config: Mapping[str, Any]) -> list[str]:
    """What differs between two nested configurations, a line each.

    >>> differences({"training": {"learning_rate": 0.001, "seed": 1}}, {"training": {"learning_rate": 0.01, "seed": 1}})
    ['training.learning_rate: 0.001 -> 0.01']
    """
    before, after = dict(_flatten(old_config)), dict(_flatten(new_config))
    names = dict.fromkeys([*before, *after])
    values = ((name, before.get(name, "not set"), after.get(name, "not set")) for name in names)
    return [f"{name}: {old} -> {new}" for name, old, new in values if old != new]


def _flatten(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """All values that hold no others, by their dotted names, as they are shown."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", format_value(value)
