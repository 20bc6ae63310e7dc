"""Groups of columns, and their public weights."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.checks import is_list, list_of, number_in, positive, rule_of
from skdpsurv.column_index import column_index
from skdpsurv.privacy import refuse_masked
from skdpsurv.privacy.domain import as_float_array
from skdpsurv.types import FloatArray

__all__ = [
    "BOUNDS",
    "GROUPS",
    "checked_importances",
    "checked_weights",
    "feature_groups",
    "group_norms",
    "group_weights",
    "stated_groups",
]


#: Of groups of columns, which are gone through more than once.
GROUPS = rule_of(
    "a list of lists of columns",
    kind=lambda groups: is_list(groups) and all(map(is_list, groups)),
)
#: Of bounds on groups, and of their weights.
BOUNDS, SHARES = list_of(positive()), list_of(number_in(0.0, 1.0))


def checked_importances(importances: ArrayLike | None) -> FloatArray | None:
    """Return the importances of columns as numbers, or None.

    Raises
    ------
    ValueError
        If they are not finite, not negative and not all zero.
    """
    if importances is None:
        return None
    refuse_masked(importances, "importances")
    try:
        values = as_float_array(importances, "importances")
    except ValueError:
        values = np.empty((0, 0))
    if values.ndim != 1 or values.size == 0:
        raise ValueError("importances must be a list of numbers, one for each column.")
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError("importances must be finite and not negative.")
    if not (values > 0).any():
        raise ValueError("importances must not all be zero.")
    return values / values.max()


def feature_groups(
    groups: Collection[Collection[Any]] | None,
    n_partitions: int,
    importances: FloatArray | None,
    n_features: int,
    names: ArrayLike | None,
) -> tuple[tuple[int, ...], ...]:
    """Return disjoint groups of columns, by index, that cover all of them.

    Parameters
    ----------
    groups : sequence of sequences of int or str, or None
        As stated by the caller, by index or by name.
    n_partitions : int
        How many groups to make where none are stated.
    importances : ndarray of shape (n_features,) or None
        Groups that are made hold columns of similar importance, the first group the most
        important ones. Without importances, column j goes to group j mod K.
    n_features : int
    names : array-like of str or None
        Of the columns.

    Raises
    ------
    ValueError
        If groups overlap, are empty or miss a column, or importances are of another length.
    """
    if importances is not None and importances.size != n_features:
        raise ValueError(
            f"importances must have one number for each of the {n_features} columns, got "
            f"{importances.size}."
        )
    if groups is None:
        if n_partitions > n_features:
            raise ValueError(
                f"n_partitions must be at most the number of columns, {n_features}, got "
                f"{n_partitions}."
            )
        if importances is None:
            return tuple(tuple(range(k, n_features, n_partitions)) for k in range(n_partitions))
        order = np.argsort(-importances, kind="stable")
        return tuple(tuple(part.tolist()) for part in np.array_split(order, n_partitions))
    return stated_groups(groups, n_features, names)


def stated_groups(
    groups: Any,
    n_features: int,
    names: ArrayLike | None,
    what: str = "groups",
) -> tuple[tuple[int, ...], ...]:
    """Return groups that somebody stated, by index.

    Raises
    ------
    ValueError, TypeError
        If they are no groups, overlap, are empty or miss a column; it says of ``what``.
    """
    GROUPS(what, groups)
    known = [] if names is None else [str(name) for name in np.asarray(names)]
    found = tuple(
        tuple(column_index(what, column, known, n_features) for column in group) for group in groups
    )
    if not all(found):
        raise ValueError(f"{what} must not hold an empty group.")
    seen = [column for group in found for column in group]
    if len(set(seen)) < len(seen):
        raise ValueError(f"{what} must not overlap: a column is in more than one place.")
    if len(seen) < n_features:
        raise ValueError(
            f"{what} must hold every column: {n_features - len(seen)} of {n_features} are in none."
        )
    return found


def group_weights(
    groups: Sequence[Sequence[int]], importances: FloatArray | None
) -> tuple[float, ...]:
    """Return the groups' shares of all importance; equal shares without importances.

    Raises
    ------
    ValueError
        If a group has no importance at all: its noise would be infinite.
    """
    if importances is None:
        return (1.0 / len(groups),) * len(groups)
    sums = np.array([importances[list(group)].sum() for group in groups])
    if not (sums > 0).all():
        raise ValueError(
            "importances must give each group of columns a positive sum; leave out columns that do "
            "not matter, or make fewer groups."
        )
    return tuple((sums / sums.sum()).tolist())


def checked_weights(weights: Any, n_groups: int) -> tuple[float, ...]:
    """Return the weights that a release holds.

    Raises
    ------
    ValueError, TypeError
        If there is not one for each group, or they do not add up to 1.
    """
    SHARES("weights_ of the release", weights)
    found = tuple(map(float, weights))
    if len(found) != n_groups or not math.isclose(sum(found), 1.0, rel_tol=1e-9):
        raise ValueError("weights_ of the release must be one for each group, and add up to 1.")
    return found


def group_norms(norms: ArrayLike | None, data_norm: float, n_groups: int) -> tuple[float, ...]:
    """Return the bounds on the groups; ``data_norm`` for each where none are stated.

    Raises
    ------
    ValueError, TypeError
        If there is not one for each group, or one is not positive, finite and at most
        ``data_norm``.
    """
    if norms is None:
        return (data_norm,) * n_groups
    BOUNDS("norms", norms)
    stated = tuple(map(float, norms))  # type: ignore[arg-type]
    if len(stated) != n_groups:
        raise ValueError(
            f"norms must have one bound for each of the {n_groups} groups, got {len(stated)}."
        )
    if max(stated) > data_norm:
        raise ValueError(
            "norms must not exceed data_norm, which bounds the whole row; raise data_norm."
        )
    return stated
