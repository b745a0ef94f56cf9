"""Options that belong together: said once, in a frozen dataclass, and taken by a verb as one argument.

    @dataclass(frozen=True)
    class VocabChoice(Group):
        lender: options.VocabOf = None
        min_count: options.MinCount = 1

    @grouped
    def train_cache(text: options.Text, vocab: VocabChoice = VocabChoice()) -> None:
        print(vocab.min_count)

The command line shows an option for each field, in the place of the group. Groups may hold groups.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import wraps
from typing import Any, get_type_hints


class OptionGroup:
    """What every group of options is: a frozen dataclass, its fields annotated as a verb's parameters are."""


def with_option_groups(action: Callable[..., None]) -> Callable[..., None]:
    """A verb whose groups are spread out into their options. Stands below `@configured`, which looks for these."""
    own = list(inspect.signature(action, eval_str=True).parameters.values())
    flat = [option for parameter in own for option in _spread(parameter)]
    signature = inspect.Signature(flat)  # refuses names that mean two things

    @wraps(action)
    def verb(**arguments: Any) -> None:
        bound = signature.bind(**arguments)
        bound.apply_defaults()
        action(**_gathered(own, bound.arguments))

    vars(verb)["__signature__"] = signature
    verb.__annotations__ = {option.name: option.annotation for option in flat}
    return verb


def _spread(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    """The options of a parameter: itself alone, or those of its group."""
    if not _is_group(parameter):
        yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)  # so that a default may stand before none
        return
    for field in _fields(parameter):
        yield from _spread(field)


def _gathered(parameters: Sequence[inspect.Parameter], options: Mapping[str, Any]) -> dict[str, Any]:
    """What the parameters get: an option each, or a group of them."""
    return {
        one.name: one.annotation(**_gathered(_fields(one), options)) if _is_group(one) else options[one.name]
        for one in parameters
    }


def _fields(group: inspect.Parameter) -> list[inspect.Parameter]:
    """The fields of a group, as the parameters of a function: a default of the whole group holds theirs."""
    kinds = get_type_hints(group.annotation, include_extras=True)
    defaults = {field.name: field.default for field in fields(group.annotation)}
    if group.default is not inspect.Parameter.empty:
        defaults = {name: getattr(group.default, name) for name in defaults}
    return [
        inspect.Parameter(
            *(name, inspect.Parameter.KEYWORD_ONLY),
            default=inspect.Parameter.empty if default is MISSING else default,
            annotation=kinds[name],
        )
        for name, default in defaults.items()
    ]


def _is_group(parameter: inspect.Parameter) -> bool:
    return isinstance(parameter.annotation, type) and issubclass(parameter.annotation, OptionGroup)
