"""SubsetSelection: the method of a hybrid fit that releases a subset of the public records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from skdpsurv.checks import Check, Parameters, choice, integer, list_of, optional
from skdpsurv.hybrid.selection import SELECTIONS

__all__ = ["SubsetSelection"]


class SubsetSelection(Parameters):
    """How ``HybridMEstimator(method=...)`` chooses among subsets of the public records.

    ``method="subset"`` is this with its defaults.

    Parameters
    ----------
    selection : {"permute_and_flip", "noisy_curve"}, default="permute_and_flip"
        How the choice is made. The noisy curve of losses is released in ``curve_``.
    candidate_sizes : sequence of int or None, default=None
        Sizes of the subsets; None for ten in geometric progression.

    Examples
    --------
    >>> from skdpsurv import HybridMEstimator
    >>> from skdpsurv.hybrid import SubsetSelection
    >>> model = HybridMEstimator(method=SubsetSelection(candidate_sizes=[50, 200]))
    >>> model.set_params(method__candidate_sizes=None).method
    SubsetSelection()
    """

    _rules: ClassVar[dict[str, Check]] = {
        "selection": choice(*SELECTIONS),
        "candidate_sizes": optional(list_of(integer())),
    }

    def __init__(
        self,
        selection: str = "permute_and_flip",
        *,
        candidate_sizes: Sequence[int] | None = None,
    ) -> None:
        self.selection = selection
        self.candidate_sizes = candidate_sizes
