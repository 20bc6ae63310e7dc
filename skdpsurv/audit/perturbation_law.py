r"""The law of a perturbed minimiser: its density at any point, up to a constant.

Built from the plan, the likelihood and the calibration that the estimator itself would use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

from skdpsurv.mechanisms.certificate import Center, certificate
from skdpsurv.mechanisms.newton import Objective, minimize
from skdpsurv.mechanisms.noisy_descent import DescentCalibration
from skdpsurv.mechanisms.perturbation import Minimisers, Problem
from skdpsurv.mechanisms.vector_noise import NoiseLaw, SphericalGaussian
from skdpsurv.types import FloatArray

__all__ = ["Law", "Ratio", "largest_ratio", "laws_of", "problems_of"]


#: Distances at which densities are compared: in units of what one record can move a minimum by.
DISTANCES = (0.01, 0.3, 1.0, 3.0, 10.0, 100.0, 1e3)
#: The same, for where losses bend.
NEAR = (1.0, 5.0)
N_DIRECTIONS = 16
#: Points from which the ratio is climbed, in either direction, and steps of the climb.
N_CLIMBS, CLIMB_STEPS = 2, 150


class Ratio(NamedTuple):
    """The largest log ratio found, and the point where it is attained."""

    largest: float
    where: tuple[float, ...]


@dataclass(frozen=True)
class Law:
    """The law of one released minimiser.

    Parameters
    ----------
    objective : Objective
        Without its linear term.
    linear, output : NoiseLaw or None
        Of the noise in the objective, and on the minimiser.
    """

    objective: Objective
    linear: NoiseLaw | None
    output: NoiseLaw | None

    @classmethod
    def of(cls, problem: Problem) -> Law:
        """Return the law of what is released of a problem.

        Raises
        ------
        ValueError
            If noise is Gaussian: no epsilon bounds the ratio of its densities.
        """
        how = problem.calibration
        if isinstance(how, DescentCalibration) or isinstance(how.output, SphericalGaussian):
            raise ValueError(
                "delta of the estimator must be 0, or buy no Gaussian noise, whose density ratio "
                "has no bound: use privacy_curve_audit."
            )
        return cls.of_minimum(problem)

    @classmethod
    def of_minimum(cls, problem: Problem) -> Law:
        """Return the objective that a problem minimises, and its noise of whatever law."""
        objective = Objective(
            problem.likelihood,
            problem.blocks,
            problem.calibration.kappa,
            problem.center,
            np.zeros(problem.likelihood.n_params),
        )
        return cls(objective, problem.calibration.linear, problem.calibration.output)

    @property
    def minimum(self) -> FloatArray:
        """Where the objective without noise is least."""
        task = self.objective
        constants, center = task.likelihood.constants, float(np.linalg.norm(task.center))
        reached = certificate(constants, task.n_records, task.kappa, 0.0, Center(center))
        return minimize(task, reached)

    def log_density(self, point: FloatArray) -> float:
        """Return the log density, up to a constant of public numbers."""
        gradient, hessian = self.objective.derivatives(point - self.objective.center)
        bend = np.linalg.slogdet(np.asarray(hessian))[1]
        assert self.linear is not None
        return float(self.linear.log_density(gradient) + bend)


def laws_of(model: Any, arguments: Mapping[str, Any]) -> list[Law]:
    """Return the laws of all minimisers that a fit would release.

    Raises
    ------
    ValueError
        If the fit releases more than minimisers.
    """
    return [Law.of(problem) for problem in problems_of(model, arguments)]


def problems_of(model: Any, arguments: Mapping[str, Any]) -> list[Problem]:
    """Return all minimisations of a fit.

    Raises
    ------
    ValueError
        If the fit releases more than minimisers.
    """
    model._check_parameters()
    shape, plan, _ = model._planned(arguments["X"], arguments["y"])
    records = model._read(shape, arguments["X"], arguments["y"])
    if not isinstance(plan.alone, Minimisers):
        raise ValueError(
            "estimator must release perturbed minimisers and nothing else, with shares of 0 for "
            f"the rest, got: {plan.mechanism}."
        )
    return plan.alone.problems({}, records)


def largest_ratio(one: Law, other: Law) -> tuple[Ratio, Ratio]:
    """Return the largest log p(f | one) / p(f | other) found, and the largest of its inverse."""
    minima = one.minimum, other.minimum
    if one.linear is None:
        assert one.output is not None
        gap = one.output.cost(float(np.linalg.norm(minima[0] - minima[1])))
        return Ratio(gap, tuple(minima[0])), Ratio(gap, tuple(minima[1]))

    def difference(point: FloatArray) -> float:
        return one.log_density(point) - other.log_density(point)

    points = _points(one, minima)
    values = np.array([difference(point) for point in points])
    return (
        _climbed(difference, points, values, 1.0),
        _climbed(difference, points, values, -1.0),
    )


def _points(law: Law, minima: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Return points around the minima, and around where no record pulls."""
    d = minima[0].size
    rng = np.random.default_rng(0)  # of points to look at, not of noise
    ways = rng.standard_normal((N_DIRECTIONS, d))
    between = minima[1] - minima[0]
    ways = np.vstack([ways, between, -between, np.eye(d), -np.eye(d)])
    ways = ways[np.linalg.norm(ways, axis=1) > 0]
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    constants, kappa = law.objective.likelihood.constants, law.objective.kappa
    assert law.linear is not None
    reach = max(law.linear.scale, constants.gradient_sensitivity) / kappa
    centers = np.unique([*minima, law.objective.center, np.zeros(d)], axis=0)
    steps = [np.zeros((1, d)), *(distance * reach * ways for distance in DISTANCES)]
    near = [distance * ways for distance in NEAR]
    return np.vstack([center + np.vstack([*steps, *near]) for center in centers])


def _climbed(
    difference: Callable[[FloatArray], float], points: FloatArray, values: FloatArray, sign: float
) -> Ratio:
    def descent(point: FloatArray) -> float:
        return -sign * difference(point)

    # Where densities vanish there is no ratio.
    values = np.where(np.isfinite(values), values, -sign * np.inf)
    best = np.argsort(-sign * values)[:N_CLIMBS]
    largest, where = sign * float(values[best[0]]), points[best[0]]
    for start in points[best]:
        found = optimize.minimize(
            descent, start, method="Nelder-Mead", options={"maxfev": CLIMB_STEPS}
        )
        if -found.fun > largest:
            largest, where = -float(found.fun), found.x
    return Ratio(largest, tuple(map(float, where)))
