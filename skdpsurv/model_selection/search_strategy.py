"""Ways to search as objects: what is random about a search, and which records score."""

from __future__ import annotations

import math
from typing import ClassVar

from skdpsurv.checks import Check, Parameters, number_in, optional

__all__ = ["DisjointParts", "RepeatedRuns"]


class RepeatedRuns(Parameters):
    """Random candidates, a random number of times: ``PrivateSearchCV(strategy=...)``.

    Each run is trained on one part of the records with ``epsilon / (2 + eta)`` and scored on the
    other. ``strategy="repeat"`` is this with its defaults.

    Parameters
    ----------
    eta : float in (-1, 1], default=1.0
        0: logarithmic law, 1: geometric law of the number of runs. The larger, the surer that there
        are many runs, and the less epsilon each has.
    expected_runs : float or None, default=None
        Expected number of runs. Costs time, and no privacy. None: ten for each candidate.
    holdout : float, default=0.2
        Share of the records to score on.

    Examples
    --------
    >>> from skdpsurv import DPLogisticRegression, PrivateSearchCV
    >>> from skdpsurv.model_selection import RepeatedRuns
    >>> model = DPLogisticRegression(classes=[0, 1])
    >>> search = PrivateSearchCV(model, {"alpha": [0.01, 1.0]}, strategy=RepeatedRuns(eta=0.0))
    >>> search.set_params(strategy__expected_runs=8).strategy
    RepeatedRuns(eta=0.0, expected_runs=8)
    """

    _rules: ClassVar[dict[str, Check]] = {
        "eta": number_in(-1.0, 1.0, closed="right"),
        "expected_runs": optional(number_in(1.0, math.inf, closed="left")),
        "holdout": number_in(0.0, 1.0, closed="neither"),
    }

    def __init__(
        self, *, eta: float = 1.0, expected_runs: float | None = None, holdout: float = 0.2
    ) -> None:
        self.eta = eta
        self.expected_runs = expected_runs
        self.holdout = holdout


class DisjointParts(Parameters):
    """Each candidate once, on a part of the records of its own, with all of epsilon.

    For many records and few candidates: ``PrivateSearchCV(strategy=...)``. ``strategy="split"`` is
    this with its default.

    Parameters
    ----------
    holdout : float, default=0.2
        Share of the records to score on.
    """

    _rules: ClassVar[dict[str, Check]] = {"holdout": number_in(0.0, 1.0, closed="neither")}

    def __init__(self, *, holdout: float = 0.2) -> None:
        self.holdout = holdout
