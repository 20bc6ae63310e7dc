"""PosteriorSampling, and hazard models drawn from a sanitised posterior by it.

The law is that of :mod:`skdpsurv.mechanisms.posterior_sampling`.

A hazard model drawn by noisy Langevin steps (skdpsurv.mechanisms.descent).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from skdpsurv.data.blocks import Blocks, first
from skdpsurv.dp import RandomSource, round_to_lattice
from skdpsurv.dp.checks import (
    Check,
    Parameters,
    auto_or,
    choice,
    integer,
    number_in,
    positive,
    verbosity,
)
from skdpsurv.dp.plan import Distances, Known, Mechanism
from skdpsurv.dp.privacy_cost import Concentrated, Cost, cost_of
from skdpsurv.dp.references import reference
from skdpsurv.dp.types import FloatArray
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.mechanisms import descent
from skdpsurv.mechanisms.descent import LANGEVIN_STEPS_RANGE, Chain, LangevinCalibration
from skdpsurv.mechanisms.langevin import MALA, PSGLD, least_step
from skdpsurv.mechanisms.newton import around
from skdpsurv.mechanisms.perturbation import distances
from skdpsurv.mechanisms.posterior_sampling import PRIOR_PRECISION, Sanitizer, Target, calibrate
from skdpsurv.survival.hazards.fit import HazardFit, HazardPoint, PilotEstimate, from_to
from skdpsurv.survival.hazards.model import HazardModel, HazardRecords, orthogonal_basis, released

SAMPLERS = ("mala", "psgld")
#: Passes over the data of pSGLD, n steps each, as in the paper; and steps of MALA, one pass each:
#: as many as so many records take, within bounds. Laws of few records are far from normal.
PSGLD_EPOCHS, MALA_RECORDS, MALA_RANGE = 250, 4_000_000, (400, 4000)
#: Fewest steps of a chain, and most epochs.
LEAST_STEPS, MOST_EPOCHS = {"mala": 100, "psgld": 1000}, 10**9
#: Share of a chain in which it adapts.
BURN_IN = {"mala": 0.5, "psgld": 0.1}
#: What a draw is rounded to, on the scale of the fit: 10^-9 of the prior's standard deviation.
LATTICE = 2.0**-27


class PosteriorSampling(Parameters):
    """How ``DPDiscreteTimeSurvival(method=...)`` draws from a sanitised posterior.

    ``method="psgld"`` is this with its defaults.

    Parameters
    ----------
    sampler : {"mala", "psgld"}, default="mala"
        Markov chain: the Metropolis-adjusted Langevin algorithm on all records, or the paper's
        stochastic gradients, whose step is corrected. One law, but the first gets there a hundred
        times faster. With a delta only "psgld", on all records.
    n_epochs : int or "auto", default="auto"
        Passes over the data: one step of "mala", n steps of "psgld" as in the paper, after 100
        passes from a draw of the prior. "auto" is 400 (to 4000 below 10,000 records), and 250. At
        least 100 with "mala", and so many that "psgld" has 1000 steps. With a delta a pass is one
        step, at least 30, and "auto" follows from public numbers: what is not used is
        ``batch_size``, ``step_size`` and ``step_exponent``.
    batch_size : int, default=200
        Records in a step of "psgld"; all of them if there are fewer.
    step_size : float or "auto", default="auto"
        First step a_1 of "psgld"; "auto" is the largest that is stable at a mode. Refused if so
        small, by public numbers, that the chain would stay where it begins.
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

    _rules: ClassVar[dict[str, Check]] = {
        "sampler": choice(*SAMPLERS),
        "n_epochs": auto_or(integer(at_most=MOST_EPOCHS)),
        "batch_size": integer(),
        "step_size": auto_or(positive()),
        "step_exponent": number_in(0.5, 1.0, closed="right", why="Else the chain has no limit."),
        "verbose": verbosity,
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
        least = LEAST_STEPS["mala"]
        if self.sampler == "mala" and not isinstance(self.n_epochs, str) and self.n_epochs < least:
            raise ValueError(
                f"n_epochs must be at least {least} with sampler='mala', got {self.n_epochs}."
            )

    def check_noisy(self) -> None:
        """Refuse what a chain of noisy steps, which a delta pays for, cannot be.

        Raises
        ------
        ValueError
            Naming the parameter.
        """
        if self.sampler != "psgld":
            raise ValueError(
                "delta must be 0 with method='psgld' and sampler='mala', whose Metropolis test "
                "looks at records outside any Gaussian mechanism: PosteriorSampling('psgld') takes "
                "a delta."
            )
        if not isinstance(self.n_epochs, str) and self.n_epochs < LANGEVIN_STEPS_RANGE[0]:
            raise ValueError(
                f"n_epochs must be at least {LANGEVIN_STEPS_RANGE[0]} with method='psgld' and a "
                f"delta, got {self.n_epochs}."
            )

    def n_steps(self, n_records: int) -> int:
        """Return the length of the chain."""
        epochs = self.n_epochs
        if isinstance(epochs, str):
            few, many = MALA_RANGE
            mala = min(many, max(few, MALA_RECORDS // n_records))
            psgld = max(PSGLD_EPOCHS, self.least_epochs(n_records))
            epochs = mala if self.sampler == "mala" else psgld
        return int(epochs) * self._steps_in_epoch(n_records)

    def least_epochs(self, n_records: int) -> int:
        """Return the fewest epochs that have enough steps."""
        return math.ceil(LEAST_STEPS[self.sampler] / self._steps_in_epoch(n_records))

    def _steps_in_epoch(self, n_records: int) -> int:
        return n_records if self.sampler == "psgld" else 1

    def check_length(self, law: Sanitizer, n_records: int) -> None:
        """Refuse a chain that stays about where it begins, by public numbers.

        Raises
        ------
        ValueError
            If ``n_epochs`` or ``step_size`` is too small for this many records.
        """
        least = self.least_epochs(n_records)
        if not isinstance(self.n_epochs, str) and self.n_epochs < least:
            raise ValueError(
                f"n_epochs must be at least {least} with sampler={self.sampler!r} and {n_records} "
                f"records: a chain has at least {LEAST_STEPS[self.sampler]} steps, got "
                f"{self.n_epochs}."
            )
        if self.sampler == "mala" or isinstance(self.step_size, str):
            return
        size, n_steps = self._batch(n_records), self.n_steps(n_records)
        shortest = least_step(law, n_records, size, n_steps, float(self.step_exponent))
        if self.step_size < shortest:
            raise ValueError(
                f"step_size must be at least {shortest:.3g} for {n_steps} steps on {n_records} "
                f"records: with less a chain stays where it begins, got {self.step_size}."
            )

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

    Parameters
    ----------
    model : HazardModel
        Its cap and ``prior_event_rate`` do not enter.
    epsilon : float
    alpha : float
        Ridge on top of the prior, on the scale of the mean loss.
    schedule : PosteriorSampling
    """

    model: HazardModel
    epsilon: float
    alpha: float
    schedule: PosteriorSampling
    sanitizer: Sanitizer = field(init=False)
    basis: FloatArray = field(init=False)

    #: True in the limit of a chain.
    status = "asymptotic"
    proof = reference("docs/proofs/posterior_sampling", "nguyen-hui")

    def __post_init__(self) -> None:
        model = self.model
        plain = calibrate(self.epsilon, model.n_records)
        prior = plain.prior_precision + plain.rate * model.n_records * self.alpha
        object.__setattr__(self, "basis", self.basis_of(model))
        object.__setattr__(self, "sanitizer", Sanitizer(plain.ceiling, plain.rate, prior))
        self.schedule.check_length(self.sanitizer, model.n_records)

    @property
    def cost(self) -> Cost:
        """What a draw of the law itself would cost."""
        return cost_of(self.epsilon)

    @property
    def name(self) -> str:  # type: ignore[override]
        """What is released, in words."""
        sampler = self.schedule.sampler
        return f"sanitised exponential mechanism, one state of a Markov chain ({sampler})"

    def scales(self) -> list[float]:
        """Return the public numbers that must be neither huge nor tiny."""
        return [self.model.data_norm, self.sanitizer.rate, self.sanitizer.prior_precision]

    def stated(self) -> dict[str, Any]:
        """Return the constants of the law and the length of the chain."""
        return {
            "loss_ceiling": self.sanitizer.ceiling,
            "rate": self.sanitizer.rate,
            "prior_precision": self.sanitizer.prior_precision,
            "sampler": self.schedule.sampler,
            "n_steps": self.schedule.n_steps(self.model.n_records),
        }

    def run(
        self, known: Known, records: Blocks[HazardRecords], source: RandomSource
    ) -> dict[str, FloatArray]:
        """Return the last state of one chain."""
        n_steps = self.schedule.n_steps(self.model.n_records)
        task = f"posterior sampling ({self.schedule.sampler})"
        state = None
        for state in first(self.states(records, source), n_steps, task, self.schedule.verbose):  # noqa: B007
            pass
        assert state is not None
        # A public lattice, far finer than the prior is wide: no low bits leave.
        return released(self.model, *self.unscaled(round_to_lattice(state, LATTICE)))

    def states(self, records: Blocks[HazardRecords], source: RandomSource) -> Iterator[FloatArray]:
        """Yield the chain's states, on the scale of the fit: private."""
        return self.chain().states(self.target(records), source)

    def basis_of(self, model: HazardModel) -> FloatArray:
        """Return the basis in which the baseline is drawn."""
        return orthogonal_basis(model.n_intervals, model.n_knots)

    def chain(self) -> MALA | PSGLD:
        """Return the chain."""
        return self.schedule.chain(self.model.n_records)

    def target(self, records: Blocks[HazardRecords]) -> Target:
        """Return the law that is drawn from: private."""
        model = self.model
        likelihood = DiscreteHazard(self.basis, model.n_features, link=LINKS[model.link])
        blocks = records.map(lambda block: block.within(0.0, model.data_norm)).held()
        return Target(likelihood, blocks, self.sanitizer)

    def distances(
        self, known: Known, one: Blocks[HazardRecords], other: Blocks[HazardRecords]
    ) -> Distances:
        """Return how far energies are apart at a point, and how much farther at another."""
        targets = self.target(one), self.target(other)
        apart = [
            targets[0].energy(point)[0] - targets[1].energy(point)[0]
            for point in around(np.zeros(targets[0].likelihood.n_params))
        ]
        return [
            ("energies", max(map(abs, apart)), self.epsilon / 2.0),
            ("log ratios", max(apart) - min(apart), self.epsilon),
        ]

    def unscaled(self, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a state as a baseline on the grid and coefficients on the scale of X."""
        n_knots = self.model.n_knots
        return self.basis @ state[:n_knots], state[n_knots:] / self.model.data_norm


@dataclass(frozen=True)
class LangevinFit(HazardFit):
    """What is public of a chain: likelihood, cap and centring are those of a perturbed fit.

    Parameters
    ----------
    n_steps : int or None
        None: as many as it takes.
    """

    n_steps: int | None = None

    def calibrated(self, likelihood: DiscreteHazard) -> LangevinCalibration:
        """Return a chain for a likelihood."""
        model, price = self.model, self.price
        assert isinstance(price, Concentrated)
        return descent.calibrate_langevin(
            likelihood.constants,
            price.mu,
            model.n_records,
            likelihood.n_params,
            PRIOR_PRECISION + model.n_records * self.alpha,
            self.n_steps,
            self.center_of(likelihood).norm,
        )


@dataclass(frozen=True, eq=False)
class HazardChain(HazardPoint):
    """The last point of a chain of noisy gradients, after a first look.

    Neighbours: replace-one. Sensitivity: that of the capped likelihood's gradient. Theorem: that of
    the steps (docs/proofs/posterior_sampling).
    """

    fit: LangevinFit
    verbose: int = 0

    name = "last of many noisy Langevin steps (psgld) on a hazard-capped posterior"
    proof = reference("docs/proofs/posterior_sampling", "bun-steinke", "canonne")

    def stated(self) -> dict[str, Any]:
        """Return what the chain is, too."""
        stated = super().stated()
        stated["prior_precision"] = stated.pop("kappa")
        chains = [_chain(calibration) for _, calibration in self.fit.ends]
        for name in ("n_steps", "step_size", "temperature"):
            stated[name] = from_to(getattr(chains[0], name), getattr(chains[-1], name))
        return stated | {"sampler": self.fit.method}

    def states(
        self, records: Blocks[HazardRecords], look: PilotEstimate, source: RandomSource
    ) -> Iterator[FloatArray]:
        """Yield the chain's states, on the scale of the fit."""
        likelihood, calibration = self.fit.after(look)
        blocks = self.fit.seen(records, look).held()
        chain = Chain(likelihood, blocks, _chain(calibration), look.center)
        return chain.states(source)

    def run(
        self, known: Known, records: Blocks[HazardRecords], source: RandomSource
    ) -> dict[str, Any]:
        """Return the last state as baseline and coefficients."""
        look = self.fit.look(known)
        n_steps = _chain(self.fit.after(look).calibration).n_steps
        states = self.states(records, look, source)
        for state in first(states, n_steps, "posterior sampling (psgld)", self.verbose):  # noqa: B007
            pass
        return self.fit.fitted(state, look)

    def distances(
        self, known: Known, one: Blocks[HazardRecords], other: Blocks[HazardRecords]
    ) -> Distances:
        """Return how far gradients are apart, and what hides them at every step."""
        look = self.fit.look(known)
        return distances([self.fit.problem(one, look)], [self.fit.problem(other, look)])


def _chain(calibration: Any) -> LangevinCalibration:
    assert isinstance(calibration, LangevinCalibration)
    return calibration
