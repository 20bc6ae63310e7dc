r"""Combine what several models say of a row into one score a class.

Each model k votes :math:`2p_k - 1 \in [-1, 1]`, with :math:`p_k` the probability that it gives. A
vote costs nothing: its weights are public. A model on top, ``"logistic"``, must be trained on
records that the models below have not seen, and has the votes divided by :math:`\sqrt K` as its
columns, rows of norm at most 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from skdpsurv.checks import Check, Parameters, number_in
from skdpsurv.classification.group_fit import Coefficients
from skdpsurv.likelihoods.logistic import probability
from skdpsurv.types import FloatArray

__all__ = [
    "COMBINERS",
    "LogisticCombiner",
    "meta_rows",
    "stacked_scores",
    "votes",
    "weighted_scores",
]

COMBINERS = ("weighted_vote", "logistic", "vote")


class LogisticCombiner(Parameters):
    """A private model on top, of the votes: ``PrivateStackingClassifier(combiner=...)``.

    ``combiner="logistic"`` is this with its default.

    Parameters
    ----------
    holdout : float in (0, 1), default=0.5
        Share of the rows that train it, and none of the models below.

    Examples
    --------
    >>> from skdpsurv import LogisticCombiner, PrivateStackingClassifier
    >>> model = PrivateStackingClassifier(combiner=LogisticCombiner(holdout=0.3))
    >>> model.set_params(combiner__holdout=0.1).combiner
    LogisticCombiner(holdout=0.1)
    """

    _rules: ClassVar[dict[str, Check]] = {"holdout": number_in(0.0, 1.0, closed="neither")}

    def __init__(self, *, holdout: float = 0.5) -> None:
        self.holdout = holdout


def votes(
    models: Sequence[Coefficients],
    parts: Sequence[FloatArray],
    max_residual: float,
) -> FloatArray:
    """Return votes, of shape (n_models, n_samples, n_outputs).

    Parameters
    ----------
    models : sequence of Coefficients
    parts : sequence of ndarray of shape (n_samples, n_columns)
        What each model sees of the rows.
    max_residual : float
        Of the models' loss.
    """
    return np.array(
        [
            2.0 * probability(model.predictor(part), max_residual) - 1.0
            for model, part in zip(models, parts, strict=True)
        ]
    )


def meta_rows(cast: FloatArray) -> FloatArray:
    """Return what the model on top sees, of shape (n_outputs, n_samples, n_models)."""
    return np.ascontiguousarray(cast.transpose(2, 1, 0)) / np.sqrt(cast.shape[0])


def weighted_scores(cast: FloatArray, weights: Sequence[float]) -> FloatArray:
    """Return the weighted mean of the votes, of shape (n_samples, n_outputs)."""
    return np.asarray(np.einsum("kno,k->no", cast, np.asarray(weights)))


def stacked_scores(cast: FloatArray, top: Coefficients) -> FloatArray:
    """Return the predictors of the model on top, of shape (n_samples, n_outputs)."""
    return np.asarray(np.einsum("onk,ok->no", meta_rows(cast), top.coef) + top.intercept)
