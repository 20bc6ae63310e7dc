"""What a study will get at each epsilon, and what a delta would gain: from public numbers alone."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from decimal import ROUND_DOWN, Context, Decimal
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from skdpsurv.classification import DPLogisticRegression
from skdpsurv.classification.logistic_model import LogisticModel
from skdpsurv.classification.private_classifier import LabelledShape
from skdpsurv.data import PublicColumns
from skdpsurv.data.blocks import first
from skdpsurv.data.labels import stated_classes
from skdpsurv.data.shape import Shape
from skdpsurv.dp.checks import (
    choice,
    instance,
    integer,
    list_of,
    number_in,
    optional,
    positive,
    seed,
    verbosity,
    workers,
)
from skdpsurv.evaluation.forecast_covariates import columns_within, plain_columns
from skdpsurv.evaluation.forecast_result import AccuracyForecast, summarised
from skdpsurv.evaluation.forecast_studies import Setting, curve_run, regression_run
from skdpsurv.evaluation.forecast_truth import BASELINES
from skdpsurv.mechanisms.perturbation import Minimisers
from skdpsurv.survival import DPDiscreteTimeSurvival, DPKaplanMeierFitter, DPWeibullFitter
from skdpsurv.survival.hazards.base import SurvivalRegression
from skdpsurv.survival.weibull.fitter import WeibullCurve

#: What is left of the noise, at most: a promise is not weakened for less.
WORTH = 0.9


def gain_of_delta(
    estimator: Any, n_records: int, n_features: int, epsilons: Sequence[float]
) -> str:
    """Return what a delta of 1/n² would leave of the noise on coefficients, in words."""
    if getattr(estimator, "delta", 1.0):
        return ""
    delta = _one_digit(n_records)
    shape = Shape(n_records, n_features)
    if hasattr(estimator, "classes"):
        classes = stated_classes(estimator.classes)
        if classes is None:
            return ""
        shape = LabelledShape(n_records, n_features, classes)
    left = {}
    for epsilon in filter(math.isfinite, epsilons):
        without, with_delta = (_noise(estimator, shape, epsilon, each) for each in (0.0, delta))
        if with_delta <= WORTH * without < math.inf:
            left[epsilon] = with_delta / without
    if not left:
        return ""
    at = "" if len(epsilons) == 1 else " (epsilon {:g})"
    shares = [f"{share:.2f}{at.format(epsilon)}" for epsilon, share in left.items()]
    return (
        f"With delta={delta:.0e}, which is at most 1/n^2, the noise of coefficients would be "
        f"{', '.join(shares)} of what it is."
    )


def _one_digit(n_records: int) -> float:
    """Return 1/n², rounded down to a digit: above it a fit would ask."""
    return float(Context(prec=1, rounding=ROUND_DOWN).divide(Decimal(1), Decimal(n_records**2)))


def _noise(estimator: Any, shape: Shape, epsilon: float, delta: float) -> float:
    """Return the noise of a plan, as laws are compared by it; infinite if there is no such plan."""
    model = copy.copy(estimator)
    model.epsilon, model.delta = epsilon, delta
    model.prior = model.columns = model.accountant = None
    try:
        model._check_parameters()
        plan, _ = model._plan_and_guarantee(shape)
    except ValueError:
        return math.inf
    minimisers = (leaf for leaf in plan.leaves if isinstance(leaf, Minimisers))
    return min((leaf.noise for leaf in minimisers), default=math.inf)


#: What is simulated where nothing else is said.
DEFAULT_COLUMNS, DEFAULT_CONCORDANCE = 8, 0.7
#: With fewer records there is nothing to simulate, and with more it takes many minutes.
RECORDS = integer(
    20,
    1_000_000,
    why="What is lost depends on n * epsilon alone, nearly: for more records, ask for 1,000,000 "
    "and epsilon * n / 1,000,000.",
)
#: What a word stands for.
NAMED = {
    "survival": DPDiscreteTimeSurvival(max_time=1.0),
    "logistic": DPLogisticRegression(classes=[0, 1]),
    "km": DPKaplanMeierFitter(max_time=1.0),
    "weibull": DPWeibullFitter(max_time=1.0),
}
#: What can be simulated, and the measure that advice is about.
HEADLINES: dict[type, str] = {
    SurvivalRegression: "c_index",
    LogisticModel: "auc",
    DPKaplanMeierFitter: "largest_error",
    WeibullCurve: "largest_error",
}


def forecast_accuracy(
    estimator: Any,
    n_records: int,
    *,
    n_columns: int | None = None,
    columns: PublicColumns | None = None,
    event_rate: float = 0.3,
    concordance: float | None = None,
    censoring: float = 0.5,
    baseline: str = "flat",
    epsilons: Sequence[float] = (0.1, 0.3, 1.0, 3.0),
    n_repeats: int = 20,
    level: float = 0.95,
    random_state: int | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> AccuracyForecast:
    """Simulate what a private fit will get at each epsilon, before any budget is spent.

    Studies are made up from public numbers: nobody's record is looked at, nothing is spent, and
    what comes out may be published.

    Parameters
    ----------
    estimator : {"survival", "logistic", "km", "weibull"} or estimator
        What will be fitted: ``DPDiscreteTimeSurvival``, ``DPLogisticRegression``,
        ``DPKaplanMeierFitter`` or ``DPWeibullFitter`` with default settings, or one of these, not
        fitted, with the settings that it will have: with another ``data_norm``, say. Its epsilon
        and ``random_state`` are replaced, and its accountant is left alone. With
        ``inference_share``, standard errors are forecast, too; groups of curves are taken to be of
        one size.
    n_records : int
        How many records there will be, from 20 to 1,000,000. What is lost depends on n times
        epsilon alone, nearly: for more records, ask for as many at a larger epsilon.
    n_columns : int or None, default=None
        How many columns, each within [-1, 1]. None: 8. Not for curves.
    columns : PublicColumns or None, default=None
        What the columns will hold, in place of their number: raw rows are then made up within
        these bounds and categories, and go the way of real ones. None: those of the estimator, if
        it has some. Not for curves.
    event_rate : float, default=0.3
        Share of records whose event will be seen before the horizon; of positives for a classifier.
    concordance : float or None, default=None
        A guess of how well the outcome can be ranked at all, in [0.5, 0.99]: the C-index, or the
        area under the ROC curve, of the best model, as earlier studies have it. None: 0.7. Not for
        curves.
    censoring : float, default=0.5
        Share of the records without an event whose follow-up ends before the horizon, at an even
        pace, in [0, 1]. Not for classifiers.
    baseline : {"front-loaded", "flat", "rising"}, default="flat"
        Course of the hazard: Weibull shape 0.5, 1 or 2. Not for classifiers.
    epsilons : list of float, default=(0.1, 0.3, 1.0, 3.0)
        Positive. No privacy is simulated beside them.
    n_repeats : int, default=20
        Simulated studies: each has effects, records and noise of its own.
    level : float, default=0.95
        Of intervals of curves.
    random_state : int or None, default=None
        Seed of everything. The records are nobody's: a seed is harmless here.
    n_jobs : int or None, default=None
        Processes, as joblib takes them.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    AccuracyForecast

    Raises
    ------
    TypeError, ValueError
        If a parameter breaks its rule, or no effects of such columns have the concordance.

    Notes
    -----
    Survival times have proportional hazards, labels have linear log odds; numbers are bell-shaped
    or pile up near the lower bound, and every two columns are correlated a little. Effects are
    drawn anew in each study, and are as strong as ``concordance`` asks. Fits are judged on 2,000
    fresh records of each study by what is expected of them, so that only effects, records and noise
    vary from study to study. Real columns have other shapes: docs/benchmarks/forecast compares
    forecasts with what private fits lost on real data.

    Examples
    --------
    >>> from skdpsurv import forecast_accuracy
    >>> forecast = forecast_accuracy(
    ...     "survival", 5000, n_columns=4, epsilons=[0.01, 1.0], n_repeats=3, random_state=0
    ... )
    >>> forecast.table.index.tolist(), bool(forecast.table.loc[0.01, "loss"] > 0.05)
    ([0.01, 1.0, inf], True)
    >>> forecast.smallest_epsilon(0.02)
    1.0
    >>> forecast.advice
    'Epsilon 1 is the smallest of 0.01, 1 at which the C-index is on average within ...'
    """
    RECORDS("n_records", n_records)
    optional(integer(at_most=1000))("n_columns", n_columns)
    number_in(1e-4, 1.0 - 1e-4)("event_rate", event_rate)
    optional(number_in(0.5, 0.99))("concordance", concordance)
    number_in(0.0, 1.0)("censoring", censoring)
    choice(*BASELINES)("baseline", baseline)
    list_of(positive())("epsilons", epsilons)
    integer()("n_repeats", n_repeats)
    number_in(0.0, 1.0, closed="neither")("level", level)
    seed("random_state", random_state)
    workers("n_jobs", n_jobs)
    verbosity("verbose", verbose)
    if not len(epsilons):
        raise ValueError("epsilons must hold at least one number.")
    model, headline = _checked(estimator)
    is_curve = headline == "largest_error"
    if is_curve:
        given = {"n_columns": n_columns, "columns": columns, "concordance": concordance}
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"{name} must be None for a curve, which has no covariates.")
    elif columns is not None or model.columns is not None:
        model = _with_columns(model, columns, n_columns)
    model._check_parameters()
    described = None if is_curve else model.columns
    made = plain_columns(0 if is_curve else int(n_columns or DEFAULT_COLUMNS))
    names, n_features = None, len(made)
    if described is not None:
        made, names = columns_within(described), described._names()
        n_features = len(described.get_feature_names_out())
    setting = Setting(
        n_records=int(n_records),
        epsilons=(*sorted({float(epsilon) for epsilon in epsilons}), math.inf),
        survival=(float(event_rate), float(censoring), BASELINES[baseline]),
        concordance=DEFAULT_CONCORDANCE if concordance is None else float(concordance),
        level=float(level),
        columns=made,
        names=names,
    )
    seeds = np.random.SeedSequence(random_state).spawn(int(n_repeats))
    simulated = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(curve_run if is_curve else regression_run)(model, setting, each) for each in seeds
    )
    runs = list(first(iter(simulated), len(seeds), "Simulating studies", verbose))
    about: dict[str, Any] = {"estimator": type(model).__name__, "n_records": setting.n_records}
    about |= {"event_rate": float(event_rate), "n_repeats": len(runs)}
    if headline != "auc":
        about |= {"censoring": float(censoring), "baseline": baseline}
    others = {"n_columns": len(made), "concordance": setting.concordance}
    about |= {"level": setting.level} if is_curve else others
    gain = gain_of_delta(model, setting.n_records, n_features, setting.epsilons[:-1])
    return AccuracyForecast(summarised(runs, headline), headline, about, gain)


def _checked(estimator: Any) -> tuple[Any, str]:
    """Return a copy of the estimator without its ledger, and the measure that advice is about."""
    if isinstance(estimator, str):
        choice(*NAMED)("estimator", estimator)
        estimator = NAMED[estimator]
    headline = next((said for kind, said in HEADLINES.items() if isinstance(estimator, kind)), None)
    if headline is None:
        raise TypeError(
            f"estimator must be one of {', '.join(map(repr, NAMED))}, or such an estimator, not "
            f"fitted, got {type(estimator).__name__}."
        )
    model = clone(estimator).set_params(accountant=None)
    if headline == "auc":
        classes = stated_classes(model.classes)
        if classes is None:
            model.set_params(classes=[0, 1])
        elif classes.size != 2:
            raise ValueError(f"classes must be two for a forecast, got {classes.size}.")
    return model, headline


def _with_columns(model: Any, columns: Any, n_columns: int | None) -> Any:
    """Return the estimator with a description of columns."""
    if n_columns is not None:
        raise ValueError("n_columns must be None where columns say how many there are.")
    if columns is not None and model.columns is not None:
        raise ValueError("columns must be None where the estimator has columns of its own.")
    columns = model.columns if columns is None else columns
    instance(PublicColumns)("columns", columns)
    columns._check()
    return model.set_params(columns=columns)
