r"""Choose one of several models by how well they predict private records.

The loss of a record is in [0, 1]: half the Brier score of a classifier's probabilities, or the
absolute error of a regression over the public range of the outcome, at most 1. A model is public by
now, so one private record that changes moves each sum of losses by at most 1, whatever the other
records are. (The published criterion compares with the fit to the private records, which moves as
a whole when one of them changes: errata 4.)

Sums are of multiples of :math:`2^{-30}` and exact. ``permute_and_flip`` spends epsilon once,
however many models there are; ``noisy_curve`` adds Laplace noise of scale :math:`k/\epsilon` to
each of the k sums, which may then be published (errata 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from skdpsurv.hybrid.mixed_space import places_of
from skdpsurv.hybrid.predictions import predicted_numbers, predicted_probabilities
from skdpsurv.mechanisms.sums import LOSS, Sums
from skdpsurv.privacy import RandomSource
from skdpsurv.types import FloatArray

__all__ = ["SELECTIONS", "record_losses", "select"]


SELECTIONS = ("permute_and_flip", "noisy_curve")


def record_losses(
    fitted: Any, X: FloatArray, y: NDArray[Any], low: float = 0.0, span: float = 1.0
) -> FloatArray:
    """Return the loss of each record, between 0 and 1.

    Parameters
    ----------
    fitted : estimator
        Public.
    X : ndarray of shape (n_records, n_columns)
        Private.
    y : ndarray of shape (n_records,)
        Private. A label that the model does not know is a label that it gave probability 0.
    low, span : float
        Public range of a numeric outcome.
    """
    if not is_classifier(fitted):
        if span <= 0.0:
            return np.zeros(X.shape[0])
        error = np.abs(np.clip(y, low, low + span) - predicted_numbers(fitted, X))
        return _within(error / span)
    likely = predicted_probabilities(fitted, X)
    place = places_of(y, fitted.classes_.tolist())
    padded = np.column_stack([likely, np.zeros(X.shape[0])])
    right = padded[np.arange(place.size), place]
    # |p - e_y|^2 / 2, with e_y outside the known classes for an unknown label.
    return _within(0.5 * (np.sum(likely**2, axis=1) - 2.0 * right + 1.0))


def _within(losses: FloatArray) -> FloatArray:
    """Return losses in [0, 1]; a model that predicts no number has lost."""
    return np.where(np.isnan(losses), 1.0, np.clip(losses, 0.0, 1.0))


def select(
    totals: Sequence[int], epsilon: float, selection: str, source: RandomSource
) -> tuple[int, FloatArray | None]:
    """Return the place of a model whose losses are small, and the noisy curve if there is one.

    Parameters
    ----------
    totals : sequence of int
        The exact sum of losses for each model, in units of the lattice. Private.
    epsilon : float
        For the choice; inf takes the best.
    selection : {"permute_and_flip", "noisy_curve"}
    source : RandomSource

    Returns
    -------
    place : int
    curve : ndarray of shape (n_models,) or None
        Released sums of losses.
    """
    query = Sums(len(totals), LOSS.sensitivity)
    if selection == "permute_and_flip":
        return query.least(totals, epsilon, source), None
    noisy = np.array([LOSS.value(total) for total in query.release(totals, epsilon, source)])
    return int(noisy.argmin()), noisy
