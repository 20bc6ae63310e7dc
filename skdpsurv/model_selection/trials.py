"""A run: train a candidate on one part of the records, add up its losses on another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from skdpsurv.hybrid import HybridMEstimator
from skdpsurv.hybrid.masks import boolean_mask
from skdpsurv.model_selection.candidates import Candidate, private_step
from skdpsurv.model_selection.losses import Loss
from skdpsurv.model_selection.rows import length, take, take_parameters
from skdpsurv.model_selection.strategies import Parts
from skdpsurv.model_selection.summed_losses import summed_losses
from skdpsurv.privacy import RandomSource, silence, silent_arithmetic, uniform_below
from skdpsurv.progress import first

__all__ = ["Records", "Trials", "fitted", "new_seed"]

IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class Records:
    """All records of a search; private, but for those that ``public`` names.

    Parameters
    ----------
    X, y : array-like
    parameters : mapping
        Of ``fit``.
    public, private : ndarray of int
        Places of the records that need no protection, and of those that do.
    """

    X: Any
    y: Any
    parameters: Mapping[str, Any]
    public: IntArray
    private: IntArray

    @classmethod
    def sorted_out(cls, X: Any, y: Any, parameters: dict[str, Any], estimator: Any) -> Records:
        """Tell public records from private ones, where the estimator knows of any."""
        prefix, step = private_step(estimator)
        mask = np.zeros(length(X), dtype=bool)
        if isinstance(step, HybridMEstimator):
            mask = boolean_mask(parameters.get(f"{prefix}public"), mask.size)
        if hasattr(y, "iloc") and y.ndim == 2:  # one column of labels, or a fit would have refused
            y = y.iloc[:, 0]
        return cls(X, y, parameters, np.flatnonzero(mask), np.flatnonzero(~mask))

    def training(self, places: IntArray) -> tuple[Any, Any, dict[str, Any]]:
        """Return the arguments of a fit to some of the private records and all public ones."""
        rows = np.sort(np.concatenate([self.public, self.private[places]]))
        parameters = take_parameters(dict(self.parameters), rows, length(self.X))
        return take(self.X, rows), take(self.y, rows), parameters

    def held_out(self, places: IntArray) -> tuple[Any, Any]:
        """Return some of the private records."""
        rows = np.sort(self.private[places])
        y = take(self.y, rows)
        if y is not None and not hasattr(y, "dtype"):
            # One label must not decide the type of all.
            y, labels = np.empty(rows.size, dtype=object), y
            y[:] = labels
        return take(self.X, rows), y


@dataclass(frozen=True)
class Trials:
    """Runs of candidates, as a strategy asks for them.

    Parameters
    ----------
    candidates : sequence of Candidate
    records : Records
    parts : Parts
    loss : callable
    epsilon : float
        Of each training.
    seeds : RandomSource or None
        Where the runs of a reproducible search have their seeds from.
    n_jobs : int or None
    verbose : int
        0 unless the number of runs is public: a progress bar shows it.
    """

    candidates: Sequence[Candidate]
    records: Records
    parts: Parts
    loss: Loss
    epsilon: float
    seeds: RandomSource | None
    n_jobs: int | None
    verbose: int

    def __call__(self, places: Sequence[int]) -> list[tuple[Any, int]]:
        """Return a model (None if it failed) and the sum of its losses for each place."""
        held_out = self.records.held_out(self.parts.scoring)
        cut: dict[int, Any] = {}
        for part in self.parts.training:
            if id(part) not in cut:
                cut[id(part)] = self.records.training(part)
        with silence():
            # joblib, too, whatever parallel_config says: it would tell how many runs there are.
            results = Parallel(n_jobs=self.n_jobs, return_as="generator", verbose=0)(
                delayed(_trial)(
                    self.candidates[place].ready(self.epsilon, new_seed(self.seeds)),
                    cut[id(self.parts.training[place])],
                    held_out,
                    self.loss,
                )
                for place in places
            )
            return list(first(results, len(places), "candidates", self.verbose))


def new_seed(seeds: RandomSource | None) -> int | None:
    """Return the next seed of a reproducible search; None for entropy."""
    return None if seeds is None else uniform_below(2**63, seeds)


def fitted(estimator: Any, data: tuple[Any, Any, dict[str, Any]]) -> Any:
    """Return the estimator, fitted; None if it failed, which must not show."""
    X, y, parameters = data
    # Past the charge nothing but the release may depend on the records.
    with silence(), silent_arithmetic():
        try:
            return estimator.fit(X, y, **parameters)
        except Exception:  # whatever it is, it may speak of a private record
            return None


def _trial(estimator: Any, data: Any, held_out: tuple[Any, Any], loss: Loss) -> tuple[Any, int]:
    model = fitted(estimator, data)
    X, y = held_out
    return model, summed_losses(loss, model, X, y)
