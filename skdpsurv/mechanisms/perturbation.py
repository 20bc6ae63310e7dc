r"""Run a perturbation that was calibrated: minimise with noise in the objective, add noise outside.

.. math::
    \arg\min_f \Big[\sum_i \ell(f; z_i) + \frac\kappa2\|f - c\|^2 + \langle b, f\rangle\Big] + e

Objective perturbation draws b for privacy and a tiny e to hide the solver, output perturbation e
alone. Scales are those of a calibration, whose module states the theorem. All noise is drawn in the
calling process: workers get a linear term, never a stream of random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed

from skdpsurv.blocks import Blocks, InMemory
from skdpsurv.likelihoods.base import Likelihood
from skdpsurv.mechanisms.newton import Objective, minimize, minimize_without_privacy
from skdpsurv.mechanisms.vector_noise import NoiseLaw, add_noise
from skdpsurv.privacy import RandomSource, silent_arithmetic
from skdpsurv.types import FloatArray


class Calibrated(Protocol):
    """What a calibration must say; all of it public."""

    @property
    def kappa(self) -> float:
        """Ridge strength, in the sum over records."""
        ...

    @property
    def tolerance(self) -> float:
        """g, the certified norm of the gradient at the point released; inf for no certificate."""
        ...

    @property
    def linear(self) -> NoiseLaw | None:
        """Law of b; None for none."""
        ...

    @property
    def output(self) -> NoiseLaw | None:
        """Law of e; None for none."""
        ...

    @property
    def noise_scale(self) -> float:
        """Size of the noise that privacy rests on; 0 for none."""
        ...


@dataclass(frozen=True)
class Unperturbed:
    """No noise and no privacy: the penalised fit, for reference.

    Parameters
    ----------
    kappa : float
        Positive.
    """

    kappa: float
    tolerance: float = math.inf
    linear: NoiseLaw | None = None
    output: NoiseLaw | None = None
    noise_scale: float = 0.0


@dataclass(frozen=True)
class Problem:
    """One private minimisation.

    Parameters
    ----------
    likelihood : Likelihood
        Whose constants the calibration was made from.
    blocks : Blocks
        Private records, inside the public domain.
    calibration : Calibrated
        As made by a ``calibrate`` of this package.
    center : ndarray of shape (n_params,)
        c, public.
    """

    likelihood: Likelihood
    blocks: Blocks[Any]
    calibration: Calibrated
    center: FloatArray

    def objective(self, source: RandomSource) -> Objective:
        """Return the objective, with its linear term drawn."""
        law = self.calibration.linear
        linear = law.draw(source) if law else np.zeros(self.likelihood.n_params)
        blocks = self.blocks.held()  # for every step of the solver
        return Objective(self.likelihood, blocks, self.calibration.kappa, self.center, linear)


def perturb(problem: Problem, source: RandomSource) -> FloatArray:
    """Release a private minimiser.

    Parameters
    ----------
    problem : Problem
    source : RandomSource
        Of operating-system entropy, or nothing here is private.

    Returns
    -------
    coef : ndarray of shape (n_params,)
    """
    calibration = problem.calibration
    minimum = _minimize(problem.objective(source), calibration.tolerance)
    return _released(minimum, calibration, source)


def perturb_all(
    problems: Sequence[Problem],
    source: RandomSource,
    *,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[FloatArray]:
    """Release the private minimisers of several problems, solved in parallel.

    Parameters
    ----------
    problems : sequence of Problem
        What they cost together is for their calibrations to say.
    source : RandomSource
        Each problem gets a child of its own.
    n_jobs, verbose : int
        As for :class:`joblib.Parallel`, under whatever backend is active.

    Returns
    -------
    list of ndarray
    """
    sources = source.spawn(len(problems))
    objectives = [p.objective(s) for p, s in zip(problems, sources, strict=True)]
    # Blocks that are somewhere else stay there: threads of this process wait for their sums.
    here = all(isinstance(objective.blocks, InMemory) for objective in objectives)
    minima = Parallel(n_jobs=n_jobs, verbose=verbose, require=None if here else "sharedmem")(
        delayed(_minimize)(objective, problem.calibration.tolerance)
        for objective, problem in zip(objectives, problems, strict=True)
    )
    return [
        _released(coef, problem.calibration, child)
        for coef, problem, child in zip(minima, problems, sources, strict=True)
    ]


def _minimize(objective: Objective, tolerance: float) -> FloatArray:
    # What the caller silenced does not follow into threads and processes.
    with silent_arithmetic():
        if math.isinf(tolerance):
            return minimize_without_privacy(objective)
        return minimize(objective, tolerance)


def _released(coef: FloatArray, calibration: Calibrated, source: RandomSource) -> FloatArray:
    law = calibration.output
    return add_noise(coef, law, source) if law else coef
