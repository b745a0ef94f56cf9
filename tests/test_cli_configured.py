"""Options made from settings: their names, help and defaults, what comes before what, and what is refused."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Annotated, Literal

import pytest
import typer
from pydantic import Field
from typer.main import get_command

from command import in_a_process, is_one_line
from dragoman.cli import main as command_line
from dragoman.cli.settings_options import CommandSettings, LazySettingsCommand, with_settings
from dragoman.core.settings import Settings, config_differences
from dragoman.training.config import TrainingConfig


class Net(Settings):
    order: int = Field(5, ge=2)
    """How many words: the last one is predicted
    from the others."""
    hidden: tuple[int, ...] = (400, 200)
    """Sizes of layers."""
    tied: bool = False
    """Whether embeddings are shared."""
    direct: bool = True
    """Whether there are direct connections."""
    shape: Literal["tanh", "relu"] = "tanh"
    """The bend."""
    start: Path | None = None
    """Weights to begin with."""
    dropout: float | None = Field(None, ge=0, lt=1)
    """Share left out. Default: as many as it takes."""
    name: str = "net"
    """What it is called."""
    parts: dict[str, int] = Field(default_factory=dict, json_schema_extra={"option": False})
    """What no option can hold."""


class Needy(Settings):
    size: int
    """There is no default."""


class Clash(Settings):
    seed: int = 5


class Nest(Settings):
    inner: dict[str, int] = Field(default_factory=dict)


PREFERRED = TrainingConfig(optimizer="adagrad", learning_rate=0.1)
HERE = __name__


@pytest.fixture
def verb(run, monkeypatch):
    """Run a verb that has these sections; what came out of it, and the settings it got."""

    def call(*arguments, stdin="", **sections):
        got: list[CommandSettings] = []

        @with_settings(**(sections or {"model": Net, "training": TrainingConfig}))
        def toy(
            text: Annotated[str, typer.Option("--text")],
            settings: CommandSettings,
            force: Annotated[bool, typer.Option("--force")] = False,
        ) -> None:
            """Train a toy.

            It plays.
            """
            got.append(settings)
            print(text, force)

        def app() -> typer.Typer:
            made = typer.Typer(context_settings={"help_option_names": ["-h", "--help"]}, rich_markup_mode=None)
            made.callback()(lambda: None)
            made.command("toy", cls=LazySettingsCommand)(toy)
            return made

        monkeypatch.setattr(command_line, "_app", app)
        outcome = run("toy", *arguments)
        return outcome, got[0] if got else None

    return call


@pytest.fixture
def settings_of(verb):
    """The settings that a good command line gives."""

    def call(*arguments, **sections):
        outcome, settings = verb("--text", "t", *arguments, **sections)
        assert outcome.code == 0 and outcome.out == "t False\n" and settings is not None, outcome.err
        return settings

    return call


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "exp.yaml"
    path.write_text("model: {order: 3, parts: {a: 1}}\ntraining:\n  learning_rate: 1e-3\n  seed: 7\n")
    return path


# -- help -----------------------------------------------------------------------------------------------------------


def helped(verb, **sections) -> str:
    """The help, on one line."""
    outcome, settings = verb("--help", **sections)
    assert outcome.code == 0 and settings is None
    return " ".join(outcome.out.split())


@pytest.mark.parametrize(
    "line",
    [
        "Usage: dragoman toy [OPTIONS] Train a toy. It plays. Options:",
        "--order N How many words: the last one is predicted from the others. Default: 5.",
        "--hidden N,N,... Sizes of layers. Default: 400,200.",
        "--tied / --no-tied Whether embeddings are shared. Default: false.",
        "--direct / --no-direct Whether there are direct connections. Default: true.",
        "--shape [tanh|relu] The bend. Default: tanh.",
        "--start FILE Weights to begin with. Default: none.",
        "--dropout X Share left out. Default: as many as it takes. --name",
        "--name TEXT What it is called. Default: net.",
        "-c, --config FILE Settings in YAML, in sections (model, training);",
        "--optimizer [sgd|momentum|adagrad|adam] The rule by which gradients become steps. Default: adam.",
        "--learning-rate X How large steps are. Default: 0.001.",
    ],
)
def test_help_says_what_there_is(verb, line):
    assert line in helped(verb)


def test_help_has_an_option_for_every_field_but_those_that_want_none(verb):
    told = helped(verb)
    for name in [*Net.model_fields, *TrainingConfig.model_fields]:
        assert (f"--{name.replace('_', '-')} " in told) == (name != "parts"), name


def test_help_has_the_defaults_of_the_command(verb):
    told = helped(verb, training=PREFERRED)
    assert "gradients become steps. Default: adagrad." in told
    assert "How large steps are. Default: 0.1." in told
    assert "--batch-size N" in told and "--order" not in told


def test_help_of_what_has_no_default(verb):
    assert "--size N There is no default. -h" in helped(verb, model=Needy)


# -- what comes before what -----------------------------------------------------------------------------------------


def test_defaults(settings_of):
    settings = settings_of()
    assert settings.model == Net() and settings.training == TrainingConfig()
    assert settings_of(training=PREFERRED).training == PREFERRED


def test_the_file_comes_before_the_defaults(settings_of, file):
    settings = settings_of("-c", file)
    assert settings.model == Net(order=3, parts={"a": 1})
    assert settings.training == TrainingConfig(learning_rate=0.001, seed=7)
    preferred = settings_of("--config", file, model=Net(name="mine", order=4), training=PREFERRED)
    assert preferred.model == Net(order=3, name="mine", parts={"a": 1})
    assert preferred.training == TrainingConfig(optimizer="adagrad", learning_rate=0.001, seed=7)


def test_the_command_line_comes_before_the_file(settings_of, file):
    settings = settings_of("--learning-rate", "0.5", "-c", file, "--order", 9)
    assert settings.model == Net(order=9, parts={"a": 1})
    assert settings.training == TrainingConfig(learning_rate=0.5, seed=7)


def test_what_equals_a_default_still_comes_before_the_file(settings_of, file):
    assert settings_of("-c", file, "--order", 5, "--seed", 1).as_dict() == {
        "model": {**Net(parts={"a": 1}).model_dump(mode="json")},
        "training": TrainingConfig(learning_rate=0.001).model_dump(mode="json"),
    }


@pytest.mark.parametrize(
    ("arguments", "changed"),
    [
        (["--tied"], {"tied": True}),
        (["--no-tied", "--no-direct"], {"direct": False}),
        (["--hidden", "400"], {"hidden": (400,)}),
        (["--hidden", "3,2,1"], {"hidden": (3, 2, 1)}),
        (["--hidden", ""], {"hidden": ()}),
        (["--shape", "relu"], {"shape": "relu"}),
        (["--start", "5"], {"start": Path("5")}),
        (["--name", "5"], {"name": "5"}),
        (["--name", "none"], {"name": "none"}),
        (["--dropout", "1e-3"], {"dropout": 0.001}),
        (["--dropout", "0"], {"dropout": 0.0}),
    ],
)
def test_kinds_of_values(settings_of, arguments, changed):
    assert settings_of(*arguments).model == Net(**changed)


def test_none_undoes_what_the_file_says(settings_of, tmp_path):
    path = tmp_path / "exp.yaml"
    path.write_text("model: {dropout: 0.5, tied: true}\n")
    assert settings_of("-c", path).model == Net(dropout=0.5, tied=True)
    assert settings_of("-c", path, "--dropout", "none", "--no-tied").model == Net()


def test_the_whole_configuration_is_plain(settings_of):
    one, two = settings_of(), settings_of("--learning-rate", "0.01", "--hidden", "400")
    assert one.as_dict()["model"]["hidden"] == [400, 200] and one.as_dict()["training"]["minutes"] is None
    told = ["model.hidden: 400,200 -> 400", "training.learning_rate: 0.001 -> 0.01"]
    assert config_differences(one.as_dict(), two.as_dict()) == told


def test_there_are_no_other_sections(settings_of):
    with pytest.raises(AttributeError, match="no section vocab"):
        _ = settings_of().vocab


def test_parameters_of_its_own(verb):
    outcome, _ = verb("--text", "mine", "--force")
    assert outcome.out == "mine True\n"


# -- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--order", "two"], "--order two: must be a whole number"),
        (["--order", "5.0"], "--order 5.0: must be a whole number"),
        (["--order", "true"], '--order "true": must be a whole number'),
        (["--order", "1"], "--order 1: must be at least 2"),
        (["--order", ""], '--order "": must be a whole number'),
        (["--learning-rate", "nan"], "--learning-rate nan: must be a finite number"),
        (["--learning-rate", "0"], "--learning-rate 0: must be above 0"),
        (["--warmup", "-5"], "--warmup -5: must be at least 0"),
        (["--hidden", "3,x"], "--hidden 3,x: must be a whole number"),
        (["--hidden", "3,,2"], '--hidden 3,"",2: must be a whole number'),
        (["--shape", "rellu"], "--shape rellu: must be 'tanh' or 'relu'; did you mean 'relu'?"),
        (["--name", "bad\udcff"], '--name "bad\\udcff": is not UTF-8 text'),
        (["--learnig-rate", "1"], "No such option: --learnig-rate"),
        (["--tied", "yes"], "unexpected extra argument"),
        (["--parts", "5"], "No such option: --parts"),
    ],
)
def test_bad_options(verb, arguments, says):
    outcome, settings = verb("--text", "t", *arguments)
    assert (outcome.code, outcome.out, settings) == (2, "", None)
    assert is_one_line(outcome.err) and says in outcome.err, outcome.err


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("training:\n  seed: 1\n  lerning_rate: 1\n", ":3: unknown key 'lerning_rate' in training; did you mean 'l"),
        ("trainig:\n  seed: 1\n", ":1: unknown section 'trainig'; did you mean 'training'?"),
        ("model:\n\n  order: one\n", ":3: order one: must be a whole number"),
        ("model:\n  order: 1\n", ":2: order 1: must be at least 2"),
        ("model:\n  - order\n", ":1: section model holds order;"),
        ("model: [\n", ":2: not YAML"),
    ],
)
def test_bad_files(verb, tmp_path, content, says):
    path = tmp_path / "exp.yaml"
    path.write_text(content)
    outcome, settings = verb("--text", "t", "-c", path)
    assert (outcome.code, outcome.out, settings) == (2, "", None)
    assert is_one_line(outcome.err) and f"{path}{says}" in outcome.err, outcome.err


def test_what_is_wrong_in_the_file_may_be_put_right_by_an_option(settings_of, tmp_path):
    path = tmp_path / "exp.yaml"
    path.write_text("model:\n  order: 1\n")
    assert settings_of("-c", path, "--order", 2).model == Net(order=2)


def test_what_is_missing(verb, settings_of, tmp_path):
    path = tmp_path / "exp.yaml"
    path.write_text("\nmodel:\n")
    assert "command line: size is missing in model" in verb("--text", "t", model=Needy)[0].err
    outcome, _ = verb("--text", "t", "-c", path, model=Needy)
    assert outcome.code == 2 and f"{path}:2: size is missing in model" in outcome.err
    assert settings_of("--size", 3, model=Needy).model == Needy(size=3)


# -- mistakes of whoever writes a verb --------------------------------------------------------------------------------


def test_names_that_two_sections_share_are_refused_at_once():
    decorate = with_settings(model=Clash, training=TrainingConfig)
    with pytest.raises(ValueError, match=r"seed: more than one option of this name"):
        decorate(lambda settings: None)


def test_names_that_a_parameter_has_are_refused_at_once():
    decorate = with_settings(training=TrainingConfig)
    with pytest.raises(ValueError, match=r"seed, threads: more than one"):
        decorate(lambda seed, threads, settings: None)
    with pytest.raises(ValueError, match=r"config: more than one"):
        decorate(lambda config, settings: None)


def test_options_that_a_parameter_has_are_refused_when_they_are_made():
    @with_settings(training=TrainingConfig)
    def toy(number: Annotated[int, typer.Option("--seed")], settings: CommandSettings) -> None:
        """Play."""

    with pytest.raises(ValueError, match=r"--seed: more than one"):
        toy.command()


def test_names_of_settings_that_wait_are_refused_when_they_are_used():
    toy = with_settings(model=f"{HERE}:Clash", training="dragoman.training.config:TrainingConfig")(
        lambda settings: None
    )
    with pytest.raises(ValueError, match=r"seed: more than one"):
        toy.command()


def test_fields_that_no_option_can_hold_are_refused():
    toy = with_settings(model=Nest)(lambda settings: None)
    with pytest.raises(TypeError, match=r"inner: no option can hold dict\[str, int\]"):
        toy.command()


# -- settings that wait -----------------------------------------------------------------------------------------------


def test_settings_may_be_named_by_their_place(settings_of, verb, file):
    lazy = {"model": f"{HERE}:Net", "training": f"{HERE}:PREFERRED"}
    settings = settings_of("-c", file, "--order", 9, **lazy)
    assert settings.model == Net(order=9, parts={"a": 1})
    assert settings.training == TrainingConfig(optimizer="adagrad", learning_rate=0.001, seed=7)
    assert "gradients become steps. Default: adagrad." in helped(verb, **lazy)


LISTING = """
import sys
from dragoman.cli import main
from dragoman.cli.settings_options import Configured, ConfiguredCommand, configured
from dragoman.cli.train import train

@configured(training="dragoman.training.config:TrainingConfig")
def toy(settings: Configured) -> None:
    "Play with a toy."
    print("seed", settings.training.seed)

train.command("toy", cls=ConfiguredCommand)(toy)
heavy = ("pydantic", "yaml", "numpy", "numba", "torch", "rich", "dragoman.core.settings")
code = main.main(sys.argv[1:])
print("imported:", *(name for name in heavy if name in sys.modules), file=sys.stderr)
sys.exit(code)
"""


def imported_by(*arguments) -> tuple[str, set[str]]:
    done = in_a_process(LISTING, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    return done.stdout, set(done.stderr.split()[1:])


def test_settings_wait_until_their_verb_is_used():
    assert imported_by("--help")[1] == set()
    out, heavy = imported_by("train", "--help")
    assert "Play with a toy." in out and not heavy - {"pydantic"}  # which typer itself may use
    assert "dragoman.core.settings" not in imported_by("train", "ngram", "--help")[1]
    out, heavy = imported_by("train", "toy", "--help")
    assert "--learning-rate X" in out and not heavy - {"pydantic", "yaml", "dragoman.core.settings"}
    out, heavy = imported_by("train", "toy", "--seed", "7")
    assert out == "seed 7\n" and "torch" not in heavy


def test_until_then_there_are_no_options():
    toy = with_settings(training="no.such.module:Anything")(lambda text, settings: None)
    app = typer.Typer()
    app.command("toy", cls=LazySettingsCommand)(toy)
    stub = get_command(app)
    assert {option for one in stub.params for option in one.opts} <= {"--install-completion", "--show-completion"}
