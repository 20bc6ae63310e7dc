"""A hazard model drawn by noisy Langevin steps (skdpsurv.mechanisms.noisy_langevin)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from skdpsurv.blocks import Blocks
from skdpsurv.likelihoods.discrete_hazard import DiscreteHazard
from skdpsurv.mechanisms import noisy_langevin
from skdpsurv.mechanisms.noisy_langevin import Chain, LangevinCalibration
from skdpsurv.mechanisms.perturbation import distances
from skdpsurv.mechanisms.posterior_sampling import PRIOR_PRECISION
from skdpsurv.privacy import RandomSource
from skdpsurv.privacy.concentrated import Concentrated
from skdpsurv.privacy.measurement import Distances, Known
from skdpsurv.progress import first
from skdpsurv.references import reference
from skdpsurv.survival.hazard_fit import HazardFit, HazardPoint, Look, from_to
from skdpsurv.survival.hazard_plans import HazardRecords
from skdpsurv.types import FloatArray

__all__ = ["HazardChain", "LangevinFit"]


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
        return noisy_langevin.calibrate(
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
        self, records: Blocks[HazardRecords], look: Look, source: RandomSource
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
