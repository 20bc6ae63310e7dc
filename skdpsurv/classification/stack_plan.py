r"""The plan of a stack: rows and columns of each model, and the epsilon that it may spend.

Rows are split by a random order that depends on their number alone. Models below and the
model on top have disjoint rows, and so have models of parts of the rows: each record is in one of
these sets whatever its values are, so each set may be used at the full epsilon
(docs/proofs/stacking).

Each model k votes :math:`2p_k - 1 \in [-1, 1]`, with :math:`p_k` its probability. A vote with
public weights costs nothing. A model on top, ``"logistic"``, must be trained on records that the
models below have not seen. Its columns are the votes divided by :math:`\sqrt K`: rows of norm at
most 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.classification import logistic_measurements as measured
from skdpsurv.classification.budgets import GroupSetting
from skdpsurv.classification.row_scales import Coefficients
from skdpsurv.data.blocks import Blocks, same_records
from skdpsurv.data.shape import column_index
from skdpsurv.dp import RandomSource, checks
from skdpsurv.dp.plan import Context, Disjoint, Distances, Node
from skdpsurv.dp.privacy_cost import Cost, disjoint_cost
from skdpsurv.dp.references import reference
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.likelihoods.linear import probability
from skdpsurv.mechanisms.perturbation import Perturbed, Problem

PROOF = reference("docs/proofs/stacking", "guo", "chaudhuri")
COMBINERS = ("weighted_vote", "logistic", "vote")

Rows = Blocks[measured.SignedRows]
Groups = tuple[tuple[int, ...], ...]

#: Rules of groups of columns (no iterators: they are read twice), of bounds on groups, of their
#: weights, and of importances of columns.
GROUPS = checks.rule_of(
    "a list of lists of columns",
    kind=lambda groups: checks.is_list(groups) and all(map(checks.is_list, groups)),
)
BOUNDS, SHARES = checks.list_of(checks.positive()), checks.list_of(checks.number_in(0.0, 1.0))
IMPORTANCES = checks.list_of(checks.number_in(0.0, math.inf, closed="left"))


def relative_importances(importances: ArrayLike | None) -> FloatArray | None:
    """Return the importances of columns relative to the largest, or None."""
    if importances is None:
        return None
    IMPORTANCES("importances", importances)
    values = np.asarray(importances, dtype=np.float64)
    if not values.any():
        raise ValueError("importances must not all be zero.")
    return np.asarray(values / values.max())


@dataclass(eq=False, repr=False)
class FeaturePartition(checks.Parameters):
    """Groups of columns, a model each: ``PrivateStackingClassifier(partition=...)``.

    ``partition="features"`` is this with its defaults.

    Parameters
    ----------
    groups : sequence of sequences of int or str, or None, default=None
        Disjoint groups of columns (of features, if ``columns`` makes these), by index or name, that
        cover all of them. Public. None: columns sorted by importance and cut into
        ``n_partitions``, or, without importances, column j in group j mod K.
    importances : array-like of shape (n_features,) or None, default=None
        Public importance of each column, not negative, from experts or public data.
        **Importances computed from X void the guarantee.** Noise of a group is inversely
        proportional to its share of all importance. None: equal shares.
    norms : array-like of shape (n_groups,) or None, default=None
        Public bounds on the norm of each group's columns, at most ``data_norm``, which is the
        default: give them where they are known to be smaller.

    Examples
    --------
    >>> from skdpsurv import FeaturePartition, PrivateStackingClassifier
    >>> by_site = FeaturePartition(groups=[["glucose", "bmi"], ["age", "sex"]])
    >>> model = PrivateStackingClassifier(partition=by_site, classes=[0, 1])
    >>> model.set_params(partition__importances=[10, 8, 1, 2]).partition.importances
    [10, 8, 1, 2]
    """

    groups: Sequence[Collection[Any]] | None = None
    _: KW_ONLY
    importances: ArrayLike | None = None
    norms: ArrayLike | None = None

    _rules: ClassVar[dict[str, checks.Check]] = {
        "groups": checks.optional(GROUPS),
        "importances": checks.custom(relative_importances),
        "norms": checks.optional(BOUNDS),
    }


def feature_groups(
    groups: Collection[Collection[Any]] | None,
    n_partitions: int,
    importances: FloatArray | None,
    n_features: int,
    names: ArrayLike | None,
) -> Groups:
    """Return disjoint groups of columns, by index, that cover all of them."""
    if importances is not None and importances.size != n_features:
        raise ValueError(f"importances must have {n_features} numbers, got {importances.size}.")
    if groups is not None:
        return stated_groups(groups, n_features, names)
    if n_partitions > n_features:
        raise ValueError(f"n_partitions must be at most {n_features} columns, got {n_partitions}.")
    if importances is None:
        return tuple(tuple(range(k, n_features, n_partitions)) for k in range(n_partitions))
    order = np.argsort(-importances, kind="stable")
    return tuple(tuple(part.tolist()) for part in np.array_split(order, n_partitions))


def stated_groups(
    groups: Any, n_features: int, names: ArrayLike | None, parameter: str = "groups"
) -> Groups:
    """Return stated groups by index; messages name the parameter."""
    GROUPS(parameter, groups)
    known = [] if names is None else [str(name) for name in np.asarray(names)]

    def indices(group: Any) -> tuple[int, ...]:
        return tuple(column_index(parameter, column, known, n_features) for column in group)

    found = tuple(map(indices, groups))
    seen = sorted(column for group in found for column in group)
    if not all(found) or seen != list(range(n_features)):
        raise ValueError(f"{parameter} must hold all {n_features} columns once, in no empty group.")
    return found


def group_weights(
    groups: Sequence[Sequence[int]], importances: FloatArray | None
) -> tuple[float, ...]:
    """Return the groups' shares of all importance; equal shares without importances."""
    if importances is None:
        return (1.0 / len(groups),) * len(groups)
    sums = np.array([importances[list(group)].sum() for group in groups])
    if not (sums > 0).all():  # noise of a group without any would be infinite
        raise ValueError("importances must give each group of columns a positive sum.")
    return tuple((sums / sums.sum()).tolist())


def checked_weights(weights: Any, n_groups: int) -> tuple[float, ...]:
    """Return the weights of a release: one for each group, which add up to 1."""
    SHARES("weights_ of the release", weights)
    found = tuple(map(float, weights))
    if len(found) != n_groups or not math.isclose(sum(found), 1.0, rel_tol=1e-9):
        raise ValueError("weights_ of the release must be one for each group, and add up to 1.")
    return found


def group_norms(norms: ArrayLike | None, data_norm: float, n_groups: int) -> tuple[float, ...]:
    """Return the bounds on the groups; ``data_norm``, which none exceeds, where none are stated."""
    if norms is None:
        return (data_norm,) * n_groups
    BOUNDS("norms", norms)
    stated = tuple(map(float, norms))  # type: ignore[arg-type]
    if (n := len(stated)) != n_groups or max(stated) > data_norm:
        raise ValueError(f"norms must have {n_groups} bounds, got {n}; none may exceed data_norm.")
    return stated


@dataclass(eq=False, repr=False, kw_only=True)
class LogisticCombiner(checks.Parameters):
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

    holdout: float = 0.5

    _rules: ClassVar[dict[str, checks.Check]] = {
        "holdout": checks.number_in(0.0, 1.0, closed="neither")
    }


def votes(
    models: Sequence[Coefficients], X: FloatArray, groups: Sequence[Sequence[int]], cap: float
) -> FloatArray:
    """Return votes, of shape (n_models, n_samples, n_outputs), of models of groups of columns."""
    pairs = zip(models, groups, strict=True)
    return np.array([2.0 * probability(one.predictor(X[:, g]), cap) - 1.0 for one, g in pairs])


def meta_rows(cast: FloatArray) -> FloatArray:
    """Return the rows of the model on top, of shape (n_outputs, n_samples, n_models)."""
    return np.ascontiguousarray(cast.transpose(2, 1, 0)) / np.sqrt(cast.shape[0])


def weighted_scores(cast: FloatArray, weights: Sequence[float]) -> FloatArray:
    """Return the weighted mean of the votes, of shape (n_samples, n_outputs)."""
    return np.asarray(np.einsum("kno,k->no", cast, np.asarray(weights)))


def stacked_scores(cast: FloatArray, top: Coefficients) -> FloatArray:
    """Return the predictors of the model on top, of shape (n_samples, n_outputs)."""
    return np.asarray(np.einsum("onk,ok->no", meta_rows(cast), top.coef) + top.intercept)


@dataclass(frozen=True, eq=False)
class ModelsBelow(measured.FittedGroups):
    """Models that vote: of groups of columns, or of parts of the rows that share no record.

    Parameters
    ----------
    fits : tuple of GroupFit
        One for all groups of columns, or one for each part of the rows.
    name : str
    n_jobs : int or None
    """

    fits: tuple[measured.GroupFit, ...]
    name: str
    n_jobs: int | None = None

    pure = PROOF

    @property
    def cost(self) -> Cost:
        """Cost of the models of one part: a record is in no other."""
        return disjoint_cost(fit.cost for fit in self.fits)

    def drawn(self, context: Context | None) -> Mapping[str, Any]:
        return {**super().drawn(context), "parts": "disjoint"}

    def stated(self) -> dict[str, Any]:
        """Return how epsilon is spent on the first part, as on all."""
        n_low = sum(fit.n_records for fit in self.fits)
        return {"n_low_level": n_low, **self.fits[0].public_inputs()}

    def problems(self, context: Context, records: Rows | list[Rows]) -> list[Problem]:
        """Return the minimisations of each part, one part after another."""
        parts = records if isinstance(records, list) else [records]
        pairs = zip(self.fits, parts, strict=True)
        return [problem for fit, part in pairs for problem in fit.problems(part)]

    def distances(self, context: Context, one: Any, other: Any) -> Distances:
        """Return distances of derivatives, and the number of parts that differ, at most one."""
        found = super().distances(context, one, other)
        if not isinstance(one, list):
            return found
        moved = sum(not same_records(a, b) for a, b in zip(one, other, strict=True))
        return [*found, ("parts that share a record", float(moved), 1.0)]

    def postprocess(self, context: Context, found: list[Perturbed]) -> dict[str, Any]:
        """Return the models, and the cap that they share."""
        minimisers = iter([each.coef for each in found])
        each = [(fit, fit.coefficients(minimisers)) for fit in self.fits]
        models = [model for _, own in each for model in own]
        whole = [model for fit, own in each for model in fit.to_features(own)]
        scales = self.fits[0].scales
        return {
            **{f"low_level_coef_{k}": model.coef for k, model in enumerate(whole)},
            "low_level_intercept": [model.intercept for model in whole],
            **({} if scales is None else scales.values()),
            "max_residual": [self.fits[0].max_residual],
            "_models": models,
        }


@dataclass(frozen=True, eq=False)
class TopModel(measured.FittedGroups):
    """A model of the votes of those below, one output after another, on rows of its own.

    Parameters
    ----------
    fit : GroupFit
        Plan of one output.
    below : tuple of GroupFit
        Plans of the models that vote.
    name : str
    n_jobs : int or None
    """

    fit: measured.GroupFit
    below: tuple[measured.GroupFit, ...]
    name: str
    n_jobs: int | None = None

    pure = PROOF

    @property
    def fits(self) -> tuple[measured.GroupFit, ...]:  # type: ignore[override]
        """The plan of the top model, once for each output."""
        return (self.fit,) * self.below[0].n_outputs

    def stated(self) -> dict[str, Any]:
        """Return how epsilon is spent."""
        stated = {f"high_level_{name}": each for name, each in self.fit.public_inputs().items()}
        return {"n_high_level": self.fit.n_records, **stated}

    def problems(self, context: Context, records: Rows) -> list[Problem]:
        """Return the minimisations, one after another for each output."""
        models, first = context["_models"], self.below[0]
        groups = [group.indices for fit in self.below for group in fit.groups]
        data_norm, cap = first.data_norm, first.max_residual

        def votes_of_each_output(block: measured.SignedRows) -> list[measured.SignedRows]:
            rows = meta_rows(votes(models, block.clipped(data_norm).X, groups, cap))
            return list(map(measured.SignedRows, rows, block.signs[:, None, :]))

        cast = records.map(votes_of_each_output)
        outputs = [cast.map(itemgetter(output)) for output in range(first.n_outputs)]
        return [problem for output in outputs for problem in self.fit.problems(output)]

    def postprocess(self, context: Context, found: list[Perturbed]) -> dict[str, Any]:
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
    """Records and plans of both levels, from public numbers.

    Parameters
    ----------
    n_records : int
    low : tuple of GroupFit
        One plan for all groups of columns, or one for each part of the rows.
    high : GroupFit or None
        Plan of one output of the model on top.
    """

    n_records: int
    low: tuple[measured.GroupFit, ...]
    high: measured.GroupFit | None

    @property
    def levels(self) -> tuple[measured.GroupFit, ...]:
        """The plans of all models below, and of that on top."""
        return self.low if self.high is None else (*self.low, self.high)

    def split(self, source: RandomSource) -> tuple[list[IntArray], IntArray]:
        """Return the rows of each plan below, and those of the model on top."""
        order = source.generator.permutation(self.n_records)
        ends = np.cumsum([plan.n_records for plan in self.low])
        parts = np.split(order[: ends[-1]], ends[:-1])
        return parts, order[ends[-1] :]

    def split_records(self, records: Rows, source: RandomSource) -> list[Any]:
        """Return the records of the models below, part by part, and those of the model on top."""
        parts, top = self.split(source.other("split"))

        def chosen(rows: IntArray) -> Rows:
            return records.chosen(rows, lambda block: block.n_records, measured.SignedRows.rows)

        below = [chosen(part) for part in parts]
        return [below] if self.high is None else [below, chosen(top)]

    def tree(self, names: tuple[str, str], n_jobs: int | None) -> Node:
        """Return the measurements of both levels, with their names."""
        below = ModelsBelow(self.low, names[0], n_jobs)
        if self.high is not None:
            return Disjoint(
                (below, TopModel(self.high, self.low, names[1], n_jobs)), self.split_records
            )
        return below if len(self.low) == 1 else Disjoint((below,), self.split_records)


def plan_stack(
    setting: GroupSetting,
    n_parts: int,
    holdout: float,
    calibrate: Callable[[GroupSetting], measured.GroupFit],
) -> Stack:
    """Divide the number of rows among the models, and calibrate each level with all of epsilon."""
    n, n_high = setting.n_records, round(holdout * setting.n_records)
    n_low = n - n_high
    if n_low < n_parts or (holdout > 0.0 and n_high < 1):
        raise ValueError(f"n_partitions, holdout must leave each model a row, got n_samples={n}.")
    sizes = [n_low // n_parts + (part < n_low % n_parts) for part in range(n_parts)]
    # Votes of parts that differ by one row have one meaning.
    cap = replace(setting, n_records=min(sizes)).capped()
    low = {n: calibrate(replace(setting, n_records=n, max_residual=cap)) for n in set(sizes)}
    votes = (tuple(range(n_parts * len(setting.groups))),)
    norms: Any = {"data_norm": 1.0, "group_norms": (1.0,), "ridge_multiple": 1.0, "centers": None}
    norms["scales"] = None
    top = replace(setting, n_records=n_high, n_outputs=1, groups=votes, weights=(1.0,), **norms)
    return Stack(n, tuple(low[size] for size in sizes), calibrate(top) if n_high else None)
