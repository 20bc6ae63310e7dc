r"""A private logistic regression, however it is fitted: its minimisers, slope and predictions.

**The slope of predicted log odds, from public numbers alone.** It undoes a part of the penalty.
A ridge that balances much noise shrinks coefficients far more than it turns them, so that a model
which ranks well says "perhaps" of everybody. How strong the ridge is beside what n records can know
of d columns is public, and so is how little they tell of a column beside the noise:

.. math::
    b = \min(1 + r, e^4)^{w/2}, \qquad r = \frac{2 d \kappa}{n R^2}, \qquad
    w = \frac{u}{2 + u}, \qquad u = \frac{2 n \epsilon_k}{C d}

with :math:`\kappa` the ridge, R the bound on rows, C classes and :math:`\epsilon_k` for each of
their models. Where all directions of rows of length R are alike, coefficients that the ridge alone
has shrunk are short by the factor 1 + 2r. How much of what is left is noise depends on the records,
which nothing here reads: the root of 1 + r is what did well over many data sets and did little harm
where nearly all was noise (docs/benchmarks/classification).

Nothing is spent: b is a function of public numbers (docs/proofs/logistic).

**The slope, found by one private table of margins.**
A record's margin is its predicted log odds o, times 1 or -1 for its label. The table counts, in
groups of :math:`|o|` with public ends, the records whose margin is positive and those whose is not.
If b is the right slope, a share :math:`p_g`, the mean of :math:`\sigma(b\,o)` over group g, are
right, so that

.. math:: r_g(b) = (1 - p_g) N^+_g - p_g N^-_g

has mean 0, whatever the size of the group and with noise in both counts. With v the variance of
that noise, and :math:`n_g` a guess of the size, b solves

.. math::
    \sum_g \frac{n_g\,b\,\partial p_g / \partial b}{n_g p_g (1 - p_g) + v (p_g^2 + (1 - p_g)^2)}
    \,r_g(b) = \frac{\log b - \log b_0}{\tau^2},

the score of the counts' quasi-likelihood and of a prior around the public slope :math:`b_0`. All
groups have the same guess, which is public: one from their counts would bring noise in twice.

Neighbours: replace-one. Sensitivity: a record is in one cell for each output, so that replacing it
changes 2 counts by 1 for two classes, 2C for C classes with a model each. Theorem: discrete Laplace
noise on counts (docs/proofs/noise, docs/proofs/logistic); the slope is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import optimize, special

from skdpsurv.classification import budgets
from skdpsurv.classification.group_fit import Coefficients, FittedGroups, GroupFit, SignedRows
from skdpsurv.classification.private_classifier import (
    ASSUMPTIONS,
    LabelledShape,
    PrivateClassifier,
    chance,
    checked_caps,
    n_outputs,
    write_classes,
)
from skdpsurv.data.blocks import Blocks
from skdpsurv.dp.plan import Known, NoisySum, Plan, Sequential
from skdpsurv.dp.privacy_cost import Price, stated_price
from skdpsurv.dp.references import reference
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.inference import Inference, Summarised
from skdpsurv.inference.inference import NAMES
from skdpsurv.likelihoods.linear import log_odds, probability
from skdpsurv.mechanisms.perturbation import Perturbed, Problem
from skdpsurv.mechanisms.sums import Histogram
from skdpsurv.priors import Prior
from skdpsurv.release import Release, released_array

if TYPE_CHECKING:
    from skdpsurv.release.script import Script

NO_NOISE = "penalised likelihood, no noise"
#: Of the public slope: the power of 1 + r where u is large, the u at which half of it is used, the
#: largest log(1 + r).
POWER, HALF, LARGEST_LOG = 0.5, 2.0, 4.0
#: Groups of the size of log odds, narrower towards 0, as ends are cubes; and the prior standard
#: deviation of the slope's logarithm (docs/benchmarks/classification).
N_GROUPS, DEVIATION = 8, 0.5
#: A group's log odds are as many points.
N_POINTS = 4
#: Steps in which weights follow the slope.
N_STEPS = 4
#: What a slope is kept within.
LEAST_SLOPE, LARGEST_SLOPE = 0.01, 100.0


def public_slope(fit: GroupFit, epsilon: float, n_classes: int) -> float:
    """Return b, at least 1, from the plan of a fit alone."""
    (group,), (calibration,), n = fit.groups, fit.calibrations, fit.n_records
    excess = 2.0 * group.n_params * (calibration.kappa / group.bound**2) / n
    signal = 2.0 * n * epsilon / (max(n_classes, 2) * group.n_params)
    weight = signal / (HALF + signal)
    return math.exp(POWER * weight * min(math.log1p(excess), LARGEST_LOG))


@dataclass(frozen=True, eq=False)
class LogisticMinimisers(FittedGroups):
    """One model of all columns, or one for each class.

    Parameters
    ----------
    fit : GroupFit
    name : str
    slope : float
        What predicted log odds are multiplied with as long as no record says more: public.
    prior : Prior or None, default=None
        What improves the coefficients if they agree with it.
    """

    fit: GroupFit
    name: str
    slope: float
    prior: Prior | None = None

    @property
    def fits(self) -> tuple[GroupFit, ...]:  # type: ignore[override]
        """The one plan."""
        return (self.fit,)

    @property
    def noise(self) -> float:  # type: ignore[override]
        """How long the noise on gradients is, in units of the cap."""
        return self.fit.noise((1.0,))

    @property
    def assumptions(self) -> tuple[str, ...]:  # type: ignore[override]
        """What a prior promises."""
        return () if self.prior is None else self.prior.promises.assumptions()

    def stated(self) -> dict[str, Any]:
        """Return how the models were calibrated, and what a prior is."""
        prior = {} if self.prior is None else self.prior.promises.public_inputs()
        return {**self.fit.public_inputs(), "public_slope": self.slope, **prior}

    def problems(self, known: Known, records: Blocks[SignedRows]) -> list[Problem]:
        """Return the minimisations, output by output."""
        return self.fit.problems(records)

    def after(self, known: Known, found: list[Perturbed]) -> dict[str, Any]:
        """Return coefficients and intercepts, what they are worth, and their public slope."""
        fit, slope, minimisers = self.fit, self.slope, [each.coef for each in found]
        (model,), own = fit.coefficients(minimisers), {}
        if fit.calibrations[0].noise_scale:
            evidence = fit.evidence(minimisers)
            shrunk, model = model, fit.posterior_mean(model, evidence, self.prior)
            # What a prior is weighed with is not shrunk: there is nothing left to undo.
            slope = slope if np.array_equal(model.coef, shrunk.coef) else 1.0
            own = evidence.values()
        return {
            "_minimiser": found[0],
            "_model": model,
            "coef": model.coef,
            "intercept": model.intercept,
            "max_residual": fit.max_residual,
            "recalibration_slope": slope,
            **own,
        }


@dataclass(frozen=True)
class MarginTable:
    """A public layout.

    Parameters
    ----------
    largest : float
        What log odds of the released model can be, in absolute value.
    n_outputs : int
    n_records : int
        Public.
    """

    largest: float
    n_outputs: int
    n_records: int

    @property
    def query(self) -> Histogram:
        """The counts, of which a record is in one for each output."""
        return Histogram(2 * self.n_outputs)

    @property
    def ends(self) -> FloatArray:
        """Ends of the groups, shape (N_GROUPS + 1,)."""
        return np.asarray(self.largest * (np.arange(N_GROUPS + 1) / N_GROUPS) ** 3)

    def counts(self, log_odds: FloatArray, signs: FloatArray) -> IntArray:
        """Count private records."""
        group = np.searchsorted(self.ends[1:-1], np.abs(log_odds))
        cell = group + N_GROUPS * ~(log_odds * signs > 0.0)
        counts = np.bincount(cell.ravel(), minlength=2 * N_GROUPS)
        return counts.astype(np.int64).reshape(2, N_GROUPS)

    def slope(self, counts: FloatArray, price: Price, prior: float) -> float:
        """Return b."""
        right, wrong = counts
        guess = self.n_records * self.n_outputs / N_GROUPS
        variance = self.query.deviation(price) ** 2
        widths = np.diff(self.ends)[:, None]
        points = self.ends[:-1, None] + widths * (np.arange(N_POINTS) + 0.5) / N_POINTS

        log_slope = math.log(prior)
        for _ in range(N_STEPS):
            # Weights of one step are those of the last: with b in them far slopes would look
            # likely, as nothing has weight there.
            predictor = math.exp(log_slope) * points
            up, down = special.expit(predictor), special.expit(-predictor)
            p, q = up.mean(axis=1), down.mean(axis=1)
            moves = guess * (up * down * predictor).mean(axis=1)
            weight = moves / (guess * p * q + variance * (p**2 + q**2))

            def score(at: float, weight: FloatArray = weight) -> float:
                p = special.expit(math.exp(at) * points).mean(axis=1)
                excess = float(np.sum(weight * ((1.0 - p) * right - p * wrong)))
                return excess - (at - math.log(prior)) / DEVIATION**2

            log_slope = _root(score, math.log(LEAST_SLOPE), math.log(LARGEST_SLOPE))
        return min(max(math.exp(log_slope), LEAST_SLOPE), LARGEST_SLOPE)


@dataclass(frozen=True, eq=False, kw_only=True)
class Margins(NoisySum):
    """The table of a released model, and the slope that it tells of.

    Parameters
    ----------
    price : float or Concentrated
    fit : GroupFit
        Of all columns.
    """

    fit: GroupFit

    name = "a table of margins"
    theorem = reference("docs/proofs/logistic", "chaudhuri")

    def stated(self) -> dict[str, Any]:
        """Return the price."""
        return stated_price("recalibration", self.price)

    def query(self, known: Known) -> Histogram:
        """Return the counts, whatever the layout is."""
        return MarginTable(1.0, self.fit.n_outputs, self.fit.n_records).query

    def table(self, known: Known) -> MarginTable:
        """Return the layout for released coefficients."""
        fit, model = self.fit, known["_model"]
        reach = np.linalg.norm(model.coef, axis=1) * fit.data_norm + np.abs(model.intercept)
        largest = float(log_odds(reach, fit.max_residual).max())
        return MarginTable(largest, fit.n_outputs, fit.n_records)

    def ask(self, known: Known, records: Blocks[SignedRows]) -> IntArray:
        """Return exact counts."""
        fit, model, table = self.fit, known["_model"], self.table(known)

        def counts(block: SignedRows) -> IntArray:
            scores = model.each_predictor(block.within(fit.data_norm).X)
            return table.counts(log_odds(scores, fit.max_residual), block.signs.T)

        return records.map_reduce(counts)

    def after(self, known: Known, noisy: IntArray) -> dict[str, Any]:
        """Return the slope, found from one that is likely."""
        counts, slope = noisy.astype(np.float64), known["recalibration_slope"]
        return {"recalibration_slope": self.table(known).slope(counts, self.price, slope)}


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function is 0, or the end that it is nearer to 0 at."""
    if falling(low) <= 0.0:
        return low
    if falling(high) >= 0.0:
        return high
    return float(optimize.brentq(falling, low, high, xtol=1e-6))


class LogisticModel(Summarised, PrivateClassifier):
    """Base of private logistic regressions: a subclass says by which plan they are fitted."""

    def _set_fitted(self, release: Release) -> None:
        self._set_classes(release)
        shape = (n_outputs(self.classes_), release.n_features)
        self.coef_ = released_array(release, "coef", shape)
        self.intercept_ = released_array(release, "intercept", shape[:1])
        self.max_residual_ = float(checked_caps(np.array(release.values.get("max_residual")), ()))
        self.recalibration_slope_ = _checked_slope(release)
        n_common = int(bool(release.parameters.get("fit_intercept")))
        self.inference_ = None
        if not release.values.keys().isdisjoint(NAMES):
            self.inference_ = Inference.of(release, n_common + release.n_features)

    def _predicted(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        scores = Coefficients(self.coef_, self.intercept_).predictor(X)
        return scores, probability(scores, self.max_residual_, self.recalibration_slope_)

    def _one_group(self, shape: LabelledShape) -> budgets.GroupSetting:
        """Return what is public of a fit: one group of all columns."""
        every = tuple(range(shape.n_features))
        return self._group_setting(shape, (every,), (1.0,), (self._norm,))

    def _without_privacy(self, shape: LabelledShape) -> Plan:
        """Plan the fit without noise."""
        fit = budgets.unperturbed(self._one_group(shape))
        return self._as_plan(shape, [LogisticMinimisers(fit, NO_NOISE, 1.0)])

    def _as_plan(self, shape: LabelledShape, measurements: list[Any], delta: float = 0.0) -> Plan:
        unit = "mu" if delta else "epsilon"
        return Plan(
            Sequential(tuple(measurements)),
            float(self.epsilon),
            delta,
            inputs={**self._public(shape), f"{unit}_recalibration": 0.0},
            assumed=ASSUMPTIONS,
        )

    def _formula(self, script: Script) -> str:
        scores = list(map(script.linear, self.coef_, self.intercept_))
        likely = chance(script, "{}", self.max_residual_, self.recalibration_slope_)
        return write_classes(script, self.classes_, scores, likely)


def _checked_slope(release: Release) -> float:
    """Return the slope that a release holds; releases of earlier versions have none."""
    if "recalibration_slope" not in release.values:
        return 1.0
    slope = float(released_array(release, "recalibration_slope", ()))
    if not LEAST_SLOPE <= slope <= LARGEST_SLOPE:
        raise ValueError(
            "values of the release must hold a recalibration_slope between "
            f"{LEAST_SLOPE:g} and {LARGEST_SLOPE:g}."
        )
    return slope
