r"""Logistic models of one set of records: one for each group of columns and each class.

A plan is made from public numbers alone, before anything is charged: it knows what each model will
see of a record, and the scale of its noise. :mod:`skdpsurv.classification.budgets` makes plans.

A record's row is clipped to ``data_norm``; each group of columns is clipped to a bound of its own,
scaled, and gets a constant column for the intercept:

.. math:: x \mapsto \big(\text{factor}\cdot x_{\text{columns}},\ \text{constant}\big),
    \qquad \text{of norm at most } R = \sqrt{(\text{factor}\cdot\text{norm})^2 + \text{constant}^2}.

The constant counts in R and is regularised like the rest: an intercept outside the norm would be
released without protection.

Longer columns may be kept as they are where their record counts less often: :math:`R^2/\|s\|^2`
times, s being all that the model sees of it, the constant too. Those within the bound count once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from skdpsurv.data.blocks import Blocks
from skdpsurv.data.shape import row_products
from skdpsurv.dp import clip_rows, row_weights
from skdpsurv.dp.plan import GAUSSIAN
from skdpsurv.dp.privacy_cost import Concentrated, Cost, Price, cost_of, sequential_cost
from skdpsurv.dp.references import reference
from skdpsurv.dp.types import FloatArray, IndexArray
from skdpsurv.likelihoods.linear import LinearBlock, Logistic, log_odds_slope
from skdpsurv.mechanisms.perturbation import (
    Calibrated,
    Minimisers,
    Problem,
    SharedPrice,
    deviation,
    steps_of,
)
from skdpsurv.priors import Evidence, Prior

#: What rows tell of a coefficient beside what they would if all directions of rows within their
#: bound were alike (docs/benchmarks/priors).
INFORMATION_PART = 0.25


@dataclass(frozen=True)
class ColumnGroup:
    """The columns that one linear model sees, and how.

    Parameters
    ----------
    indices : tuple of int
        Columns of X.
    norm : float
        Public bound on the norm of these columns, in the unit of X.
    factor : float
        What they are multiplied with.
    constant : float
        The constant column; 0 for none.
    """

    indices: tuple[int, ...]
    norm: float
    factor: float
    constant: float

    @property
    def n_params(self) -> int:
        """Columns, and one for the constant."""
        return len(self.indices) + (self.constant > 0)

    @property
    def bound(self) -> float:
        """R, the largest norm of what the model sees of a record."""
        return math.hypot(self.factor * self.norm, self.constant)

    def rows(self, X: FloatArray, data_norm: float) -> FloatArray:
        """Return what the model sees of rows that are within ``data_norm`` already."""
        part = X if self.indices == tuple(range(X.shape[1])) else X[:, self.indices]
        if self.norm < data_norm:
            part = clip_rows(part, self.norm)
        seen = np.empty((X.shape[0], self.n_params))
        np.multiply(part, self.factor, out=seen[:, : len(self.indices)])
        seen[:, len(self.indices) :] = self.constant
        return seen

    def to_model(self, coef: FloatArray, intercept: float) -> FloatArray:
        """Return parameters of the model that predict as coefficients on the scale of X do."""
        constant = [intercept / self.constant] if self.constant else []
        return np.append(coef / self.factor, constant)

    def from_model(self, parameters: FloatArray) -> tuple[FloatArray, float]:
        """Return coefficients on the scale of X, and the intercept."""
        coef = parameters[: len(self.indices)] * self.factor
        return coef, float(parameters[-1] * self.constant) if self.constant else 0.0


class Coefficients(NamedTuple):
    """Linear models on the scale of X: coef (n_outputs, n_columns), intercept (n_outputs,)."""

    coef: FloatArray
    intercept: FloatArray

    def predictor(self, X: FloatArray) -> FloatArray:
        """Return linear predictors, of shape (n_samples, n_outputs)."""
        return np.asarray(X @ self.coef.T + self.intercept)

    def each_predictor(self, X: FloatArray) -> FloatArray:
        """Return the same, where no row's may depend on another row, not even in its last digit."""
        products = [row_products(X, coef) for coef in self.coef]
        return np.stack(products, axis=1) + self.intercept


class SignedRows(NamedTuple):
    """A block of private records.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    signs : ndarray of shape (n_outputs, n)
        1 for the class of an output, -1 for the rest.
    """

    X: FloatArray
    signs: FloatArray

    @property
    def n_records(self) -> int:
        """How many records there are."""
        return int(self.X.shape[0])

    def within(self, norm: float) -> SignedRows:
        """Return the records with rows clipped to a norm; inf leaves them as they are."""
        return self._replace(X=clip_rows(self.X, norm)) if math.isfinite(norm) else self

    def rows(self, places: IndexArray) -> SignedRows:
        """Return some of the records."""
        return SignedRows(self.X[places], self.signs[:, places])


@dataclass(frozen=True)
class GroupFit:
    """The plan of a fit.

    Parameters
    ----------
    n_records : int
    n_outputs : int
        1 for two classes, else their number; each output has an equal share of epsilon.
    data_norm : float
        Bound on whole rows; inf for none.
    max_residual : float
        c of the logistic loss.
    groups : tuple of ColumnGroup
    calibrations : tuple
        One for each group.
    centers : tuple of ndarray of shape (n_outputs, n_params)
        What the models of each group are shrunk towards. Public.
    reach : float or None, default=None
        Rows longer than ``data_norm`` are weighed, and clipped at so many times it; for one group
        of all columns. None: they are scaled down to it.
    price : float or Concentrated, default=inf
        What the models of each output cost together.
    """

    n_records: int
    n_outputs: int
    data_norm: float
    max_residual: float
    groups: tuple[ColumnGroup, ...]
    calibrations: tuple[Calibrated, ...]
    centers: tuple[FloatArray, ...]
    reach: float | None = None
    price: Price = math.inf

    @property
    def cost(self) -> Cost:
        """Of the models of all outputs: the same records, one output after another."""
        return sequential_cost([cost_of(self.price)] * self.n_outputs)

    @property
    def gaussian(self) -> bool:
        """Whether noise is Gaussian."""
        return isinstance(self.price, Concentrated)

    def problems(self, records: Blocks[SignedRows]) -> list[Problem]:
        """Return the minimisations, group by group and output by output within.

        They are what is solved, and what an audit attacks.
        """
        longest = self.data_norm * (1.0 if self.reach is None else self.reach)
        clipped = records.map(lambda block: block.within(longest))
        shared = [SharedPrice(self.price) for _ in range(self.n_outputs)]
        problems = []
        for group, how, centers in zip(self.groups, self.calibrations, self.centers, strict=True):
            likelihood = Logistic(group.n_params, group.bound, self.max_residual)
            seen = clipped.map(partial(_seen, group, self.data_norm))
            weighed = None if self.reach is None else group
            for output, (center, price) in enumerate(zip(centers, shared, strict=True)):
                blocks = seen.map(partial(_labelled, weighed, output))
                problems.append(Problem(likelihood, blocks, how, center, price))
        return problems

    def coefficients(self, released: Iterable[FloatArray]) -> list[Coefficients]:
        """Return what was released, in the order of :meth:`problems`, on the scale of X."""
        models, outputs = [], iter(released)
        for group in self.groups:
            own = [group.from_model(next(outputs)) for _ in range(self.n_outputs)]
            models.append(Coefficients(*map(np.array, zip(*own, strict=True))))
        return models

    def evidence(self, released: Sequence[FloatArray]) -> Evidence:
        """Return what a model of all columns says of its coefficients, (n_outputs, n_features)."""
        (group,), (calibration,) = self.groups, self.calibrations
        width = len(group.indices)
        second_moment = INFORMATION_PART * (group.factor * group.norm) ** 2 / width
        information = self.n_records * self.max_residual / 4.0 * second_moment
        minimisers = np.stack([each[:width] for each in released])
        return Evidence.of_minimiser(minimisers, information, calibration).scaled(group.factor)

    def posterior_mean(
        self, model: Coefficients, own: Evidence, prior: Prior | None
    ) -> Coefficients:
        """Return a model of all columns, with the coefficients that it has beside a prior."""
        if prior is None:
            return model
        theirs = prior.evidence.scaled(1.0 / log_odds_slope(self.max_residual))
        return model._replace(coef=own.posterior_mean(model.coef, theirs))

    def noise(self, weights: Sequence[float]) -> float:
        """Return how long the noise on all gradients is, in units of the cap.

        Laws are compared by it. Groups count by what their votes do.
        """
        squares = (
            group.n_params * (weight * deviation(how)) ** 2
            for group, weight, how in zip(self.groups, weights, self.calibrations, strict=True)
        )
        return math.sqrt(math.fsum(squares)) / self.max_residual

    def scales(self) -> list[float]:
        """Return the public numbers that must be neither huge nor tiny."""
        of_groups = [span for group in self.groups for span in (group.norm, group.factor)]
        noises = [(how.kappa, how.noise_scale or 1.0) for how in self.calibrations]
        return [*of_groups, *chain.from_iterable(noises)]

    def public_inputs(self) -> dict[str, Any]:
        """Return how epsilon was spent."""
        steps = [steps_of(how) for how in self.calibrations]
        return {
            "max_residual": self.max_residual,
            "kappa": [how.kappa for how in self.calibrations],
            "noise_scale": [how.noise_scale for how in self.calibrations],
            **({"n_steps": steps} if any(steps) else {}),
        }


class FittedGroups(Minimisers):
    """Perturbed models of planned fits, each of the same records. A subclass says of which fits."""

    fits: tuple[GroupFit, ...]
    pure = reference("docs/proofs/logistic", "chaudhuri")

    @property
    def cost(self) -> Cost:
        """What the models were calibrated for, together."""
        return sequential_cost(fit.cost for fit in self.fits)

    @property
    def proof(self) -> str:  # type: ignore[override]
        """Where it is proved."""
        return GAUSSIAN if any(fit.gaussian for fit in self.fits) else self.pure

    def scales(self) -> list[float]:
        """Return the public numbers that must be neither huge nor tiny."""
        return [span for fit in self.fits for span in fit.scales()]


def _seen(group: ColumnGroup, data_norm: float, block: SignedRows) -> SignedRows:
    """Return what a model sees of rows within the bound, or of longer ones to be weighed."""
    return block._replace(X=group.rows(block.X, data_norm))


def _labelled(weighed: ColumnGroup | None, output: int, block: SignedRows) -> LinearBlock:
    """Return rows with the labels of one output, and how often each counts where it is weighed."""
    weight = None if weighed is None else row_weights(block.X, weighed.bound)
    return LinearBlock(block.X, block.signs[output], weight)
