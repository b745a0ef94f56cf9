"""Reading of YAML files: plain values, lists and mappings, of bounded size and depth.

Aliases and tags are refused before any object is built: a few lines of them can fill the memory.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from dragoman.core.errors import DataError, error_at_line, file_errors

MAX_DEPTH = 8  # of lists and mappings inside each other; protects the stack
MAX_SIZE = 1 << 20  # bytes; the settings of a model have a few thousand
Loader = yaml.SafeLoader | yaml.CSafeLoader
SafeLoader: type[Loader] = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


REMEDY = "write or copy it again"


def read_yaml(path: Path) -> object:
    """Return the contents of a YAML file; raise a `DataError` if it is damaged or not a file."""
    return parse_yaml(read_bytes(path), path)


def read_bytes(path: Path, remedy: str = REMEDY) -> bytes:
    """Return the contents of a small file; raise a `DataError` if it is large or not a file."""
    with file_errors(path):
        if not path.is_file():  # reading a pipe would not end
            raise DataError(f"{path}: {'is not a file' if path.exists() else 'no such file'}; {remedy}")
        with path.open("rb") as file:
            content = file.read(MAX_SIZE + 1)
    if len(content) > MAX_SIZE:
        raise DataError(f"{path}: larger than {MAX_SIZE >> 20} MB, which these files never are; {remedy}")
    return content


def parse_yaml(content: bytes, path: Path, remedy: str = REMEDY) -> object:
    """Return the value of the text of a YAML file; raise a `DataError` if it is damaged."""
    try:
        text = content.decode()
        check_yaml_events(text, str(path), SafeLoader)
        return SafeLoader(text).get_single_data()
    except (yaml.YAMLError, ValueError) as error:  # a ValueError: not UTF-8, or a date or number that does not exist
        mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
        place = f"{path}:{mark.line + 1}" if mark else str(path)
        raise DataError(f"{place}: broken or incomplete; {remedy}") from None


def check_yaml_events(text: str, source: str, loader: type[Loader] = yaml.SafeLoader) -> None:
    """Raise an error for aliases, tags and deep nesting."""
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise error_at_line(source, line, f"alias *{event.anchor}; write the value itself")
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag is not None:
            raise error_at_line(source, line, f"tag {event.tag}; write the value without it")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            problem = f"nested more than {MAX_DEPTH} deep; write `section:` and `key: value` lines"
            raise error_at_line(source, line, problem)
