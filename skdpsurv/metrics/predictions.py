"""Predicted survival of private records: each by itself, without failing, without a word.

What is counted of a record may depend on that record alone. A model is therefore shown one row at a
time; one of a type that is not known to be left unchanged by that is copied for each row. A record
for which there is no prediction counts as predicted to survive every time with probability 1/2.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import numpy as np
from joblib import parallel_config
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sksurv.ensemble import ExtraSurvivalTrees, RandomSurvivalForest
from sksurv.linear_model import CoxPHSurvivalAnalysis

from skdpsurv.preprocessing import PublicBoundsScaler
from skdpsurv.privacy import silence, silent_arithmetic
from skdpsurv.rows import length, take
from skdpsurv.survival import DPDiscreteTimeSurvival
from skdpsurv.types import FloatArray

__all__ = ["final_step", "predicted_survival", "refuse_short_reach", "unknown_steps"]

#: Predicted where a model predicts nothing, or what is no number.
UNKNOWN = 0.5
#: They are not changed by being asked.
UNCHANGED: frozenset[type] = frozenset(
    {
        CoxPHSurvivalAnalysis,
        DPDiscreteTimeSurvival,
        ExtraSurvivalTrees,
        Normalizer,
        PublicBoundsScaler,
        RandomSurvivalForest,
        StandardScaler,
    }
)


def _steps(model: Any) -> list[Any]:
    if isinstance(model, Pipeline):
        return [step for _, inner in model.steps for step in _steps(inner)]
    return [] if model in (None, "passthrough") else [model]


def final_step(model: Any) -> Any:
    """Return the last step of a pipeline, or the model."""
    return [None, *_steps(model)][-1]


def unknown_steps(model: Any) -> list[str]:
    """Return the names of types, in a model, that may be changed by being asked."""
    kinds = dict.fromkeys(type(step) for step in _steps(model))
    return [kind.__name__ for kind in kinds if kind not in UNCHANGED]


def refuse_short_reach(model: Any, X: Any, horizon: float) -> None:
    """Refuse a model whose survival functions end before the horizon.

    What is known of that is public: the model's own times, or the function that it predicts for
    zeros, in the columns of X.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : array-like of shape (n_samples, n_features)
        No value of it is looked at.
    horizon : float

    Raises
    ------
    ValueError
    """
    times = getattr(final_step(model), "unique_times_", None)
    end = np.inf if times is None else float(np.max(times))
    if times is None:
        with _unheard():
            try:
                made_up = np.zeros((1, X.shape[1]))
                row = type(X)(made_up, columns=X.columns) if hasattr(X, "iloc") else made_up
                function = copy.deepcopy(model).predict_survival_function(row)[0]
                end = float(function.domain[1]) if hasattr(function, "domain") else np.inf
            except Exception:  # zeros may mean nothing to it
                end = np.inf
    if end < horizon:
        raise ValueError(
            f"max_time must be at most {end:g}, where the survival functions of model end, got "
            f"{horizon:g}."
        )


def predicted_survival(model: Any, X: Any, times: FloatArray) -> FloatArray:
    """Return probabilities to survive public times, of shape (n_records, n_times), in [0, 1]."""
    known = not unknown_steps(model)
    found = np.full((length(X), times.size), UNKNOWN)
    with _unheard():
        for i in range(found.shape[0]):
            try:
                asked = model if known else copy.deepcopy(model)
                curve = _curve(asked, take(X, slice(i, i + 1)), times)
                if curve.shape == times.shape and np.isfinite(curve).all():
                    found[i] = np.clip(curve, 0.0, 1.0)
            except Exception:  # whatever it is, it may speak of a private record
                continue
    return found


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
    """No warning, no print, one thread."""
    with (
        silence(),
        silent_arithmetic(),
        redirect_stdout(io.StringIO()),
        redirect_stderr(io.StringIO()),
        parallel_config("sequential"),
    ):
        yield
