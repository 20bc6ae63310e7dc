"""AuditResult: what an attack on a guarantee has found."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from skdpsurv.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["AuditResult", "at_most"]


def at_most(found: float, allowed: float) -> bool:
    """Say whether what was found is allowed: sums over thousands of records are rounded."""
    return found <= allowed * (1.0 + 1e-9)


@dataclass(frozen=True, eq=False, repr=False)
class AuditResult:
    """A lower bound on the epsilon of a mechanism, found by experiment.

    Parameters
    ----------
    lower_bound : float
        Epsilon is at least this, with probability ``confidence``; 0 if nothing was found.
    claimed : float
        Epsilon as the estimator states it.
    delta : float
        As the estimator states it.
    confidence : float
        Probability, at least, with which ``lower_bound`` does not exceed the true epsilon.
    n_trials : int
        Fits of each of the two data sets.
    resolution : float
        The largest bound that so many fits can give: an epsilon beyond it goes unnoticed.
    statistic : str
        What told the data sets apart best: "linear", "quadratic", "forest", or "given".
    threshold : float
        Of the scores by that statistic.
    n_failed : tuple of (int, int)
        Fits of ``data`` and of ``neighbour`` that raised an error. That they did is looked at, too;
        if nearly all did, the audit has seen nothing else.
    rates : tuple of (float, float)
        Shares of the held-out releases of ``data`` and of ``neighbour`` on the event's side of the
        threshold.
    scores : tuple of ndarray
        Scores of the held-out releases of ``data`` and of ``neighbour``.

    Notes
    -----
    A bound below the claim proves nothing: another pair of neighbours, or a cleverer attack, may
    find more. A bound above it refutes the claim.
    """

    lower_bound: float
    claimed: float
    delta: float
    confidence: float
    n_trials: int
    resolution: float
    statistic: str
    threshold: float = math.nan
    n_failed: tuple[int, int] = (0, 0)
    rates: tuple[float, float] = (math.nan, math.nan)
    scores: tuple[FloatArray, FloatArray] = field(
        default_factory=lambda: (np.zeros(0), np.zeros(0))
    )

    @property
    def passed(self) -> bool:
        """Whether the claim was not refuted."""
        return self.lower_bound <= self.claimed

    def __repr__(self) -> str:
        verdict = "not refuted" if self.passed else "REFUTED"
        delta = f", delta={self.delta:g}" if self.delta else ""
        failed = f"; {sum(self.n_failed):,} fits failed" if any(self.n_failed) else ""
        return (
            f"AuditResult(claim of epsilon={self.claimed:g}{delta} {verdict}: "
            f"epsilon >= {self.lower_bound:.3g} at confidence {_shown(self.confidence)}; "
            f"{self.n_trials:,} fits of each data set can show up to {self.resolution:.3g}; "
            f"statistic={self.statistic!r}{failed})"
        )

    def plot(self) -> Figure:
        """Draw the held-out scores, and how well they tell the data sets apart.

        Left: histograms of the scores, with the threshold. Right: how often scores beyond each
        threshold happen on one data set and on the other, beside the most that the claim allows.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        from skdpsurv.audit.figure import plot_audit

        return plot_audit(self)

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(repr(self))}</pre>"


def _shown(confidence: float) -> str:
    return f"{confidence:g}" if confidence <= 0.999 else f"1 - {1.0 - confidence:.2g}"
