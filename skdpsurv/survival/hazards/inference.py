r"""Standard errors of a hazard model: what they ask of the records, and what is made of it.

Beside the minimiser two things are released for a share of epsilon: a table of exits, and the
second moments of the rows as the likelihood sees them, each with its weight and lengthened by a
constant. From these follows the truth at which the minimiser would be expected
(:mod:`skdpsurv.inference`).

Time is cut into blocks of intervals. In block j a person has events at the rate
:math:`\lambda_j = m_j\varphi(A_j a + b)`, with :math:`m_j` its intervals and :math:`A_j` the mean
of their baseline rows, and is lost at a rate :math:`\kappa_j` that is the same for all and comes
from the table. Of those who enter a block a part :math:`e^{-D}`, :math:`D = \lambda + \kappa`,
stays, and of those who leave :math:`\lambda / D` have an event:

.. math::
    P(\text{event in block } j) = e^{-\sum_{i<j} D_i}\,\lambda_j f(D_j),\qquad
    f(D) = \frac{1 - e^{-D}}{D}.

Neighbours: replace-one. Sensitivity of the table: 2 in L1, as a record is in one cell. Theorem:
the epsilons of table and moments add up to the share (docs/proofs/noise, docs/proofs/inference).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from skdpsurv.data.blocks import Blocks
from skdpsurv.dp.plan import Known
from skdpsurv.dp.privacy_cost import Price
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.inference import Indirect, Inference, ReleasedMoments, RowMoments
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.mechanisms.sums import HISTOGRAM
from skdpsurv.survival.hazards.fit import HazardFit, HazardSum
from skdpsurv.survival.hazards.model import HazardRecords, to_published

#: Below this, f' is taken from its series.
SMALL_RATE = 1e-3


def exit_probabilities(
    event_rate: FloatArray, censoring_rate: FloatArray, slopes: FloatArray, in_band: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the probability of each way out, and its derivatives."""
    rate = np.maximum(event_rate + censoring_rate, 1e-12)
    so_far = np.cumsum(rate, axis=-1)
    entering = np.exp(rate - so_far)
    part = -np.expm1(-rate) / rate
    small = rate < SMALL_RATE
    safe = np.where(small, 1.0, rate)
    part_slope = np.where(
        small, -0.5 + rate / 3.0 - rate**2 / 8.0, (np.exp(-safe) * (safe + 1.0) - 1.0) / safe**2
    )
    event, censored = entering * event_rate * part, entering * censoring_rate * part
    end = np.exp(-so_far[..., -1:])

    slopes_so_far = np.cumsum(slopes, axis=-1)
    lost = slopes_so_far - slopes

    def leaving(rate: FloatArray, by_rate: FloatArray | float) -> FloatArray:
        own = part * by_rate + rate * part_slope * slopes
        return np.asarray(entering * (own - rate * part * lost)) @ in_band

    by_end = -end * slopes_so_far[..., -1:]
    probability = np.concatenate([event @ in_band, censored @ in_band, end], axis=-1)
    by_way = [leaving(event_rate, slopes), leaving(censoring_rate, 0.0), by_end]
    return probability, np.concatenate(by_way, axis=-1)


#: Bands of the table of exits, and blocks of time.
N_BANDS, N_BLOCKS = 5, 20
#: Knees are looked for among predictors up to this.
WIDEST = 60.0


def exit_counts(records: Blocks[HazardRecords], n_intervals: int) -> IntArray:
    """Count private records in a table of exits: lost and events by band, and who stays."""
    n_bands = min(N_BANDS, n_intervals)

    def counts(block: HazardRecords) -> IntArray:
        band = (block.interval - 1) * n_bands // n_intervals
        end = (block.interval == n_intervals) & ~block.event
        cell = np.where(end, 2 * n_bands, 2 * band + block.event)
        return np.bincount(cell, minlength=2 * n_bands + 1).astype(np.int64)

    return records.map_reduce(counts)


def loss_rates(noisy: IntArray, n_intervals: int) -> FloatArray:
    """Return rates at which people are lost before the horizon, by block, from a noisy table."""
    n_bands = min(N_BANDS, n_intervals)
    noisy = np.maximum(noisy, 0)
    lost, events = noisy[:-1].reshape(n_bands, 2).T.astype(np.float64)
    left = lost + events
    at_risk = np.cumsum(left[::-1])[::-1] + float(noisy[-1])
    rate = lost / np.maximum(at_risk - 0.5 * left, 1.0)
    edges = block_edges(n_intervals)
    band = np.minimum((edges[:-1] + edges[1:]) * n_bands // (2 * n_intervals), n_bands - 1)
    return np.asarray(rate[band] * np.diff(edges) * (n_bands / n_intervals))


def block_edges(n_intervals: int) -> IntArray:
    """Return where blocks begin and end, in intervals."""
    n_blocks = min(N_BLOCKS, n_intervals)
    return np.arange(n_blocks + 1) * n_intervals // n_blocks


@dataclass(frozen=True)
class OutcomeProbabilities:
    """Ways out of a study: an event or a loss in each block, or staying to the end.

    Parameters
    ----------
    likelihood : DiscreteHazard
        Capped; its baseline rows, link and cap are used.
    losses : ndarray of shape (n_blocks,)
        Rates at which people are lost.
    """

    likelihood: DiscreteHazard
    losses: FloatArray
    _knees: dict[tuple[float, ...], FloatArray] = field(default_factory=dict)

    @cached_property
    def _edges(self) -> IntArray:
        return block_edges(self.likelihood.basis.shape[0])

    @cached_property
    def _sizes(self) -> FloatArray:
        return np.diff(self._edges).astype(np.float64)

    @cached_property
    def basis(self) -> FloatArray:
        """Baseline rows of the blocks, shape (n_blocks, n_basis)."""
        sums = np.add.reduceat(self.likelihood.basis, self._edges[:-1], axis=0)
        return np.asarray(sums / self._sizes[:, None])

    @cached_property
    def _columns(self) -> FloatArray:
        """What a and b are multiplied by in each block, shape (n_basis + 1, n_blocks)."""
        return np.concatenate([self.basis.T, np.ones((1, self.losses.size))])

    def outcome_probabilities(
        self, a: FloatArray, b: FloatArray, slopes: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Return probabilities of the ways out, and perhaps their derivatives by a and b."""
        curve = self.likelihood.link.survival(self.basis @ a + b[:, None])
        rate, lost = curve.value * self._sizes, np.broadcast_to(self.losses, curve.value.shape)
        nothing = np.zeros((0, *rate.shape))
        by_event = self._columns[:, None, :] * (curve.slope * self._sizes) if slopes else nothing
        return exit_probabilities(rate, lost, by_event, np.eye(self.losses.size))

    @cached_property
    def _survived(self) -> FloatArray:
        """Return intervals of each block that are survived before each way out, (C, n_blocks)."""
        before = np.tril(np.broadcast_to(self._sizes, (self._sizes.size,) * 2), -1)
        event = before + np.diag(0.5 * (self._sizes - 1.0))
        lost = before + np.diag(0.5 * (self._sizes + 1.0))
        return np.concatenate([event, lost, self._sizes[None, :]])

    def record_scores(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return derivatives of the capped loss by a and b, for each way out."""
        link, cap = self.likelihood.link, self.likelihood.cap
        eta = self.basis @ a + b[:, None]
        by_block = self._columns[:, None, :] * self._survived
        record_scores = link.survival(eta).slope @ by_block.transpose(0, 2, 1)
        if cap is not None:
            beyond = record_scores[-1] > cap
            record_scores = np.where(
                beyond, self._at_knees(tuple(a), cap)[:, None, :], record_scores
            )
        record_scores[..., : self._sizes.size] += self._columns[:, None, :] * link.event(eta).slope
        return np.asarray(record_scores)

    def _at_knees(self, a: tuple[float, ...], cap: float) -> FloatArray:
        """Return what a record beyond the cap pulls with, for each way out, (k + 1, C)."""
        if a not in self._knees:
            link, level = self.likelihood.link, self.basis @ np.array(a)
            low = np.full(len(self._survived), -WIDEST - level.max())
            high = np.full(len(self._survived), WIDEST - level.min())
            for _ in range(60):
                middle = 0.5 * (low + high)
                slope = link.survival(level + middle[:, None]).slope
                above = (slope * self._survived).sum(axis=1) > cap
                low, high = np.where(above, low, middle), np.where(above, middle, high)
            by_block = self._survived * link.survival(level + low[:, None]).slope
            self._knees[a] = self._columns @ by_block.T
        return self._knees[a]


def change(mean: FloatArray, radius: float, basis: FloatArray) -> FloatArray:
    """Return the matrix that makes published baseline and coefficients of a minimiser.

    Its rows are less ``mean``, and divided by ``radius``.
    """
    n_intervals, n_knots = basis.shape
    published = np.stack([to_published(column, n_knots) for column in basis.T], axis=1)
    level = to_published(np.ones(n_intervals), n_knots)
    unit = np.eye(mean.size) / radius
    return np.block(
        [[published, -np.outer(level, mean) / radius], [np.zeros((mean.size, n_knots)), unit]]
    )


class ExitCounts(HazardSum):
    """A table of exits, and the rates at which people are lost."""

    name = "a table of exits"
    asked = HISTOGRAM  # each record is in one cell

    def ask(self, known: Known, records: Blocks[HazardRecords]) -> IntArray:
        """Return exact counts."""
        return exit_counts(records, self.fit.model.n_intervals)

    def after(self, known: Known, noisy: IntArray) -> dict[str, Any]:
        """Return rates, by block of time."""
        return {"_losses": loss_rates(noisy, self.fit.model.n_intervals)}


@dataclass(frozen=True, eq=False, kw_only=True)
class HazardMoments(RowMoments):
    """Second moments of the rows as the likelihood sees them, and the truth that they tell of.

    Parameters
    ----------
    fit : HazardFit
    """

    fit: HazardFit

    @classmethod
    def planned(cls, fit: HazardFit, price: Price) -> Self:
        """Return the query that has a price."""
        model = fit.model
        return cls(price=price, n_records=model.n_records, n_features=model.n_features, fit=fit)

    def seen(self, known: Known, records: Blocks[HazardRecords]) -> Blocks[Any]:
        """Return weighed rows; exits are not asked for."""
        return self.fit.seen(records, self.fit.look(known))

    def after(self, known: Known, noisy: FloatArray) -> dict[str, Any]:
        """Return baseline and coefficients on the scale of X, with errors, and the cap."""
        look, minimiser = self.fit.look(known), known["_minimiser"]
        likelihood, calibration = self.fit.after(look)
        equation = Indirect.after(
            OutcomeProbabilities(likelihood, known["_losses"]),
            minimiser.coef,
            minimiser.center,
            calibration,
            ReleasedMoments(self, noisy),
            limit=True,
        )
        scale = change(look.mean, look.radius, self.fit.basis)
        found = Inference.of_found(equation.solve(), scale).values()
        # What a released life table chose: post-processing.
        cap = likelihood.max_cumulative_hazard
        return found if cap is None else found | {"inference_cap": np.array([cap])}
