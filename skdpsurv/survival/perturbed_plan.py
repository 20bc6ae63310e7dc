"""A perturbed hazard model: a first look, a noisy minimiser, and a table that sets it right."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from skdpsurv.blocks import Blocks
from skdpsurv.inference import REACH
from skdpsurv.likelihoods.discrete_hazard import DiscreteHazard, HazardBlock
from skdpsurv.likelihoods.links import LINKS, Curve, steepness
from skdpsurv.mechanisms import methods
from skdpsurv.mechanisms.certificate import Center
from skdpsurv.mechanisms.perturbation import Calibrated, Problem, SharedPrice, perturb, steps_of
from skdpsurv.mechanisms.private_mean import private_mean
from skdpsurv.mechanisms.vector_noise import NoiseLaw, SphericalLaplace, arithmetic
from skdpsurv.priors import Evidence, Prior
from skdpsurv.privacy import RandomSource
from skdpsurv.privacy.concentrated import (
    Concentrated,
    Price,
    amount,
    left,
    part,
    parts,
    together,
)
from skdpsurv.privacy.shares import what_is_left
from skdpsurv.references import reference
from skdpsurv.survival.hazard_inference import HazardInference, Scale
from skdpsurv.survival.hazard_plans import Fitted, HazardModel, HazardPlan, HazardRecords
from skdpsurv.survival.life_table import baseline_from_life_table, private_life_table
from skdpsurv.survival.recalibration import PLACES_PART, recalibrate
from skdpsurv.survival.risk_cells import RiskCells
from skdpsurv.survival.spline import orthogonal_basis
from skdpsurv.types import FloatArray

#: Size of the baseline's columns beside covariates in a unit ball. The first look has found the
#: baseline, so little freedom is needed, and small columns keep the sensitivity near that of the
#: covariates alone. Found on simulated data and flchain (docs/benchmarks/accuracy).
LEVEL_SIZE, SHAPE_SIZE = 0.4, 0.15
#: Shares of ``center_share`` for the life table and for the covariates' mean.
TABLE_PART, MEAN_PART = 1.0 / 3.0, 2.0 / 3.0
#: Linear predictors of the baseline that a fit starts from are no larger: hazards of 1e-11 and
#: less in an interval are taken for that.
LARGEST_PREDICTOR = 25.0
#: Below this n * epsilon a first look, or a table of risks, sees nothing but its own noise, and is
#: skipped.
FIRST_LOOK_RECORDS = 200.0
#: max_cumulative_hazard="auto" rises to this many times the level of the released life table, as
#: far as the second number: where most people have an event a low cap is biased. It does so in
#: full from a signal of the third number, for a higher cap means more noise in each parameter.
CAP_LEVEL, HIGHEST_RISE, RISE_SIGNAL = 0.8, 3.0, 1.0
#: Centred rows are clipped at this many times their root mean square length, as far as the
#: released mean tells it: again, more for more signal.
SPREAD_POWER, SPREAD_RANGE = 0.16, (1.0, 2.0)
#: The same with standard errors. Weights bend nothing in a true model, so that the bound may be
#: lower; of people of whom no model is quite true it must be wide where there is little noise, and
#: the cap must be high: a multiple of a power of the signal, at most so high, and no higher than so
#: many times the level of the life table (docs/benchmarks/hazard_intervals).
INFERENCE_SPREAD = (0.8, 4.0)
INFERENCE_CAP, INFERENCE_LEVEL = (1.0, 0.48, 12.0), 4.0
#: What rows tell of a coefficient beside what they would if all directions of rows within their
#: bound were alike (docs/benchmarks/priors).
INFORMATION_PART = 0.25
#: Centred rows keep at least this part of ``data_norm``.
SMALLEST_SPREAD = 0.25


class Look(NamedTuple):
    """What is known when the perturbed fit begins: public, or released by a first look.

    Parameters
    ----------
    center : ndarray of shape (n_params,)
        What the fit shrinks to.
    mean : ndarray of shape (n_features,)
        Rows are centred by it.
    radius : float
        Centred rows are clipped to it.
    spread : float
        Bound on their root mean square length.
    """

    center: FloatArray
    mean: FloatArray
    radius: float
    spread: float


class Prices(NamedTuple):
    """What the parts of a fit cost: epsilons, or prices of Gaussian noise."""

    fit: Price
    center: Price
    recalibration: Price
    inference: Price

    def paid(self, name: str) -> bool:
        """Say whether a part is done at all."""
        return amount(getattr(self, name)) > 0.0


class Bounded(NamedTuple):
    """A likelihood with a cap on the cumulative hazard, and how its minimiser is perturbed."""

    likelihood: DiscreteHazard
    calibration: Calibrated


@dataclass(frozen=True)
class Perturbation(HazardPlan):
    """Objective or output perturbation of the capped likelihood, between two noisy tables.

    A first look spends ``center_share`` of epsilon on a life table, which gives the baseline to
    shrink to, and on the covariates' mean: rows are centred by it and clipped to the spread that
    is left, which is known from the released mean. A cap that is ours to choose rises with the
    level of the life table. When the coefficients are released, ``recalibration_share`` pays for a
    table of their scores over time, which corrects level, course and slope of the hazard. Before
    that, coefficients are improved by a ``prior`` that they agree with: post-processing.
    """

    model: HazardModel
    epsilon: float
    method: str
    alpha: float
    center_share: float
    recalibration_share: float = 0.0
    inference_share: float = 0.0
    law: type[NoiseLaw] = SphericalLaplace
    prior: Prior | None = None
    delta: float = 0.0
    likelihood: DiscreteHazard = field(init=False)
    calibration: Calibrated = field(init=False)

    def __post_init__(self) -> None:
        likelihood, calibration = self.bounded(self.model.cap(self.epsilon))
        object.__setattr__(self, "likelihood", likelihood)
        object.__setattr__(self, "calibration", calibration)

    @cached_property
    def basis(self) -> FloatArray:
        """Columns of the baseline, small beside covariates in a unit ball."""
        basis = orthogonal_basis(self.model.n_intervals, self.model.n_knots) * SHAPE_SIZE
        basis[:, 0] *= LEVEL_SIZE / SHAPE_SIZE
        return basis

    def bounded(self, cap: float | None) -> Bounded:
        """Return the likelihood with a cap, and what it takes to perturb its minimiser."""
        model, likelihood = self.model, self.capped(cap)
        calibration = methods.calibrate(
            self.method,
            likelihood.constants,
            self.prices.fit,
            model.n_records,
            likelihood.n_params,
            self.alpha,
            self.law,
            self.center_of(likelihood),
        )
        return Bounded(likelihood, calibration)

    def center_of(self, likelihood: DiscreteHazard) -> Center:
        """Return what is known of the centre before it is released."""
        least = np.linalg.svd(self.basis, compute_uv=False)[-1] / math.sqrt(self.basis.shape[0])
        return Center(LARGEST_PREDICTOR / float(least), likelihood.loss_within(LARGEST_PREDICTOR))

    def capped(self, cap: float | None) -> DiscreteHazard:
        """Return the likelihood with a cap."""
        model, weighed = self.model, self.prices.paid("inference")
        return DiscreteHazard(self.basis, model.n_features, 1.0, model.bounded_link(), cap, weighed)

    @cached_property
    def prices(self) -> Prices:
        """What each part of the fit costs; nothing of what n and epsilon are too small for."""
        enough = self.model.n_records * self.epsilon >= FIRST_LOOK_RECORDS
        shares = [
            share if enough else 0.0
            for share in (self.center_share, self.recalibration_share, self.inference_share)
        ]
        if self.delta:
            fit = 1.0 - sum(shares)
            # Squares of mus add up, so that small parts cost little: they get twice their share.
            return Prices(*parts(self.epsilon, self.delta, [fit, *(2.0 * s for s in shares)]))
        spent = [share * self.epsilon for share in shares]
        return Prices(what_is_left(self.epsilon, *spent), *spent)

    @property
    def rho(self) -> float | None:
        """What Gaussian noise costs, in zCDP; None of Laplace noise."""
        if not self.delta:
            return None
        return together(*(p for p in self.prices if isinstance(p, Concentrated))).rho

    @property
    def noise(self) -> float:
        """Deviation of the noise in units of what one record can do: by it laws are compared."""
        return methods.deviation(self.calibration) / self.likelihood.constants.gradient_sensitivity

    @cached_property
    def inference(self) -> HazardInference | None:
        """What is asked of the records for standard errors."""
        if not self.prices.paid("inference"):
            return None
        model = self.model
        return HazardInference.planned(model.n_records, model.n_features, self.prices.inference)

    @property
    def highest_cap(self) -> float | None:
        """What the cap can rise to; public, as the one that it starts from."""
        least = self.likelihood.max_cumulative_hazard
        if least is None or not self.prices.paid("center"):
            return least
        if not isinstance(self.model.max_cumulative_hazard, str):
            return least
        scale, power, highest = INFERENCE_CAP
        rise = min(scale * self.model.signal(self.epsilon) ** power, highest)
        return max(least, rise if self.prices.paid("inference") else HIGHEST_RISE)

    @property
    def mechanism(self) -> str:  # type: ignore[override]
        """What was perturbed, in words."""
        prior = ", together with a prior" if self.prior is not None else ""
        return self.with_tables(
            f"{methods.NAMES[self.method]} of a hazard-capped likelihood{prior}"
        )

    def with_tables(self, fit: str) -> str:
        """Return what comes before and after a fit, in words."""
        look = "life table and mean first, then " if self.prices.paid("center") else ""
        table = ", then a table of risks over time" if self.prices.paid("recalibration") else ""
        moments = ", then exits and second moments" if self.prices.paid("inference") else ""
        return f"{look}{fit}{table}{moments}"

    @property
    def proof(self) -> str:  # type: ignore[override]
        """Where it is proved."""
        if self.delta:
            return reference("docs/proofs/gaussian", "bun-steinke", "canonne")
        return HazardPlan.proof

    @property
    def numbers(self) -> str:  # type: ignore[override]
        """What the proof supposes of numbers."""
        return arithmetic(self.law)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What else must be true."""
        promised = () if self.prior is None else self.prior.promises.assumptions()
        return super().assumptions + promised

    @cached_property
    def _bounds(self) -> list[Bounded]:
        """Return the fits with the least cap and with the highest, if it is another."""
        least = Bounded(self.likelihood, self.calibration)
        highest = self.highest_cap
        if highest == self.likelihood.max_cumulative_hazard:
            return [least]
        return [least, self.bounded(highest)]

    def spans(self) -> list[float]:
        """Return the public numbers that must be neither huge nor tiny."""
        spans = [self.model.data_norm]
        for likelihood, calibration in self._bounds:
            spans += [calibration.kappa, calibration.noise_scale]
            if likelihood.max_cumulative_hazard is not None:
                spans.append(likelihood.max_cumulative_hazard)
        if center := amount(self.prices.center):
            table, mean = TABLE_PART * center, MEAN_PART * center
            # The mean's noise in units of data_norm, which is the size that a mean can have.
            spans += [2.0 / table, 2.0 / (self.model.n_records * mean)]
        if table := amount(self.prices.recalibration):
            spans += [2.0 / table, PLACES_PART * table]
        if self.inference is not None:
            spans += self.inference.spans()
        return spans

    def spent(self) -> dict[str, Any]:
        """Return how epsilon is spent, and the ends of what a released life table decides."""
        stated: dict[str, list[Any]] = {}
        for likelihood, calibration in self._bounds:
            constants = likelihood.constants
            values = {
                "max_cumulative_hazard": likelihood.max_cumulative_hazard,
                "gradient_sensitivity": constants.gradient_sensitivity,
                "hessian_trace": constants.hessian_trace,
                "hessian_rank": constants.hessian_rank,
                "kappa": calibration.kappa,
                "noise_scale": calibration.noise_scale,
            }
            if steps := steps_of(calibration):
                values["n_steps"] = steps
            for name, value in values.items():
                stated.setdefault(name, []).append(value)
        unit = "mu" if self.delta else "epsilon"
        shares: dict[str, Any] = {
            f"{unit}_{name}": amount(getattr(self.prices, name))
            for name in ("center", "fit", "recalibration", "inference")
            if name != "inference" or self.prices.paid(name)
        }
        if self.prior is not None:
            shares |= self.prior.promises.public_inputs()
        return shares | {
            name: ends[0] if len(set(ends)) == 1 else {"from": ends[0], "to": ends[-1]}
            for name, ends in stated.items()
        }

    def look(self, records: Blocks[HazardRecords], source: RandomSource) -> Look:
        """Return what the first look releases, for its share of epsilon."""
        model, likelihood, basis = self.model, self.likelihood, self.likelihood.basis
        public = self.public_look
        if not self.prices.paid("center"):
            return public
        center, n_knots = public.center.copy(), model.n_knots
        price = part(self.prices.center, TABLE_PART)
        exits = records.map(lambda block: (block.interval, block.event))
        table = private_life_table(exits, model.n_intervals, price, source)
        center[:n_knots] = self.moderate(
            baseline_from_life_table(table, price, basis, likelihood.link, center[:n_knots])
        )
        mean, spread = private_mean(
            records.map(lambda block: block.X),
            model.n_records,
            model.data_norm,
            left(self.prices.center, price),
            source,
        )
        spread = max(spread, SMALLEST_SPREAD * model.data_norm)
        least, most = INFERENCE_SPREAD if self.prices.paid("inference") else SPREAD_RANGE
        wider = float(np.clip(least * model.signal(self.epsilon) ** SPREAD_POWER, least, most))
        return Look(center, mean, spread * wider, spread)

    @property
    def public_look(self) -> Look:
        """What is known without a look: the prior hazard, and the bound on rows."""
        model, likelihood = self.model, self.likelihood
        center = np.zeros(likelihood.n_params)
        center[0] = likelihood.link.predictor(model.prior_hazard) / likelihood.basis[0, 0]
        center[: model.n_knots] = self.moderate(center[: model.n_knots])
        return Look(center, np.zeros(model.n_features), model.data_norm, model.data_norm)

    def moderate(self, baseline: FloatArray) -> FloatArray:
        """Return a baseline whose linear predictors are within ``LARGEST_PREDICTOR``."""
        largest = float(np.max(np.abs(self.basis @ baseline)))
        return baseline * min(1.0, LARGEST_PREDICTOR / max(largest, LARGEST_PREDICTOR))

    def after(self, look: Look) -> Bounded:
        """Return the fit with the cap that the level of a released life table asks for."""
        least, highest = self.likelihood.max_cumulative_hazard, self.highest_cap
        if least is None or highest is None or highest == least:
            return Bounded(self.likelihood, self.calibration)
        level = float(self._hazard(look).value.sum())
        times = INFERENCE_LEVEL if self.prices.paid("inference") else CAP_LEVEL
        level *= times * min(1.0, self.model.signal(self.epsilon) / RISE_SIGNAL)
        return self.bounded(min(max(least, level), highest))

    def _hazard(self, look: Look) -> Curve:
        """Return the hazard that a first look has found, interval by interval."""
        return self.likelihood.link.survival(self.basis @ look.center[: self.model.n_knots])

    def evidence(self, problem: Problem, minimiser: FloatArray, look: Look) -> Evidence:
        """Return what a minimiser says of coefficients on the scale of X, by itself."""
        model = self.model
        events = model.n_records * -np.expm1(-self._hazard(look).value.sum())
        mean_square = (look.spread / look.radius) ** 2 / model.n_features
        information = INFORMATION_PART * max(events, 1.0) * mean_square
        found = Evidence.of_minimiser(minimiser[model.n_knots :], information, problem.calibration)
        return found.scaled(1.0 / look.radius)

    def improved(self, minimiser: FloatArray, own: Evidence, look: Look) -> FloatArray:
        """Return a minimiser with the coefficients that it has together with the prior."""
        if self.prior is None:
            return minimiser
        baseline, coef = np.split(minimiser, [self.model.n_knots])
        prior = self.prior.evidence.scaled(1.0 / steepness(self._hazard(look)))
        return np.append(baseline, own.improved(coef / look.radius, prior) * look.radius)

    def problems(self, records: Blocks[HazardRecords]) -> list[Problem]:
        """Return the one minimisation of a fit that releases nothing else."""
        if any(self.prices.paid(name) for name in ("center", "recalibration", "inference")):
            raise ValueError(
                "center_share, recalibration_share and inference_share must be 0, or n * epsilon "
                "below 200: with a first look, a recalibration or standard errors what is released "
                "is more than a minimiser."
            )
        return [self.problem(records, self.public_look)]

    def problem(self, records: Blocks[HazardRecords], look: Look) -> Problem:
        """Return the minimisation after a first look."""
        likelihood, calibration = self.after(look)
        seen, price = self.seen(records, look), SharedPrice(self.prices.fit)
        return Problem(likelihood, seen, calibration, look.center, price)

    def seen(self, records: Blocks[HazardRecords], look: Look) -> Blocks[HazardBlock]:
        """Return what the likelihood sees of records, after a first look."""
        reach = REACH if self.prices.paid("inference") else None
        return records.map(lambda block: block.within(look.mean, look.radius, reach))

    def fit(self, records: Blocks[HazardRecords], source: RandomSource) -> Fitted:
        """Release a private baseline and coefficients, without a prior."""
        look = self.look(records, source)
        return self.unscaled(perturb(self.problem(records, look), source).coef, look)

    def unscaled(self, coef: FloatArray, look: Look) -> Fitted:
        """Return a minimiser as a baseline on the grid and coefficients on the scale of X."""
        n_knots = self.model.n_knots
        beta = coef[n_knots:] / look.radius
        return self.basis @ coef[:n_knots] - look.mean @ beta, beta

    def run(self, records: Blocks[HazardRecords], source: RandomSource) -> dict[str, FloatArray]:
        """Release baseline and coefficients, what sets predictions right, and standard errors."""
        look = self.look(records, source)
        problem = self.problem(records, look)
        minimiser = perturb(problem, source)
        own = self.evidence(problem, minimiser.coef, look)
        baseline, coef = self.unscaled(self.improved(minimiser.coef, own, look), look)
        released = self.released(baseline, coef) | own.values()
        released |= self.recalibrated(baseline, coef, records, look, source)
        if self.inference is not None:
            scale = Scale(look.mean, look.radius, self.basis)
            truth = self.inference.found(problem, minimiser, records, scale, source)
            released |= truth.values()
            # What a released life table chose: post-processing.
            cap = problem.likelihood.max_cumulative_hazard  # type: ignore[attr-defined]
            released |= {} if cap is None else {"inference_cap": np.array([cap])}
        return released

    def recalibrated(
        self,
        baseline: FloatArray,
        coef: FloatArray,
        records: Blocks[HazardRecords],
        look: Look,
        source: RandomSource,
    ) -> dict[str, FloatArray]:
        """Release what a table of risks says of a released fit; nothing without its share."""
        if not self.prices.paid("recalibration"):
            return {}
        cells = RiskCells(coef, baseline, LINKS[self.model.link], look.mean, look.spread)
        price, signal = self.prices.recalibration, self.model.signal(self.epsilon)
        return recalibrate(cells, records, self.model.n_records, price, source, signal).values()
