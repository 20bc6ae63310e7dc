"""Private classifiers as formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from skdpsurv.release.script import Script

#: Probabilities of the logistic loss whose residuals are capped; and with a slope of odds, in
#: logarithms: a power of what is next to 0 would be 0.
HELPERS = {
    "chance": "chance(m, cap) = min(expit(m), cap) / (min(expit(m), cap) + min(expit(-m), cap))",
    "steep_chance": "part(m, cap) = min(log_expit(m), log(cap))\n"
    "steep_chance(m, cap, b) = expit(b * (part(m, cap) - part(-m, cap)))",
}


def chance(script: Script, predictor: str, max_residual: float, slope: float = 1.0) -> str:
    """Return the probability of a linear predictor, for the cap of its loss and a slope of odds."""
    if max_residual == 1:
        return f"expit({predictor if slope == 1 else f'{script.number(slope)} * ({predictor})'})"
    cap = script.number(max_residual)
    if slope == 1:
        return f"chance({predictor}, {cap})"
    return f"steep_chance({predictor}, {cap}, {script.number(slope)})"


def write_classes(
    script: Script,
    classes: NDArray[Any],
    scores: Sequence[str],
    probability: str,
    before: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return scores and probabilities.

    Parameters
    ----------
    script : Script
    classes : ndarray of shape (n_classes,)
    scores : sequence of str
        The score of each output, of features and of what comes before.
    probability : str
        The probability that belongs to ``{}``, a score, before they are scaled to add up to 1.
    before : mapping of str to str
        What is computed first.
    """
    labels = [script.label(label) for label in classes.tolist()]
    codes = " ".join(["", probability, *before.values()])
    lines = [HELPERS[name] for name in HELPERS if f" {name}(" in codes]
    lines += [f"{name} = {code}" for name, code in before.items()]
    if len(labels) == 1:
        lines += [f"score = {scores[0]}", f"# There is one class, {labels[0]}.", "probability = 1"]
    elif len(labels) == 2:
        said = f"# Of {labels[1]}, which is predicted where the score is above 0, else {labels[0]}:"
        lines += [f"score = {scores[0]}", said, f"probability = {probability.format('score')}"]
    else:
        numbers = range(1, len(labels) + 1)
        lines += [f"score_{k} = {scores[k - 1]}  # {labels[k - 1]}" for k in numbers]
        lines += [f"p_{k} = {probability.format(f'score_{k}')}" for k in numbers]
        lines.append(f"total = {script.total(f'+ p_{k}' for k in numbers)}")
        lines.append("# Of each class; that of the highest score is predicted:")
        lines += [
            f"probability_{k} = where(total > 0, p_{k} / total, 1 / {len(labels)})"
            f"  # {labels[k - 1]}"
            for k in numbers
        ]
    return "\n".join(lines)
