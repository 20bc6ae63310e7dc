"""Text and numbers as a reader should see them.

Names in a release are untrusted: they may hold characters that reverse a line, hide parts of it,
or cannot be written to a file.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from skdpsurv.dp.budget import exact_sum, float_above
from skdpsurv.dp.guarantee import PrivacyGuarantee

FOLDER = Path(__file__).parent
#: Texts about estimators, public inputs, statuses, neighbours, coefficients and the registry.
WORDS: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "words.yaml").read_text("utf-8"))

#: Unicode categories: controls, formats (such as reversed text), surrogates and line breaks.
HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
#: Longer texts are cut, with a note.
LONGEST = 5000
#: Display options of public values: list entries, digits of a number, and depth of nested lists.
MOST_VALUES, MOST_DIGITS, DEEPEST = 12, 8, 4


class Table(NamedTuple):
    """A table: the first column names the rows, and the others are numbers or words."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: bool = True


def escape_hidden(text: object) -> str:
    r"""Return text with a visible escape in place of each hidden character.

    Examples
    --------
    >>> print(escape_hidden("dose\u202e\n"))
    dose\u202e\u000a
    """
    if isinstance(text, Markup):  # made by this package, and escaped there
        return text
    whole = str(text)
    cut = whole[:LONGEST]
    visible = "".join(f"\\u{ord(c):04x}" if unicodedata.category(c) in HIDDEN else c for c in cut)
    return visible if cut == whole else f"{visible}… ({len(whole):,} characters)"


def distinct(names: Iterable[object]) -> list[str]:
    """Return escaped names, numbered where two would look the same.

    Examples
    --------
    >>> distinct(["age", "dose", "age"])
    ['age', 'dose', 'age (2)']
    """
    seen: Counter[str] = Counter()
    found = []
    for name in map(escape_hidden, names):
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


def exact(number: float) -> str:
    """Return a number with all of its digits: a rounded epsilon would be another promise.

    Examples
    --------
    >>> exact(1.0), exact(0.123456789), exact(math.inf)
    ('1', '0.123456789', 'infinite')
    """
    if math.isinf(number):
        return "infinite" if number > 0 else "minus infinite"
    return repr(float(number)).removesuffix(".0")


def added(one: float, other: float) -> str:
    """Return the sum of two numbers as decimals, rounded up where it has no exact double."""
    return exact(float_above(exact_sum([one, other])))


def by_end(time: float, end: float) -> str:
    """Return a time, or that it is after the end of follow-up."""
    return f"after {short(end)}" if time > end else short(time)


def short(number: float) -> str:
    """Return a number with a few digits, for tables of estimates.

    Examples
    --------
    >>> short(1234.567), short(0.0012345), short(-2.0), short(1.00031), short(23456.0)
    ('1235', '0.001234', '−2', '1.00031', '23,456')
    """
    if not math.isfinite(number):
        return {math.inf: "∞", -math.inf: "−∞"}.get(number, "not known")
    size = abs(number)
    # Near 1 a ratio needs more digits.
    digits = 6 if 0 < abs(size - 1.0) < 0.005 else 4
    text = f"{number + 0.0:,.0f}" if 10_000 <= size < 1e7 else f"{number + 0.0:.{digits}g}"
    return re.sub(r"e\+?(-?)0*", r"e\1", text).replace("-", "−")


def up(number: Decimal, digits: int) -> str:
    """Return a positive number with a few digits, rounded up.

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
    r"""Return a bound on a probability in percent, rounded up to a tenth, without line breaks.

    Examples
    --------
    >>> percent_up(Decimal("0.73105")), percent_up(Decimal("0.5"))
    ('73.2\xa0%', '50\xa0%')
    """
    # Rounded before the product, which would be rounded to the nearest.
    percent = 100 * part.quantize(Decimal("0.001"), rounding=ROUND_CEILING)
    return f"{percent:.1f}".removesuffix(".0") + "\N{NO-BREAK SPACE}%"


def listed(words: Iterable[object], most: int = MOST_VALUES) -> str:
    """Return words in a line; a long list keeps its first words and its last one."""
    whole = list(map(escape_hidden, words))
    if len(whole) > most:
        return f"{', '.join(whole[: most - 2])}, …, {whole[-1]} ({len(whole):,} in all)"
    return ", ".join(whole)


def value(item: Any, depth: int = 0) -> str:
    """Return a public value in a line; a long number has six digits.

    Examples
    --------
    >>> value({"from": 0.5, "to": 2 / 3}), value((1, "a", None)), value(())
    ('0.5 to 0.666667', '1, a, none', 'none')
    """
    match item:
        case None | []:
            return "none"
        case bool():
            return "yes" if item else "no"
        case float():
            return exact(item) if len(exact(item)) <= MOST_DIGITS else f"{item:.6g}"
        case int():
            return f"{item:,}" if abs(item) < 10**15 else f"about {Decimal(item):.3e}"
        case str():
            return escape_hidden(item)
    if depth == DEEPEST:
        return "…"
    if isinstance(item, Mapping):
        inside = {name: value(one, depth + 1) for name, one in sorted(item.items())}
        if inside.keys() == {"from", "to"}:
            return f"{inside['from']} to {inside['to']}"
        return listed(f"{escape_hidden(name)} {text}" for name, text in inside.items())
    if isinstance(item, tuple | list):
        # A list within a list gets brackets.
        texts = [(value(one, depth + 1), isinstance(one, tuple | list)) for one in item]
        return listed(f"[{text}]" if nested else text for text, nested in texts)
    return escape_hidden(item)


def sha256(text: str) -> str:
    """Return the hash of a text in UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()


def stated(item: object) -> str:
    """Return an entry about another release, as this one states it."""
    return (exact(item) if isinstance(item, float) else value(item)) or "not stated"


# ---- Markdown with LaTeX, in YAML: words are to stay words.


def plain(text: object) -> str:
    r"""Return text in which nothing begins markup, HTML or a formula.

    Examples
    --------
    >>> print(plain("a <b> costs $1 \\ 2"))
    a &#60;b&#62; costs &#36;1 \u005c 2
    """
    return re.sub(r"[<>&`*\[\]$|]", lambda one: f"&#{ord(one.group())};", _no_backslash(text))


def code(name: object) -> str:
    """Return a name as code.

    Examples
    --------
    >>> code("n_records"), code("a`b")
    ('`n_records`', "`a'b`")
    """
    return f"`{_no_backslash(name).replace('`', chr(39))}`"


def word(text: str) -> str:
    """Return a value as it is if nothing in it is markup, else as code.

    Examples
    --------
    >>> word("0.5"), word("[0, 2], [1]")
    ('0.5', '`[0, 2], [1]`')
    """
    return text if plain(text) == text else code(text)


def prose(text: str) -> str:
    """Return paragraphs without the gaps that a template leaves between them."""
    return re.sub(r"\n{3,}", "\n\n", text.strip())


def scalar(item: Any) -> str:
    """Return a value in a line of YAML."""
    if isinstance(item, list):
        return f"[{', '.join(map(scalar, item))}]"
    style = '"' if isinstance(item, str) else None
    return yaml.dump(item, default_style=style, width=10**9).split("\n")[0] + "\n"


def _no_backslash(text: object) -> str:
    """Return escaped text in which no backslash of its own begins a formula."""
    return "\\u005c".join(map(escape_hidden, str(text).split("\\")))


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
    """Return how many records or people are protected."""
    number, many = guarantee.n_protected, about(guarantee)["many"]
    return unknown.format(many) if number is None else f"{number:,} {many}"


# ---- About a study.


def outcome_words(study: Mapping[str, Any] | None) -> str:
    """Say what the event of an analysis in a study is, and what other events count as.

    Examples
    --------
    >>> study = {"event": "vital", "event_is": ["<dead>"], "time": "days", "unit": "weeks"}
    >>> outcome_words(study)
    'The event is vital = <dead>; times are days, in weeks.'
    """
    # A page escapes plain text, and would not what a macro returns.
    return str(TEMPLATES.get_template("outcome.txt.jinja").module.outcome(study))  # type: ignore[attr-defined]


TEMPLATES = Environment(
    loader=FileSystemLoader(FOLDER),
    autoescape=select_autoescape(["html.jinja"]),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_FUNCTIONS = [exact, short, up, percent_up, added, listed, value, stated, escape_hidden, plain]
_FUNCTIONS += [code, word, prose, scalar, about, status, how_many, outcome_words]
HELPERS = {function.__name__: function for function in _FUNCTIONS}
TEMPLATES.filters |= HELPERS
TEMPLATES.globals |= {"WORDS": WORDS, **HELPERS}
#: Environment of the page, which escapes all that it prints.
PAGES = TEMPLATES.overlay(finalize=escape_hidden)
