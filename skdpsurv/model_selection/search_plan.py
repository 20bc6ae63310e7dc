"""The plan of a search: who is fitted to which records, and what it costs together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skdpsurv.hybrid.meta_estimator import PrivateMetaEstimator
from skdpsurv.hybrid.predictions import prediction_assumptions
from skdpsurv.model_selection.candidates import Candidate, Fit
from skdpsurv.model_selection.losses import Loss
from skdpsurv.model_selection.strategies import Parts, Repeat, Split
from skdpsurv.model_selection.trials import (
    LastFit,
    LeastLoss,
    SearchRecords,
    SummedLosses,
    TrainedCandidates,
    Workers,
)
from skdpsurv.privacy import RandomSource
from skdpsurv.privacy.concentrated import Price
from skdpsurv.privacy.plan import Disjoint, Node, Plan, RandomlyMany, Sequential, Total
from skdpsurv.privacy.run_price import Spend

ASSUMPTIONS = (
    "the candidates, and everything that the guarantee of a single fit takes for public",
    "a record's loss depends on that record and on the model alone",
    "run time is not observed",
)


@dataclass(frozen=True, eq=False)
class SearchShape:
    """What is public of a search: who is fitted to which records, and what each fit promises.

    Parameters
    ----------
    sizes : tuple of int
        Numbers of private and of public records.
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
    """

    sizes: tuple[int, int]
    candidates: Sequence[Candidate]
    loss: Loss
    strategy: Split | Repeat
    parts: Parts
    first: Fit
    fits: Sequence[Fit]
    refits: Sequence[Fit]
    public: tuple[Any, Any]

    @property
    def n_records(self) -> int:
        """Number of private records."""
        return self.sizes[0]

    @property
    def all_fits(self) -> Sequence[Fit]:
        """Those of the search, and the last one."""
        return (*self.fits, *self.refits)

    def dealt(self, records: SearchRecords, source: RandomSource) -> list[Any]:
        """Return the records of each part to train on, and those to score on."""
        training, scoring = self.parts
        return [[records.training(part) for part in training], records.held_out(scoring)]


def search_plan(
    shape: SearchShape,
    epsilon: float,
    refit: tuple[Spend, Price] | None,
    workers: Workers,
    inputs: Mapping[str, Any],
) -> Plan:
    """Return the plan of a search.

    Parameters
    ----------
    shape : SearchShape
    epsilon : float
        Of the whole search.
    refit : (Spend, float or Concentrated) or None
        Of a last fit to all records: what its estimator is given to spend, and its price; None for
        none.
    workers : Workers
    inputs : mapping
        What else a guarantee states.
    """
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
    again = ""
    if refit is not None:
        again = ", then a fit to all records"
        spend, price = refit
        fits = zip(shape.candidates, shape.refits, strict=True)
        last = tuple(LastFit(candidate, fit, spend, price) for candidate, fit in fits)
        nodes.append(Total(price, lambda known: last[known["best"]], last))
    words = "; ".join(dict.fromkeys(fit.guarantee.mechanism for fit in shape.all_fits))
    return Plan(
        Sequential(tuple(nodes)),
        epsilon,
        strategy.delta,
        inputs={**_stated(shape), **inputs},
        assumed=_assumptions(shape),
        words=f"{strategy.mechanism}{again}: {words}",
        known={"_drawn": range(m)},
    )


def _stated(shape: SearchShape) -> dict[str, Any]:
    stated: dict[str, Any] = {
        "n_records": shape.sizes[0],
        "n_scored": shape.parts.scoring.size,
        "n_candidates": len(shape.candidates),
        **shape.strategy.public_inputs(),
    }
    if shape.sizes[1]:
        stated["n_public"] = shape.sizes[1]
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
