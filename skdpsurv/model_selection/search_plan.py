"""The plan of a search: candidates are fitted to some records, and scored on others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, parallel_config
from joblib.parallel import BACKENDS, get_active_backend
from sklearn.base import clone

from skdpsurv.base.pipelines import one_of_each, private_step
from skdpsurv.base.prepared import PreparedFit
from skdpsurv.data.blocks import first
from skdpsurv.data.shape import has_one_each, length, take, take_parameters
from skdpsurv.dp import plan as plans
from skdpsurv.dp.guarantee import weakest_status
from skdpsurv.dp.input_errors import call_or_none, suppressed_float_errors
from skdpsurv.dp.noise import RandomSource, restored_streams, uniform_below
from skdpsurv.dp.privacy_cost import Concentrated, Price, Spend, epsilon_or_mu
from skdpsurv.dp.references import WORDS, reference
from skdpsurv.dp.thread_warnings import suppressed_warnings
from skdpsurv.dp.types import BoolArray, IndexArray, IntArray
from skdpsurv.hybrid import HybridMEstimator
from skdpsurv.hybrid.meta_estimator import (
    PrivateMetaEstimator,
    boolean_mask,
    prediction_assumptions,
    row_wise,
)
from skdpsurv.mechanisms.sums import LOSS, Sums
from skdpsurv.model_selection.candidates import Candidate
from skdpsurv.model_selection.losses import Loss, summed_losses, through_pipeline
from skdpsurv.model_selection.strategies import Repeat, RowParts, Share, Split

#: Backends of joblib without a scheduler that shows the number of tasks.
LOCAL = ("loky", "multiprocessing", "threading", "sequential")
ASSUMPTIONS = tuple(WORDS["assumptions"]["search"])


@dataclass(frozen=True)
class SearchRecords:
    """All records of a search, with a mask of the public ones.

    ``each`` names the parameters of ``fit`` that have an entry for each record.
    """

    X: Any
    y: Any
    parameters: Mapping[str, Any]
    mask: BoolArray
    each: tuple[str, ...] = ()

    @classmethod
    def split(cls, X: Any, y: Any, parameters: dict[str, Any], estimator: Any) -> SearchRecords:
        """Split public records from private ones, if the estimator takes such."""
        prefix, step = private_step(estimator)
        mask = np.zeros(length(X), dtype=bool)
        if isinstance(step, HybridMEstimator):
            mask = boolean_mask(parameters.get(f"{prefix}public"), mask.size)
        each = one_of_each(estimator)
        for name in each:
            if name in parameters and not has_one_each(parameters[name], mask.size):
                raise ValueError(f"{name} must have one entry for each record.")
        if isinstance(y, pd.DataFrame) and y.shape[1] == 1:  # a column of labels
            y = y.iloc[:, 0]
        return cls(X, y, parameters, mask, each)

    @property
    def private(self) -> IndexArray:
        """Indices of the private records."""
        return np.flatnonzero(~self.mask)

    def rows(self, part: IndexArray) -> IndexArray:
        """Return the rows of all public records and of some private ones."""
        return np.sort(np.append(np.flatnonzero(self.mask), self.private[part]))

    def training(self, part: IndexArray) -> tuple[Any, Any, dict[str, Any]]:
        """Return the arguments of a fit to some of the private records and all public ones."""
        rows = self.rows(part)
        parameters = take_parameters(self.parameters, rows, self.each)
        return take(self.X, rows), take(self.y, rows), parameters

    def held_out(self, part: IndexArray) -> tuple[Any, ...]:
        """Return X and y of some of the private records, and their entries if these are late."""
        rows = np.sort(self.private[part])
        # A list stays a list: in an array, one label would decide the type of all.
        found = take(self.X, rows), take(self.y, rows)
        return found if self.entry is None else (*found, take(self.entry, rows))

    @property
    def entry(self) -> Any:
        """Late entries, which losses of survival curves are since; None if there are none."""
        named = (name for name in self.each if name.split("__")[-1] == "entry")
        return next((self.parameters[name] for name in named if name in self.parameters), None)


@dataclass(frozen=True)
class Workers:
    """Settings of parallel tasks; the number of runs is public only if ``counted``."""

    n_jobs: int | None
    verbose: int
    counted: bool

    def results(self, tasks: Sequence[Any], words: str = "") -> list[Any]:
        """Return the results of joblib's tasks, with words for a progress bar."""
        local = nullcontext() if self.counted else _local_backend()
        with suppressed_warnings(), restored_streams(), local:
            # A verbose joblib would reveal the number of runs.
            found = Parallel(n_jobs=self.n_jobs, return_as="generator", verbose=0)(tasks)
            verbose = self.verbose if self.counted and words else 0
            return list(first(found, len(tasks), words, verbose))


@dataclass(frozen=True, eq=False)
class TrainedCandidates(plans.Mechanism):
    """Fits of candidates, each to its own part of the records or all to one part."""

    candidates: Sequence[Candidate]
    fits: Sequence[PreparedFit]
    spend: Spend
    price: Price
    workers: Workers

    name = "fits of candidates"
    law = "that of each fit"
    proof = ""  # of the choice

    def __post_init__(self) -> None:
        for fit in self.fits:
            _check_price(fit, self.price)

    def rests_on(self) -> list[type]:
        """Return all that the plans of fits rest on."""
        leaves = (leaf for fit in self.fits for leaf in plans.leaves(fit.plan.tree, possible=True))
        return [kind for leaf in leaves for kind in (type(leaf), *leaf.rests_on())]

    @property
    def status(self) -> str:
        """Weakest status of the guarantees of all fits."""
        return weakest_status([fit.guarantee.status for fit in self.fits])

    def run(self, context: plans.Context, records: Any, source: RandomSource) -> dict[str, Any]:
        """Return the models of the drawn candidates; None if a fit failed."""
        seeds = source.other("runs") if source.seeded else None
        fits = self._ready(context, records, lambda: new_seed(seeds))
        models = self.workers.results([delayed(fitted)(*fit) for fit in fits], "candidates")
        return {"model": models, "_seeds": seeds}

    def nested(self, context: plans.Context, records: Any) -> list[tuple[Any, tuple[Any, ...]]]:
        """Return the drawn candidates, each with its part of the records."""
        return self._ready(context, records, lambda: 0)

    def _ready(
        self, context: plans.Context, records: Any, seed: Callable[[], int | None]
    ) -> list[tuple[Any, tuple[Any, ...]]]:
        several = len(records) > 1
        return [
            (self.candidates[i].ready(self.spend, seed()), records[i if several else 0])
            for i in context["_drawn"]
        ]


@dataclass(frozen=True, kw_only=True)
class SummedLosses(plans.NoisySum):
    """The sum of losses of each model, on records that none was trained on."""

    loss: Loss
    workers: Workers

    name = "sums of losses"
    query = LOSS  # for each run, which has its own price
    theorem = reference("docs/proofs/private_search", "papernot-steinke", "liu-talwar")

    def exact_answer(self, context: plans.Context, records: Any) -> IntArray:
        """Return exact sums of losses, in units of the lattice."""
        return _losses(self.loss, context["model"], records, self.workers)

    def postprocess(self, context: plans.Context, noisy: IntArray) -> dict[str, Any]:
        """Return the noisy sums of losses."""
        return {"_losses": noisy.tolist()}


@dataclass(frozen=True, eq=False)
class LeastLoss(plans.Mechanism):
    """The candidate with the least sum of losses, by permute-and-flip at an epsilon, or a mu."""

    price: Price
    loss: Loss
    workers: Workers

    name = "a choice by permute-and-flip"
    law = "permute-and-flip"
    proof = reference("docs/proofs/private_search", "chaudhuri")

    def scales(self) -> list[float]:
        """Return the scale of the noise on the losses, in units of their sensitivity."""
        return [1.0 / epsilon_or_mu(self.price)]

    def drawn(self, context: plans.Context | None) -> dict[str, Any]:
        """Return law, sensitivity and epsilon of the choice."""
        epsilon = epsilon_or_mu(self.price)
        return {"law": self.law, "sensitivity": [LOSS.sensitivity], "epsilon": [epsilon]}

    def run(self, context: plans.Context, records: Any, source: RandomSource) -> dict[str, Any]:
        """Choose one of the models."""
        models = context["model"]
        totals = _losses(self.loss, models, records, self.workers).tolist()
        sums = Sums(len(models), LOSS.sensitivity)
        best = sums.least(totals, epsilon_or_mu(self.price), source)
        return {"best": best, "model": models[best]}

    def distances(self, context: plans.Context, one: Any, other: Any) -> plans.Distances:
        """Return the largest distance between sums; each counts by itself."""
        models = context["model"]
        sums = [_losses(self.loss, models, records, self.workers) for records in (one, other)]
        return [("losses", float(np.abs(sums[0] - sums[1]).max()), float(LOSS.sensitivity))]


@dataclass(frozen=True, eq=False)
class LastFit(TrainedCandidates):
    """A fit of one candidate to all records."""

    name = "a fit to all records"

    def run(
        self, context: plans.Context, records: SearchRecords, source: RandomSource
    ) -> dict[str, Any]:
        """Return the model; None if the fit failed."""
        (ready,) = self._ready(context, records, lambda: new_seed(context["_seeds"]))
        return {"model": fitted(*ready)}

    def _ready(
        self, context: plans.Context, records: SearchRecords, seed: Callable[[], int | None]
    ) -> Any:
        everything = records.X, records.y, dict(records.parameters)
        return super()._ready({"_drawn": (0,)}, [everything], seed)


def _check_price(fit: PreparedFit, price: Price) -> None:
    """Refuse a fit that costs more than a price."""
    guarantee = fit.guarantee
    if isinstance(price, Concentrated):
        if guarantee.rho is None or guarantee.rho > price.rho:
            raise ValueError("estimator must be private at the price that it is given.")
    elif guarantee.delta > 0.0 or guarantee.epsilon > price:
        raise ValueError(
            "estimator must be purely differentially private, with its epsilon: pass delta to the "
            "search."
        )


def _losses(loss: Loss, models: Sequence[Any], held_out: Any, workers: Workers) -> IntArray:
    """Return the sum of losses of each model, in units of the lattice."""
    tasks = [delayed(summed_losses)(loss, model, *held_out) for model in models]
    return np.array(workers.results(tasks), dtype=np.int64)


def _local_backend() -> AbstractContextManager[Any]:
    """Keep runs from schedulers such as Dask's, which count tasks and show them."""
    backend, _ = get_active_backend()
    local = tuple(BACKENDS[name] for name in LOCAL if name in BACKENDS)
    # Exact types, as other backends subclass these.
    return nullcontext() if type(backend) in local else parallel_config(LOCAL[0])


def new_seed(seeds: RandomSource | None) -> int | None:
    """Return the next seed of a reproducible search; None for entropy."""
    return None if seeds is None else uniform_below(2**63, seeds)


def fitted(estimator: Any, data: tuple[Any, Any, dict[str, Any]]) -> Any:
    """Return the fitted estimator; None if it failed, which must not show."""
    X, y, parameters = data
    # After the charge nothing but the release may depend on the records.
    with suppressed_warnings(), suppressed_float_errors():
        return call_or_none(lambda: estimator.fit(X, y, **parameters))


def unused_copy(model: Any, public: tuple[Any, Any]) -> Any:
    """Return an equal model that was never shown a held-out record.

    Copies of a foreign estimator may share state that predictions change. So a new one is fitted to
    the released weights of public records.
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
    """Public facts of a search: candidates, parts of the records, and planned fits.

    ``first`` is a fit of the first candidate to all records, for its messages. ``fits`` are those
    of each candidate to its part, and ``refits`` those to all records, with the budget ``last``.
    ``public`` holds the records that need no protection.
    """

    n_records: int
    candidates: Sequence[Candidate]
    loss: Loss
    strategy: Split | Repeat
    parts: RowParts
    first: PreparedFit
    fits: Sequence[PreparedFit]
    refits: Sequence[PreparedFit]
    public: tuple[Any, Any]
    last: Share | None

    @property
    def all_fits(self) -> Sequence[PreparedFit]:
        """Fits to parts, and to all records."""
        return (*self.fits, *self.refits)

    def split(self, records: SearchRecords, source: RandomSource) -> list[Any]:
        """Return the records of each training part, and those to score on."""
        training, scoring = self.parts
        return [[records.training(part) for part in training], records.held_out(scoring)]


def search_plan(shape: SearchShape, epsilon: float, workers: Workers) -> plans.Plan:
    """Return the plan of a search with a total epsilon."""
    strategy, m = shape.strategy, len(shape.candidates)
    trained = TrainedCandidates(
        shape.candidates, shape.fits, strategy.run_spend, strategy.price, workers
    )
    nodes: list[plans.Node]
    if isinstance(strategy, Repeat):
        losses = SummedLosses(price=strategy.price, loss=shape.loss, workers=workers)
        each = plans.Disjoint((trained, losses), shape.split)
        nodes = [plans.PrivateSelection(each, m, strategy.count, "_losses")]
    else:
        least = LeastLoss(strategy.price, shape.loss, workers)
        nodes = [plans.Disjoint((trained, least), shape.split)]
    again, inputs = "", _public_inputs(shape) | {"strategy": strategy.word}
    if shape.last is not None:
        spend, price, refit_inputs = shape.last
        again, inputs = ", then a fit to all records", inputs | refit_inputs
        pairs = zip(shape.candidates, shape.refits, strict=True)
        last = tuple(LastFit((c,), (fit,), spend, price, workers) for c, fit in pairs)
        nodes.append(plans.AdaptiveChoice(price, lambda found: last[found["best"]], last))
    words = "; ".join(dict.fromkeys(fit.guarantee.mechanism for fit in shape.all_fits))
    return plans.Plan(
        plans.Sequential(tuple(nodes)),
        epsilon,
        strategy.delta,
        inputs=inputs,
        assumed=_assumptions(shape),
        words=f"{strategy.mechanism}{again}: {words}",
        context={"_drawn": range(m)},
    )


def _public_inputs(shape: SearchShape) -> dict[str, Any]:
    inputs: dict[str, Any] = {
        "n_records": shape.n_records,
        "n_scored": shape.parts.scoring.size,
        "n_candidates": len(shape.candidates),
        **shape.strategy.public_inputs(),
    }
    if n_public := length(shape.public[0]):
        inputs["n_public"] = n_public
    for name in ("prior", "scales"):
        each: list[Any] = [fit.guarantee.public_inputs.get(name, ()) for fit in shape.all_fits]
        if any(each):
            inputs[name] = list(dict.fromkeys(entry for listed in each for entry in listed))
    return inputs


def _assumptions(shape: SearchShape) -> tuple[str, ...]:
    found = [*ASSUMPTIONS, *(a for fit in shape.all_fits for a in fit.guarantee.assumptions)]
    for candidate in shape.candidates:
        if isinstance(candidate.private, PrivateMetaEstimator):  # scores are predictions, too
            found += prediction_assumptions(candidate.private._estimator)
    return tuple(found)
