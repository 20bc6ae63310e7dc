r"""Weibull distributions as Nguyen and Hui (2017) fit them: by their ladder, and by baselines.

Events before exp(-omega) count as at it, but left-censored by the **exact ladder**: the paper's two
steps, shape by a ladder and then scale, with exact levels. **Ladder.** Their bounds, their grid.

The fitted shape solves f(p) = g(p), with :math:`f = s_1/s_0`, :math:`g = 1/p + S/N`. With k records
changed, f lies between

.. math::
    f_L^k = \frac{s_1 - k/(ep)}{s_0 - \mathrm{top}_k}, \qquad
    f_U^k = \min\Big(0, \frac{s_1 + k/(ep)}{s_0 + k}\Big)

and g between

.. math::
    g_L^k = \frac1p + \frac{S - k\omega}{N - k}, \qquad
    g_U^k = \frac1p + \min\Big(0, \frac{S + k\omega}{N + k}\Big).

:math:`f_L^k` and :math:`g_L^k` are minus infinity from k = n and k = N on. The caps at 0, which the
paper leaves out, make its Lemma 1 true for every k. Level k goes from the first node with
:math:`f_U^k \ge g_L^k` to the first with :math:`f_L^k \ge g_U^k`. *First* matters: the second
difference has several roots, and a Newton iteration as in the paper may find different ones for
neighbouring data sets, which breaks the ladder (docs/proofs/ladder).

**Baselines.** Laplace noise on maximum likelihood estimates, or on their means over disjoint blocks
of records. Neighbours: replace-one. Sensitivity: one record changes the estimates of one of m
blocks; shape and scale, in units of the horizon, are clamped to [0, max_shape], so each mean moves
by at most max_shape / m. Theorem: Laplace mechanism, a share of epsilon for each (Nissim,
Raskhodnikova and Smith 2007 for the blocks).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from skdpsurv.data.shape import Shape
from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.checks import Check, choice, integer, optional
from skdpsurv.dp.noise import RandomSource, random_source, to_lattice
from skdpsurv.dp.plan import Context, Distances, Mechanism, Plan, Sequential
from skdpsurv.dp.privacy_cost import Cost, cost_of, sequential_cost
from skdpsurv.dp.stated_noise import stated_noise
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.likelihoods.weibull import maximum_likelihood
from skdpsurv.mechanisms.ladder import UNIT, first_level
from skdpsurv.mechanisms.sums import Sum
from skdpsurv.survival.weibull.fitter import WeibullCurve
from skdpsurv.survival.weibull.log_time_counts import (
    N_BINS,
    CountTable,
    ExactLevels,
    Records,
    all_log_times,
    lattice_exponent,
)
from skdpsurv.survival.weibull.weibull_plan import (
    PROOF,
    Events,
    Ladder,
    Scale,
    Way,
    WeibullSetting,
    priced,
)

#: Cells of the grid on (0, max_shape], of equal width.
N_CELLS_PUBLISHED = 2000
#: Records of a block of sample and aggregate.
BLOCK_RECORDS = 500


def shape_at(node: float, max_shape: float) -> float:
    """Return the shape at a node of the grid."""
    return float(node * max_shape / N_CELLS_PUBLISHED)


@dataclass(frozen=True)
class PublishedLevels:
    """Levels of the paper. Sums are of integers, so that bounds are ordered exactly."""

    table: CountTable
    max_shape: float
    top: int

    @property
    def n_cells(self) -> int:
        """Number of cells; cell j goes from node j to node j + 1."""
        return N_CELLS_PUBLISHED

    def down_to(self, node: int) -> int:
        """Return the first level that begins in a cell before the node."""
        return int(self._levels[0][node - 1]) * UNIT if node < self.n_cells else 0

    def up_to(self, node: int) -> int:
        """Return the first level that ends in a cell after the node."""
        return int(self._levels[1][node - 1]) * UNIT if node > 0 else 0

    @cached_property
    def _levels(self) -> tuple[IntArray, IntArray]:
        """For each cell: first level that begins in it or before, and first that ends after it."""
        nodes = range(1, N_CELLS_PUBLISHED + 1)
        bounds = [_Bounds(self.table, shape_at(node, self.max_shape)) for node in nodes]
        begins = [first_level(at_node.begun, self.top) for at_node in bounds]
        ends = [first_level(at_node.not_ended, self.top) for at_node in bounds]
        # A level begins, and ends, at the first crossing.
        return np.minimum.accumulate(begins), np.maximum.accumulate(ends)


class _Bounds:
    """The four bounds at one shape, as functions of k."""

    def __init__(self, table: CountTable, shape: float) -> None:
        counts, grid = table.records, table.log_time
        self.n, self.n_events = table.n_records, int(table.events.sum())
        self.inverse = 1.0 / shape
        # S and omega in bins: integers.
        self.log_sum = -int(table.events @ (N_BINS - np.arange(N_BINS + 1)))
        self.bin_width = table.omega / N_BINS
        exponent = lattice_exponent(self.n, 2.0 * max(1.0, self.inverse))
        exact = np.exp(shape * grid)
        power, first = to_lattice(exact, -exponent), to_lattice(exact * grid, -exponent)
        self.one = 1 << exponent
        self.s0, self.s1 = int(counts @ power), int(counts @ first)
        # No term is below -1/(ep), but for one unit of the lattice by rounding.
        self.least = math.ceil(math.ldexp(self.inverse / math.e, exponent)) + 1
        self._power = power
        self._number = np.cumsum(counts[::-1])
        self._powers = np.cumsum((counts * power)[::-1])

    def begun(self, k: int) -> bool:
        """Whether f_U and g_L have crossed, from some k on."""
        return self.upper_left(k) >= self.lower_right(k)

    def not_ended(self, k: int) -> bool:
        """Whether f_L and g_U have not crossed, from some k on."""
        return self.lower_left(k) < self.upper_right(k)

    def top(self, k: int) -> int:
        """Return the sum of the k largest values of time**shape, in units of the lattice."""
        bin_ = int(np.searchsorted(self._number, k))
        spare = int(self._number[bin_]) - k
        return int(self._powers[bin_]) - spare * int(self._power[N_BINS - bin_])

    def lower_left(self, k: int) -> float:
        if k >= self.n or self.s0 <= (top := self.top(k)):
            return -math.inf
        return (self.s1 - k * self.least) / (self.s0 - top)

    def upper_left(self, k: int) -> float:
        above, below = self.s1 + k * self.least, self.s0 + k * self.one
        if above >= 0:
            return 0.0
        # All powers may round to 0: then f is below every bound.
        return above / below if below else -math.inf

    def lower_right(self, k: int) -> float:
        if k >= self.n_events:
            return -math.inf
        mean = (self.log_sum - k * N_BINS) / (self.n_events - k)
        return self.inverse + mean * self.bin_width

    def upper_right(self, k: int) -> float:
        if self.n_events + k == 0:
            return self.inverse
        mean = min(0.0, (self.log_sum + k * N_BINS) / (self.n_events + k))
        return self.inverse + mean * self.bin_width


class ExactLadder(Ladder):
    """The paper's ladder with exact extremes on both sides of its equation."""

    name = "ladder with exact extremes"

    def levels(self, context: Context, records: CountTable) -> ExactLevels:
        return ExactLevels(records, self.public.max_shape, self.top, self.public.left_censored)


class PublishedLadder(Ladder):
    """The paper's ladder, whose shape is uniform in its cell; node 0 of the grid is not used."""

    name = "published ladder"

    def levels(self, context: Context, records: CountTable) -> PublishedLevels:
        return PublishedLevels(records, self.public.max_shape, self.top)

    def shape_at(self, node: float) -> float:
        return shape_at(node, self.public.max_shape)

    def place(self, source: RandomSource) -> float:
        return float(source.generator.random())


@dataclass(frozen=True, eq=False, kw_only=True)
class NoisyEstimates(Mechanism):
    """Laplace noise on sums of clamped estimates, one of each block of records.

    Prices are those of the shape and of the scale.
    """

    prices: tuple[float, float]
    public: WeibullSetting
    n_blocks: int

    name = "Laplace noise on clamped maximum likelihood estimates"
    proof = PROOF

    @property
    def cost(self) -> Cost:
        """Cost of both estimates, one after the other."""
        return sequential_cost(map(cost_of, self.prices))

    @property
    def query(self) -> Sum:
        """The query of each sum, of which one record moves one term."""
        return Sum.of_reals(0.0, self.public.max_shape, -30)

    def drawn(self, context: Context | None) -> dict[str, Any]:
        """Return the noise on each sum."""
        each = [stated_noise(self.query, price) for price in self.prices]
        largest = max(one["variance"] for one in each)
        return {**each[0], "scale": [one["scale"] for one in each], "variance": largest}

    def run(self, context: Context, records: Records, source: RandomSource) -> dict[str, float]:
        """Return noisy means of shape and log scale."""
        estimates, query, omega = self._estimates(records, source), self.query, self.public.omega
        shape, scale = (
            query.value(query.release(query.total(each), price, source)) / self.n_blocks
            for each, price in zip(estimates, self.prices, strict=True)
        )
        scale = min(max(scale, math.exp(-omega)), self.public.max_shape)
        return {"shape": self.public.within_range(shape), "log_scale": math.log(scale)}

    def distances(self, context: Context, one: Any, other: Any) -> Distances:
        """Return relative differences of the sums, in one order of the records."""
        names, query = ("sum of shapes", "sum of scales"), self.query
        pairs = zip(
            *(self._estimates(each, random_source(0)) for each in (one, other)), strict=True
        )
        moves = (abs(query.total(a) - query.total(b)) / query.sensitivity for a, b in pairs)
        return [(name, move, 1.0) for name, move in zip(names, moves, strict=True)]

    def _estimates(self, records: Records, source: RandomSource) -> tuple[FloatArray, FloatArray]:
        (x, event), m, most = records.each(), self.n_blocks, self.public.max_shape
        if m > 1:
            # The order depends on n alone, and so do blocks.
            order = source.generator.permutation(x.size)
            x, event = x[order], event[order]
        shape, log_scale = maximum_likelihood(x, event, most, np.arange(m) * x.size // m)
        return shape, np.exp(np.minimum(log_scale, math.log(most)))


def ladder_plan(ladder: type[Ladder], public: WeibullSetting) -> Plan:
    """Return the paper's plan of two steps: the shape by a ladder, then the scale."""
    if ladder is PublishedLadder:
        public = replace(public, left_censored=False)
    (shape,) = priced(public, [ladder], [_shape_share(public)])
    half = (public.spendable - shape.price) / 2.0
    tree = shape, Events(price=half, public=public), Scale(price=half, public=public)
    words = f"{ladder.name} for the shape, Laplace noise on two sums for the scale"
    return public.plan_of(Sequential(tree), words)


def estimates_plan(public: WeibullSetting, *, blocks: bool) -> Plan:
    """Return the plan of noise on the estimates, of all records or of blocks of about 500 each."""
    public, share = replace(public, left_censored=False), _shape_share(public)
    prices = share * public.spendable, (1.0 - share) * public.spendable
    n_blocks = max(1, public.n_records // BLOCK_RECORDS) if blocks else 1
    noisy = NoisyEstimates(prices=prices, public=public, n_blocks=n_blocks)
    words = "sample and aggregate: Laplace noise on the mean of clamped block estimates"
    return public.plan_of(noisy, words if blocks else "")


def _shape_share(public: WeibullSetting) -> float:
    return 0.5 if public.shape_fraction is None else public.shape_fraction


EXACT, PUBLISHED = (Way(partial(ladder_plan, ladder)) for ladder in (ExactLadder, PublishedLadder))
LADDERS = {"published": PUBLISHED, "exact": EXACT}
LAPLACE, SAMPLE_AGGREGATE = (
    Way(
        partial(estimates_plan, blocks=blocks),
        all_log_times,
        lambda public: (-public.omega, math.log(public.max_shape)),
    )
    for blocks in (False, True)
)


class PublishedWeibullFitter(WeibullCurve, adds_up="distributions"):
    """Weibull distribution by the paper's ladder: first the shape, then the scale.

    Parameters
    ----------
    epsilon, max_time, omega, max_shape, alpha, random_state, accountant
        As for :class:`~skdpsurv.DPWeibullFitter`.
    shape_fraction : float or "auto", default="auto"
        Share of epsilon that is spent on the shape; "auto" is 0.5.
    ladder : {"published", "exact"}, default="published"
        The paper's bounds on how far records can move the shape, or their exact extremes.
    n_levels : int or None, default=None
        Height of the ladder: all shapes beyond it are equally likely. None: the level from which
        their probabilities are negligible.

    Attributes
    ----------
    rho_, lambda_, median_survival_time_, guarantee_, release_
        As for :class:`~skdpsurv.DPWeibullFitter`.

    Notes
    -----
    Neighbours: replace-one; the number of records is public. Theorems and sensitivities:
    docs/proofs/ladder. As in the paper, times before ``max_time * exp(-omega)`` count as exact at
    it, which makes shapes below about 0.7 too large. With exact levels they are left-censored.

    References
    ----------
    .. [1] T. T. Nguyen and S. C. Hui, "Privacy-preserving mechanisms for parametric survival
       analysis with Weibull distribution", TrustCom 2017, arXiv 1708.04517.

    Examples
    --------
    >>> from skdpsurv.datasets import load_flchain
    >>> from skdpsurv.published import PublishedWeibullFitter
    >>> y = load_flchain().y
    >>> fitter = PublishedWeibullFitter(max_time=5200.0, ladder="exact")
    >>> bool(0.8 < fitter.fit(y["futime"], y["death"]).rho_ < 1.1)
    True
    """

    _rules: ClassVar[dict[str, Check]] = {
        "ladder": choice(*LADDERS),
        "n_levels": optional(integer()),
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        max_time: float | None = None,
        omega: float = 5.0,
        max_shape: float = 10.0,
        shape_fraction: float | str = "auto",
        ladder: str = "published",
        n_levels: int | None = None,
        alpha: float = 0.05,
        random_state: int | None = None,
        accountant: PrivacyAccountant | None = None,
    ) -> None:
        super().__init__(
            epsilon,
            max_time=max_time,
            omega=omega,
            max_shape=max_shape,
            shape_fraction=shape_fraction,
            alpha=alpha,
            random_state=random_state,
            accountant=accountant,
        )
        self.ladder = ladder
        self.n_levels = n_levels

    @property
    def _way(self) -> Way:
        n_levels = None if self.n_levels is None else int(self.n_levels)
        return LADDERS[self.ladder]._replace(n_levels=n_levels)

    def _release_parameters(self, shape: Shape) -> dict[str, Any]:
        stated = super()._release_parameters(shape)
        return {**stated, "ladder": self.ladder, "n_levels": self._way.n_levels}


class LaplaceWeibullFitter(WeibullCurve, adds_up="distributions"):
    """Weibull distribution by Laplace noise on the maximum likelihood estimates: a baseline.

    The sensitivity is the whole range of the parameters.

    Parameters
    ----------
    epsilon, max_time, omega, max_shape, alpha, random_state, accountant
        As for :class:`~skdpsurv.DPWeibullFitter`; times before ``max_time * exp(-omega)`` are
        raised to it.
    shape_fraction : float or "auto", default="auto"
        Share of epsilon that is spent on the shape; "auto" is 0.5.

    Attributes
    ----------
    rho_, lambda_, median_survival_time_, guarantee_, release_
        As for :class:`~skdpsurv.DPWeibullFitter`.

    Notes
    -----
    Neighbours: replace-one; the number of records is public. Theorem: Laplace mechanism,
    docs/proofs/ladder.
    """

    _way = LAPLACE


class SampleAggregateWeibullFitter(WeibullCurve, adds_up="distributions"):
    """Weibull distribution by noisy means of the estimates of blocks of records: a baseline.

    Each block holds about 500 records. The sensitivity of a mean is the whole range of the
    parameters, divided by the number of blocks.

    Parameters
    ----------
    epsilon, max_time, omega, max_shape, alpha, random_state, accountant
        As for :class:`~skdpsurv.DPWeibullFitter`; times before ``max_time * exp(-omega)`` are
        raised to it.
    shape_fraction : float or "auto", default="auto"
        Share of epsilon that is spent on the shape; "auto" is 0.5.

    Attributes
    ----------
    rho_, lambda_, median_survival_time_, guarantee_, release_
        As for :class:`~skdpsurv.DPWeibullFitter`.

    Notes
    -----
    Neighbours: replace-one; the number of records is public. Theorem: Laplace mechanism on means of
    disjoint blocks, docs/proofs/ladder.

    References
    ----------
    .. [1] K. Nissim, S. Raskhodnikova and A. Smith, "Smooth sensitivity and sampling in private
       data analysis", STOC 2007.
    """

    _way = SAMPLE_AGGREGATE
