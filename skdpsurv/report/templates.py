"""Templates of what goes to people, and the words in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from skdpsurv.privacy import PrivacyGuarantee
from skdpsurv.report import text

__all__ = ["PAGES", "TEMPLATES", "WORDS", "how_many"]

FOLDER = Path(__file__).parent
#: Of estimators, public inputs, statuses, neighbours and coefficients.
WORDS: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "words.yaml").read_text("utf-8"))


def about(guarantee: PrivacyGuarantee) -> Any:
    """Return the words about who is protected."""
    known = WORDS["neighbours"]
    return known.get(guarantee.neighbours, known["other"])


def status(guarantee: PrivacyGuarantee) -> Any:
    """Return the words about what is promised."""
    real = guarantee.status == "proved" and guarantee.in_real_arithmetic
    return WORDS["statuses"]["real" if real else guarantee.status]


def how_many(guarantee: PrivacyGuarantee, unknown: str = "a number of {}") -> str:
    """Return how many are protected, which a guarantee says by one of two names."""
    public, many = guarantee.public_inputs, about(guarantee)["many"]
    number = public.get("n_records", public.get("n_private"))
    return f"{number:,} {many}" if type(number) is int else unknown.format(many)


def in_order(guarantee: PrivacyGuarantee) -> list[tuple[str, object]]:
    """Return public inputs in an order that does not change on the way through a file."""
    first = ("n_records", "n_private", "n_public")
    return sorted(guarantee.public_inputs.items(), key=lambda one: (one[0] not in first, one[0]))


TEMPLATES = Environment(
    loader=FileSystemLoader(FOLDER),
    autoescape=select_autoescape(["html.jinja"]),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters |= {name: one for name, one in vars(text).items() if callable(one)}
TEMPLATES.globals |= {"WORDS": WORDS} | {
    function.__name__: function for function in (about, status, how_many, in_order)
}
#: Whatever a page prints can be seen: a name may turn its line around.
PAGES = TEMPLATES.overlay(finalize=text.shown)
