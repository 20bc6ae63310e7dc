"""The plan of a perturbed hazard fit: a first look, a noisy minimiser, and what sets it right.

A first look spends ``center_share`` of epsilon on a life table, which gives the baseline to shrink
to, and on the covariates' mean: rows are centred by it and clipped to the spread that is left. When
coefficients are released, ``recalibration_share`` pays for a table of their scores over time, which
corrects level, course and slope of the hazard, and ``inference_share`` for standard errors.

The life table counts records by band of the exit time and by event: each record is in one cell, so
replacing one record changes two cells by one. Neighbours: replace-one. Sensitivity: 2 in L1, and
the root of 2 in L2. Theorem: that of a histogram (:mod:`skdpsurv.mechanisms.sums`), however many
bands there are. The baseline that it suggests is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from skdpsurv.data.blocks import Blocks
from skdpsurv.dp.measurement import Known, Measurement
from skdpsurv.dp.plan import Node, Plan, Sequential
from skdpsurv.dp.types import BoolArray, FloatArray, IntArray
from skdpsurv.dp.zcdp import Price, amount, left, part, parts, what_is_left
from skdpsurv.likelihoods.hazard import DiscreteHazard, hazard_block
from skdpsurv.likelihoods.links import Link
from skdpsurv.mechanisms.moments import MeanOfRows
from skdpsurv.mechanisms.sums import HISTOGRAM
from skdpsurv.mechanisms.vector_noise import arithmetic
from skdpsurv.survival.hazards import fit as tuned
from skdpsurv.survival.hazards.fit import HazardFit, HazardMinimiser, HazardSum
from skdpsurv.survival.hazards.inference import ExitCounts, HazardMoments
from skdpsurv.survival.hazards.model import HazardModel, HazardRecords, hazard_plan
from skdpsurv.survival.hazards.posterior import HazardChain, LangevinFit
from skdpsurv.survival.hazards.recalibration import PLACES_PART, RiskPlaces, RiskTable

#: Bands of the table: enough for the shape of a baseline with three knots.
N_BANDS = 4
#: How far, in standard deviations, the log-odds of the hazard and its shape may be from the prior.
LEVEL_DEVIATION, SHAPE_DEVIATION = 2.0, 0.7


def life_table_counts(exits: Blocks[tuple[IntArray, BoolArray]], n_intervals: int) -> IntArray:
    """Count private records, censored and with events, in each band of exit intervals."""
    n_bands = min(N_BANDS, n_intervals)

    def counts(block: tuple[IntArray, BoolArray]) -> IntArray:
        interval, event = block
        cell = 2 * ((interval - 1) * n_bands // n_intervals) + event
        return np.bincount(cell, minlength=2 * n_bands).astype(np.int64)

    return exits.map_sum(counts)


def baseline_from_life_table(
    counts: IntArray, price: Price, basis: FloatArray, link: Link, prior: FloatArray
) -> FloatArray:
    """Fit baseline coefficients to a noisy life table, shrunk towards a prior."""
    q, n_basis = basis.shape
    table = np.maximum(counts, 0).reshape(-1, 2).astype(np.float64)
    n_bands = table.shape[0]
    middle = np.clip(np.rint((np.arange(n_bands) + 0.5) * q / n_bands), 1, q)
    censored = middle.copy()
    censored[-1] = q  # most of the last band's censored records reached the horizon
    block = hazard_block(
        np.zeros((2 * n_bands, 0)),
        np.concatenate([censored, middle]).astype(np.int64),
        np.repeat([False, True], n_bands),
    )
    # As ``hazard_block`` sorts the records that they belong to.
    weights = table.T.ravel()[np.argsort([*censored, *(middle - 1)], kind="stable")]
    likelihood = DiscreteHazard(basis, 0, 0.0, link)
    # Variance of the sum of the cells' noise.
    noise = HISTOGRAM.deviation(price) ** 2 * table.size
    size = np.sqrt(np.mean(basis**2, axis=0))
    deviation = np.full(n_basis, SHAPE_DEVIATION)
    deviation[0] = LEVEL_DEVIATION
    # Ridge that minimises the squared error of a coefficient of this deviation: noise variance
    # over information and variance.
    ridge = noise * size**2 / (max(table[:, 1].sum(), math.sqrt(noise)) * deviation**2)
    coef = prior
    for _ in range(25):
        gradient, hessian = likelihood.derivatives(coef, block, weights)
        assert hessian is not None
        # The small multiple of the identity keeps the system regular beside any table.
        damping = np.diag(ridge + 1e-9 * np.trace(hessian))
        step = np.linalg.solve(hessian + damping, gradient + ridge * (coef - prior))
        largest = float(np.max(np.abs(step * size)))
        coef = coef - step * min(1.0, 1.5 / max(largest, 1e-12))
        if largest < 1e-6:
            break
    return coef


class LifeTable(HazardSum):
    """Exits by band and event, and the baseline that they suggest."""

    name = "a life table"
    asked = HISTOGRAM  # each record is in one cell

    def ask(self, known: Known, records: Blocks[HazardRecords]) -> IntArray:
        """Return exact counts."""
        exits = records.map(lambda block: (block.interval, block.event))
        return life_table_counts(exits, self.fit.model.n_intervals)

    def after(self, known: Known, noisy: IntArray) -> dict[str, Any]:
        """Return the baseline to shrink to."""
        fit = self.fit
        public = fit.public_look.center[: fit.model.n_knots]
        link, basis = fit.likelihood.link, fit.likelihood.basis
        found = baseline_from_life_table(noisy, self.price, basis, link, public)
        return {"_baseline": fit.moderate(found)}


class RowMean(HazardSum):
    """The mean of the rows, which centres them, and the spread that is left."""

    name = "the mean of the rows"

    def query(self, known: Known) -> MeanOfRows:
        """Return the mean, of rows that are clipped."""
        model = self.fit.model
        return MeanOfRows(model.n_records, model.n_features, model.data_norm)

    def spans(self) -> list[float]:
        """Return the noise in units of ``data_norm``, which is the size that a mean can have."""
        query = self.query({})
        return [query.law(self.price).scale / query.data_norm]

    def ask(self, known: Known, records: Blocks[HazardRecords]) -> FloatArray:
        """Return the exact mean."""
        return self.query(known).mean(records.map(lambda block: block.X))

    def after(self, known: Known, noisy: FloatArray) -> dict[str, Any]:
        """Return the mean, the radius that rows are clipped to, and the spread."""
        model, fit = self.fit.model, self.fit
        mean, spread = self.query(known).shrunk(noisy, self.price)
        spread = max(spread, tuned.SMALLEST_SPREAD * model.data_norm)
        least, most = tuned.INFERENCE_SPREAD if fit.weighed else tuned.SPREAD_RANGE
        wider = least * model.signal(fit.epsilon) ** tuned.SPREAD_POWER
        radius = spread * float(np.clip(wider, least, most))
        return {"_mean": mean, "_radius": radius, "_spread": spread}


def fit_of(
    model: HazardModel,
    epsilon: float,
    method: str,
    alpha: float,
    shares: Sequence[float],
    delta: float = 0.0,
    kind: type[HazardFit] = HazardFit,
    **options: Any,
) -> tuple[HazardFit, tuple[Price, Price, Price]]:
    """Return what is public of a fit, and the prices of look, recalibration and inference."""
    enough = model.n_records * epsilon >= tuned.FIRST_LOOK_RECORDS
    shares = [share if enough else 0.0 for share in shares]
    own: Price
    others: Any
    if delta:
        # Squares of mus add up, so that small parts cost little: they get twice their share.
        own, *others = parts(epsilon, delta, [1.0 - sum(shares), *(2.0 * s for s in shares)])
    else:
        others = [share * epsilon for share in shares]
        own = what_is_left(epsilon, *others)
    center, recalibration, inference = others
    looks, weighed = amount(center) > 0.0, amount(inference) > 0.0
    fit = kind(model, epsilon, method, alpha, own, looks=looks, weighed=weighed, **options)
    return fit, (center, recalibration, inference)


def perturbed_plan(
    fit: HazardFit, prices: tuple[Price, Price, Price], delta: float = 0.0, verbose: int = 0
) -> Plan:
    """Return the plan of a fit, with what comes before and after it at these prices."""
    center, recalibration, inference = prices
    nodes: list[Node] = []
    if amount(center):
        of_table = part(center, tuned.TABLE_PART)
        look = LifeTable(price=of_table, fit=fit), RowMean(price=left(center, of_table), fit=fit)
        nodes.append(Sequential(look, center, "center"))
    point: Measurement = HazardMinimiser(fit)
    if isinstance(fit, LangevinFit):
        point = HazardChain(fit, verbose)
    nodes.append(point)
    if amount(recalibration):
        of_places = part(recalibration, PLACES_PART)
        of_table = left(recalibration, of_places)
        table = (
            RiskTable(price=of_table, fit=fit),
            RiskPlaces(price=of_places, fit=fit, of_table=of_table),
        )
        nodes.append(Sequential(table, recalibration, "recalibration"))
    if amount(inference):
        of_exits = part(inference, tuned.EXITS_PART)
        moments = HazardMoments.planned(fit, left(inference, of_exits))
        nodes.append(
            Sequential((ExitCounts(price=of_exits, fit=fit), moments), inference, "inference")
        )
    unit = "mu" if delta else "epsilon"
    return hazard_plan(
        fit.model,
        fit.epsilon,
        fit.alpha,
        Sequential(tuple(nodes)),
        delta,
        arithmetic(fit.law),
        # Unless a node states what it spends.
        {f"{unit}_center": 0.0, f"{unit}_recalibration": 0.0},
    )
