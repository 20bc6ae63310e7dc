r"""Run a perturbation that was calibrated: minimise with noise in the objective, add noise outside.

.. math::
    \arg\min_f \Big[\sum_i \ell(f; z_i) + \frac\kappa2\|f - c\|^2 + \langle b, f\rangle\Big] + e

Objective perturbation draws b for privacy and a tiny e to hide the solver, output perturbation e
alone, and a descent noise for each of its gradients (:mod:`~skdpsurv.mechanisms.descent`).
Scales are those of a calibration, whose module states the theorem. All noise is drawn in the
calling process: workers get a linear term or noise, never a stream of random numbers.

The ways to perturb a minimiser, by the names that estimators give them.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from joblib import Parallel, delayed

from skdpsurv.data.blocks import Blocks, InMemory
from skdpsurv.dp import RandomSource, suppressed_float_errors
from skdpsurv.dp.plan import Distances, Known, Mechanism
from skdpsurv.dp.privacy_cost import Concentrated, Price, epsilon_or_mu
from skdpsurv.dp.types import FloatArray
from skdpsurv.likelihoods.base import Likelihood, PrivacyConstants
from skdpsurv.mechanisms import descent, objective
from skdpsurv.mechanisms import output as output_perturbation
from skdpsurv.mechanisms.certificate import ZERO, Center, Certificate
from skdpsurv.mechanisms.descent import Descent, DescentCalibration
from skdpsurv.mechanisms.newton import Move, Objective, minimize, minimize_without_privacy, moves
from skdpsurv.mechanisms.vector_noise import (
    NoiseDistribution,
    SphericalGaussian,
    SphericalLaplace,
    add_noise,
    draw_noise,
    nearest_doubles,
)


class Calibrated(Protocol):
    """What a calibration must say; all of it public."""

    @property
    def kappa(self) -> float:
        """Ridge strength, in the sum over records."""
        ...

    @property
    def certificate(self) -> Certificate | None:
        """What the released point satisfies; None for nothing."""
        ...

    @property
    def linear(self) -> NoiseDistribution | None:
        """Law of b; None for none."""
        ...

    @property
    def output(self) -> NoiseDistribution | None:
        """Law of e; None for none."""
        ...

    @property
    def noise_scale(self) -> float:
        """Size of the noise that privacy rests on; 0 for none."""
        ...

    def spent(self, move: Move) -> float:
        """Return for how much noise hides a move: an epsilon, or a mu of Gaussian noise."""
        ...


def steps_of(calibration: Calibrated) -> int:
    """Return how many noisy gradients there are; 0 where something is minimised."""
    return calibration.n_steps if isinstance(calibration, DescentCalibration) else 0


@dataclass(frozen=True)
class Unperturbed:
    """No noise and no privacy: the penalised fit, for reference.

    Parameters
    ----------
    kappa : float
        Positive.
    """

    kappa: float
    certificate: None = None
    linear: NoiseDistribution | None = None
    output: NoiseDistribution | None = None
    noise_scale: float = 0.0

    def spent(self, move: Move) -> float:
        """Return inf: nothing is hidden."""
        return math.inf


class Perturbed(NamedTuple):
    """A private minimiser, and the centre at which its ridge balances what the records pull.

    Parameters
    ----------
    coef : ndarray of shape (n_params,)
    center : ndarray of shape (n_params,)
        ``kappa (coef - center)`` is what, but for noise, the records' gradient at ``coef`` is not.
        That of the problem; of a descent, what its noisy gradients say it is. Private release.
    """

    coef: FloatArray
    center: FloatArray


@dataclass(frozen=True, eq=False)
class SharedPrice:
    """What one minimisation may cost, or all together that hold this very object.

    Parameters
    ----------
    price : float or Concentrated
    """

    price: Price


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
    price : SharedPrice or None, default=None
        That the calibration was made for.
    """

    likelihood: Likelihood
    blocks: Blocks[Any]
    calibration: Calibrated
    center: FloatArray
    price: SharedPrice | None = None

    def task(self, source: RandomSource) -> Objective | Descent:
        """Return what is to be computed, with its noise drawn."""
        how, blocks = self.calibration, self.blocks.held()  # for every step
        if isinstance(how, DescentCalibration):
            noise = [draw_noise(how.each, source) for _ in range(how.n_steps)]
            return Descent(self.likelihood, blocks, how, self.center, noise)
        linear = np.zeros(self.likelihood.n_params)
        if how.linear:
            linear = nearest_doubles(draw_noise(how.linear, source))
        return Objective(self.likelihood, blocks, how.kappa, self.center, linear)


def perturb(problem: Problem, source: RandomSource) -> Perturbed:
    """Release a private minimiser.

    Parameters
    ----------
    problem : Problem
    source : RandomSource
        Of operating-system entropy, or nothing here is private.

    Returns
    -------
    Perturbed
    """
    found = _computed(problem.task(source), problem.calibration.certificate)
    return _released(found, problem.calibration, source)


def perturb_all(
    problems: Sequence[Problem], source: RandomSource, *, n_jobs: int | None = None
) -> list[Perturbed]:
    """Release the private minimisers of several problems, solved in parallel.

    Parameters
    ----------
    problems : sequence of Problem
        What they cost together is for their calibrations to say.
    source : RandomSource
        Each problem gets a child of its own.
    n_jobs : int or None
        As for :class:`joblib.Parallel`, under whatever backend is active.

    Returns
    -------
    list of Perturbed
    """
    children = source.spawn(len(problems))
    tasks = [p.task(child) for p, child in zip(problems, children, strict=True)]
    # Blocks that are somewhere else stay there: threads of this process wait for their sums.
    here = all(isinstance(task.blocks, InMemory) for task in tasks)
    minima = Parallel(n_jobs=n_jobs, verbose=0, require=None if here else "sharedmem")(
        delayed(_computed)(task, problem.calibration.certificate)
        for task, problem in zip(tasks, problems, strict=True)
    )
    return [
        _released(found, problem.calibration, child)
        for found, problem, child in zip(minima, problems, children, strict=True)
    ]


class Minimisers(Mechanism):
    """Private minimisers of the same records, as a mechanism. A subclass says of what.

    What is proved is of each calibration; those that share a price are calibrated together.
    """

    #: Whether noise comes from the source itself, and not from a child for each.
    alone = False
    n_jobs: int | None = None
    #: How much noise there is, by which ways to the same minimisers are compared; inf: not known.
    noise: float = math.inf

    @abstractmethod
    def problems(self, known: Known, records: Any) -> list[Problem]:
        """Return the minimisations: they are what is solved, and what an audit attacks."""

    @abstractmethod
    def after(self, known: Known, found: list[Perturbed]) -> Mapping[str, Any]:
        """Return what follows from the minimisers: it never sees records."""

    def run(self, known: Known, records: Any, source: RandomSource) -> Mapping[str, Any]:
        """Release the minimisers, and return what follows."""
        problems = self.problems(known, records)
        if self.alone:
            return self.after(known, [perturb(problem, source) for problem in problems])
        return self.after(known, perturb_all(problems, source, n_jobs=self.n_jobs))

    def distances(self, known: Known, one: Any, other: Any) -> Distances:
        """Return how far derivatives are apart, and what hides that: see :func:`distances`."""
        return distances(self.problems(known, one), self.problems(known, other))


def distances(problems: Sequence[Problem], others: Sequence[Problem]) -> Distances:
    """Return how far neighbours are apart in all that a calibration starts from, and in its price.

    At a few points the difference of their gradients, which is at most S, and that of their
    Hessians, whose traces and ranks are at most tau and r: of the problem that comes nearest to its
    bound. And for how much the noise of all problems of one price hides these differences together,
    each at its own worst point.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    spent: dict[SharedPrice, list[float]] = {}
    for mine, theirs in zip(problems, others, strict=True):
        likelihood, how = mine.likelihood, mine.calibration
        constants, bend = likelihood.constants, likelihood.constants.hessian_trace
        seen = list(moves(likelihood, mine.blocks, theirs.blocks, mine.center))
        for what, far, bound in (
            ("gradients", max(m.gradient for m in seen), constants.gradient_sensitivity),
            ("traces of Hessians", max(m.trace for m in seen), bend),
            ("ranks of Hessians", max(m.rank(bend) for m in seen), constants.hessian_rank),
        ):
            found.setdefault(what, []).append((float(far), float(bound)))
        if mine.price is not None:
            # Where no record is another nothing has to be hidden, not even the solver.
            moved = any(m.gradient > 0.0 for m in seen)
            most = max(how.spent(m) for m in seen) if moved else 0.0
            spent.setdefault(mine.price, []).append(most)
    nearest = [(what, *max(pairs, key=lambda p: p[0] / p[1])) for what, pairs in found.items()]
    shared = [
        ("all that is hidden together", _together(costs, price.price), epsilon_or_mu(price.price))
        for price, costs in spent.items()
    ]
    return nearest + shared


def _together(costs: Sequence[float], price: Price) -> float:
    """Return the sum of epsilons, or the root of the sum of squares of mus."""
    return math.hypot(*costs) if isinstance(price, Concentrated) else math.fsum(costs)


def _computed(task: Objective | Descent, certificate: Certificate | None) -> Perturbed:
    # What the caller silenced does not follow into threads and processes.
    with suppressed_float_errors():
        if isinstance(task, Descent):
            mean, gradient = task.run()
            return Perturbed(mean, mean + gradient / task.calibration.kappa)
        if certificate is None:
            return Perturbed(minimize_without_privacy(task), task.center)
        return Perturbed(minimize(task, certificate), task.center)


def _released(found: Perturbed, calibration: Calibrated, source: RandomSource) -> Perturbed:
    law = calibration.output
    return found._replace(coef=add_noise(found.coef, law, source)) if law else found


NAMES = {
    "obj_pert": "objective perturbation",
    "out_pert": "output perturbation",
    "noisy_gd": "noisy gradient descent",
}


#: Those that epsilon alone pays for.
PURE = ("obj_pert", "out_pert")


def candidates(method: str, delta: float) -> list[tuple[str, bool]]:
    """Return the methods that a fit may use, and whether by Gaussian noise.

    Parameters
    ----------
    method : {"auto", "obj_pert", "out_pert", "noisy_gd"}
    delta : float
        0 rules Gaussian noise out.
    """
    pure = {"auto": "obj_pert", "obj_pert": "obj_pert", "out_pert": "out_pert"}
    gaussian = {"auto": "noisy_gd", "noisy_gd": "noisy_gd", "out_pert": "out_pert"}
    found = [(pure[method], False)] if method in pure else []
    return found + ([(gaussian[method], True)] if delta and method in gaussian else [])


def check_delta(method: object, delta: float) -> None:
    """Refuse a method that needs a delta which the estimator has not.

    Raises
    ------
    ValueError
    """
    if not delta and isinstance(method, str) and method == "noisy_gd":
        raise ValueError(
            "delta must be positive with method='noisy_gd': Gaussian noise has no epsilon without."
        )


def calibrate(
    method: str,
    constants: PrivacyConstants,
    price: Price,
    n_records: int,
    n_params: int,
    alpha: float,
    law: type[NoiseDistribution] = SphericalLaplace,
    center: Center = ZERO,
) -> Calibrated:
    """Return ridge, certificate and laws of noise, from public numbers.

    Parameters
    ----------
    method : str
        One of ``NAMES``.
    constants : PrivacyConstants
    price : float or Concentrated
        An epsilon, or a mu for Gaussian noise.
    n_records, n_params : int
    alpha : float
        Least ridge wanted, on the scale of the mean loss.
    law : type of NoiseDistribution, default=SphericalLaplace
        Of what epsilon pays for.
    center : Center, default=ZERO
        What is known of what coefficients are shrunk to.

    Returns
    -------
    Calibrated
    """
    gaussian = isinstance(price, Concentrated)
    public = constants, epsilon_or_mu(price), n_records, n_params, alpha
    if gaussian and method == "noisy_gd":
        return descent.calibrate(*public, center_norm=center.norm)
    law = SphericalGaussian if gaussian else law
    if method == "obj_pert" and not gaussian:
        return objective.calibrate(*public, law=law, center=center)
    return output_perturbation.calibrate(*public, law=law, center=center)


def deviation(calibration: Calibrated) -> float:
    """Return how much noise there is, in units of a gradient: what two ways are compared by.

    Of a descent that cannot go as far as it should, so many times as much.
    """
    if isinstance(calibration, DescentCalibration):
        return calibration.linear.deviation * calibration.excess
    linear, output = calibration.linear, calibration.output
    if linear is not None:
        return linear.deviation
    return 0.0 if output is None else output.deviation * calibration.kappa
