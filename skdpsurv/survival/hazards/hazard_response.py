r"""Standard errors of a hazard model: their two measurements, and the probabilities of outcomes.

Two things are released beside the minimiser: an event-count table, and the second moments of the
weighted rows. The truth at which the minimiser would be expected follows from them
(:mod:`skdpsurv.inference`).

Time is cut into blocks of intervals. In block j a person has events at the rate
:math:`\lambda_j = m_j\varphi(A_j a + b)`, with :math:`m_j` its intervals and :math:`A_j` the mean
of their baseline rows, and is censored at a rate :math:`\kappa_j` that is the same for all and
comes from the table. A share :math:`e^{-D}`, :math:`D = \lambda + \kappa`, of those who enter a
block stays, and a share :math:`\lambda / D` of the others has an event:

.. math::
    P(\text{event in block } j) = e^{-\sum_{i<j} D_i}\,\lambda_j f(D_j),\qquad
    f(D) = \frac{1 - e^{-D}}{D}.

Who is censored early tells less. So a record has an exposure e in [0, 1]: 1 with an event; censored
at t, the share of the horizon's events that the pilot expects before t,

.. math:: e(t) = 1 - \frac{1 - S(H) / S(t)}{1 - S(H)},

whose mean given x is P(event | x) over that with full follow-up, where S is right.

Neighbours: replace-one. Sensitivity of the table: 2 in L1, as a record is in one cell. Theorem:
the epsilons of table and moments add up to the share (docs/proofs/noise, docs/proofs/inference).
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from skdpsurv.data.blocks import Blocks
from skdpsurv.dp.plan import Context
from skdpsurv.dp.privacy_cost import Price
from skdpsurv.dp.types import BoolArray, FloatArray, IntArray
from skdpsurv.inference import (
    CovariateDistribution,
    Derivation,
    Indirect,
    MomentRows,
    Part,
    ReleasedMoments,
    RowMoments,
)
from skdpsurv.likelihoods.changing_hazard import ChangingHazard
from skdpsurv.likelihoods.competing_hazard import CompetingHazard
from skdpsurv.likelihoods.hazard import DiscreteHazard, HazardBlock
from skdpsurv.likelihoods.links import Curve
from skdpsurv.mechanisms.sums import HISTOGRAM
from skdpsurv.survival.hazards.changing import with_products
from skdpsurv.survival.hazards.fit import HazardFit, HazardSum
from skdpsurv.survival.hazards.life_table import outcome_counts
from skdpsurv.survival.hazards.model import Block, HazardModel, HazardRecords, Records, to_published
from skdpsurv.survival.hazards.record_classes import at_risk, seen_from

#: Below this rate, the derivative of f is taken from its series.
SMALL_RATE = 1e-3
#: Bands of the event-count table, and blocks of time.
N_BANDS, N_BLOCKS = 5, 20
#: Exposures are asked for with at least so many records per deviation of the noise on moments: with
#: fewer, standard errors are due to noise, and it would be more with one column more.
EXPOSED = 100
#: Rates of classes are shrunk to those of all with the weight of so many deviations of a cell.
POOLED = 4.0
#: Most by which rates of censoring are changed so that exposures are as released.
MOST_RESCALED = 8.0
#: Steps of Newton's method towards the shift of a record beyond the cap.
SHIFT_STEPS = 12
#: It ends at a step so small: the next one would be of its square.
SHIFT_ERROR = 1e-12
#: Largest predictor among which cap thresholds are searched.
WIDEST = 60.0


def outcome_probabilities(
    event_rate: FloatArray, censoring_rate: FloatArray, slopes: FloatArray, in_band: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the probability of each outcome, and its derivatives."""
    rate = np.maximum(event_rate + censoring_rate, 1e-12)
    so_far = np.cumsum(rate, axis=-1)
    entering = np.exp(rate - so_far)
    share = -np.expm1(-rate) / rate
    small = rate < SMALL_RATE
    safe = np.where(small, 1.0, rate)
    share_slope = np.where(
        small, -0.5 + rate / 3.0 - rate**2 / 8.0, (np.exp(-safe) * (safe + 1.0) - 1.0) / safe**2
    )
    event, censored = entering * event_rate * share, entering * censoring_rate * share
    end = np.exp(-so_far[..., -1:])

    slopes_so_far = np.cumsum(slopes, axis=-1)
    lost = slopes_so_far - slopes

    def leaving(rate: FloatArray, by_rate: FloatArray | float) -> FloatArray:
        own = share * by_rate + rate * share_slope * slopes
        return np.asarray(entering * (own - rate * share * lost)) @ in_band

    by_end = -end * slopes_so_far[..., -1:]
    probability = np.concatenate([event @ in_band, censored @ in_band, end], axis=-1)
    derivatives = [leaving(event_rate, slopes), leaving(censoring_rate, 0.0), by_end]
    return probability, np.concatenate(derivatives, axis=-1)


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


def block_edges(n_intervals: int) -> IntArray:
    """Return the edges of blocks, in intervals."""
    n_blocks = min(N_BLOCKS, n_intervals)
    return np.arange(n_blocks + 1) * n_intervals // n_blocks


@dataclass
class OutcomeProbabilities:
    """Outcomes under a capped likelihood: event or censoring in each block, or staying to the end.

    ``losses`` are censoring rates, of shape (n_blocks,). People enter at a share of the horizon,
    below 1, and have outcomes in the blocks after it.
    """

    likelihood: DiscreteHazard
    losses: FloatArray
    entry: float = 0.0

    def __post_init__(self) -> None:
        edges = block_edges(self.likelihood.basis.shape[0])
        sizes, seen = np.diff(edges).astype(np.float64), seen_from(self.entry, edges)
        kept = seen > 0.0
        #: Baseline rows of the blocks after the entry, shape (n_blocks, n_basis).
        self.basis = np.add.reduceat(self.likelihood.basis, edges[:-1], axis=0) / sizes[:, None]
        self.basis = self.basis[kept]
        self._rates = (self.losses * seen)[kept]
        sizes = self._sizes = (sizes * seen)[kept]
        #: Derivatives of the predictor by a and b in each block, shape (n_basis + 1, n_blocks).
        self._columns = np.concatenate([self.basis.T, np.ones((1, sizes.size))])
        self._functions = np.zeros((sizes.size, 0))
        if isinstance(self.likelihood, ChangingHazard):
            every = self.likelihood.effects.values
            functions = np.add.reduceat(every, edges[:-1], axis=0) / np.diff(edges)[:, None]
            self._functions = functions[kept]
            self._columns = np.concatenate([self._columns, self._functions.T])
        #: Intervals of each block that are survived before each outcome, (C, n_blocks).
        before = np.tril(np.broadcast_to(sizes, (sizes.size,) * 2), -1)
        self.early = self._early()
        ends = -1.0, 1.0 - 2.0 * self.early
        event, lost = (before + np.diag(0.5 * (sizes + end)) for end in ends)
        self._survived = np.concatenate([event, lost, sizes[None, :]])
        self._known_thresholds: dict[tuple[float, ...], FloatArray] = {}

    def _early(self) -> FloatArray | float:
        """Return the share of those lost in each block who do not survive their interval."""
        return 0.0

    def of_rows(self, rows: FloatArray) -> Self:
        """Return the outcomes of given rows."""
        return self

    def outcome_probabilities(
        self, a: FloatArray, b: FloatArray, slopes: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Return probabilities of the outcomes and, with ``slopes``, derivatives by a and b."""
        curve = self.likelihood.link.survival(self._predictor(a, b))
        rate, lost = curve.value * self._sizes, np.broadcast_to(self._rates, curve.value.shape)
        columns = self._columns if slopes else self._columns[:0]
        by_event = columns[:, None, :] * (curve.slope * self._sizes)
        return outcome_probabilities(rate, lost, by_event, np.eye(self._sizes.size))

    def record_scores(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return derivatives of the capped loss by a and b, for each outcome."""
        link, cap = self.likelihood.link, self.likelihood.cap
        eta = self._predictor(a, b)
        by_block = self._columns[:, None, :] * self._survived
        scores = link.survival(eta).slope @ by_block.transpose(0, 2, 1)
        if cap is not None:
            beyond = scores[self.basis.shape[1]] > cap
            slopes, _ = self._at_cap(a, eta, beyond, cap)
            scores[:, beyond] = self._columns @ slopes.T
        scores[..., : self._sizes.size] += self._columns[:, None, :] * link.event(eta).slope
        return np.asarray(scores)

    def expected_curvature(self, a: FloatArray, b: FloatArray, likely: FloatArray) -> FloatArray:
        r"""Return derivatives by a and b of each row's expected score, (n, k + 1, k + 1).

        Beyond the cap the shift s moves with the predictor, so that slopes still add up to the cap:
        with their derivatives w in each block, :math:`ds = \sum_j w_j d\eta_j / \sum_j w_j`.
        """
        link, cap, columns = self.likelihood.link, self.likelihood.cap, self._columns
        eta = self._predictor(a, b)
        curve = link.survival(eta)
        weights = curve.curvature[:, None, :] * self._survived
        shifted: Any = 0.0
        if cap is not None:
            beyond = curve.slope @ self._survived.T > cap
            _, weights[beyond] = self._at_cap(a, eta, beyond, cap)
            moves = weights @ columns.T
            share = np.where(beyond, likely / np.maximum(weights.sum(axis=2), 1e-300), 0.0)
            shifted = (moves * share[..., None]).transpose(0, 2, 1) @ moves
        by_block = np.einsum("nc,ncj->nj", likely, weights)
        by_block += likely[:, : self._sizes.size] * link.event(eta).curvature
        return np.asarray((by_block[:, None, :] * columns) @ columns.T - shifted)

    def _predictor(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return the predictor of each row in each block."""
        if b.ndim == 1:
            return np.asarray(self.basis @ a + b[:, None])
        return np.asarray(self.basis @ a + b[:, :1] + b[:, 1:] @ self._functions.T)

    def _at_cap(
        self, a: FloatArray, eta: FloatArray, beyond: BoolArray, cap: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return slopes and curvatures in each block of records beyond the cap, where they end."""
        rows, outcomes = np.nonzero(beyond)
        survived = self._survived[outcomes]
        if self._functions.shape[1]:
            curve = self._shifted(eta[rows], survived, cap)
            return survived * curve.slope, survived * curve.curvature
        curve = self.likelihood.link.survival(self._thresholds(tuple(a), cap))
        return survived * curve.slope[outcomes], survived * curve.curvature[outcomes]

    def _shifted(self, eta: FloatArray, survived: FloatArray, cap: float) -> Curve:
        """Return the loss of survived intervals at the shift at which each record is at the cap."""
        link = self.likelihood.link
        low, high = np.zeros(len(eta)), WIDEST + np.maximum(eta.max(axis=1, initial=0.0), 0.0)
        shift, moving = np.zeros(len(eta)), np.arange(len(eta))
        for _ in range(SHIFT_STEPS):
            own, at = survived[moving], shift[moving]
            curve = link.survival(eta[moving] - at[:, None])
            total = (curve.slope * own).sum(axis=1)
            low[moving] = np.where(total > cap, at, low[moving])
            high[moving] = np.where(total > cap, high[moving], at)
            curved = np.maximum((curve.curvature * own).sum(axis=1), 1e-300)
            new = at + np.log(total / cap) * total / curved
            inside = (new >= low[moving]) & (new <= high[moving])
            shift[moving] = np.where(inside, new, 0.5 * (low + high)[moving])
            moving = moving[np.abs(shift[moving] - at) > SHIFT_ERROR]
        return link.survival(eta - shift[:, None])

    def _thresholds(self, a: tuple[float, ...], cap: float) -> FloatArray:
        """Return the predictor at which a record is at the cap, for each outcome and block."""
        if a not in self._known_thresholds:
            link, level = self.likelihood.link, self.basis @ np.array(a)
            low = np.full(len(self._survived), -WIDEST - level.max())
            high = np.full(len(self._survived), WIDEST - level.min())
            for _ in range(60):
                middle = 0.5 * (low + high)
                slope = link.survival(level + middle[:, None]).slope
                above = (slope * self._survived).sum(axis=1) > cap
                low, high = np.where(above, low, middle), np.where(above, middle, high)
            self._known_thresholds[a] = level + low[:, None]
        return self._known_thresholds[a]


@dataclass
class CauseOutcomes(OutcomeProbabilities):
    """Outcomes of one cause: a person is also lost by an event of another one.

    ``others`` are baseline and coefficients of each of these, of shape (n_causes - 1, n_params),
    and ``mean`` is a mean row.
    """

    others: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    mean: FloatArray = field(default_factory=lambda: np.zeros(0))

    def _other_rates(self, rows: FloatArray) -> FloatArray:
        """Return rates of events of other causes, of shape (n_rows, n_blocks)."""
        a, beta = np.split(self.others, [self.basis.shape[1]], axis=1)
        log_odds = (a @ self.basis.T)[:, None] + (beta @ rows.T)[:, :, None]
        together = np.logaddexp.reduce(log_odds, axis=0)
        return self.likelihood.link.survival(together).value * self._sizes

    def _early(self) -> FloatArray:
        (others,) = self._other_rates(self.mean[None, :])
        return np.asarray(others / np.maximum(others + self._rates, 1e-300))

    def of_rows(self, rows: FloatArray) -> Self:
        found = copy(self)  # with the same thresholds
        found._rates = self._rates + self._other_rates(rows)
        return found


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
