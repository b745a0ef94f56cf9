"""Options declared in groups and generated from settings."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from pydantic import Field

from command import is_one_line
from dragoman.cli.app import build_command
from dragoman.cli.commands import COMMANDS, TRAIN_COMMANDS
from dragoman.cli.main import main
from dragoman.cli.option_groups import GivenSettings, OptionGroup, with_option_groups
from dragoman.core.settings import Settings
from dragoman.training.config import TrainingConfig

calls: list[Any] = []


def call(function: Any, *arguments: object) -> Any:
    """Run a command and return what it appended to `calls`."""
    calls.clear()
    build_command(function)(list(map(str, arguments)), standalone_mode=False)
    return calls[0]


# -- groups ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Size(OptionGroup):
    panel = "Data"

    width: Annotated[int, typer.Option("--width", help="Width in metres.")] = 3
    height: Annotated[int, typer.Option("--height", help="Height in metres.")] = 4


@dataclass(frozen=True, kw_only=True)
class Box(OptionGroup):
    name: Annotated[str, typer.Option("--name", help="Label of the box.")]
    size: Size
    lined: Annotated[bool, typer.Option("--lined", help="Line the box.")] = False


@with_option_groups
def pack(box: Box, lid: Annotated[str, typer.Option("--lid", help="Kind of lid.")] = "none") -> None:
    """Pack a box."""
    calls.append((box, lid))


@with_option_groups
def stretch(size: Size = Size(height=9)) -> None:
    calls.append(size)


def test_groups_become_options_in_their_place() -> None:
    assert list(inspect.signature(pack).parameters) == ["name", "width", "height", "lined", "lid"]


def test_commands_receive_groups_with_given_values_and_defaults() -> None:
    expected = (Box(name="tea", size=Size(3, 7), lined=True), "tin")
    assert call(pack, "--name", "tea", "--height", "7", "--lined", "--lid", "tin") == expected
    assert call(pack, "--name", "tea") == (Box(name="tea", size=Size(3, 4), lined=False), "none")
    assert call(stretch) == Size(3, 9)
    assert call(stretch, "--width", "1") == Size(1, 9)


def test_commands_can_be_called_from_python() -> None:
    calls.clear()
    pack(name="tea", width=1)
    assert calls == [(Box(name="tea", size=Size(1, 4)), "none")]
    with pytest.raises(TypeError, match="name"):
        pack(width=1)
    with pytest.raises(TypeError, match="widht"):
        pack(name="tea", widht=1)


def test_two_options_of_one_name_raise() -> None:
    with pytest.raises(ValueError, match="width: more than one option"):

        @with_option_groups
        def repeated(size: Size, width: int = 1) -> None: ...


# -- settings ----------------------------------------------------------------------------------------------------------


class Net(Settings):
    order: int = Field(default=5, ge=2)
    """Number of words; the last is predicted
    from the others."""
    hidden: tuple[int, ...] = (400, 200)
    """Sizes of layers."""
    tied: bool = False
    """Share embeddings."""
    direct: bool = True
    """Add direct connections."""
    shape: Literal["tanh", "relu"] = "tanh"
    """Activation function."""
    start: Path | None = None
    """Initial weights."""
    dropout: float | None = Field(default=None, ge=0, lt=1)
    """Dropout probability. Default: chosen by size."""
    name: str = "net"
    """Name of the network."""
    parts: dict[str, int] = Field(default_factory=dict, json_schema_extra={"option": False})
    """Not an option."""


class Required(Settings):
    size: int
    """No default."""


PREFERRED = TrainingConfig(optimizer="adagrad", learning_rate=0.1)


@with_option_groups
def train_net(
    text: Annotated[str, typer.Option("--text")],
    model: Net,
    given: GivenSettings,
    size: Size,
    training: TrainingConfig = PREFERRED,
    force: Annotated[bool, typer.Option("--force")] = False,
) -> None:
    """Train a network."""
    calls.append((model, training, given))


@partial(with_option_groups, default_texts={"order": "as needed"})
def train_required(model: Required, other: Net) -> None:
    calls.append(model)


@pytest.fixture
def run_net(run: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run `dragoman next` with `train_net`, or another function, in its place."""

    def call_net(*arguments: object, function: Any = train_net) -> Any:
        calls.clear()
        monkeypatch.setattr("dragoman.cli.query.next_words", function)
        return run("next", *arguments)

    return call_net


@pytest.fixture
def settings_of(run_net: Any) -> Any:
    def call_net(*arguments: object) -> tuple[Net, TrainingConfig, GivenSettings]:
        outcome = run_net("--text", "t", *arguments)
        assert outcome.code == 0, outcome.err
        return calls[0]

    return call_net


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "exp.yaml"
    path.write_text("model: {order: 3, parts: {a: 1}}\ntraining:\n  learning_rate: 1e-3\n  seed: 7\n")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "--order N Number of words; the last is predicted from the others. Default: 5.",
        "--hidden N,N,... Sizes of layers. Default: 400,200.",
        "--tied / --no-tied Share embeddings. Default: false.",
        "--shape [tanh|relu] Activation function. Default: tanh.",
        "--start FILE Initial weights. Default: none.",
        "--dropout X Dropout probability. Default: chosen by size. --name",
        "-c, --config FILE Settings file in YAML with the sections model, training;",
        "--optimizer [sgd|momentum|adagrad|adam]",
        "Default: adagrad. --learning-rate X",
    ],
)
def test_help_shows_settings_with_defaults(run_net: Any, text: str) -> None:
    assert text in " ".join(run_net("--help").out.split())


def test_help_has_sections_in_order(run_net: Any) -> None:
    lines = run_net("--help").out.splitlines()
    titles = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["Data:", "Model:", "Training:", "Options:"]
    assert lines.index("Data:") < next(n for n, line in enumerate(lines) if "--width" in line) < lines.index("Model:")


def test_help_has_an_option_for_each_field(run_net: Any) -> None:
    text = run_net("--help").out
    for name in [*Net.model_fields, *TrainingConfig.model_fields]:
        assert (f"--{name.replace('_', '-')} " in text) == (name != "parts"), name


def test_help_of_settings_without_default_and_with_default_text(run_net: Any) -> None:
    text = " ".join(run_net("--help", function=train_required).out.split())
    assert "--size N No default. Other:" in text
    assert "from the others. Default: as needed." in text


def test_options_override_the_file_and_the_file_overrides_defaults(settings_of: Any, file: Path) -> None:
    assert settings_of() == (Net(), PREFERRED, {"model": frozenset(), "training": frozenset()})
    model, training, given = settings_of("-c", file)
    assert model == Net(order=3, parts={"a": 1})
    assert training == TrainingConfig(optimizer="adagrad", learning_rate=0.001, seed=7)
    assert given == {"model": {"order", "parts"}, "training": {"learning_rate", "seed"}}
    model, training, _ = settings_of("--learning-rate", "0.5", "-c", file, "--order", 5)
    assert model.order == 5  # a given value counts even if it is the default
    assert (training.learning_rate, training.seed) == (0.5, 7)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--tied"], {"tied": True}),
        (["--no-tied", "--no-direct"], {"direct": False}),
        (["--hidden", "3,2,1"], {"hidden": (3, 2, 1)}),
        (["--hidden", ""], {"hidden": ()}),
        (["--shape", "relu"], {"shape": "relu"}),
        (["--start", "5"], {"start": Path("5")}),
        (["--name", "5"], {"name": "5"}),
        (["--name", "none"], {"name": "none"}),
        (["--dropout", "1e-3"], {"dropout": 0.001}),
    ],
)
def test_options_are_converted_to_the_type_of_the_field(settings_of: Any, arguments: list[str], expected: Any) -> None:
    assert settings_of(*arguments)[0] == Net(**expected)


def test_none_removes_a_value_of_the_file(settings_of: Any, tmp_path: Path) -> None:
    path = tmp_path / "exp.yaml"
    path.write_text("model: {dropout: 0.5, tied: true}\n")
    assert settings_of("-c", path, "--dropout", "none", "--no-tied")[0] == Net()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--order", "two"], "--order two: must be a whole number"),
        (["--order", "1"], "--order 1: must be at least 2"),
        (["--order", ""], '--order "": must be a whole number'),
        (["--learning-rate", "nan"], "--learning-rate nan: must be a finite number"),
        (["--hidden", "3,,2"], '--hidden 3,"",2: must be a whole number'),
        (["--shape", "rellu"], "did you mean 'relu'?"),
        (["--name", "bad\udcff"], "is not UTF-8 text"),
        (["--learnig-rate", "1"], "No such option: --learnig-rate"),
        (["--tied", "yes"], "unexpected extra argument"),
    ],
)
def test_wrong_options_are_reported_in_one_line(run_net: Any, arguments: list[str], message: str) -> None:
    outcome = run_net("--text", "t", *arguments)
    assert (outcome.code, outcome.out, calls) == (2, "", [])
    assert is_one_line(outcome.err) and message in outcome.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("training:\n  seed: 1\n  lerning_rate: 1\n", ":3: unknown key 'lerning_rate' in training; did you mean 'l"),
        ("trainig:\n  seed: 1\n", ":1: unknown section 'trainig'; did you mean 'training'?"),
        ("model:\n\n  order: one\n", ":3: order one: must be a whole number"),
        ("model:\n  - order\n", ":1: section model"),
        ("model: [\n", ":2: not YAML"),
    ],
)
def test_wrong_files_are_reported_with_their_line(run_net: Any, tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "exp.yaml"
    path.write_text(content)
    outcome = run_net("--text", "t", "-c", path)
    assert (outcome.code, outcome.out, calls) == (2, "", [])
    assert is_one_line(outcome.err) and f"{path}{message}" in outcome.err


def test_missing_settings_are_reported(run_net: Any, tmp_path: Path) -> None:
    path = tmp_path / "exp.yaml"
    path.write_text("\nmodel:\n")
    assert "command line: size is missing in model" in run_net(function=train_required).err
    assert f"{path}:2: size is missing in model" in run_net("-c", path, function=train_required).err
    assert run_net("--size", 3, function=train_required).code == 0 and calls == [Required(size=3)]


def test_settings_that_share_a_name_with_another_option_raise() -> None:
    class Other(Settings):
        seed: int = 5

    def two_sections(model, training) -> None: ...  # type: ignore[no-untyped-def]
    def parameter(seed, training) -> None: ...  # type: ignore[no-untyped-def]

    two_sections.__annotations__ |= {"model": Other, "training": TrainingConfig}
    parameter.__annotations__ |= {"seed": int, "training": TrainingConfig}
    for function in (two_sections, parameter):
        with pytest.raises(ValueError, match="seed: more than one option"):
            with_option_groups(function)


def test_fields_that_no_option_can_hold_raise() -> None:
    class Nested(Settings):
        inner: dict[str, int] = Field(default_factory=dict)

    def nested(model) -> None: ...  # type: ignore[no-untyped-def]

    nested.__annotations__ |= {"model": Nested}
    with pytest.raises(TypeError, match=r"inner: no option can hold dict\[str, int\]"):
        with_option_groups(nested)


@pytest.mark.parametrize("kind", [kind for kind in TRAIN_COMMANDS if kind != "translator"])
def test_all_language_models_have_the_same_vocabulary_options(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", kind, "--help"]) == 0
    text = capsys.readouterr().out
    for option in ("--vocab", "--min-count", "--max-size", "--replace-singletons", "--unknown", "--unknown-words"):
        assert f"  {option} " in text


@pytest.mark.parametrize(
    "path", [*([name] for name in COMMANDS), *(["train", name] for name in TRAIN_COMMANDS)], ids=str
)
def test_help_has_no_names_of_the_code(path: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*path, "--help"]) == 0
    usage, options = re.split(r"\n\n(?=\S+.*:\n)", capsys.readouterr().out, maxsplit=1)
    assert not re.search(r"\bNone\b|\[\]|[<>]=|[a-z]_[a-z]", " ".join(options.split()))
    assert "{" not in usage.splitlines()[0] and "......" not in usage
    for text in re.split(r"\n  (?=-)", options):
        assert len(re.findall(r"[Dd]efault: ", text)) <= 1, f"several defaults: {text}"


@pytest.mark.parametrize("kind", ["feed-forward", "recurrent", "translator"])
def test_the_time_is_the_first_setting_of_training(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", kind, "--help"]) == 0
    training = capsys.readouterr().out.partition("\nTraining:\n")[2]
    names = [name for name in re.findall(r"^  (--[a-z-]+)", training, re.MULTILINE) if name != "--choose"]
    assert names[0] == "--minutes"
