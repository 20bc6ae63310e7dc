"""The table of constants in docs/proofs/noise.md has the values that the program has."""

from __future__ import annotations

import re

from tests.docs.test_claims import ROOT, imported

PAGE = (ROOT / "docs" / "proofs" / "noise.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `([\w.]+)` \| \$([^$]+)\$ \|", PAGE, flags=re.MULTILINE)


def number(maths: str) -> float:
    """Return what is written as a sum of products of powers, such as 1 + 2^{-40}."""
    total = 0.0
    for term in maths.split(" + "):
        product = 1.0
        for factor in term.split(" \\cdot "):
            base, _, power = factor.partition("^")
            product *= float(base) ** float(power.strip("{}") or 1)
        total += product
    return total


def test_the_table_is_found():
    assert len(ROWS) == 14
    assert number("1 + 2^{-40}") == 1.0 + 2.0**-40


def test_constants_are_what_the_page_says():
    for name, maths in ROWS:
        assert imported(name) == number(maths), name
