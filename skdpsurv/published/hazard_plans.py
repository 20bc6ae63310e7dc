r"""Plans of algorithms 1 and 2, and of pSGLD, of Nguyen and Hui (arXiv 1708.07436).

Uncapped logit loss, the paper's spline basis, rows in the unit ball, centre 0, and the paper's
bounds

.. math::
    S = \sum_s\sqrt{\|A_s\|^2 + 4} + \max_s\sqrt{4\|A_s\|^2 + 4}, \qquad
    J = 2\sum_s\log\Big(1 + \frac{\sqrt{c_s}}{4\kappa}\Big),\quad c_s = \|A_s\|^2 + 1.

**pSGLD** as printed is in :class:`PublishedDraw`; its limit spends twice its epsilon.

The paper's eigenvalue is wrong: that of :math:`x x^\top` is :math:`c_s`, not its root. The spare
factor 2 covers the mistake where :math:`J \ge \sum_s\log(1 + c_s/(4\kappa))` at the kappa used;
elsewhere the theorem does not hold and :class:`PublishedPerturbation` refuses (docs/errata). The
paper also takes minimisers for exact; here their inexactness is paid for, out of the same epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skdpsurv.blocks import Blocks
from skdpsurv.likelihoods.discrete_hazard import DiscreteHazard
from skdpsurv.mechanisms import objective_perturbation, output_perturbation
from skdpsurv.mechanisms.langevin import MALA, PSGLD
from skdpsurv.mechanisms.perturbation import Minimisers, Perturbed, Problem, SharedPrice
from skdpsurv.privacy.cost import Cost, price_of
from skdpsurv.privacy.measurement import Known
from skdpsurv.references import reference
from skdpsurv.survival.hazard_plans import HazardModel, HazardRecords, released
from skdpsurv.survival.posterior_plan import PosteriorDraw
from skdpsurv.survival.spline import published_basis
from skdpsurv.types import FloatArray

#: Lambda of Algorithm 1 when ``alpha`` is 0, which would mean infinite noise.
LEAST_ALPHA = 1e-4


def published_sensitivity(basis: FloatArray) -> float:
    """Return S of lemma 4.2."""
    squares = np.sum(basis**2, axis=1)
    return float(np.sum(np.sqrt(squares + 4.0)) + np.sqrt(4.0 * squares.max() + 4.0))


def published_cost(basis: FloatArray, kappa: float) -> float:
    """Return J of equation 7."""
    return float(2.0 * np.sum(np.log1p(np.sqrt(np.sum(basis**2, axis=1) + 1.0) / (4.0 * kappa))))


def true_cost(basis: FloatArray, kappa: float) -> float:
    """Return what J must cover: one factor per interval, with the right eigenvalue."""
    return float(np.sum(np.log1p((np.sum(basis**2, axis=1) + 1.0) / (4.0 * kappa))))


@dataclass(frozen=True)
class PublishedPerturbation(Minimisers):
    """The paper's perturbation, checked to be private before it runs."""

    model: HazardModel
    epsilon: float
    method: str
    alpha: float
    likelihood: DiscreteHazard = field(init=False)
    calibration: Any = field(init=False)

    alone = True
    proof = reference("docs/errata", "nguyen-hui")

    def __post_init__(self) -> None:
        model = self.model
        if model.link != "logit":
            raise ValueError(
                f"link must be 'logit': the paper has no bound for {model.link!r}. Use "
                "DPDiscreteTimeSurvival."
            )
        basis = published_basis(model.n_intervals, model.n_knots)
        likelihood = DiscreteHazard(basis, model.n_features)
        constants = replace(
            likelihood.constants,
            gradient_sensitivity=published_sensitivity(basis),
        )
        calibration: Any
        if self.method == "out_pert":
            kappa = model.n_records * (self.alpha or LEAST_ALPHA)
            calibration = output_perturbation.calibrate_at(
                constants, self.epsilon, model.n_records, likelihood.n_params, kappa
            )
        else:
            calibration = objective_perturbation.calibrate_to_cost(
                constants,
                lambda kappa: published_cost(basis, kappa),
                self.epsilon,
                model.n_records,
                likelihood.n_params,
                self.alpha,
            )
            kappa = calibration.kappa
            if published_cost(basis, kappa) < true_cost(basis, kappa):
                raise ValueError(
                    "n_knots, epsilon and alpha must be such that the published algorithm is "
                    "private: here the paper's bound on the curvature falls short (docs/errata). "
                    "Use DPDiscreteTimeSurvival."
                )
        object.__setattr__(self, "likelihood", likelihood)
        object.__setattr__(self, "calibration", calibration)

    @property
    def cost(self) -> Cost:
        """What it was calibrated for."""
        return price_of(self.epsilon)

    @property
    def name(self) -> str:  # type: ignore[override]
        """What was perturbed, in words."""
        name = "Ext-Obj-Pert" if self.method == "obj_pert" else "Ext-Out-Pert"
        return f"{name}, as published"

    def spans(self) -> list[float]:
        """Return the public numbers that must be neither huge nor tiny."""
        return [self.model.data_norm, self.calibration.kappa, self.calibration.noise_scale]

    def stated(self) -> dict[str, Any]:
        """Return how epsilon was spent."""
        return {
            "gradient_sensitivity": published_sensitivity(self.likelihood.basis),
            "kappa": self.calibration.kappa,
            "noise_scale": self.calibration.noise_scale,
        }

    def problems(self, known: Known, records: Blocks[HazardRecords]) -> list[Problem]:
        """Return the one minimisation."""
        norm = self.model.data_norm
        blocks = records.map(lambda block: block.within(0.0, norm))
        center = np.zeros(self.likelihood.n_params)
        price = SharedPrice(self.epsilon)
        return [Problem(self.likelihood, blocks, self.calibration, center, price)]

    def after(self, known: Known, found: list[Perturbed]) -> dict[str, Any]:
        """Return baseline and coefficients."""
        coef, n_knots = found[0].coef, self.model.n_knots
        baseline = self.likelihood.basis @ coef[:n_knots]
        return released(self.model, baseline, coef[n_knots:] / self.model.data_norm)


@dataclass(frozen=True)
class PublishedDraw(PosteriorDraw):
    """pSGLD as the paper prints it, in its basis: not private, not even in the limit."""

    status = "none"

    @property
    def name(self) -> str:  # type: ignore[override]
        """What is released, in words."""
        return "sanitised exponential mechanism, one state of a Markov chain (pSGLD as published)"

    def basis_of(self, model: HazardModel) -> FloatArray:
        """Return the paper's basis."""
        return published_basis(model.n_intervals, model.n_knots)

    def chain(self) -> MALA | PSGLD:
        """Return the chain with the paper's steps."""
        chain = super().chain()
        assert isinstance(chain, PSGLD)
        return replace(chain, published=True)
