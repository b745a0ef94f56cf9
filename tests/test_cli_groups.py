"""Options in groups: spread out on the command line, put together for the verb."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.main import get_command

from dragoman.cli.option_groups import OptionGroup, with_option_groups
from dragoman.cli.settings_options import CommandSettings, with_settings
from dragoman.cli.train import train
from dragoman.training.config import TrainingConfig


@dataclass(frozen=True)
class Size(OptionGroup):
    wide: Annotated[int, typer.Option("--width", help="How wide.")] = 3
    high: Annotated[int, typer.Option("--height", help="How high.")] = 4


@dataclass(frozen=True, kw_only=True)
class Box(OptionGroup):
    name: Annotated[str, typer.Option("--name", help="What is on the lid.")]
    size: Size
    lined: Annotated[bool, typer.Option("--lined", help="Whether there is felt in it.")] = False


got: list[object] = []


@with_option_groups
def pack(
    box: Box,
    lid: Annotated[str, typer.Option("--lid", help="What is on top.")] = "none",
) -> None:
    """Pack a box."""
    got.append((box, lid))


@with_option_groups
def stretch(size: Size = Size(high=9)) -> None:
    got.append(size)


@with_settings(training=TrainingConfig)
@with_option_groups
def train_box(box: Box, settings: CommandSettings) -> None:
    """Train a box."""
    got.append((box, settings.training.seed))


def run(verb, *arguments: str) -> object:
    """What the verb was called with."""
    app = typer.Typer(add_completion=False)
    app.command()(verb)
    command = verb.command() if hasattr(verb, "command") else get_command(app)
    got.clear()
    command(list(arguments), standalone_mode=False)
    return got[0]


def options_of(verb) -> list[str]:
    return list(inspect.signature(verb).parameters)


def test_a_group_is_spread_out_in_its_place() -> None:
    assert options_of(pack) == ["name", "wide", "high", "lined", "lid"]


def test_a_verb_gets_its_groups_as_they_were_typed() -> None:
    typed = run(pack, "--name", "tea", "--height", "7", "--lined", "--lid", "tin")
    assert typed == (Box(name="tea", size=Size(3, 7), lined=True), "tin")


def test_what_is_not_typed_has_the_defaults_of_the_group() -> None:
    assert run(pack, "--name", "tea") == (Box(name="tea", size=Size(3, 4), lined=False), "none")


def test_a_verb_may_have_defaults_of_its_own() -> None:
    assert run(stretch) == Size(3, 9)
    assert run(stretch, "--width", "1") == Size(1, 9)


def test_from_python_a_verb_takes_options_by_name() -> None:
    got.clear()
    pack(name="tea", wide=1)
    assert got == [(Box(name="tea", size=Size(1, 4)), "none")]
    with pytest.raises(TypeError, match="name"):
        pack(wide=1)
    with pytest.raises(TypeError, match="widht"):
        pack(name="tea", widht=1)


def test_groups_go_together_with_settings() -> None:
    assert run(train_box, "--name", "tea", "--seed", "8", "--width", "2") == (Box(name="tea", size=Size(2, 4)), 8)


def test_names_that_mean_two_things_are_refused() -> None:
    with pytest.raises(ValueError, match="wide"):

        @with_option_groups
        def twice(size: Size, wide: int = 1) -> None: ...


def test_options_of_a_group_and_settings_of_one_name_are_refused() -> None:
    @dataclass(frozen=True)
    class Sown(OptionGroup):
        seed: int = 1

    def sow(sown: Sown, settings: CommandSettings) -> None: ...

    sow.__annotations__.update(sown=Sown, settings=CommandSettings)  # a local class has no name to be found by
    with pytest.raises(ValueError, match="seed"):
        with_settings(training=TrainingConfig)(with_option_groups(sow))


# A translator has words on two sides, and asks for them by units.
OF_ONE_TEXT = [group.name for group in train.registered_commands if group.name != "translator"]


@pytest.mark.parametrize("kind", OF_ONE_TEXT)
def test_every_training_asks_for_words_in_the_same_way(kind, good) -> None:
    told = re.findall(r"^  (?:-o, )?(--[a-z-]+)", good("train", kind, "--help").out, re.MULTILINE)
    words = ["--vocab", "--min-count", "--max-size", "--replace-singletons", "--unknown", "--unknown-words", "--force"]
    assert told[told.index("--vocab") :][: len(words)] == words
