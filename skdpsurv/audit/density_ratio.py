"""density_ratio_audit: compare the densities of two releases point by point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize

from skdpsurv.audit.subject import at_most, audited, verdict
from skdpsurv.audit.walk import planned
from skdpsurv.dp.checks import integer
from skdpsurv.dp.input_errors import suppressed_float_errors
from skdpsurv.dp.plan import AdaptiveChoice, Plan, Sequential, leaves
from skdpsurv.dp.types import FloatArray
from skdpsurv.mechanisms.descent import DescentCalibration
from skdpsurv.mechanisms.ladder import UNIT, LadderLevels, highest_level
from skdpsurv.mechanisms.newton import Center, Objective, certificate, minimize
from skdpsurv.mechanisms.perturbation import Minimisers, Problem
from skdpsurv.mechanisms.vector_noise import NoiseDistribution, SphericalGaussian
from skdpsurv.survival.weibull.log_time_counts import CountTable
from skdpsurv.survival.weibull.weibull_plan import Ladder

#: What this audit does not test: it computes densities, and draws nothing.
SAMPLERS = "samplers, and that drawn noise follows its stated distribution"
#: Distances at which densities are compared, in units of the shift of a minimum by one record.
DISTANCES = (0.01, 0.3, 1.0, 3.0, 10.0, 100.0, 1e3)
#: Distances without units, where losses are curved.
NEAR = (1.0, 5.0)
N_DIRECTIONS = 16
#: Starting points of the search for the largest ratio, in either direction, and its steps.
N_CLIMBS, CLIMB_STEPS = 2, 150
#: Means of log event times, in parts of omega, that the tight ladder may have been given.
MEANS = (0.02, 0.1, 0.2, 0.4, 0.7, 0.95)

#: The largest log ratio found, and the point where it is attained.
Ratio = tuple[float, tuple[float, ...]]


@dataclass(frozen=True, repr=False)
class DensityRatioResult:
    """The largest log ratio of two densities that was found.

    Parameters
    ----------
    largest : float
        Largest log p(release | data) / p(release | neighbour), in either direction.
    claimed : float
        Claim of the estimator: epsilon, or the ladder's part of it.
    where : tuple of float
        The released point, in the parameters of the fit, or the shape, at which it is attained;
        the models of several classes or groups one after the other.
    audited, not_audited : tuple of str
        Parts of the release that were compared, and those that were not.

    Notes
    -----
    Nothing is sampled: ``largest`` is the log ratio at ``where``, so that one above ``claimed``
    refutes the claim. The true maximum may be larger.
    """

    largest: float
    claimed: float
    where: tuple[float, ...]
    audited: tuple[str, ...]
    not_audited: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether the claim was not refuted."""
        return at_most(self.largest, self.claimed)

    def __repr__(self) -> str:
        return verdict(self, f"{self.claimed:.4g}", f"largest log ratio {self.largest:.4g}")


def density_ratio_audit(
    estimator: Any, data: tuple[Any, ...], neighbour: tuple[Any, ...], *, n_cells: int = 512
) -> DensityRatioResult:
    r"""Find the largest log density ratio of the releases of two neighbours, without sampling.

    Parameters
    ----------
    estimator : estimator
        Not fitted. DPDiscreteTimeSurvival with ``method="obj_pert"`` or ``"out_pert"`` and without
        first look, recalibration and standard errors (shares of 0, or n * epsilon below 200);
        DPCompetingRisks without a pilot;
        DPLogisticRegression, a subclass of PrivateLinearModel;
        PrivateStackingClassifier on groups of columns that vote; DPWeibullFitter or
        :class:`~skdpsurv.published.PublishedWeibullFitter`.
    data, neighbour : tuple
        Arguments of ``fit``: the same but for one record.
    n_cells : int, default=512
        For a ladder: about as many cells between equidistant nodes of the estimator's grid.

    Returns
    -------
    DensityRatioResult

    Raises
    ------
    TypeError, ValueError
        If the release has no known density, or the data sets do not differ in exactly one record.

    See Also
    --------
    measurement_audit : Measurement by measurement, for any estimator of this package.
    audit_epsilon : For any estimator, by experiment.

    Notes
    -----
    **Objective perturbation.** A minimiser f determines its noise, :math:`b = -\nabla F(f)`. Its
    density is

    .. math:: p(f) \propto e^{-\|b(f)\|/s}\,|\det\nabla^2 F(f)|,

    with s, the ridge and the centre of the estimator's own plan. The ratio is evaluated around the
    minima of both objectives, far and near, and maximised from the largest values found. Several
    models of one record have independent noise: their largest log ratios add up. The noise that
    hides the solver, a thousandth of epsilon, is left out.

    **Output perturbation.** :math:`\|f^* - f'^*\|/s`, attained on the line through both minima.

    **Ladder.** Levels of all cells give all probabilities. The levels are the estimator's own, on
    every so many nodes of its grid: the theorem holds for any set of nodes. The tight ladder's
    levels depend on a mean that was released before, and its part of epsilon on a number of events:
    several means are tried, at the number of events of ``data``. :func:`measurement_audit` looks at
    counts and sums.

    References
    ----------
    .. [1] K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially private empirical risk
       minimization", JMLR 12, 2011. Theorem 9.

    Examples
    --------
    >>> from skdpsurv import DPLogisticRegression
    >>> from skdpsurv.audit import density_ratio_audit
    >>> from skdpsurv.classification import Perturbation
    >>> half = Perturbation(max_residual=0.5)
    >>> model = DPLogisticRegression(epsilon=1.0, classes=[0, 1], alpha=60.0, method=half)
    >>> result = density_ratio_audit(model, ([[1.0]], [0]), ([[1.0]], [1]))
    >>> result.passed, bool(result.largest > 0.8)
    (True, True)
    """
    integer(at_least=2)("n_cells", n_cells)
    subject, arguments = audited(estimator, data, neighbour)
    (plan, one), (_, other) = (planned(subject.seeded(None), each) for each in arguments)
    with suppressed_float_errors():
        if any(isinstance(leaf, Ladder) for leaf in plan.leaves):
            return _compare_ladders(plan, one, other, n_cells)
        problems = minimisations(plan, one), minimisations(plan, other)
        if any(map(is_gaussian, problems[0])):
            raise ValueError(
                "delta of the estimator must be 0, or buy no Gaussian noise, whose density ratio "
                "has no bound: use privacy_curve_audit."
            )
        ratios = [largest_ratio(*map(Density.of, pair)) for pair in zip(*problems, strict=True)]
    # In either direction, the same for all models.
    directions = zip(*ratios, strict=True)
    best = max(directions, key=lambda found: sum(ratio for ratio, _ in found))
    largest = sum(ratio for ratio, _ in best)
    where = tuple(value for _, point in best for value in point)
    unseen = ("noise that hides the solver", SAMPLERS)
    return DensityRatioResult(largest, subject.epsilon, where, minimisers(len(best)), unseen)


def minimisers(number: int) -> tuple[str, ...]:
    """Return the words for the result of an audit of this number of minimisers."""
    return ("minimiser" if number == 1 else f"{number} minimisers together",)


def minimisations(plan: Plan, records: Any) -> list[Problem]:
    """Return all minimisations of a plan, and refuse one that releases more."""
    if not isinstance(plan.only_measurement, Minimisers):
        raise TypeError(
            "estimator must release perturbed minimisers and nothing else, with shares of 0 for "
            f"the rest, or have a ladder; got: {plan.mechanism}."
        )
    return plan.only_measurement.problems(plan.context, records)


def is_gaussian(problem: Problem) -> bool:
    """Say whether privacy rests on Gaussian noise."""
    how = problem.calibration
    return isinstance(how, DescentCalibration) or isinstance(how.output, SphericalGaussian)


@dataclass(frozen=True)
class Density:
    """Density of one released minimiser: objective, noise in it, and noise on the minimiser."""

    objective: Objective
    linear: NoiseDistribution | None
    output: NoiseDistribution | None

    @classmethod
    def of(cls, problem: Problem) -> Density:
        """Return the density of the minimiser of a problem."""
        how, likelihood = problem.calibration, problem.likelihood
        zero = np.zeros(likelihood.n_params)
        objective = Objective(likelihood, problem.blocks, how.kappa, problem.center, zero)
        return cls(objective, how.linear, how.output)

    @property
    def minimum(self) -> FloatArray:
        """Minimiser of the objective without noise."""
        task = self.objective
        constants, center = task.likelihood.constants, float(np.linalg.norm(task.center))
        reached = certificate(constants, task.n_records, task.kappa, 0.0, Center(center))
        return minimize(task, reached)

    def log_density(self, point: FloatArray) -> float:
        """Return the log density, up to a constant of public numbers."""
        gradient, hessian = self.objective.derivatives(point - self.objective.center)
        assert self.linear is not None
        log_det = np.linalg.slogdet(np.asarray(hessian))[1]
        return float(self.linear.log_density(gradient) + log_det)


def largest_ratio(one: Density, other: Density) -> tuple[Ratio, Ratio]:
    """Return the largest log p(f | one) / p(f | other) found, and the largest of its inverse."""
    minima = one.minimum, other.minimum
    if one.linear is None:
        assert one.output is not None
        gap = one.output.cost(float(np.linalg.norm(minima[0] - minima[1])))
        return (gap, tuple(minima[0])), (gap, tuple(minima[1]))
    # Around the minima, the centre and zero.
    centers = np.unique([*minima, one.objective.center, np.zeros(minima[0].size)], axis=0)
    rng = np.random.default_rng(0)  # for points, not for noise
    random = rng.standard_normal((N_DIRECTIONS, minima[0].size))
    around = offsets(one, [*random, minima[1] - minima[0], minima[0] - minima[1]])
    points = np.vstack([center + around for center in centers])

    def log_ratio(point: FloatArray, sign: float = 1.0) -> float:
        return sign * (one.log_density(point) - other.log_density(point))

    ratios = np.array([log_ratio(point) for point in points])

    def climbed(sign: float) -> Ratio:
        # Where densities vanish there is no ratio.
        values = np.where(np.isfinite(ratios), sign * ratios, -np.inf)
        best = np.argsort(-values)[:N_CLIMBS]
        found: Ratio = float(values[best[0]]), tuple(points[best[0]].tolist())
        for start in points[best]:
            end = optimize.minimize(
                log_ratio, start, (-sign,), "Nelder-Mead", options={"maxfev": CLIMB_STEPS}
            )
            found = max(found, (-float(end.fun), tuple(end.x.tolist())), key=lambda each: each[0])
        return found

    return climbed(1.0), climbed(-1.0)


def offsets(density: Density, ways: list[FloatArray]) -> FloatArray:
    """Return steps in these directions and along each parameter, far and near."""
    d = density.objective.center.size
    rows = np.vstack([*ways, np.eye(d), -np.eye(d)])
    rows = rows[np.linalg.norm(rows, axis=1) > 0]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert density.linear is not None
    sensitivity = density.objective.likelihood.constants.gradient_sensitivity
    shift = max(density.linear.scale, sensitivity) / density.objective.kappa
    steps = [*(distance * shift for distance in DISTANCES), *NEAR]
    return np.vstack([np.zeros((1, d)), *(step * rows for step in steps)])


def ladder_logs(
    ladder: LadderLevels, epsilon: float, n_levels: int | None, n_cells: int
) -> FloatArray:
    """Return the log probability of each block of nodes between those that are compared."""
    top, step = highest_level(epsilon, n_levels), grid_step(ladder, n_cells)
    n_cells = ladder.n_cells // step
    levels = np.zeros(n_cells)
    # The level of a cell is the largest bound on the way to it, as the mechanism defines it.
    blocks = [(0, n_cells)]
    while blocks:
        start, end = blocks.pop()
        if end - start > 1:
            middle = (start + end) // 2
            below, above = levels[start:middle], levels[middle:end]
            np.maximum(below, min(ladder.down_to(middle * step), top), out=below)
            np.maximum(above, min(ladder.up_to(middle * step), top), out=above)
            blocks += [(start, middle), (middle, end)]
    logs = -0.5 * epsilon * levels / UNIT
    return np.asarray(logs - np.log(np.sum(np.exp(logs))))


def grid_step(ladder: LadderLevels, n_cells: int) -> int:
    """Return the number of grid nodes from one that is compared to the next."""
    return max(1, ladder.n_cells // n_cells)


def _compare_ladders(
    plan: Plan, one: CountTable, other: CountTable, n_cells: int
) -> DensityRatioResult:
    node = plan.tree
    contexts: list[dict[str, float]] = [{}]
    if isinstance(node, Sequential) and isinstance(total := node.nodes[-1], AdaptiveChoice):
        # The ladder that may be drawn, and released values that may come before it.
        n_events = min(max(int(one.events.sum()), 1), one.n_records)
        follow_up = float(np.exp(one.log_time) @ one.records)
        node = total.choose({"n_events": n_events, "follow_up": follow_up})
        contexts = [{"mean_log_event": -part * one.omega} for part in MEANS]
    ladder = next(leaf for leaf in leaves(node) if isinstance(leaf, Ladder))
    found = []
    for context in contexts:
        pair = [ladder.levels(context, table) for table in (one, other)]
        way = ladder.public.way
        logs = [ladder_logs(each, ladder.price, way.n_levels, n_cells) for each in pair]
        gaps = np.abs(logs[0] - logs[1])
        place = (int(np.argmax(gaps)) + 0.5) * grid_step(pair[0], n_cells)
        found.append((float(gaps.max()), place))
    largest, place = max(found)
    where, unseen = (ladder.shape_at(place),), ("noisy counts and sums", SAMPLERS)
    return DensityRatioResult(largest, ladder.price, where, ("draw of the shape",), unseen)
