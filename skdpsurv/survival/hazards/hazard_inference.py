r"""Standard errors of a hazard model: their two measurements.

Two things are released beside the minimiser: an event-count table, and the second moments of the
weighted rows. The truth at which the minimiser would be expected follows from them
(:mod:`skdpsurv.inference`).

Who is censored early tells less. So a record has an exposure e in [0, 1]: 1 with an event; censored
at t, the share of the horizon's events that the pilot expects before t,

.. math:: e(t) = 1 - \frac{1 - S(H) / S(t)}{1 - S(H)},

whose mean given x is P(event | x) over that with full follow-up, where S is right.

Neighbours: replace-one. Sensitivity of the table: 2 in L1, as a record is in one cell. Theorem:
the epsilons of table and moments add up to the share (docs/proofs/noise, docs/proofs/inference).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from skdpsurv.data.blocks import Blocks
from skdpsurv.dp.plan import Context
from skdpsurv.dp.privacy_cost import Price
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.inference import (
    CovariateDistribution,
    Derivation,
    Indirect,
    MomentRows,
    Part,
    ReleasedMoments,
    RowMoments,
)
from skdpsurv.likelihoods.competing_hazard import CompetingHazard
from skdpsurv.likelihoods.hazard import DiscreteHazard, HazardBlock
from skdpsurv.mechanisms.sums import HISTOGRAM
from skdpsurv.survival.hazards.changing import with_products
from skdpsurv.survival.hazards.fit import HazardFit, HazardSum
from skdpsurv.survival.hazards.life_table import outcome_counts
from skdpsurv.survival.hazards.model import Block, HazardModel, HazardRecords, Records, to_published
from skdpsurv.survival.hazards.outcome_probabilities import (
    CauseOutcomes,
    OutcomeProbabilities,
    block_edges,
)
from skdpsurv.survival.hazards.record_classes import at_risk, seen_from

#: Bands of the event-count table.
N_BANDS = 5
#: Exposures are asked for with at least so many records per deviation of the noise on moments: with
#: fewer, standard errors are due to noise, and it would be more with one column more.
EXPOSED = 100
#: Rates of classes are shrunk to those of all with the weight of so many deviations of a cell.
POOLED = 4.0
#: Most by which rates of censoring are changed so that exposures are as released.
MOST_RESCALED = 8.0


def loss_rates(
    noisy: IntArray, n_intervals: int, seen: FloatArray | None = None, deviation: float = 0.0
) -> FloatArray:
    """Return censoring rates before the horizon, by class and block, from noisy tables.

    Tables are of shape (n_classes, (1 + n_causes) n_bands + 1). ``seen`` is the share of each band
    that is seen of those in a class, and a class's rates are shrunk to those of all by the noise of
    a cell.
    """
    n_bands = min(N_BANDS, n_intervals)
    noisy = np.maximum(noisy, 0)
    outcomes = noisy[:, :-1].reshape(len(noisy), n_bands, -1).astype(np.float64)
    lost, gone = outcomes[..., 0], outcomes.sum(axis=2)
    at_risk = np.cumsum(gone[:, ::-1], axis=1)[:, ::-1] + noisy[:, -1:].astype(np.float64)
    exposed = at_risk - 0.5 * gone
    if seen is not None:
        exposed = exposed * seen
    if len(noisy) > 1:
        usual = lost.sum(axis=0) / np.maximum(exposed.sum(axis=0), 1.0)
        lost, exposed = lost + POOLED * deviation * usual, exposed + POOLED * deviation
    rate = lost / np.maximum(exposed, 1.0)
    edges = block_edges(n_intervals)
    band = np.minimum((edges[:-1] + edges[1:]) * n_bands // (2 * n_intervals), n_bands - 1)
    return np.asarray(rate[:, band] * np.diff(edges) * (n_bands / n_intervals))


def as_exposed(part: Part, law: CovariateDistribution, coef: FloatArray, left: FloatArray) -> Part:
    """Return a part with rates of censoring at which rows are as exposed as was released.

    Bands of a table are wide beside a short follow-up: what counts is how many events it holds.
    ``left`` are chances of an event after 0, ..., q intervals.
    """
    response: Any = part.response
    q, k = left.size - 1, response.basis.shape[1]
    edges = block_edges(q)
    start, middles = round(response.entry * q), (edges[1:] + edges[:-1]) // 2
    middles = np.maximum(middles[edges[1:] > response.entry * q], start)
    e = np.clip(1.0 - left[middles] / max(float(left[start]), 1e-300), 0.0, 1.0)
    rows = law.rows("normal")
    _, b = part.predictor(coef, rows)

    def exposed(factor: float) -> float:
        own = replace(response, losses=response.losses * factor)
        chance, _ = own.of_rows(rows).outcome_probabilities(coef[:k], b, slopes=False)
        lost = e + own.early * (1.0 - e)
        return float((chance @ np.concatenate([np.ones(e.size), lost, [1.0]])).mean())

    low, high = np.log(1.0 / MOST_RESCALED), np.log(MOST_RESCALED)
    for _ in range(20):
        middle = 0.5 * (low + high)
        more = exposed(float(np.exp(middle))) > law.mean_exposure
        low, high = (middle, high) if more else (low, middle)
    alike = replace(response, losses=response.losses * float(np.exp(low)))
    return part._replace(response=alike, by_row=alike.of_rows)


def to_released(
    mean: FloatArray, unit: FloatArray | float, basis: FloatArray, model: HazardModel
) -> FloatArray:
    """Return the matrix from a minimiser to published baselines and coefficients on X's scale.

    ``unit`` is that of the rows of the fit.
    """
    n_strata, curve = model.n_strata, model.curve[1:]
    published = to_published(basis, *curve)
    level = np.tile(to_published(np.ones(len(basis)), *curve), n_strata)
    baselines, change = np.kron(np.eye(n_strata), published), np.eye(mean.size) / unit
    nothing = np.zeros((mean.size, model.n_baseline))
    return np.block([[baselines, -np.outer(level, mean) / unit], [nothing, change]])


class OutcomeCounts(HazardSum):
    """An event-count table, and the censoring rates that follow."""

    name = "an event-count table"
    query = HISTOGRAM  # each record is in one cell

    def exact_answer(self, context: Context, records: Records) -> IntArray:
        """Return exact counts of events and censored records, by class and band of time.

        With late entries, those who are never at risk come last.
        """
        q, classes = self.fit.model.n_intervals, self.fit.classes(context)

        def in_classes(block: HazardRecords) -> HazardRecords:
            seen = block.histories
            return block._replace(histories=replace(seen, stratum=classes.of(seen)))

        n_tables, n_causes = classes.number + self.fit.model.has_entry, self.fit.n_causes
        of_classes, how = records.map(in_classes), (q, N_BANDS, n_tables)
        return outcome_counts(of_classes, *how, n_causes=n_causes, horizon=True)

    def postprocess(self, context: Context, noisy: IntArray) -> dict[str, Any]:
        """Return rates of censoring by class and block of time, and how many are at risk."""
        q, n = self.fit.model.n_intervals, self.fit.model.n_records
        classes = self.fit.classes(context)
        bands = np.arange(min(N_BANDS, q) + 1) * q // min(N_BANDS, q)
        tables = np.reshape(noisy, (-1, (1 + self.fit.n_causes) * (bands.size - 1) + 1))
        seen = np.array([seen_from(classes.entry(place), bands) for place in range(classes.number)])
        never = np.clip(tables[classes.number :].sum(), 0.0, 0.5 * n)
        deviation = HISTOGRAM.deviation(self.price)
        losses = loss_rates(tables[: classes.number], q, seen, deviation)
        return {"_losses": losses, "_at_risk": n - float(never)}


@dataclass(frozen=True, eq=False, kw_only=True)
class HazardMoments(RowMoments):
    """Second moments of weighted rows, and the estimates that follow from all that was released."""

    fit: HazardFit

    @classmethod
    def planned(cls, fit: HazardFit, price: Price) -> Self:
        """Return the measurement that goes with a fit, with exposures where noise leaves some."""
        n, d, classes = fit.model.n_records, fit.model.n_features, fit.n_classes
        plain = cls(price=price, n_records=n, n_features=d, n_classes=classes, fit=fit)
        return replace(plain, has_exposure=n >= EXPOSED * plain.noise)

    def seen(self, context: Context, records: Records) -> Blocks[MomentRows]:
        """Return the rows as the fit centres and weights them, and what their follow-up tells."""
        pilot, classes = self.fit.pilot(context), self.fit.classes(context)
        left = self.fit.events_left(pilot) if self.has_exposure else None

        def rows(block: Block) -> MomentRows:
            one = block if isinstance(block, HazardBlock) else block.records
            stratum = None if isinstance(block, HazardBlock) else block.stratum
            weight: Any = one.weight
            entered = one.entered
            e = None if left is None else exposures(left, one, stratum)
            if entered is not None:
                weight = weight * at_risk(one.survived, one.event, entered)
            group = None if classes.number == 1 else classes.places(entered, stratum)
            return MomentRows(one.X, weight, e, group)

        return self.fit.blocks(records, pilot).map(rows)

    def postprocess(self, context: Context, noisy: FloatArray) -> dict[str, Any]:
        """Return baseline and coefficients on the scale of X, with errors, and the mean weight."""
        fit, pilot, minimiser = self.fit, self.fit.pilot(context), context["_minimiser"]
        moments, n_causes = ReleasedMoments(self, noisy), fit.n_causes
        if (known := fit.known) is not None:
            low, high = ((end - pilot.mean) / pilot.unit for end in (known.low, known.high))
            derivation = Derivation(known, pilot.mean, pilot.unit) if known.derived else None
            moments = replace(moments, groups=known.groups, ends=(low, high), derivation=derivation)
        coefs, centers = (np.split(x, n_causes) for x in (minimiser.coef, minimiser.center))
        calibration, classes = fit.after(pilot).calibration, fit.classes(context)
        scale = to_released(pilot.mean, pilot.unit, fit.basis, fit.model)
        if fit.model.changing is not None:
            scale = with_products(scale, pilot.mean, pilot.unit, fit.model.changing)
        level = _mean_level(fit, moments.distribution, classes.n_of_stratum)
        found = []
        for cause, point in enumerate(zip(coefs, centers, strict=True)):
            parts = self._parts(context, moments, coefs, cause)
            equation = Indirect.after(parts, *point, calibration, moments, limit=True)
            found.append(equation.solve(level).in_coordinates(scale).values())
        values: dict[str, Any] = found[0]
        if isinstance(fit.likelihood, CompetingHazard):
            values = {name: np.stack([one[name] for one in found]) for name in values}
        return values | moments.values(context["_at_risk"])

    def _parts(
        self, context: Context, moments: ReleasedMoments, coefs: list[FloatArray], cause: int
    ) -> list[Part]:
        """Return the parts of the equation for a cause, given what was released of all."""
        fit, pilot, coef = self.fit, self.fit.pilot(context), coefs[cause]
        likelihood: Any = fit.after(pilot).likelihood
        if isinstance(likelihood, CompetingHazard):
            likelihood = likelihood.causes[cause]
        one = likelihood if isinstance(likelihood, DiscreteHazard) else likelihood.one
        classes, k, d = fit.classes(context), fit.model.n_columns, fit.model.n_effects
        changing = () if fit.model.changing is None else fit.model.changing.by_function
        parts, left, laws = [], fit.events_left(pilot), moments.distribution.classes
        others = np.delete(coefs, cause, axis=0)
        for place in range(classes.number):
            stratum = place // classes.n_of_stratum
            own = np.append(k * stratum + np.arange(k), fit.model.n_baseline + np.arange(d))
            given = one, context["_losses"][place], classes.entry(place)
            response = OutcomeProbabilities(*given)
            if len(others):
                response = CauseOutcomes(*given, others, laws[place].mean)
            where = None if likelihood is one else own
            part = Part(response, place, where, changing, response.of_rows)
            if self.has_exposure and fit.model.has_entry:
                part = as_exposed(part, laws[place], coef[own], left[stratum])
            parts.append(part)
        return parts


def _mean_level(fit: HazardFit, rows: CovariateDistribution, n_of_stratum: int) -> FloatArray:
    """Return the weights of parameters in the log hazard of the mean row, in the mean of strata."""
    masses = np.array([one.mass for one in rows.classes]).reshape(-1, n_of_stratum).sum(axis=1)
    level = np.outer(masses / masses.sum(), fit.basis.mean(axis=0)).ravel()
    return np.concatenate([level, rows.mean, np.zeros(fit.model.n_effects - rows.mean.size)])


def exposures(left: FloatArray, one: HazardBlock, stratum: IntArray | None) -> FloatArray:
    """Return the exposures of records, given which share of events is left, by stratum and time."""
    own: Any = 0 if stratum is None else stratum
    start = left[own, 0 if one.entered is None else one.entered]
    found = 1.0 - left[own, one.survived] / np.maximum(start, 1e-300)
    return np.where(one.event, 1.0, np.clip(np.nan_to_num(found), 0.0, 1.0))
