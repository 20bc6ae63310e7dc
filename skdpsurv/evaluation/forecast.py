"""forecast_accuracy: what a study will get at each epsilon, from public numbers alone."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_DOWN, Context, Decimal
from typing import Any

import numpy as np
from sklearn.base import clone

from skdpsurv.classification.private_classifier import LabelledShape
from skdpsurv.data import PublicColumns
from skdpsurv.data.labels import stated_classes
from skdpsurv.data.shape import Shape
from skdpsurv.dp import checks
from skdpsurv.dp.guarantee import as_json
from skdpsurv.dp.references import phrase
from skdpsurv.evaluation.forecast_result import AccuracyForecast, by_study, summarised
from skdpsurv.evaluation.forecast_studies import Guess, simulated
from skdpsurv.inference.effects import term_changes
from skdpsurv.inference.row_moments import LESS_ON_MOMENTS, RowMoments
from skdpsurv.mechanisms.perturbation import Minimisers
from skdpsurv.release import Release
from skdpsurv.release.card import Card

#: Default number of columns, and default concordance without privacy.
DEFAULT_COLUMNS, DEFAULT_CONCORDANCE = 8, 0.7
#: With fewer records there is nothing to simulate, and with more it takes many minutes.
RECORDS = checks.integer(
    20,
    1_000_000,
    why="Accuracy depends almost only on n * epsilon: for more records, ask for 1,000,000 and "
    "epsilon * n / 1,000,000.",
)
#: A delta is suggested only if the noise falls to this share or less, or if that of the second
#: moments does to the share at which a fit with a delta changes its method.
LARGEST_SHARE = 0.9
#: A figure gains if it rises by this, or if a width falls to the share above.
LEAST_GAIN = 0.005
#: What a delta gains in figures: measures in words.
FIGURES = {
    "c_index": "C-index",
    "auc": "AUC",
    "finite_intervals": "share of finite intervals",
    "interval_width": "relative width of intervals",
}


def forecast_accuracy(
    estimator: Any,
    n_records: int,
    *,
    n_columns: int | None = None,
    columns: PublicColumns | None = None,
    shares: Mapping[str, Sequence[float]] | None = None,
    event_rate: float = 0.3,
    concordance: float | None = None,
    censoring: float = 0.5,
    baseline: str = "flat",
    entry: Any = None,
    epsilons: Sequence[float] = (0.1, 0.3, 1.0, 3.0),
    n_repeats: int = 20,
    level: float = 0.95,
    random_state: int | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> AccuracyForecast:
    """Simulate how accurate a private fit will be at each epsilon, before any budget is spent.

    Studies are simulated from public numbers. No private record is read, no budget is spent, and
    the result may be published.

    Parameters
    ----------
    estimator : {"survival", "logistic", "km", "weibull"} or estimator
        The estimator to be fitted. A word means ``DPDiscreteTimeSurvival``,
        ``DPLogisticRegression``, ``DPKaplanMeierFitter`` or ``DPWeibullFitter`` with default
        settings. Or pass one of these, not fitted, with the settings that it will have. Its epsilon
        and ``random_state`` are replaced, and its accountant is left alone. With
        ``inference_share``, standard errors are forecast, too. Groups of curves are taken to be of
        equal size.
    n_records : int
        Number of records, from 20 to 1,000,000. Accuracy depends almost only on n times epsilon:
        for more records, ask for fewer at a larger epsilon.
    n_columns : int or None, default=None
        Number of columns, each within [-1, 1]. None: 8. Not for curves.
    columns : PublicColumns or None, default=None
        Description of the columns, in place of their number. Raw rows are then simulated within
        these bounds and categories. None: those of the estimator, if it has some. Not for curves.
    shares : mapping of str to list of float, or None, default=None
        How records divide into the labels of some described columns, such as the arms of a trial:
        categories in their order, conditions as (no, yes). Other labels have shares that differ.
    event_rate : float, default=0.3
        Share of records with an event seen before the horizon; for a classifier, of positives.
    concordance : float or None, default=None
        C-index, or area under the ROC curve, of the best possible model, in [0.5, 0.99], for
        example from earlier studies. None: 0.7. Not for curves.
    censoring : float, default=0.5
        Share, among records without an event, whose follow-up ends before the horizon, uniformly
        in time, in [0, 1]. Not for classifiers.
    baseline : {"front-loaded", "flat", "rising"}, default="flat"
        Course of the hazard: Weibull shape 0.5, 1 or 2. Not for classifiers.
    entry : "uniform", list of float or None, default=None
        When people are first seen (late entry): evenly until the horizon, or with these shares in
        equal parts of it, evenly in each. ``event_rate`` and ``censoring`` are of these people.
        None: all are seen from 0. For estimators whose ``fit`` takes ``entry``.
    epsilons : list of float, default=(0.1, 0.3, 1.0, 3.0)
        Positive. A fit without privacy is simulated as well.
    n_repeats : int, default=20
        Number of simulated studies. Each has its own effects, records and noise.
    level : float, default=0.95
        Coverage of the intervals of curves.
    random_state : int or None, default=None
        Seed of the simulation. It voids no guarantee, as no private record is used.
    n_jobs : int or None, default=None
        Number of processes, as for joblib.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    AccuracyForecast

    Raises
    ------
    TypeError, ValueError
        If a parameter is not allowed, or no effects of such columns have the concordance.

    Notes
    -----
    Survival times have proportional hazards, and labels have linear log odds. Numbers are normal or
    log-normal within their bounds, and any two columns are slightly correlated. Effects are drawn
    anew in each study, with a strength that reaches ``concordance``. Fits are scored on 2,000 fresh
    records of each study by expectations, so that only effects, records and noise vary from study
    to study. Real columns have other shapes: docs/benchmarks/evaluation compares forecasts with
    private fits to real data.

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
    checks.optional(checks.integer(at_most=1000))("n_columns", n_columns)
    checks.list_of(checks.positive())("epsilons", epsilons)
    checks.number_in(0.0, 1.0, closed="neither")("level", level)
    checks.workers("n_jobs", n_jobs)
    checks.verbosity("verbose", verbose)
    checks.optional(checks.instance(Mapping, "shares of labels by column"))("shares", shares)
    best = DEFAULT_CONCORDANCE if concordance is None else concordance
    if random_state is None:  # what is compared has the same people
        random_state = int(np.random.SeedSequence().generate_state(1)[0])
    guess = Guess(event_rate, censoring, baseline, best, n_repeats, random_state, entry=entry)
    if not len(epsilons):
        raise ValueError("epsilons must hold at least one number.")
    model, headline = _checked(estimator)
    if entry is not None and not model._card.late_entry:
        raise ValueError(f"entry must be None: {type(model).__name__} knows of no late entries.")
    is_curve, n_features = headline == "largest_error", 0
    if is_curve:
        stated = {"n_columns": n_columns, "columns": columns, "concordance": concordance}
        if unused := [name for name, value in stated.items() if value is not None]:
            raise ValueError(f"{unused[0]} must be None for a curve, which has no covariates.")
    elif columns is None and model.columns is None:
        n_columns = n_features = int(n_columns or DEFAULT_COLUMNS)
    else:
        described = _described(model, columns, n_columns)
        model.set_params(columns=described)
        n_columns = len(described._names())
        n_features = len(model.as_fitted().columns.get_feature_names_out())
    model._check_parameters()
    options: Any = {"level": level, "n_jobs": n_jobs, "verbose": verbose}
    options |= {"guess": guess, "shares": shares or {}, "n_columns": n_columns or 0}
    runs = simulated(model, n_records, epsilons, **options)
    about: dict[str, Any] = {"estimator": type(model).__name__, "n_records": int(n_records)}
    about |= {"event_rate": float(event_rate), "n_repeats": len(runs)}
    if headline != "auc":
        about |= {"censoring": float(censoring), "baseline": baseline}
        about |= {} if entry is None else {"entry": as_json(guess.entry)}
    others = {"n_columns": n_columns, "concordance": float(best)}
    about |= {"level": float(level)} if is_curve else others
    table = summarised(runs, headline)
    public = model, int(n_records), n_features, [*runs[0]][:-1]
    gain, gaining = gain_of_delta(*public), [*_noise_left(*public)]
    if gaining:  # one of the epsilons, in the middle, says enough
        at = gaining[len(gaining) // 2]
        more = simulated(with_delta(model, n_records), n_records, [at], **options)
        told = [each.loc[at] for each in (table, summarised(more, headline))]
        both = [{FIGURES[k]: said[k] for k in FIGURES if k in said} for said in told]
        figures = gain_in_figures(both, f" at epsilon {at:g}")
        gain = figures and f"{gain} {figures}"
    ranges = {}
    if getattr(model, "inference_share", 0.0) and isinstance(model.columns, PublicColumns):
        own = model.as_fitted().columns
        ranges = {term: words for term, (words, _) in term_changes(own).items()}
    return AccuracyForecast(table, headline, about, gain, by_study(runs), ranges)


def _checked(estimator: Any) -> tuple[Any, str]:
    """Return a copy of the estimator without its ledger, and the measure that advice is about."""
    named = {w: one for w, one in Release.kinds.named("word").items() if one._card.measure}
    if isinstance(estimator, str):
        checks.choice(*named)("estimator", estimator)
        estimator = named[estimator](**named[estimator]._card.such_as)
    headline = getattr(type(estimator), "_card", Card()).measure
    if not headline:
        raise TypeError(
            f"estimator must be one of {', '.join(map(repr, named))}, or such an estimator, not "
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


def _described(model: Any, columns: Any, n_columns: int | None) -> PublicColumns:
    """Return the one description of columns that is given."""
    if n_columns is not None:
        raise ValueError("n_columns must be None where columns say how many there are.")
    if columns is not None and model.columns is not None:
        raise ValueError("columns must be None where the estimator has columns of its own.")
    found: PublicColumns = model.columns if columns is None else columns
    checks.instance(PublicColumns)("columns", found)
    found._check()
    return found


def small_delta(n_records: int) -> float:
    """Return 1/n², rounded down to one digit, as a fit warns of more than 1/n²."""
    square = Decimal(int(n_records) ** 2)
    return float(Context(prec=1, rounding=ROUND_DOWN).divide(Decimal(1), square))


def with_delta(estimator: Any, n_records: int) -> Any:
    """Return a copy of an estimator with a delta of 1/n²."""
    return copy.copy(estimator).set_params(delta=small_delta(n_records))


def gain_of_delta(
    estimator: Any, n_records: int, n_features: int, epsilons: Sequence[float]
) -> str:
    """Say how much a delta of 1/n² would reduce the noise of coefficients; "" if hardly."""
    left = _noise_left(estimator, n_records, n_features, epsilons)
    at = {e: "" if len(epsilons) == 1 else f" (epsilon {e:g})" for e in left}
    shares = ", ".join(f"{share}{at[epsilon]}" for epsilon, share in left.items())
    return phrase("gain_of_delta", delta=small_delta(n_records), shares=shares) if left else ""


def _noise_left(
    estimator: Any, n_records: int, n_features: int, epsilons: Sequence[float]
) -> dict[float, str]:
    """Return the noise that a delta of 1/n² leaves, in words, by epsilon where it gains."""
    if getattr(estimator, "delta", 1.0):
        return {}
    shape, found = planned_shape(estimator, n_records, n_features), {}
    for epsilon in filter(math.isfinite, epsilons if shape is not None else ()):
        deltas = 0.0, small_delta(n_records)
        before, after = (_noise(estimator, shape, epsilon, delta) for delta in deltas)
        if not max(before) < math.inf > max(after):
            continue
        share, moments = (a / (b or math.inf) for a, b in zip(after, before, strict=True))
        if before[1] and moments <= LESS_ON_MOMENTS:
            found[epsilon] = phrase("noise_with_moments", share=share, moments=moments)
        elif share <= LARGEST_SHARE:
            found[epsilon] = f"{share:.2f}"
    return found


def gain_in_figures(both: Sequence[Mapping[str, float]], at: str = "") -> str:
    """Say figures of the same studies without and with a delta; "" if none gains."""
    # A width that is not known is infinite.
    found = {what: [one.get(what, math.inf) for one in both] for each in both for what in each}
    pairs = found.items()
    up = (n < LARGEST_SHARE * o if "width" in w else n > o + LEAST_GAIN for w, (o, n) in pairs)
    figures = ", ".join(f"{what} {new:.3g} in place of {old:.3g}" for what, (old, new) in pairs)
    return phrase("gain_in_figures", at=at, figures=figures) if any(up) else ""


def planned_shape(estimator: Any, n_records: int, n_features: int) -> Any:
    """Return the public shape of records that nobody has yet; None if their classes are unknown."""
    if not hasattr(estimator, "classes"):
        return Shape(n_records, n_features)
    classes = stated_classes(estimator.classes)
    return None if classes is None else LabelledShape(n_records, n_features, classes)


def _noise(estimator: Any, shape: Shape, epsilon: float, delta: float) -> tuple[float, float]:
    """Return the noise of coefficients and of moments in a plan; infinite if there is none."""
    model = estimator.as_fitted()
    model.epsilon, model.delta = epsilon, delta
    model.prior = model.scales = model.accountant = None
    try:
        model._check_parameters()
        plan, _ = model._plan_and_guarantee(shape)
    except ValueError:
        return math.inf, math.inf
    minimisers = (leaf.noise for leaf in plan.leaves if isinstance(leaf, Minimisers))
    moments = (leaf.noise for leaf in plan.leaves if isinstance(leaf, RowMoments))
    return min(minimisers, default=math.inf), max(moments, default=0.0)
