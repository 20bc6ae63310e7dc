r"""The actuarial life table of people who enter late, from noisy tables of exits and entries.

A band k has :math:`d_{wk}` outcomes w and :math:`e_k` people who enter in it. Who enters in a band
is seen for half of it, so that

.. math:: R_k = \sum_{j<k} e_j + \tfrac12 e_k - \sum_{l<k}\sum_w d_{wl}

are exposed, and :math:`P_{wk}(a_k) R_k` are expected to have the outcome w, with the shares P of
:mod:`~skdpsurv.survival.curves.life_table`. Given the past, outcomes of a band are multinomial, so
that :math:`d_{wk} - P_{wk} R_k` of different bands are not correlated, whoever entered when.

* Noise: of each table the true sum is known, or that both have the same, and the noisy counts
  z are moved by what this tells of their noise, :math:`z' = z - V C' (C V C')^{-} (C z - c)`.
* Number at risk: :math:`R'` is linear in these. :math:`R'_k` has noise of a known variance
  :math:`s_k^2`, and a share of :math:`R'_k + s_k^2 / R'_k` has no bias of first order by it.
* Rates: as without entry, from :math:`z'_{wk} \approx P_{wk} R'_k`.
* Errors: one Newton step on :math:`U = z' - P R'`, which is linear in all noise. Its covariance
  is that of sampling by bands and :math:`L V' L'`, with L the derivative of U by the counts.
* A band is *hidden* where the number at risk at its start, :math:`R'_k - \tfrac12 e'_k`, is at most
  three deviations of its noise: nothing is known of all of its hazard.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from skdpsurv.dp.types import FloatArray
from skdpsurv.survival.curves.life_table import (
    LARGEST_ERROR,
    ActuarialEstimate,
    NoisyTable,
    RateModel,
    leaving,
    masses_of,
    solved,
    unplaced_masses,
)
from skdpsurv.survival.curves.one_thread import one_thread

#: Deviations of its noise that a number at risk must exceed for the band's hazard to be known.
HIDDEN = 3.0


@dataclass(eq=False)
class EntryTable(NoisyTable):
    """Noisy tables of exits and entries of one group.

    ``entries`` are noisy counts of those who are there from the start, who enter in each band, and
    who enter at the horizon or later; ``entries_elsewhere`` are those of other groups, as
    ``elsewhere`` are their exits.
    """

    entries: FloatArray = None  # type: ignore[assignment]
    entry_variance: float = 0.0
    entries_elsewhere: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        self.n_bands = q = self.entries.size - 2
        m, size = q * self.n_outcomes, self.cells.size
        parts = [(self.cells, self.variance), (self.entries, self.entry_variance)]
        others = filter(None, (self.elsewhere, self.entries_elsewhere))
        parts += [(np.array([count]), variance) for count, variance in others]
        noisy = np.concatenate([counts for counts, _ in parts])
        spread = np.concatenate([np.full(counts.size, variance) for counts, variance in parts])
        of_exits, of_entries = np.zeros((2, noisy.size))
        of_exits[:size] = of_entries[size : size + q + 2] = 1.0
        known = [of_exits, of_entries]
        if self.elsewhere is not None:
            known = [of_exits - of_entries, of_exits.copy(), of_entries.copy()]
            known[1][-2] = known[2][-1] = 1.0
        sums = np.array(known)
        target = np.append(np.zeros(len(known) - 2), np.full(2, float(self.n_people)))
        gain = (spread * sums).T @ linalg.pinvh((sums * spread) @ sums.T)
        within = slice(size + q + 2)
        #: Counts that agree with known sums, and the covariance of their noise.
        self.agreed = (noisy - gain @ (sums @ noisy - target))[within]
        self.covariance = (np.diag(spread) - gain @ (sums * spread))[within, within]
        self.observed, self.variances = self.agreed[:m], np.full(m, self.variance)
        #: Sums of these that are exposed in each band, of shape (n_bands, n_counts).
        before = np.tril(np.ones((q, q)), -1)
        left = np.hstack([*[-before] * self.n_outcomes, np.zeros((q, 1))])
        entered = np.hstack([np.ones((q, 1)), before + 0.5 * np.eye(q), np.zeros((q, 1))])
        self.exposure_of = np.hstack([left, entered])

    def sums(self, of: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return sums of the counts, and the variances of their noise."""
        return of @ self.agreed, np.maximum((of @ self.covariance * of).sum(axis=1), 0.0)


class _ExposedModel(RateModel):
    """Expected outcomes in each band of those who are exposed in it."""

    def __init__(self, table: NoisyTable, width: FloatArray, exposed: FloatArray) -> None:
        super().__init__(table, width, shared=False)
        self.total = max(float(table.observed.sum()), 0.0)
        self.exposed = exposed

    def expected(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return expected counts, and their derivatives by each parameter."""
        masses = self.masses(parameters)
        outcome, own = leaving(masses)
        slopes = np.zeros((*masses.shape, *masses.shape))
        band = np.arange(self.table.n_bands)
        slopes[:, band, :, band] = np.moveaxis(own * self.exposed, -1, 0) * masses.T[:, :, None]
        return (outcome * self.exposed).ravel(), slopes.reshape(masses.size, masses.size)

    def spread(self, expected: FloatArray) -> FloatArray:
        """Return the variance of counts without noise: by sampling, and by lumps."""
        return expected + self.lumps(expected)


class EntryEstimate(ActuarialEstimate):
    """Estimates from tables of exits and entries, named as those without entries.

    Further attributes: ``entrants`` from the start and in each band; and ``hidden`` bands.
    """

    table: EntryTable

    @one_thread()
    def __post_init__(self) -> None:
        table, q = self.table, self.table.n_bands
        exposed, variance = table.sums(table.exposure_of)
        least = HIDDEN * np.sqrt(variance)
        nobody = exposed <= least
        at_start, noise = table.sums(np.floor(table.exposure_of))
        self.hidden = nobody | (at_start <= HIDDEN * np.sqrt(noise))
        exposed = np.maximum(np.maximum(exposed, least), 1e-9)
        self._exposed = exposed + variance / exposed
        model = _ExposedModel(table, self.width, self._exposed)
        self.mode = model.mode()
        self.masses = model.masses(self.mode)
        self.counts = model.counts(model.expected(self.mode)[0]).reshape(self.masses.shape)
        entries = table.agreed[table.cells.size :]
        entrants = np.maximum(entries, 0.0)
        self.entrants = (entrants * (max(entries.sum(), 0.0) / max(entrants.sum(), 1e-300)))[:-1]
        self.n_people = float(self.entrants.sum())
        exits = table.observed.reshape(self.masses.shape).sum(axis=0)
        self.at_risk = np.maximum(np.cumsum(entries[:-1] - np.append(0.0, exits)), 0.0)
        self.stayed = float(self.at_risk[q])
        found = masses_of(self.counts, self._exposed)
        self.hazards = np.where(nobody, 0.0, found)
        # Most are there for an unknown part of the band where entrants are more than are exposed.
        most = np.where(self.entrants[1:] > self._exposed, self.entrants[1:], 0.0)
        self.unplaced = unplaced_masses(self.hazards, self.counts[-1] + most, self._exposed)

    def counted(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return cells, likely ones, and sums of cells that are at risk in mid-band.

        Entries are scaled so that all cells have noise of one variance. Of all sums with the true
        mean, as exits and entries are equal in number, these have the least noise.
        """
        table, q = self.table, self.table.n_bands
        n_exits = table.cells.size
        scale = math.sqrt(table.variance / table.entry_variance) if table.variance else 1.0
        at_risk_of = table.exposure_of.copy()
        at_risk_of[:, : n_exits - 1] -= 0.5 * np.tile(np.eye(q), (1, table.n_outcomes))
        at_risk_of[:, n_exits:] /= scale
        surplus = np.append(np.ones(n_exits), np.full(q + 2, -1.0 / scale))
        at_risk_of -= np.outer(at_risk_of @ surplus, surplus) / (surplus @ surplus)
        entries = np.append(self.entrants, max(table.agreed[-1], 0.0))
        stayed = max(entries.sum() - self.counts.sum(), 0.0)
        likely = np.concatenate([self.counts.ravel(), [stayed], scale * entries])
        return np.append(table.cells, scale * table.entries), likely, at_risk_of

    @cached_property
    def unsmoothed(self) -> tuple[FloatArray, FloatArray]:
        """Masses after a step without the prior, and their covariance; these are in no pickle."""
        with one_thread():
            table, exposed, masses = self.table, self._exposed, self.masses
            (n_outcomes, q), size = masses.shape, masses.size
            outcome, own = leaving(masses)
            score = table.agreed[:size] - (outcome * exposed).ravel()
            by_count = -outcome.reshape(-1, 1) * np.tile(table.exposure_of, (n_outcomes, 1))
            by_count[np.diag_indices(size)] += 1.0
            covariance = by_count @ table.covariance @ by_count.T
            band = np.arange(q)
            slopes, sampling = np.zeros((2, n_outcomes, q, n_outcomes, q))
            slopes[:, band, :, band] = np.moveaxis(own * exposed, -1, 0)
            shares = outcome[:, None] * (np.eye(n_outcomes)[:, :, None] - outcome)
            sampling[:, band, :, band] = np.moveaxis(shares * exposed, -1, 0)
            covariance += sampling.reshape(size, size) + 1e-9 * np.eye(size)
            slopes = slopes.reshape(size, size)
            weighted = solved(covariance, np.hstack([slopes.T, score[:, None]]))
            information = slopes @ weighted[:, :-1]
            information[np.diag_indices(size)] += LARGEST_ERROR**-2.0
            errors = solved(information, np.eye(size))
            step = errors @ (slopes @ weighted[:, -1])
        return masses + step.reshape(masses.shape), errors
