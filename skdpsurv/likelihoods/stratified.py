r"""Hazard loss with a baseline for each of G public strata, and coefficients that they share.

A record (x, t, delta) is in stratum g. With the rows A_s of a basis, the coefficients
:math:`f = (a_1, \dots, a_G, \beta)` and the loss of one stratum
(:mod:`skdpsurv.likelihoods.hazard`), its loss is

.. math:: \ell(f; z) = \ell((a_g, \beta); (x, t, \delta)).

Neighbours: replace-one; the other record may be in another stratum. So rows of two baselines may be
:math:`\sqrt 2\rho` apart, and S is that of :math:`\max(D, \sqrt 2\rho)`. Trace and rank are as in
one stratum. Proofs: docs/proofs/discrete_hazard and docs/proofs/rounding, "strata".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from skdpsurv.data.histories import Histories
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.likelihoods.hazard import DiscreteHazard, HazardBlock, hazard_block
from skdpsurv.likelihoods.links import Link
from skdpsurv.likelihoods.loss import BlockLikelihood, Derivatives, PrivacyConstants


class StratifiedBlock(NamedTuple):
    """Records sorted by their stratum, and within it as :class:`HazardBlock` has them.

    Parameters
    ----------
    records : HazardBlock
    stratum : ndarray of int of shape (n,)
        The stratum of each record, from 0; ascending.
    """

    records: HazardBlock
    stratum: IntArray

    def changed(self, change: Callable[[HazardBlock], HazardBlock]) -> Self:
        """Return a block with a change made to its records, whose order stays."""
        return self._replace(records=change(self.records))


def stratified_block(
    X: FloatArray, histories: Histories, change: Callable[[FloatArray], FloatArray] | None = None
) -> StratifiedBlock:
    """Sort records (any order; on a grid) into a block, with ``change`` made to their rows."""
    stratum = np.asarray(histories.stratum)
    present, counts = np.unique(stratum, return_counts=True)
    rows = [np.flatnonzero(stratum == g) for g in present] or [np.arange(0)]
    parts = [hazard_block(X[own], histories.take(own), change) for own in rows]
    columns = zip(*parts, strict=True)
    fields = (None if field[0] is None else np.concatenate(field) for field in columns)
    return StratifiedBlock(HazardBlock._make(fields), np.repeat(present, counts))


class Stratum(NamedTuple):
    """Records of one stratum, where they are in a block, and their coefficients' indices."""

    records: HazardBlock
    part: slice
    columns: IntArray


@dataclass(frozen=True)
class StratifiedHazard(BlockLikelihood):
    """Likelihood of exit intervals given covariates and strata.

    Parameters
    ----------
    one : DiscreteHazard
        The likelihood of the records of one stratum, with the basis of all baselines.
    n_strata : int
        G, the number of public strata.
    """

    one: DiscreteHazard
    n_strata: int

    @property
    def link(self) -> Link:
        """The link."""
        return self.one.link

    @property
    def max_cumulative_hazard(self) -> float | None:
        """The cap H."""
        return self.one.max_cumulative_hazard

    @property
    def n_params(self) -> int:
        """Number of coefficients: those of each baseline first, then the covariates'."""
        return self.one.n_params + (self.n_strata - 1) * int(self.one.basis.shape[1])

    @cached_property
    def constants(self) -> PrivacyConstants:
        """S, tau and r of one record (docs/proofs/discrete_hazard, strata)."""
        one = self.one
        if self.n_strata == 1:
            return one.constants
        radius, diameter = one.extent
        return replace(
            one.constants,
            gradient_sensitivity=one.sensitivity(max(diameter, math.sqrt(2.0) * radius)),
            rounding=one.constants.rounding + self.n_strata,  # sums of strata are added up
        )

    def stated(self) -> dict[str, Any]:
        """Return the numbers of one stratum, and G."""
        return {**self.one.stated(), "n_strata": self.n_strata}

    def loss_within(self, predictor: float) -> float:
        """Return a bound on a record's loss for baselines within +-``predictor``, no effects."""
        return self.one.loss_within(predictor)

    def n_records(self, block: StratifiedBlock) -> int:
        return int(block.stratum.size)

    def thin(self, block: StratifiedBlock, step: int) -> StratifiedBlock:
        records = self.one.thin(block.records, step)
        return StratifiedBlock(records, np.ascontiguousarray(block.stratum[::step]))

    def take(self, block: StratifiedBlock, rows: IntArray | slice) -> StratifiedBlock:
        return StratifiedBlock(self.one.take(block.records, rows), block.stratum[rows])

    def losses(self, coef: FloatArray, block: StratifiedBlock) -> FloatArray:
        values = np.zeros(block.stratum.size)
        for records, part, columns in self._strata(block):
            values[part] = self.one.losses(coef[columns], records)
        return values

    def derivatives(
        self,
        coef: FloatArray,
        block: StratifiedBlock,
        weights: FloatArray | None = None,
        order: int = 2,
    ) -> Derivatives:
        """Return gradient and Hessian summed over the block, stratum by stratum."""
        gradient = np.zeros(self.n_params)
        hessian = np.zeros((self.n_params, self.n_params)) if order == 2 else None
        for records, part, columns in self._strata(block):
            own = None if weights is None else weights[part]
            found = self.one.derivatives(coef[columns], records, own, order)
            gradient[columns] += found.gradient
            if hessian is not None:
                hessian[np.ix_(columns, columns)] += np.asarray(found.hessian)
        return Derivatives(gradient, hessian)

    def _strata(self, block: StratifiedBlock) -> Iterator[Stratum]:
        """Yield the strata that have records."""
        n_basis, bounds = self.one.basis.shape[1], range(self.n_strata + 1)
        effects = np.arange(self.n_strata * n_basis, self.n_params)
        places = np.searchsorted(block.stratum, bounds).tolist()
        for g, (start, stop) in enumerate(pairwise(places)):
            if start < stop:
                part = slice(start, stop)
                columns = np.append(np.arange(g * n_basis, (g + 1) * n_basis), effects)
                yield Stratum(self.one.take(block.records, part), part, columns)
