"""A perturbed hazard model: what is public of it, a first look, and its minimiser.

The life table of a first look counts records by band of the exit time and by event: each record is
in one cell, so replacing one record changes two cells by one. Neighbours: replace-one. Sensitivity:
2 in L1, and the root of 2 in L2. Theorem: that of a histogram (:mod:`skdpsurv.mechanisms.sums`),
however many bands there are. The baseline that it suggests is post-processing.

Rows are centred and clipped, and the cap on cumulative hazards is chosen, by what a first look has
released; coefficients are improved by a ``prior`` that they agree with, after the release. Where
numbers were tuned is said of each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from skdpsurv.data.blocks import Blocks
from skdpsurv.dp.plan import GAUSSIAN, Known, Mechanism, NoisySum
from skdpsurv.dp.privacy_cost import Concentrated, Price, stated_price
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.inference import REACH
from skdpsurv.likelihoods.hazard import DiscreteHazard, HazardBlock
from skdpsurv.likelihoods.links import Curve, steepness
from skdpsurv.mechanisms import perturbation
from skdpsurv.mechanisms.certificate import Center
from skdpsurv.mechanisms.moments import MeanOfRows
from skdpsurv.mechanisms.perturbation import (
    Calibrated,
    Minimisers,
    Perturbed,
    Problem,
    SharedPrice,
    steps_of,
)
from skdpsurv.mechanisms.sums import HISTOGRAM
from skdpsurv.mechanisms.vector_noise import NoiseDistribution, SphericalLaplace
from skdpsurv.priors import Evidence, Prior
from skdpsurv.survival.hazards.model import (
    HAZARD_PROOF,
    HazardModel,
    HazardRecords,
    baseline_from_life_table,
    life_table_counts,
    orthogonal_basis,
    released,
)

#: Size of the baseline's columns beside covariates in a unit ball. The first look has found the
#: baseline, so little freedom is needed, and small columns keep the sensitivity near that of the
#: covariates alone. Found on simulated data and flchain (docs/benchmarks/accuracy).
LEVEL_SIZE, SHAPE_SIZE = 0.4, 0.15
#: Part of ``pilot_share`` for the life table; the covariates' mean has the rest.
TABLE_PART = 1.0 / 3.0
#: Part of the price of standard errors for the table of exits.
EXITS_PART = 0.15
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


class PilotEstimate(NamedTuple):
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


class Bounded(NamedTuple):
    """A likelihood with a cap on the cumulative hazard, and how its minimiser is perturbed."""

    likelihood: DiscreteHazard
    calibration: Calibrated


@dataclass(frozen=True)
class HazardFit:
    """What is public of a perturbed fit.

    Parameters
    ----------
    model : HazardModel
    epsilon : float
        Of the whole, by which public rules go.
    method : str
    alpha : float
    price : float or Concentrated
        Of the minimiser.
    looks, weighed : bool
        Whether there is a first look, and whether there are standard errors.
    law : type of NoiseDistribution
    prior : Prior or None
    """

    model: HazardModel
    epsilon: float
    method: str
    alpha: float
    price: Price
    looks: bool = False
    weighed: bool = False
    law: type[NoiseDistribution] = SphericalLaplace
    prior: Prior | None = None
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
        n_features, link = self.model.n_features, self.model.bounded_link()
        likelihood = DiscreteHazard(self.basis, n_features, 1.0, link, cap, self.weighed)
        return Bounded(likelihood, self.calibrated(likelihood))

    def calibrated(self, likelihood: DiscreteHazard) -> Calibrated:
        """Return ridge and laws of noise for a likelihood."""
        return perturbation.calibrate(
            self.method,
            likelihood.constants,
            self.price,
            self.model.n_records,
            likelihood.n_params,
            self.alpha,
            self.law,
            self.center_of(likelihood),
        )

    def center_of(self, likelihood: DiscreteHazard) -> Center:
        """Return what is known of the centre before it is released."""
        least = np.linalg.svd(self.basis, compute_uv=False)[-1] / math.sqrt(self.basis.shape[0])
        largest = LARGEST_PREDICTOR
        return Center(largest / float(least), likelihood.loss_within(largest))

    @property
    def noise(self) -> float:
        """Deviation of the noise in units of what one record can do: by it laws are compared."""
        return (
            perturbation.deviation(self.calibration)
            / self.likelihood.constants.gradient_sensitivity
        )

    # ---- The cap.

    @property
    def highest_cap(self) -> float | None:
        """What the cap can rise to; public, as the one that it starts from."""
        least = self.likelihood.max_cumulative_hazard
        if least is None or not self.looks or not isinstance(self.model.max_cumulative_hazard, str):
            return least
        scale, power, highest = INFERENCE_CAP
        rise = min(scale * self.model.signal(self.epsilon) ** power, highest)
        return max(least, rise if self.weighed else HIGHEST_RISE)

    @cached_property
    def ends(self) -> list[Bounded]:
        """The fits with the least cap and with the highest, if it is another."""
        least, highest = Bounded(self.likelihood, self.calibration), self.highest_cap
        if highest == self.likelihood.max_cumulative_hazard:
            return [least]
        return [least, self.bounded(highest)]

    def after(self, look: PilotEstimate) -> Bounded:
        """Return the fit with the cap that the level of a released life table asks for."""
        least, highest = self.likelihood.max_cumulative_hazard, self.highest_cap
        if least is None or highest is None or highest == least:
            return Bounded(self.likelihood, self.calibration)
        level = float(self._hazard(look).value.sum())
        times = INFERENCE_LEVEL if self.weighed else CAP_LEVEL
        level *= times * min(1.0, self.model.signal(self.epsilon) / RISE_SIGNAL)
        return self.bounded(min(max(least, level), highest))

    def _hazard(self, look: PilotEstimate) -> Curve:
        """Return the hazard that a first look has found, interval by interval."""
        return self.likelihood.link.survival(self.basis @ look.center[: self.model.n_knots])

    # ---- What is known of centre and rows.

    def look(self, known: Known) -> PilotEstimate:
        """Return what a first look has released, or what is public."""
        public = self.public_look
        if not self.looks or "_mean" not in known:
            return public
        center = public.center.copy()
        center[: self.model.n_knots] = known["_baseline"]
        return PilotEstimate(center, known["_mean"], known["_radius"], known["_spread"])

    @property
    def public_look(self) -> PilotEstimate:
        """What is known without a look: the prior hazard, and the bound on rows."""
        model, likelihood = self.model, self.likelihood
        center = np.zeros(likelihood.n_params)
        center[0] = likelihood.link.predictor(model.prior_hazard) / likelihood.basis[0, 0]
        center[: model.n_knots] = self.moderate(center[: model.n_knots])
        return PilotEstimate(center, np.zeros(model.n_features), model.data_norm, model.data_norm)

    def moderate(self, baseline: FloatArray) -> FloatArray:
        """Return a baseline whose linear predictors are within ``LARGEST_PREDICTOR``."""
        largest = float(np.max(np.abs(self.basis @ baseline)))
        return baseline * min(1.0, LARGEST_PREDICTOR / max(largest, LARGEST_PREDICTOR))

    def seen(self, records: Blocks[HazardRecords], look: PilotEstimate) -> Blocks[HazardBlock]:
        """Return what the likelihood sees of records, after a first look."""
        reach = REACH if self.weighed else None
        return records.map(lambda block: block.within(look.mean, look.radius, reach))

    def problem(self, records: Blocks[HazardRecords], look: PilotEstimate) -> Problem:
        """Return the minimisation after a first look."""
        likelihood, calibration = self.after(look)
        seen, price = self.seen(records, look), SharedPrice(self.price)
        return Problem(likelihood, seen, calibration, look.center, price)

    # ---- What a released point says.

    def evidence(self, minimiser: FloatArray, look: PilotEstimate) -> Evidence:
        """Return what a minimiser says of coefficients on the scale of X, by itself."""
        model = self.model
        events = model.n_records * -np.expm1(-self._hazard(look).value.sum())
        second_moment = (look.spread / look.radius) ** 2 / model.n_features
        information = INFORMATION_PART * max(events, 1.0) * second_moment
        found = Evidence.of_minimiser(
            minimiser[model.n_knots :], information, self.after(look).calibration
        )
        return found.scaled(1.0 / look.radius)

    def posterior_mean(
        self, minimiser: FloatArray, own: Evidence, look: PilotEstimate
    ) -> FloatArray:
        """Return a minimiser with the coefficients that it has together with the prior."""
        if self.prior is None:
            return minimiser
        baseline, coef = np.split(minimiser, [self.model.n_knots])
        prior = self.prior.evidence.scaled(1.0 / steepness(self._hazard(look)))
        return np.append(baseline, own.posterior_mean(coef / look.radius, prior) * look.radius)

    def unscaled(self, coef: FloatArray, look: PilotEstimate) -> tuple[FloatArray, FloatArray]:
        """Return a point as a baseline on the grid and coefficients on the scale of X."""
        n_knots = self.model.n_knots
        beta = coef[n_knots:] / look.radius
        return self.basis @ coef[:n_knots] - look.mean @ beta, beta

    def fitted(self, coef: FloatArray, look: PilotEstimate) -> dict[str, Any]:
        """Return a released point by the names of a release, and on the grid."""
        baseline, beta = self.unscaled(coef, look)
        return {"_fitted": (baseline, beta), **released(self.model, baseline, beta)}


def from_to(first: Any, last: Any) -> Any:
    """Return what is stated of a number that a release decides between two ends."""
    return first if first == last else {"from": first, "to": last}


@dataclass(frozen=True, eq=False, kw_only=True)
class HazardSum(NoisySum):
    """A noisy sum before or after a perturbed fit.

    Parameters
    ----------
    price : float or Concentrated
    fit : HazardFit
    """

    fit: HazardFit

    theorem = HAZARD_PROOF


class LifeTable(HazardSum):
    """Exits by band and event, and the baseline that they suggest."""

    name = "a life table"
    asked = HISTOGRAM  # each record is in one cell

    def ask(self, known: Known, records: Blocks[HazardRecords]) -> IntArray:
        """Return exact counts."""
        exits = records.map(lambda block: (block.interval, block.event))
        return life_table_counts(exits, self.fit.model.n_intervals)

    def after(self, known: Known, noisy: IntArray) -> dict[str, Any]:
        """Return the baseline to shrink to."""
        fit = self.fit
        public = fit.public_look.center[: fit.model.n_knots]
        link, basis = fit.likelihood.link, fit.likelihood.basis
        found = baseline_from_life_table(noisy, self.price, basis, link, public)
        return {"_baseline": fit.moderate(found)}


class RowMean(HazardSum):
    """The mean of the rows, which centres them, and the spread that is left."""

    name = "the mean of the rows"

    def query(self, known: Known) -> MeanOfRows:
        """Return the mean, of rows that are clipped."""
        model = self.fit.model
        return MeanOfRows(model.n_records, model.n_features, model.data_norm)

    def scales(self) -> list[float]:
        """Return the noise in units of ``data_norm``, which is the size that a mean can have."""
        query = self.query({})
        return [query.law(self.price).scale / query.data_norm]

    def ask(self, known: Known, records: Blocks[HazardRecords]) -> FloatArray:
        """Return the exact mean."""
        return self.query(known).mean(records.map(lambda block: block.X))

    def after(self, known: Known, noisy: FloatArray) -> dict[str, Any]:
        """Return the mean, the radius that rows are clipped to, and the spread."""
        model, fit = self.fit.model, self.fit
        mean, spread = self.query(known).shrunk(noisy, self.price)
        spread = max(spread, SMALLEST_SPREAD * model.data_norm)
        least, most = INFERENCE_SPREAD if fit.weighed else SPREAD_RANGE
        wider = least * model.signal(fit.epsilon) ** SPREAD_POWER
        radius = spread * float(np.clip(wider, least, most))
        return {"_mean": mean, "_radius": radius, "_spread": spread}


@dataclass(frozen=True, eq=False)
class HazardPoint(Mechanism):
    """A point that a perturbed fit releases, and how it was calibrated."""

    fit: HazardFit

    @property
    def price(self) -> Price:  # type: ignore[override]
        """That of the fit."""
        return self.fit.price

    def scales(self) -> list[float]:
        """Return the public numbers that must be neither huge nor tiny."""
        spans = [self.fit.model.data_norm]
        for likelihood, calibration in self.fit.ends:
            spans += [calibration.kappa, calibration.noise_scale]
            if likelihood.max_cumulative_hazard is not None:
                spans.append(likelihood.max_cumulative_hazard)
        return spans

    def stated(self) -> dict[str, Any]:
        """Return the price, and the ends of what a released life table decides."""
        ends = [
            {
                "max_cumulative_hazard": likelihood.max_cumulative_hazard,
                "gradient_sensitivity": likelihood.constants.gradient_sensitivity,
                "hessian_trace": likelihood.constants.hessian_trace,
                "hessian_rank": likelihood.constants.hessian_rank,
                "kappa": calibration.kappa,
                "noise_scale": calibration.noise_scale,
                "n_steps": steps_of(calibration),
            }
            for likelihood, calibration in self.fit.ends
        ]
        stated = {name: from_to(ends[0][name], ends[-1][name]) for name in ends[0]}
        if not stated["n_steps"]:
            del stated["n_steps"]
        return stated_price("fit", self.price) | stated


class HazardMinimiser(HazardPoint, Minimisers):
    """The perturbed minimiser of a capped likelihood, after a first look."""

    alone = True

    @property
    def noise(self) -> float:  # type: ignore[override]
        """That of the fit."""
        return self.fit.noise

    @property
    def name(self) -> str:  # type: ignore[override]
        """What was perturbed, in words."""
        prior = ", together with a prior" if self.fit.prior is not None else ""
        return f"{perturbation.NAMES[self.fit.method]} of a hazard-capped likelihood{prior}"

    @property
    def proof(self) -> str:  # type: ignore[override]
        """Where it is proved."""
        return GAUSSIAN if isinstance(self.price, Concentrated) else HAZARD_PROOF

    @property
    def assumptions(self) -> tuple[str, ...]:  # type: ignore[override]
        """What a prior promises."""
        return () if self.fit.prior is None else self.fit.prior.promises.assumptions()

    def stated(self) -> dict[str, Any]:
        """Return how it was calibrated, and what a prior is."""
        prior = self.fit.prior
        return super().stated() | ({} if prior is None else prior.promises.public_inputs())

    def problems(self, known: Known, records: Blocks[HazardRecords]) -> list[Problem]:
        """Return the one minimisation."""
        return [self.fit.problem(records, self.fit.look(known))]

    def after(self, known: Known, found: list[Perturbed]) -> dict[str, Any]:
        """Return baseline and coefficients, and what they are worth."""
        fit, (minimiser,), look = self.fit, found, self.fit.look(known)
        own = fit.evidence(minimiser.coef, look)
        posterior_mean = fit.posterior_mean(minimiser.coef, own, look)
        return {"_minimiser": minimiser, **fit.fitted(posterior_mean, look), **own.values()}
