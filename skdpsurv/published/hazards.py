r"""PublishedDiscreteTimeSurvival: hazard models as Nguyen and Hui (arXiv 1708.07436) fit them.

Uncapped logit loss, the paper's spline basis, rows in the unit ball, centre 0, and the paper's
bounds

.. math::
    S = \sum_s\sqrt{\|A_s\|^2 + 4} + \max_s\sqrt{4\|A_s\|^2 + 4}, \qquad
    J = 2\sum_s\log\Big(1 + \frac{\sqrt{c_s}}{4\kappa}\Big),\quad c_s = \|A_s\|^2 + 1.

The paper's eigenvalue is wrong: that of :math:`x x^\top` is :math:`c_s`, not its root. The spare
factor 2 covers the mistake if :math:`J \ge \sum_s\log(1 + c_s/(4\kappa))` at the kappa used.
Otherwise the theorem does not hold and :class:`PublishedPerturbation` refuses (docs/errata). The
paper also takes minimisers for exact; here their error is paid for, out of the same epsilon. The
limit of pSGLD as printed (:class:`PublishedDraw`) spends twice its epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skdpsurv.base.private_estimator import Caveat
from skdpsurv.data.blocks import Blocks
from skdpsurv.data.shape import Shape
from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.checks import Check, word_or
from skdpsurv.dp.plan import Context, Plan
from skdpsurv.dp.references import REAL_ARITHMETIC, phrase, reference
from skdpsurv.dp.types import FloatArray
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.loss import PrivacyConstants
from skdpsurv.mechanisms import objective, output_perturbation
from skdpsurv.mechanisms.langevin import MALA, PSGLD
from skdpsurv.mechanisms.perturbation import PURE, Minimisers, Perturbed, Problem, SharedPrice
from skdpsurv.survival.hazards.discrete_model import DiscreteTimeModel
from skdpsurv.survival.hazards.maximum import HazardMaximum
from skdpsurv.survival.hazards.model import (
    HazardModel,
    HazardRecords,
    hazard_plan,
    published_basis,
    released,
)
from skdpsurv.survival.hazards.posterior import PosteriorDraw, PosteriorSampling

#: Lambda of Algorithm 1 when ``alpha`` is 0, which would mean infinite noise.
LEAST_ALPHA = 1e-4


def published_sensitivity(basis: FloatArray) -> float:
    """Return the gradient sensitivity S of the paper's lemma 4.2."""
    squares = np.sum(basis**2, axis=1)
    return float(np.sum(np.sqrt(squares + 4.0)) + np.sqrt(4.0 * squares.max() + 4.0))


def published_cost(basis: FloatArray, kappa: float) -> float:
    """Return J of the paper's equation 7: the epsilon that curvature costs."""
    return float(2.0 * np.sum(np.log1p(np.sqrt(np.sum(basis**2, axis=1) + 1.0) / (4.0 * kappa))))


def true_cost(basis: FloatArray, kappa: float) -> float:
    """Return the cost that J must cover, with the right eigenvalue."""
    return float(np.sum(np.log1p((np.sum(basis**2, axis=1) + 1.0) / (4.0 * kappa))))


class AsPublished(NamedTuple):
    """The paper's constants of a likelihood, and what it states."""

    constants: PrivacyConstants
    stated: Callable[[], Mapping[str, Any]]


@dataclass(frozen=True)
class PublishedPerturbation(Minimisers):
    """Perturbation of the minimiser, calibrated as the paper does."""

    model: HazardModel
    price: float
    name: str
    likelihood: DiscreteHazard
    calibration: Any

    one_source = True
    proof = reference("docs/errata", "nguyen-hui")

    @classmethod
    def planned(
        cls, model: HazardModel, price: float, method: str, alpha: float
    ) -> PublishedPerturbation:
        """Return a perturbation, or raise ValueError if it would not be private."""
        if model.link != "logit":
            raise ValueError(f"link must be 'logit', as in the paper, got {model.link!r}.")
        n, basis = model.n_records, published_basis(model.n_intervals, model.n_knots)
        likelihood = DiscreteHazard(basis, model.n_features)
        sensitivity, d = published_sensitivity(basis), likelihood.n_params
        constants = replace(likelihood.constants, gradient_sensitivity=sensitivity)
        calibration: Any
        if method == "out_pert":
            kappa = n * (alpha or LEAST_ALPHA)
            calibration = output_perturbation.calibrate_at(constants, price, n, d, kappa)
            return cls(model, price, "Ext-Out-Pert, as published", likelihood, calibration)
        cost = partial(published_cost, basis)
        calibration = objective.calibrate_to_cost(constants, cost, price, n, d, alpha)
        if cost(calibration.kappa) < true_cost(basis, calibration.kappa):
            raise ValueError("n_knots, epsilon and alpha must be as the paper's bound needs them.")
        return cls(model, price, "Ext-Obj-Pert, as published", likelihood, calibration)

    def scales(self) -> list[float]:
        """Return public numbers that must be in the representable range."""
        return [self.model.data_norm, self.calibration.kappa, self.calibration.noise_scale]

    def stated(self) -> dict[str, Any]:
        """Return sensitivity, ridge and noise."""
        return {
            "gradient_sensitivity": published_sensitivity(self.likelihood.basis),
            "kappa": self.calibration.kappa,
            "noise_scale": self.calibration.noise_scale,
        }

    def calibrated(self, context: Context | None) -> list[Any]:
        """Return the likelihood with the paper's constants, and the calibration."""
        own = published_sensitivity(self.likelihood.basis)
        constants = replace(self.likelihood.constants, gradient_sensitivity=own)
        return [(AsPublished(constants, self.likelihood.stated), self.calibration)]

    def problems(self, context: Context, records: Blocks[HazardRecords]) -> list[Problem]:
        """Return the minimisation of the fit, in a list of one."""
        norm, likelihood = self.model.data_norm, self.likelihood
        blocks = records.map(lambda block: block.clipped(0.0, norm))
        center, price = np.zeros(likelihood.n_params), SharedPrice(self.price)
        return [Problem(likelihood, blocks, self.calibration, center, price)]

    def postprocess(self, context: Context, found: list[Perturbed]) -> dict[str, Any]:
        """Return baseline and coefficients."""
        coef, n_knots = found[0].coef, self.model.n_knots
        baseline = self.likelihood.basis @ coef[:n_knots]
        return released(self.model, baseline, coef[n_knots:] / self.model.data_norm)


@dataclass(frozen=True)
class PublishedDraw(PosteriorDraw):
    """pSGLD as the paper prints it, in its basis: not private, not even in the limit."""

    claim = "none"

    @property
    def name(self) -> str:  # type: ignore[override]
        """The mechanism in words."""
        return "sanitised exponential mechanism, one state of a Markov chain (pSGLD as published)"

    def basis_of(self, model: HazardModel) -> FloatArray:
        """Return the paper's basis."""
        return published_basis(model.n_intervals, model.n_knots)

    def chain(self) -> MALA | PSGLD:
        """Return the chain with the paper's steps."""
        chain = super().chain()
        assert isinstance(chain, PSGLD)
        return replace(chain, published=True)


class PublishedDiscreteTimeSurvival(
    DiscreteTimeModel, methods={"psgld": partial(PosteriorSampling, "psgld")}
):
    """Discrete-time survival regression by the algorithms of the paper, to the letter.

    Parameters
    ----------
    epsilon, columns, max_time, n_intervals, n_knots, data_norm, random_state, accountant
        As for :class:`~skdpsurv.DPDiscreteTimeSurvival`.
    method : {"obj_pert", "out_pert", "psgld"} or PosteriorSampling, default="obj_pert"
        Algorithm 1 (Ext-Obj-Pert), algorithm 2 (Ext-Out-Pert), or pSGLD, which is
        ``PosteriorSampling("psgld")``, with a default first step of 1. **pSGLD is not private**:
        its limit spends twice its epsilon, status "none".
    link : {"logit", "cloglog", "probit"}, default="logit"
        Perturbations take "logit" alone.
    alpha : float, default=0.0
        The paper's Lambda; 0 means 1e-4 for output perturbation.

    Attributes
    ----------
    coef_, baseline_coef_, unique_times_, guarantee_, release_
        As for :class:`~skdpsurv.DPDiscreteTimeSurvival`.

    Notes
    -----
    Neighbours: replace-one; the number of records is public. The likelihood is uncapped, rows are
    clipped to ``data_norm``, and nothing is recalibrated. A fit for which the paper's theorem does
    not hold is refused (docs/errata). Records with events and times as for
    :class:`~skdpsurv.DPDiscreteTimeSurvival`.

    References
    ----------
    .. [1] T. T. Nguyen and S. C. Hui, "Differentially private regression for discrete-time survival
       analysis", CIKM 2017, arXiv 1708.07436.

    Examples
    --------
    >>> from skdpsurv.datasets import make_discrete_time_survival
    >>> from skdpsurv.published import PublishedDiscreteTimeSurvival
    >>> data = make_discrete_time_survival(1000, 2, random_state=0)
    >>> model = PublishedDiscreteTimeSurvival(5.0, max_time=data.max_time, n_intervals=20)
    >>> model.fit(data.X, data.y).guarantee_.status
    'proved'
    """

    #: The published algorithms give no standard errors.
    inference_share = 0.0

    _rules: ClassVar[dict[str, Check]] = {"method": word_or(PosteriorSampling, *PURE, "psgld")}

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        columns: Any = None,
        method: str | PosteriorSampling = "obj_pert",
        max_time: float | None = None,
        n_intervals: int = 200,
        n_knots: int = 3,
        link: str = "logit",
        data_norm: float | str = "auto",
        alpha: float = 0.0,
        random_state: int | None = None,
        accountant: PrivacyAccountant | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.columns = columns
        self.method = method
        self.max_time = max_time
        self.n_intervals = n_intervals
        self.n_knots = n_knots
        self.link = link
        self.data_norm = data_norm
        self.alpha = alpha
        self.random_state = random_state
        self.accountant = accountant

    def _check_together(self) -> None:
        super()._check_together()
        if self._sampling is not None and self._sampling.sampler != "psgld":
            raise ValueError("sampler must be 'psgld': the paper has no other chain.")

    def _caveats(self, shape: Any) -> list[Caveat]:
        found = super()._caveats(shape)
        if self._sampling is not None:
            found.append(Caveat("none", phrase("twice_its_epsilon")))
        return found

    def _plan(self, shape: Shape) -> Plan:
        sampling, epsilon, alpha = self._sampling, float(self.epsilon), float(self.alpha)
        model = self._model(
            shape, exact_rows=sampling is not None, max_cumulative_hazard=None, prior_event_rate=0.5
        )
        if math.isinf(epsilon):
            return hazard_plan(model, epsilon, alpha, HazardMaximum(model))
        if sampling is not None:
            draw = PublishedDraw(model, epsilon, alpha, sampling)
            return hazard_plan(model, epsilon, alpha, draw, assumed=(REAL_ARITHMETIC,))
        tree = PublishedPerturbation.planned(model, epsilon, str(self.method), alpha)
        return hazard_plan(model, epsilon, alpha, tree)
