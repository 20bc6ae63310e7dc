"""Templates of what goes to people, and the words in them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from skdpsurv.privacy import PrivacyGuarantee
from skdpsurv.report import text
from skdpsurv.report.advantage import Advantage

__all__ = ["WORDS", "about", "in_order", "n_protected", "templates"]

FOLDER = Path(__file__).parent
#: Of estimators, public inputs, statuses and neighbours.
WORDS: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "words.yaml").read_text("utf-8"))


@cache
def templates(html: bool) -> Environment:
    """Return the environment of templates; in HTML whatever is printed can be seen, and is text."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=text.shown if html else None,
    )
    environment.filters |= {name: getattr(text, name) for name in text.FILTERS}
    environment.globals |= {
        "WORDS": WORDS,
        "Advantage": Advantage,
        "about": about,
        "in_order": in_order,
        "n_protected": n_protected,
        "zip": zip,
    }
    return environment


def about(guarantee: PrivacyGuarantee) -> dict[str, str]:
    """Return the words about who is protected."""
    known = WORDS["neighbours"]
    found: dict[str, str] = known.get(guarantee.neighbours, known["other"])
    return found


def n_protected(guarantee: PrivacyGuarantee) -> int | None:
    """Return the number of records, which a guarantee calls by one of two names."""
    public = guarantee.public_inputs
    number = public.get("n_records", public.get("n_private"))
    return number if type(number) is int else None


def in_order(guarantee: PrivacyGuarantee) -> list[tuple[str, object]]:
    """Return public inputs in an order that does not change on the way through a file."""
    first = ("n_records", "n_private", "n_public")
    return sorted(guarantee.public_inputs.items(), key=lambda one: (one[0] not in first, one[0]))
