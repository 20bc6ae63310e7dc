r"""What the analyses of a study will get, by simulation from public numbers.

Each analysis is simulated at half of its epsilon, at all of it and at twice of it. Its errors,
relative to those without privacy, are taken to follow

.. math:: r_i(\epsilon) = 1 + a_i (\epsilon_i / \epsilon)^{p_i}.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

from skdpsurv.base.private_estimator import Published
from skdpsurv.data.blocks import InMemory
from skdpsurv.dp.checks import check_each, choice, integer, number_in, seed
from skdpsurv.dp.noise import random_source
from skdpsurv.dp.references import phrase
from skdpsurv.evaluation.forecast import forecast_accuracy
from skdpsurv.evaluation.forecast_records import BASELINES, HazardTruth, Pairs
from skdpsurv.evaluation.forecast_studies import MEDIAN, N_FRESH
from skdpsurv.evaluation.risk_table import EvaluationRecords
from skdpsurv.study.parts import Part
from skdpsurv.survival import DPKaplanMeierFitter

#: More people than this are not simulated: errors hardly depend on them but by n epsilon.
MOST = 1_000_000
#: Multiples of the epsilon of a part at which it is simulated.
MULTIPLES = (0.5, 1.0, 2.0)
#: Smallest excess of an error over that without privacy: less is chance.
LEAST_EXCESS = 0.01


_RULES = {
    "event_rate": number_in(1e-4, 1.0 - 1e-4),
    "censoring": number_in(0.0, 1.0),
    "baseline": choice(*BASELINES),
    "concordance": number_in(0.5, 0.99),
    "n_repeats": integer(),
    "random_state": seed,
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
    """

    event_rate: float = 0.3
    censoring: float = 0.5
    baseline: str = "flat"
    concordance: float = 0.7
    n_repeats: int = 5
    random_state: int | None = 0

    def __post_init__(self) -> None:
        check_each(_RULES, self)

    @property
    def words(self) -> str:
        """What is guessed, in a sentence."""
        return phrase("guessed", **vars(self))

    def expected(self, part: Part) -> list[Expected]:
        """Return what an analysis will have: its decisive error first; nothing if that is unknown.

        Raises
        ------
        ValueError
            If no such people can be.
        """
        with part.analysis.named():
            return list(_FORECASTS[part.analysis.kind](self, part))

    def _accuracy(self, part: Part, **more: Any) -> pd.DataFrame:
        """Return a forecast: at some multiples of the epsilon of the part, and without privacy."""
        n = min(part.n_people, MOST)
        epsilon = part.spend.epsilon * part.n_people / n
        settings = {"n_repeats": self.n_repeats, "random_state": self.random_state, **more}
        epsilons = [multiple * epsilon for multiple in MULTIPLES]
        return forecast_accuracy(part.estimator, n, epsilons=epsilons, **settings).table

    def _survival(self) -> dict[str, Any]:
        names = ("event_rate", "censoring", "baseline")
        return {name: getattr(self, name) for name in names}


def _row(
    table: pd.DataFrame, name: str, what: str, *, is_error: bool = True, small: float = 0.0
) -> Expected:
    *privately, without = table[name]
    excess = [max(one / without - 1.0, LEAST_EXCESS) for one in privately] if without else []
    known = [(m, e) for m, e in zip(MULTIPLES, excess, strict=False) if math.isfinite(e)]
    power = math.nan
    if len(known) > 1:
        (first, larger), (last, smaller) = known[0], known[-1]
        power = math.log(larger / smaller) / math.log(last / first)
    half, private, twice = map(float, privately)
    return Expected(what, float(without), private, is_error, small, power, half, twice)


def _table(scenario: Scenario, part: Part) -> Iterator[Expected]:
    """Forecast the share of a label that half of a group have, by the law of the noise."""
    n = part.n_people / max(len(part.estimator._groups()), 1)
    sampling, noise = math.sqrt(0.25 / n), part.estimator._deviation() / n
    errors = [math.hypot(sampling, noise / multiple) for multiple in MULTIPLES]
    table = pd.DataFrame({"width": np.minimum(3.92 * np.array([*errors, sampling]), 1.0)})
    yield _row(table, "width", "width of a 95 % interval of a share in a group", small=0.1)


def _curve(scenario: Scenario, part: Part) -> Iterator[Expected]:
    table = scenario._accuracy(part, **scenario._survival())
    yield _row(table, "width_middle", "width of a 95 % interval half-way", small=0.1)
    yield _row(table, "largest_error", "largest error of a curve", small=0.03)


def _curves(scenario: Scenario, part: Part) -> Iterator[Expected]:
    """Forecast one of several groups of equal size, which has all of epsilon for itself."""
    own, names = part.estimator, ("max_time", "n_intervals", "breakpoints")
    # Of competing events, the curve that is free of all: each cause has as much noise.
    one = DPKaplanMeierFitter(own.epsilon, **{name: getattr(own, name) for name in names})
    n_people = max(part.n_people // len(own.groups or [None]), 1)
    return _curve(scenario, replace(part, estimator=one, n_people=n_people))


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
    table = scenario._accuracy(part, **more)
    if MEDIAN in table:
        width = _row(table, MEDIAN, "relative width of intervals of coefficients")
        if math.isfinite(width.private):
            yield width
    yield _row(table, "risk_error", "mean error of a predicted risk", small=0.03)
    yield _row(table, name, word, is_error=False)
    if MEDIAN in table:
        what = "share of coefficients with an interval"
        yield _row(table, "finite_intervals", what, is_error=False)


def _evaluation(scenario: Scenario, part: Part) -> Iterator[Expected]:
    """Evaluate the best possible model of simulated people."""
    widths = []
    n, horizon = min(part.n_people, MOST // 10), float(part.estimator.max_time)
    scale = part.n_people / n
    setting = (scenario.event_rate, scenario.censoring, BASELINES[scenario.baseline])
    for sequence in np.random.SeedSequence(scenario.random_state).spawn(scenario.n_repeats):
        rng = np.random.default_rng(sequence)
        z = rng.normal(size=n)
        some = z[:N_FRESH]
        truth = Pairs.among(some.size).truth(HazardTruth, some, scenario.concordance, *setting)
        event, time = truth.draw(z, rng)
        for multiple in (*MULTIPLES, math.inf):
            epsilon = multiple * part.spend.epsilon * scale
            evaluation = clone(part.estimator).set_params(epsilon=epsilon)
            shape = replace(part.shape, n_records=n)
            times = np.append(evaluation._setting(shape).times, horizon) / horizon
            records = EvaluationRecords(truth.survival(z, times), event, time * horizon)
            plan, guarantee = evaluation._plan_and_guarantee(shape)
            known = plan.run(InMemory([records]), random_source(int(rng.integers(2**31))))
            result = evaluation._publish(shape, Published(guarantee, known, (), None))
            widths.append(result.c_index.upper - result.c_index.lower)
    mean = np.reshape(widths, (-1, len(MULTIPLES) + 1)).mean(axis=0)
    yield _row(
        pd.DataFrame({"width": mean}),
        "width",
        "width of the 95 % interval of the C-index",
        small=0.1,
    )


_FORECASTS: Mapping[str, Callable[[Scenario, Part], Iterator[Expected]]] = {
    "table": _table,
    "curves": _curves,
    "competing": _curves,
    "regression": _regression,
    "weibull": _curve,
    "classifier": _classifier,
    "evaluation": _evaluation,
}
