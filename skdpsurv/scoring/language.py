"""The two languages that a formula can be written in: plain text, and R.

Text is Python's grammar of expressions, so that it can be tested; it has no other reason to be.
"""

from __future__ import annotations

import keyword
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence, Set
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

__all__ = ["LANGUAGES", "Language", "calls", "wrapped"]

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Language:
    """Base: a subclass says how it writes what the two write differently."""

    name: str
    arrow: str
    infinity: str
    truth: tuple[str, str]
    #: Functions that formulas use: what they are.
    helpers: ClassVar[dict[str, str]]

    def reserve(self, words: Set[str]) -> None:
        """Note words that mean something else than a column."""

    def number(self, value: float) -> str:
        """Return a number, which comes back to the last bit; round ones stay round."""
        value = float(value)
        if math.isinf(value):
            return self.infinity if value > 0 else f"-{self.infinity}"
        return repr(value).removesuffix(".0")

    def string(self, text: str) -> str:
        """Return text in quotes, on one line."""
        if any(c == "\0" or 0xD800 <= ord(c) < 0xE000 for c in text):
            raise ValueError(
                "names and labels in a formula must be text without NUL or surrogates."
            )
        return f'"{"".join(map(_escaped, text))}"'

    def label(self, label: Any) -> str:
        """Return a category: text, a number, or a truth value."""
        if isinstance(label, str):
            return self.string(label)
        if isinstance(label, bool | np.bool_):
            return self.truth[int(label)]
        return self.number(label)

    def comment(self, text: str) -> str:
        """Return text that cannot end a comment."""
        return text if text.isprintable() else self.string(text)

    def column(self, name: str) -> str:
        """Return the raw column of a name."""
        raise NotImplementedError

    def days(self, of: str, date: str, form: str) -> str:
        """Return days since a date; text may be of a form, if there is one, or as ISO has it."""
        raise NotImplementedError

    def missing(self, of: str) -> str:
        """Return 1 where a value is missing, else 0."""
        raise NotImplementedError

    def equal(self, of: str, label: str) -> str:
        """Return 1 where a value is a label, else 0."""
        raise NotImplementedError

    def above(self, of: str, threshold: str) -> str:
        """Return 1 where a value is larger than a threshold, else 0."""
        raise NotImplementedError

    def product(self, factors: Sequence[str]) -> str:
        """Return a product."""
        raise NotImplementedError

    def features(self, norms: dict[str, str], codes: Sequence[str], names: Sequence[str]) -> str:
        """Return lines that compute the features: ``norms`` by name, then ``codes``."""
        raise NotImplementedError

    def linear(self, weights: Sequence[float], places: Sequence[int], every: bool) -> str:
        """Return a weighted sum of features, ``every`` one or those at some places."""
        raise NotImplementedError

    def weighted(self, weights: Sequence[float], terms: Sequence[str]) -> str:
        """Return a weighted sum of terms; the term 1 is not written."""
        parts = []
        for weight, term in zip(weights, terms, strict=True):
            number = self.number(abs(weight)) + ("" if term == "1" else f" * {term}")
            negative = math.copysign(1.0, weight) < 0
            parts.append((" - " if negative else " + ") + number)
        whole = "".join(parts)
        whole = whole[3:] if whole.startswith(" + ") else "-" + whole[3:]
        # A line breaks inside of brackets only.
        return f"({whole})" if len(whole) > 72 else whole


class Text(Language):
    """Plain text, for readers."""

    name = "text"
    arrow = "="
    infinity = "inf"
    truth = ("False", "True")
    helpers: ClassVar[dict[str, str]] = {
        "clip": "clip(v, low, high): the nearest number in [low, high]",
        "fill": "fill(v, number): that number where v is missing",
        "missing": "missing(v): 1 where v is missing, else 0",
        "indicator": "indicator(...): 1 where that is true, else 0",
        "date": "days(v - date(d)): days since that date",
        "l1": "l1(...): sum of the sizes",
        "l2": "l2(...): square root of the sum of squares",
        "largest": "largest(...): the largest of the sizes",
        "nonzero": "nonzero(v): 1 where v is below 2.2e-15, else v",
        "expit": "expit(v): 1 / (1 + exp(-v))",
        "log_expit": "log_expit(v): log(expit(v)), computed as such",
        "normal_cdf": "normal_cdf(v): the standard normal distribution function",
        "where": "where(condition, a, b): a where that is true, else b",
        "integers": "integers(a, b): a, a + 1, ..., b",
    }

    def __init__(self) -> None:
        self.reserved = {*self.helpers, "x", "days", "inf"}

    def reserve(self, words: Set[str]) -> None:
        self.reserved |= words

    def column(self, name: str) -> str:
        plain = name.isidentifier() and unicodedata.normalize("NFKC", name) == name
        ours = name in self.reserved or (name[:1] in ("z", "n") and name[1:].isdigit())
        if plain and not ours and not keyword.iskeyword(name):
            return name
        return f"x[{self.string(name)}]"

    def days(self, of: str, date: str, form: str) -> str:
        return f"days({of} - date({date}))"

    def missing(self, of: str) -> str:
        return f"missing({of})"

    def equal(self, of: str, label: str) -> str:
        return f"indicator({of} == {label})"

    def above(self, of: str, threshold: str) -> str:
        return f"indicator({of} > {threshold})"

    def product(self, factors: Sequence[str]) -> str:
        return " * ".join(factors) or "1"

    def features(self, norms: dict[str, str], codes: Sequence[str], names: Sequence[str]) -> str:
        lines = [f"{name} = {code}" for name, code in norms.items()]
        for place, (code, name) in enumerate(zip(codes, names, strict=True), start=1):
            said = "" if code == name else f"  # {self.comment(name)}"
            lines.append(f"z{place} = {code}{said}")
        return "\n".join(lines)

    def linear(self, weights: Sequence[float], places: Sequence[int], every: bool) -> str:
        return self.weighted(weights, [f"z{place + 1}" for place in places])


class R(Language):
    """R, for a data.frame ``x`` of raw rows. No package is needed."""

    name = "R"
    arrow = "<-"
    infinity = "Inf"
    truth = ("FALSE", "TRUE")
    helpers: ClassVar[dict[str, str]] = {
        "clip": "clip <- function(v, low, high) pmin(pmax(v, low), high)",
        "fill": "fill <- function(v, number) ifelse(is.na(v), number, v)",
        "above": "above <- function(v, threshold) as.numeric(!is.na(v) & v > threshold)",
        "l1": "l1 <- function(...) rowSums(abs(cbind(...)))",
        "l2": "l2 <- function(...) sqrt(rowSums(cbind(...)^2))",
        "largest": "largest <- function(...) do.call(pmax, lapply(list(...), abs))",
        "nonzero": "nonzero <- function(v) ifelse(v < 2.2e-15, 1, v)",
        # What is in neither form would be missing, and a year of two digits long ago.
        "dates": """dates <- function(v, form) {
  text <- as.character(v)
  read <- as.Date(ifelse(grepl("^[0-9]{4}-", text), text, format(as.Date(text, form))))
  stopifnot(is.na(read) == is.na(v), !(!is.na(read) & read < as.Date("1000-01-01")))
  read
}""",
    }

    def __init__(self) -> None:
        self.columns: dict[str, None] = {}

    def column(self, name: str) -> str:
        quoted = self.string(name)
        self.columns[quoted] = None
        return f"x[[{quoted}]]"

    def days(self, of: str, date: str, form: str) -> str:
        read = f"dates({of}, {self.string(form)})" if form else f"as.Date({of})"
        return f"as.numeric({read} - as.Date({date}))"

    def missing(self, of: str) -> str:
        return f"as.numeric(is.na({of}))"

    def equal(self, of: str, label: str) -> str:
        return f"as.numeric({of} %in% {label})"

    def above(self, of: str, threshold: str) -> str:
        return f"above({of}, {threshold})"

    def product(self, factors: Sequence[str]) -> str:
        # Products of R's integers overflow.
        whole = len(factors) > 1 and all("x[[" in factor for factor in factors)
        return " * ".join(["1"] * whole + list(factors)) or "rep(1, nrow(x))"

    def features(self, norms: dict[str, str], codes: Sequence[str], names: Sequence[str]) -> str:
        columns = ", ".join(self.columns)
        lines = [f"stopifnot(c({columns}) %in% names(x))"] if self.columns else []
        written = [*norms.values(), *codes]
        for word, text in self.helpers.items():
            lines += text.split("\n") if calls(word, written) else []
        lines += [f"{name} <- {code}" for name, code in norms.items()]
        lines.append("cbind(")
        for place, (code, name) in enumerate(zip(codes, names, strict=True), start=1):
            lines.append(f"  {code}{',' * (place < len(codes))}  # {self.comment(name)}")
        lines.append(")")
        return "\n".join(["features <- function(x) {", *(f"  {line}" for line in lines), "}"])

    def linear(self, weights: Sequence[float], places: Sequence[int], every: bool) -> str:
        chosen = ", ".join(str(place + 1) for place in places)
        z = "z" if every else f"z[, c({chosen}), drop = FALSE]"
        return f"as.vector({z} %*% c({', '.join(map(self.number, weights))}))"


LANGUAGES: dict[str, type[Language]] = {kind.name: kind for kind in (Text, R)}


def _escaped(character: str) -> str:
    """Return a character as both R and Python read it in quotes."""
    if character in _ESCAPES or character.isprintable():
        return _ESCAPES.get(character, character)
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def calls(word: str, texts: Iterable[str]) -> bool:
    """Say whether a function may be called in one of some texts."""
    return any(re.search(rf"\b{word}\(", text) for text in texts)


def wrapped(line: str, width: int = 100) -> list[str]:
    """Break a long line inside of brackets, after an operator, so that both languages read on."""
    indent = line[: len(line) - len(line.lstrip())]
    code, breaks, depth = indent, [], 0
    for token, following in pairwise([*_TOKENS.findall(line.strip()), ""]):
        if token.startswith("#"):
            break
        depth += (token in "([{") - (token in ")]}")
        code += token
        if depth > 0 and following == " " and token[-1] in ",+-":
            breaks.append((depth, -len(code)))
    comment = line[len(code) :]
    lines, start = [], 0
    while len(code.rstrip()) - start + len(indent) + 4 > width:
        inside = [b for b in breaks if start + 40 < -b[1] <= start + width - 4 - len(indent)]
        if not inside:
            break
        _, end = min(inside)  # the outermost, and of these the last
        lines.append(code[start:-end])
        start = -end
    lines.append(code[start:] + comment)
    return lines[:1] + [f"{indent}    {rest.strip()}" for rest in lines[1:]]


#: Strings, comments, brackets, spaces, and what stands between these.
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|#.*|[()\[\]{}]| |[^\s"#()\[\]{},]+|,')
