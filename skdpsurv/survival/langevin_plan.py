"""A hazard model drawn by noisy Langevin steps (skdpsurv.mechanisms.noisy_langevin)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from skdpsurv.blocks import Blocks
from skdpsurv.mechanisms.noisy_langevin import (
    STEPS_RANGE,
    Chain,
    LangevinCalibration,
    calibrate,
)
from skdpsurv.mechanisms.perturbation import Problem
from skdpsurv.mechanisms.posterior_sampling import PRIOR_PRECISION
from skdpsurv.privacy import RandomSource
from skdpsurv.privacy.concentrated import Concentrated
from skdpsurv.progress import first
from skdpsurv.references import reference
from skdpsurv.survival.hazard_plans import Fitted, HazardPlan, HazardRecords
from skdpsurv.survival.perturbed_plan import Bounded, Look, Perturbation
from skdpsurv.types import FloatArray

__all__ = ["LEAST_STEPS", "NoisyLangevin"]

#: Fewest steps that may be asked for.
LEAST_STEPS = STEPS_RANGE[0]


@dataclass(frozen=True)
class NoisyLangevin(Perturbation):
    """The last point of a chain of noisy gradients, with a first look and a recalibration.

    Likelihood, cap, centring and tables are those of :class:`Perturbation`; it is the minimiser
    that a draw takes the place of. ``method`` is "psgld".
    """

    n_steps: int | None = None
    verbose: int = 0

    proof = reference("docs/proofs/posterior_sampling", "bun-steinke", "canonne")

    def bounded(self, cap: float | None) -> Bounded:
        """Return the likelihood with a cap, and a chain for it."""
        model, price, likelihood = self.model, self.prices.fit, self.capped(cap)
        assert isinstance(price, Concentrated)
        return Bounded(
            likelihood,
            calibrate(
                likelihood.constants,
                price.mu,
                model.n_records,
                likelihood.n_params,
                PRIOR_PRECISION + model.n_records * self.alpha,
                self.n_steps,
                self.center_of(likelihood).norm,
            ),
        )

    @property
    def mechanism(self) -> str:  # type: ignore[override]
        """What was drawn, in words."""
        draw = "last of many noisy Langevin steps (psgld) on a hazard-capped posterior"
        return self.with_tables(draw)

    def spent(self) -> dict[str, Any]:
        """Return what the chain is, too."""
        stated = super().spent()
        stated["prior_precision"] = stated.pop("kappa")
        chains = [_chain(calibration) for _, calibration in self._bounds]
        for name in ("n_steps", "step_size", "temperature"):
            least, highest = (getattr(chains[i], name) for i in (0, -1))
            stated[name] = least if least == highest else {"from": least, "to": highest}
        return stated | {"sampler": self.method}

    def problems(self, records: Blocks[HazardRecords]) -> list[Problem]:
        """Return nothing: no minimiser is released."""
        return HazardPlan.problems(self, records)

    def states(
        self, records: Blocks[HazardRecords], look: Look, source: RandomSource
    ) -> Iterator[FloatArray]:
        """Yield the chain's states, on the scale of the fit."""
        likelihood, calibration = self.after(look)
        blocks = self.seen(records, look).held()
        chain = Chain(likelihood, blocks, _chain(calibration), look.center)
        return chain.states(source.part("noisy Langevin steps", self.prices.fit))

    def drawn(self, records: Blocks[HazardRecords], look: Look, source: RandomSource) -> Fitted:
        """Return the last state as a baseline on the grid and coefficients on the scale of X."""
        n_steps = _chain(self.after(look).calibration).n_steps
        states = self.states(records, look, source)
        for state in first(states, n_steps, "posterior sampling (psgld)", self.verbose):  # noqa: B007
            pass
        return self.unscaled(state, look)

    def fit(self, records: Blocks[HazardRecords], source: RandomSource) -> Fitted:
        """Release a private baseline and coefficients."""
        return self.drawn(records, self.look(records, source), source)

    def run(self, records: Blocks[HazardRecords], source: RandomSource) -> dict[str, FloatArray]:
        """Release baseline and coefficients, and what sets predictions right."""
        look = self.look(records, source)
        baseline, coef = self.drawn(records, look, source)
        found = self.recalibrated(baseline, coef, records, look, source)
        return self.released(baseline, coef) | found


def _chain(calibration: Any) -> LangevinCalibration:
    assert isinstance(calibration, LangevinCalibration)
    return calibration
