"""What is timed: fits of this package, and of what a user would take instead."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.data import simulated, survival
from benchmarks.data.survival import Survival, survset_frame
from benchmarks.harness import Setting
from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPLogisticRegression,
    DPWeibullFitter,
)
from skdpsurv.reference import person_period
from skdpsurv.survival.hazards.model import published_basis

Call = Callable[[], object]
MAXIMUM_LIKELIHOOD, PRIVATE = "maximum likelihood", "private, ε = 1"


@dataclass(frozen=True)
class Problem:
    """Records and the shape of a hazard model."""

    data: Survival
    q: int = 200
    knots: int = 3
    link: str = "logit"


@cache
def problem(setting: Setting, name: str, q: int = 200, link: str = "logit") -> Problem:
    """Return a real data set; ``support2`` is SurvSet's, 9,105 patients with many columns."""
    if name == "support2":
        return Problem(_support2(), q, link=link)
    if name == "simulated":
        return Problem(simulated(setting.of(20_000, 1_000), 8), q, link=link)
    return Problem(survival(setting, name), q, link=link)


def _support2() -> Survival:
    """Columns by the data's own extremes: only time is measured on them."""
    # "sfdm2" says who died within two months.
    frame = survset_frame("support2").drop(columns="fac_sfdm2")
    event, lasted = frame.pop("event").to_numpy() == 1, frame.pop("time").to_numpy(dtype=float)
    numbers = frame.filter(regex="^num_").astype(float)
    numbers = numbers.fillna(numbers.median())
    width = (numbers.max() - numbers.min()).replace(0.0, 1.0)
    kinds = pd.get_dummies(frame.filter(regex="^fac_"), drop_first=True, dtype=float)
    kinds = kinds.loc[:, kinds.mean().between(0.001, 0.999)]
    X = np.hstack([2.0 * (numbers - numbers.min()) / width - 1.0, kinds])
    # Some peers refuse columns that depend on others.
    triangle = np.abs(np.linalg.qr(np.column_stack([np.ones(len(X)), X]), mode="r").diagonal())
    kept = np.flatnonzero(triangle[1:] > 1e-8 * triangle[0])
    X, columns = X[:, kept], tuple(np.array([*numbers.columns, *kinds.columns])[kept])
    return Survival("support2", X, event, lasted, 2100.0, columns, (False,) * X.shape[1])


# ---- Regression.


def own(problem: Problem, epsilon: float) -> Call:
    """Fit records as they are."""
    data = problem.data
    model = DPDiscreteTimeSurvival(
        epsilon,
        max_time=data.max_time,
        link=problem.link,
        n_intervals=problem.q,
        n_knots=problem.knots,
    )
    y = data.y
    return lambda: model.fit(data.X, y)


def rows_of_persons(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return a row for each person and interval at risk."""
    data = problem.data
    basis = published_basis(problem.q, problem.knots)
    design, response = person_period(
        data.X, data.y, max_time=data.max_time, n_intervals=problem.q, basis=basis
    )
    return np.asarray(design), np.asarray(response)


def _statsmodels(problem: Problem) -> object:
    import statsmodels.api as sm

    design, response = rows_of_persons(problem)
    if problem.link == "logit":
        return sm.Logit(response, design).fit(disp=0)
    kinds = {"cloglog": sm.families.links.CLogLog, "probit": sm.families.links.Probit}
    return sm.GLM(response, design, family=sm.families.Binomial(kinds[problem.link]())).fit()


def _scikit_learn(problem: Problem) -> object:
    from sklearn.linear_model import LogisticRegression

    design, response = rows_of_persons(problem)
    model = LogisticRegression(C=math.inf, solver="newton-cholesky", fit_intercept=False)
    return model.fit(design, response)


def _glum(problem: Problem) -> object:
    from glum import GeneralizedLinearRegressor

    design, response = rows_of_persons(problem)
    model = GeneralizedLinearRegressor(family="binomial", alpha=0.0, fit_intercept=False)
    return model.fit(design, response.astype(float))


def _pydts(problem: Problem) -> object:
    """Its model has a coefficient for each interval, not a spline."""
    from pydts.fitters import DataExpansionFitter

    data = problem.data
    frame = pd.DataFrame(data.X, columns=[f"x{j}" for j in range(data.X.shape[1])])
    frame["pid"] = np.arange(len(frame))
    frame["J"] = data.event.astype(int)
    frame["X"] = np.minimum(1 + (problem.q * data.time / data.max_time).astype(int), problem.q)
    return DataExpansionFitter().fit(frame, event_type_col="J", duration_col="X", pid_col="pid")


def _lifelines(problem: Problem) -> object:
    from lifelines import CoxPHFitter

    data = problem.data
    frame = pd.DataFrame(data.X).assign(time=np.maximum(data.time, 1e-9), event=data.event)
    frame.columns = frame.columns.astype(str)
    # Columns that say the same twice have no maximum without it.
    return CoxPHFitter(penalizer=1e-6).fit(frame, "time", "event")


def _scikit_survival(problem: Problem) -> object:
    from sksurv.linear_model import CoxPHSurvivalAnalysis

    return CoxPHSurvivalAnalysis(alpha=1e-6, ties="efron").fit(problem.data.X, problem.data.y)


PEERS: dict[str, Callable[[Problem], object]] = {
    "person-period, statsmodels": _statsmodels,
    "person-period, scikit-learn": _scikit_learn,
    "person-period, glum": _glum,
    "pydts": _pydts,
    "Cox, lifelines": _lifelines,
    "Cox, scikit-survival": _scikit_survival,
}


def hazard_call(name: str, problem: Problem) -> Call:
    """Return what fits a regression."""
    if name in PEERS:
        return partial(PEERS[name], problem)
    return own(problem, math.inf if name == MAXIMUM_LIKELIHOOD else 1.0)


# ---- Curves, Weibull, classifiers.


def curve_calls(data: Survival) -> dict[str, Call]:
    """Return fits of a Kaplan-Meier curve."""
    from lifelines import KaplanMeierFitter
    from sksurv.nonparametric import kaplan_meier_estimator

    def ours(epsilon: float) -> Call:
        fitter = DPKaplanMeierFitter(epsilon, max_time=data.max_time)
        return lambda: fitter.fit(data.time, data.event)

    return {
        MAXIMUM_LIKELIHOOD: ours(math.inf),
        PRIVATE: ours(1.0),
        "lifelines": lambda: KaplanMeierFitter().fit(data.time, data.event),
        "scikit-survival": lambda: kaplan_meier_estimator(data.event, data.time),
    }


def weibull_calls(data: Survival) -> dict[str, Call]:
    """Return fits of a Weibull distribution."""
    from lifelines import WeibullFitter

    def ours(epsilon: float) -> Call:
        fitter = DPWeibullFitter(epsilon, max_time=data.max_time)
        return lambda: fitter.fit(data.time, data.event)

    times = np.maximum(data.time, 1e-6)
    return {
        MAXIMUM_LIKELIHOOD: ours(math.inf),
        PRIVATE: ours(1.0),
        "lifelines": lambda: WeibullFitter().fit(times, data.event),
    }


def logistic_calls(data: Survival) -> dict[str, Call]:
    """Return fits of whether there was an event."""
    from sklearn.linear_model import LogisticRegression

    label = data.event.astype(int)

    def ours(epsilon: float) -> Call:
        norm = math.sqrt(data.X.shape[1])
        model = DPLogisticRegression(epsilon, classes=[0, 1], data_norm=norm)
        return lambda: model.fit(data.X, label)

    return {
        MAXIMUM_LIKELIHOOD: ours(math.inf),
        PRIVATE: ours(1.0),
        "scikit-learn": lambda: LogisticRegression(max_iter=1000).fit(data.X, label),
    }


def seconds(call: Call, least: float = 0.2) -> float:
    """Return a call's processor time: the median of as many as take ``least``, at most 20."""
    gc.collect()
    times: list[float] = []
    while not times or (sum(times) < least and len(times) < 20):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return float(np.median(times))


def in_turn(calls: dict[str, Call], key: str) -> list[dict[str, Any]]:
    """Return a row for each call, after one of each that does not count."""
    for call in calls.values():
        call()
    return [{key: name, "seconds": seconds(call)} for name, call in calls.items()]
