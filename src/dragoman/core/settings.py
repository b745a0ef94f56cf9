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

from dragoman.core.errors import DataError, at, file_errors

DEEPEST = 8  # lists and mappings inside each other: more than anybody needs, few enough for any stack
LONGEST = 60  # characters of a value that a message shows
HALVES = re.compile("[\ud800-\udfff]")  # of characters: what Python makes of bytes that are not UTF-8


class Settings(BaseModel):
    """A component's settings. They never change, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


S = TypeVar("S", bound=Settings)


@dataclass(frozen=True)
class Given:
    """A value that somebody gave, and where: `exp.yaml:4`, or the option `--order`."""

    value: Any  # of a mapping: names, each with what was given for it
    place: str


# -- reading a file -------------------------------------------------------------------------------------------------


def read_settings(path: str | Path) -> dict[str, Given]:
    """What a YAML file gives: plain values under names, and of each name the line it stands on.

    Scalars are understood by YAML 1.2's rules, so `1e-3` is a number and `no` a word. Nothing that a file says is run.
    """
    source = str(path)
    text = _decoded(Path(path), source)
    try:
        _check_events(text, source)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise at(source, line, f"not YAML ({error.problem}); check indentation, colons and quotes") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise at(source, line, f"character U+{error.character:04X} is not allowed; take it out") from None
    if node is None or not isinstance(node, yaml.MappingNode):
        line = node.start_mark.line + 1 if node else 1
        raise at(source, line, "no settings; write `section:` and under it, indented, `key: value` lines")
    return _mapping(node, source)


def _decoded(path: Path, source: str) -> str:
    with file_errors(path):
        raw = path.read_bytes()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line, byte = error.object.count(b"\n", 0, error.start) + 1, error.object[error.start]
        raise at(
            source, line, f"not UTF-8 (byte 0x{byte:02x}); convert it, for example with iconv -f LATIN1 -t UTF-8"
        ) from None


def _check_events(text: str, source: str) -> None:
    """Refuse what settings have no need of, before anything is built: a few lines of it can fill a memory."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise at(source, line, f"alias *{event.anchor}; write the value out")
        if getattr(event, "tag", None) is not None:
            raise at(source, line, f"tag {event.tag}; write the value without it")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise at(source, line, f"nested more than {DEEPEST} deep; write `section:` and `key: value` lines")


def _mapping(node: yaml.MappingNode, source: str) -> dict[str, Given]:
    result: dict[str, Given] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode) or HALVES.search(key.value):
            raise at(source, line, "a key that is not a name; write `key: value`")
        if key.value in result:
            first = result[key.value].place.rpartition(":")[2]
            raise at(source, line, f"key {_quoted(key.value)} a second time (first in line {first}); leave one of them")
        result[key.value] = Given(_value(value, source), f"{source}:{line}")
    return result


def _value(node: yaml.Node, source: str) -> Any:
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, source)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, source) for item in node.value]
    assert isinstance(node, yaml.ScalarNode)
    return node.value if node.style else scalar(node.value)  # a style: it stands in quotes, or is a block of text


NULLS = {"", "~", "null", "Null", "NULL"}
TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
WHOLE = re.compile(r"[-+]?[0-9]{1,18}")  # what has more digits fits no array: it is a real number, and refused as one
REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
SPECIAL = re.compile(r"([-+]?)\.?(inf|nan)", re.IGNORECASE)  # `inf` as Python writes it too: to be refused as a number


def scalar(text: str) -> Any:
    """What an unquoted word of YAML 1.2 means.

    >>> [scalar(text) for text in ("5", "1e-3", "true", "null", "no", "1:30")]
    [5, 0.001, True, None, 'no', '1:30']
    """
    if text in NULLS:
        return None
    return TRUTHS[text] if text in TRUTHS else number(text)


def number(text: str) -> int | float | str:
    """A number, where a text is one; else the text as it is."""
    if WHOLE.fullmatch(text):
        return int(text)
    if REAL.fullmatch(text):
        return float(text)
    special = SPECIAL.fullmatch(text)
    return float("".join(special.groups())) if special else text


# -- validating -----------------------------------------------------------------------------------------------------


def sections(given: Mapping[str, Given], kinds: Mapping[str, type[Settings]]) -> dict[str, dict[str, Given]]:
    """The sections of a file, which must be among those there are."""
    for name, section in given.items():
        if name not in kinds:
            raise DataError(f"{section.place}: {_unknown_section(name, kinds)}")
        if not isinstance(section.value, dict | None):
            remedy = "write `key: value` lines under it, indented"
            raise DataError(f"{section.place}: section {name} holds {_short(section.value)}; {remedy}")
    return {name: section.value or {} for name, section in given.items()}


def _unknown_section(name: str, kinds: Mapping[str, type[Settings]]) -> str:
    for section, kind in kinds.items():
        if name in kind.model_fields:
            return f"{name} belongs to section {section}; write it under `{section}:`, indented"
    return f"unknown section {_quoted(name)}; {_instead(name, kinds, 'the sections are')}"


def validated(kind: type[S] | S, values: Mapping[str, Any], source: str, section: str = "") -> S:
    """Values as settings of some kind, or one line about the first that will not do.

    Of an instance, its own values are the defaults. Values may be `Given`, which know their places; others came from
    `source`. Types are taken at their word: no number in quotes, no `true` for 1, nothing infinite.
    """
    settings, defaults = (kind, {}) if isinstance(kind, type) else (type(kind), kind.model_dump(mode="json"))
    given = {str(key): value if isinstance(value, Given) else Given(value, source) for key, value in values.items()}
    raw = defaults | {key: _plain(one) for key, one in given.items()}
    try:
        # By way of JSON, whose lists may become tuples while numbers must be numbers.
        return settings.model_validate_json(json.dumps(raw, default=str), strict=True)
    except ValidationError as error:
        raise DataError(_told(error.errors(), settings, given, source, section)) from None


def _plain(value: Any) -> Any:
    """A value without the places of its parts."""
    if isinstance(value, Given):
        return _plain(value.value)
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _told(
    errors: Sequence[ErrorDetails], kind: type[Settings], given: Mapping[str, Given], source: str, section: str
) -> str:
    """One line for the first of several errors: for an unknown key, if there is one, which may explain the others."""
    error = min(errors, key=lambda error: error["type"] != "extra_forbidden")
    key = str(error["loc"][0]) if error["loc"] else _unwritable(given)
    place = given[key].place if key in given else source
    if error["type"] == "extra_forbidden" and key not in kind.model_fields:
        inside = f" in {section}" if section else ""
        return f"{place}: unknown key {_quoted(key)}{inside}; {_instead(key, kind.model_fields, 'there are')}"
    if key in given:
        value, annotation = given[key].value, kind.model_fields[key].annotation
        return f"{_named(key, given[key])}: {_requirement(error)}{_hint(value, annotation)}"
    if key:
        return f"{place}: {key} is missing{f' in {section}' if section else ''}; give it a value"
    return f"{place}: {section}{': ' if section else ''}{_requirement(error)}"  # values that do not go together


def _unwritable(given: Mapping[str, Given]) -> str:
    """The name of a value with half a character in it, which no UTF-8 and so no JSON can hold; none: an empty one."""
    texts = {key: json.dumps(_plain(one), ensure_ascii=False, default=str) for key, one in given.items()}
    return next((key for key, text in texts.items() if HALVES.search(text)), "")


def _named(key: str, given: Given) -> str:
    """A value, its name and its place; an option is its own place."""
    value = _short(given.value)
    if given.place.startswith("--"):
        return f"{given.place} {value}"
    return f"{given.place}: {key} {f'[{value}]' if isinstance(given.value, list | tuple) else value}"


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


def _requirement(error: ErrorDetails) -> str:
    """What pydantic asks of a value, in our words where we have some."""
    told = REQUIREMENTS.get(error["type"])
    if told is None:
        return " ".join(error["msg"].split())
    context = error.get("ctx", {})
    return told.format(**{name: f"{one:g}" if isinstance(one, float) else one for name, one in context.items()})


def _hint(value: Any, annotation: Any) -> str:
    """What was probably meant."""
    names = [str(choice) for choice in choices(annotation)]
    near = difflib.get_close_matches(str(value), names, n=1)
    if near:
        return f"; did you mean {_quoted(near[0])}?"
    in_quotes = isinstance(value, str) and not isinstance(scalar(value), str)
    return "; take away the quotes" if in_quotes and without_none(annotation) in (int, float, bool) else ""


def _instead(name: str, known: Iterable[str], introduction: str) -> str:
    """The name that was probably meant, or else all there are."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {_quoted(near[0])}?" if near else f"{introduction} {', '.join(known)}"


# -- types of fields ------------------------------------------------------------------------------------------------


def without_none(annotation: Any) -> Any:
    """`X` of the type `X | None`; of other types, the type itself."""
    parts = get_args(annotation)
    if get_origin(annotation) not in (Union, UnionType) or len(parts) != 2 or type(None) not in parts:
        return annotation
    return parts[parts[0] is type(None)]


def choices(annotation: Any) -> tuple[Any, ...]:
    """The values that a `Literal` type has; none of other types."""
    inner = without_none(annotation)
    return get_args(inner) if get_origin(inner) is Literal else ()


def item_of(annotation: Any) -> Any:
    """The type of the items of a list or a tuple, if they are all of one type; None of other types."""
    inner = without_none(annotation)
    items = [_bare(item) for item in get_args(inner) if item is not Ellipsis]
    return items[0] if get_origin(inner) in (list, tuple) and len(set(items)) == 1 else None


def _bare(annotation: Any) -> Any:
    """The type itself, without what pydantic is told to check besides."""
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def from_text(annotation: Any, text: str) -> Any:
    """What a word of the command line means for a field of this type; what makes no sense stays text.

    >>> from_text(tuple[int, ...], "400,200"), from_text(float | None, "1e-3"), from_text(float | None, "none")
    ([400, 200], 0.001, None)
    """
    inner = without_none(annotation)
    if inner is not annotation and text == "none":
        return None
    item = item_of(inner)
    if item is not None:
        return [from_text(item, part.strip()) for part in text.split(",")] if text else []
    if inner in (int, float):
        return number(text)
    return {str(choice): choice for choice in choices(inner)}.get(text, text)


# -- showing --------------------------------------------------------------------------------------------------------


def shown(value: Any) -> str:
    """A value as one would write it on the command line.

    >>> [shown(value) for value in (0.001, True, None, (400, 200), "adam", "5", "")]
    ['0.001', 'true', 'none', '400,200', 'adam', '"5"', '""']
    """
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {shown(_plain(one))}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return ",".join(map(shown, value)) or "[]"
    if not isinstance(value, str):
        return str(value)
    is_plain = value.isprintable() and value != "none" and isinstance(scalar(value), str)
    return value if is_plain and value == value.strip() else json.dumps(value)


def _short(value: Any) -> str:
    text = shown(value)
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."


def _quoted(name: str) -> str:
    text = repr(name)
    return text if len(text) <= LONGEST else text[:LONGEST] + "...'"


def differences(one: Mapping[str, Any], two: Mapping[str, Any]) -> list[str]:
    """What differs between two nested configurations, a line each.

    >>> differences({"training": {"learning_rate": 0.001, "seed": 1}}, {"training": {"learning_rate": 0.01, "seed": 1}})
    ['training.learning_rate: 0.001 -> 0.01']
    """
    before, after = dict(_leaves(one)), dict(_leaves(two))
    names = dict.fromkeys([*before, *after])
    values = ((name, before.get(name, "not set"), after.get(name, "not set")) for name in names)
    return [f"{name}: {old} -> {new}" for name, old, new in values if old != new]


def _leaves(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """All values that hold no others, by their dotted names, as they are shown."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", shown(value)
