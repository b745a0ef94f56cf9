"""Optional dependencies: what is installed, and how to install what is missing."""

from __future__ import annotations

from importlib.util import find_spec

from dragoman.core.errors import DataError


def is_installed(package: str) -> bool:
    """Return whether a package can be imported, without importing it.

    >>> is_installed("dragoman"), is_installed("no_such_package")
    (True, False)
    """
    return find_spec(package) is not None


def require_extra(package: str, extra: str) -> None:
    """Raise an error that says how to install `package` if it is missing.

    >>> require_extra("no_such_package", "plot")
    Traceback (most recent call last):
    ...
    dragoman.core.errors.DataError: no_such_package is not installed; run: pip install 'dragoman[plot]'
    """
    if not is_installed(package):
        raise DataError(f"{package} is not installed; run: pip install 'dragoman[{extra}]'")
