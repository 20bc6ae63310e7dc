r"""Run a calibrated perturbation: minimise with noise in the objective, add noise outside.

.. math::
    \arg\min_f \Big[\sum_i \ell(f; z_i) + \frac\kappa2\|f - c\|^2 + \langle b, f\rangle\Big] + e

Objective perturbation draws b for privacy and a tiny e to hide the solver, output perturbation e
alone, and a descent noise for each of its gradients (:mod:`~skdpsurv.mechanisms.descent`). The
module of a calibration states the theorem. All noise is drawn in the calling process: workers get
a linear term or noise, never a stream of random numbers.
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
from skdpsurv.dp.input_errors import suppressed_float_errors
from skdpsurv.dp.noise import RandomSource
from skdpsurv.dp.plan import Context, Distances, Mechanism
from skdpsurv.dp.privacy_cost import Concentrated, Price, epsilon_or_mu
from skdpsurv.dp.stated_noise import NONE
from skdpsurv.dp.types import FloatArray
from skdpsurv.likelihoods.loss import Likelihood, PrivacyConstants, Sensitivity, sensitivities
from skdpsurv.mechanisms import descent, objective
from skdpsurv.mechanisms import output_perturbation as output_perturbation
from skdpsurv.mechanisms.descent import Descent, DescentCalibration, NoisyGradients
from skdpsurv.mechanisms.newton import (
    ZERO,
    Center,
    Certificate,
    Objective,
    minimize,
    minimize_without_privacy,
)
from skdpsurv.mechanisms.vector_noise import (
    NoiseDistribution,
    SphericalGaussian,
    SphericalLaplace,
    add_noise,
    draw_noise,
    lattice_of,
    nearest_doubles,
    stated_law,
)


class Calibrated(Protocol):
    """Public numbers that every calibration has."""

    @property
    def kappa(self) -> float:
        """Ridge strength, in the sum over records."""

    @property
    def certificate(self) -> Certificate | None:
        """Conditions on the released point; None if it has none."""

    @property
    def linear(self) -> NoiseDistribution | None:
        """Distribution of the noise b on the gradient; None without such noise."""

    @property
    def output(self) -> NoiseDistribution | None:
        """Distribution of the noise e on the minimiser; None without such noise."""

    @property
    def noise_scale(self) -> float:
        """Size of the noise that privacy rests on; 0 for none."""

    def cost(self, move: Sensitivity) -> float:
        """Return the price at which noise hides a move: an epsilon, or a mu of Gaussian noise."""


class Bounded(Protocol):
    """What a release states of a likelihood: its constants, and what they follow from."""

    @property
    def constants(self) -> PrivacyConstants:
        """S, tau and r of one record."""

    def stated(self) -> Mapping[str, Any]:
        """Return the public numbers that the constants follow from."""


def steps_of(calibration: Calibrated) -> int:
    """Return the number of noisy gradients; 0 where something is minimised."""
    return calibration.n_steps if isinstance(calibration, DescentCalibration) else 0


def theorem_classes(likelihood: Likelihood, calibration: Calibrated) -> list[type]:
    """Return the classes that the theorem of a perturbation is about: loss, noise, and its laws."""
    laws = (getattr(calibration, name, None) for name in ("linear", "output", "each"))
    return [type(likelihood), type(calibration), *(type(law) for law in laws if law is not None)]


def stated_fits(fits: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """Return the law of perturbed fits, and the constants and the noise of each.

    Each is a likelihood and its calibration. A fit is one of so many ``models``; fits with the same
    ``part`` share one price, and ``whole`` is the likelihood of all that they read of a record.
    """
    return {"law": _law(fits[0][1]), "fits": [_stated(*fit) for fit in fits]}


def _law(how: Calibrated) -> str:
    if isinstance(how, NoisyGradients):
        return "noisy gradients"
    if how.linear is not None:
        return NAMES["obj_pert"]
    return NONE if how.output is None else NAMES["out_pert"]


def _stated(
    likelihood: Bounded,
    how: Calibrated,
    part: int = 0,
    models: int = 1,
    whole: Bounded | None = None,
) -> dict[str, Any]:
    constants = likelihood.constants
    own: tuple[tuple[str, NoiseDistribution | None], ...]
    own = ("objective", how.linear), ("output", how.output)
    if isinstance(how, NoisyGradients):
        own = (("gradient", how.each),)
    return {
        "part": part,
        "models": models,
        "sensitivity": constants.gradient_sensitivity,
        "hessian_trace": constants.hessian_trace,
        "hessian_rank": constants.hessian_rank,
        "loss": likelihood.stated(),
        **({} if whole is None else {"whole": whole.stated()}),
        "kappa": how.kappa,
        **_stated_rounding(constants, how),
        **({"n_steps": how.n_steps} if isinstance(how, NoisyGradients) else {}),
        **{f"{name}_noise": stated_law(one) for name, one in own if one is not None},
        **({} if how.output is None else {"lattice": lattice_of(how.output)}),
    }


def _stated_rounding(constants: PrivacyConstants, how: Calibrated) -> dict[str, Any]:
    """State the bound on errors of computed gradients, and the certificate."""
    certified = how.certificate
    public = how if isinstance(how, NoisyGradients) else certified
    if public is None:
        return {}
    ends = {} if certified is None else {"tolerance": certified.tolerance}
    return {
        "n_records": public.n_records,
        "center_norm": public.center.norm,
        "center_loss": public.center.loss,
        "rounding": constants.rounding,
        "predictor_rounding": constants.predictor_rounding,
        "loss_at_zero": constants.loss_at_zero,
        **ends,
    }


@dataclass(frozen=True)
class Unperturbed:
    """No noise and no privacy: the penalised fit with a ridge ``kappa`` > 0, for reference."""

    kappa: float
    certificate: None = None
    linear: NoiseDistribution | None = None
    output: NoiseDistribution | None = None
    noise_scale: float = 0.0

    def cost(self, move: Sensitivity) -> float:
        return math.inf


class Perturbed(NamedTuple):
    """A private minimiser and its centre.

    Up to noise, the records' gradient at ``coef`` equals ``-kappa * (coef - center)``. A descent
    estimates its centre by noisy gradients.
    """

    coef: FloatArray
    center: FloatArray


@dataclass(frozen=True, eq=False)
class SharedPrice:
    """The price of one minimisation, or of all together that hold this very object."""

    price: Price


@dataclass(frozen=True)
class Problem:
    """One private minimisation.

    Parameters
    ----------
    likelihood : Likelihood
        Its constants are those of the calibration.
    blocks : Blocks
        Private records, inside the public domain.
    calibration : Calibrated
        Made by a ``calibrate`` of this package.
    center : ndarray of shape (n_params,)
        c, public.
    price : SharedPrice or None, default=None
        Price of the calibration.
    """

    likelihood: Likelihood
    blocks: Blocks[Any]
    calibration: Calibrated
    center: FloatArray
    price: SharedPrice | None = None

    def task(self, source: RandomSource) -> Objective | Descent:
        """Draw the noise, and return the minimisation that remains to be done."""
        how, blocks = self.calibration, self.blocks.persist()  # for every step
        if isinstance(how, DescentCalibration):
            noise = [draw_noise(how.each, source) for _ in range(how.n_steps)]
            return Descent(self.likelihood, blocks, how, self.center, noise)
        linear = np.zeros(self.likelihood.n_params)
        if how.linear:
            linear = nearest_doubles(draw_noise(how.linear, source))
        return Objective(self.likelihood, blocks, how.kappa, self.center, linear)


def perturb(problem: Problem, source: RandomSource) -> Perturbed:
    """Release a private minimiser; nothing here is private if the source is seeded."""
    found = _computed(problem.task(source), problem.calibration.certificate)
    return _released(found, problem.calibration, source)


def perturb_all(
    problems: Sequence[Problem], source: RandomSource, *, n_jobs: int | None = None
) -> list[Perturbed]:
    """Release the private minimisers of several problems, solved in parallel.

    Each problem gets a child of ``source``; ``n_jobs`` is that of :class:`joblib.Parallel`.
    """
    children = source.spawn(len(problems))
    tasks = [p.task(child) for p, child in zip(problems, children, strict=True)]
    # Blocks elsewhere stay there: threads of this process wait for their sums.
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
    """Private minimisers of the same records, as a mechanism; a subclass states the problems."""

    #: True if noise comes from the source itself, and not from a child for each problem.
    one_source = False
    n_jobs: int | None = None
    #: Size of the noise, to compare methods for the same minimisers; inf: not known.
    noise: float = math.inf

    @abstractmethod
    def calibrated(self, context: Context | None) -> Sequence[tuple[Any, ...]]:
        """Return likelihood and calibration of each minimisation, or of the extreme ones."""

    def drawn(self, context: Context | None) -> Mapping[str, Any]:
        return stated_fits(self.calibrated(context))

    @abstractmethod
    def problems(self, context: Context, records: Any) -> list[Problem]:
        """Return the minimisations that a fit solves and an audit attacks."""

    @abstractmethod
    def postprocess(self, context: Context, found: list[Perturbed]) -> Mapping[str, Any]:
        """Return post-processing of the minimisers, which never sees records."""

    def run(self, context: Context, records: Any, source: RandomSource) -> Mapping[str, Any]:
        problems = self.problems(context, records)
        if self.one_source:
            return self.postprocess(context, [perturb(problem, source) for problem in problems])
        return self.postprocess(context, perturb_all(problems, source, n_jobs=self.n_jobs))

    def distances(self, context: Context, one: Any, other: Any) -> Distances:
        return distances(self.problems(context, one), self.problems(context, other))


def distances(problems: Sequence[Problem], others: Sequence[Problem]) -> Distances:
    """Return the distances of neighbours with their bounds, and the price that hides them.

    They are compared at a few points: gradients with S, traces and ranks of Hessians with tau and
    r, each for the problem nearest to its bound. The price is that of all problems with one price
    together, each at its own worst point.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    costs: dict[SharedPrice, list[float]] = {}
    for mine, theirs in zip(problems, others, strict=True):
        likelihood, how = mine.likelihood, mine.calibration
        constants, trace = likelihood.constants, likelihood.constants.hessian_trace
        seen = list(sensitivities(likelihood, mine.blocks, theirs.blocks, mine.center))
        for what, far, bound in (
            ("gradients", max(m.gradient for m in seen), constants.gradient_sensitivity),
            ("traces of Hessians", max(m.trace for m in seen), trace),
            ("ranks of Hessians", max(m.rank(trace) for m in seen), constants.hessian_rank),
        ):
            found.setdefault(what, []).append((float(far), float(bound)))
        if mine.price is not None:
            # Equal records need nothing hidden, not even the solver.
            moved = any(m.gradient > 0.0 for m in seen)
            most = max(how.cost(m) for m in seen) if moved else 0.0
            costs.setdefault(mine.price, []).append(most)
    nearest = [(what, *max(pairs, key=lambda p: p[0] / p[1])) for what, pairs in found.items()]
    shared = [
        ("all that is hidden together", _total(each, price.price), epsilon_or_mu(price.price))
        for price, each in costs.items()
    ]
    return nearest + shared


def _total(costs: Sequence[float], price: Price) -> float:
    """Return the sum of epsilons, or the root of the sum of squares of mus."""
    return math.hypot(*costs) if isinstance(price, Concentrated) else math.fsum(costs)


def _computed(task: Objective | Descent, certificate: Certificate | None) -> Perturbed:
    # Warnings that the caller silenced are not silent in threads and processes.
    with suppressed_float_errors():
        if isinstance(task, Descent):
            mean, gradient = task.run()
            return Perturbed(mean, mean + gradient / task.calibration.kappa)
        if certificate is None:
            return Perturbed(minimize_without_privacy(task), task.center)
        return Perturbed(minimize(task, certificate), task.center)


def _released(found: Perturbed, calibration: Calibrated, source: RandomSource) -> Perturbed:
    noise = calibration.output
    return found._replace(coef=add_noise(found.coef, noise, source)) if noise else found


#: Methods, by the names that estimators give them.
NAMES = {
    "obj_pert": "objective perturbation",
    "out_pert": "output perturbation",
    "noisy_gd": "noisy gradient descent",
}
#: Methods that cost an epsilon and no delta.
PURE = ("obj_pert", "out_pert")


def candidates(method: str, delta: float) -> list[tuple[str, float]]:
    """Return the methods that a fit may use, each with its delta: 0 without Gaussian noise."""
    pure = {"auto": "obj_pert", "obj_pert": "obj_pert", "out_pert": "out_pert"}
    gaussian = {"auto": "noisy_gd", "noisy_gd": "noisy_gd", "out_pert": "out_pert"}
    found = [(pure[method], 0.0)] if method in pure else []
    return found + ([(gaussian[method], delta)] if delta and method in gaussian else [])


def check_delta(method: object, delta: float) -> None:
    """Raise ValueError for a method that needs a delta, without one."""
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
    distribution: type[NoiseDistribution] = SphericalLaplace,
    center: Center = ZERO,
) -> Calibrated:
    """Return ridge, certificate and noise for one of ``NAMES``, from public numbers.

    ``alpha`` is the least ridge wanted, on the scale of the mean loss. ``distribution`` is that of
    noise at an epsilon; a mu has Gaussian noise.
    """
    gaussian = isinstance(price, Concentrated)
    public = constants, epsilon_or_mu(price), n_records, n_params, alpha
    if gaussian and method == "noisy_gd":
        return descent.calibrate(*public, center_norm=center.norm)
    if method == "obj_pert" and not gaussian:
        return objective.calibrate(*public, distribution=distribution, center=center)
    distribution = SphericalGaussian if gaussian else distribution
    return output_perturbation.calibrate(*public, distribution=distribution, center=center)


def deviation(calibration: Calibrated) -> float:
    """Return the size of the noise in units of a gradient, to compare methods.

    It is larger by its ``excess`` for a descent whose steps end too early.
    """
    if isinstance(calibration, DescentCalibration):
        return calibration.linear.deviation * calibration.excess
    linear, output = calibration.linear, calibration.output
    if linear is not None:
        return linear.deviation
    return 0.0 if output is None else output.deviation * calibration.kappa


def ridge_and_variances(calibration: Calibrated) -> tuple[float, float, float]:
    """Return kappa, and the variances of each coordinate of b and of e."""
    noises = calibration.linear, calibration.output
    linear, output = (0.0 if noise is None else noise.deviation**2 for noise in noises)
    return calibration.kappa, linear, output
