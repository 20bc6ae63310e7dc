r"""What a fit asks of its records, at which price, and how prices compose.

What one run of a search may cost when its noise is Gaussian: Renyi divergences.

The best of K runs, each of them :math:`\rho`-zCDP, K of the truncated negative binomial law with
parameters :math:`\eta, \gamma` (:class:`~skdpsurv.dp.selection.RunCount`), has for all
orders :math:`\alpha > 1` and :math:`\beta \ge 1` a Renyi divergence of order :math:`\alpha` of at
most

.. math::
    \alpha\rho + (1 + \eta)\Big[(\beta - 1)\rho + \frac{\log(1/\gamma)}{\beta}\Big]
    + \frac{\log E[K]}{\alpha - 1}

(Papernot and Steinke 2022, theorem 2, with :math:`\beta\rho` for the divergence of order
:math:`\beta`; docs/proofs/private_search). The bracket is least at :math:`\beta =
\sqrt{\log(1/\gamma)/\rho}`. A last fit to all records adds its own :math:`\alpha\rho'`.

What measurements of private records cost together.

A price is an epsilon, of a mechanism that is :math:`\epsilon`-differentially private, or that of
Gaussian noise, :math:`\tfrac12\mu^2`-zCDP. Neighbours: replace-one. Theorems: one after another, on
the same records and each in view of what came before, epsilons add up exactly, and so do the
:math:`\tfrac12\mu^2` (Dwork and Roth 2014, theorem 3.16; Bun and Steinke 2016, lemma 2.3); what is
:math:`\epsilon`-private is :math:`\tfrac12\epsilon^2`-zCDP (ibid., proposition 1.4); of sets of
records that share nobody the dearest counts, as a replaced record is in one of them
(docs/proofs/composition).

What a fit asks of private records: one thing at a time, at a price, by a theorem.

A *noisy sum* is made of integers that add up over blocks of records. It says what is asked and how
far one record can move the answer (its query); whoever runs it adds the noise that this query has
at its price, so that no measurement can have a wrong one. A *mechanism* has a theorem of its own,
and noise of its own. What either asks may depend on what was released before it (``known``), and
what becomes known goes to those that follow. Neighbours: replace-one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar, NamedTuple, Protocol

from skdpsurv.dp.noise import RandomSource
from skdpsurv.dp.privacy_cost import (
    MARGIN,
    SLACK,
    Concentrated,
    Price,
    compose_gaussian,
    epsilon_at,
    epsilon_or_mu,
    rdp_conversion_term,
)
from skdpsurv.dp.references import reference
from skdpsurv.dp.selection import RunCount

#: Orders at which the divergences of a search are stated, and at which its epsilon is looked for.
ORDERS = tuple(1.0 + 2.0 ** (step / 8.0) for step in range(-24, 81))
#: Halvings of the interval in which a rho is looked for.
BISECTIONS = 100


class Spend(NamedTuple):
    """What an estimator is given to spend."""

    epsilon: float
    delta: float = 0.0


def spend_of(rho: float, delta: float) -> Spend:
    """Return an epsilon whose fits at delta are rho-zCDP: a little less than what rho is worth."""
    worth = epsilon_at(rho / MARGIN**3, delta) / MARGIN**2 - 2.0 * SLACK
    if worth <= 0.0:
        raise ValueError("epsilon must be larger: nothing is left of it for a fit with a delta.")
    return Spend(worth, delta)


def concentrated(rho: float) -> Concentrated:
    """Return the price of Gaussian noise that is rho-zCDP, rounded downwards."""
    return Concentrated(math.sqrt(2.0 * rho) / MARGIN)


def divergence(rho: float, order: float, count: RunCount) -> float:
    """Return what the Renyi divergence of the best of K runs is at most, rounded upwards.

    Parameters
    ----------
    rho : float
        Of each run.
    order : float
        Above 1.
    count : RunCount
        The law of K.
    """
    log_odds = -math.log(count.gamma)
    other = max(1.0, math.sqrt(log_odds / rho)) if rho else math.inf
    hidden = (other - 1.0) * rho + log_odds / other if rho else 0.0
    mean = math.log(count.mean * MARGIN)
    return (order * rho + (1.0 + count.eta) * hidden + mean / (order - 1.0)) * MARGIN


def worth(rho: float, delta: float, count: RunCount, refit_rho: float = 0.0) -> float:
    """Return the epsilon at delta of a search, and a last fit to all records."""
    each: Iterator[float] = (
        divergence(rho, order, count)
        + order * refit_rho * MARGIN
        + rdp_conversion_term(order, delta)
        + SLACK
        for order in ORDERS
    )
    return min(each)


def run_rho(epsilon: float, delta: float, count: RunCount, refit_rho: float = 0.0) -> float:
    """Return the largest rho of one run with which a search is worth no more than epsilon at delta.

    Parameters
    ----------
    epsilon, delta : float
        Of the whole.
    count : RunCount
    refit_rho : float, default=0.0
        Of a last fit to all records.

    Returns
    -------
    float
        0 if there is none.

    Examples
    --------
    >>> from skdpsurv.dp.selection import RunCount
    >>> from skdpsurv.dp.plan import run_rho
    >>> from skdpsurv.dp.privacy_cost import epsilon_at
    >>> ten = RunCount.with_mean(0.0, 10.0)
    >>> round(1.0 / epsilon_at(run_rho(1.0, 1e-6, ten), 1e-6), 2)  # epsilons of one run
    1.71
    """
    low, high = 0.0, epsilon
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        fits = worth(middle, delta, count, refit_rho) <= epsilon
        low, high = (middle, high) if fits else (low, middle)
    return low


def curve(rho: float, count: RunCount, refit_rho: float = 0.0) -> tuple[tuple[float, float], ...]:
    """Return orders, and what the divergence of the whole is at most at each.

    Divergences do not fall with the order: where a bound does, that of a higher order holds.
    """
    found: list[tuple[float, float]] = []
    least = math.inf
    for order in reversed(ORDERS):
        value = divergence(rho, order, count) + order * refit_rho * MARGIN
        least = min(least, value)
        found.append((order, least))
    return tuple(reversed(found))


@dataclass(frozen=True)
class BestOfRuns:
    """The price of the best of a random number of runs, where noise is Gaussian.

    Parameters
    ----------
    rho : float
        Of each run, in zCDP.
    count : RunCount
        The law of their number.
    """

    rho: float
    count: RunCount


#: An exact price, too: of runs without a delta.
AnyPrice = Price | Fraction | BestOfRuns
Prices = tuple[AnyPrice, ...]


@dataclass(frozen=True)
class Cost:
    """What is paid of each of several sets of records that share nobody.

    Parameters
    ----------
    each : tuple of tuple
        Of each set: prices, one after another.
    """

    each: tuple[Prices, ...]

    @property
    def is_pure(self) -> bool:
        """Whether no delta is needed."""
        return not any(map(_needs_delta, self.each))

    @property
    def epsilon(self) -> Fraction | float:
        """The exact sum of epsilons, of the dearest set; infinite where some noise is Gaussian."""
        if not self.is_pure or any(math.isinf(_number(p)) for one in self.each for p in one):
            return math.inf
        sums = (sum((Fraction(_number(price)) for price in one), Fraction()) for one in self.each)
        return max(sums, default=Fraction())

    @property
    def rho(self) -> float | None:
        """The price in zCDP, rounded upwards; None unless all sets have Gaussian noise."""
        if not self.each or not all(map(_needs_delta, self.each)) or any(map(_runs, self.each)):
            return None
        return max(_mu_of(one).rho for one in self.each)

    @property
    def renyi(self) -> tuple[tuple[float, float], ...]:
        """Orders, and what the divergence of each is at most; nothing for what has no such curve.

        What has one is asked of one set of records.
        """
        if len(self.each) != 1 or (best := _runs(self.each[0])) is None:
            return ()
        return curve(best.rho, best.count, _beside(best, self.each[0]))

    def within(self, epsilon: float, delta: float) -> bool:
        """Say whether this is no more than an epsilon at delta, in each set."""
        return all(self._is_within(one, epsilon, delta) for one in self.each)

    def _is_within(self, one: Prices, epsilon: float, delta: float) -> bool:
        if math.isinf(epsilon):
            return True
        if not _needs_delta(one):
            return Cost((one,)).epsilon <= epsilon
        if delta <= 0.0:
            return False
        if (best := _runs(one)) is not None:
            return worth(best.rho, delta, best.count, _beside(best, one)) <= epsilon
        return epsilon_at(_mu_of(one).rho, delta) <= epsilon


def price_of(price: Price) -> Cost:
    """Return the cost of one measurement.

    Raises
    ------
    ValueError
        If the price is negative: it would pay for others.
    """
    if not epsilon_or_mu(price) >= 0.0:
        raise ValueError(f"a price must not be negative, got {price}.")
    return Cost(((price,),))


def in_turn(costs: Iterable[Cost]) -> Cost:
    """Return the cost of measurements of the same records, one after another."""
    whole: list[Prices] = [()]
    for cost in costs:
        whole = list(dict.fromkeys(a + b for a, b in product(whole, cost.each)))
    return Cost(tuple(whole))


def at_once(costs: Iterable[Cost]) -> Cost:
    """Return the cost of measurements of records that share nobody."""
    return Cost(tuple(dict.fromkeys(one for cost in costs for one in cost.each)))


def at_random(runs: Iterable[Cost], count: RunCount) -> Cost:
    """Return the cost of the best of a random number of runs, each of a kind drawn at random."""
    one = at_once(runs)
    if one.is_pure:
        epsilon = one.epsilon
        infinite = math.isinf(epsilon)
        return Cost(((math.inf if infinite else (2 + Fraction(count.eta)) * Fraction(epsilon),),))
    return Cost(((BestOfRuns(max(map(_rho_of, one.each)), count),),))


def _number(price: AnyPrice) -> float | Fraction:
    """Return an epsilon, or mu."""
    assert not isinstance(price, BestOfRuns)
    return price if isinstance(price, Fraction) else epsilon_or_mu(price)


def _needs_delta(prices: Prices) -> bool:
    return any(isinstance(price, Concentrated | BestOfRuns) for price in prices)


def _runs(prices: Prices) -> BestOfRuns | None:
    """Return the price of runs, if one of these is such a price; no two are."""
    found = [price for price in prices if isinstance(price, BestOfRuns)]
    if len(found) > 1:
        raise ValueError("of one set of records there may be one random number of runs.")
    return found[0] if found else None


def _beside(best: BestOfRuns, prices: Prices) -> float:
    """Return what else there is, in zCDP."""
    others = tuple(price for price in prices if price is not best)
    return _rho_of(others) if others else 0.0


def _rho_of(prices: Prices) -> float:
    """Return what all cost in zCDP; one price costs no more than itself."""
    first = prices[0]
    if len(prices) == 1 and isinstance(first, Concentrated):
        return first.rho
    return _mu_of(prices).rho


def _mu_of(prices: Prices) -> Concentrated:
    """Return the price of all in zCDP, as mu: an epsilon counts for that much."""
    return compose_gaussian(*(Concentrated(float(_number(price))) for price in prices))


#: Where all Gaussian noise is proved.
GAUSSIAN = reference("docs/proofs/gaussian", "bun-steinke", "canonne")
#: What was released before, by name, and what is public.
Known = Mapping[str, Any]
#: Of neighbours: what was compared, how far it is apart, and how far it may be.
Distances = list[tuple[str, float, float]]


class Query(Protocol):
    """What is asked of the records, and how its answer is released."""

    def release(self, exact: Any, price: Price, source: RandomSource) -> Any:
        """Return the exact answer with the noise that hides one record at the price."""
        ...

    def deviation(self, price: Price) -> float:
        """Return the standard deviation of the noise on each number, in units of the answer."""
        ...

    def distances(self, one: Any, other: Any) -> Distances:
        """Return how far the exact answers of neighbours are apart, and may be."""
        ...


class Measurement(ABC):
    """One thing that is asked of the records.

    A subclass says its ``name``, in words: what a guarantee calls it; and its ``price``, or else
    its ``cost``.
    """

    name: str
    price: Price
    #: Where it is proved.
    proof: str
    #: What else must be true.
    assumptions: tuple[str, ...] = ()
    #: As of a guarantee.
    status: str = "proved"

    @property
    def cost(self) -> Cost:
        """What it costs: the price."""
        return price_of(self.price)

    def scales(self) -> Iterable[float]:
        """Return public numbers that must be neither huge nor tiny."""
        return ()

    def stated(self) -> Mapping[str, Any]:
        """Return public numbers that a guarantee states, by name."""
        return {}

    def distances(self, known: Known, one: Any, other: Any) -> Distances:
        """Return how far neighbours are apart in all that the theorem speaks of: for audits."""
        return []

    def nested(self, known: Known, records: Any) -> list[tuple[Any, tuple[Any, ...]]]:
        """Return estimators that it fits, which have plans of their own, and X, y and options."""
        return []

    @abstractmethod
    def run(self, known: Known, records: Any, source: RandomSource) -> Mapping[str, Any]:
        """Return what is released of the records, by name.

        Names with an underscore in front are for later measurements, and not published.
        """


@dataclass(frozen=True, kw_only=True)
class NoisySum(Measurement):
    """Counts, sums, means, moments: integers that add up over blocks of records.

    A subclass says what is ``asked``, or overrides :meth:`query` where that depends on what is
    known.

    Parameters
    ----------
    price : float or Concentrated
    """

    price: Price

    #: The query, where it is always the same.
    asked: ClassVar[Query]
    #: Where it is proved of Laplace noise.
    theorem: ClassVar[str] = ""

    @property
    def proof(self) -> str:  # type: ignore[override]
        """Where it is proved."""
        return GAUSSIAN if isinstance(self.price, Concentrated) else self.theorem

    def query(self, known: Known) -> Query:
        """Return what is asked, once it is known what was released before."""
        return self.asked

    def query_range(self) -> Sequence[Query]:
        """Return the ends of what may be asked, for those who do not know yet."""
        return [self.query({})]

    @abstractmethod
    def ask(self, known: Known, records: Any) -> Any:
        """Return the exact answer: a sum over blocks, private."""

    @abstractmethod
    def after(self, known: Known, noisy: Any) -> Mapping[str, Any]:
        """Return what follows from the noisy answer, by name: it never sees records."""

    def run(self, known: Known, records: Any, source: RandomSource) -> Mapping[str, Any]:
        """Ask, add noise, and return what follows."""
        noisy = self.query(known).release(self.ask(known, records), self.price, source)
        return self.after(known, noisy)

    def distances(self, known: Known, one: Any, other: Any) -> Distances:
        """Return how far exact answers are apart, and how far the query says they may be."""
        return self.query(known).distances(self.ask(known, one), self.ask(known, other))

    def scales(self) -> Iterable[float]:
        """Return the inverse of the price."""
        return [1.0 / epsilon_or_mu(self.price)]


class Mechanism(Measurement):
    """What has a theorem of its own: a perturbed minimiser, a descent, a chain, a choice."""
