"""FeaturePartition: groups of columns, a model of a stack each, and their public weights."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.data.shape import column_index
from skdpsurv.dp.checks import (
    Check,
    Parameters,
    custom,
    is_list,
    list_of,
    number_in,
    optional,
    positive,
    rule_of,
)
from skdpsurv.dp.types import FloatArray

Groups = tuple[tuple[int, ...], ...]

#: Of groups of columns, which are gone through more than once.
GROUPS = rule_of(
    "a list of lists of columns", kind=lambda groups: is_list(groups) and all(map(is_list, groups))
)
#: Of bounds on groups, of their weights, and of importances of columns.
BOUNDS, SHARES = list_of(positive()), list_of(number_in(0.0, 1.0))
IMPORTANCES = list_of(number_in(0.0, math.inf, closed="left"))


def relative_importances(importances: ArrayLike | None) -> FloatArray | None:
    """Return the importances of columns beside the largest, or None."""
    if importances is None:
        return None
    IMPORTANCES("importances", importances)
    values = np.asarray(importances, dtype=np.float64)
    if not (values > 0).any():
        raise ValueError("importances must not all be zero.")
    return np.asarray(values / values.max())


class FeaturePartition(Parameters):
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

    _rules: ClassVar[dict[str, Check]] = {
        "groups": optional(GROUPS),
        "importances": custom(relative_importances),
        "norms": optional(BOUNDS),
    }

    def __init__(
        self,
        groups: Sequence[Collection[Any]] | None = None,
        *,
        importances: ArrayLike | None = None,
        norms: ArrayLike | None = None,
    ) -> None:
        self.groups = groups
        self.importances = importances
        self.norms = norms


def feature_groups(
    groups: Collection[Collection[Any]] | None,
    n_partitions: int,
    importances: FloatArray | None,
    n_features: int,
    names: ArrayLike | None,
) -> Groups:
    """Return disjoint groups of columns, by index, that cover all of them."""
    if importances is not None and importances.size != n_features:
        raise ValueError(
            f"importances must have one number for each of the {n_features} columns, got "
            f"{importances.size}."
        )
    if groups is not None:
        return stated_groups(groups, n_features, names)
    if n_partitions > n_features:
        raise ValueError(
            f"n_partitions must be at most the number of columns, {n_features}, got {n_partitions}."
        )
    if importances is None:
        return tuple(tuple(range(k, n_features, n_partitions)) for k in range(n_partitions))
    order = np.argsort(-importances, kind="stable")
    return tuple(tuple(part.tolist()) for part in np.array_split(order, n_partitions))


def stated_groups(
    groups: Any, n_features: int, names: ArrayLike | None, what: str = "groups"
) -> Groups:
    """Return groups that somebody stated, by index; what is wrong with them is said of ``what``."""
    GROUPS(what, groups)
    known = [] if names is None else [str(name) for name in np.asarray(names)]
    found = tuple(
        tuple(column_index(what, column, known, n_features) for column in group) for group in groups
    )
    seen = sorted(column for group in found for column in group)
    if not all(found) or seen != list(range(n_features)):
        raise ValueError(
            f"{what} must hold each of the {n_features} columns once, and no empty group."
        )
    return found


def group_weights(
    groups: Sequence[Sequence[int]], importances: FloatArray | None
) -> tuple[float, ...]:
    """Return the groups' shares of all importance; equal shares without importances."""
    if importances is None:
        return (1.0 / len(groups),) * len(groups)
    sums = np.array([importances[list(group)].sum() for group in groups])
    if not (sums > 0).all():  # noise of a group without any would be infinite
        raise ValueError(
            "importances must give each group of columns a positive sum; leave out columns that do "
            "not matter, or make fewer groups."
        )
    return tuple((sums / sums.sum()).tolist())


def checked_weights(weights: Any, n_groups: int) -> tuple[float, ...]:
    """Return the weights that a release holds: one for each group, which add up to 1."""
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
    if len(stated) != n_groups or max(stated) > data_norm:
        raise ValueError(
            f"norms must have one bound for each of the {n_groups} groups, got {len(stated)}, and "
            "none may exceed data_norm, which bounds the whole row."
        )
    return stated
