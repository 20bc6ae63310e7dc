"""Private classifiers as formulas, in plain text and in R."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from skdpsurv.scoring.script import Script


def chance(script: Script, predictor: str, max_residual: float, slope: float = 1.0) -> str:
    """Return the probability of a linear predictor, for the cap of its loss and a slope of odds."""
    if max_residual == 1:
        if slope != 1:
            predictor = f"{script.number(slope)} * ({predictor})"
        return f"{'plogis' if script.language.name == 'R' else 'expit'}({predictor})"
    cap = script.number(max_residual)
    if slope == 1:
        return f"{CAPPED}({predictor}, {cap})"
    return f"{STEEP}({predictor}, {cap}, {script.number(slope)})"


def write_classes(
    script: Script,
    classes: NDArray[Any],
    scores: Sequence[str],
    probability: str,
    before: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write scores and probabilities.

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
    arrow = script.language.arrow
    first = [f"{name} {arrow} {code}" for name, code in before.items()]
    if len(labels) > 2:
        text, r = _several(labels, scores, probability)
    else:
        text, r = _one(labels, scores[0], probability)
    codes = (probability, *before.values())
    used = [name for name in CHANCE if any(f" {name}(" in f" {code}" for code in codes)]
    script.write(
        text="\n".join([*(line for name in used for line in CHANCE[name]["text"]), *first, *text]),
        R="\n".join(
            [
                *(line for name in used for line in CHANCE[name]["R"]),
                *["score <- function(x) {", "  z <- features(x)"],
                *(f"  {line}" for line in (*first, *r[0])),
                *["}", "", *r[1]],
            ]
        ),
    )


#: Of the logistic loss whose residuals are capped, a cap of 1 being none; and with a slope of odds.
CAPPED, STEEP = "chance", "steep_chance"
CHANCE = {
    CAPPED: {
        "text": [
            "chance(m, cap) = min(expit(m), cap) / (min(expit(m), cap) + min(expit(-m), cap))"
        ],
        "R": [
            "chance <- function(m, cap) {",
            "  up <- pmin(plogis(m), cap)",
            "  up / (up + pmin(plogis(-m), cap))",
            "}",
            "",
        ],
    },
    # In logarithms: a power of what is next to 0 would be 0.
    STEEP: {
        "text": [
            "part(m, cap) = min(log_expit(m), log(cap))",
            "steep_chance(m, cap, b) = expit(b * (part(m, cap) - part(-m, cap)))",
        ],
        "R": [
            "steep_chance <- function(m, cap, b) {",
            "  up <- pmin(plogis(m, 0, 1, TRUE, TRUE), log(cap))",
            "  plogis(b * (up - pmin(plogis(-m, 0, 1, TRUE, TRUE), log(cap))))",
            "}",
            "",
        ],
    },
}


def _one(
    labels: Sequence[str], score: str, probability: str
) -> tuple[list[str], tuple[list[str], list[str]]]:
    """Return lines in text, and in R those of the score and those that follow."""
    if len(labels) == 1:
        said = f"# There is one class, {labels[0]}."
        always = "probability <- function(x) rep(1, nrow(x))"
        return [f"score = {score}", said, "probability = 1"], ([score], [said, always])
    said = f"# Of {labels[1]}, which is predicted where the score is above 0, else {labels[0]}:"
    text = [f"score = {score}", said, f"probability = {probability.format('score')}"]
    return text, ([score], [said, f"probability <- function(x) {probability.format('score(x)')}"])


def _several(
    labels: Sequence[str], scores: Sequence[str], probability: str
) -> tuple[list[str], tuple[list[str], list[str]]]:
    """Return the same for several classes, each against the rest."""
    n_classes, said = len(labels), "# Of each class; that of the highest score is predicted:"
    numbered = list(enumerate(zip(labels, scores, strict=True), start=1))
    text = [f"score_{k} = {score}  # {label}" for k, (label, score) in numbered]
    text += [f"p_{k} = {probability.format(f'score_{k}')}" for k, _ in numbered]
    text += [f"total = ({' + '.join(f'p_{k}' for k, _ in numbered)})", said]
    text += [
        f"probability_{k} = where(total > 0, p_{k} / total, 1 / {n_classes})  # {label}"
        for k, (label, _) in numbered
    ]
    names = ", ".join(label if label.startswith('"') else f'"{label}"' for label in labels)
    r = ["scores <- cbind("]
    r += [f"  {score}{',' * (k < n_classes)}  # {label}" for k, (label, score) in numbered]
    r += [")", f"colnames(scores) <- c({names})", "scores"]
    scaled = [
        "probability <- function(x) {",
        f"  p <- {probability.format('score(x)')}",
        "  p <- p + (rowSums(p) == 0)  # where none is likely, all are alike",
        "  p / rowSums(p)",
        "}",
    ]
    return text, (r, [said, *scaled])
