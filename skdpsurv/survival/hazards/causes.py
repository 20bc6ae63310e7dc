r"""A perturbed fit of competing hazards: its life table by cause, its caps, and its minimiser.

The pilot's life table has each record in one cell of band and outcome (censored, or one of J
causes), and of entry where that is stated. Neighbours: replace-one. Sensitivity and theorem: those
of a histogram (:mod:`skdpsurv.mechanisms.sums`). Caps are shared out by what it releases, with
:math:`\Lambda_j` the cumulative hazard of cause j in the released table:

.. math:: H_j = H\Big[\frac{f}{J} + (1 - f)\frac{\Lambda_j}{\sum_i\Lambda_i}\Big],
          \qquad f = .5

so that rare causes keep some. The stacked sensitivity is convex in the caps, so its largest value
is at one of the ends of this range, and its least where caps are equal (docs/proofs/
competing_risks).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from skdpsurv.data.blocks import Blocks
from skdpsurv.dp.noise import RandomSource
from skdpsurv.dp.plan import Context
from skdpsurv.dp.references import reference
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.likelihoods.competing_hazard import CompetingHazard
from skdpsurv.likelihoods.links import LOGIT, steepness
from skdpsurv.mechanisms import newton, perturbation
from skdpsurv.mechanisms.newton import Center
from skdpsurv.mechanisms.sums import HISTOGRAM
from skdpsurv.priors import Evidence
from skdpsurv.survival.hazards import model as models
from skdpsurv.survival.hazards.fit import (
    CappedFit,
    HazardFit,
    HazardMinimiser,
    HazardSum,
    stated_range,
)
from skdpsurv.survival.hazards.life_table import (
    entry_counts,
    exits_and_entries,
    n_seen_cells,
    outcome_counts,
    seen_cells,
    shrunk_baseline,
    spread_entries,
    spread_exits,
)
from skdpsurv.survival.hazards.maximum import HazardMaximum, starting_baseline
from skdpsurv.survival.hazards.pilot_estimate import PilotEstimate

PROOF = reference("docs/proofs/competing_risks", "chaudhuri")
#: Part f of the cap that causes have in equal shares.
EQUAL_PART = 0.5
#: max_cumulative_hazard="auto" is so many times that of one cause with a recalibration, which makes
#: good what a low cap does to hazards. With one of causes it matters as little.
CAP_TIMES = 1.5


def against_survivors(exits: FloatArray, cause: int) -> FloatArray:
    """Return exits, of shape (q, 2), of one cause (from 1) against surviving.

    Whoever had an event of another cause leaves one interval earlier, without an event.
    """
    others = exits[:, 1:].sum(axis=1) - exits[:, cause]
    return np.column_stack([exits[:, 0] + np.append(others[1:], 0.0), exits[:, cause]])


def prior_center(model: models.HazardModel, n_causes: int) -> float:
    """Return the log-odds of each cause against surviving, of equal shares of the prior hazard."""
    hazard = model.prior_hazard
    return float(LOGIT.predictor(hazard / (hazard + n_causes * (1.0 - hazard))))


def log_slopes(predictors: FloatArray) -> FloatArray:
    """Return derivatives of the log hazards of causes along their baselines, in rows of one."""
    return np.array([[steepness(LOGIT.survival(one))] for one in predictors])


class CauseTable(HazardSum):
    """Noisy counts of records by band of time and outcome, and the baselines fitted to them."""

    name = "a life table by cause"
    fit: CausesFit
    query = HISTOGRAM  # each record is in one cell
    theorem = PROOF

    def exact_answer(self, context: Context, records: models.Records) -> IntArray:
        """Return the exact counts by band of time and outcome."""
        fit: Any = self.fit
        count = entry_counts if fit.model.has_entry else outcome_counts
        return count(records, fit.model.n_intervals, models.N_BANDS, n_causes=fit.n_causes)

    def postprocess(self, context: Context, noisy: IntArray) -> dict[str, Any]:
        """Return the baselines to shrink to, of shape (n_causes, n_knots)."""
        fit, entries = self.fit, None
        q, n_outcomes = fit.model.n_intervals, fit.n_causes + 1
        entered: dict[str, Any] = {}
        if fit.model.has_entry:
            exits, entries = spread_entries(table := seen_cells(noisy, n_outcomes), q)
            n_cells = n_seen_cells(table.shape[1], n_outcomes)
            entered["_entered"] = table.sum(axis=(1, 2))
            entered["_events"] = np.clip(table[:, :, 1:].sum(), 0.0, fit.model.n_records)
        else:
            table = np.maximum(noisy, 0).astype(np.float64).reshape(-1, n_outcomes)
            exits, n_cells = spread_exits(table, q), table.size
        noise = HISTOGRAM.deviation(self.price) ** 2 * n_cells
        prior = fit.public_pilot.center[: fit.model.n_knots]
        how = noise, fit.basis, LOGIT, prior
        found = [
            shrunk_baseline(against_survivors(exits, cause), entries, *how)
            for cause in range(1, fit.n_causes + 1)
        ]
        return {"_baseline": np.array([fit.clip_baseline(each) for each in found]), **entered}


@dataclass(frozen=True)
class CausesFit(HazardFit):
    """Public numbers of a perturbed fit of ``n_causes`` competing hazards."""

    life_table: ClassVar[Any] = CauseTable

    @property
    def scored_causes(self) -> range:
        return range(1, self.n_causes + 1)

    def _made(self, cap: Any) -> CappedFit:
        caps = cap if isinstance(cap, tuple) else self.shared(cap, np.ones(self.n_causes))
        how = self.basis, self.model.n_features, caps
        likelihood: Any = CompetingHazard(*how, weighted=self.has_inference)
        return CappedFit(likelihood, self.calibrated(likelihood))

    def center_of(self, likelihood: Any) -> Center:
        """Return public bounds on the centre of the ridge, of all causes, and on the loss there."""
        own = super().center_of(likelihood)
        return replace(own, norm=math.sqrt(self.n_causes) * own.norm)

    def shared(self, cap: float, levels: FloatArray) -> tuple[float, ...]:
        """Return the caps of causes, by their cumulative hazards.

        They add up to no more than the number of intervals: a larger cap of one cause would be cut
        to it, and S be largest at none of the ends.
        """
        cap = min(cap, float(self.model.n_intervals))
        shares = levels / max(float(levels.sum()), 1e-300)
        shares = EQUAL_PART / self.n_causes + (1.0 - EQUAL_PART) * shares
        return tuple((cap * shares).tolist())

    @property
    def ends(self) -> list[CappedFit]:
        """The fits with the least and the highest caps, equal and as unequal as they may be."""
        caps = [models.CAP_RANGE[0], self.highest_cap] if self._follows else [self.highest_cap]
        if not self.has_pilot or self.n_causes == 1:
            return [self.bounded(cap) for cap in caps]
        one = np.eye(self.n_causes)[0]
        found: list[Any] = [each for cap in caps for each in (cap, self.shared(cap, one))]
        return [self.bounded(each) for each in found]

    def after(self, pilot: PilotEstimate) -> CappedFit:
        """Return likelihood and calibration, with the caps that follow from a life table."""
        if not self.has_pilot:
            return self.bounded(self.highest_cap)
        levels = self.levels(pilot)[:, 0]
        cap = self.cap_at(float(levels.sum())) if self._follows else self.highest_cap
        caps: Any = self.shared(cap, levels)
        return self.bounded(caps)

    def hazards(self, pilot: PilotEstimate) -> FloatArray:
        return super().hazards(pilot).sum(axis=0, keepdims=True)

    def levels(self, pilot: PilotEstimate) -> FloatArray:
        return super().hazards(pilot).sum(axis=1, keepdims=True)

    def log_slopes(self, pilot: PilotEstimate) -> FloatArray:
        return log_slopes(self.baselines(pilot.center) @ self.basis.T)

    @property
    def prior_predictor(self) -> float:
        return prior_center(self.model, self.n_causes)

    def baselines(self, coef: FloatArray) -> FloatArray:
        """Return the coefficients of the baselines, a row for each cause: a view of all."""
        return coef.reshape(self.n_causes, -1)[:, : self.model.n_knots]

    def effects(self, coef: FloatArray) -> FloatArray:
        return coef.reshape(self.n_causes, -1)[:, self.model.n_knots :]

    def posterior_mean(self, point: FloatArray, own: Evidence, pilot: PilotEstimate) -> FloatArray:
        """Return a minimiser whose coefficients are combined with the prior.

        Each cause keeps the size along its new direction that it had: estimates without shrinkage
        are too large where rows tell more than was guessed, and no recalibration need follow.
        """
        if self.prior is None:
            return point
        found = super().posterior_mean(point, own, pilot)
        for new, old in zip(self.effects(found), self.effects(point), strict=True):
            new *= np.clip(old @ new / max(float(new @ new), 1e-300), 0.0, 1.0)
        return found

    def minimiser(self) -> CausesMinimiser:
        return CausesMinimiser(self)

    def fitted(self, coef: FloatArray, pilot: PilotEstimate) -> dict[str, Any]:
        """Return a point as values of a release: baselines and coefficients of each cause."""
        a, beta = np.split(coef.reshape(self.n_causes, -1), [self.model.n_knots], axis=1)
        beta = beta / pilot.unit
        baselines = a @ self.basis.T - (beta @ pilot.mean)[:, None]
        caps: Any = self.after(pilot).likelihood
        values = {"_fitted": (baselines, beta), **models.released(self.model, baselines, beta)}
        return {**values, **pilot.values(), models.CAPS[0]: list(caps.caps)}


class CausesMinimiser(HazardMinimiser):
    """The perturbed minimiser of capped hazards of all causes together, after a pilot."""

    fit: CausesFit

    @property
    def name(self) -> str:  # type: ignore[override]
        """The perturbation in words."""
        how, number = perturbation.NAMES[self.fit.method], self.fit.n_causes
        prior = ", with a prior" if self.fit.prior is not None else ""
        return f"{how} of {number} hazard-capped likelihoods together{prior}"

    proof: ClassVar[str] = PROOF  # type: ignore[misc]

    def stated(self) -> dict[str, Any]:
        """Return the price, and the range of each number that a life table decides."""
        stated = super().stated()
        ends = self.fit.ends
        for name, of in _STATED.items():
            numbers = [of(end) for end in ends]
            stated[name] = stated_range(min(numbers), max(numbers))
        return stated


#: Numbers that are no largest or least at the first or last end.
_STATED: Mapping[str, Any] = {
    "gradient_sensitivity": lambda end: end.likelihood.constants.gradient_sensitivity,
    "hessian_trace": lambda end: end.likelihood.constants.hessian_trace,
    "kappa": lambda end: end.calibration.kappa,
    "noise_scale": lambda end: end.calibration.noise_scale,
}


@dataclass(frozen=True, eq=False)
class CausesMaximum(HazardMaximum):
    """The fit without privacy: caps, of equal shares, only if they are a number."""

    n_causes: int = 1

    def run(
        self, context: Context, records: models.Records, source: RandomSource
    ) -> dict[str, Any]:
        """Return baselines and coefficients."""
        model, n_causes = self.model, self.n_causes
        rows = records.map(lambda block: block.clipped(0.0, math.inf))
        total: Any = model.max_cumulative_hazard
        cap = None if isinstance(total, str) else total / n_causes
        return models.released(model, *maximum_by_cause(model, (cap,) * n_causes, records, rows))


def maximum_by_cause(
    model: models.HazardModel,
    caps: Sequence[float | None],
    records: models.Records,
    rows: Blocks[Any],
) -> tuple[FloatArray, FloatArray]:
    """Return baselines on the grid and coefficients of causes, without noise and ridge."""
    n_causes, q = len(caps), model.n_intervals
    basis = models.orthogonal_basis(q, model.n_knots)
    likelihood = CompetingHazard(basis, model.n_features, tuple(caps))
    center = np.zeros(likelihood.n_params)
    parts = center.reshape(n_causes, -1)
    parts[:, 0] = prior_center(model, n_causes)
    start = np.zeros_like(center)
    exits, entries = outcome_counts(records, q, q, n_causes=n_causes).astype(np.float64), None
    if model.has_entry:
        exits, (entries,) = exits_and_entries(records, q, n_causes=n_causes)
    exits = exits.reshape(q, -1)
    for cause, own in enumerate(start.reshape(n_causes, -1), 1):
        seen = against_survivors(exits, cause)
        own[: model.n_knots] = starting_baseline(seen, basis, LOGIT, entries)
    found = newton.maximum_likelihood(likelihood, rows, center, start)
    a, beta = np.split(found.reshape(n_causes, -1), [model.n_knots], axis=1)
    return a @ basis.T, beta
