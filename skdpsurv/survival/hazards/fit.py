r"""A perturbed hazard model: its public numbers, a pilot estimate, and its minimiser.

Rows are centred and clipped, and the cap on cumulative hazards is chosen, by what the pilot has
released.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skdpsurv.data.blocks import Blocks
from skdpsurv.data.known_columns import KnownColumns
from skdpsurv.dp.plan import GAUSSIAN, Context, Mechanism, NoisySum
from skdpsurv.dp.privacy_cost import Concentrated, Price, stated_price
from skdpsurv.dp.types import FloatArray
from skdpsurv.inference import DOWNWEIGHTING_BOUND
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.links import Curve, steepness
from skdpsurv.likelihoods.stratified import StratifiedHazard
from skdpsurv.mechanisms import perturbation
from skdpsurv.mechanisms.newton import Center
from skdpsurv.mechanisms.vector_noise import NoiseDistribution, SphericalLaplace
from skdpsurv.priors import Evidence, Prior, Promises
from skdpsurv.survival.hazards import model as models
from skdpsurv.survival.hazards.pilot_estimate import PilotEstimate
from skdpsurv.survival.hazards.record_classes import RecordClasses

# Tuned constants, each with the page of docs/benchmarks that found it, if there is one.

#: Root mean squares of the baseline's columns, beside covariates in a unit ball: small columns keep
#: the sensitivity near that of the covariates alone (docs/benchmarks/discrete_time).
LEVEL_SIZE, SHAPE_SIZE = 0.4, 0.15
#: Largest value of a step of the baseline.
STEP_SIZE = 0.25
NO_PROMISES = Promises(())
#: Share of epsilon for the pilot where its rows are not scaled.
PILOT_SHARE = 0.1
#: Share of ``pilot_share`` for the life table; the mean of the rows has the rest.
TABLE_PART = 1.0 / 3.0
#: Share of ``inference_share`` for the event-count table.
OUTCOME_PART = 0.08
#: Largest linear predictor of the baseline that a fit starts from.
LARGEST_PREDICTOR = 25.0
#: Below this n * epsilon the pilot, risk table and standard errors are skipped: all is noise.
PILOT_RECORDS = 200.0
#: Below this n * epsilon in the mean stratum the risk table is skipped.
STRATUM_RECORDS = 2500.0
#: max_cumulative_hazard="auto" rises to this many times the level of the released life table, up to
#: the second number; in full from the information of the third number.
CAP_LEVEL, HIGHEST_RISE, RISE_INFORMATION = 0.8, 3.0, 1.0
#: The first of these is multiplied by this where no recalibration follows, as of changing effects
#: (docs/benchmarks/changing_effects).
UNCORRECTED = 1.5
#: It falls with this power of a level below 1: few people have large cumulative hazards.
FALL_POWER = 1.0 / 3.0
#: Centred rows are clipped at a power of the information, within a range, times their root mean
#: square length.
SPREAD_POWER, SPREAD_RANGE = 0.16, (1.0, 2.0)
#: This range where columns are divided by their spreads, so that the length is known.
SCALED_RANGE = (0.7, 1.4)
#: This power and range with standard errors: downweighted rows allow a lower bound.
INFERENCE_SPREAD = (0.8, 4.0)
#: The cap with standard errors: factor and power of the information, its maximum, and how many
#: times the level of the life table it is at most (docs/benchmarks/intervals).
INFERENCE_CAP, INFERENCE_LEVEL = (1.0, 0.48, 12.0), 2.0


class CappedFit(NamedTuple):
    """A capped likelihood, and how its minimiser is perturbed."""

    likelihood: DiscreteHazard | StratifiedHazard
    calibration: perturbation.Calibrated


@dataclass(frozen=True)
class HazardFit:
    """Public numbers of a perturbed fit: ``epsilon`` of the whole, ``price`` of the minimiser."""

    model: models.HazardModel
    epsilon: float
    method: str
    alpha: float
    price: Price
    has_pilot: bool = False
    has_inference: bool = False
    distribution: type[NoiseDistribution] = SphericalLaplace
    prior: Prior | None = None
    known: KnownColumns | None = None
    promises: Promises = NO_PROMISES
    n_causes: int = 1
    likelihood: DiscreteHazard | StratifiedHazard = field(init=False)
    calibration: perturbation.Calibrated = field(init=False)

    def __post_init__(self) -> None:
        likelihood, calibration = self.bounded(self.model.cap(self.epsilon))
        object.__setattr__(self, "likelihood", likelihood)
        object.__setattr__(self, "calibration", calibration)

    @cached_property
    def basis(self) -> FloatArray:
        """Basis of the baseline's predictor, one column for each parameter."""
        basis = models.orthogonal_basis(*self.model.curve) * SHAPE_SIZE
        basis[:, 0] *= LEVEL_SIZE / SHAPE_SIZE
        # A step near an end is steep on the scale of its mean square.
        steps = np.abs(basis[:, self.model.n_knots :])
        basis[:, self.model.n_knots :] *= np.minimum(STEP_SIZE / steps.max(axis=0), 1.0)
        return basis

    @cached_property
    def _bounded(self) -> dict[float | None, CappedFit]:
        return {}

    def bounded(self, cap: float | None) -> CappedFit:
        """Return the likelihood with a cap, and its perturbation; made once for each cap."""
        if cap not in self._bounded:
            self._bounded[cap] = self._made(cap)
        return self._bounded[cap]

    def _made(self, cap: float | None) -> CappedFit:
        how = self.basis, self.model.bounded_link(), cap, self.has_inference
        likelihood = models.likelihood_of(self.model, *how)
        return CappedFit(likelihood, self.calibrated(likelihood))

    def calibrated(self, likelihood: DiscreteHazard | StratifiedHazard) -> perturbation.Calibrated:
        """Return the calibration of ridge and noise for a likelihood."""
        n, d, center = self.model.n_records, likelihood.n_params, self.center_of(likelihood)
        how = self.method, likelihood.constants, self.price
        return perturbation.calibrate(*how, n, d, self.alpha, self.distribution, center)

    def center_of(self, likelihood: DiscreteHazard | StratifiedHazard) -> Center:
        """Return public bounds on the centre of the ridge, and on the loss there."""
        least = np.linalg.svd(self.basis, compute_uv=False)[-1] / math.sqrt(self.basis.shape[0])
        norm = math.sqrt(self.model.n_strata) * (LARGEST_PREDICTOR / float(least))
        return Center(norm, likelihood.loss_within(LARGEST_PREDICTOR))

    @property
    def noise(self) -> float:
        """Deviation of the noise relative to the gradient sensitivity, to compare methods by."""
        deviation = perturbation.deviation(self.calibration)
        return deviation / self.likelihood.constants.gradient_sensitivity

    @property
    def highest_cap(self) -> Any:
        """Public maximum of the cap on cumulative hazards."""
        usual: Any = self.likelihood.max_cumulative_hazard
        model = self.model
        if not self._follows:
            return usual
        scale, power, highest = INFERENCE_CAP
        rise = min(scale * model.information(self.epsilon) ** power, highest)
        return max(usual, rise if self.has_inference else HIGHEST_RISE)

    @property
    def _follows(self) -> bool:
        """Whether the cap follows a released life table."""
        return self.has_pilot and isinstance(self.model.max_cumulative_hazard, str)

    @cached_property
    def ends(self) -> list[CappedFit]:
        """The fits with the least cap and, if that differs, with the highest."""
        caps = [models.CAP_RANGE[0], self.highest_cap] if self._follows else [self.highest_cap]
        return [self.bounded(cap) for cap in caps]

    def after(self, pilot: PilotEstimate) -> CappedFit:
        """Return likelihood and calibration, with the cap that follows from a life table."""
        if not self._follows:
            return self.bounded(self.highest_cap)
        return self.bounded(self.cap_at(float(self.levels(pilot))))

    def cap_at(self, level: float) -> float:
        """Return the cap that follows from the cumulative hazard of a life table."""
        usual: Any = self.likelihood.max_cumulative_hazard
        fall = usual * min(1.0, level) ** FALL_POWER
        times = INFERENCE_LEVEL if self.has_inference else CAP_LEVEL
        if self.model.changing is not None and not self.has_inference:
            times *= UNCORRECTED
        rise = level * times * min(1.0, self.model.information(self.epsilon) / RISE_INFORMATION)
        return float(min(max(models.CAP_RANGE[0], fall, rise), self.highest_cap))

    def _hazard(self, pilot: PilotEstimate) -> Curve:
        """Return the pilot's hazard in each interval, in the mean of the strata."""
        link = self.likelihood.link
        curves = [link.survival(self.basis @ own) for own in self.baselines(pilot.center)]
        return Curve(*(pilot.shares @ np.array(own) for own in zip(*curves, strict=True)))

    def levels(self, pilot: PilotEstimate) -> Any:
        """Return the pilot's cumulative hazard by the horizon; with causes, in rows of one."""
        return self._hazard(pilot).value.sum()

    def log_slopes(self, pilot: PilotEstimate) -> Any:
        """Return derivatives of log hazards by their predictors; with causes, in rows of one."""
        return steepness(self._hazard(pilot))

    def baselines(self, coef: FloatArray) -> FloatArray:
        """Return the coefficients of the baselines, a row for each stratum: a view of all."""
        return coef[: self.model.n_baseline].reshape(-1, self.model.n_columns)

    def effects(self, coef: FloatArray) -> FloatArray:
        """Return the coefficients of covariates; with causes, in rows: a view of all."""
        return coef[self.model.n_baseline :]

    def events_left(self, pilot: PilotEstimate) -> FloatArray:
        """Return chances of an event after 0, ..., q intervals, by the horizon, of each stratum."""
        so_far = np.pad(np.cumsum(self.hazards(pilot), axis=1), ((0, 0), (1, 0)))
        return -np.expm1(so_far - so_far[:, -1:])

    def hazards(self, pilot: PilotEstimate) -> FloatArray:
        """Return the pilot's hazards in each interval, of each stratum, of any event."""
        return self.likelihood.link.survival(self.baselines(pilot.center) @ self.basis.T).value

    @property
    def n_classes(self) -> int:
        """Number of classes of records, by stratum and entry."""
        model = self.model
        late = RecordClasses.n_entries(models.N_BANDS, model.n_intervals) if model.has_entry else 1
        return model.n_strata * late

    def classes(self, context: Context) -> RecordClasses:
        """Return the classes of records, which follow from the released life table."""
        model, entered = self.model, None
        if model.has_entry:
            n_cells = 1 + min(models.N_BANDS, model.n_intervals)
            entered = context.get("_entered", np.zeros(n_cells))
        return RecordClasses.of_table(model.n_strata, model.n_intervals, entered)

    def pilot(self, context: Context) -> PilotEstimate:
        """Return the released pilot estimate, or else the public one."""
        public = self.public_pilot
        if not self.has_pilot or "_baseline" not in context:
            return public
        center = self.centered(public.center, context["_baseline"])
        shares, events = context.get("_shares", public.shares), context.get("_events")
        public = public._replace(shares=shares, events=events)
        if "_mean" not in context:
            return public._replace(center=center)
        names = ("_mean", "_radius", "_spread", "_scales")
        mean, radius, spread, scales = (context[name] for name in names)
        return PilotEstimate(center, mean, radius, spread, scales, public.events, public.shares)

    def centered(self, center: FloatArray, baseline: FloatArray) -> FloatArray:
        """Return a centre of the ridge with baselines fitted to the life table."""
        center = center.copy()
        self.baselines(center)[:] = baseline.reshape(-1, self.model.n_columns)
        return center

    #: Causes whose scores have a table each to recalibrate by; 0 is the only one.
    scored_causes: ClassVar[Any] = (0,)
    #: The measurement of the pilot's life table; None: the usual one.
    life_table: ClassVar[Any] = None

    def minimiser(self) -> Mechanism:
        """Return the mechanism that releases the perturbed minimiser."""
        return HazardMinimiser(self)

    @property
    def prior_predictor(self) -> Any:
        """The baseline's predictor at the prior hazard."""
        return self.likelihood.link.predictor(self.model.prior_hazard)

    @property
    def public_pilot(self) -> PilotEstimate:
        """The pilot estimate that reads no record: the prior's hazard, and the bound on rows."""
        model, likelihood = self.model, self.likelihood
        center = np.zeros(likelihood.n_params)
        baselines = self.baselines(center)
        baselines[:, 0] = self.prior_predictor / self.basis[0, 0]
        baselines[:] = [self.clip_baseline(own) for own in baselines]
        shares = np.full(model.n_strata, 1.0 / model.n_strata)
        if (stated := self.stated_scales) is not None:
            mean, radius, spread, scales = self.scaled_rows(*stated).values()
            return PilotEstimate(center, mean, radius, spread, scales, shares=shares)
        norm = model.data_norm
        return PilotEstimate(center, np.zeros(model.n_features), norm, norm, shares=shares)

    @property
    def stated_scales(self) -> tuple[FloatArray, FloatArray] | None:
        """Public centres and scales of the features; None if no spread is stated."""
        known = self.known
        if known is None or not known.states_spreads:
            return None
        return known.scales(shared=not self.has_inference)

    def radius(self, spread: float, range_: tuple[float, float] = SPREAD_RANGE) -> float:
        """Return the clipping norm of rows of a root mean square length."""
        least, most = INFERENCE_SPREAD if self.has_inference else range_
        radii = least * self.model.information(self.epsilon) ** SPREAD_POWER
        return spread * float(np.clip(radii, least, most))

    def scaled_rows(self, mean: FloatArray, scales: FloatArray | None) -> dict[str, Any]:
        """Return how rows are read whose columns are divided by their spreads."""
        spread = math.sqrt(mean.size)  # each column has mean square 1
        radius = self.radius(spread, SCALED_RANGE)
        return {"_mean": mean, "_radius": radius, "_spread": spread, "_scales": scales}

    def clip_baseline(self, baseline: FloatArray) -> FloatArray:
        """Scale a baseline down so that its linear predictors are within the largest one."""
        largest = float(np.max(np.abs(self.basis @ baseline)))
        return baseline * min(1.0, LARGEST_PREDICTOR / max(largest, LARGEST_PREDICTOR))

    def blocks(self, records: models.Records, pilot: PilotEstimate) -> Blocks[models.Block]:
        """Return records as the likelihood takes them."""
        bound = DOWNWEIGHTING_BOUND if self.has_inference else None
        how = pilot.mean, pilot.radius, bound, pilot.scales
        return records.map(lambda block: block.clipped(*how))

    def problem(self, records: models.Records, pilot: PilotEstimate) -> perturbation.Problem:
        """Return the minimisation that follows from a pilot estimate."""
        likelihood, calibration = self.after(pilot)
        blocks, price = self.blocks(records, pilot), perturbation.SharedPrice(self.price)
        return perturbation.Problem(likelihood, blocks, calibration, pilot.center, price)

    def evidence(self, minimiser: FloatArray, pilot: PilotEstimate) -> Evidence:
        """Return unshrunk coefficients with standard errors, on the scale of X."""
        information = pilot.information(self.levels(pilot), self.model.n_records)
        how = perturbation.ridge_and_variances(self.after(pilot).calibration)
        evidence = Evidence.of_minimiser(self.effects(minimiser), information, *how)
        return evidence.scaled(1.0 / pilot.unit)

    def posterior_mean(self, point: FloatArray, own: Evidence, pilot: PilotEstimate) -> FloatArray:
        """Return a minimiser whose coefficients, of each cause, are combined with the prior."""
        if self.prior is None:
            return point
        found, prior = point.copy(), self.prior.evidence.scaled(1.0 / self.log_slopes(pilot))
        rows = np.atleast_2d(self.effects(found))
        for coef, ours, theirs in zip(rows, own.rows(), prior.rows(), strict=True):
            coef[:] = ours.posterior_mean(coef / pilot.unit, theirs) * pilot.unit
        return found

    def fitted(self, coef: FloatArray, pilot: PilotEstimate) -> dict[str, Any]:
        """Return a point as values of a release, and as baseline on the grid and coefficients."""
        cap = self.after(pilot).likelihood.max_cumulative_hazard
        beta, more = models.in_published(self.model, coef[self.model.n_baseline :], pilot.unit)
        baselines = [self.basis @ own - pilot.mean @ beta for own in self.baselines(coef)]
        baseline = baselines[0] if len(baselines) == 1 else np.array(baselines)
        # Rows and cap follow from what the pilot has released: post-processing.
        how = pilot.values() | more | ({} if cap is None else {models.CAPS[0]: [cap]})
        return {"_fitted": (baseline, beta), **models.released(self.model, baseline, beta), **how}


def stated_range(first: Any, last: Any) -> Any:
    """Return how a guarantee states a number that an earlier release will choose in a range."""
    return first if first == last else {"from": first, "to": last}


@dataclass(frozen=True, eq=False, kw_only=True)
class HazardSum(NoisySum):
    """A noisy sum before or after a perturbed fit."""

    fit: HazardFit

    theorem = models.HAZARD_PROOF


@dataclass(frozen=True, eq=False)
class HazardPoint(Mechanism):
    """A point that a perturbed fit releases, and how it was calibrated."""

    fit: HazardFit

    @property
    def price(self) -> Price:  # type: ignore[override]
        """Price of the fit."""
        return self.fit.price

    def rests_on(self) -> list[type]:
        """Return the classes of losses, links, calibrations and noise."""
        found: list[type] = []
        for likelihood, calibration in self.fit.ends:
            found += perturbation.theorem_classes(likelihood, calibration)
            found.append(type(likelihood.link))
        return found

    def calibrated(self, context: Context | None) -> Sequence[CappedFit]:
        """Return likelihood and calibration after a pilot; None: for its extremes."""
        return self.fit.ends if context is None else [self.fit.after(self.fit.pilot(context))]

    def drawn(self, context: Context | None) -> Mapping[str, Any]:
        return perturbation.stated_fits(self.calibrated(context))

    def scales(self) -> list[float]:
        """Return public numbers that must be in the representable range."""
        spans = [self.fit.model.data_norm]
        for likelihood, calibration in self.fit.ends:
            spans += [calibration.kappa, calibration.noise_scale]
            spans += filter(None, [likelihood.max_cumulative_hazard])
        return spans

    def stated(self) -> dict[str, Any]:
        """Return the price, and the range of each number that a life table decides."""
        ends = [
            {
                "max_cumulative_hazard": likelihood.max_cumulative_hazard,
                "gradient_sensitivity": likelihood.constants.gradient_sensitivity,
                "hessian_trace": likelihood.constants.hessian_trace,
                "hessian_rank": likelihood.constants.hessian_rank,
                "kappa": calibration.kappa,
                "noise_scale": calibration.noise_scale,
                **({"n_steps": steps} if (steps := perturbation.steps_of(calibration)) else {}),
            }
            for likelihood, calibration in self.fit.ends
        ]
        stated = {name: stated_range(ends[0][name], ends[-1][name]) for name in ends[0]}
        return stated_price("fit", self.price) | stated


class HazardMinimiser(HazardPoint, perturbation.Minimisers):
    """The perturbed minimiser of a capped likelihood, after a pilot."""

    one_source = True

    @property
    def noise(self) -> float:  # type: ignore[override]
        """Deviation of the noise relative to the gradient sensitivity."""
        return self.fit.noise

    @property
    def name(self) -> str:  # type: ignore[override]
        """The perturbation in words."""
        prior = ", together with a prior" if self.fit.prior is not None else ""
        return f"{perturbation.NAMES[self.fit.method]} of a hazard-capped likelihood{prior}"

    @property
    def proof(self) -> str:  # type: ignore[override]
        """Page of the proof."""
        return GAUSSIAN if isinstance(self.price, Concentrated) else models.HAZARD_PROOF

    @property
    def assumptions(self) -> tuple[str, ...]:  # type: ignore[override]
        """Assumptions about a prior."""
        return () if self.fit.prior is None else self.fit.prior.promises.assumptions()

    def stated(self) -> dict[str, Any]:
        """Return the calibration, and public facts about a prior."""
        prior = self.fit.prior
        return super().stated() | ({} if prior is None else prior.promises.public_inputs())

    def problems(self, context: Context, records: models.Records) -> list[perturbation.Problem]:
        """Return the minimisation of the fit, in a list of one."""
        return [self.fit.problem(records, self.fit.pilot(context))]

    def postprocess(self, context: Context, found: list[perturbation.Perturbed]) -> dict[str, Any]:
        """Return baseline and coefficients, and evidence about the latter."""
        fit, (minimiser,), pilot = self.fit, found, self.fit.pilot(context)
        if fit.model.changing is not None:  # no prior, and no evidence for one
            return {"_minimiser": minimiser, **fit.fitted(minimiser.coef, pilot)}
        own = fit.evidence(minimiser.coef, pilot)
        posterior_mean = fit.posterior_mean(minimiser.coef, own, pilot)
        return {"_minimiser": minimiser, **fit.fitted(posterior_mean, pilot), **own.values()}
