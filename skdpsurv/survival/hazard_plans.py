"""From clipped records to a private hazard model: the ways that a fit can go.

Each way is a plan, made from public numbers alone before anything is charged, and a ``run`` that
touches the records. A run returns the baseline on the time grid and the covariates' coefficients.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skdpsurv.blocks import Blocks
from skdpsurv.likelihoods.discrete_hazard import DiscreteHazard, HazardBlock, hazard_block
from skdpsurv.likelihoods.links import LINKS, Link
from skdpsurv.mechanisms import newton
from skdpsurv.mechanisms.methods import CALIBRATIONS, NAMES
from skdpsurv.mechanisms.perturbation import Calibrated, Problem, perturb
from skdpsurv.mechanisms.private_mean import private_mean
from skdpsurv.mechanisms.vector_noise import NoiseLaw, SphericalLaplace
from skdpsurv.privacy import RandomSource, clip_rows
from skdpsurv.references import REAL_ARITHMETIC, reference
from skdpsurv.survival.life_table import baseline_from_life_table, private_life_table
from skdpsurv.survival.spline import orthogonal_basis, to_published
from skdpsurv.survival.time_grid import exit_intervals
from skdpsurv.types import BoolArray, FloatArray, IntArray

#: Size of the baseline's columns beside covariates in a unit ball. The first look has found the
#: baseline, so little freedom is needed, and small columns keep the sensitivity near that of the
#: covariates alone. Found on simulated data and flchain (docs/benchmarks/accuracy).
LEVEL_SIZE, SHAPE_SIZE = 0.4, 0.15
#: Shares of ``center_share`` for the life table and for the covariates' mean.
TABLE_PART, MEAN_PART = 1.0 / 3.0, 2.0 / 3.0
#: Below this n * epsilon a first look sees nothing but its own noise, and is skipped.
FIRST_LOOK_RECORDS = 200.0
#: max_cumulative_hazard="auto": a low cap means little noise, a high one little bias.
CAP_SCALE, CAP_POWER, CAP_RANGE = 0.9, 0.28, (0.8, 5.0)
#: Centred rows are clipped at this many times their root mean square length, as far as the
#: released mean tells it: again, more for more signal.
SPREAD_POWER, SPREAD_RANGE = 0.16, (1.0, 2.0)
#: Centred rows keep at least this part of ``data_norm``.
SMALLEST_SPREAD = 0.25


#: A baseline on the time grid, and coefficients on the scale of X.
Fitted = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class HazardModel:
    """The public description of a model: all of it comes from the caller."""

    link: str
    n_intervals: int
    n_knots: int
    n_records: int
    n_features: int
    data_norm: float
    max_cumulative_hazard: float | str | None
    prior_event_rate: float
    n_blocks: int = 1
    max_time: float = 1.0

    @property
    def prior_hazard(self) -> float:
        """h0, the constant hazard that leads to the prior event rate by the horizon."""
        return float(-np.expm1(np.log1p(-self.prior_event_rate) / self.n_intervals))

    def signal(self, epsilon: float) -> float:
        """Return n epsilon in hundreds per parameter: how much there is to set against noise."""
        return self.n_records * epsilon / (100.0 * (self.n_knots + self.n_features))

    def cap(self, epsilon: float) -> float | None:
        """H: as given, or for "auto" the larger the less noise there is per parameter."""
        if not isinstance(self.max_cumulative_hazard, str):
            return self.max_cumulative_hazard
        return float(np.clip(CAP_SCALE * self.signal(epsilon) ** CAP_POWER, *CAP_RANGE))

    def bounded_link(self) -> Link:
        """Return the link with its event slope bounded at the prior hazard."""
        return LINKS[self.link].bounded_at(self.prior_hazard)


class HazardRecords(NamedTuple):
    """A block of private records on the public grid."""

    X: FloatArray
    interval: IntArray
    event: BoolArray

    @classmethod
    def on_grid(
        cls,
        X: FloatArray,
        event: BoolArray,
        time: FloatArray,
        max_time: float,
        n_intervals: int,
    ) -> HazardRecords:
        """Put records on the grid, each on its own."""
        return cls(X, *exit_intervals(time, event, max_time, n_intervals))

    def within(self, mean: FloatArray | float, radius: float) -> HazardBlock:
        """Return rows less ``mean``, clipped to ``radius`` and divided by it (inf: as they are)."""
        rows = self.X
        if math.isfinite(radius):
            rows = clip_rows(rows - mean, radius) / radius
        return hazard_block(rows, self.interval, self.event)


class HazardPlan(ABC):
    """What the ways to fit a hazard model have in common.

    A subclass has a ``model``, an ``epsilon`` and an ``alpha``, and says how it fits.
    """

    model: HazardModel
    epsilon: float
    alpha: float
    mechanism: str
    proof: str = reference("docs/proofs/discrete_time", "nguyen-hui", "chaudhuri")
    assumptions: ClassVar[tuple[str, ...]] = (
        "n, the columns and every constructor parameter are public",
        "max_time and data_norm were not read off these records",
        REAL_ARITHMETIC,
    )

    @abstractmethod
    def fit(self, records: Blocks[HazardRecords], source: RandomSource) -> Fitted:
        """Release a baseline on the time grid, and coefficients on the scale of X."""

    def problems(self, records: Blocks[HazardRecords]) -> list[Problem]:
        """Return the minimisations, which an audit attacks as they are.

        Raises
        ------
        ValueError
            If what is released is no minimiser, or more than one.
        """
        raise ValueError("estimator must have method='obj_pert' or 'out_pert'.")

    def run(self, records: Blocks[HazardRecords], source: RandomSource) -> dict[str, FloatArray]:
        """Release the baseline in the basis of the paper, and coefficients."""
        baseline, coef = self.fit(records, source)
        return {"coef": coef, "baseline_coef": to_published(baseline, self.model.n_knots)}

    def spans(self) -> list[float]:
        """Return nothing: there is neither ridge nor noise."""
        return []

    def spent(self) -> dict[str, Any]:
        """Return how epsilon is spent."""
        return {}

    def public_inputs(self) -> dict[str, Any]:
        """Return what the guarantee takes to be public."""
        model = self.model
        return {
            "n_records": model.n_records,
            "max_time": model.max_time,
            "n_intervals": model.n_intervals,
            "n_knots": model.n_knots,
            "link": model.link,
            "data_norm": model.data_norm,
            "max_cumulative_hazard": model.max_cumulative_hazard,
            "prior_event_rate": model.prior_event_rate,
            "alpha": self.alpha,
            **self.spent(),
        }


@dataclass(frozen=True)
class MaximumLikelihood(HazardPlan):
    """The fit without privacy: no cap, no clipping of rows, no ridge."""

    model: HazardModel
    alpha: float = 0.0
    epsilon: float = math.inf

    mechanism = "maximum likelihood, no noise"
    proof = ""

    def fit(self, records: Blocks[HazardRecords], source: RandomSource) -> Fitted:
        """Return the maximum likelihood baseline and coefficients."""
        model = self.model
        basis = orthogonal_basis(model.n_intervals, model.n_knots)
        likelihood = DiscreteHazard(basis, model.n_features, link=LINKS[model.link])
        start = np.zeros(likelihood.n_params)
        start[0] = likelihood.link.predictor(model.prior_hazard)
        coef = newton.maximum_likelihood(
            likelihood, records.map(lambda block: block.within(0.0, math.inf)), start
        )
        return basis @ coef[: model.n_knots], coef[model.n_knots :]


@dataclass(frozen=True)
class Look:
    """What is known when the perturbed fit begins: public, or released by a first look.

    Parameters
    ----------
    center : ndarray of shape (n_params,)
        What the fit shrinks to.
    mean : ndarray of shape (n_features,)
        Rows are centred by it.
    radius : float
        Centred rows are clipped to it.
    """

    center: FloatArray
    mean: FloatArray
    radius: float


@dataclass(frozen=True)
class Perturbation(HazardPlan):
    """Objective or output perturbation of the capped likelihood, after a private first look.

    The first look spends ``center_share`` of epsilon on a life table, which gives the baseline to
    shrink to, and on the covariates' mean: rows are centred by it and clipped to the spread that
    is left, which is known from the released mean.
    """

    model: HazardModel
    epsilon: float
    method: str
    alpha: float
    center_share: float
    law: type[NoiseLaw] = SphericalLaplace
    likelihood: DiscreteHazard = field(init=False)
    calibration: Calibrated = field(init=False)

    def __post_init__(self) -> None:
        model = self.model
        basis = orthogonal_basis(model.n_intervals, model.n_knots) * SHAPE_SIZE
        basis[:, 0] *= LEVEL_SIZE / SHAPE_SIZE
        likelihood = DiscreteHazard(
            basis, model.n_features, 1.0, model.bounded_link(), model.cap(self.epsilon)
        )
        constants = replace(likelihood.constants, n_blocks=model.n_blocks)
        epsilon, n = self.epsilon_fit, model.n_records
        calibration = CALIBRATIONS[self.method](
            constants, epsilon, n, likelihood.n_params, self.alpha, law=self.law
        )
        object.__setattr__(self, "likelihood", likelihood)
        object.__setattr__(self, "calibration", calibration)

    @property
    def epsilon_center(self) -> float:
        """Epsilon of the first look; 0 where n and epsilon are too small for one."""
        if self.model.n_records * self.epsilon < FIRST_LOOK_RECORDS:
            return 0.0
        return self.center_share * self.epsilon

    @property
    def epsilon_fit(self) -> float:
        """Epsilon of the perturbed fit."""
        return self.epsilon - self.epsilon_center

    @property
    def mechanism(self) -> str:  # type: ignore[override]
        """What was perturbed, in words."""
        look = "life table and mean first, then " if self.epsilon_center else ""
        return f"{look}{NAMES[self.method]} of a hazard-capped likelihood"

    def spans(self) -> list[float]:
        """Return the public numbers that must be neither huge nor tiny."""
        spans = [self.model.data_norm, self.calibration.kappa, self.calibration.noise_scale]
        if self.likelihood.max_cumulative_hazard is not None:
            spans.append(self.likelihood.max_cumulative_hazard)
        if self.epsilon_center:
            table, mean = TABLE_PART * self.epsilon_center, MEAN_PART * self.epsilon_center
            # The mean's noise in units of data_norm, which is the size that a mean can have.
            spans += [2.0 / table, 2.0 / (self.model.n_records * mean)]
        return spans

    def spent(self) -> dict[str, Any]:
        """Return how epsilon is spent."""
        constants = self.likelihood.constants
        return {
            "epsilon_center": self.epsilon_center,
            "epsilon_fit": self.epsilon_fit,
            "max_cumulative_hazard": self.likelihood.max_cumulative_hazard,
            "gradient_sensitivity": constants.gradient_sensitivity,
            "hessian_trace": constants.hessian_trace,
            "hessian_rank": constants.hessian_rank,
            "kappa": self.calibration.kappa,
            "noise_scale": self.calibration.noise_scale,
        }

    def look(self, records: Blocks[HazardRecords], source: RandomSource) -> Look:
        """Return what the first look releases, for its share of epsilon."""
        model, likelihood, basis = self.model, self.likelihood, self.likelihood.basis
        public = self.public_look
        if not self.epsilon_center:
            return public
        center, n_knots = public.center.copy(), model.n_knots
        epsilon = TABLE_PART * self.epsilon_center
        exits = records.map(lambda block: (block.interval, block.event))
        table = private_life_table(exits, model.n_intervals, epsilon, source)
        center[:n_knots] = baseline_from_life_table(
            table, epsilon, basis, likelihood.link, center[:n_knots]
        )
        mean, radius = private_mean(
            records.map(lambda block: block.X),
            model.n_records,
            model.data_norm,
            self.epsilon_center - epsilon,
            source,
        )
        radius = max(radius, SMALLEST_SPREAD * model.data_norm)
        radius *= float(np.clip(model.signal(self.epsilon) ** SPREAD_POWER, *SPREAD_RANGE))
        return Look(center, mean, radius)

    @property
    def public_look(self) -> Look:
        """What is known without a look: the prior hazard, and the bound on rows."""
        model, likelihood = self.model, self.likelihood
        center = np.zeros(likelihood.n_params)
        center[0] = likelihood.link.predictor(model.prior_hazard) / likelihood.basis[0, 0]
        return Look(center, np.zeros(model.n_features), model.data_norm)

    def problems(self, records: Blocks[HazardRecords]) -> list[Problem]:
        """Return the one minimisation of a fit without a first look."""
        if self.epsilon_center:
            raise ValueError(
                "center_share must be 0, or n * epsilon below 200: after a first look what is "
                "released is more than a minimiser."
            )
        return [self.problem(records, self.public_look)]

    def problem(self, records: Blocks[HazardRecords], look: Look) -> Problem:
        """Return the minimisation after a first look."""
        blocks = records.map(lambda block: block.within(look.mean, look.radius))
        return Problem(self.likelihood, blocks, self.calibration, look.center)

    def fit(self, records: Blocks[HazardRecords], source: RandomSource) -> Fitted:
        """Release a private baseline and coefficients."""
        look, n_knots = self.look(records, source), self.model.n_knots
        coef = perturb(self.problem(records, look), source)
        beta = coef[n_knots:] / look.radius
        return self.likelihood.basis @ coef[:n_knots] - look.mean @ beta, beta
