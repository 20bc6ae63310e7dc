"""Text and numbers as a reader should see them.

Names in a release are somebody else's: they may hold characters that turn a line around, hide
parts of it, or cannot be written to a file at all.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from skdpsurv.dp import PrivacyGuarantee

FOLDER = Path(__file__).parent
#: Of estimators, public inputs, statuses, neighbours, coefficients and the registry.
WORDS: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "words.yaml").read_text("utf-8"))

#: Controls, formats (which turn lines around, or show nothing), surrogates, and breaks of lines.
HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
#: Longer texts are cut, and say so.
LONGEST = 5000
#: As many values of a list are shown, and lists in lists as deep as this.
MOST_VALUES = 12
#: Of a public number that is shown with all of them.
MOST_DIGITS = 8
DEEPEST = 4


class Table(NamedTuple):
    """A table: the first column names the rows, and the others are numbers or words."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: bool = True


def shown(text: object) -> str:
    r"""Return text in which every character can be seen.

    Examples
    --------
    >>> print(shown("dose\u202e\n"))
    dose\u202e\u000a
    """
    if isinstance(text, Markup):  # made by this package, and escaped where it was made
        return text
    whole = str(text)
    cut = whole[:LONGEST]
    seen = "".join(
        f"\\u{ord(one):04x}" if unicodedata.category(one) in HIDDEN else one for one in cut
    )
    return seen if cut == whole else f"{seen}… ({len(whole):,} characters)"


def distinct(names: Iterable[object]) -> list[str]:
    """Return names as they are shown, numbered where two would look alike.

    Examples
    --------
    >>> distinct(["age", "dose", "age"])
    ['age', 'dose', 'age (2)']
    """
    seen: Counter[str] = Counter()
    found = []
    for name in map(shown, names):
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


def exact(number: float) -> str:
    """Return a number with all of its digits: an epsilon that is rounded promises something else.

    Examples
    --------
    >>> exact(1.0), exact(0.123456789), exact(math.inf)
    ('1', '0.123456789', 'infinite')
    """
    if math.isinf(number):
        return "infinite" if number > 0 else "minus infinite"
    return repr(float(number)).removesuffix(".0")


def added(one: float, other: float) -> str:
    """Return a sum of two numbers as they print, without rounding; else rounded up."""
    whole = Fraction(repr(one)) + Fraction(repr(other))
    number = float(whole)
    return exact(number if Fraction(repr(number)) >= whole else math.nextafter(number, math.inf))


def by_end(time: float, end: float) -> str:
    """Return a time, which nobody has seen beyond the end of follow-up."""
    return f"after {short(end)}" if time > end else short(time)


def short(number: float) -> str:
    """Return a number with a few digits, for tables of estimates.

    Examples
    --------
    >>> short(1234.567), short(0.0012345), short(-2.0), short(1.00031), short(23456.0)
    ('1235', '0.001234', '−2', '1.00031', '23,456')
    """
    if math.isnan(number):
        return "not known"
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    size = abs(number)
    if size and not 1e-4 <= size < 1e7:
        head, power = f"{number:.3e}".split("e")
        text = f"{head.rstrip('0').rstrip('.')}e{int(power)}"
    elif size >= 10_000:
        text = f"{number:,.0f}"
    else:
        # Ratios are read by how far they are from 1.
        text = f"{number + 0.0:.{6 if 0 < abs(size - 1.0) < 0.005 else 4}g}"
    return text.replace("-", "−")


def up(number: Decimal, digits: int) -> str:
    """Return a positive number of at least as large a value, with a few digits.

    Examples
    --------
    >>> up(Decimal("2.7182"), 3), up(Decimal("54.6"), 3), up(Decimal("1234567"), 3)
    ('2.72', '54.6', '1,240,000')
    """
    rounded = Context(prec=digits, rounding=ROUND_CEILING).plus(number)
    if rounded >= 10**9:
        return f"{rounded:.{digits - 1}e}".replace("e+", "e")
    return f"{rounded:,f}".rstrip("0").rstrip(".") if "." in f"{rounded:f}" else f"{rounded:,f}"


def percent_up(part: Decimal) -> str:
    r"""Return a bound on a probability in percent, rounded up to a tenth; it stays on one line.

    Examples
    --------
    >>> percent_up(Decimal("0.73105")), percent_up(Decimal("0.5"))
    ('73.2\xa0%', '50\xa0%')
    """
    # First rounded, and upwards: a product would be rounded to the nearest.
    percent = 100 * part.quantize(Decimal("0.001"), rounding=ROUND_CEILING)
    return f"{percent:.1f}".removesuffix(".0") + "\N{NO-BREAK SPACE}%"


def listed(words: Iterable[object], most: int = MOST_VALUES) -> str:
    """Return words in a line: the first ones and the last, if there are many."""
    whole = [shown(word) for word in words]
    if len(whole) > most:
        return f"{', '.join(whole[: most - 2])}, …, {whole[-1]} ({len(whole):,} in all)"
    return ", ".join(whole)


def value(of: Any, deep: int = 0) -> str:
    """Return a public value in a line: numbers with six digits, if that is not all of them.

    Examples
    --------
    >>> value({"from": 0.5, "to": 2 / 3}), value((1, "a", None)), value(())
    ('0.5 to 0.666667', '1, a, none', 'none')
    """
    if of is None or (isinstance(of, tuple | list) and not of):
        return "none"
    if isinstance(of, bool):
        return "yes" if of else "no"
    if isinstance(of, float):
        return exact(of) if len(exact(of)) <= MOST_DIGITS else f"{of:.6g}"
    if deep == DEEPEST and not isinstance(of, int | str):
        return "…"
    if isinstance(of, tuple | list):
        inside = [value(one, deep + 1) for one in of]
        # A list in a list needs its own ends.
        nested = [isinstance(one, tuple | list) for one in of]
        return listed(f"[{x}]" if own else x for x, own in zip(inside, nested, strict=True))
    if isinstance(of, Mapping) and of.keys() == {"from", "to"}:
        return f"{value(of['from'], deep + 1)} to {value(of['to'], deep + 1)}"
    if isinstance(of, Mapping):
        return listed(f"{shown(name)} {value(one, deep + 1)}" for name, one in sorted(of.items()))
    if isinstance(of, int):
        return f"{of:,}" if abs(of) < 10**15 else f"about {Decimal(of):.3e}"
    return shown(of)


def stated(of: object) -> str:
    """Return what a release states of another one."""
    if isinstance(of, float):
        return exact(of)
    return (value(of) if type(of) is int else shown(of)) or "not stated"


# ---- Markdown with LaTeX, in YAML: words are to stay words.


def plain(text: object) -> str:
    r"""Return text that is shown as it is: nothing in it begins markup, HTML or a formula.

    Examples
    --------
    >>> print(plain("a <b> costs $1 \\ 2"))
    a &#60;b&#62; costs &#36;1 \u005c 2
    """
    return re.sub(r"[<>&`*\[\]$|]", lambda one: f"&#{ord(one.group())};", _one_backslash(text))


def code(name: object) -> str:
    """Return a name as code.

    Examples
    --------
    >>> code("n_records"), code("a`b")
    ('`n_records`', "`a'b`")
    """
    return f"`{_one_backslash(name).replace('`', chr(39))}`"


def word(text: str) -> str:
    """Return a value as it is if nothing in it is markup, else as code.

    Examples
    --------
    >>> word("0.5"), word("[0, 2], [1]")
    ('0.5', '`[0, 2], [1]`')
    """
    return text if plain(text) == text else code(text)


def prose(text: str) -> str:
    """Return paragraphs, which a template may leave out."""
    return re.sub(r"\n{3,}", "\n\n", text.strip())


def scalar(value: Any) -> str:
    """Return a value in a line of YAML."""
    if isinstance(value, list):
        return f"[{', '.join(map(scalar, value))}]"
    style = '"' if isinstance(value, str) else None
    return yaml.dump(value, default_style=style, width=10**9).split("\n")[0] + "\n"


def _one_backslash(text: object) -> str:
    """Return text in which every character can be seen, and no backslash begins a formula."""
    return "\\u005c".join(map(shown, str(text).split("\\")))


# ---- About a guarantee.


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


TEMPLATES = Environment(
    loader=FileSystemLoader(FOLDER),
    autoescape=select_autoescape(["html.jinja"]),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
HELPERS = {
    function.__name__: function
    for function in (
        *(exact, short, up, percent_up, added, listed, value, stated, shown, plain, code, word),
        *(prose, scalar, about, status, how_many),
    )
}
TEMPLATES.filters |= HELPERS
TEMPLATES.globals |= {"WORDS": WORDS, **HELPERS}
#: Whatever a page prints can be seen: a name may turn its line around.
PAGES = TEMPLATES.overlay(finalize=shown)
