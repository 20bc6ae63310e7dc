"""The formula of a released model, for those who have neither this package nor Python."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sklearn.utils.validation import check_is_fitted

from skdpsurv.checks import one_of
from skdpsurv.preprocessing.feature import Feature
from skdpsurv.scoring.language import LANGUAGES, calls, wrapped
from skdpsurv.scoring.script import Script

__all__ = ["formula_of"]

#: R's defaults change names, and keep empty text.
HOW_TO_READ = (
    'x: a data.frame of raw rows: read.csv(file, check.names = FALSE, na.strings = c("", "NA"))'
)


def formula_of(estimator: Any, features: Sequence[Feature], language: str = "text") -> str:
    """Return a fitted model as a formula of raw columns.

    Parameters
    ----------
    estimator : PrivateEstimator
        Fitted, or built from a release.
    features : sequence of Feature
        What its coefficients belong to: those of its public transformer, or else
        :func:`~skdpsurv.preprocessing.feature.raw_features`.
    language : {"text", "R"}, default="text"
        "text" is for readers. "R" defines functions of a data.frame of raw rows: ``features(x)``,
        and what the model has of ``score(x)``, ``survival(x, time)``, ``probability(x)`` and
        ``mean_outcome(x)``.

    Returns
    -------
    str
        Numbers have all their digits.

    Raises
    ------
    ValueError
        If the language is another one, the model has no formula, or there is not one feature for
        each coefficient.

    Examples
    --------
    >>> from skdpsurv import DPLogisticRegression, PrivacyGuarantee, Release
    >>> from skdpsurv.preprocessing.feature import Expression, Feature
    >>> from skdpsurv.scoring import formula_of
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
    one_of("language", language, tuple(LANGUAGES))
    check_is_fitted(estimator, "release_")
    kind, guarantee = type(estimator).__name__, estimator.guarantee_
    hook = getattr(estimator, "_formula", None)
    if hook is None:
        raise ValueError(f"A {kind} has no formula: none is known for what it predicts.")
    script = Script(LANGUAGES[language](), features)
    hook(script)
    return _whole(script, f"{kind}, epsilon = {guarantee.epsilon:g}, status {guarantee.status}")


def _whole(script: Script, title: str) -> str:
    """Return head, features, model and, of text, what its words mean."""
    language, body = script.language, script.body
    language.reserve(set(re.findall(r"\w+", re.sub(r"#.*", "", body))))
    features = f"\n{script.features()}\n" if script.needs_features else ""
    lines = [f"# {title}"]
    if language.name == "R" and features:
        lines.append(f"# {HOW_TO_READ}")
    for line in (features + body).rstrip("\n").split("\n"):
        lines += wrapped(line)
    if language.name == "text":
        meant = [said for word, said in language.helpers.items() if calls(word, lines)]
        if meant:
            lines += ["", *(f"# {said}" for said in meant)]
    return "\n".join(lines).strip("\n") + "\n"
