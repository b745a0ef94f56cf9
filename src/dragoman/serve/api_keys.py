"""API keys: a file of names and hashes.

Each line of the file is `NAME sha256:HASH DATE`. A key has 256 random bits, so nobody can find it from its hash by trying,
and the hash needs no salt and must not be slow: those protect passwords, which people choose and repeat. A fast hash also
means that requests with wrong keys cost the service nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
from datetime import date
from pathlib import Path

from dragoman.core.errors import DataError, shorten
from dragoman.io.files import directory_lock, write_text
from dragoman.io.storage import FileStamp
from dragoman.serve.errors import UNAVAILABLE, ApiError

HEADER = "# API keys of dragoman serve: name, hash, date. Remove a line to revoke its key."
KEY_BYTES = 32
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
HASH = re.compile(r"sha256:([0-9a-f]{64})")
LOG = logging.getLogger("dragoman.serve")


def create_key(path: Path, name: str) -> str:
    """Add a new key to a file, which is created if it does not exist. Return the key; the file has only its hash."""
    if not NAME.fullmatch(name):
        raise DataError(f"--new-key {shorten(name)!r}: use 1 to 64 letters, digits, dots, hyphens, underscores or @")
    with directory_lock(path):
        lines = _read_lines(path) if path.exists() else [HEADER]
        if name in read_keys(path, lines):
            raise DataError(f"{path}: there is a key {name} already; choose another name, or remove its line")
        key = secrets.token_urlsafe(KEY_BYTES)
        lines.append(f"{name} sha256:{hash_key(key)} {date.today()}")
        write_text(path, "".join(f"{line}\n" for line in lines))
    return key


def hash_key(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def read_keys(path: Path, lines: list[str] | None = None) -> dict[str, str]:
    """Return the hashes of keys by name; of the file, or of lines that were read from it."""
    keys: dict[str, str] = {}
    for number, line in enumerate(_read_lines(path) if lines is None else lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, *rest = line.split()
        digest = HASH.fullmatch(rest[0]) if rest else None
        if digest is None or not NAME.fullmatch(name) or name in keys:
            problem = "this name was used before" if name in keys else "not a line of the form NAME sha256:HASH DATE"
            raise DataError(f"{path}:{number}: {problem}; remove it, and make keys by --new-key")
        keys[name] = digest[1]
    return keys


def _read_lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        remedy = f"make a key by: dragoman serve --api-keys {path} --new-key NAME"
        raise DataError(f"{path}: the API keys cannot be read ({reason}); {remedy}") from None


class ApiKeys:
    """The keys of a file, which is read again when it changes."""

    def __init__(self, path: Path):
        self.path = path
        self._stamp = FileStamp.of(path)
        self._hashes: dict[str, str] | None = read_keys(path)  # None: the file could not be read
        if not self._hashes:
            raise DataError(f"{path}: contains no keys; make one by: dragoman serve --api-keys {path} --new-key NAME")

    def find(self, key: str) -> str | None:
        """Return the name of a key, or None if it is not in the file.

        All keys are compared, each in constant time, so that the time does not depend on what a wrong key looks like.
        """
        if not self._stamp.is_current():
            self._stamp, self._hashes = FileStamp.of(self.path), self._read_again()
        if self._hashes is None:
            raise ApiError("the API keys cannot be read; see the service's log", UNAVAILABLE, {"Retry-After": "10"})
        digest, matching_name = hash_key(key), None
        for name, stored in self._hashes.items():
            if hmac.compare_digest(digest, stored):
                matching_name = name
        return matching_name

    def _read_again(self) -> dict[str, str] | None:
        try:
            return read_keys(self.path)
        except DataError as error:
            LOG.error("%s; until then all keys are refused", error)
            return None
