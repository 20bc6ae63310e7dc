"""A run: train a candidate on one part of the records, add up its losses on another."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config
from joblib.parallel import BACKENDS, get_active_backend
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skdpsurv.hybrid import HybridMEstimator
from skdpsurv.hybrid.masks import boolean_mask
from skdpsurv.hybrid.meta_estimator import PrivateMetaEstimator
from skdpsurv.hybrid.predictions import ROW_WISE
from skdpsurv.model_selection.candidates import Candidate, one_of_each, private_step
from skdpsurv.model_selection.losses import Loss, through_pipeline
from skdpsurv.model_selection.run_price import Spend
from skdpsurv.model_selection.strategies import Parts
from skdpsurv.model_selection.summed_losses import summed_losses
from skdpsurv.preprocessing.raw_table import is_frame
from skdpsurv.privacy import (
    RandomSource,
    silence,
    silent_arithmetic,
    uniform_below,
)
from skdpsurv.privacy.silence import attempted
from skdpsurv.progress import first
from skdpsurv.rows import has_one_each, length, take, take_parameters
from skdpsurv.types import BoolArray, IndexArray

__all__ = ["SearchRecords", "Trials", "fitted", "never_asked", "new_seed"]


#: Backends of joblib whose tasks nobody else counts.
LOCAL = ("loky", "multiprocessing", "threading", "sequential")


@dataclass(frozen=True)
class SearchRecords:
    """All records of a search; private, but for those that ``public`` names.

    Parameters
    ----------
    X, y : array-like
    parameters : mapping
        Of ``fit``.
    public, private : ndarray of int
        Places of the records that need no protection, and of those that do.
    each : tuple of str
        Names of the parameters that have an entry for each record.
    """

    X: Any
    y: Any
    parameters: Mapping[str, Any]
    public: IndexArray
    private: IndexArray
    each: tuple[str, ...] = ()

    @classmethod
    def sorted_out(
        cls, X: Any, y: Any, parameters: dict[str, Any], estimator: Any
    ) -> SearchRecords:
        """Tell public records from private ones, where the estimator knows of any."""
        prefix, step = private_step(estimator)
        mask = np.zeros(length(X), dtype=bool)
        if isinstance(step, HybridMEstimator):
            mask = boolean_mask(parameters.get(f"{prefix}public"), mask.size)
        each = one_of_each(estimator)
        for name in each:
            if name in parameters and not has_one_each(parameters[name], mask.size):
                raise ValueError(f"{name} must have one entry for each record.")
        if hasattr(y, "iloc") and y.ndim == 2 and y.shape[1] == 1:  # a column of labels
            y = y.iloc[:, 0]
        return cls(X, y, parameters, np.flatnonzero(mask), np.flatnonzero(~mask), each)

    @property
    def mask(self) -> BoolArray:
        """Which of all records are public."""
        mask = np.zeros(self.public.size + self.private.size, dtype=bool)
        mask[self.public] = True
        return mask

    def rows(self, places: IndexArray) -> IndexArray:
        """Return the rows of all public records and of some private ones."""
        return np.sort(np.concatenate([self.public, self.private[places]]))

    def training(self, places: IndexArray) -> tuple[Any, Any, dict[str, Any]]:
        """Return the arguments of a fit to some of the private records and all public ones."""
        rows = self.rows(places)
        parameters = take_parameters(self.parameters, rows, self.each)
        return take(self.X, rows), take(self.y, rows), parameters

    def held_out(self, places: IndexArray) -> tuple[Any, Any]:
        """Return some of the private records."""
        rows = np.sort(self.private[places])
        y = take(self.y, rows)
        if y is not None and not hasattr(y, "dtype") and not is_frame(y):
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
    records : SearchRecords
    parts : Parts
    loss : callable
    spend : Spend
        Of each training.
    seeds : RandomSource or None
        Where the runs of a reproducible search have their seeds from.
    n_jobs : int or None
    verbose : int
    counted : bool
        Whether the number of runs is public: else no progress bar shows it, and no scheduler.
    """

    candidates: Sequence[Candidate]
    records: SearchRecords
    parts: Parts
    loss: Loss
    spend: Spend
    seeds: RandomSource | None
    n_jobs: int | None
    verbose: int
    counted: bool

    def __call__(self, places: Sequence[int]) -> list[tuple[Any, int]]:
        """Return a model (None if it failed) and the sum of its losses for each place."""
        held_out = self.records.held_out(self.parts.scoring)
        cut: dict[int, Any] = {}
        for part in self.parts.training:
            if id(part) not in cut:
                cut[id(part)] = self.records.training(part)
        where = nullcontext() if self.counted else _on_this_machine()
        with silence(), _streams_as_before(), where:
            # joblib, too, whatever parallel_config says: it would tell how many runs there are.
            results = Parallel(n_jobs=self.n_jobs, return_as="generator", verbose=0)(
                delayed(_trial)(
                    self.candidates[place].ready(self.spend, new_seed(self.seeds)),
                    cut[id(self.parts.training[place])],
                    held_out,
                    self.loss,
                )
                for place in places
            )
            verbose = self.verbose if self.counted else 0
            return list(first(results, len(places), "candidates", verbose))


def _on_this_machine() -> AbstractContextManager[Any]:
    """Keep runs from schedulers elsewhere, such as Dask's, which count tasks and show them."""
    backend, _ = get_active_backend()
    local = tuple(BACKENDS[name] for name in LOCAL if name in BACKENDS)
    # Not subclasses of these, as others build on them.
    return nullcontext() if type(backend) in local else parallel_config(LOCAL[0])


@contextmanager
def _streams_as_before() -> Iterator[None]:
    """Leave the process's own random streams as they were: how far they got tells how many fits."""
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)


def new_seed(seeds: RandomSource | None) -> int | None:
    """Return the next seed of a reproducible search; None for entropy."""
    return None if seeds is None else uniform_below(2**63, seeds)


def fitted(estimator: Any, data: tuple[Any, Any, dict[str, Any]]) -> Any:
    """Return the estimator, fitted; None if it failed, which must not show."""
    X, y, parameters = data
    # Past the charge nothing but the release may depend on the records.
    with silence(), silent_arithmetic():
        return attempted(lambda: estimator.fit(X, y, **parameters))


def never_asked(model: Any, records: SearchRecords) -> Any:
    """Return what predicts as the model does, and was never shown a held-out record.

    A copy was asked, but an estimator of somebody else's may share what it remembers with its
    copies: a new one is fitted to the released weights.
    """
    _, step = private_step(model) if model is not None else ("", None)
    if not isinstance(step, PrivateMetaEstimator) or type(step.estimator_) in ROW_WISE:
        return model
    arguments = {"estimator": clone(step.estimator)}
    if isinstance(step, HybridMEstimator):
        X, y, _ = records.training(np.arange(0))
        arguments |= {"X": through_pipeline(model, X)[1], "y": y}
    with silence():
        again = type(step).from_release(step.release_, **arguments)
    again.set_params(**step.get_params(deep=False))
    if model is step:
        return again
    last = model
    while isinstance(last.steps[-1][1], Pipeline):
        last = last.steps[-1][1]
    last.steps[-1] = last.steps[-1][0], again
    return model


def _trial(estimator: Any, data: Any, held_out: tuple[Any, Any], loss: Loss) -> tuple[Any, int]:
    model = fitted(estimator, data)
    X, y = held_out
    return model, summed_losses(loss, model, X, y)
