r"""The actuarial life table of a noisy event-count table, and its errors.

Outcomes w (events of each cause, and censoring) in bands of time k have masses of hazard
:math:`a_{wk} = e^{\eta_{wk}} |k|`. Each cell is expected to hold :math:`E_{wk} = n\,p_{wk}(a)` of n
people. The noisy count has

.. math:: z = E (1 + \text{lump}) + \text{sampling} + \text{noise},\qquad
   \operatorname{Var} z = v + E + \tau^2 E^2 ,

with v the known variance of the noise. In a band, events have a mass :math:`a = \sum_w a_w` and
censoring has b. Alone, a share :math:`A = 1 - e^{-a}` would have an event and a share
:math:`B = 1 - e^{-b}` be censored; half of those who would do both have the event first:

.. math::
    P(\text{event } w) = S\,A\,(1 - B/2)\,a_w / a,\qquad P(\text{censored}) = S\,B\,(1 - A/2),

with S the share that enters the band; :math:`S\,e^{-a-b}` stays. This is the actuarial life table.
Without censoring, a is the product-limit estimate. If all censoring is at the end of a band, a is
too large by a factor of at most 2, in that band alone.

* Rates: the mode by Fisher scoring, with a random walk in :math:`\eta` as the prior, which smooths
  bands that noise hides and has no weight elsewhere.
* Counts: each expectation moved to the noisy count by
  :math:`(E + \tau^2 E^2) / (v + E + \tau^2 E^2)`, and all of them to their known sum. Without noise
  these are the counts, and curves made of them are product-limit estimates.
* Errors: one Newton step from the mode without the prior, in the masses themselves, and its
  covariance C. These :math:`\hat a` may be negative, have no bias from smoothing, and are close to
  normal. The interval of a cumulative hazard, :math:`\hat A(t) \pm (z\,\sqrt{w' C w} + u)`,
  allows by u for unknown times of censoring in bands that many leave.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg

from skdpsurv.dp.stated_noise import LAPLACE
from skdpsurv.dp.types import FloatArray
from skdpsurv.survival.curves.one_thread import one_thread

#: Prior standard deviations: log rates from the first band to the last, and their level around one
#: event in two per horizon.
WALK, LEVEL, TYPICAL_MASS = 1.5, 2.0, 0.5
#: Relative standard deviation of a lump: how much a band may differ from its neighbours.
LUMP = 0.2
#: Prior standard deviation of the log of a group's share.
SHARE_DEVIATION = 2.0
#: Range of log masses of hazard in a band.
LOG_MASSES = (-30.0, 4.0)
#: Scoring: number of steps, longest step, tolerance.
STEPS, LONGEST_STEP, SMALL_STEP = 60, 1.5, 1e-6
#: Share of those at risk from which times of censoring within a band matter.
MUCH = 0.25
#: Largest standard error of a mass: it means that nothing is known.
LARGEST_ERROR = 1e3


def leaving(masses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the share of those who enter each band that has each outcome in it.

    Derivatives by the masses of the same band have the shape (by, of, band).
    """
    n_outcomes, q = masses.shape
    events, b = masses[:-1], masses[-1]
    a = events.sum(axis=0)
    share = events / a
    some, lost = -np.expm1(-a), -np.expm1(-b)
    outcome = np.concatenate([share * some * (1.0 - lost / 2.0), [lost * (1.0 - some / 2.0)]])
    own = np.empty((n_outcomes, n_outcomes, q))
    by_all = np.exp(-a) * (1.0 - lost / 2.0) - some * (1.0 - lost / 2.0) / a
    own[:-1, :-1] = share * by_all
    own[np.arange(n_outcomes - 1), np.arange(n_outcomes - 1)] += some * (1.0 - lost / 2.0) / a
    own[:-1, -1] = -lost * np.exp(-a) / 2.0
    own[-1, :-1] = -share * some * np.exp(-b) / 2.0
    own[-1, -1] = np.exp(-b) * (1.0 - some / 2.0)
    return outcome, own


def outcome_probabilities(masses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the probability of each cell, and its derivatives by the logs of the masses."""
    n_outcomes, q = masses.shape
    outcome, own = leaving(masses)
    hazard = masses[:-1].sum(axis=0) + masses[-1]
    both = np.cumsum(hazard)
    entering = np.exp(hazard - both)
    probability = np.append((entering * outcome).ravel(), np.exp(-both[-1]))
    slopes = np.zeros((n_outcomes, q, n_outcomes, q))
    # All outcomes of later bands fall alike with any mass before.
    later = np.triu(np.ones((q, q)), 1)
    slopes -= (later[:, None, :] * (entering * outcome))[None]
    band = np.arange(q)
    slopes[:, band, :, band] += np.moveaxis(own * entering, -1, 0)
    end = np.full((n_outcomes * q, 1), -probability[-1])
    table = np.hstack([slopes.reshape(n_outcomes * q, n_outcomes * q), end])
    return probability, table * masses.reshape(-1, 1)


def masses_of(counts: FloatArray, at_risk: FloatArray) -> FloatArray:
    """Return the masses at which some counts of events are expected."""
    at_risk = np.maximum(at_risk, 1e-300)
    # Rounding may let more leave than are left.
    events = np.minimum(counts[:-1].sum(axis=0) / at_risk, 1.0)
    censored = np.minimum(counts[-1] / at_risk, 1.0 - events)
    # B solves B^2 - (2 - d) B + 2 c = 0, with d the difference of both shares; A = B + d.
    linear = 2.0 - (events - censored)
    root = np.sqrt(np.maximum(linear**2 - 8.0 * censored, 0.0))
    # The smaller root, without cancellation.
    lost = 4.0 * censored / np.maximum(linear + root, 1e-300)
    some = lost + events - censored
    # At the end half a person stays, so that a curve never falls to 0.
    most = 1.0 - np.minimum(0.5, 0.5 / np.maximum(at_risk, 1.0))
    total = -np.log1p(-np.clip(some, 0.0, most))
    share = counts[:-1] / np.maximum(counts[:-1].sum(axis=0), 1e-300)
    return np.asarray(total * share)


def unplaced_masses(masses: FloatArray, censored: FloatArray, at_risk: FloatArray) -> FloatArray:
    """Return possible errors of the events' mass in bands by unknown times of censoring."""
    lost = np.minimum(censored / np.maximum(at_risk, 1e-300), 1.0)
    return np.where(lost > MUCH, masses.sum(axis=0) * lost / 2.0, 0.0)


@dataclass(eq=False)
class NoisyTable:
    """A noisy event-count table of one group.

    ``cells`` holds outcomes by band, and those who stay, with noise of a ``variance``; ``n_people``
    counts all groups; ``elsewhere`` is the noisy count of people in other groups, and its variance;
    ``law`` is that of the noise in a cell of one group.
    """

    cells: FloatArray
    n_outcomes: int
    variance: float
    n_people: int
    elsewhere: tuple[float, float] | None = None
    law: str = LAPLACE

    def __post_init__(self) -> None:
        self.n_bands = (self.cells.size - 1) // self.n_outcomes
        #: Noisy counts, of cells and of people in other groups, and variances of their noise.
        count, variance = self.elsewhere or ([], [])
        self.observed = np.append(self.cells, count)
        self.variances = np.append(np.full(self.cells.size, self.variance), variance)


@dataclass(eq=False)
class ActuarialEstimate:
    """Estimates from a noisy table, with arrays of shape (n_outcomes, n_bands).

    ``counts`` of outcomes and ``stayed`` at the horizon are not negative; ``masses`` of hazard are
    smoothed and positive.
    """

    table: NoisyTable
    width: FloatArray

    @one_thread()
    def __post_init__(self) -> None:
        model = RateModel(self.table, self.width)
        #: Logs of rates, and of a group's share.
        self.mode = model.mode()
        self.masses = model.masses(self.mode)
        counts = model.counts(model.expected(self.mode)[0])
        self.counts = counts[: self.masses.size].reshape(self.masses.shape)
        self.stayed = float(counts[self.masses.size])
        self.n_people = float(self.counts.sum()) + self.stayed
        #: People who enter at the start, and in each band.
        self.entrants = np.append(self.n_people, np.zeros(self.table.n_bands))
        #: People at the start of each band, and at the end of the last.
        gone = np.append(0.0, np.cumsum(self.counts.sum(axis=0)))
        self.at_risk = np.maximum(self.n_people - gone, 0.0)
        #: Masses of hazard of events at which the counts are expected.
        self.hazards = masses_of(self.counts, self.at_risk[:-1])
        self.unplaced = unplaced_masses(self.hazards, self.counts[-1], self.at_risk[:-1])

    def counted(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return cells, likely ones, and sums of cells that are at risk in mid-band."""
        q = self.table.n_bands
        later = np.triu(np.ones((q, q)), 1) + 0.5 * np.eye(q)
        likely = np.append(self.counts.ravel(), self.stayed)
        at_risk_of = np.hstack([*[later] * self.table.n_outcomes, np.ones((q, 1))])
        return self.table.cells, likely, at_risk_of

    @cached_property
    def unsmoothed(self) -> tuple[FloatArray, FloatArray]:
        """Masses after a step without the prior, and their covariance; these are in no pickle."""
        with one_thread():
            expected, slopes = RateModel(self.table, self.width).expected(self.mode)
            n_masses = self.masses.size
            # By the masses themselves instead of their logs.
            slopes[:n_masses] /= self.masses.ravel()[:, None]
            weights = 1.0 / np.maximum(self.table.variances + expected, 1e-9)
            information = (slopes * weights) @ slopes.T
            information[np.diag_indices_from(information)] += LARGEST_ERROR**-2.0
            score = slopes @ (weights * (self.table.observed - expected))
            covariance = solved(information, np.eye(len(information)))
            step = (covariance @ score)[:n_masses].reshape(self.masses.shape)
        return self.masses + step, covariance[:n_masses, :n_masses].copy()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "unsmoothed"}


class RateModel:
    """Expected counts, by logs of rates and, with other groups, of the group's share."""

    def __init__(self, table: NoisyTable, width: FloatArray, *, shared: bool = True) -> None:
        self.table = table
        self.total = float(table.n_people)
        self.log_width = np.tile(np.log(width / width.sum()), table.n_outcomes)
        q = table.n_bands
        walk = np.diff(np.eye(q), axis=0)
        one = walk.T @ walk * (q / WALK**2) + np.full((q, q), (q * LEVEL) ** -2.0)
        self.precision = linalg.block_diag(*[one] * table.n_outcomes)
        self.start = np.full(self.log_width.size, np.log(TYPICAL_MASS))
        if shared and table.elsewhere is not None:
            self.precision = linalg.block_diag(self.precision, SHARE_DEVIATION**-2.0)
            self.start = np.append(self.start, np.log(0.5))

    def masses(self, parameters: FloatArray) -> FloatArray:
        """Return masses of hazard, of shape (n_outcomes, n_bands)."""
        logs = parameters[: self.log_width.size] + self.log_width
        return np.exp(np.clip(logs, *LOG_MASSES)).reshape(self.table.n_outcomes, -1)

    def expected(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return expected counts, and their derivatives by each parameter."""
        probability, slopes = outcome_probabilities(self.masses(parameters))
        n = float(self.table.n_people)
        if self.table.elsewhere is None:
            return n * probability, n * slopes
        n_here = n * float(np.exp(min(parameters[-1], 0.0)))
        here = n_here * probability
        by_mass = np.pad(n_here * slopes, ((0, 0), (0, 1)))
        return np.append(here, n - n_here), np.vstack([by_mass, np.append(here, -n_here)])

    def mode(self) -> FloatArray:
        """Return the posterior mode of the parameters."""
        parameters = self.start
        for number in range(STEPS):
            expected, slopes = self.expected(parameters)
            weights = 1.0 / (self.table.variances + self.spread(expected) + 1e-9)
            away = self.table.observed - expected
            score = slopes @ (weights * away) - self.precision @ (parameters - self.start)
            information = (slopes * weights) @ slopes.T + self.precision
            step = solved(information, score)
            largest = float(np.max(np.abs(step)))
            # Weights depend on the parameters: shorter steps end cycles.
            longest = LONGEST_STEP / (1 + number // 15)
            parameters = parameters + step * min(1.0, longest / max(largest, 1e-300))
            if largest < SMALL_STEP:
                break
        return parameters

    def spread(self, expected: FloatArray) -> FloatArray:
        """Return the variance of counts without noise: by sampling, and by lumps."""
        lumps = self.lumps(expected)
        if self.table.elsewhere is not None:
            lumps[-1] = 0.0
        return expected + lumps

    def lumps(self, expected: FloatArray) -> FloatArray:
        """Return the variance by which bands may differ from their neighbours."""
        return np.asarray((LUMP * expected) ** 2)

    def counts(self, expected: FloatArray) -> FloatArray:
        """Return posterior means of the counts, not negative and of the known sum."""
        spread, noise = self.spread(expected), self.table.variances
        whole = np.maximum(spread + noise, 1e-300)
        counts = expected + spread / whole * (self.table.observed - expected)
        # The difference from the known sum is shared by posterior variances.
        unknown = spread * noise / whole
        counts += unknown * (self.total - counts.sum()) / max(unknown.sum(), 1e-300)
        counts = np.maximum(counts, 0.0)
        if not counts.sum() > 0.0:  # without noise and without anybody
            counts = expected
        return np.asarray(counts * (self.total / counts.sum()))


def solved(information: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a positive system, whatever its scales, without LAPACK's warnings."""
    size = np.sqrt(np.diag(information))
    scaled = information / np.outer(size, size) + 1e-13 * np.eye(len(size))
    factor = linalg.cho_factor(scaled, lower=True, check_finite=False)
    by = size if right.ndim == 1 else size[:, None]
    return np.ascontiguousarray(linalg.cho_solve(factor, right / by, check_finite=False) / by)
