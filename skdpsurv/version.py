"""The version of this package, and what its extras install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__version__ = "0.2.0"


@contextmanager
def extra(name: str, package: str, function: str) -> Iterator[None]:
    """Say which extra to install where a package that it brings is imported, and is not there.

    Parameters
    ----------
    name, package, function : str
        Of the extra, of what it brings, and of what needs that.

    Raises
    ------
    ImportError
    """
    try:
        yield
    except ImportError as error:
        raise ImportError(f'{function} needs {package}: pip install "skdpsurv[{name}]"') from error
