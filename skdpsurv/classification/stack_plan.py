r"""The plan of a stack: which rows and columns train which model, and what each may spend.

Rows are dealt out by a random order that knows their number and nothing else. Rows of the models
below and rows of the model on top are disjoint, and so are the rows of models on parts of the rows:
each record is in one of these sets whatever its values are, so each set may be used at the full
epsilon (docs/proofs/stacking).

Each model k votes :math:`2p_k - 1 \in [-1, 1]`, with :math:`p_k` the probability that it gives. A
vote costs nothing: its weights are public. A model on top, ``"logistic"``, must be trained on
records that the models below have not seen, and has the votes divided by :math:`\sqrt K` as its
columns, rows of norm at most 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np

from skdpsurv.classification.budgets import GroupSetting
from skdpsurv.classification.group_fit import Coefficients, FittedGroups, GroupFit, SignedRows
from skdpsurv.data.blocks import Blocks, same_records
from skdpsurv.dp import RandomSource
from skdpsurv.dp.checks import Check, Parameters, number_in
from skdpsurv.dp.plan import Disjoint, Distances, Known, Node
from skdpsurv.dp.privacy_cost import Cost, disjoint_cost
from skdpsurv.dp.references import reference
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.likelihoods.linear import probability
from skdpsurv.mechanisms.perturbation import Perturbed, Problem

PROOF = reference("docs/proofs/stacking", "guo", "chaudhuri")
COMBINERS = ("weighted_vote", "logistic", "vote")

Rows = Blocks[SignedRows]


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
    models: Sequence[Coefficients], X: FloatArray, groups: Sequence[Sequence[int]], cap: float
) -> FloatArray:
    """Return votes, of shape (n_models, n_samples, n_outputs), of models of groups of columns."""
    pairs = zip(models, groups, strict=True)
    return np.array([2.0 * probability(one.predictor(X[:, g]), cap) - 1.0 for one, g in pairs])


def meta_rows(cast: FloatArray) -> FloatArray:
    """Return what the model on top sees, of shape (n_outputs, n_samples, n_models)."""
    return np.ascontiguousarray(cast.transpose(2, 1, 0)) / np.sqrt(cast.shape[0])


def weighted_scores(cast: FloatArray, weights: Sequence[float]) -> FloatArray:
    """Return the weighted mean of the votes, of shape (n_samples, n_outputs)."""
    return np.asarray(np.einsum("kno,k->no", cast, np.asarray(weights)))


def stacked_scores(cast: FloatArray, top: Coefficients) -> FloatArray:
    """Return the predictors of the model on top, of shape (n_samples, n_outputs)."""
    return np.asarray(np.einsum("onk,ok->no", meta_rows(cast), top.coef) + top.intercept)


@dataclass(frozen=True, eq=False)
class ModelsBelow(FittedGroups):
    """Models that vote: of groups of columns, or of parts of the rows that share no record.

    Parameters
    ----------
    fits : tuple of GroupFit
        One for all groups of columns, or one for each part of the rows.
    name : str
    n_jobs : int or None
        As for :class:`joblib.Parallel`.
    """

    fits: tuple[GroupFit, ...]
    name: str
    n_jobs: int | None = None

    pure = PROOF

    @property
    def cost(self) -> Cost:
        """What models of one part cost: a record is in no other."""
        return disjoint_cost(fit.cost for fit in self.fits)

    def stated(self) -> dict[str, Any]:
        """Return how epsilon is spent on the first part, as on all."""
        n_low = sum(fit.n_records for fit in self.fits)
        return {"n_low_level": n_low, **self.fits[0].public_inputs()}

    def problems(self, known: Known, records: Rows | list[Rows]) -> list[Problem]:
        """Return the minimisations of each part, one part after another."""
        parts = records if isinstance(records, list) else [records]
        dealt = zip(self.fits, parts, strict=True)
        return [problem for fit, part in dealt for problem in fit.problems(part)]

    def distances(self, known: Known, one: Any, other: Any) -> Distances:
        """Return how far derivatives are apart, and of how many parts: each record is in one."""
        found = super().distances(known, one, other)
        if not isinstance(one, list):
            return found
        moved = sum(not same_records(a, b) for a, b in zip(one, other, strict=True))
        return [*found, ("parts that share a record", float(moved), 1.0)]

    def after(self, known: Known, found: list[Perturbed]) -> dict[str, Any]:
        """Return the models, and the cap that they share."""
        minimisers = iter([each.coef for each in found])
        models = [model for fit in self.fits for model in fit.coefficients(minimisers)]
        return {
            **{f"low_level_coef_{k}": model.coef for k, model in enumerate(models)},
            "low_level_intercept": [model.intercept for model in models],
            "max_residual": [self.fits[0].max_residual],
            "_models": models,
        }


@dataclass(frozen=True, eq=False)
class TopModel(FittedGroups):
    """A model of the votes of those below, one output after another, on rows of its own.

    Parameters
    ----------
    fit : GroupFit
        Of one output.
    below : tuple of GroupFit
        Of the models that vote.
    name : str
    n_jobs : int or None
        As for :class:`joblib.Parallel`.
    """

    fit: GroupFit
    below: tuple[GroupFit, ...]
    name: str
    n_jobs: int | None = None

    pure = PROOF

    @property
    def fits(self) -> tuple[GroupFit, ...]:  # type: ignore[override]
        """That of each output."""
        return (self.fit,) * self.below[0].n_outputs

    def stated(self) -> dict[str, Any]:
        """Return how epsilon is spent."""
        stated = {f"high_level_{name}": each for name, each in self.fit.public_inputs().items()}
        return {"n_high_level": self.fit.n_records, **stated}

    def problems(self, known: Known, records: Rows) -> list[Problem]:
        """Return the minimisations, output by output."""
        models, first = known["_models"], self.below[0]
        groups = [group.indices for fit in self.below for group in fit.groups]
        data_norm, cap = first.data_norm, first.max_residual

        def ballots(block: SignedRows) -> list[SignedRows]:
            """Return, for each output, the votes of the models below."""
            rows = meta_rows(votes(models, block.within(data_norm).X, groups, cap))
            pairs = zip(rows, block.signs, strict=True)
            return [SignedRows(meta, sign[None, :]) for meta, sign in pairs]

        cast = records.map(ballots)
        return [
            problem
            for output, fit in enumerate(self.fits)
            for problem in fit.problems(cast.map(itemgetter(output)))
        ]

    def after(self, known: Known, found: list[Perturbed]) -> dict[str, Any]:
        """Return the coefficients of the votes, and the caps of both levels."""
        models = (self.fit.coefficients([one.coef])[0] for one in found)
        coefs, intercepts = zip(*models, strict=True)
        return {
            "high_level_coef": np.concatenate(coefs),
            "high_level_intercept": np.concatenate(intercepts),
            "max_residual": [self.below[0].max_residual, self.fit.max_residual],
        }


@dataclass(frozen=True)
class Stack:
    """What is trained on what; made from public numbers.

    Parameters
    ----------
    n_records : int
    low : tuple of GroupFit
        One plan for all groups of columns, or one for each part of the rows.
    high : GroupFit or None
        Plan of one output of the model on top.
    """

    n_records: int
    low: tuple[GroupFit, ...]
    high: GroupFit | None

    @property
    def levels(self) -> tuple[GroupFit, ...]:
        """The plans of all models below, and of that on top."""
        return self.low if self.high is None else (*self.low, self.high)

    def deal(self, source: RandomSource) -> tuple[list[IntArray], IntArray]:
        """Return the rows of each plan below, and those of the model on top."""
        order = source.generator.permutation(self.n_records)
        ends = np.cumsum([plan.n_records for plan in self.low])
        parts = np.split(order[: ends[-1]], ends[:-1])
        return parts, order[ends[-1] :]

    def dealt(self, records: Rows, source: RandomSource) -> list[Any]:
        """Return the records of the models below, part by part, and those of the model on top."""
        parts, top = self.deal(source.other("split"))

        def chosen(rows: IntArray) -> Rows:
            return records.chosen(rows, lambda block: block.n_records, SignedRows.rows)

        below = [chosen(part) for part in parts]
        return [below] if self.high is None else [below, chosen(top)]

    def tree(self, names: tuple[str, str], n_jobs: int | None) -> Node:
        """Return the measurements of both levels, by names of what is released."""
        below = ModelsBelow(self.low, names[0], n_jobs)
        if self.high is not None:
            return Disjoint((below, TopModel(self.high, self.low, names[1], n_jobs)), self.dealt)
        return below if len(self.low) == 1 else Disjoint((below,), self.dealt)


def plan_stack(
    setting: GroupSetting,
    n_parts: int,
    holdout: float,
    calibrate: Callable[[GroupSetting], GroupFit],
) -> Stack:
    """Deal out the number of rows, and calibrate each level with the whole of epsilon."""
    n, n_high = setting.n_records, round(holdout * setting.n_records)
    n_low = n - n_high
    if n_low < n_parts or (holdout > 0.0 and n_high < 1):
        raise ValueError(
            "n_partitions and holdout must leave at least one row for each model, got "
            f"n_samples={n}."
        )
    sizes = [n_low // n_parts + (part < n_low % n_parts) for part in range(n_parts)]
    # Votes of parts that differ by one row have one meaning.
    cap = replace(setting, n_records=min(sizes)).capped()
    low = {n: calibrate(replace(setting, n_records=n, max_residual=cap)) for n in set(sizes)}
    top = replace(
        setting,
        n_records=n_high,
        n_outputs=1,
        groups=(tuple(range(n_parts * len(setting.groups))),),
        weights=(1.0,),
        data_norm=1.0,
        group_norms=(1.0,),
        ridge_multiple=1.0,
        centers=None,
    )
    return Stack(n, tuple(low[size] for size in sizes), calibrate(top) if n_high else None)
