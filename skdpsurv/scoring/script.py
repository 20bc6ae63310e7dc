"""Script: what an estimator writes its formula with."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import dedent
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.preprocessing.feature import Expression, Feature
from skdpsurv.scoring.language import Language

__all__ = ["Script"]

#: Characters of one feature; powers of powers have more.
LONGEST = 100_000


class Script:
    """A formula in one of the languages, while it is being written.

    An estimator that has a formula has a method ``_formula(script)``, which calls :meth:`write`.
    In text, ``z1``, ``z2``, ... are the features; in R, ``features(x)`` returns all of them, and
    :meth:`linear` expects them in a matrix ``z``.

    Parameters
    ----------
    language : Language
    features : sequence of Feature
    """

    def __init__(self, language: Language, features: Sequence[Feature]) -> None:
        self.language = language
        self.body = ""
        self.needs_features = False
        self._features = features
        self._codes: dict[int, str] = {}
        self._norm_names: dict[int, str] = {}
        self._norms: dict[str, str] = {}

    def write(self, *, text: str, R: str) -> None:
        """Add lines of the model, in one of the languages."""
        lines = dedent(R if self.language.name == "R" else text).strip().split("\n")
        # A template may leave a line out, which leaves its indentation.
        kept = (line for line in lines if not line or line.strip())
        self.body += "\n".join(["", *kept, ""])

    def number(self, value: Any) -> str:
        """Return a number, which comes back to the last bit."""
        return self.language.number(value)

    def label(self, label: Any) -> str:
        """Return a category, as it is written in code."""
        return self.language.label(label)

    def weighted(self, weights: ArrayLike, terms: Sequence[str]) -> str:
        """Return a weighted sum of terms; the term 1 is not written."""
        return self.language.weighted(np.asarray(weights).tolist(), terms)

    def linear(
        self, coef: ArrayLike, intercept: float = 0.0, places: Sequence[int] | None = None
    ) -> str:
        """Return a linear predictor of all features, or of those at some places.

        Raises
        ------
        ValueError
            If there are not as many coefficients.
        """
        self.needs_features = True
        every = range(len(self._features))
        chosen = every if places is None else places
        weights = np.asarray(coef).tolist()
        if len(weights) != len(chosen) or not set(chosen).issubset(every):
            raise ValueError("features must be as many as the estimator has coefficients.")
        sum_ = self.language.linear(weights, chosen, places is None)
        return sum_ if intercept == 0 else f"{sum_}{self.signed(intercept)}"

    def signed(self, number: float) -> str:
        """Return a number that is added."""
        return f" {'-' if number < 0 else '+'} {self.number(abs(number))}"

    def features(self) -> str:
        """Return the lines that compute the features."""
        codes = [self._code(feature.expression) for feature in self._features]
        return self.language.features(self._norms, codes, [f.name for f in self._features])

    def _code(self, expression: Expression) -> str:
        # Features share parts: those of a row that is divided by its norm share all of it.
        known = self._codes.get(id(expression))
        if known is None:
            known = self._codes[id(expression)] = self._written(expression)
            if len(known) > LONGEST:
                raise ValueError("features are too long to be written as a formula.")
        return known

    def _written(self, expression: Expression) -> str:
        language, kind, numbers = self.language, expression.kind, expression.numbers
        if kind == "column":
            return language.column(str(numbers[0]))
        if kind == "share":
            first, norm = expression.of
            return f"{self._inner(first)} / {self._norm(norm)}"
        if kind == "product":
            return language.product([self._inner(factor) for factor in expression.of])
        (of,) = expression.of
        value = self._code(of)
        if kind == "days":
            return language.days(value, language.string(str(numbers[0])), expression.form)
        if kind == "scale":
            # What is scaled to bounds is clipped to them: once will do, where nothing overflows.
            (inside,) = of.of if of.kind == "clip" else (of,)
            return self._scaled(self._inner(inside), *map(float, numbers))
        if kind == "missing":
            return language.missing(value)
        if kind == "is":
            return language.equal(self._inner(of), language.label(numbers[0]))
        if kind == "above":
            return language.above(self._inner(of), self.number(numbers[0]))
        if kind in ("clip", "fill"):
            return f"{kind}({', '.join([value, *map(self.number, numbers)])})"
        raise ValueError(f"features must be made of known expressions, got {kind!r}.")

    def _inner(self, expression: Expression) -> str:
        """Return what can stand next to an operator."""
        code = self._code(expression)
        sums = expression.kind == "share" or (expression.kind == "product" and " " in code)
        return f"({code})" if sums else code

    def _scaled(self, value: str, centre: float, half_width: float) -> str:
        moved = value if centre == 0 else f"{value}{self.signed(-centre)}"
        if half_width == 1:
            return f"clip({moved}, -1, 1)"
        return f"clip({moved if centre == 0 else f'({moved})'} / {self.number(half_width)}, -1, 1)"

    def _norm(self, norm: Expression) -> str:
        """Return the name of a norm, which all features that share it are divided by."""
        if id(norm) not in self._norm_names:
            word = {"l1": "l1", "l2": "l2", "max": "largest"}[norm.numbers[0]]
            code = f"nonzero({word}({', '.join(map(self._code, norm.of))}))"
            same = (name for name, known in self._norms.items() if known == code)
            name = next(same, f"n{len(self._norms) + 1}")
            self._norms[name] = code
            self._norm_names[id(norm)] = name
        return self._norm_names[id(norm)]
