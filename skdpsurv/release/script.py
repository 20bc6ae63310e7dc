"""Formulas of released models, in plain text that follows Python's grammar of expressions."""

from __future__ import annotations

import keyword
import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skdpsurv.data.feature import Expression, Feature
from skdpsurv.dp.references import WORDS

#: Most characters of one feature; powers of powers have more.
LONGEST = 100_000
#: Longer sums and lists are broken.
WIDTH = 72
#: Functions that formulas use, and their explanations.
HELPERS: dict[str, str] = WORDS["formulas"]


def formula_of(estimator: Any, features: Sequence[Feature]) -> str:
    """Return a fitted model as a formula of raw columns, in plain text.

    Examples
    --------
    >>> from skdpsurv import DPLogisticRegression, PrivacyGuarantee, Release
    >>> from skdpsurv.data.feature import Expression, Feature
    >>> from skdpsurv.release.script import formula_of
    >>> age, sex = (Expression("column", numbers=(name,)) for name in ("age", "sex"))
    >>> features = [
    ...     Feature("age", Expression("scale", (age,), (50, 25))),
    ...     Feature("sex_female", Expression("is", (sex,), ("female",))),
    ... ]
    >>> values = {"coef": [[1.5, -0.25]], "intercept": [0.125], "max_residual": 1.0}
    >>> release = Release(
    ...     "DPLogisticRegression", PrivacyGuarantee(1.0), {"classes": ["no", "yes"]}, values, 2
    ... )
    >>> model = DPLogisticRegression.from_release(release)
    >>> print(formula_of(model, features))
    # DPLogisticRegression, epsilon = 1, status proved
    <BLANKLINE>
    z1 = clip((age - 50) / 25, -1, 1)  # age
    z2 = indicator(sex == "female")  # sex_female
    <BLANKLINE>
    score = 1.5 * z1 - 0.25 * z2 + 0.125
    # Of "yes", which is predicted where the score is above 0, else "no":
    probability = expit(score)
    <BLANKLINE>
    # clip(v, low, high): the nearest number in [low, high]
    # indicator(...): 1 where that is true, else 0
    # expit(v): 1 / (1 + exp(-v))
    <BLANKLINE>
    """
    check_is_fitted(estimator, "release_")
    kind, guarantee = type(estimator).__name__, estimator.guarantee_
    hook = getattr(estimator, "_formula", None)
    if hook is None:
        raise ValueError(f"A {kind} has no formula: none is known for what it predicts.")
    script = Script(features)
    model = hook(script)
    made = script.features(set(re.findall(r"\w+", re.sub(r"#.*", "", model))))
    title = f"# {kind}, epsilon = {guarantee.epsilon:g}, status {guarantee.status}"
    parts = [title, made, model] if script.needs_features else [title, model]
    text = "\n\n".join(parts)
    used = [f"# {said}" for word, said in HELPERS.items() if re.search(rf"\b{word}\(", text)]
    return "\n\n".join([text, "\n".join(used)] if used else [text]) + "\n"


class Script:
    """Parts of a formula, for an estimator's method ``_formula(script)``.

    The features are ``z1``, ``z2``, ...
    """

    def __init__(self, features: Sequence[Feature]) -> None:
        self.needs_features = False
        self._features = features
        self._reserved = {*HELPERS, "x", "days", "inf"}
        self._codes: dict[int, str] = {}
        self._norms: dict[str, str] = {}

    def number(self, value: Any) -> str:
        """Return a number that reads back to the last bit."""
        return repr(float(value)).removesuffix(".0")

    def signed(self, number: float) -> str:
        """Return a number with its sign, to be added."""
        return f" {'-' if number < 0 else '+'} {self.number(abs(number))}"

    def label(self, label: Any) -> str:
        """Return a category: text, a number, or a truth value."""
        if isinstance(label, str):
            return _quoted(label)
        return str(bool(label)) if isinstance(label, bool | np.bool_) else self.number(label)

    def weighted(self, weights: ArrayLike, terms: Sequence[str]) -> str:
        """Return a weighted sum of terms; the term 1 is not written."""
        return self.total(
            f"{'-' if math.copysign(1.0, weight) < 0 else '+'} {self.number(abs(weight))}"
            + ("" if term == "1" else f" * {term}")
            for weight, term in zip(np.asarray(weights).tolist(), terms, strict=True)
        )

    def total(self, terms: Iterable[str]) -> str:
        """Return a sum of terms that begin with their signs; a long one has a line for each."""
        first, *others = terms
        parts = [first[2:] if first[0] == "+" else f"-{first[2:]}", *others]
        whole = " ".join(parts)
        return whole if len(whole) <= WIDTH else "(" + "\n    ".join(parts) + ")"

    def linear(
        self, coef: ArrayLike, intercept: float = 0.0, indices: Sequence[int] | None = None
    ) -> str:
        """Return a linear predictor of all features, or of those with these indices."""
        self.needs_features = True
        every = range(len(self._features))
        chosen = every if indices is None else indices
        if np.size(coef) != len(chosen) or not set(chosen).issubset(every):
            raise ValueError("features must be as many as the estimator has coefficients.")
        whole = self.weighted(coef, [f"z{index + 1}" for index in chosen])
        return whole if intercept == 0 else f"{whole}{self.signed(intercept)}"

    def indicator(self, column: str, label: Any) -> str:
        """Write a number: 1 where a column holds a label, else 0."""
        return self._written(Expression("is", (Expression("column", numbers=(column,)),), (label,)))

    def features(self, taken: Collection[str] = ()) -> str:
        """Return the lines that compute the features; taken words do not name columns."""
        self._reserved |= set(taken)
        codes = [self._code(feature.expression) for feature in self._features]
        lines = [f"{name} = {code}" for code, name in self._norms.items()]
        for number, (code, feature) in enumerate(zip(codes, self._features, strict=True), start=1):
            name = feature.name
            shown = name if name.isprintable() else _quoted(name)
            lines.append(f"z{number} = {code}" + ("" if code == name else f"  # {shown}"))
        return "\n".join(lines)

    def _code(self, expression: Expression) -> str:
        # Features share parts: those of a row that is divided by its norm share all of it.
        known = self._codes.get(id(expression))
        if known is None:
            known = self._codes[id(expression)] = self._written(expression)
            if len(known) > LONGEST:
                raise ValueError("features are too long to be written as a formula.")
        return known

    def _written(self, expression: Expression) -> str:
        kind, numbers, of = expression.kind, expression.numbers, expression.of
        match kind:
            case "column":
                return self._column(str(numbers[0]))
            case "days":
                return f"days({self._code(of[0])} - date({_quoted(str(numbers[0]))}))"
            case "scale":
                # What is scaled to bounds is clipped to them: once will do.
                inside = of[0].of[0] if of[0].kind == "clip" else of[0]
                return self._scaled(self._inner(inside), *map(float, numbers))
            case "log":
                return f"log({self._inner(of[0])}{''.join(map(self.signed, numbers))})"
            case "power":
                return f"{self._inner(of[0])} ** {self.number(numbers[0])}"
            case "spline":  # several have one line in common
                code, known = self._code(of[0]), len(self._norms) + 1
                line = self._norms.setdefault(code, f"n{known}")
                cubes = [f"cube({line}{self.signed(-knot)})" for knot in numbers[2::2]]
                sizes = [*numbers[:2], *numbers[3::2]]
                terms = zip(sizes, ["1", line, *cubes], strict=True)
                return self.weighted(*zip(*(term for term in terms if term[0]), strict=True))
            case "clip" | "fill":
                return f"{kind}({', '.join([self._code(of[0]), *map(self.number, numbers)])})"
            case "missing":
                return f"missing({self._code(of[0])})"
            case "is":
                return f"indicator({self._inner(of[0])} == {self.label(numbers[0])})"
            case "above":
                return f"indicator({self._inner(of[0])} > {self.number(numbers[0])})"
            case "product":
                return " * ".join(map(self._inner, of)) or "1"
            case "share":
                return f"{self._inner(of[0])} / {self._code(of[1])}"
            case "norm":  # a name of its own, as several features share it
                word = {"l1": "l1", "l2": "l2", "max": "largest"}[numbers[0]]
                parts = list(map(self._code, of))
                between = ",\n    " if sum(map(len, parts)) > WIDTH else ", "
                code = f"nonzero({word}({between.join(parts)}))"
                return self._norms.setdefault(code, f"n{len(self._norms) + 1}")
        raise ValueError(f"features must be made of known expressions, got {kind!r}.")

    def _column(self, name: str) -> str:
        plain = name.isidentifier() and unicodedata.normalize("NFKC", name) == name
        ours = name in self._reserved or (name[:1] in ("z", "n") and name[1:].isdigit())
        return name if plain and not ours and not keyword.iskeyword(name) else f"x[{_quoted(name)}]"

    def _inner(self, expression: Expression) -> str:
        """Return an operand, in brackets if needed."""
        code = self._code(expression)
        sums = expression.kind == "share" or (expression.kind == "product" and " " in code)
        return f"({code})" if sums else code

    def _scaled(self, value: str, centre: float, half_width: float) -> str:
        moved = value if centre == 0 else f"{value}{self.signed(-centre)}"
        if half_width == 1:
            return f"clip({moved}, -1, 1)"
        return f"clip({moved if centre == 0 else f'({moved})'} / {self.number(half_width)}, -1, 1)"


def _quoted(text: str) -> str:
    """Return text in quotes, on one line."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{"".join(c if c.isprintable() else ascii(c)[1:-1] for c in escaped)}"'
