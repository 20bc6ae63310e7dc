"""What a search asks, and the plan of it: who is fitted to which records, at which price.

Candidates are fitted to some records, and their losses added up on others.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config
from joblib.parallel import BACKENDS, get_active_backend
from sklearn.base import clone

from skdpsurv.data.blocks import first
from skdpsurv.data.shape import has_one_each, length, take, take_parameters
from skdpsurv.dp import RandomSource, suppressed_float_errors, suppressed_warnings, uniform_below
from skdpsurv.dp.guarantee import weakest_status
from skdpsurv.dp.input_errors import call_or_none
from skdpsurv.dp.plan import (
    Disjoint,
    Distances,
    Known,
    Mechanism,
    Node,
    NoisySum,
    Plan,
    RandomlyMany,
    Sequential,
    Total,
)
from skdpsurv.dp.privacy_cost import Concentrated, Price, Spend, epsilon_or_mu
from skdpsurv.dp.references import reference
from skdpsurv.dp.types import BoolArray, IndexArray, IntArray
from skdpsurv.hybrid import HybridMEstimator
from skdpsurv.hybrid.meta_estimator import PrivateMetaEstimator, boolean_mask
from skdpsurv.hybrid.predictions import prediction_assumptions, row_wise
from skdpsurv.mechanisms.sums import LOSS, Sums
from skdpsurv.model_selection.candidates import Candidate, Fit, one_of_each, private_step
from skdpsurv.model_selection.losses import Loss, summed_losses, through_pipeline
from skdpsurv.model_selection.strategies import Parts, Repeat, Share, Split

#: Backends of joblib whose tasks nobody else counts.
LOCAL = ("loky", "multiprocessing", "threading", "sequential")
ASSUMPTIONS = (
    "the candidates, and everything that the guarantee of a single fit takes for public",
    "a record's loss depends on that record and on the model alone",
    "run time is not observed",
)


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
        # A list stays one: in an array, one label would decide the type of all.
        return take(self.X, rows), take(self.y, rows)


@dataclass(frozen=True)
class Workers:
    """Who runs tasks for each candidate.

    Parameters
    ----------
    n_jobs : int or None
    verbose : int
    counted : bool
        Whether the number of runs is public: else no progress bar shows it, and no scheduler.
    """

    n_jobs: int | None
    verbose: int
    counted: bool

    def results(self, tasks: Sequence[Any], words: str = "") -> list[Any]:
        """Return what tasks of joblib return, in their order; words are of a progress bar."""
        where = nullcontext() if self.counted else _on_this_machine()
        with suppressed_warnings(), _streams_as_before(), where:
            # joblib, too, whatever parallel_config says: it would tell how many runs there are.
            found = Parallel(n_jobs=self.n_jobs, return_as="generator", verbose=0)(tasks)
            verbose = self.verbose if self.counted and words else 0
            return list(first(found, len(tasks), words, verbose))


@dataclass(frozen=True, eq=False)
class TrainedCandidates(Mechanism):
    """Candidates that are fitted, each to its part of the records or all to one part."""

    candidates: Sequence[Candidate]
    fits: Sequence[Fit]
    spend: Spend
    price: Price
    workers: Workers

    name = "fits of candidates"
    proof = ""  # of the choice

    def __post_init__(self) -> None:
        for fit in self.fits:
            _require(fit, self.price)

    @property
    def status(self) -> str:  # type: ignore[override]
        """The weakest of all fits."""
        return weakest_status([fit.guarantee.status for fit in self.fits])

    def run(self, known: Known, records: Any, source: RandomSource) -> dict[str, Any]:
        """Return the models of those that were drawn; None for one that could not be fitted."""
        seeds = source.other("runs") if source.seeded else None
        tasks = [
            delayed(fitted)(*one) for one in self._ready(known, records, lambda: new_seed(seeds))
        ]
        return {"model": self.workers.results(tasks, "candidates"), "_seeds": seeds}

    def nested(self, known: Known, records: Any) -> list[tuple[Any, tuple[Any, ...]]]:
        """Return the candidates that were drawn, each with its part of the records."""
        return self._ready(known, records, lambda: 0)

    def _ready(
        self, known: Known, records: Any, seed: Callable[[], int | None]
    ) -> list[tuple[Any, tuple[Any, ...]]]:
        return [
            (
                self.candidates[place].ready(self.spend, seed()),
                records[place if len(records) > 1 else 0],
            )
            for place in known["_drawn"]
        ]


@dataclass(frozen=True, kw_only=True)
class SummedLosses(NoisySum):
    """The sum of losses of each model that was trained, on records that none was trained on."""

    loss: Loss
    workers: Workers

    name = "sums of losses"
    asked = LOSS  # of each run by itself, which has a price of its own
    theorem = reference("docs/proofs/private_search", "papernot-steinke", "liu-talwar")

    def ask(self, known: Known, records: Any) -> IntArray:
        """Return the sums, in units of the lattice."""
        return _losses(self.loss, known["model"], records, self.workers)

    def after(self, known: Known, noisy: IntArray) -> dict[str, Any]:
        """Return the noisy sums."""
        return {"_losses": noisy.tolist()}


@dataclass(frozen=True, eq=False)
class LeastLoss(Mechanism):
    """The candidate with the least sum of losses, by permute-and-flip at an epsilon, or a mu."""

    price: Price
    loss: Loss
    workers: Workers

    name = "a choice by permute-and-flip"
    proof = reference("docs/proofs/private_search", "chaudhuri")

    def scales(self) -> list[float]:
        """Return the inverse of the price."""
        return [1.0 / epsilon_or_mu(self.price)]

    def run(self, known: Known, records: Any, source: RandomSource) -> dict[str, Any]:
        """Choose one of the models."""
        models = known["model"]
        totals = _losses(self.loss, models, records, self.workers).tolist()
        sums = Sums(len(models), LOSS.sensitivity)
        best = sums.least(totals, epsilon_or_mu(self.price), source)
        return {"best": best, "model": models[best]}

    def distances(self, known: Known, one: Any, other: Any) -> Distances:
        """Return how far the sums are apart, of which each counts by itself."""
        models = known["model"]
        first, second = (_losses(self.loss, models, r, self.workers) for r in (one, other))
        return [("losses", float(np.abs(first - second).max()), float(LOSS.sensitivity))]


@dataclass(frozen=True, eq=False)
class LastFit(TrainedCandidates):
    """One candidate that is fitted to all records."""

    name = "a fit to all records"

    def run(self, known: Known, records: SearchRecords, source: RandomSource) -> dict[str, Any]:
        """Return the model; None if it could not be fitted."""
        (ready,) = self._ready(known, records, lambda: new_seed(known["_seeds"]))
        return {"model": fitted(*ready)}

    def _ready(self, known: Known, records: SearchRecords, seed: Callable[[], int | None]) -> Any:
        everything = records.X, records.y, dict(records.parameters)
        return super()._ready({"_drawn": (0,)}, [everything], seed)


def _require(fit: Fit, price: Price) -> None:
    """Refuse a fit that promises less than a price."""
    promised = fit.guarantee
    if isinstance(price, Concentrated):
        if promised.rho is None or promised.rho > price.rho:
            raise ValueError("estimator must be private at the price that it is given.")
    elif promised.delta > 0.0 or promised.epsilon > price:
        raise ValueError(
            "estimator must be purely differentially private, with its epsilon: a delta is "
            "given to the search."
        )


def _losses(loss: Loss, models: Sequence[Any], held_out: Any, workers: Workers) -> IntArray:
    """Return the sum of losses of each model, in units of the lattice."""
    tasks = [delayed(summed_losses)(loss, model, *held_out) for model in models]
    return np.array(workers.results(tasks), dtype=np.int64)


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
    with suppressed_warnings(), suppressed_float_errors():
        return call_or_none(lambda: estimator.fit(X, y, **parameters))


def never_asked(model: Any, public: tuple[Any, Any]) -> Any:
    """Return what predicts as the model does, and was never shown a held-out record.

    A copy was asked, but an estimator of somebody else's may share what it remembers with its
    copies: a new one is fitted to the released weights, of public records alone.
    """
    prefix, step = private_step(model) if model is not None else ("", None)
    if not isinstance(step, PrivateMetaEstimator) or type(step.estimator_) in row_wise():
        return model
    arguments = {"estimator": clone(step.estimator)}
    if isinstance(step, HybridMEstimator):
        X, y = public
        arguments |= {"X": through_pipeline(model, X)[1], "y": y}
    with suppressed_warnings():
        again = type(step).from_release(step.release_, **arguments)
    again.set_params(**step.get_params(deep=False))
    return model.set_params(**{prefix.removesuffix("__"): again}) if prefix else again


@dataclass(frozen=True, eq=False)
class SearchShape:
    """What is public of a search: who is fitted to which records, and what each fit promises.

    Parameters
    ----------
    n_records : int
        Number of private records.
    candidates : sequence of Candidate
    loss : callable
    strategy : Split or Repeat
    parts : Parts
    first : Fit
        The first candidate's, to all records: what it refuses is refused in its words.
    fits : sequence of Fit
        Each candidate's, to its part.
    refits : sequence of Fit
        Each candidate's, to all records, if there is to be such a fit.
    public : (X, y)
        The records that need no protection.
    last : Share or None
        Of the fit to all records.
    """

    n_records: int
    candidates: Sequence[Candidate]
    loss: Loss
    strategy: Split | Repeat
    parts: Parts
    first: Fit
    fits: Sequence[Fit]
    refits: Sequence[Fit]
    public: tuple[Any, Any]
    last: Share | None

    @property
    def all_fits(self) -> Sequence[Fit]:
        """Those of the search, and the last one."""
        return (*self.fits, *self.refits)

    def dealt(self, records: SearchRecords, source: RandomSource) -> list[Any]:
        """Return the records of each part to train on, and those to score on."""
        training, scoring = self.parts
        return [[records.training(part) for part in training], records.held_out(scoring)]


def search_plan(shape: SearchShape, epsilon: float, workers: Workers) -> Plan:
    """Return the plan of a search that costs an epsilon in all."""
    strategy, m = shape.strategy, len(shape.candidates)
    trained = TrainedCandidates(
        shape.candidates, shape.fits, strategy.run_spend, strategy.price, workers
    )
    nodes: list[Node]
    if isinstance(strategy, Repeat):
        losses = SummedLosses(price=strategy.price, loss=shape.loss, workers=workers)
        each = Disjoint((trained, losses), shape.dealt)
        nodes = [RandomlyMany(each, m, strategy.count, "_losses")]
    else:
        least = LeastLoss(strategy.price, shape.loss, workers)
        nodes = [Disjoint((trained, least), shape.dealt)]
    again, stated = "", {"strategy": strategy.word}
    if shape.last is not None:
        again, stated = ", then a fit to all records", stated | shape.last.stated
        spend, price = shape.last[:2]
        fits = zip(shape.candidates, shape.refits, strict=True)
        last = tuple(LastFit((one,), (fit,), spend, price, workers) for one, fit in fits)
        nodes.append(Total(price, lambda known: last[known["best"]], last))
    words = "; ".join(dict.fromkeys(fit.guarantee.mechanism for fit in shape.all_fits))
    return Plan(
        Sequential(tuple(nodes)),
        epsilon,
        strategy.delta,
        inputs=_public_inputs(shape) | stated,
        assumed=_assumptions(shape),
        words=f"{strategy.mechanism}{again}: {words}",
        known={"_drawn": range(m)},
    )


def _public_inputs(shape: SearchShape) -> dict[str, Any]:
    stated: dict[str, Any] = {
        "n_records": shape.n_records,
        "n_scored": shape.parts.scoring.size,
        "n_candidates": len(shape.candidates),
        **shape.strategy.public_inputs(),
    }
    if n_public := length(shape.public[0]):
        stated["n_public"] = n_public
    behind: list[Any] = [fit.guarantee.public_inputs.get("prior", ()) for fit in shape.all_fits]
    if any(behind):
        stated["prior"] = list(dict.fromkeys(each for one in behind for each in one))
    return stated


def _assumptions(shape: SearchShape) -> tuple[str, ...]:
    found = [*ASSUMPTIONS, *(a for fit in shape.all_fits for a in fit.guarantee.assumptions)]
    for candidate in shape.candidates:
        if isinstance(candidate.private, PrivateMetaEstimator):  # scores are predictions, too
            found += prediction_assumptions(candidate.private._estimator)
    return tuple(found)
