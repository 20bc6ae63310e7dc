"""Smooth figures of simulated studies: chance goes, and what lies between studies is filled in.

A Gaussian process has one length for each of five features of a study. The first is how little its
noise matters: in its direction figures change fast, and in others slowly. The last is whether all
of epsilon is for the fit, as where people times epsilon are below 200: there figures jump.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from skdpsurv.survival.hazards.fit import PILOT_RECORDS

#: Shares are no further from 0 and 1 on the scale of log odds.
EDGE = 0.02
#: Every third study tells the lengths.
PART = 3

Scale = tuple[Callable[[Any], Any], Callable[[Any], Any]]


def _to_odds(share: Any) -> Any:
    return logit(EDGE + (1.0 - 2.0 * EDGE) * share)


def _to_share(odds: Any) -> Any:
    return np.clip((expit(odds) - EDGE) / (1.0 - 2.0 * EDGE), 0.0, 1.0)


AS_IT_IS: Scale = (np.asarray, np.asarray)
LOGARITHM: Scale = (np.log, np.exp)
LOG_ODDS: Scale = (_to_odds, _to_share)


def features(studies: pd.DataFrame) -> Any:
    """Return how little noise matters, people, columns, events, and a jump (n_studies, 5)."""
    n, size = np.log(studies["people"]), np.log(studies["size"])
    little = np.log(studies["epsilon"] * studies["events"]) + n - 1.5 * size
    jump = studies["people"] * studies["epsilon"] >= PILOT_RECORDS
    return np.column_stack([little, n, size, logit(studies["events"]), jump])


def smoothed(known: pd.DataFrame, values: Any, at: pd.DataFrame, scale: Scale = AS_IT_IS) -> Any:
    """Return values at other studies.

    Parameters
    ----------
    known, at : DataFrame
        With columns people, size, events and epsilon.
    values : array-like of shape (n_known,)
        Noisy; NaN where there is none.
    scale : pair of functions
        To where values are smoothed, and back.
    """
    to, back = scale
    y = to(np.asarray(values, dtype=np.float64))
    measured = np.isfinite(y)
    X, y = features(known[measured]), y[measured]
    middle, unit = y.mean(), y.std() or 1.0
    y = (y - middle) / unit
    lengths = RBF([2.0, 4.0, 3.0, 3.0, 1.0], (0.3, 100.0))
    kernel = ConstantKernel(4.0, (0.01, 1e3)) * lengths + WhiteKernel(0.05, (1e-6, 1.0))
    with warnings.catch_warnings():  # what nothing depends on has the largest length
        warnings.simplefilter("ignore", ConvergenceWarning)
        few = GaussianProcessRegressor(kernel).fit(X[::PART], y[::PART])
    process = GaussianProcessRegressor(few.kernel_, optimizer=None).fit(X, y)
    return back(process.predict(features(at)) * unit + middle)
