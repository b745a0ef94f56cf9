"""SHA-256 digests of the files of a model directory, and config.yaml, which has most of them.

`model.safetensors`, `shortlist.safetensors` and `training.safetensors` carry their own digests, because training writes
them one by one. The digests of the other files that loading reads are in `config.yaml` under `files`. Its last line is
a comment with the digest of the lines above it. Model cards and metrics have none: they may be edited. Directories of
earlier versions have no digests.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.core.types import Json
from dragoman.core.yaml_files import parse_yaml, read_bytes

DIGEST = "sha256"
FILES = "files"  # the key of the digests in config.yaml
MAX_COPIED_SIZE = 64 << 20  # bytes; loading copies files up to this size, and checks their digests (0.15 s at most)
LAST_LINE = re.compile(rb"# sha256: ([0-9a-f]{64})\s*\Z")


class _Dumper(yaml.SafeDumper):
    """Writes objects that occur twice in full; the default writes aliases."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def to_yaml(config: Mapping[str, object]) -> str:
    """Return a configuration as YAML."""
    return str(yaml.dump(dict(config), Dumper=_Dumper, sort_keys=False, allow_unicode=True))


def config_text(config: Mapping[str, object], directory: Path, names: Collection[str]) -> str:
    """Return the text of config.yaml, with the digests of those of the named files that the directory has."""
    digests = {name: file_digest(directory / name) for name in sorted(names) if (directory / name).is_file()}
    text = to_yaml({**config, FILES: digests} if digests else config)
    return f"{text}# sha256: {hashlib.sha256(text.encode()).hexdigest()}\n"


def read_config(path: Path, remedy: str) -> dict[str, Json]:
    """Return the contents of config.yaml; raise an error if it is damaged or was changed."""
    content = read_bytes(path, remedy)
    config, match = parse_yaml(content, path, remedy), LAST_LINE.search(content)
    if match and hashlib.sha256(content[: match.start()]).hexdigest().encode() != match[1]:
        raise DataError(f"{path}: changed since it was written; remove its last line to accept the change, or {remedy}")
    if not isinstance(config, dict):
        raise DataError(f"{path}: contains no settings; {remedy}")
    return {str(key): value for key, value in config.items()}


def check_files(directory: Path, digests: object, remedy: str, *, max_size: int | None = MAX_COPIED_SIZE) -> None:
    """Raise an error if a file of a directory differs from its digest.

    Args:
        directory: The directory.
        digests: The entry `files` of its config.yaml: digests by names.
        remedy: What to do, for the message.
        max_size: Larger files are not checked; None checks all.
    """
    if not isinstance(digests, dict):
        raise DataError(f"{directory}: `{FILES}` in its configuration is not a list of files; {remedy}")
    for name, digest in digests.items():
        file = directory / str(name)
        if file.parent != directory or not file.is_file():
            raise DataError(f"{file}: missing; {remedy}")
        if (max_size is None or file.stat().st_size <= max_size) and file_digest(file) != digest:
            raise DataError(f"{file}: changed since it was written; {remedy}")


def file_digest(path: Path) -> str:
    """Return the SHA-256 digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def arrays_digest(arrays: Mapping[str, NDArray[np.generic]], metadata: Mapping[str, str]) -> str:
    """Return the SHA-256 digest of the names, types, shapes and values of arrays, and of metadata.

    They are in the order of their names. The digest itself among the metadata does not count.
    """
    entries = sorted((name, value) for name, value in metadata.items() if name != DIGEST)
    digest = hashlib.sha256(json.dumps(entries).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
