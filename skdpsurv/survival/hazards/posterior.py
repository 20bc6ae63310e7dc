"""PosteriorSampling, and hazard models drawn from a sanitised posterior by a Markov chain.

The distribution is that of :mod:`skdpsurv.mechanisms.posterior_sampling`; chains of noisy gradients
are those of :mod:`skdpsurv.mechanisms.descent`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from skdpsurv.data.blocks import first
from skdpsurv.dp import RandomSource, checks
from skdpsurv.dp.noise import round_to_lattice
from skdpsurv.dp.plan import Context, Distances, Mechanism
from skdpsurv.dp.privacy_cost import Concentrated, Cost, cost_of
from skdpsurv.dp.references import reference
from skdpsurv.dp.types import FloatArray
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.likelihoods.loss import around
from skdpsurv.likelihoods.stratified import StratifiedHazard
from skdpsurv.mechanisms import descent
from skdpsurv.mechanisms.descent import LANGEVIN_STEPS_RANGE, Chain, LangevinCalibration
from skdpsurv.mechanisms.langevin import MALA, PSGLD, least_step
from skdpsurv.mechanisms.perturbation import distances
from skdpsurv.mechanisms.posterior_sampling import PRIOR_PRECISION, Sanitizer, Target, calibrate
from skdpsurv.survival.hazards.fit import HazardFit, HazardPoint, stated_range
from skdpsurv.survival.hazards.model import HazardModel, Records, orthogonal_basis, released
from skdpsurv.survival.hazards.pilot_estimate import PilotEstimate

SAMPLERS = ("mala", "psgld")
#: "auto": passes over the data of pSGLD, as in the paper; and of MALA, so that records times passes
#: are the first number, within a range, as posteriors of few records are far from normal.
PSGLD_EPOCHS, MALA_RECORDS, MALA_RANGE = 250, 4_000_000, (400, 4000)
#: Fewest steps of a chain, and most epochs.
LEAST_STEPS, MOST_EPOCHS = {"mala": 100, "psgld": 1000}, 10**9
#: Share of a chain in which it adapts.
BURN_IN = {"mala": 0.5, "psgld": 0.1}
#: Lattice of a released draw, on the scale of the fit: 10^-9 of the prior's standard deviation.
LATTICE = 2.0**-27
#: States of a chain, on the scale of the fit: private.
States = Iterator[FloatArray]


class PosteriorSampling(checks.Parameters):
    """How ``DPDiscreteTimeSurvival(method=...)`` draws from a sanitised posterior.

    ``method="psgld"`` is this with its defaults.

    Parameters
    ----------
    sampler : {"mala", "psgld"}, default="mala"
        Markov chain: the Metropolis-adjusted Langevin algorithm on all records, or the paper's
        stochastic gradients, with a corrected step. Both have the same limit; "mala" converges a
        hundred times faster. With a delta only "psgld", on all records.
    n_epochs : int or "auto", default="auto"
        Passes over the data: one step of "mala", n steps of "psgld" as in the paper, after 100
        passes from a draw of the prior. "auto" is 400 (to 4000 below 10,000 records), and 250. At
        least 100 with "mala"; "psgld" needs 1000 steps. With a delta a pass is one
        step, at least 30, "auto" follows from public numbers, and ``batch_size``, ``step_size``
        and ``step_exponent`` are not used.
    batch_size : int, default=200
        Records in a step of "psgld"; all of them if there are fewer.
    step_size : float or "auto", default="auto"
        First step a_1 of "psgld"; "auto" is the largest that is stable at a mode. Refused if it is
        so small, by public numbers, that the chain would stay at its start.
    step_exponent : float, default=0.51
        Steps of "psgld" shrink as ``t ** -step_exponent``, above 0.5 and at most 1.
    verbose : int, default=0
        1 shows a progress bar while a chain runs.

    Examples
    --------
    >>> from skdpsurv import DPDiscreteTimeSurvival, PosteriorSampling
    >>> model = DPDiscreteTimeSurvival(max_time=5.0, method=PosteriorSampling(n_epochs=400))
    >>> model.set_params(method__n_epochs=1000).method
    PosteriorSampling(n_epochs=1000)
    """

    _rules: ClassVar[dict[str, checks.Check]] = {
        "sampler": checks.choice(*SAMPLERS),
        "n_epochs": checks.auto_or(checks.integer(at_most=MOST_EPOCHS)),
        "batch_size": checks.integer(),
        "step_size": checks.auto_or(checks.positive()),
        "step_exponent": checks.number_in(
            0.5, 1.0, closed="right", why="Else the chain has no limit."
        ),
        "verbose": checks.verbosity,
    }

    def __init__(
        self,
        sampler: str = "mala",
        *,
        n_epochs: int | str = "auto",
        batch_size: int = 200,
        step_size: float | str = "auto",
        step_exponent: float = 0.51,
        verbose: int = 0,
    ) -> None:
        self.sampler = sampler
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.step_size = step_size
        self.step_exponent = step_exponent
        self.verbose = verbose

    def check(self) -> None:
        """Refuse parameters that break a rule.

        Raises
        ------
        ValueError, TypeError
            Naming the parameter.
        """
        super().check()
        if self.sampler == "mala":
            self._require_epochs(LEAST_STEPS["mala"], "sampler='mala'")

    def check_noisy(self) -> None:
        """Raise a ValueError that names the parameter, unless these parameters fit a delta."""
        if self.sampler != "psgld":
            raise ValueError(
                "delta must be 0 with sampler='mala': PosteriorSampling('psgld') takes one."
            )
        self._require_epochs(LANGEVIN_STEPS_RANGE[0], "method='psgld' and a delta")

    def _require_epochs(self, least: int, setting: str) -> None:
        if not isinstance(self.n_epochs, str) and self.n_epochs < least:
            raise ValueError(
                f"n_epochs must be at least {least} with {setting}, got {self.n_epochs}."
            )

    def n_steps(self, n_records: int) -> int:
        """Return the length of the chain."""
        epochs = self.n_epochs
        if isinstance(epochs, str) and self.sampler == "mala":
            epochs = min(max(MALA_RANGE[0], MALA_RECORDS // n_records), MALA_RANGE[1])
        elif isinstance(epochs, str):
            epochs = max(PSGLD_EPOCHS, self.least_epochs(n_records))
        return int(epochs) * self._steps_in_epoch(n_records)

    def least_epochs(self, n_records: int) -> int:
        """Return the fewest epochs that have enough steps."""
        return math.ceil(LEAST_STEPS[self.sampler] / self._steps_in_epoch(n_records))

    def _steps_in_epoch(self, n_records: int) -> int:
        return n_records if self.sampler == "psgld" else 1

    def check_length(self, sanitizer: Sanitizer, n_records: int) -> None:
        """Refuse a chain that would stay near its start, by public numbers.

        Raises
        ------
        ValueError
            If ``n_epochs`` or ``step_size`` is too small for this many records.
        """
        setting = f"sampler={self.sampler!r} and {n_records} records"
        self._require_epochs(self.least_epochs(n_records), setting)
        if self.sampler == "mala" or isinstance(self.step_size, str):
            return
        size, n_steps = self._batch(n_records), self.n_steps(n_records)
        shortest = least_step(sanitizer, n_records, size, n_steps, float(self.step_exponent))
        if self.step_size < shortest:
            raise ValueError(f"step_size must be at least {shortest:.3g}, got {self.step_size}.")

    def burn_in(self, n_records: int) -> int:
        """Return the number of steps in which the chain adapts."""
        return math.ceil(BURN_IN[self.sampler] * self.n_steps(n_records))

    def chain(self, n_records: int) -> MALA | PSGLD:
        """Return the chain for n records."""
        burn_in = self.burn_in(n_records)
        if self.sampler == "mala":
            return MALA(burn_in)
        step = None if isinstance(self.step_size, str) else float(self.step_size)
        return PSGLD(burn_in, self._batch(n_records), step, float(self.step_exponent))

    def _batch(self, n_records: int) -> int:
        return min(int(self.batch_size), n_records)


@dataclass(frozen=True)
class PosteriorDraw(Mechanism):
    """One draw of the sanitised posterior of the uncapped likelihood, with a normal prior at 0.

    The model's cap and ``prior_event_rate`` are not used; ``alpha`` is a ridge in addition to the
    prior, on the scale of the mean loss.
    """

    model: HazardModel
    epsilon: float
    alpha: float
    schedule: PosteriorSampling
    sanitizer: Sanitizer = field(init=False)
    basis: FloatArray = field(init=False)

    #: The theorem holds in the limit of an infinite chain.
    claim = "asymptotic"
    law = "sanitised posterior"
    proof = reference("docs/proofs/posterior_sampling", "nguyen-hui")

    def __post_init__(self) -> None:
        model = self.model
        plain = calibrate(self.epsilon, model.n_records)
        prior = plain.prior_precision + plain.rate * model.n_records * self.alpha
        object.__setattr__(self, "basis", self.basis_of(model))
        object.__setattr__(self, "sanitizer", replace(plain, prior_precision=prior))
        self.schedule.check_length(self.sanitizer, model.n_records)

    @property
    def cost(self) -> Cost:
        """Epsilon, which a draw of the limit itself would cost."""
        return cost_of(self.epsilon)

    def rests_on(self) -> list[type]:
        """Return the classes that the theorem must be about: that of the link."""
        return [type(LINKS[self.model.link])]

    @property
    def name(self) -> str:  # type: ignore[override]
        """The mechanism in words."""
        sampler = self.schedule.sampler
        return f"sanitised exponential mechanism, one state of a Markov chain ({sampler})"

    def scales(self) -> list[float]:
        """Return public numbers that must be in the representable range."""
        return [self.model.data_norm, self.sanitizer.rate, self.sanitizer.prior_precision]

    def stated(self) -> dict[str, Any]:
        """Return the constants of the distribution and the length of the chain."""
        return {
            "loss_ceiling": self.sanitizer.ceiling,
            "rate": self.sanitizer.rate,
            "prior_precision": self.sanitizer.prior_precision,
            "sampler": self.schedule.sampler,
            "n_steps": self.schedule.n_steps(self.model.n_records),
        }

    def run(self, context: Context, records: Records, source: RandomSource) -> dict[str, Any]:
        """Return baseline and coefficients: the last state of a chain, rounded."""
        n_steps = self.schedule.n_steps(self.model.n_records)
        state = last_state(
            self.states(records, source), n_steps, self.schedule.sampler, self.schedule.verbose
        )
        # A public lattice, far finer than the prior: low bits of doubles are not released.
        return released(self.model, *self.unscaled(round_to_lattice(state, LATTICE)))

    def states(self, records: Records, source: RandomSource) -> States:
        """Yield the chain's states, on the scale of the fit: private."""
        return self.chain().states(self.target(records), source)

    def basis_of(self, model: HazardModel) -> FloatArray:
        """Return the basis in which the baseline is drawn."""
        return orthogonal_basis(model.n_intervals, model.n_knots)

    def chain(self) -> MALA | PSGLD:
        """Return the chain."""
        return self.schedule.chain(self.model.n_records)

    def target(self, records: Records) -> Target:
        """Return the sanitised posterior of private records."""
        model = self.model
        likelihood = DiscreteHazard(self.basis, model.n_features, link=LINKS[model.link])
        blocks = records.map(lambda block: block.clipped(0.0, model.data_norm)).persist()
        return Target(likelihood, blocks, self.sanitizer)

    def distances(self, context: Context, one: Records, other: Records) -> Distances:
        """Return differences of energies at a point, and of these between two points."""
        targets = self.target(one), self.target(other)
        gaps = [
            targets[0].energy(point)[0] - targets[1].energy(point)[0]
            for point in around(np.zeros(targets[0].likelihood.n_params))
        ]
        return [
            ("energies", max(map(abs, gaps)), self.epsilon / 2.0),
            ("log ratios", max(gaps) - min(gaps), self.epsilon),
        ]

    def unscaled(self, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a state as a baseline on the grid and coefficients on the scale of X."""
        n_knots = self.model.n_knots
        return self.basis @ state[:n_knots], state[n_knots:] / self.model.data_norm


@dataclass(frozen=True)
class LangevinFit(HazardFit):
    """Public numbers of a Langevin chain on the capped likelihood; ``n_steps`` None is "auto"."""

    n_steps: int | None = None

    def calibrated(self, likelihood: DiscreteHazard | StratifiedHazard) -> LangevinCalibration:
        """Return a chain for a likelihood."""
        model, price = self.model, self.price
        assert isinstance(price, Concentrated)
        precision = PRIOR_PRECISION + model.n_records * self.alpha
        public = likelihood.constants, price.mu, model.n_records, likelihood.n_params, precision
        return descent.calibrate_langevin(*public, self.n_steps, self.center_of(likelihood).norm)


@dataclass(frozen=True, eq=False)
class HazardChain(HazardPoint):
    """The last point of a chain of noisy gradients, after a pilot.

    Neighbours: replace-one. Sensitivity: that of the capped likelihood's gradient. Theorem: that of
    the steps (docs/proofs/posterior_sampling).
    """

    fit: LangevinFit
    verbose: int = 0

    name = "last of many noisy Langevin steps (psgld) on a hazard-capped posterior"
    proof = reference("docs/proofs/posterior_sampling", "bun-steinke", "canonne")

    def stated(self) -> dict[str, Any]:
        """Return the constants of the chain, too."""
        stated = super().stated()
        stated["prior_precision"] = stated.pop("kappa")
        chains = [calibration for _, calibration in self.fit.ends]
        for name in ("n_steps", "step_size", "temperature"):
            stated[name] = stated_range(getattr(chains[0], name), getattr(chains[-1], name))
        return stated | {"sampler": self.fit.method}

    def states(self, records: Records, pilot: PilotEstimate, source: RandomSource) -> States:
        """Yield the chain's states, on the scale of the fit."""
        likelihood, calibration = self.fit.after(pilot)
        assert isinstance(calibration, LangevinCalibration)
        blocks = self.fit.blocks(records, pilot).persist()
        return Chain(likelihood, blocks, calibration, pilot.center).states(source)

    def run(self, context: Context, records: Records, source: RandomSource) -> dict[str, Any]:
        """Return the last state as baseline and coefficients."""
        pilot = self.fit.pilot(context)
        calibration: Any = self.fit.after(pilot).calibration
        states = self.states(records, pilot, source)
        state = last_state(states, calibration.n_steps, "psgld", self.verbose)
        return self.fit.fitted(state, pilot)

    def distances(self, context: Context, one: Records, other: Records) -> Distances:
        """Return differences of gradients, and the bound that noise hides at every step."""
        pilot = self.fit.pilot(context)
        return distances([self.fit.problem(one, pilot)], [self.fit.problem(other, pilot)])


def last_state(states: States, n_steps: int, sampler: str, verbose: int) -> FloatArray:
    """Return the state of a chain after so many steps, at least one."""
    return deque(first(states, n_steps, f"posterior sampling ({sampler})", verbose), 1).pop()
