r"""Choose one of several models by how well they predict private records.

The loss of a record is in [0, 1]: half the Brier score of a classifier's probabilities, or the
absolute error of a regression over the public range of the outcome, at most 1. A model is public by
now, so one private record that changes moves each sum of losses by at most 1, whatever the other
records are. (The published criterion compares with the fit to the private records, which moves as
a whole when one of them changes: errata 4.)

Sums are of multiples of :math:`2^{-30}` and exact. ``permute_and_flip`` spends epsilon once,
however many models there are; ``noisy_curve`` adds Laplace noise of scale :math:`k/\epsilon` to
each of the k sums, which may then be published (errata 3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from skdpsurv.data.blocks import Blocks
from skdpsurv.dp.checks import Check, Parameters, choice, integer, list_of, optional
from skdpsurv.dp.plan import Context, NoisySum
from skdpsurv.dp.types import FloatArray
from skdpsurv.hybrid.hybrid_records import PROOF, Design, PrivateRecords, PublicRecords, places_of
from skdpsurv.hybrid.meta_estimator import predicted_numbers, predicted_probabilities
from skdpsurv.mechanisms.sums import LOSS, Choices, Sums


def record_losses(
    fitted: Any, X: FloatArray, y: NDArray[Any], low: float = 0.0, span: float = 1.0
) -> FloatArray:
    """Return the loss of each record, between 0 and 1."""
    if not is_classifier(fitted):
        if span <= 0.0:
            return np.zeros(X.shape[0])
        error = np.abs(np.clip(y, low, low + span) - predicted_numbers(fitted, X))
        return _clipped(error / span)
    likely = predicted_probabilities(fitted, X)
    place = places_of(y, fitted.classes_.tolist())
    padded = np.column_stack([likely, np.zeros(X.shape[0])])
    right = padded[np.arange(place.size), place]
    # |p - e_y|^2 / 2, with e_y outside the known classes for an unknown label.
    return _clipped(0.5 * (np.sum(likely**2, axis=1) - 2.0 * right + 1.0))


def _clipped(losses: FloatArray) -> FloatArray:
    """Return losses clipped to [0, 1]; 1 in place of NaN."""
    return np.where(np.isnan(losses), 1.0, np.clip(losses, 0.0, 1.0))


def exact_losses(
    context: Context, records: Blocks[PrivateRecords], public: PublicRecords
) -> list[int]:
    """Return the exact sum of losses of each fit, in units of the lattice; private."""
    low, high = public.range.outcomes or (0.0, 1.0)
    lost = partial(_lost_by_each, context["_fits"], public.design, (low, high - low))
    return list(records.map_reduce(lost))


def _lost_by_each(
    fits: Sequence[Any], design: Design, outcomes: tuple[float, float], private: PrivateRecords
) -> tuple[int, ...]:
    """Return the exact sum of a block's losses for each of some fits."""
    X = design.matrix(private.table)
    return tuple(LOSS.total(record_losses(fitted, X, private.y, *outcomes)) for fitted in fits)


def chosen(context: Context, place: int) -> dict[str, Any]:
    """Return a candidate: places of public records, and their weights."""
    return dict(zip(("public_index", "weights"), context["_candidates"][place], strict=True))


@dataclass(frozen=True, eq=False, kw_only=True)
class SubsetChoice(Choices):
    """One of several fits, by their losses on private records."""

    public: PublicRecords
    n_fits: int
    assumptions: tuple[str, ...] = ()

    name = "a private choice"
    proof = PROOF

    @property
    def queries(self) -> list[Sums]:
        """Return the query: one record changes the sum of losses of each fit by at most 1."""
        return [Sums(self.n_fits, LOSS.sensitivity, LOSS.exponent)]

    def losses(self, context: Context, records: Blocks[PrivateRecords]) -> list[list[int]]:
        """Return the exact sum of losses of each fit."""
        return [exact_losses(context, records, self.public)]

    def postprocess(self, context: Context, places: Sequence[int]) -> dict[str, Any]:
        """Return the chosen subset of public records, and its weights."""
        return chosen(context, places[0])


@dataclass(frozen=True, eq=False, kw_only=True)
class LossCurve(NoisySum):
    """The losses of several fits on private records, and the fit with the least."""

    public: PublicRecords
    n_fits: int
    assumptions: tuple[str, ...] = ()

    name = "noisy losses, and the choice that follows"
    gives = "curve"
    theorem = PROOF

    def query_for(self, context: Context) -> Sums:
        """Return the query: one record changes the sum of losses of each fit by at most 1."""
        return Sums(self.n_fits, LOSS.sensitivity, LOSS.exponent)

    def exact_answer(self, context: Context, records: Blocks[PrivateRecords]) -> list[int]:
        """Return the exact sum of losses of each fit."""
        return exact_losses(context, records, self.public)

    def postprocess(self, context: Context, noisy: Sequence[int]) -> dict[str, Any]:
        """Return the noisy losses of all subsets, and the subset with the least."""
        curve = np.array([LOSS.value(total) for total in noisy])
        return {**chosen(context, int(curve.argmin())), "curve": curve}


SELECTIONS: Mapping[str, type[SubsetChoice | LossCurve]] = {
    "permute_and_flip": SubsetChoice,
    "noisy_curve": LossCurve,
}


@dataclass(eq=False, repr=False)
class SubsetSelection(Parameters):
    """How ``HybridMEstimator(method=...)`` chooses among subsets of the public records.

    ``method="subset"`` is this with its defaults.

    Parameters
    ----------
    selection : {"permute_and_flip", "noisy_curve"}, default="permute_and_flip"
        Mechanism of the choice. The noisy curve of losses is released in ``curve_``.
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

    selection: str = "permute_and_flip"
    _: KW_ONLY
    candidate_sizes: Sequence[int] | None = None

    _rules: ClassVar[dict[str, Check]] = {
        "selection": choice(*SELECTIONS),
        "candidate_sizes": optional(list_of(integer())),
    }
