"""Settings: reading files, validating values, error messages of one line."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal

import pytest
import yaml
from hypothesis import given as drawn
from hypothesis import strategies as st
from pydantic import Field, ValidationError, model_validator

from dragoman.core.errors import DataError
from dragoman.core.settings import (
    GivenValue,
    Settings,
    check_sections,
    config_differences,
    format_value,
    item_type,
    literal_choices,
    parse_option,
    parse_scalar,
    read_settings,
    strip_optional,
    validate,
)
from dragoman.training.config import TrainingConfig


class Net(Settings):
    """A small network's settings."""

    order: int = Field(5, ge=2, le=9)
    """How many words."""
    hidden: tuple[int, ...] = (400,)
    tied: bool = False
    name: str = "net"
    start: Path | None = None
    shape: Literal["tanh", "relu"] | None = None
    dropout: float = Field(0.0, ge=0, lt=1)

    @model_validator(mode="after")
    def _go_together(self) -> Net:
        if self.tied and not self.hidden:
            raise ValueError("tied needs a hidden layer")
        return self


class RequiredSettings(Settings):
    size: int
    """There is no default."""


KINDS = {"model": Net, "training": TrainingConfig}


@pytest.fixture
def write_settings(tmp_path):
    """Write a file of settings."""

    def write(content: str | bytes) -> Path:
        path = tmp_path / "exp.yaml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def error_message(action, *arguments) -> str:
    """The error message of a call that fails, in one line."""
    with pytest.raises(DataError) as caught:
        action(*arguments)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 600, message
    return message


# -- reading --------------------------------------------------------------------------------------------------------


def test_values_have_their_lines(write_settings):
    path = write_settings(
        "# an experiment\nmodel: {order: 5, hidden: [400, 200]}\n\ntraining:\n  optimizer: adam\n  clip:\n"
    )
    read = read_settings(path)
    assert read == {
        "model": GivenValue(
            {"order": GivenValue(5, f"{path}:2"), "hidden": GivenValue([400, 200], f"{path}:2")}, f"{path}:2"
        ),
        "training": GivenValue(
            {"optimizer": GivenValue("adam", f"{path}:5"), "clip": GivenValue(None, f"{path}:6")}, f"{path}:4"
        ),
    }


def test_paths_may_be_strings_and_files_may_begin_with_a_byte_order_mark(write_settings):
    path = write_settings(b"\xef\xbb\xbfmodel:\r\n  order: 5\r\n")
    assert read_settings(str(path)) == {"model": GivenValue({"order": GivenValue(5, f"{path}:2")}, f"{path}:1")}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("5", 5), ("-5", -5), ("+5", 5), ("012", 12), ("5.", 5.0), (".5", 0.5), ("-2.5e3", -2500.0)),
        *(("1e-3", 0.001), ("1E5", 1e5), ("1e400", math.inf), (".inf", math.inf), ("-.INF", -math.inf)),
        *(("true", True), ("False", False), ("null", None), ("~", None), ("", None)),
        *(("no", "no"), ("on", "on"), ("1:30", "1:30"), ("0x1f", "0x1f"), ("2001-01-01", "2001-01-01")),
        *(("1_000", "1_000"), ("e5", "e5"), (".", "."), ("-", "-"), ("9" * 19, 1e19), ("٣", "٣")),
    ],
)
def test_unquoted_scalars(text, value):
    assert parse_scalar(text) == value and type(parse_scalar(text)) is type(value)


def test_nan_is_parsed():
    assert math.isnan(parse_scalar(".nan")) and math.isnan(parse_scalar("nan"))


def test_quoted_scalars_are_text(write_settings):
    path = write_settings("a: '5'\nb: \"true\"\nc: |\n  1e-3\nd: 1e-3\n")
    assert [given.value for given in read_settings(path).values()] == ["5", "true", "1e-3\n", 0.001]


def test_files_written_by_pyyaml_are_read(write_settings):
    values = {"model": {"a": 1e-05, "b": None, "c": [1, 2], "d": "no", "e": "5", "f": True, "g": -0.5, "h": "x: y"}}
    read = read_settings(write_settings(yaml.safe_dump(values)))["model"].value
    assert {name: given.value for name, given in read.items()} == values["model"]


DEEP = "a: " + "[" * 50_000
BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"


@pytest.mark.parametrize(
    ("content", "line", "expected"),
    [
        (b"model:\n  order: \xff\n", 2, "not UTF-8 (byte 0xff at column 10); convert it"),
        (b"\xef\xbb\xbfmodel:\n  order: \xff\n", 2, "not UTF-8 (byte 0xff at column 10); convert it"),
        ("model:\n  order: [5\n", 3, "not YAML"),
        ("model:\n\torder: 5\n", 2, "not YAML"),
        ("model: 'open\n", 2, "not YAML"),
        ("a: 1\n---\nb: 2\n", 2, "not YAML"),
        ("model:\n  order: \x07\n", 2, "U+0007 is not allowed"),
        ("model:\n  order: a\0\n", 2, "U+0000 is not allowed"),
        ("", 1, "no settings; write `section:`"),
        ("# nothing\n", 1, "no settings"),
        ("\n- a\n- b\n", 2, "no settings"),
        ("just words\n", 1, "no settings"),
        ("model:\n  order: 5\n  tied: true\n  order: 6\n", 4, "key 'order' is repeated (first in line 2)"),
        ("model: {}\ntraining: {}\nmodel: {}\n", 3, "key 'model' is repeated (first in line 1)"),
        ("model:\n  'order': 5\n  order: 5\n", 3, "is repeated"),
        ("model:\n  [a, b]: 5\n", 2, "not a name"),
        (BOMB, 2, "alias *a; write the value itself"),
        ("a: &a\n  b: *a\n", 2, "alias *a"),
        ("model:\n  order: !!python/object/apply:os.system [true]\n", 2, "tag tag:yaml.org,2002:python/object/apply"),
        ("model: !!str 5\n", 1, "tag tag:yaml.org,2002:str"),
        (DEEP, 1, "nested more than 8 deep"),
        ("a:\n" + "".join(" " * depth + "b:\n" for depth in range(1, 2000)), 9, "nested more than 8 deep"),
    ],
)
def test_invalid_files_are_refused(write_settings, content, line, expected):
    path = write_settings(content)
    message = error_message(read_settings, path)
    assert message.startswith(f"{path}:{line}: ") and expected in message, message


def test_missing_files_are_refused(tmp_path):
    assert error_message(read_settings, tmp_path / "no.yaml") == f"{tmp_path / 'no.yaml'}: no such file"
    assert error_message(read_settings, tmp_path).startswith(f"{tmp_path}: is a directory; ")


@drawn(st.binary(max_size=40) | st.text(alphabet="ab:{}[]-?&*!|>'\"#%@, \n\t\\x5.~", max_size=40).map(str.encode))
def test_any_file_is_read_or_refused_in_one_line(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(content)
    try:
        read = read_settings(path)
    except DataError as error:
        assert str(error).startswith(f"{path}:") and "\n" not in str(error)
        return
    assert all(isinstance(given, GivenValue) for given in read.values())


# -- sections -------------------------------------------------------------------------------------------------------


def test_known_sections(write_settings):
    path = write_settings("model:\ntraining:\n  seed: 7\n")
    assert check_sections(read_settings(path), KINDS) == {"model": {}, "training": {"seed": GivenValue(7, f"{path}:3")}}
    assert check_sections({}, KINDS) == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("model: {}\ntrainin: {}\n", ":2: unknown section 'trainin'; did you mean 'training'?"),
        ("zoo: 5\n", ":1: unknown section 'zoo'; the sections are model, training"),
        ("\nlearning_rate: 1\n", ":2: learning_rate belongs to section training; write it under `training:`, indented"),
        ("model: 5\n", ":1: section model holds 5; write `key: value` lines under it, indented"),
        ("model: [order, 5]\n", ":1: section model holds order,5; write"),
    ],
)
def test_unknown_sections_are_refused(write_settings, content, message):
    assert message in error_message(check_sections, read_settings(write_settings(content)), KINDS)


# -- validating -----------------------------------------------------------------------------------------------------


def read_section(path: Path, name: str) -> Settings:
    sections = check_sections(read_settings(path), KINDS)
    return validate(KINDS[name], sections[name], str(path), name)


def test_valid_values(write_settings):
    path = write_settings(
        "model: {order: 3, hidden: [400, 200], tied: true, start: a/b, shape: relu}\n"
        "training:\n  learning_rate: 1e-3\n  clip: 5\n  minutes: null\n"
    )
    net, training = read_section(path, "model"), read_section(path, "training")
    assert net == Net(order=3, hidden=(400, 200), tied=True, start=Path("a/b"), shape="relu")
    assert training == TrainingConfig(learning_rate=0.001, clip=5.0, minutes=None)
    assert isinstance(training.clip, float)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("order: 1", "order 1: must be at least 2"),
        ("order: 10", "order 10: must be at most 9"),
        ("dropout: -0.5", "dropout -0.5: must be at least 0"),
        ("dropout: 1", "dropout 1: must be below 1"),
        ("order: 5.0", "order 5.0: must be a whole number"),
        ("order: 1e1", "order 10.0: must be a whole number"),
        ("order: five", "order five: must be a whole number"),
        ("order: '5'", 'order "5": must be a whole number; remove the quotes'),
        ("order: true", "order true: must be a whole number"),
        ("order: null", "order none: must be a whole number"),
        ("order: [5]", "order [5]: must be a whole number"),
        ("order: {a: 5}", "order {a: 5}: must be a whole number"),
        ("order: " + "9" * 200, "order 1e+200: must be a whole number"),
        ("order: " + "9" * 5000, "order inf: must be a whole number"),
        ("dropout: true", "dropout true: must be a number"),
        ("dropout: '1e-3'", 'dropout "1e-3": must be a number; remove the quotes'),
        ("dropout: .nan", "dropout nan: must be a finite number"),
        ("dropout: nan", "dropout nan: must be a finite number"),
        ("dropout: .inf", "dropout inf: must be a finite number"),
        ("dropout: 1e999", "dropout inf: must be a finite number"),
        ("tied: 1", "tied 1: must be true or false"),
        ("tied: yes", "tied yes: must be true or false"),
        ("tied: 'true'", 'tied "true": must be true or false; remove the quotes'),
        ("name: 5", "name 5: must be text; put it in quotes"),
        ("hidden: 400", "hidden 400: must be a list in square brackets"),
        ("hidden: [400, x]", "hidden [400,x]: must be a whole number"),
        ("shape: rellu", "shape rellu: must be 'tanh' or 'relu'; did you mean 'relu'?"),
        ("shape: 7", "shape 7: must be 'tanh' or 'relu'"),
        ('name: "\\ud800"', 'name "\\ud800": is not UTF-8 text; write it again'),
        ('hidden: ["\\ud800"]', 'hidden ["\\ud800"]: is not UTF-8 text; write it again'),
        ('"\\ud800": 5', "a key that is not a name; write `key: value`"),
        ("oder: 5", "unknown key 'oder' in model; did you mean 'order'?"),
        ("colour: 5", "unknown key 'colour' in model; choose from order, hidden, tied, name, start, shape, dropout"),
        ("{oder: 5, order: 1}", "unknown key 'oder' in model; did you mean 'order'?"),
    ],
)
def test_invalid_values_are_refused(write_settings, line, expected):
    path = write_settings(f"training:\n  seed: 1\nmodel:\n  {line}\n")
    message = error_message(read_section, path, "model")
    assert message == f"{path}:4: {expected}"


def test_a_misspelled_key_has_a_suggestion(write_settings):
    path = write_settings("training:\n  optimizer: adam\n\n  lerning_rate: 0.1\n")
    expected = f"{path}:4: unknown key 'lerning_rate' in training; did you mean 'learning_rate'?"
    assert error_message(read_section, path, "training") == expected


def test_conflicting_values_are_refused(write_settings):
    path = write_settings("model:\n  tied: true\n  hidden: []\n")
    assert error_message(read_section, path, "model") == f"{path}: model: tied needs a hidden layer"


def test_missing_values_are_refused():
    assert (
        error_message(validate, RequiredSettings, {}, "exp.yaml", "model")
        == "exp.yaml: size is missing in model; give it a value"
    )
    assert "unknown key 'sise'; did you mean 'size'?" in error_message(
        validate, RequiredSettings, {"sise": 5}, "exp.yaml"
    )


def test_values_from_python():
    assert validate(Net, {"hidden": (3, 2), "start": Path("a")}, "fit") == Net(hidden=(3, 2), start=Path("a"))
    assert error_message(validate, TrainingConfig, {"clip": 0}, "fit") == "fit: clip 0: must be above 0"


def test_values_from_options_are_reported_with_the_option():
    wrong = {"order": GivenValue(1, "--order"), "hidden": GivenValue([1, "x"], "--hidden")}
    assert error_message(validate, Net, wrong, "exp.yaml") == "--order 1: must be at least 2"
    del wrong["order"]
    assert error_message(validate, Net, wrong, "exp.yaml") == "--hidden 1,x: must be a whole number"


def test_an_instance_provides_defaults():
    base = Net(order=3, hidden=(7, 8), start=Path("a"))
    assert validate(base, {"order": GivenValue(4, "--order")}, "x") == Net(order=4, hidden=(7, 8), start=Path("a"))
    assert validate(base, {}, "x") == base


def test_long_values_are_truncated_in_messages():
    assert error_message(validate, Net, {"order": "x" * 10_000}, "x").count("x") < 70
    assert error_message(validate, Net, {"y" * 10_000: 5}, "x").count("y") < 70
    assert (
        error_message(validate, Net, {"order": "two\nlines"}, "x") == 'x: order "two\\nlines": must be a whole number'
    )


def test_settings_are_immutable_and_finite():
    with pytest.raises(ValidationError):
        Net().order = 7
    with pytest.raises(ValidationError):
        TrainingConfig(learning_rate=math.inf)
    with pytest.raises(ValidationError):
        Net(oder=5)
    assert Net.model_fields["order"].description == "How many words."


# -- types, words of the command line ---------------------------------------------------------------------------------


def test_type_helpers():
    assert strip_optional(int | None) is int and strip_optional(None | int) is int and strip_optional(int) is int
    assert strip_optional(int | str | None) == int | str | None
    assert literal_choices(Literal["a", "b"] | None) == ("a", "b") and literal_choices(tuple[str, str]) == ()
    assert item_type(tuple[int, ...]) is item_type(list[int] | None) is item_type(tuple[int, int]) is int
    assert item_type(tuple[Annotated[int, Field(ge=1)], ...]) is int
    assert item_type(tuple[int, str]) is item_type(int) is item_type(Literal["a"]) is None


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        *((int, "5", 5), (int, "five", "five"), (int, "true", "true"), (int, "", ""), (int, "none", "none")),
        *((float, "1e-3", 0.001), (float | None, "none", None), (int | None, "5", 5)),
        *((str, "5", "5"), (str, "none", "none"), (str | None, "none", None), (Path, "a/b", "a/b")),
        *((tuple[int, ...], "400,200", [400, 200]), (tuple[int, ...], "400, 200", [400, 200])),
        *((tuple[int, ...], "", []), (tuple[str, ...], "5", ["5"]), (list[float] | None, "none", None)),
        *((Literal[1, 2], "2", 2), (Literal["1", "2"], "2", "2"), (Literal["a"], "b", "b")),
    ],
)
def test_options_are_parsed_by_type(kind, text, value):
    assert parse_option(kind, text) == value and type(parse_option(kind, text)) is type(value)


# -- differences ------------------------------------------------------------------------------------------------------


def test_config_differences():
    old = {"model": {"order": 5, "hidden": (400, 200)}, "training": {"learning_rate": 0.001, "seed": 1, "clip": None}}
    new = {"model": {"order": 5, "hidden": [400]}, "training": {"learning_rate": 0.01, "seed": 1, "clip": 5.0}}
    assert config_differences(old, new) == [
        "model.hidden: 400,200 -> 400",
        "training.learning_rate: 0.001 -> 0.01",
        "training.clip: none -> 5.0",
    ]
    assert config_differences(old, old) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ((1, 2), [1, 2], None),
        (True, 1, "true -> 1"),
        ("5", 5, '"5" -> 5'),
        ("none", None, '"none" -> none'),
        ("", None, '"" -> none'),
        ([], [0], "[] -> 0"),
        ("two words", "two\nlines", 'two words -> "two\\nlines"'),
    ],
)
def test_different_values_are_shown_differently(old, new, expected):
    assert config_differences({"a": old}, {"a": new}) == ([f"a: {expected}"] if expected else [])


def test_keys_of_one_config_differ():
    assert config_differences({"a": 1, "b": {"c": 2}}, {"d": {"e": 3}}) == [
        "a: 1 -> not set",
        "b.c: 2 -> not set",
        "d.e: not set -> 3",
    ]
    assert config_differences({"a": {}}, {"a": {"b": 1}}) == ["a: {} -> not set", "a.b: not set -> 1"]


@drawn(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_numbers_are_compared_exactly(old, new):
    differences = config_differences({"a": old}, {"a": new})
    assert bool(differences) == (old != new or math.copysign(1, old) != math.copysign(1, new))
    assert float(format_value(old)) == old
