r"""Probabilities of outcomes under a hazard model, and what its scores are expected to be.

Time is cut into blocks of intervals. In block j a person has events at the rate
:math:`\lambda_j = m_j\varphi(A_j a + b)`, with :math:`m_j` its intervals and :math:`A_j` the mean
of their baseline rows, and is censored at a rate :math:`\kappa_j` that is the same for all and
comes from the table. A share :math:`e^{-D}`, :math:`D = \lambda + \kappa`, of those who enter a
block stays, and a share :math:`\lambda / D` of the others has an event:

.. math::
    P(\text{event in block } j) = e^{-\sum_{i<j} D_i}\,\lambda_j f(D_j),\qquad
    f(D) = \frac{1 - e^{-D}}{D}.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from skdpsurv.dp.types import BoolArray, FloatArray, IntArray
from skdpsurv.likelihoods.changing_hazard import ChangingHazard
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.links import Curve
from skdpsurv.survival.hazards.record_classes import seen_from

#: Below this rate, the derivative of f is taken from its series.
SMALL_RATE = 1e-3
#: Blocks of time.
N_BLOCKS = 20
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
