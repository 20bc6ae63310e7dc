"""Simulated studies: people as guessed, fits with each epsilon, and their measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from skdpsurv.base.private_estimator import Published
from skdpsurv.data import PublicColumns
from skdpsurv.data.blocks import InMemory, first
from skdpsurv.data.shape import Shape
from skdpsurv.data.target import survival_target
from skdpsurv.dp import checks
from skdpsurv.dp.guarantee import FrozenMapping, immutable
from skdpsurv.dp.noise import random_source
from skdpsurv.dp.thread_warnings import suppressed_warnings
from skdpsurv.dp.types import FloatArray
from skdpsurv.evaluation import forecast_records as records
from skdpsurv.evaluation.forecast_records import HazardTruth, LabelTruth, Pairs
from skdpsurv.evaluation.risk_table import EvaluationRecords
from skdpsurv.inference import Inference
from skdpsurv.inference.effects import errors_of, term_changes
from skdpsurv.survival.weibull.fitter import WeibullCurve

#: The measure that is summarised by its median over studies, not by its mean.
MEDIAN = "interval_width"
#: Beginning of the names of standard errors of terms' effects.
ERROR_OF = "error of "
#: Fresh records to score a fit on, by expectations: no outcomes are drawn for them.
N_FRESH = 2000
#: Times at which predictions for records, and a curve, are compared with the truth.
N_TIMES, N_CURVE_TIMES = 20, 100
#: Penalty of a classifier without privacy. Its default is larger, and penalises the intercept.
NO_PENALTY = 1e-6
#: Simulated fits behind an interval of a Weibull curve, and studies that have intervals: each of
#: these fits takes some milliseconds.
N_RESAMPLES, WITH_INTERVALS = 100, 5

#: Values of the measures of one fit, by name.
Measures = dict[str, float]
#: Values of the measures in one simulated study, by epsilon.
Run = dict[float, Measures]


def _check_entry(entry: Any) -> None:
    if entry is None or (isinstance(entry, str) and entry == "uniform"):
        return
    if isinstance(entry, str) or not np.size(entry):
        raise ValueError(f"entry must be None, 'uniform' or a list of shares, got {entry!r}.")
    checks.list_of(checks.positive())("entry", entry)


_RULES: dict[str, checks.Check] = {
    "event_rate": checks.number_in(1e-4, 1.0 - 1e-4),
    "censoring": checks.number_in(0.0, 1.0),
    "baseline": checks.choice(*records.BASELINES),
    "concordance": checks.number_in(0.5, 0.99),
    "n_repeats": checks.integer(),
    "shares": checks.instance(Mapping, "shares of labels by column"),
    "random_state": checks.seed,
    "entry": checks.custom(_check_entry),
}


@dataclass(frozen=True)
class Guess:
    """Assumptions about people, and the number of simulated studies."""

    event_rate: float = 0.3
    censoring: float = 0.5
    baseline: str = "flat"
    concordance: float = 0.7
    n_repeats: int = 5
    random_state: int | None = 0
    shares: Mapping[str, Any] = FrozenMapping({})
    entry: Any = None

    def __post_init__(self) -> None:
        checks.check_each(_RULES, self)
        object.__setattr__(self, "shares", immutable("shares", self.shares))
        if self.entry is not None and not isinstance(self.entry, str):
            object.__setattr__(self, "entry", tuple(map(float, self.entry)))

    @property
    def _survival(self) -> tuple[Any, ...]:
        """Share of events, share of censored among the others, Weibull shape, and entries."""
        entries = () if self.entry is None else (1.0,) if self.entry == "uniform" else self.entry
        return self.event_rate, self.censoring, records.BASELINES[self.baseline], entries


class SimulatedStudy(NamedTuple):
    """A study in public numbers. Epsilons rise to infinity, which means no privacy.

    Curves have no columns. Without ``names`` rows are an array of numbers. ``table`` says the
    planned scales of a regression.
    """

    n_records: int
    epsilons: tuple[float, ...]
    guess: Guess
    level: float
    columns: list[records.Column]
    names: Sequence[str] | None
    table: Any = None


def simulated(
    estimator: Any,
    n_records: int,
    epsilons: Sequence[float],
    guess: Guess,
    shares: Mapping[Any, Any],
    *,
    n_columns: int = 0,
    level: float = 0.95,
    table: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[Run]:
    """Return the measures of each simulated study, at each epsilon and without privacy.

    Parameters
    ----------
    estimator : estimator
        Not fitted, and without a ledger.
    n_records : int
    epsilons : sequence of float
    guess : Guess
    shares : mapping
        How records divide into the labels of described columns.
    n_columns : int, default=0
        Number of columns of an estimator that does not describe them.
    level : float, default=0.95
        Coverage of the intervals of curves.
    table : DPTableOne, default=None
        Not fitted: the table of the same people that ``scales`` of the estimator are planned by.
    n_jobs, verbose
        As for :func:`~skdpsurv.forecast_accuracy`.

    Raises
    ------
    ValueError
        If no such people can be.
    """
    described, takes = getattr(estimator, "columns", None), estimator._card.takes
    columns, names = records.plain_columns(n_columns), None
    if described is not None:
        columns, names = records.columns_within(described, shares), described._names()
    each = *sorted({*map(float, epsilons)}), math.inf
    setting = SimulatedStudy(int(n_records), each, guess, level, columns, names, table)
    seeds = np.random.SeedSequence(guess.random_state).spawn(int(guess.n_repeats))
    run = delayed(RUNS[takes])
    found = Parallel(n_jobs, return_as="generator")(run(estimator, setting, s) for s in seeds)
    return list(first(iter(found), len(seeds), "Simulating studies", verbose))


def _fitted(
    estimator: Any, epsilon: float, rng: np.random.Generator, *records: Any, **options: Any
) -> Any:
    """Return a copy of an estimator, fitted to simulated records with seeded noise."""
    model = clone(estimator)
    model.set_params(epsilon=epsilon, random_state=int(rng.integers(2**31)))
    with suppressed_warnings():  # a seed voids the guarantee, but these records are nobody's
        return model.fit(*records, **options)


def _scaled(estimator: Any, table: Any, X: Any, rng: np.random.Generator) -> Any:
    """Return a regression with the scales of a table of its people, as a study runs it."""
    described = table.columns
    own = records.SimulatedTable(records.columns_within(described, {}), described._names(), rng)
    rows = own.rows(len(X), rng)[0]
    both = [name for name in rows if name in X]  # a column of strata may be in no table
    rows[both] = X[both]
    release = _fitted(table, table.epsilon, rng, rows).release_
    # Its own promise is void, as its noise has a seed; the planned one stays.
    return clone(estimator).set_params(scales=replace(estimator.scales, release=release))


def regression_run(estimator: Any, setting: SimulatedStudy, seed: np.random.SeedSequence) -> Run:
    """Simulate one study of survival times or labels: ranking, absolute risk, standard errors."""
    rng = np.random.default_rng(seed)
    table = records.SimulatedTable(setting.columns, setting.names, rng)
    fresh, effects = table.rows(N_FRESH, rng)
    unit = float(effects.std()) or 1.0
    z, pairs = effects / unit, Pairs.among(N_FRESH)
    survives = "times" in estimator._card.takes
    kind, n_settings = (HazardTruth, 4) if survives else (LabelTruth, 1)
    truth = pairs.truth(kind, z, setting.guess.concordance, *setting.guess._survival[:n_settings])
    firsts = truth.firsts(z, pairs)
    X, effects = table.rows(setting.n_records, rng)
    if setting.table is not None:
        estimator = _scaled(estimator, setting.table, X, rng)
    outcome: Any = truth.draw(effects / unit, rng)
    late: dict[str, FloatArray] = {}
    if survives:
        horizon = float(estimator.max_time)
        y = survival_target(outcome.event, outcome.exit * horizon)
        late |= {} if outcome.entry is None else {"entry": outcome.entry * horizon}
    else:
        y = np.sort(np.asarray(estimator.classes))[outcome.astype(int)]

    def score(model: Any) -> Measures:
        if survives:
            risk, predicted = model.predict(fresh), model.predict_survival_function(fresh, True)
            n_times = predicted.shape[1]
            kept = np.unique(np.linspace(0, n_times - 1, N_TIMES).round().astype(int))
            predicted, true = predicted[:, kept], truth.survival(z, (kept + 1.0) / n_times)
            found, expected = 1.0 - predicted[:, -1], 1.0 - true[:, -1]
        else:
            risk, predicted = model.decision_function(fresh), model.predict_proba(fresh)[:, 1]
            found, expected = predicted, (true := truth.probability(z))
        return {
            "c_index" if survives else "auc": pairs.concordance(risk, *firsts),
            "calibration": float(found.mean() / expected.mean()),
            "risk_error": float(np.abs(found - expected).mean()),
            # E (1{T > t} - p)^2 = S (1 - S) + (S - p)^2.
            "brier": float(np.mean(true * (1.0 - true) + (true - predicted) ** 2)),
        }

    exact, effect, exact_model = None, np.zeros(0), estimator
    changes: dict[str, FloatArray] = {}
    if getattr(estimator, "inference_share", 0.0):
        columns = estimator.as_fitted().columns
        features = np.asarray(fresh if columns is None else columns.fit_transform(fresh), float)
        exact = _without_privacy(setting.n_records * truth.information(features, z))
        if isinstance(columns, PublicColumns):
            changes = {term: rows for term, (_, rows) in term_changes(columns).items()}
        # The log ratio is linear in the features, but for missing cells.
        design = features - features.mean(axis=0)
        effect = np.linalg.lstsq(design, truth.strength * (z - z.mean()), rcond=None)[0]
    if isinstance(getattr(estimator, "alpha", None), str):
        exact_model = clone(estimator).set_params(alpha=NO_PENALTY)
    run: Run = {}
    for epsilon in setting.epsilons:
        private = math.isfinite(epsilon)
        model = _fitted(estimator if private else exact_model, epsilon, rng, X, y, **late)
        run[epsilon] = score(model)
        if exact is not None:
            size = exact.known.size
            off = np.ravel(model.coef_)[-size:] - effect
            found = (model.inference_ or Inference.unknown(size)) if private else exact
            errors = found.standard_errors()[-size:], exact.standard_errors()
            run[epsilon] |= _of_coefficients(*errors, off)
            run[epsilon] |= {
                f"{ERROR_OF}{term}": float(errors_of(found, rows).max(initial=0.0))
                for term, rows in changes.items()
            }
    return run


def _without_privacy(information: FloatArray) -> Inference:
    """Return the covariance of maximum likelihood, with constant columns unknown."""
    found = Inference.unknown(len(information))
    found.known[:] = np.diag(information) > 1e-12
    known = np.ix_(found.known, found.known)
    found.covariance[known] = np.linalg.pinv(information[known])
    np.fill_diagonal(found.covariance, np.maximum(np.diag(found.covariance), 0.0))
    return found


def _of_coefficients(errors: FloatArray, exact: FloatArray, off: FloatArray) -> Measures:
    """Return width and share of finite intervals, and errors in ``exact`` standard errors."""
    comparable = np.isfinite(exact) & (exact > 0.0)
    if not comparable.any():
        return dict.fromkeys((MEDIAN, "finite_intervals", "coefficient_error"), math.nan)
    ratios, off = errors[comparable] / exact[comparable], off[comparable] / exact[comparable]
    return {
        MEDIAN: float(np.median(ratios)),
        "finite_intervals": float(np.isfinite(ratios).mean()),
        "coefficient_error": float(np.sqrt(np.mean(off**2))),
    }


def curve_run(estimator: Any, setting: SimulatedStudy, seed: np.random.SeedSequence) -> Run:
    """Simulate one study without covariates; errors are absolute, and means over groups."""
    rng = np.random.default_rng(seed)
    truth = HazardTruth.of(np.zeros(1), 0.0, *setting.guess._survival)
    drawn = truth.draw(np.zeros(setting.n_records), rng)
    horizon = float(estimator.max_time)
    shares = np.arange(1, N_CURVE_TIMES + 1) / N_CURVE_TIMES
    true = truth.survival(np.zeros(1), shares)[0]
    half = (math.log(2.0) / truth.hazard) ** (1.0 / truth.shape)
    labels = getattr(estimator, "groups", None)
    options: dict[str, Any] = {}
    if drawn.entry is not None:
        options["entry"] = drawn.entry * horizon
    if labels is not None:
        options["group"] = [labels[i % len(labels)] for i in range(setting.n_records)]
    # The last entry of the key is the number of the study.
    has_band = not isinstance(estimator, WeibullCurve) or seed.spawn_key[-1] < WITH_INTERVALS

    def score(curve: Any) -> Measures:
        error = np.asarray(curve.survival_function_at_times(shares * horizon)) - true
        found = {
            "largest_error": float(np.abs(error).max()),
            "mean_error": float(np.abs(error).mean()),
            "restricted_mean_error": float(abs(error.mean())),
        }
        if half <= 1.0:
            median = min(float(curve.median_survival_time_) / horizon, 1.0)
            found["median_error"] = abs(median - half)
        middle = end = math.nan
        if has_band:
            times = [horizon / 2.0, horizon]
            band = curve.survival_band(times, setting.level, n_resamples=N_RESAMPLES)
            middle, end = (band["upper"] - band["lower"]).to_numpy()
        return {**found, "width_middle": float(middle), "width_horizon": float(end)}

    run: Run = {}
    for epsilon in setting.epsilons:
        model = _fitted(estimator, epsilon, rng, drawn.exit * horizon, drawn.event, **options)
        curves = [model] if labels is None else [model.of_group(label) for label in labels]
        scores = [score(curve) for curve in curves]
        run[epsilon] = {name: float(np.mean([s[name] for s in scores])) for name in scores[0]}
    return run


def evaluation_run(estimator: Any, setting: SimulatedStudy, seed: np.random.SeedSequence) -> Run:
    """Simulate one study in which the best possible model is evaluated."""
    rng = np.random.default_rng(seed)
    z, horizon = rng.normal(size=setting.n_records), float(estimator.max_time)
    shape = Shape(setting.n_records, 0, has_entry=setting.guess.entry is not None)
    some = z[:N_FRESH]
    pairs = Pairs.among(some.size)
    truth = pairs.truth(HazardTruth, some, setting.guess.concordance, *setting.guess._survival)
    drawn = truth.draw(z, rng)
    histories, at_entry = replace(drawn, exit=drawn.exit * horizon), None
    if drawn.entry is not None:
        histories = replace(histories, entry=drawn.entry * horizon)
        at_entry = truth.survival_each(z, drawn.entry)
    run: Run = {}
    for epsilon in setting.epsilons:
        evaluation = clone(estimator).set_params(epsilon=epsilon)
        times = np.append(evaluation._setting(shape).times, horizon) / horizon
        people = EvaluationRecords(truth.survival(z, times), histories, at_entry)
        plan, guarantee = evaluation._plan_and_guarantee(shape)
        values = plan.run(InMemory([people]), random_source(int(rng.integers(2**31))))
        found = evaluation._publish(shape, Published(guarantee, values, (), None)).c_index
        run[epsilon] = {"c_index_width": found.upper - found.lower}
    return run


def table_run(estimator: Any, setting: SimulatedStudy, seed: np.random.SeedSequence) -> Run:
    """Return the width for a label that half of a group have, as the table computes it."""
    tables = {e: clone(estimator).set_params(epsilon=e) for e in setting.epsilons}
    found = {e: one._expected_share(setting.n_records).population for e, one in tables.items()}
    return {e: {"share_width": high - low} for e, (low, high) in found.items()}


#: What is simulated, by what an estimator takes.
RUNS: dict[tuple[str, ...], Callable[[Any, SimulatedStudy, np.random.SeedSequence], Run]] = {
    ("rows", "times"): regression_run,
    ("rows", "classes"): regression_run,
    ("times",): curve_run,
    ("times", "group"): curve_run,
    ("model",): evaluation_run,
    ("rows",): table_run,
}
