"""How good the model is on other records, and what saying so has cost."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

from skdpsurv.metrics.evaluation_result import SurvivalEvaluation
from skdpsurv.plotting.calibration_plot import plot_calibration
from skdpsurv.privacy import PrivacyGuarantee
from skdpsurv.report.blocks import Block, Figure, Note, Table
from skdpsurv.report.figures import svg
from skdpsurv.report.promise import status_words, unit_of
from skdpsurv.report.text import exact, short

__all__ = ["quality"]


def quality(release: Any, evaluation: SurvivalEvaluation) -> list[Block]:
    """Return the measures of an evaluation, calibration, and its guarantee.

    Raises
    ------
    TypeError
        If it is no evaluation.
    """
    if not isinstance(evaluation, SurvivalEvaluation):
        raise TypeError(
            f"evaluation must be of private_survival_metrics, got {type(evaluation).__name__}."
        )
    level = f"{100 * evaluation.level:g} %"
    rows = [
        (name, short(value), f"{short(low)} to {short(high)}")
        for name, (value, low, high) in zip(
            evaluation.summary.index, evaluation.summary.to_numpy().tolist(), strict=True
        )
    ]
    groups = [
        (
            f"{number} of {len(evaluation.groups)}",
            f"{group.share:.0%}",
            _with_interval(group.predicted),
            _with_interval(group.observed),
        )
        for number, group in enumerate(evaluation.groups, 1)
    ]
    end = short(evaluation.max_time)
    found = (
        f"The horizon is {end}, in the unit of the fit; {evaluation.uncensored:.0%} were followed"
    )
    caption = "Observed against predicted survival, by groups of predicted risk."
    picture = svg(partial(_draw, evaluation), "calibration", 4.4, caption)
    return [
        Note(f"{found} so long, or would have been but for an event, by the noisy counts."),
        Table("Measures", ("Measure", "Value", f"{level} interval"), rows),
        *([] if picture is None else [Figure(picture, caption)]),
        Table(
            f"Survival to {end} by group of risk, from the highest, with {level} intervals",
            ("Group", "Share", "Predicted", "Observed"),
            groups,
        ),
        *_price(release.guarantee, evaluation.guarantee),
    ]


def _draw(evaluation: SurvivalEvaluation, ax: Any) -> None:
    plot_calibration(evaluation, ax=ax)


def _with_interval(estimate: Any) -> str:
    value, low, high = estimate
    return f"{value:.3f} ({low:.3f} to {high:.3f})"


def _price(fit: PrivacyGuarantee, own: PrivacyGuarantee) -> list[Block]:
    """Return what the evaluation promises itself, and what both promise together."""
    headline, meaning = status_words(own)
    blocks: list[Block] = [
        Note(
            f"The evaluation read records too, and has a guarantee of its own: epsilon = "
            f"{exact(own.epsilon)}, about each {unit_of(own)}. {headline}. {meaning}",
            alarm=own.status != "proved",
        )
    ]
    if own.status != "proved" or fit.status != "proved":
        blocks.append(Note("Fit and evaluation together promise no more than the weaker of them."))
    elif own.neighbours == fit.neighbours:
        both = _sum(fit.epsilon, own.epsilon)
        slips = _sum(fit.delta, own.delta)
        and_delta = f" and delta = {slips}" if fit.delta or own.delta else ""
        blocks.append(
            Note(
                "If the same people are among the records of the fit and of the evaluation, the "
                f"epsilons add up: both together promise epsilon = {both}{and_delta}."
            )
        )
    else:
        blocks.append(Note("The two guarantees are about different units: do not add them up."))
    return blocks


def _sum(one: float, other: float) -> str:
    """Return a sum of two numbers as they print, without rounding; else rounded up."""
    whole = Fraction(repr(one)) + Fraction(repr(other))
    number = float(whole)
    return exact(number if Fraction(repr(number)) >= whole else math.nextafter(number, math.inf))
