"""What came out, for a terminal: it follows from the release alone, and costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from skdpsurv.cli.printing import rich_table
from skdpsurv.release import Release
from skdpsurv.report.coefficients import cautions

__all__ = ["result_lines", "results"]

#: Times that curves are shown at, up to the horizon.
N_TIMES = 4


def result_lines(release: Release) -> Iterator[Any]:
    """Yield a table of coefficients, with how to read them, or of curves, once it is asked for.

    Intervals of curves may be simulated.
    """
    found = results(release)
    if found is not None:
        title = "Survival" if "survival" in found else "Per unit, within the public bounds"
        yield rich_table(found, title)
        if "coef" in found:
            yield from cautions(release._model)


def results(release: Release) -> pd.DataFrame | None:
    """Return coefficients per unit of the columns, or probabilities to survive a few times.

    Parameters
    ----------
    release : Release

    Returns
    -------
    DataFrame or None
        None of a model that has neither, or needs more than its release.
    """
    try:
        model = release._model
    except (ValueError, TypeError):
        return None
    if hasattr(model, "survival_function_at_times"):
        end = float(release.parameters["max_time"])
        return curves(model, np.linspace(0.0, end, N_TIMES + 1)[1:])
    if getattr(model, "inference_", None) is not None:
        names = ["coef", "exp(coef)", "exp(coef) lower 95%", "exp(coef) upper 95%"]
        summary: pd.DataFrame = model.summary
        return summary[names].rename_axis("column").reset_index()
    try:
        return release.units().reset_index()
    except (ValueError, TypeError, AttributeError):
        return None


def curves(model: Any, times: Any) -> pd.DataFrame:
    """Return the probability to survive each time, with intervals, by group."""
    groups = {None: model}
    if getattr(model, "groups_", None) is not None:
        groups = {label: model.of_group(label) for label in model.groups_.tolist()}
    parts = []
    for label, one in groups.items():
        survival = one.survival_function_at_times(times).to_numpy()
        part = pd.DataFrame({"time": times, "survival": survival})
        if hasattr(one, "survival_band"):
            band = one.survival_band(times)
            part["lower"], part["upper"] = band["lower"].to_numpy(), band["upper"].to_numpy()
        for cause in getattr(one, "causes_", ()):
            incidence = one.cumulative_density_at_times(times, cause=cause)
            band = one.cumulative_density_band(times, cause=cause)
            part[f"incidence_{cause}"] = incidence.to_numpy()
            part[f"incidence_{cause}_lower"] = band["lower"].to_numpy()
            part[f"incidence_{cause}_upper"] = band["upper"].to_numpy()
        if label is not None:
            part.insert(0, "group", label)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)
