r"""What a noisy table of exits says of the people in it, and of those they were drawn from.

Let ways out be w (events of each cause, and censoring), bands of time k, and
:math:`a_{wk} = e^{\eta_{wk}} |k|` the mass of hazard of way w in band k. Of :math:`n` people
:math:`E_{wk} = n\,p_{wk}(a)` are expected in each cell, and what is seen,
:math:`z_{wk}`, has them, what sampling adds, and noise of a known variance v:

.. math:: z = E (1 + \text{lump}) + \text{sampling} + \text{noise},\qquad
   \operatorname{Var} z = v + E + \tau^2 E^2 .

In a band, events come with a mass of hazard :math:`a = \sum_w a_w` over their kinds w, and
censoring with b. Alone, a part :math:`A = 1 - e^{-a}` would have an event and a part
:math:`B = 1 - e^{-b}` be censored; of those who would do both one half do the one first:

.. math::
    P(\text{event } w) = S\,A\,(1 - B/2)\,a_w / a,\qquad P(\text{censored}) = S\,B\,(1 - A/2),

with S the part that enters the band; :math:`S\,e^{-a-b}` stays. That is the actuarial life table.
If nobody is censored a is the product-limit estimate, and if all who are censored leave at the end
of a band, as at the end of a study, a is too large by a factor of at most 2, in that band alone.

Three things follow, all from the table and public numbers.

* Rates: a random walk in :math:`\eta` is the prior, and Fisher scoring finds its mode. Where noise
  hides a band its neighbours say what was there; where it does not, the walk is lost in the data.
* Counts: each cell's expectation moved to the noisy count by the part of it that is not noise,
  :math:`(E + \tau^2 E^2) / (v + E + \tau^2 E^2)`, and all of them to their known sum. Without noise
  these are the counts themselves, so that curves made of them are product-limit estimates.
* Errors: one Newton step from the mode without the prior, in the masses a themselves, which may
  become negative; and its covariance. These have no bias from smoothing, and a mass of 0 is among
  what they hold to be possible: intervals are made of them.

The errors of the masses :math:`\hat a` of the last kind are close to normal, of a known covariance
C: each is a sum over many cells, whatever the law of one cell's noise. A cumulative hazard is a sum
of masses, and its interval :math:`\hat A(t) \pm (z\,\sqrt{w' C w} + u)`, where u allows for what
is not known of when people were censored in bands that many leave; that of survival is its image,
within 0 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, special

from skdpsurv.dp.types import FloatArray


def leaving(masses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the probability of each cell, and its derivatives by the logs of the masses."""
    n_ways, q = masses.shape
    events, b = masses[:-1], masses[-1]
    a = events.sum(axis=0)
    share = events / a
    some, lost = -np.expm1(-a), -np.expm1(-b)
    both = np.cumsum(a + b)
    entering = np.exp(a + b - both)
    way = np.concatenate([share * some * (1.0 - lost / 2.0), [lost * (1.0 - some / 2.0)]])
    probability = np.append((entering * way).ravel(), np.exp(-both[-1]))

    # Of a way out in the same band, by each mass: (by, of, band).
    own = np.empty((n_ways, n_ways, q))
    by_all = np.exp(-a) * (1.0 - lost / 2.0) - some * (1.0 - lost / 2.0) / a
    own[:-1, :-1] = share * by_all
    own[np.arange(n_ways - 1), np.arange(n_ways - 1)] += some * (1.0 - lost / 2.0) / a
    own[:-1, -1] = -lost * np.exp(-a) / 2.0
    own[-1, :-1] = -share * some * np.exp(-b) / 2.0
    own[-1, -1] = np.exp(-b) * (1.0 - some / 2.0)
    slopes = np.zeros((n_ways, q, n_ways, q))
    # What leaves in a later band is less by as much, whichever way more leave before.
    later = np.triu(np.ones((q, q)), 1)
    slopes -= (later[:, None, :] * (entering * way))[None]
    band = np.arange(q)
    slopes[:, band, :, band] += np.moveaxis(own * entering, -1, 0)
    end = np.full((n_ways * q, 1), -probability[-1])
    table = np.hstack([slopes.reshape(n_ways * q, n_ways * q), end])
    return probability, table * masses.reshape(-1, 1)


def masses_of(counts: FloatArray, at_risk: FloatArray) -> FloatArray:
    """Return the masses that expect some counts of events: the inverse of the law."""
    at_risk = np.maximum(at_risk, 1e-300)
    # Where next to nobody is left, rounding may have more leave.
    events = np.minimum(counts[:-1].sum(axis=0) / at_risk, 1.0)
    censored = np.minimum(counts[-1] / at_risk, 1.0 - events)
    # B solves B^2 - (2 - d) B + 2 c = 0, with d the difference of both parts; A = B + d.
    linear = 2.0 - (events - censored)
    root = np.sqrt(np.maximum(linear**2 - 8.0 * censored, 0.0))
    # The smaller root, without cancellation.
    lost = 4.0 * censored / np.maximum(linear + root, 1e-300)
    some = lost + events - censored
    # Of the last ones, half a person stays: a curve that may not be 0 is none that ends.
    most = 1.0 - np.minimum(0.5, 0.5 / np.maximum(at_risk, 1.0))
    total = -np.log1p(-np.clip(some, 0.0, most))
    share = counts[:-1] / np.maximum(counts[:-1].sum(axis=0), 1e-300)
    return np.asarray(total * share)


#: How far log rates walk from the first band to the last, and are from one event in two per
#: horizon; standard deviations.
WALK, LEVEL, TYPICAL_MASS = 1.5, 2.0, 0.5
#: Standard deviation of a lump: how much a band may differ from its neighbours, in parts of it.
LUMP = 0.2
#: Of the log of a group's share.
SHARE_DEVIATION = 2.0
#: Masses of hazard between e^-30 and e^4 in a band.
LOG_MASSES = (-30.0, 4.0)
#: Scoring: steps, how long they are at most, and when it ends.
STEPS, LONGEST_STEP, SMALL_STEP = 60, 1.5, 1e-6
#: A part of those at risk in a band whose leaving must not be taken to be even.
MUCH = 0.25
#: Standard errors of masses are at most this: that is to know nothing.
LARGEST_ERROR = 1e3


@dataclass(frozen=True, eq=False)
class Table:
    """A noisy table of one group.

    Parameters
    ----------
    cells : ndarray of shape (n_ways * n_bands + 1,)
        Noisy counts: ways out by band, and those who stay.
    n_ways : int
    variance : float
        Of the noise in each cell.
    n_people : int
        In all groups, which is public.
    elsewhere : (float, float) or None
        Noisy count of people in other groups, and its variance. None: there are no others.
    """

    cells: FloatArray
    n_ways: int
    variance: float
    n_people: int
    elsewhere: tuple[float, float] | None = None

    @property
    def n_bands(self) -> int:
        """Bands of time."""
        return (self.cells.size - 1) // self.n_ways

    @property
    def seen(self) -> FloatArray:
        """All that was counted: cells, and people in other groups."""
        return self.cells if self.elsewhere is None else np.append(self.cells, self.elsewhere[0])

    @property
    def variances(self) -> FloatArray:
        """Of the noise in each."""
        own = np.full(self.cells.size, self.variance)
        return own if self.elsewhere is None else np.append(own, self.elsewhere[1])


@dataclass(frozen=True, eq=False)
class ExitFit:
    """What follows from a table.

    Parameters
    ----------
    counts : ndarray of shape (n_ways, n_bands)
        People who left, of those in the table: not negative.
    stayed : float
        People who stayed to the horizon.
    masses : ndarray of shape (n_ways, n_bands)
        Smooth masses of hazard: positive.
    free : ndarray of shape (n_ways, n_bands)
        Masses of hazard that were not smoothed.
    covariance : ndarray of shape (n_ways * n_bands, n_ways * n_bands)
        Of these, by sampling and by noise.
    """

    counts: FloatArray
    stayed: float
    masses: FloatArray
    free: FloatArray
    covariance: FloatArray

    @property
    def n_people(self) -> float:
        """In the table."""
        return float(self.counts.sum()) + self.stayed

    @property
    def at_risk(self) -> FloatArray:
        """People at the start of each band, and at the end of the last."""
        gone = np.cumsum(self.counts.sum(axis=0))
        return np.maximum(self.n_people - np.append(0.0, gone), 0.0)

    @property
    def hazards(self) -> FloatArray:
        """Masses of hazard of the events that would have led to the counts."""
        return masses_of(self.counts, self.at_risk[:-1])

    @property
    def unplaced(self) -> FloatArray:
        """How far masses of all events may be off, by when people were censored, in each band.

        Where a quarter or more is censored in a band, as at the end of a study: whether that was
        early or late in it is not known. Elsewhere it is little, and to either side.
        """
        lost = np.minimum(self.counts[-1] / np.maximum(self.at_risk[:-1], 1e-300), 1.0)
        return np.where(lost > MUCH, self.hazards.sum(axis=0) * lost / 2.0, 0.0)


def fit_exits(table: Table, width: FloatArray) -> ExitFit:
    """Fit a table."""
    model = _Model(table, width)
    parameters = model.mode()
    expected, slopes = model.expected(parameters)
    masses = model.masses(parameters)
    counts = model.counts(expected)
    shape = masses.shape

    # By the masses themselves instead of their logs.
    n_masses = masses.size
    slopes[:n_masses] /= masses.ravel()[:, None]
    weights = 1.0 / np.maximum(table.variances + expected, 1e-9)
    information = (slopes * weights) @ slopes.T
    information[np.diag_indices_from(information)] += LARGEST_ERROR**-2.0
    score = slopes @ (weights * (table.seen - expected))
    covariance = _solved(information, np.eye(len(information)))
    step = covariance @ score
    return ExitFit(
        counts=counts[:n_masses].reshape(shape),
        stayed=float(counts[n_masses]),
        masses=masses,
        free=masses + step[:n_masses].reshape(shape),
        covariance=covariance[:n_masses, :n_masses].copy(),
    )


class _Model:
    """Expected counts, by logs of rates and, if there are other groups, of the group's share."""

    def __init__(self, table: Table, width: FloatArray) -> None:
        self.table = table
        self.log_width = np.tile(np.log(width / width.sum()), table.n_ways)
        q = table.n_bands
        walk = np.diff(np.eye(q), axis=0)
        one = walk.T @ walk * (q / WALK**2) + np.full((q, q), (q * LEVEL) ** -2.0)
        self.precision = linalg.block_diag(*[one] * table.n_ways)
        self.start = np.full(self.log_width.size, np.log(TYPICAL_MASS))
        if table.elsewhere is not None:
            self.precision = linalg.block_diag(self.precision, SHARE_DEVIATION**-2.0)
            self.start = np.append(self.start, np.log(0.5))

    def masses(self, parameters: FloatArray) -> FloatArray:
        """Return masses of hazard, of shape (n_ways, n_bands)."""
        logs = parameters[: self.log_width.size] + self.log_width
        return np.exp(np.clip(logs, *LOG_MASSES)).reshape(self.table.n_ways, -1)

    def expected(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return expected counts, and their derivatives by each parameter."""
        masses = self.masses(parameters)
        probability, slopes = leaving(masses)
        n = float(self.table.n_people)
        if self.table.elsewhere is None:
            return n * probability, n * slopes
        n_here = n * float(np.exp(min(parameters[-1], 0.0)))
        here, by_mass = n_here * probability, n_here * slopes
        by_share = np.append(here, -n_here)
        nothing = np.zeros((len(slopes), 1))
        return np.append(here, n - n_here), np.vstack([np.hstack([by_mass, nothing]), by_share])

    def mode(self) -> FloatArray:
        """Return the most plausible parameters."""
        parameters = self.start
        for number in range(STEPS):
            expected, slopes = self.expected(parameters)
            weights = 1.0 / (self.table.variances + self.spread(expected) + 1e-9)
            away = self.table.seen - expected
            score = slopes @ (weights * away) - self.precision @ (parameters - self.start)
            information = (slopes * weights) @ slopes.T + self.precision
            step = _solved(information, score)
            largest = float(np.max(np.abs(step)))
            # Weights depend on the parameters: shorter steps end what may go around in circles.
            longest = LONGEST_STEP / (1 + number // 15)
            parameters = parameters + step * min(1.0, longest / max(largest, 1e-300))
            if largest < SMALL_STEP:
                break
        return parameters

    def spread(self, expected: FloatArray) -> FloatArray:
        """Return the variance of counts without noise: by sampling, and by lumps."""
        lumps = (LUMP * expected) ** 2
        if self.table.elsewhere is not None:
            lumps[-1] = 0.0
        return expected + lumps

    def counts(self, expected: FloatArray) -> FloatArray:
        """Return what was likely counted, by all that is known."""
        spread, noise = self.spread(expected), self.table.variances
        whole = np.maximum(spread + noise, 1e-300)
        found = expected + spread / whole * (self.table.seen - expected)
        # What is known of each is moved to the known sum, by as much as it is not known.
        unknown = spread * noise / whole
        total = float(self.table.n_people)
        found += unknown * (total - found.sum()) / max(unknown.sum(), 1e-300)
        found = np.maximum(found, 0.0)
        if not found.sum() > 0.0:  # of a table without noise and without anybody
            found = expected
        return np.asarray(found * (total / found.sum()))


def _solved(information: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a positive system, whatever its scales; LAPACK's warnings are of no use here."""
    size = np.sqrt(np.diag(information))
    scaled = information / np.outer(size, size) + 1e-13 * np.eye(len(size))
    factor = linalg.cho_factor(scaled, lower=True, check_finite=False)
    by = size if right.ndim == 1 else size[:, None]
    return np.ascontiguousarray(linalg.cho_solve(factor, right / by, check_finite=False) / by)


class HazardLaw:
    """Hazards of one group, as far as they are known.

    Parameters
    ----------
    fit : ExitFit
    ends : ndarray of shape (n_bands,)
    """

    def __init__(self, fit: ExitFit, ends: FloatArray) -> None:
        self.fit = fit
        self.ends = ends

    def elapsed(self, times: FloatArray) -> FloatArray:
        """Return the part of each band that is before each time, shape (n_times, n_bands)."""
        starts = np.append(0.0, self.ends[:-1])
        parts = (times[:, None] - starts) / (self.ends - starts)
        return np.clip(parts, 0.0, 1.0)

    def between(self, times: FloatArray, at_ends: FloatArray) -> FloatArray:
        """Return cumulated hazards at any times, of those at the ends of bands: in proportion."""
        nothing = np.zeros((*at_ends.shape[:-1], 1))
        cumulated = np.concatenate([nothing, at_ends], axis=-1)
        band = np.clip(np.searchsorted(self.ends, times), 0, self.ends.size - 1)
        starts = np.append(0.0, self.ends)[band]
        part = np.clip((times - starts) / (self.ends[band] - starts), 0.0, 1.0)
        # As a sum of both ends: exactly either of them where it is that time.
        return cumulated[..., band] * (1.0 - part) + cumulated[..., band + 1] * part

    def survival_interval(
        self, times: FloatArray, level: float, n_causes: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return pointwise intervals of survival from the first causes."""
        q = self.ends.size
        elapsed = self.elapsed(times)
        causes = np.tile(elapsed, n_causes)
        covariance = self.fit.covariance[: n_causes * q, : n_causes * q]
        hazard = elapsed @ self.fit.free[:n_causes].sum(axis=0)
        error = np.sqrt(np.einsum("ti,ij,tj->t", causes, covariance, causes, optimize=True))
        half = special.ndtri((1.0 + level) / 2.0) * error + elapsed @ self.fit.unplaced
        return np.exp(-np.maximum(hazard + half, 0.0)), np.exp(-np.maximum(hazard - half, 0.0))

    def draws(self, n_draws: int, generator: np.random.Generator) -> FloatArray:
        """Return masses that may be the true ones, of shape (n_draws, n_ways, n_bands).

        Some are negative: they are those of the law above, which has no bias.
        """
        values, vectors = linalg.eigh(self.fit.covariance)
        normal = generator.standard_normal((n_draws, values.size))
        away = (normal * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        return self.fit.free + away.reshape(n_draws, *self.fit.free.shape)
