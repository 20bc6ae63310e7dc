"""The figure of an audit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from skdpsurv.plotting.style import colour, pyplot
from skdpsurv.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure


N_BINS = 60
NAMES = ("data", "neighbour")


def plot_audit(result: Any) -> Figure:
    """Draw histograms of the held-out scores, and rates of events beside the claim.

    Parameters
    ----------
    result : AuditResult

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, (left, right) = pyplot("AuditResult.plot").subplots(
        1, 2, figsize=(10.0, 4.5), layout="constrained"
    )
    pooled = np.concatenate(result.scores)
    if pooled.size:
        low, high = (float(end) for end in np.quantile(pooled, [0.002, 0.998]))
        edges = np.linspace(low, high, N_BINS + 1)
        edges = edges if np.ptp(edges) > 0 else edges[0] + np.linspace(-0.5, 0.5, N_BINS + 1)
        for i, (scores, name) in enumerate(zip(result.scores, NAMES, strict=True)):
            inside = np.clip(scores, edges[0], edges[-1])
            left.hist(inside, bins=edges, color=colour(i), alpha=0.5, label=name)
        left.axvline(result.threshold, color="black", linewidth=1.0)
        left.legend(frameon=False)
    left.set_xlabel(f"Score ({result.statistic})")
    left.set_ylabel("Held-out fits")

    thresholds = np.unique(pooled)
    least = 1.0 / max(result.scores[0].size, 1)
    rates = np.geomspace(least / 2.0, 1.0, 200)
    right.plot(rates, claim_line(result, rates), color="black", label="most that is allowed")
    for i in (0, 1):
        above = [
            1.0 - np.searchsorted(np.sort(one), thresholds, "right") / max(one.size, 1)
            for one in result.scores
        ]
        x = np.concatenate([above[1 - i], 1.0 - above[1 - i]])
        y = np.concatenate([above[i], 1.0 - above[i]])
        x, y = x[y >= x], y[y >= x]  # the other events are those of the other data set
        right.plot(
            np.maximum(x, least / 2.0),
            np.maximum(y, least / 2.0),
            ".",
            markersize=2.5,
            color=colour(i),
            label=f"events of {NAMES[i]}",
        )
    right.set_xscale("log")
    right.set_yscale("log")
    right.set_xlabel("Rate on the other data set")
    right.set_ylabel("Rate on this data set")
    right.legend(frameon=False, loc="lower right")
    found = f"found: epsilon ≥ {result.lower_bound:.2f}, claimed: {result.claimed:g}"
    figure.suptitle(found)
    return figure


def claim_line(result: Any, rates: FloatArray) -> FloatArray:
    """Return the largest rate on one data set that the claim allows, given the other's."""
    return np.minimum(1.0, math.exp(result.claimed) * rates + result.delta)
