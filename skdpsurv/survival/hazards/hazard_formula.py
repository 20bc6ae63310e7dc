"""Released hazard models as formulas in plain text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from skdpsurv.data.over_time import OverTime
from skdpsurv.survival.hazards.model import Recalibration
from skdpsurv.survival.hazards.strata import labels_in

if TYPE_CHECKING:
    from skdpsurv.release.script import Script


def hazard_formula(model: Any, script: Script) -> str:
    """Return score, baseline, hazard and survival of a fitted model, line by line."""
    stated, recalibration = model.release_.parameters, model.recalibration_
    end, q = script.number(stated["max_time"]), script.number(stated["n_intervals"])
    n_knots = int(stated["n_knots"])
    terms, coefs = basis_terms(n_knots, script), np.atleast_2d(model.baseline_coef_)
    shifts = np.broadcast_to(recalibration.shift, (len(coefs), recalibration.knots.size))
    lines = [broken_line(replace(recalibration, shift=own), script) for own in shifts]
    changes = model._changes
    if changes is not None and coefs.shape[1] > n_knots:
        steps = OverTime("steps", changes.public.step_times)
        terms += [f"({one})" for one in steps.written(*_grid(model), script.number)]
    splines = [script.weighted(own, terms) + line for own, line in zip(coefs, lines, strict=True)]
    if model.baseline_coef_.ndim == 2:
        labels = labels_in(model.release_)
        told = [script.indicator(stated["strata"], label) for label in labels]
        splines = [f"{which} * ({own})" for which, own in zip(told, splines, strict=True)]
    spline = "\n    + ".join(splines)
    slope = "" if recalibration.slope == 1 else f"{script.number(recalibration.slope)} * "
    predictor = f"baseline(s / {q}) + {slope}score"
    if changes is not None:
        predictor += f" + change(s / {q})"  # no recalibration, and so no slope, goes with it
    text = [
        f"score = {script.linear(model.coef_)}",
        "" if changes is None else f"change(t) = {_change(model, script)}",
        f"\n# Survival up to a time in [0, {end}], on {q} intervals:",
        "d(t, k) = max(t - k, 0) ** 3 / (1 - k)" if n_knots > 2 else "",
        "bend(t, k) = max(t - k, 0)" if any(lines) else "",
        f"baseline(t) = {spline}",
        f"hazard(s) = {model._link.formula.format(predictor)}",
        f"end(s) = {end} * (s / {q})",
        f"survival(time) = product(1 - hazard(s) for s in integers(1, {q}) if end(s) <= time)",
    ]
    return "\n".join(filter(None, text))


def _change(model: Any, script: Script) -> str:
    """Return products of centred features with functions of t, a share of the horizon, as a sum."""
    changes, grid = model._changes, _grid(model)
    changing = changes.public
    written = [line for kind in changing.kinds for line in kind.written(*grid, script.number)]
    terms = []
    for j, k in zip(changing.columns, changing.scaled.functions, strict=True):
        center = changes.center[j]
        own = f"z{j + 1}" if center == 0 else f"(z{j + 1}{script.signed(-center)})"
        terms.append(f"{own} * ({written[k]})")
    return script.weighted(model.over_time_coef_, terms)


def _grid(model: Any) -> tuple[int, float]:
    stated = model.release_.parameters
    return int(stated["n_intervals"]), float(stated["max_time"])


def basis_terms(n_knots: int, script: Script) -> list[str]:
    """Return the published basis on (0, 1], where the last knot's cubic is 0."""
    knots = [f"d(t, {script.number(knot)})" for knot in np.linspace(0.0, 1.0, n_knots)[:-1]]
    return ["1", "t", *(f"({knot} - {knots[-1]})" for knot in knots[:-1])][:n_knots]


def broken_line(recalibration: Recalibration, script: Script) -> str:
    """Return the shift of the baseline as a sum of a line and its bends; "" for none."""
    shift, slopes = recalibration.shift, recalibration.slopes
    if not shift.any():
        return ""
    weights = [shift[0], slopes[0], *np.diff(slopes)]
    bends = [f"bend(t, {script.number(knot)})" for knot in recalibration.knots[1:-1]]
    return f" + ({script.weighted(weights, ['1', 't', *bends])})"


def cause_formula(model: Any, script: Script) -> str:
    """Return scores of causes, and survival without an event of any, as a script."""
    stated = model.release_.parameters
    end, q = script.number(stated["max_time"]), script.number(stated["n_intervals"])
    n_knots = model.baseline_coef_.shape[1]
    terms, odds, predictors, causes = basis_terms(n_knots, script), [], [], []
    each = zip(model.causes_, model.coef_, model.baseline_coef_, model.recalibration_, strict=True)
    for j, (cause, coef, baseline, recalibration) in enumerate(each, 1):
        line = broken_line(recalibration, script)
        slope = recalibration.slope
        score = f"{'' if slope == 1 else f'{script.number(slope)} * '}score{j}"
        causes.append(f"{j} is {script.label(cause)}")
        odds.append(f"score{j} = {script.linear(coef)}")
        predictors += [
            f"baseline{j}(t) = {script.weighted(baseline, terms)}{line}",
            f"odds{j}(s) = exp(baseline{j}(s / {q}) + {score})",
        ]
    total = " + ".join(["1", *(f"odds{j}(s)" for j in range(1, len(causes) + 1))])
    lines = [
        f"# Cause {', '.join(causes)}.",
        *odds,
        f"\n# Survival, without any event, up to a time in [0, {end}], on {q} intervals:",
        "d(t, k) = max(t - k, 0) ** 3 / (1 - k)" if n_knots > 2 else "",
        "bend(t, k) = max(t - k, 0)" if "bend(" in "".join(predictors) else "",
        *predictors,
        f"end(s) = {end} * (s / {q})",
        f"survival(time) = product(1 / ({total}) for s in integers(1, {q}) if end(s) <= time)",
    ]
    return "\n".join(filter(None, lines))
