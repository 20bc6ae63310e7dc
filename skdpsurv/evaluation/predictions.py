"""Predicted survival of private records, each by itself.

What is counted of a record must depend on that record alone. A model therefore sees one row at a
time, made of that record's own cells; a model that predictions may change is copied for each row.
A record without a prediction counts as predicted to survive every time with probability 1/2.

Of a cause of events, "survival" is 1 less its predicted incidence.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from skdpsurv.base.tabular import TabularEstimator, ask_alone
from skdpsurv.data import PublicBoundsScaler, PublicColumns
from skdpsurv.data.shape import require_names
from skdpsurv.data.single_rows import SingleRows
from skdpsurv.dp.silent_output import silent_output
from skdpsurv.dp.types import FloatArray
from skdpsurv.survival.curves.event_counts import Causes
from skdpsurv.survival.hazards.discrete_model import DiscreteTimeModel

#: Survival that is assumed for a record without a prediction.
UNKNOWN = 0.5
#: Types that predictions do not change.
UNCHANGED: frozenset[type] = frozenset({Normalizer, PublicBoundsScaler, StandardScaler})
#: Such types of optional packages; a model of one has loaded its module.
UNCHANGED_OF_OTHERS = (
    ("sksurv.ensemble", "ExtraSurvivalTrees"),
    ("sksurv.ensemble", "RandomSurvivalForest"),
    ("sksurv.linear_model", "CoxPHSurvivalAnalysis"),
)


def _steps(model: Any, *, subclasses: bool = True) -> list[Any]:
    """Return the steps of a pipeline, and of pipelines in it; or the model itself."""
    if type(model) is Pipeline or (subclasses and isinstance(model, Pipeline)):
        return [x for _, step in model.steps for x in _steps(step, subclasses=subclasses)]
    return [] if model is None or isinstance(model, str) else [model]


def unknown_steps(model: Any) -> list[str]:
    """Return the names of types, in a model, that predictions may change.

    A subclass of Pipeline counts as one of them.
    """
    kinds = dict.fromkeys(type(step) for step in _steps(model, subclasses=False))
    known = UNCHANGED | {
        getattr(sys.modules.get(module), name, None) for module, name in UNCHANGED_OF_OTHERS
    }
    return [
        kind.__name__
        for kind in kinds
        if kind not in known
        and not (kind.__module__.startswith("skdpsurv.") and issubclass(kind, DiscreteTimeModel))
    ]


def causes_of(model: Any) -> Causes:
    """Return the kinds of events that a model states."""
    last = _steps(model)[-1]
    return Causes.of({"causes": _labels(last), "censored": last.censored})


def _labels(model: Any) -> Any:
    """Return the causes of a model, or those that one will have which is planned."""
    return getattr(model, "causes_", getattr(model, "causes", None))


def check_predicts(model: Any, cause: Any) -> None:
    """Refuse what predicts no survival, or no incidence of a cause."""
    method = f"predict_{'survival' if cause is None else 'cumulative_incidence'}_function"
    named = model if cause is None else (_steps(model) or [model])[-1]
    if isinstance(model, type) or not hasattr(named, method):
        kind = named if isinstance(named, type) else type(named)
        raise TypeError(
            f"model must be fitted and have a method {method}, {kind.__name__} has none."
        )
    if cause is not None and (_labels(named) is None or not hasattr(named, "censored")):
        raise TypeError(
            "model must state the labels of all events, causes_, and that of none, censored."
        )


def check_last_time(model: Any, X: Any, horizon: float, cause: Any = None) -> None:
    """Refuse a model whose predicted functions end before the horizon.

    The end is public: the model's own times, or the function predicted for a row of zeros.
    """
    first = _steps(model)[0]
    if isinstance(first, PublicColumns) or getattr(first, "feature_names_in_", None) is not None:
        require_names(X)
    times = getattr(_steps(model)[-1], "unique_times_", None)
    if times is None:

        def last(copied: Any, _: int) -> Any:
            row: Any = np.zeros((1, X.shape[1]))
            row = pd.DataFrame(row, columns=X.columns) if isinstance(X, pd.DataFrame) else row
            return _functions(copied, row, cause)[0].domain[1]

        with silent_output():
            end = ask_alone(model, last, 1, ())[0]  # NaN if the model cannot read zeros
    else:
        end = np.max(times)
    if end < horizon:
        raise ValueError(
            f"max_time must be at most {end:g}, where the functions that model predicts end, got "
            f"{horizon:g}."
        )


def single_rows(model: Any, X: Any) -> SingleRows:
    """Return rows of one record each: raw if the model declares its columns, or else numbers."""
    first = _steps(model)[0]
    described = getattr(first, "columns_", None) is not None and isinstance(first, TabularEstimator)
    return SingleRows.of(X, raw=described or type(first) is PublicColumns)


def predicted_survival(
    model: Any,
    rows: SingleRows,
    times: FloatArray,
    entry: FloatArray | None = None,
    cause: Any = None,
) -> tuple[FloatArray, FloatArray | None]:
    """Return probabilities to survive public times, of shape (n_records, n_times), in [0, 1].

    With entries, the second result holds that to survive until a record's own.
    """

    def at(i: int) -> FloatArray:
        # An array of its own: a curve may compute in it, and move the times of all later records.
        return times.copy() if entry is None else np.append(times, entry[i])

    with silent_output():
        found = ask_alone(
            model,
            lambda copied, i: _curve(copied, rows[i], at(i), cause),
            len(rows),
            (times.size + (entry is not None),),
            copies=bool(unknown_steps(model)),
        )
    known = np.asarray(np.isfinite(found).all(axis=1, keepdims=True))
    found = np.where(known, np.clip(found, 0.0, 1.0), UNKNOWN)
    if entry is None:
        return found, None
    return found[:, :-1], np.where(known[:, 0] & (entry > 0.0), found[:, -1], 1.0)


def _functions(model: Any, row: Any, cause: Any) -> Any:
    """Return the survival functions of a row, or the incidences of a cause."""
    if cause is None:
        return model.predict_survival_function(row)
    *steps, last = _steps(model)
    for step in steps:  # pipelines do not have the method
        row = step.transform(row)
    return last.predict_cumulative_incidence_function(row, cause)


def _curve(model: Any, row: Any, times: FloatArray, cause: Any) -> FloatArray:
    """Return the survival of one row, from functions or from values at the model's times."""
    predicted = _functions(model, row, cause)
    if len(predicted) != 1:
        return np.empty(0)
    if callable(predicted[0]):
        found = np.asarray(predicted[0](times), dtype=np.float64)
    else:
        grid = np.asarray(_steps(model)[-1].unique_times_, dtype=np.float64)
        start = 1.0 if cause is None else 0.0
        values = np.append(start, np.asarray(predicted[0], dtype=np.float64))
        found = np.asarray(values[np.searchsorted(grid, times, side="right")])
    return found if cause is None else 1.0 - found
