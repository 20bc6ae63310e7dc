"""A discrete hazard model as a formula."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skdpsurv.types import FloatArray

if TYPE_CHECKING:
    from skdpsurv.scoring.script import Script
    from skdpsurv.survival.recalibration import Recalibration

#: Inverse links.
HAZARDS = {"logit": "expit({})", "cloglog": "1 - exp(-exp({}))", "probit": "normal_cdf({})"}


def write_survival(
    script: Script,
    coef: FloatArray,
    baseline_coef: FloatArray,
    recalibration: Recalibration,
    *,
    max_time: float,
    n_intervals: int,
    link: str,
) -> str:
    """Return the risk score, and survival as a step function of time."""
    end, q = script.number(max_time), script.number(n_intervals)
    spline = script.weighted(baseline_coef, _basis(baseline_coef.size, script))
    line = _broken_line(recalibration, script)
    slope = "" if recalibration.slope == 1 else f"{script.number(recalibration.slope)} * "
    lines = [
        f"score = {script.linear(coef)}",
        f"\n# Survival up to a time in [0, {end}], on {q} intervals:",
        "d(t, k) = max(t - k, 0) ** 3 / (1 - k)" if baseline_coef.size > 2 else "",
        "bend(t, k) = max(t - k, 0)" if line else "",
        f"baseline(t) = {spline}{line}",
        f"hazard(s) = {HAZARDS[link].format(f'baseline(s / {q}) + {slope}score')}",
        f"end(s) = {end} * (s / {q})",
        f"survival(time) = product(1 - hazard(s) for s in integers(1, {q}) if end(s) <= time)",
    ]
    return "\n".join(filter(None, lines))


def _basis(n_knots: int, script: Script) -> list[str]:
    """Return the published basis on (0, 1], where what begins at the last knot is 0."""
    knots = [f"d(t, {script.number(knot)})" for knot in np.linspace(0.0, 1.0, n_knots)[:-1]]
    return ["1", "t", *(f"({knot} - {knots[-1]})" for knot in knots[:-1])][:n_knots]


def _broken_line(recalibration: Recalibration, script: Script) -> str:
    """Return what is added to the baseline, as a sum of a line and its bends; or nothing."""
    shift, slopes = recalibration.shift, recalibration.slopes
    if not shift.any():
        return ""
    weights = [shift[0], slopes[0], *np.diff(slopes)]
    bends = [f"bend(t, {script.number(knot)})" for knot in recalibration.knots[1:-1]]
    return f" + ({script.weighted(weights, ['1', 't', *bends])})"
