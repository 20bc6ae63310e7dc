"""Logistic models of one set of records: one for each group of columns and each class.

A plan is made from public numbers alone, before anything is charged: it knows what each model will
see of a record, and the scale of its noise. :mod:`skdpsurv.classification.budgets` makes plans.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from skdpsurv.blocks import Blocks
from skdpsurv.classification.column_group import ColumnGroup
from skdpsurv.likelihoods.linear import LinearBlock
from skdpsurv.likelihoods.logistic import Logistic, log_odds_slope
from skdpsurv.mechanisms.methods import deviation
from skdpsurv.mechanisms.perturbation import Calibrated, Problem, SharedPrice, steps_of
from skdpsurv.priors import Evidence, Prior
from skdpsurv.privacy import clip_rows
from skdpsurv.privacy.concentrated import Concentrated, Price
from skdpsurv.privacy.cost import Cost, in_turn, price_of
from skdpsurv.rows import row_products
from skdpsurv.types import FloatArray, IndexArray

#: What rows tell of a coefficient beside what they would if all directions of rows within their
#: bound were alike (docs/benchmarks/priors).
INFORMATION_PART = 0.25


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
    prices : tuple of Concentrated, default=()
        Of Gaussian noise: what the models of each output cost together.
    epsilon_output : float, default=inf
        Of other noise, the same.
    """

    n_records: int
    n_outputs: int
    data_norm: float
    max_residual: float
    groups: tuple[ColumnGroup, ...]
    calibrations: tuple[Calibrated, ...]
    centers: tuple[FloatArray, ...]
    reach: float | None = None
    prices: tuple[Concentrated, ...] = ()
    epsilon_output: float = math.inf

    @property
    def cost(self) -> Cost:
        """Of the models of all outputs: the same records, one output after another."""
        return in_turn(map(price_of, self.each_price))

    @property
    def each_price(self) -> Sequence[Price]:
        """What the models of each output cost together."""
        return self.prices or [self.epsilon_output] * self.n_outputs

    def likelihood(self, group: ColumnGroup) -> Logistic:
        """Return that of the models of a group."""
        return Logistic(group.n_params, group.bound, self.max_residual)

    def problems(self, records: Blocks[SignedRows]) -> list[Problem]:
        """Return the minimisations, group by group and output by output within.

        They are what is solved, and what an audit attacks.

        Parameters
        ----------
        records : Blocks
            Of SignedRows: private.
        """
        longest = self.data_norm * (1.0 if self.reach is None else self.reach)
        clipped = records.map(lambda block: block.within(longest))
        problems = []
        shared = [SharedPrice(price) for price in self.each_price]
        for group, calibration, centers in zip(
            self.groups, self.calibrations, self.centers, strict=True
        ):
            likelihood = self.likelihood(group)
            seen = clipped.map(partial(_seen, group, self.data_norm))
            labelled = _labelled if self.reach is None else partial(_weighed, group)
            problems += [
                Problem(
                    likelihood,
                    seen.map(partial(labelled, output)),
                    calibration,
                    center,
                    shared[output],
                )
                for output, center in enumerate(centers)
            ]
        return problems

    def coefficients(self, released: Sequence[FloatArray]) -> list[Coefficients]:
        """Return what was released, in the order of :meth:`problems`, on the scale of X."""
        models = []
        for k, group in enumerate(self.groups):
            outputs = released[k * self.n_outputs : (k + 1) * self.n_outputs]
            coefs, intercepts = zip(*(group.from_model(f) for f in outputs), strict=True)
            models.append(Coefficients(np.array(coefs), np.array(intercepts)))
        return models

    def evidence(self, released: Sequence[FloatArray]) -> Evidence:
        """Return what a model of all columns says of its coefficients, (n_outputs, n_features)."""
        (group,), (calibration,) = self.groups, self.calibrations
        width = len(group.indices)
        mean_square = INFORMATION_PART * (group.factor * group.norm) ** 2 / width
        information = self.n_records * self.max_residual / 4.0 * mean_square
        minimisers = np.stack([each[:width] for each in released])
        return Evidence.of_minimiser(minimisers, information, calibration).scaled(group.factor)

    def improved(self, model: Coefficients, own: Evidence, prior: Prior | None) -> Coefficients:
        """Return a model of all columns, with the coefficients that it has beside a prior."""
        if prior is None:
            return model
        theirs = prior.evidence.scaled(1.0 / log_odds_slope(self.max_residual))
        return model._replace(coef=own.improved(model.coef, theirs))

    def noise(self, weights: Sequence[float]) -> float:
        """Return how long the noise on all gradients is, in units of the cap.

        Laws are compared by it. Groups count by what their votes do.
        """
        squares = (
            group.n_params * (weight * deviation(calibration)) ** 2
            for group, weight, calibration in zip(
                self.groups, weights, self.calibrations, strict=True
            )
        )
        return math.sqrt(math.fsum(squares)) / self.max_residual

    def spans(self) -> list[float]:
        """Return the public numbers that must be neither huge nor tiny."""
        spans = [group.norm for group in self.groups] + [group.factor for group in self.groups]
        for calibration in self.calibrations:
            spans += [calibration.kappa, calibration.noise_scale or 1.0]
        return spans

    def public_inputs(self) -> dict[str, Any]:
        """Return how epsilon was spent."""
        stated: dict[str, Any] = {
            "max_residual": self.max_residual,
            "kappa": [calibration.kappa for calibration in self.calibrations],
            "noise_scale": [calibration.noise_scale for calibration in self.calibrations],
        }
        if any(steps := [steps_of(calibration) for calibration in self.calibrations]):
            stated["n_steps"] = steps
        return stated


def _seen(group: ColumnGroup, data_norm: float, block: SignedRows) -> SignedRows:
    """Return what a model sees of rows within the bound, or of longer ones to be weighed."""
    return block._replace(X=group.rows(block.X, data_norm))


def _labelled(output: int, block: SignedRows) -> LinearBlock:
    """Return rows with the labels of one output."""
    return LinearBlock(block.X, block.signs[output])


def _weighed(group: ColumnGroup, output: int, block: SignedRows) -> LinearBlock:
    """Return rows with the labels of one output, and how often each record counts."""
    return LinearBlock(block.X, block.signs[output], group.weights(block.X))
