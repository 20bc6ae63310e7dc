r"""The law of a perturbed minimiser: its density at any point, up to a constant.

Built from the plan, the likelihood and the calibration that the estimator itself would use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

from skdpsurv.classification import PrivateStackingClassifier
from skdpsurv.mechanisms.newton import Objective, minimize
from skdpsurv.mechanisms.perturbation import Problem
from skdpsurv.privacy import clip_rows
from skdpsurv.survival import DPDiscreteTimeSurvival
from skdpsurv.survival.hazard_plans import Perturbation
from skdpsurv.survival.published import PublishedPerturbation
from skdpsurv.types import FloatArray

__all__ = ["Law", "Ratio", "largest_ratio", "laws_of"]


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
    linear_scale, output_scale : float
        Of the noise in the objective, and on the minimiser.
    """

    objective: Objective
    linear_scale: float
    output_scale: float

    @classmethod
    def of(cls, problem: Problem) -> Law:
        """Return the law of what is released of a problem."""
        objective = Objective(
            problem.likelihood,
            problem.blocks,
            problem.calibration.kappa,
            problem.center,
            np.zeros(problem.likelihood.n_params),
        )
        return cls(objective, problem.calibration.linear_scale, problem.calibration.output_scale)

    @property
    def minimum(self) -> FloatArray:
        """Where the objective without noise is least."""
        n = self.objective.n_records
        sensitivity = self.objective.likelihood.constants.gradient_sensitivity
        return minimize(self.objective, 1e-12 * (n + 1.0) * (sensitivity + 1.0))

    def log_density(self, point: FloatArray) -> float:
        """Return the log density, up to a constant of public numbers."""
        gradient, hessian = self.objective.derivatives(point - self.objective.center)
        bend = np.linalg.slogdet(np.asarray(hessian))[1]
        return float(-np.linalg.norm(gradient) / self.linear_scale + bend)


def laws_of(model: Any, arguments: Mapping[str, Any]) -> list[Law]:
    """Return the laws of all minimisers that a fit would release.

    Raises
    ------
    ValueError
        If the fit releases more than minimisers.
    """
    model._check_parameters()
    if isinstance(model, DPDiscreteTimeSurvival):
        return [Law.of(_hazard_problem(model, arguments["X"], arguments["y"]))]
    shape, plan, _ = model._planned(arguments["X"], arguments["y"])
    if isinstance(model, PrivateStackingClassifier):
        if model.partition != "features" or model.combiner == "logistic":
            raise ValueError(
                "estimator must have partition='features' and a combiner that votes: else what is "
                "released is no set of minimisers of the same records."
            )
        (plan,) = plan.low
    rows, signs = model._read(shape, arguments["X"], arguments["y"])
    problems = plan.problems(clip_rows(rows, plan.data_norm), signs)
    return [Law.of(problem) for problem in problems]


def _hazard_problem(model: DPDiscreteTimeSurvival, X: Any, y: Any) -> Problem:
    shape, plan, _ = model._planned(X, y)
    records = model._read(shape, X, y)
    if isinstance(plan, PublishedPerturbation):
        return plan.problem(records)
    if not isinstance(plan, Perturbation):
        raise ValueError("estimator must have method='obj_pert' or 'out_pert'.")
    if plan.epsilon_center:
        raise ValueError(
            "center_share must be 0, or n * epsilon below 200: after a first look what is "
            "released is more than a minimiser."
        )
    return plan.problem(records, plan.public_look)


def largest_ratio(one: Law, other: Law) -> tuple[Ratio, Ratio]:
    """Return the largest log p(f | one) / p(f | other) found, and the largest of its inverse."""
    minima = one.minimum, other.minimum
    if not one.linear_scale:
        gap = float(np.linalg.norm(minima[0] - minima[1])) / one.output_scale
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
    reach = max(law.linear_scale, constants.gradient_sensitivity) / kappa
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
