"""The settings that `dragoman tune` tries: for each option a range of numbers, or a list of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from dragoman.core.errors import DataError
from dragoman.core.settings import GivenValue, Settings, validate
from dragoman.experiments.command_options import option_text, read_options

if TYPE_CHECKING:
    from optuna.trial import BaseTrial

SIGNIFICANT_DIGITS = 4  # of numbers that are tried
FORMS = "write {low: 1, high: 5} for a range, or a list of values in square brackets"

Value = bool | int | float | str | None


class Range(Settings):
    """A range of numbers: of whole numbers if both ends are whole numbers."""

    low: int | float
    """The lowest number."""
    high: int | float
    """The highest number."""
    log: bool = False
    """Try as many numbers from 1 to 10 as from 10 to 100."""
    step: int | float | None = None
    """Only numbers that are a multiple of this above the lowest."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.low >= self.high:
            raise ValueError("low must be below high")
        if self.log and self.low <= 0:
            raise ValueError("with log, low must be above 0")
        if self.step is not None and (self.log or self.step <= 0):
            raise ValueError("step must be above 0, and is not for log")
        if self.is_whole and isinstance(self.step, float):
            raise ValueError("the step between whole numbers must be a whole number")
        return self

    @property
    def is_whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)


@dataclass(frozen=True)
class Parameter:
    """An option with the values that are tried."""

    name: str
    origin: str  # the line in the file
    range: Range | None
    choices: tuple[Value, ...] = ()  # if there is no range

    @property
    def is_log(self) -> bool:
        return self.range is not None and self.range.log

    @property
    def is_number(self) -> bool:
        return self.range is not None

    def examples(self) -> Sequence[Value]:
        """Return the ends of the range, or all choices: values to check before anything starts."""
        return self.choices if self.range is None else (self.range.low, self.range.high)

    def suggest(self, trial: BaseTrial) -> Value:
        """Return the value for a trial; numbers are rounded."""
        bounds = self.range
        if bounds is None:
            return trial.suggest_categorical(self.name, self.choices)
        if bounds.is_whole:
            step = 1 if bounds.step is None else int(bounds.step)
            return trial.suggest_int(self.name, int(bounds.low), int(bounds.high), step=step, log=bounds.log)
        value = trial.suggest_float(self.name, bounds.low, bounds.high, step=bounds.step, log=bounds.log)
        return min(max(float(f"{value:.{SIGNIFICANT_DIGITS}g}"), float(bounds.low)), float(bounds.high))

    def describe(self) -> object:
        """Return the values as they are written in the file, to compare studies."""
        if self.range is None:
            return list(self.choices)
        return self.range.model_dump(exclude_defaults=True)


def read_search_space(section: GivenValue) -> list[Parameter]:
    """Read the section `search` of a file."""
    return [_read_parameter(name, given) for name, given in read_options(section, "search").items()]


def _read_parameter(name: str, given: GivenValue) -> Parameter:
    if isinstance(given.value, Mapping):
        return Parameter(name, given.origin, validate(Range, given.value, given.origin, f"search, {name}"))
    if not isinstance(given.value, list) or len(given.value) < 2:
        text = option_text(given.value)
        raise DataError(f"{given.origin}: {name} [{text}]: nothing to choose from; {FORMS}")
    choices = tuple(option_text(value) if isinstance(value, list) else value for value in given.value)
    if any(isinstance(value, dict) for value in choices):
        raise DataError(f"{given.origin}: {name} is a list of sections; {FORMS}")
    texts = [option_text(value) for value in choices]
    if repeated := next((text for text in texts if texts.count(text) > 1), None):
        raise DataError(f"{given.origin}: {name} has {repeated} twice; remove one of them")
    return Parameter(name, given.origin, None, choices)
