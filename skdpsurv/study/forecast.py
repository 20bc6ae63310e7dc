r"""What the analyses of a study will get, by simulation from public numbers.

Each analysis is simulated at half of its epsilon, at all of it and at twice of it. Its errors,
relative to those without privacy, are taken to follow

.. math:: r_i(\epsilon) = 1 + a_i (\epsilon_i / \epsilon)^{p_i}.

How sure a figure is follows from the studies that it summarises: an interval by Student's t for a
mean, and by order statistics for a median.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special
from sklearn.base import clone

from skdpsurv.base.private_estimator import Published
from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import checks
from skdpsurv.dp.guarantee import FrozenMapping, frozen
from skdpsurv.dp.noise import random_source
from skdpsurv.dp.references import phrase
from skdpsurv.dp.types import FloatArray
from skdpsurv.evaluation import forecast_records as simulated
from skdpsurv.evaluation.forecast import forecast_accuracy
from skdpsurv.evaluation.forecast_result import AccuracyForecast
from skdpsurv.evaluation.forecast_studies import MEDIAN, N_FRESH
from skdpsurv.evaluation.risk_table import EvaluationRecords
from skdpsurv.study.kinds import events_of
from skdpsurv.study.parts import Part
from skdpsurv.study.protocol import Protocol
from skdpsurv.survival import DPKaplanMeierFitter

#: More people than this are not simulated: errors hardly depend on them but by n epsilon.
MOST = 1_000_000
#: Multiples of the epsilon of a part at which it is simulated.
MULTIPLES = (0.5, 1.0, 2.0)
#: Smallest excess of an error over that without privacy: less is chance.
LEAST_EXCESS = 0.01


_RULES = {
    "event_rate": checks.number_in(1e-4, 1.0 - 1e-4),
    "censoring": checks.number_in(0.0, 1.0),
    "baseline": checks.choice(*simulated.BASELINES),
    "concordance": checks.number_in(0.5, 0.99),
    "n_repeats": checks.integer(),
    "shares": checks.instance(Mapping, "shares of labels by column"),
    "random_state": checks.seed,
}


class Expected(NamedTuple):
    """One number that an analysis will have: without privacy, and in this study.

    The smaller the better, if it ``is_error``, and up to ``small`` it is no matter for advice;
    ``power`` is that of 1 / epsilon by which privacy adds to it.
    """

    what: str
    without: float
    private: float
    is_error: bool = True
    small: float = 0.0
    power: float = math.nan
    #: At half of the epsilon, and at twice of it.
    half: float = math.nan
    twice: float = math.nan
    #: Interval for the mean, or median, of all studies like those that were simulated.
    low: float = math.nan
    high: float = math.nan

    @property
    def ratio(self) -> float:
        """The error relative to the one without privacy."""
        return self.private / self.without if self.without > 0.0 else math.nan


@dataclass(frozen=True)
class Scenario:
    """What is guessed of the people of a study, and how often studies are simulated.

    Parameters
    ----------
    event_rate, censoring, baseline, concordance, n_repeats
        As for :func:`~skdpsurv.forecast_accuracy`. Of a classifier, half of the labels are
        positive.
    random_state : int or None, default=0
        Seed of the simulation, which uses no record.
    shares : mapping of str to list of float
        How people divide into groups, such as the unequal arms of a trial, by column and in the
        order of its labels; and how events divide into the labels of
        ``event_is``, by the column of events. Elsewhere they are equal.
    """

    event_rate: float = 0.3
    censoring: float = 0.5
    baseline: str = "flat"
    concordance: float = 0.7
    n_repeats: int = 5
    random_state: int | None = 0
    shares: Mapping[str, Any] = FrozenMapping({})

    def __post_init__(self) -> None:
        checks.check_each(_RULES, self)
        object.__setattr__(self, "shares", frozen("shares", self.shares))

    @property
    def words(self) -> str:
        """What is guessed, and how sure the simulation is, in sentences."""
        ratios = {name: " : ".join(map("{:g}".format, n)) for name, n in self.shares.items()}
        divided = "".join(f" {name} divides as {ratio}." for name, ratio in ratios.items())
        sure = phrase("sure") if self.n_repeats > 1 else phrase("not_sure")
        return phrase("guessed", **vars(self)) + f"{divided} {sure}"

    def check(self, protocol: Protocol) -> None:
        """Refuse shares of a column that has no labels, or another number of them."""
        simulated.check_shares(
            self.shares,
            simulated.label_counts(protocol.kinds) | {protocol.event: len(protocol.event_is)},
        )

    def _of_event(self, part: Part, protocol: Protocol) -> Scenario:
        """Return the scenario in which only the events count that an analysis is of."""
        of = part.analysis if part.analysis.of is None else protocol.analysis(part.analysis.of)
        labels, own = protocol.event_is, events_of(of.options, protocol)
        weights = self.shares.get(str(protocol.event), (1.0,) * len(labels))
        counted = [w for label, w in zip(labels, weights, strict=True) if label in own]
        if len(counted) == len(labels):
            return self
        rate = self.event_rate * sum(counted) / sum(weights)
        lost = (1.0 - self.event_rate) * self.censoring + self.event_rate - rate
        return replace(self, event_rate=rate, censoring=lost / (1.0 - rate))

    def _groups(self, part: Part, n_groups: int) -> list[tuple[str, int]]:
        """Return the smallest and the largest group: words about it, and its number of people."""
        whole, shares = part.n_people, self.shares.get(str(part.analysis.by))
        if shares is None:
            return [("", max(whole // max(n_groups, 1), 1))]
        ends = {"smallest": min(shares), "largest": max(shares)}
        sizes = {word: int(whole * share / sum(shares)) for word, share in ends.items()}
        return [(f", in the {word} group", max(n, 1)) for word, n in sizes.items()]

    def expected(self, part: Part, protocol: Protocol) -> list[Expected]:
        """Return what an analysis will have: its decisive error first; nothing if that is unknown.

        Raises
        ------
        ValueError
            If no such people can be.
        """
        with part.analysis.named():
            return list(_FORECASTS[part.analysis.kind](self._of_event(part, protocol), part))

    def _accuracy(self, part: Part, **more: Any) -> AccuracyForecast:
        """Return a forecast: at some multiples of the epsilon of the part, and without privacy."""
        n = min(part.n_people, MOST)
        epsilon = part.spend.epsilon * part.n_people / n
        settings = {"n_repeats": self.n_repeats, "random_state": self.random_state, **more}
        epsilons = [multiple * epsilon for multiple in MULTIPLES]
        return forecast_accuracy(part.estimator, n, epsilons=epsilons, **settings)

    def _survival(self) -> dict[str, Any]:
        names = ("event_rate", "censoring", "baseline")
        return {name: getattr(self, name) for name in names}


def _row(table: Any, name: str, what: str, *, studies: Any = None, **about: Any) -> Expected:
    """Return a number by its measure, and how sure it is, given each simulated study."""
    *privately, without = map(float, table[name])
    if studies is not None:
        own = studies[name].unstack("epsilon").iloc[:, MULTIPLES.index(1.0)]
        ends = _interval(own.to_numpy(), is_median=name == MEDIAN)
        about |= dict(zip(("low", "high"), ends, strict=True))
    excess = [max(one / without - 1.0, LEAST_EXCESS) for one in privately] if without else []
    known = [(m, e) for m, e in zip(MULTIPLES, excess, strict=False) if math.isfinite(e)]
    if len(known) > 1:
        (first, larger), (last, smaller) = known[0], known[-1]
        about["power"] = math.log(larger / smaller) / math.log(last / first)
    half, private, twice = privately
    return Expected(what, without, private, half=half, twice=twice, **about)


def _interval(values: FloatArray, is_median: bool) -> tuple[float, float]:
    """Return an interval of about 95 % for a mean, or a median, of such values; NaN of one."""
    known = np.sort(values[~np.isnan(values)])
    n = known.size
    if n < 2:
        return math.nan, math.nan
    if is_median:  # widths may be infinite
        k = max(int(np.sum(special.bdtr(np.arange(n), n, 0.5) <= 0.025)), 1)
        return float(known[k - 1]), float(known[n - k])
    mean, half = known.mean(), special.stdtrit(n - 1, 0.975) * known.std(ddof=1) / math.sqrt(n)
    # All of these are errors, widths or shares of probabilities.
    return max(float(mean - half), 0.0), min(float(mean + half), 1.0)


def _table(scenario: Scenario, part: Part) -> Iterator[Expected]:
    """Forecast the share of a label that half of a group have, by the law of the noise."""
    for words, n in scenario._groups(part, len(part.estimator._groups())):
        sampling, noise = math.sqrt(0.25 / n), part.estimator._deviation() / n
        errors = [math.hypot(sampling, noise / multiple) for multiple in MULTIPLES]
        table = pd.DataFrame({"width": np.minimum(3.92 * np.array([*errors, sampling]), 1.0)})
        what = f"width of a 95 % interval of a share in a group{words}"
        yield _row(table, "width", what, small=0.1)


def _curve(scenario: Scenario, part: Part, words: str = "") -> Iterator[Expected]:
    found = scenario._accuracy(part, **scenario._survival())
    for name, what, small in (
        ("width_middle", "width of a 95 % interval half-way", 0.1),
        ("largest_error", "largest error of a curve", 0.03),
    ):
        yield _row(found.table, name, f"{what}{words}", studies=found.studies, small=small)


def _curves(scenario: Scenario, part: Part) -> Iterator[Expected]:
    """Forecast the smallest and the largest group: each has all of epsilon for itself."""
    own, names = part.estimator, ("max_time", "n_intervals", "breakpoints")
    # Of competing events, the curve that is free of all: each cause has as much noise.
    one = DPKaplanMeierFitter(own.epsilon, **{name: getattr(own, name) for name in names})
    for words, n_people in scenario._groups(part, len(own.groups or [None])):
        yield from _curve(scenario, replace(part, estimator=one, n_people=n_people), words)


def _regression(scenario: Scenario, part: Part) -> Iterator[Expected]:
    more = {**scenario._survival(), "concordance": scenario.concordance}
    return _coefficients(scenario, part, "c_index", "C-index", **more)


def _classifier(scenario: Scenario, part: Part) -> Iterator[Expected]:
    if len(part.estimator.classes) != 2:
        return iter(())
    more = {"event_rate": 0.5, "concordance": scenario.concordance}
    return _coefficients(scenario, part, "auc", "AUC", **more)


def _coefficients(
    scenario: Scenario, part: Part, name: str, word: str, **more: Any
) -> Iterator[Expected]:
    own = part.estimator.columns._names()
    shares = {name: one for name, one in scenario.shares.items() if name in own}
    found = scenario._accuracy(part, shares=shares, **more)
    row = partial(_row, found.table, studies=found.studies)
    if MEDIAN in found.table:
        width = row(MEDIAN, "relative width of intervals of coefficients")
        if math.isfinite(width.private):
            yield width
    yield row("risk_error", "mean error of a predicted risk", small=0.03)
    yield row(name, word, is_error=False)
    if MEDIAN in found.table:
        yield row("finite_intervals", "share of coefficients with an interval", is_error=False)


def _evaluation(scenario: Scenario, part: Part) -> Iterator[Expected]:
    """Evaluate the best possible model of simulated people."""
    widths = []
    n, horizon = min(part.n_people, MOST // 10), float(part.estimator.max_time)
    scale = part.n_people / n
    epsilons = [multiple * part.spend.epsilon * scale for multiple in (*MULTIPLES, math.inf)]
    setting = (scenario.event_rate, scenario.censoring, simulated.BASELINES[scenario.baseline])
    for sequence in np.random.SeedSequence(scenario.random_state).spawn(scenario.n_repeats):
        rng = np.random.default_rng(sequence)
        z = rng.normal(size=n)
        some = z[:N_FRESH]
        truth = simulated.Pairs.among(some.size).truth(
            simulated.HazardTruth, some, scenario.concordance, *setting
        )
        event, time = truth.draw(z, rng)
        for epsilon in epsilons:
            evaluation = clone(part.estimator).set_params(epsilon=epsilon)
            shape = replace(part.shape, n_records=n)
            times = np.append(evaluation._setting(shape).times, horizon) / horizon
            records = EvaluationRecords(truth.survival(z, times), event, time * horizon)
            plan, guarantee = evaluation._plan_and_guarantee(shape)
            known = plan.run(InMemory([records]), random_source(int(rng.integers(2**31))))
            result = evaluation._publish(shape, Published(guarantee, known, (), None))
            widths.append(result.c_index.upper - result.c_index.lower)
    runs, what = [range(scenario.n_repeats), epsilons], "width of the 95 % interval of the C-index"
    index = pd.MultiIndex.from_product(runs, names=["study", "epsilon"])
    studies = pd.DataFrame({"width": widths}, index=index)
    table = {"width": np.reshape(widths, (-1, len(epsilons))).mean(axis=0)}
    yield _row(table, "width", what, studies=studies, small=0.1)


_FORECASTS: Mapping[str, Callable[[Scenario, Part], Iterator[Expected]]] = {
    "table": _table,
    "curves": _curves,
    "competing": _curves,
    "regression": _regression,
    "weibull": _curve,
    "classifier": _classifier,
    "evaluation": _evaluation,
}
