"""Hazard models without privacy: maximum likelihood, or the minimum of a capped loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdpsurv.data.blocks import Blocks
from skdpsurv.dp.noise import RandomSource
from skdpsurv.dp.plan import Context, Mechanism
from skdpsurv.dp.types import FloatArray
from skdpsurv.likelihoods.links import LINKS, Link
from skdpsurv.mechanisms import newton
from skdpsurv.survival.hazards.life_table import exits_and_entries, fit_to_exits, outcome_counts
from skdpsurv.survival.hazards.model import (
    HazardModel,
    Records,
    in_published,
    likelihood_of,
    orthogonal_basis,
    released,
)

#: Newton steps of the baseline that maximum likelihood starts from.
STARTING_STEPS = 4


@dataclass(frozen=True, eq=False)
class HazardMaximum(Mechanism):
    """The fit without privacy: no clipping of rows, no ridge, and a cap only if it is a number."""

    model: HazardModel

    name = "maximum likelihood, no noise"
    law = "none"
    proof = ""
    price = math.inf

    def run(self, context: Context, records: Records, source: RandomSource) -> dict[str, Any]:
        """Return baseline and coefficients."""
        rows = records.map(lambda block: block.clipped(0.0, math.inf))
        baseline, effects = maximum_likelihood(self.model, records, rows)
        coef, over_time = in_published(self.model, effects)
        return released(self.model, baseline, coef) | over_time


def starting_baseline(
    exits: FloatArray, basis: FloatArray, link: Link, entries: FloatArray | None = None
) -> FloatArray:
    """Return baseline coefficients to start from, of exits (n_intervals, 2), and of entries."""
    # Half an event more, so that there is one.
    gone = exits.sum(axis=1) if entries is None else exits.sum(axis=1) - entries
    intervals, start = float(np.arange(1, len(basis) + 1) @ gone), np.zeros(basis.shape[1])
    start[0] = link.predictor((exits[:, 1].sum() + 0.5) / (intervals + 1.0))
    return fit_to_exits(exits, basis, link, start, 0.0, STARTING_STEPS, entries)


def maximum_likelihood(
    model: HazardModel, records: Records, rows: Blocks[Any]
) -> tuple[FloatArray, FloatArray]:
    """Return baselines on the grid and effects without noise and ridge, for records as rows.

    The baseline is of shape (n_intervals,), or with strata (n_strata, n_intervals).
    """
    cap = None if isinstance(model.max_cumulative_hazard, str) else model.max_cumulative_hazard
    basis = orthogonal_basis(*model.curve)
    link = LINKS[model.link] if cap is None else model.bounded_link()
    likelihood = likelihood_of(model, basis, link, cap)
    levels, q = range(0, model.n_baseline, model.n_columns), model.n_intervals
    center = np.zeros(likelihood.n_params)
    center[list(levels)] = link.predictor(model.prior_hazard)
    start = np.zeros_like(center)
    all_entries: Any = [None] * len(levels)
    if model.has_entry:
        all_exits, all_entries = exits_and_entries(records, q, model.n_strata)
    else:
        counts = outcome_counts(records, q, q, model.n_strata)
        all_exits = counts.reshape(-1, q, 2).astype(np.float64)
    for exits, entries, level in zip(all_exits, all_entries, levels, strict=True):
        own = slice(level, level + model.n_columns)
        start[own] = starting_baseline(exits, basis, link, entries)
    coef = newton.maximum_likelihood(likelihood, rows, center, start)
    baselines = coef[: model.n_baseline].reshape(-1, model.n_columns)
    found = np.array([basis @ own for own in baselines])
    return found[0] if model.n_strata == 1 else found, coef[model.n_baseline :]
