"""Predicted survival of private records: each by itself, without failing, without a word.

What is counted of a record may depend on that record alone. A model is therefore shown one row at a
time, made of that record's own cells; one of a type that is not known to be left unchanged by that
is copied for each row. A record for which there is no prediction counts as predicted to survive
every time with probability 1/2.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from skdpsurv.data import PublicBoundsScaler, PublicColumns
from skdpsurv.data.cells import LoneRows
from skdpsurv.dp.types import FloatArray
from skdpsurv.regression.tabular import TabularEstimator, ask_alone
from skdpsurv.survival.hazards.base import DiscreteTimeModel

#: Predicted where a model predicts nothing, or what is no number.
UNKNOWN = 0.5
#: They are not changed by being asked.
UNCHANGED: frozenset[type] = frozenset({Normalizer, PublicBoundsScaler, StandardScaler})
#: Nor are these, of packages that need not be there: a model of such a type has loaded its module.
UNCHANGED_OF_OTHERS = (
    ("sksurv.ensemble", "ExtraSurvivalTrees"),
    ("sksurv.ensemble", "RandomSurvivalForest"),
    ("sksurv.linear_model", "CoxPHSurvivalAnalysis"),
)


def _steps(model: Any, pipelines: Callable[[Any], bool]) -> list[Any]:
    if pipelines(model):
        return [step for _, inner in model.steps for step in _steps(inner, pipelines)]
    return [] if model is None or isinstance(model, str) else [model]


def final_step(model: Any) -> Any:
    """Return the last step of a pipeline, or the model."""
    return [None, *_steps(model, lambda one: isinstance(one, Pipeline))][-1]


def unknown_steps(model: Any) -> list[str]:
    """Return the names of types, in a model, that may be changed by being asked.

    A subclass of Pipeline is one: it may remember the row before.
    """
    kinds = dict.fromkeys(type(step) for step in _steps(model, lambda one: type(one) is Pipeline))
    others = {getattr(sys.modules.get(module), name, None) for module, name in UNCHANGED_OF_OTHERS}
    ours = {kind for kind in kinds if kind.__module__.startswith("skdpsurv.")}
    own = {kind for kind in ours if issubclass(kind, DiscreteTimeModel)}
    return [kind.__name__ for kind in kinds if kind not in UNCHANGED | others | own]


def refuse_short_reach(model: Any, X: Any, horizon: float) -> None:
    """Refuse a model whose survival functions end before the horizon.

    What is known of that is public: the model's own times, or the function that it predicts for
    zeros, in the columns of X.
    """
    times = getattr(final_step(model), "unique_times_", None)
    if times is None:

        def last(one: Any, _: int) -> Any:
            placeholder = np.zeros((1, X.shape[1]))
            row = type(X)(placeholder, columns=X.columns) if hasattr(X, "iloc") else placeholder
            return one.predict_survival_function(row)[0].domain[1]

        with _unheard():
            end = ask_alone(model, last, 1, ())[0]  # NaN where zeros mean nothing to it
    else:
        end = np.max(times)
    if end < horizon:
        raise ValueError(
            f"max_time must be at most {end:g}, where the survival functions of model end, got "
            f"{horizon:g}."
        )


def lone_rows(model: Any, X: Any) -> LoneRows:
    """Return rows such that what the model is shown of a record is made of its own cells.

    They are raw where the model reads columns by a public description, and numbers elsewhere.
    """
    first, *_ = _steps(model, lambda one: isinstance(one, Pipeline))
    described = getattr(first, "columns_", None) is not None and isinstance(first, TabularEstimator)
    return LoneRows.of(X, raw=described or type(first) is PublicColumns)


def predicted_survival(model: Any, rows: LoneRows, times: FloatArray) -> FloatArray:
    """Return probabilities to survive public times, of shape (n_records, n_times), in [0, 1]."""
    with _unheard():
        found = ask_alone(
            model,
            lambda one, i: _curve(one, rows[i], times),
            len(rows),
            times.shape,
            copies=bool(unknown_steps(model)),
        )
    known = np.isfinite(found).all(axis=1, keepdims=True)
    return np.where(known, np.clip(found, 0.0, 1.0), UNKNOWN)


def _curve(model: Any, row: Any, times: FloatArray) -> FloatArray:
    """Return the survival of one row at times: of functions, or of values at the model's times."""
    predicted = model.predict_survival_function(row)
    if len(predicted) != 1:
        return np.empty(0)
    if callable(predicted[0]):
        return np.asarray(predicted[0](times), dtype=np.float64)
    values = np.asarray(predicted[0], dtype=np.float64)
    grid = np.asarray(final_step(model).unique_times_, dtype=np.float64)
    place = np.searchsorted(grid, times, side="right") - 1
    return np.where(place < 0, 1.0, values[np.maximum(place, 0)])


@contextmanager
def _unheard() -> Iterator[None]:
    """No print."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        yield
