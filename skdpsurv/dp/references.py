"""The version of this package, its extras, its words, and where its proofs are."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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


#: The words of guarantees and warnings, and the papers that proofs build on.
WORDS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
#: Assumption of mechanisms that draw noise on vectors or compute gradients: the proof is about the
#: program.
DOUBLES: str = WORDS["assumptions"]["doubles"]
#: An assumption of every plan: neighbours differ in one row only if no row was made from others.
OWN_RECORD: str = WORDS["assumptions"]["own_record"]
#: An assumption of noise and losses that somebody else has written: the proof is of a mechanism.
REAL_ARITHMETIC: str = WORDS["assumptions"]["real_arithmetic"]


def phrase(name: str, /, **numbers: object) -> str:
    """Return a sentence of a warning or of advice, with public numbers in it."""
    return str(WORDS["phrases"][name].format(**numbers))


def reference(page: str, *papers: str) -> str:
    """Return where something is proved, as a full reference.

    Parameters
    ----------
    page : str
        Of this package's documentation, under its root.
    *papers : str
        Keys of the papers that the proof builds on.

    Examples
    --------
    >>> reference("docs/proofs/noise")
    'skdpsurv 0.2.0, docs/proofs/noise.md (in its source distribution)'
    """
    own = f"skdpsurv {__version__}, {page}.md (in its source distribution)"
    return f"{own}, after {'; '.join(WORDS['papers'][key] for key in papers)}" if papers else own
