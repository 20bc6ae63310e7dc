r"""Measurements of logistic models: perturbed minimisers, then a table of margins.

**Minimisers**, one for each group of columns and each class. Rows are clipped to ``data_norm``;
each group of columns is clipped, scaled, and gets a constant column for the intercept:

.. math:: x \mapsto \big(\text{factor}\cdot x_{\text{columns}},\ \text{constant}\big),
    \quad \text{of norm at most } R = \sqrt{(\text{factor}\cdot\text{norm})^2 + \text{constant}^2}.

The constant counts in R and is regularised like the rest, so that the intercept is protected.
Longer rows s may be kept with weight :math:`R^2/\|s\|^2`.

**The table of margins** gives the slope of log odds o. A margin is o times 1 or -1 for the label.
Per group of :math:`|o|` it counts positive margins and others. With :math:`p_g` the mean of
:math:`\sigma(b\,o)`,

.. math:: r_g(b) = (1 - p_g) N^+_g - p_g N^-_g

has mean 0. With v the variance of the noise, and a public guess :math:`n_g` of the size, b solves

.. math::
    \sum_g \frac{n_g\,b\,\partial p_g / \partial b}{n_g p_g (1 - p_g) + v (p_g^2 + (1 - p_g)^2)}
    \,r_g(b) = \frac{\log b - \log b_0}{\tau^2}.

Neighbours: replace-one. Sensitivity: replacing a record changes 2 counts by 1 for two classes, 2C
for C classes. Theorem: discrete Laplace noise on counts (docs/proofs/noise, docs/proofs/logistic).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, special

from skdpsurv.classification.row_scales import Coefficients, RowScales
from skdpsurv.data.blocks import Blocks
from skdpsurv.dp import privacy_cost
from skdpsurv.dp.clipping import clip_rows, row_pieces, row_weights
from skdpsurv.dp.plan import GAUSSIAN, Context, NoisySum
from skdpsurv.dp.references import reference
from skdpsurv.dp.types import FloatArray, IndexArray, IntArray
from skdpsurv.likelihoods.linear import LinearBlock, Logistic, log_odds, log_odds_slope
from skdpsurv.mechanisms import perturbation
from skdpsurv.mechanisms.perturbation import Calibrated, Perturbed, Problem
from skdpsurv.mechanisms.sums import Histogram
from skdpsurv.priors import Evidence, Prior

PROOF = reference("docs/proofs/logistic", "chaudhuri")
#: Information of rows, as a share of isotropic ones at their bound (docs/benchmarks/sites).
INFORMATION_PART = 0.25
#: Groups of log odds, narrower towards 0 as their ends are cubes; points that stand for the log
#: odds of a group; and steps in which weights follow the slope.
N_GROUPS, N_POINTS, N_STEPS = 8, 4, 4
#: Prior standard deviation of the slope's logarithm (docs/benchmarks/classification).
DEVIATION = 0.5
#: Range of slopes b of the log odds.
LEAST_SLOPE, LARGEST_SLOPE = 0.01, 100.0


@dataclass(frozen=True)
class ColumnGroup:
    """The columns that one linear model sees, and how.

    Parameters
    ----------
    indices : tuple of int
        Columns of X.
    norm : float
        Public bound on the norm of these columns, in the unit of X.
    factor, constant : float
        Their scale, and the constant column; 0 for none.
    """

    indices: tuple[int, ...]
    norm: float
    factor: float
    constant: float

    @property
    def n_params(self) -> int:
        """Number of parameters: one for each column, and one for the constant."""
        return len(self.indices) + (self.constant > 0)

    @property
    def bound(self) -> float:
        """R, the largest norm of a row as the model sees it."""
        return math.hypot(self.factor * self.norm, self.constant)

    def rows(self, X: FloatArray, data_norm: float, longest: float = math.inf) -> FloatArray:
        """Return rows as the model sees them, of rows within ``data_norm`` once cut to longest."""
        seen, width = np.empty((X.shape[0], self.n_params)), len(self.indices)
        every = self.indices == tuple(range(X.shape[1]))
        for piece in row_pieces(*X.shape):  # a copy of all clipped rows would take longer
            part = clip_rows(X[piece], longest) if math.isfinite(longest) else X[piece]
            part = part if every else part[:, self.indices]
            if self.norm < data_norm:
                part = clip_rows(part, self.norm)
            np.multiply(part, self.factor, out=seen[piece, :width])
        seen[:, width:] = self.constant
        return seen

    def to_model(self, coef: FloatArray, intercept: float) -> FloatArray:
        """Return the model's parameters, from coefficients on the scale of X."""
        constant = [intercept / self.constant] if self.constant else []
        return np.append(coef / self.factor, constant)

    def from_model(self, parameters: FloatArray) -> tuple[FloatArray, float]:
        """Return coefficients on the scale of X, and the intercept."""
        coef = parameters[: len(self.indices)] * self.factor
        return coef, float(parameters[-1] * self.constant) if self.constant else 0.0


class SignedRows(NamedTuple):
    """A block of private records: rows, and signs of shape (n_outputs, n), 1 for the class."""

    X: FloatArray
    signs: FloatArray

    @property
    def n_records(self) -> int:
        """Number of records."""
        return int(self.X.shape[0])

    def clipped(self, norm: float) -> SignedRows:
        """Return the records with rows clipped to a norm; inf leaves them as they are."""
        return self._replace(X=clip_rows(self.X, norm)) if math.isfinite(norm) else self

    def rows(self, places: IndexArray | slice) -> SignedRows:
        """Return some of the records."""
        return SignedRows(self.X[places], self.signs[:, places])


@dataclass(frozen=True)
class GroupFit:
    """The plan of a fit: one calibration for each group of columns.

    Parameters
    ----------
    n_records, n_outputs : int
        1 for two classes, else their number; each output has an equal share of epsilon.
    data_norm : float
        Bound on whole rows; inf for none.
    max_residual : float
        c of the logistic loss.
    groups, calibrations : tuple
    centers : tuple of ndarray of shape (n_outputs, n_params)
        Centres of each group's ridge. Public.
    downweighting_bound : float or None, default=None
        Rows longer than ``data_norm`` are weighed, and clipped at so many times it; for one group
        of all columns. None: they are scaled down to it.
    scales : RowScales or None, default=None
        Public centres and spreads by which the records' rows were scaled.
    price : float or Concentrated, default=inf
        Price of the models of one output.
    whole : Logistic or None, default=None
        Likelihood of all groups of a row together; None: only the groups are bounded.
    """

    n_records: int
    n_outputs: int
    data_norm: float
    max_residual: float
    groups: tuple[ColumnGroup, ...]
    calibrations: tuple[Calibrated, ...]
    centers: tuple[FloatArray, ...]
    downweighting_bound: float | None = None
    scales: RowScales | None = None
    price: privacy_cost.Price = math.inf
    whole: Logistic | None = None

    @property
    def cost(self) -> privacy_cost.Cost:
        """Cost of all outputs, one after another on the same records."""
        return privacy_cost.sequential_cost([privacy_cost.cost_of(self.price)] * self.n_outputs)

    @property
    def gaussian(self) -> bool:
        """Whether the noise is Gaussian."""
        return isinstance(self.price, privacy_cost.Concentrated)

    def problems(self, records: Blocks[SignedRows]) -> list[Problem]:
        """Return the minimisations, group by group and output by output within."""
        longest = self.data_norm * (self.downweighting_bound or 1.0)
        if len(self.groups) > 1:  # one copy for all groups
            records = records.map(partial(SignedRows.clipped, norm=longest))
            longest = math.inf
        shared = [perturbation.SharedPrice(self.price) for _ in range(self.n_outputs)]
        problems = []
        for group, how, centers in zip(self.groups, self.calibrations, self.centers, strict=True):
            likelihood = Logistic(group.n_params, group.bound, self.max_residual)
            seen = records.map(partial(_seen, group, self.data_norm, longest))
            weighed = None if self.downweighting_bound is None else group
            for output, (center, price) in enumerate(zip(centers, shared, strict=True)):
                blocks = seen.map(partial(_labelled, weighed, output))
                problems.append(Problem(likelihood, blocks, how, center, price))
        return problems

    def coefficients(self, released: Iterable[FloatArray]) -> list[Coefficients]:
        """Return the models of rows as read, from minimisers in the order of :meth:`problems`."""
        models, outputs = [], iter(released)
        for group in self.groups:
            own = [group.from_model(next(outputs)) for _ in range(self.n_outputs)]
            models.append(Coefficients(*map(np.array, zip(*own, strict=True))))
        return models

    def to_features(self, models: Sequence[Coefficients]) -> list[Coefficients]:
        """Return the models on the scale of the features."""
        if self.scales is None:
            return list(models)
        return list(map(self.scales.to_features, models, [one.indices for one in self.groups]))

    def evidence(self, released: Sequence[FloatArray]) -> Evidence:
        """Return coefficients of a model of all columns, (n_outputs, n_features), with errors."""
        (group,), noise = self.groups, perturbation.ridge_and_variances(*self.calibrations)
        width = len(group.indices)
        second_moment = INFORMATION_PART * (group.factor * group.norm) ** 2 / width
        information = self.n_records * self.max_residual / 4.0 * second_moment
        minimisers = np.stack([each[:width] for each in released])
        return Evidence.of_minimiser(minimisers, information, *noise).scaled(group.factor)

    def noise(self, weights: Sequence[float]) -> float:
        """Return the length of the noise on all gradients, weighted as votes, over the cap."""
        squares = (
            group.n_params * (weight * perturbation.deviation(how)) ** 2
            for group, weight, how in zip(self.groups, weights, self.calibrations, strict=True)
        )
        return math.sqrt(math.fsum(squares)) / self.max_residual

    def public_inputs(self) -> dict[str, Any]:
        """Return cap, ridges, noise scales and steps, for the guarantee."""
        steps = [perturbation.steps_of(how) for how in self.calibrations]
        return {
            "max_residual": self.max_residual,
            "kappa": [how.kappa for how in self.calibrations],
            "noise_scale": [how.noise_scale for how in self.calibrations],
            **({"n_steps": steps} if any(steps) else {}),
        }


def _seen(group: ColumnGroup, data_norm: float, norm: float, block: SignedRows) -> SignedRows:
    return block._replace(X=group.rows(block.X, data_norm, norm))


def _labelled(weighed: ColumnGroup | None, output: int, block: SignedRows) -> LinearBlock:
    """Return rows with the labels of one output, and weights if rows are weighed."""
    weight = None if weighed is None else row_weights(block.X, weighed.bound)
    return LinearBlock(block.X, block.signs[output], weight)


class FittedGroups(perturbation.Minimisers):
    """Perturbed models of planned fits of the same records; a subclass says which fits."""

    fits: tuple[GroupFit, ...]
    pure = PROOF

    @property
    def cost(self) -> privacy_cost.Cost:
        return privacy_cost.sequential_cost(fit.cost for fit in self.fits)

    @property
    def proof(self) -> str:  # type: ignore[override]
        return GAUSSIAN if any(fit.gaussian for fit in self.fits) else self.pure

    def rests_on(self) -> list[type]:
        both = ((Logistic(1, 1.0), how) for fit in self.fits for how in fit.calibrations)
        return [*chain.from_iterable(perturbation.theorem_classes(*one) for one in both)]

    def calibrated(self, context: Context | None) -> list[Any]:
        return [
            (Logistic(own.n_params, own.bound, fit.max_residual), how, i, fit.n_outputs, whole)
            for i, fit in enumerate(self.fits)
            for whole in [fit.whole if len(fit.groups) > 1 else None]
            for own, how in zip(fit.groups, fit.calibrations, strict=True)
        ]

    def scales(self) -> list[float]:
        groups = [(group.norm, group.factor) for fit in self.fits for group in fit.groups]
        noises = [(c.kappa, c.noise_scale or 1.0) for fit in self.fits for c in fit.calibrations]
        return list(chain.from_iterable(groups + noises))


@dataclass(frozen=True, eq=False)
class LogisticMinimisers(FittedGroups):
    """One model of all columns, or one for each class.

    Parameters
    ----------
    fit, name : GroupFit, str
    slope : float
        Public factor of predicted log odds, until records say more.
    prior : Prior or None, default=None
        Improves the coefficients if they agree with it.
    """

    fit: GroupFit
    name: str
    slope: float
    prior: Prior | None = None

    @property
    def fits(self) -> tuple[GroupFit, ...]:  # type: ignore[override]
        """The plan of the fit, as the only one."""
        return (self.fit,)

    @property
    def noise(self) -> float:  # type: ignore[override]
        """Length of the noise on gradients, in units of the cap."""
        return self.fit.noise((1.0,))

    @property
    def assumptions(self) -> tuple[str, ...]:  # type: ignore[override]
        """Assumptions that the guarantee takes over from the prior, if there is one."""
        return () if self.prior is None else self.prior.promises.assumptions()

    def stated(self) -> dict[str, Any]:
        """Return how the models were calibrated, and the prior."""
        prior = {} if self.prior is None else self.prior.promises.public_inputs()
        return {**self.fit.public_inputs(), "public_slope": self.slope, **prior}

    def problems(self, context: Context, records: Blocks[SignedRows]) -> list[Problem]:
        """Return the minimisations, one after another for each output."""
        return self.fit.problems(records)

    def postprocess(self, context: Context, found: list[Perturbed]) -> dict[str, Any]:
        """Return coefficients and intercepts, their evidence, and their public slope."""
        fit, slope, minimisers = self.fit, self.slope, [each.coef for each in found]
        (model,), stated = fit.coefficients(minimisers), {}
        if fit.calibrations[0].noise_scale:
            evidence = fit.evidence(minimisers)
            sizes = 1.0 if fit.scales is None else fit.scales.scale
            stated = evidence.scaled(1.0 / sizes).values()
            if self.prior is not None:
                theirs = self.prior.evidence.scaled(sizes / log_odds_slope(fit.max_residual))
                coef = evidence.posterior_mean(model.coef, theirs)
                # A posterior mean is not shrunk: there is nothing left to undo.
                slope = slope if np.array_equal(coef, model.coef) else 1.0
                model = model._replace(coef=coef)
        (whole,) = fit.to_features([model])
        return {
            "_minimiser": found[0],
            "_model": model,
            "coef": whole.coef,
            "intercept": whole.intercept,
            **({} if fit.scales is None else fit.scales.values()),
            "max_residual": fit.max_residual,
            "recalibration_slope": slope,
            **stated,
        }


@dataclass(frozen=True)
class MarginTable:
    """The public layout of a table: the largest log odds in absolute value, outputs, records."""

    largest: float
    n_outputs: int
    n_records: int

    @property
    def query(self) -> Histogram:
        """The counts, of which a record is in one for each output."""
        return Histogram(2 * self.n_outputs)

    @property
    def ends(self) -> FloatArray:
        """Ends of the groups of absolute log odds, shape (N_GROUPS + 1,)."""
        return np.asarray(self.largest * (np.arange(N_GROUPS + 1) / N_GROUPS) ** 3)

    def counts(self, log_odds: FloatArray, signs: FloatArray) -> IntArray:
        """Return how many private records are predicted right, and wrong: (2, N_GROUPS)."""
        group = np.searchsorted(self.ends[1:-1], np.abs(log_odds))
        cell = group + N_GROUPS * ~(log_odds * signs > 0.0)
        counts = np.bincount(cell.ravel(), minlength=2 * N_GROUPS)
        return counts.astype(np.int64).reshape(2, N_GROUPS)

    def slope(self, counts: FloatArray, price: privacy_cost.Price, prior: float) -> float:
        """Return the factor b of the log odds that fits noisy counts best, given its prior."""
        right, both = counts[0], counts.sum(axis=0)
        guess = self.n_records * self.n_outputs / N_GROUPS
        variance = self.query.deviation(price) ** 2
        places = (np.arange(N_POINTS) + 0.5) / N_POINTS
        points = self.ends[:-1, None] + np.outer(np.diff(self.ends), places)
        log_slope = math.log(prior)
        for _ in range(N_STEPS):
            # Weights are those of the last step: with b in them far slopes would look likely.
            predictor = math.exp(log_slope) * points
            up, down = special.expit(predictor), special.expit(-predictor)
            p, q = up.mean(axis=1), down.mean(axis=1)
            moves = guess * (up * down * predictor).mean(axis=1)
            weight = moves / (guess * p * q + variance * (p**2 + q**2))
            most, falls = float(weight @ right), np.repeat(weight * both / N_POINTS, N_POINTS)

            def score(at: float, most: float = most, falls: FloatArray = falls) -> float:
                excess = most - float(special.expit(math.exp(at) * points.ravel()) @ falls)
                return excess - (at - math.log(prior)) / DEVIATION**2

            # The score falls: without a root in the range, the slope is at an end.
            low, high = math.log(LEAST_SLOPE), math.log(LARGEST_SLOPE)
            if score(low) <= 0.0 or score(high) >= 0.0:
                log_slope = low if score(low) <= 0.0 else high
            else:
                log_slope = float(optimize.brentq(score, low, high, xtol=1e-6))
        return min(max(math.exp(log_slope), LEAST_SLOPE), LARGEST_SLOPE)


@dataclass(frozen=True, eq=False, kw_only=True)
class Margins(NoisySum):
    """The table of margins of a released model of all columns, and the slope that follows."""

    fit: GroupFit

    name = "a table of margins"
    theorem = PROOF

    def stated(self) -> dict[str, Any]:
        """Return the price, for the guarantee."""
        return privacy_cost.stated_price("recalibration", self.price)

    def query_for(self, context: Context) -> Histogram:
        """Return the histogram query, which is the same for all released coefficients."""
        return Histogram(2 * self.fit.n_outputs)

    def table(self, context: Context) -> MarginTable:
        """Return the layout of the table, by the released coefficients."""
        fit, model = self.fit, context["_model"]
        longest = np.linalg.norm(model.coef, axis=1) * fit.data_norm + np.abs(model.intercept)
        largest = float(log_odds(longest, fit.max_residual).max())
        return MarginTable(largest, fit.n_outputs, fit.n_records)

    def exact_answer(self, context: Context, records: Blocks[SignedRows]) -> IntArray:
        """Return the exact counts of the table of margins."""
        fit, model, table = self.fit, context["_model"], self.table(context)

        def counts(block: SignedRows) -> IntArray:
            predictor = np.empty((block.n_records, fit.n_outputs))
            for piece in row_pieces(*block.X.shape):
                predictor[piece] = model.each_predictor(block.rows(piece).clipped(fit.data_norm).X)
            return table.counts(log_odds(predictor, fit.max_residual), block.signs.T)

        return records.map_reduce(counts)

    def postprocess(self, context: Context, noisy: IntArray) -> dict[str, Any]:
        """Return the slope; the earlier one is its prior."""
        counts, slope = noisy.astype(np.float64), context["recalibration_slope"]
        return {"recalibration_slope": self.table(context).slope(counts, self.price, slope)}
