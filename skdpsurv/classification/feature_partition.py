"""FeaturePartition: the partition of a stack whose models see groups of columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from skdpsurv.checks import Check, Parameters, by, optional
from skdpsurv.classification.feature_groups import BOUNDS, GROUPS, checked_importances

__all__ = ["FeaturePartition"]


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
        "importances": by(checked_importances),
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
