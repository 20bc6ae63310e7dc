r"""How groups of columns share epsilon: plans for logistic models, from public numbers alone.

``tight``: objective perturbation with noise proportional to :math:`1/a_k` in group k, calibrated to
the effect of a whole row (:mod:`skdpsurv.mechanisms.joint_calibration`). ``published``: Algorithms
1 and 3 of Guo et al. (arXiv 1811.09491), whose groups are scaled to :math:`\|x_k\| \le q_k`, with

.. math::
    \epsilon' = \epsilon - \sum_k 2\log\Big(1 + \frac{q_k^2}{4n\Lambda}\Big), \qquad
    p(b_k) \propto e^{-\epsilon'\|b_k\|/2},

or, should :math:`\epsilon'` not be positive (here, at least 5 % of epsilon), :math:`\epsilon' =
\epsilon/2` and :math:`\Lambda` raised to :math:`q_k^2 / (4n(e^{\epsilon q_k/4} - 1))`. With one
group, q = 1, this is Chaudhuri, Monteleoni and Sarwate (2011). Both pay for inexact minima out of
epsilon. The outputs of a model of more than two classes have equal shares of epsilon.

**Ridge and cap** follow from n, the number of columns and epsilon unless they are stated. Their
constants were found by accuracy on held-out rows of simulated and real data sets
(docs/benchmarks/classification). Powers below those that theory gives for isotropic rows,
:math:`(2cd/(\epsilon\sqrt n))^2`, did better on real ones, whose columns are related.

**The slope of predicted log odds** undoes a part of the penalty, as a ridge that balances much
noise shrinks coefficients far more than it turns them:

.. math::
    b = \min(1 + r, e^4)^{w/2}, \qquad r = \frac{2 d \kappa}{n R^2}, \qquad
    w = \frac{u}{2 + u}, \qquad u = \frac{2 n \epsilon_k}{C d}

with :math:`\kappa` the ridge, R the bound on rows, C classes and :math:`\epsilon_k` for each of
their models. The ridge alone shortens coefficients by the factor 1 + 2r if rows of length R have
isotropic directions; the root of 1 + r did well over many data sets (docs/benchmarks). Nothing is
spent: b is a function of public numbers (docs/proofs/logistic).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np

from skdpsurv.classification.logistic_measurements import ColumnGroup, GroupFit
from skdpsurv.classification.row_scales import Coefficients, RowScales
from skdpsurv.dp.privacy_cost import Concentrated, Price, as_laplace, epsilon_or_mu
from skdpsurv.dp.types import FloatArray
from skdpsurv.likelihoods.linear import Logistic
from skdpsurv.mechanisms import descent as noisy_descent
from skdpsurv.mechanisms import joint_calibration as joint
from skdpsurv.mechanisms import output_perturbation as output_perturbation
from skdpsurv.mechanisms import vector_noise
from skdpsurv.mechanisms.newton import LEAST_RIDGE
from skdpsurv.mechanisms.objective import SOLVER_SHARE
from skdpsurv.mechanisms.perturbation import Calibrated, Unperturbed

#: Share of epsilon that the curvature term of objective perturbation may use.
CURVATURE_SHARE = 0.2
#: Objective perturbation: kappa = RIDGE 2c d^1.25 / (n^0.5 epsilon^1.5).
RIDGE = 1.25
#: Output perturbation with many records: kappa over the root of n times the noise.
OUTPUT_SHARE = 0.04
#: Factor of the ridge where models of groups vote: errors add up, and weak models should vote less.
VOTE_RIDGE = 2.0
#: Factor of the ridge around a released centre, which is worth shrinking to.
TRANSFER_RIDGE = 5.0
#: max_residual="auto" is 0.5 up to n epsilon / d = 256, and 1 from 1024.
RESIDUAL_SCALE = 1.0 / 32.0
#: Lambda of the published algorithms where ``alpha`` is "auto"; the papers tuned it.
PUBLISHED_ALPHA = 1e-2
#: The published algorithms accept any positive epsilon'. With less than this share of epsilon, or
#: with coefficients further out than this, per column, no solver could be certified.
LEAST_NOISE_SHARE, LARGEST_REACH = 0.05, 25.0
#: Ridge of the fit without privacy where ``alpha`` is 0: separated classes have no finite optimum.
LEAST_PENALTY = 1e-6
#: This ridge for alpha="auto", per column, rows of norm 1: nearly as good as cross-validation. The
#: constant column is then so large that the intercept is free.
REFERENCE_RIDGE, FREE_CONSTANT = 1e-3, 10.0
#: Largest parameter of a centre. Those of useful models are below 100.
LARGEST_CENTER = 1e4
#: Public slope: the power of 1 + r for large u, the u at which half of it is used, the largest
#: log(1 + r).
POWER, HALF, LARGEST_LOG = 0.5, 2.0, 4.0


def of_each(price: Price, n_outputs: int) -> Price:
    """Return the price of one output's models; all outputs never cost more than the price."""
    if isinstance(price, Concentrated):
        return Concentrated(price.mu / math.sqrt(n_outputs) / vector_noise.MARGIN)
    return price if n_outputs == 1 else price / n_outputs / vector_noise.MARGIN


@dataclass(frozen=True)
class GroupSetting:
    """The public description of a fit: all of it comes from the caller.

    Parameters
    ----------
    n_records, n_outputs : int
    price : float or Concentrated
        Price of the models of all groups for one output.
    groups : tuple of tuple of int
        Columns of each group, disjoint.
    weights : tuple of float
        a_k, positive, adding up to 1.
    data_norm : float
        Bound on whole rows.
    group_norms : tuple of float
        Bounds on each group's columns, at most ``data_norm``.
    constant : float
        Size of the constant column in units of ``data_norm``; 0 for no intercept.
    alpha : float or None
        Ridge on the scale of the mean loss; None for the public rule.
    max_residual : float or None
        c; None for the public rule.
    ridge_multiple : float, default=1.0
        Factor of the public rule's ridge.
    centers : tuple of Coefficients or None, default=None
        Centres of each group's ridge, for rows as they are read; None for 0.
    scales : RowScales or None, default=None
        Public centres and spreads by which rows are scaled.
    distribution : type of NoiseDistribution, default=SphericalLaplace
        Distribution of noise that epsilon pays for.
    """

    n_records: int
    n_outputs: int
    price: Price
    groups: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...]
    data_norm: float
    group_norms: tuple[float, ...]
    constant: float
    alpha: float | None
    max_residual: float | None
    ridge_multiple: float = 1.0
    centers: tuple[Coefficients, ...] | None = None
    scales: RowScales | None = None
    distribution: type[vector_noise.NoiseDistribution] = vector_noise.SphericalLaplace

    @property
    def n_features(self) -> int:
        """Columns over all groups."""
        return sum(map(len, self.groups))

    def capped(self) -> float:
        """Return c: as stated, or 1/2, or more where there is little noise to halve."""
        if self.max_residual is not None:
            return self.max_residual
        information = self.n_records * as_laplace(self.price, self.n_features) / self.n_features
        return min(max(RESIDUAL_SCALE * math.sqrt(information), 0.5), 1.0)

    def ridge(self, by_rule: float) -> float:
        """Return kappa for rows in units of ``data_norm``, by alpha or else by the public rule."""
        if self.alpha is None:
            return by_rule
        return self.n_records * self.alpha / self.data_norm**2

    def unit_columns(self) -> tuple[ColumnGroup, ...]:
        """Return the groups in units of ``data_norm``, constants beside them."""
        factor = 1.0 / self.data_norm
        return tuple(
            ColumnGroup(group, norm, factor, self.constant)
            for group, norm in zip(self.groups, self.group_norms, strict=True)
        )

    def model_centers(self, groups: Sequence[ColumnGroup]) -> tuple[FloatArray, ...]:
        """Return centres as parameters of the models, of shape (n_outputs, n_params) each."""
        if self.centers is None:
            return tuple(np.zeros((self.n_outputs, g.n_params)) for g in groups)
        centers = tuple(
            np.array([group.to_model(*one) for one in zip(*center, strict=True)])
            for group, center in zip(groups, self.centers, strict=True)
        )
        if not max(np.abs(center).max() for center in centers) <= LARGEST_CENTER:
            raise ValueError(f"prior must have scaled coefficients of at most {LARGEST_CENTER:g}.")
        return centers

    def plan(
        self,
        cap: float,
        groups: tuple[ColumnGroup, ...],
        calibrations: Iterable[Calibrated],
        whole: Logistic | None = None,
    ) -> GroupFit:
        """Return the plan of one model for each group of columns, calibrated as given."""
        public = self.n_records, self.n_outputs, self.data_norm, cap
        centers = self.model_centers(groups)
        every = (*public, groups, tuple(calibrations), centers)
        return GroupFit(*every, scales=self.scales, price=self.price, whole=whole)

    def parts(
        self,
        groups: Sequence[ColumnGroup],
        bounds: Sequence[float],
        cap: float,
        ridges: Iterable[float] = repeat(0.0),
    ) -> list[joint.CalibratedPart]:
        """Return the groups' models, of rows with these bounds."""
        n_params = [group.n_params for group in groups]
        losses = map(Logistic, n_params, bounds, repeat(cap))
        centers = self.model_centers(groups)
        longest = [float(np.linalg.norm(rows, axis=1).max()) for rows in centers]
        constants = [loss.constants for loss in losses]
        return list(map(joint.CalibratedPart, constants, n_params, self.weights, ridges, longest))

    def whole(self, cap: float) -> Logistic:
        """Return the likelihood of all groups of one row together."""
        # One row of norm 1 is shared by the groups; each has a constant column of its own.
        norm = math.sqrt(1.0 + len(self.groups) * self.constant**2)
        return Logistic(self.n_features, norm, cap)


def auto_ridge(n_records: int, n_params: int, epsilon: float, max_residual: float) -> float:
    """Return kappa for objective perturbation, and rows of norm 1; it goes with their square."""
    return RIDGE * 2.0 * max_residual * n_params**1.25 / (math.sqrt(n_records) * epsilon**1.5)


def output_ridge(n_records: int, n_params: int, epsilon: float, max_residual: float) -> float:
    """Return kappa for output perturbation, from the noise that a margin feels.

    It is that over kappa, and shrinkage is kappa over n, so that with many records the best kappa
    is a share of the root of n times the noise; with few it must not leave too much noise.
    """
    noise = 2.0 * max_residual * math.sqrt(n_params) / epsilon
    few = 1.5 * noise * (1.0 + 10.0 * noise / math.sqrt(n_records))
    return max(few, OUTPUT_SHARE * math.sqrt(n_records * noise))


def public_slope(fit: GroupFit, epsilon: float, n_classes: int) -> float:
    """Return b, at least 1, from the plan of a fit alone."""
    (group,), (calibration,), n = fit.groups, fit.calibrations, fit.n_records
    excess = 2.0 * group.n_params * (calibration.kappa / group.bound**2) / n
    information = 2.0 * n * epsilon / (max(n_classes, 2) * group.n_params)
    weight = information / (HALF + information)
    return math.exp(POWER * weight * min(math.log1p(excess), LARGEST_LOG))


def tight(setting: GroupSetting) -> GroupFit:
    """Plan objective perturbation with the package's own calibration."""
    groups, cap, epsilon = setting.unit_columns(), setting.capped(), epsilon_or_mu(setting.price)
    parts = setting.parts(groups, [group.bound for group in groups], cap)
    whole = setting.whole(cap)
    sensitivity = joint.joint_sensitivity(parts, whole.constants.gradient_sensitivity)

    def with_ridge(part: joint.CalibratedPart, group: ColumnGroup) -> joint.CalibratedPart:
        # The ridge of a model of rows of norm R whose epsilon_k gives the same noise.
        share = part.weight * part.constants.gradient_sensitivity / sensitivity
        wanted = auto_ridge(setting.n_records, part.n_params, share * epsilon, cap)
        return replace(part, ridge=setting.ridge(setting.ridge_multiple * wanted * group.bound**2))

    each, n, law = list(map(with_ridge, parts, groups)), setting.n_records, setting.distribution
    calibrations = joint.calibrate_jointly(
        each, whole.constants, epsilon, n, curvature_share=CURVATURE_SHARE, distribution=law
    )
    return setting.plan(cap, groups, calibrations, whole)


def output(setting: GroupSetting, *, shrinkage_corrected: bool = False) -> GroupFit:
    """Plan output perturbation of one group, whose shrinkage may be corrected afterwards."""
    (group,), cap = setting.unit_columns(), setting.capped()
    constants = Logistic(group.n_params, group.bound, cap).constants
    n, d, epsilon = setting.n_records, group.n_params, as_laplace(setting.price, setting.n_features)
    kappa = output_ridge(n, d, epsilon, cap) * group.bound**2
    if shrinkage_corrected and setting.alpha is None:
        # Shrinkage then does little harm, and noise on the minimiser does much.
        kappa = max(kappa, output_perturbation.calibrate(constants, epsilon, n, d).kappa)
    gaussian = isinstance(setting.price, Concentrated)
    distribution = vector_noise.SphericalGaussian if gaussian else setting.distribution
    calibration = output_perturbation.calibrate_at(
        constants, epsilon_or_mu(setting.price), n, d, setting.ridge(kappa), distribution
    )
    return setting.plan(cap, (group,), (calibration,))


def descent(setting: GroupSetting) -> GroupFit:
    r"""Plan noisy gradient descents, with noise of deviation :math:`h / (a_k \mu)` in group k.

    Here h bounds the weighted distance that one record can move all groups' gradients by
    (:func:`~skdpsurv.mechanisms.descent.joint_distance`), so that they cost
    :math:`\tfrac12\mu^2` together (docs/proofs/gaussian).
    """
    groups, cap = setting.unit_columns(), setting.capped()
    n, mu = setting.n_records, epsilon_or_mu(setting.price)
    parts = setting.parts(groups, [group.bound for group in groups], cap)
    whole = setting.whole(cap)
    each = [noisy_descent.apart(part.constants, n, part.center_norm) for part in parts]
    rounding = sum(d - p.constants.gradient_sensitivity for d, p in zip(each, parts, strict=True))
    distance = noisy_descent.joint_distance(
        each, setting.weights, vector_noise.MARGIN * whole.constants.gradient_sensitivity + rounding
    )

    def calibrated(part: joint.CalibratedPart, group: ColumnGroup, own: float) -> Calibrated:
        d, own_mu = part.n_params, own * part.weight * mu / distance
        epsilon = as_laplace(Concentrated(own_mu), d - 1)
        kappa = auto_ridge(n, d, epsilon, cap) * group.bound**2
        ridge = setting.ridge(kappa * setting.ridge_multiple)
        return noisy_descent.calibrate(
            part.constants, own_mu, n, d, ridge=ridge, center_norm=part.center_norm
        )

    return setting.plan(cap, groups, map(calibrated, parts, groups, each), whole)


def least_noise(setting: GroupSetting, pure: Price) -> GroupFit:
    """Plan objective perturbation for an epsilon or, if that is less noise, a Gaussian descent."""
    fit = tight(replace(setting, price=pure))
    if not isinstance(setting.price, Concentrated):
        return fit
    return min(fit, descent(setting), key=lambda fit: fit.noise(setting.weights))


def published(setting: GroupSetting) -> GroupFit:
    """Plan objective perturbation as Guo et al. published it."""
    n, weights, norms = setting.n_records, setting.weights, setting.group_norms
    alpha = PUBLISHED_ALPHA if setting.alpha is None else setting.alpha
    stretch = math.hypot(1.0, setting.constant)
    groups = tuple(
        ColumnGroup(group, norm, q / (norm * stretch), q * setting.constant / stretch)
        for group, norm, q in zip(setting.groups, norms, weights, strict=True)
    )
    epsilon = epsilon_or_mu(setting.price) / vector_noise.MARGIN
    available = (1.0 - SOLVER_SHARE) * epsilon
    ridges = [
        max(n * alpha / norm**2, LEAST_RIDGE * q**2 / 4.0)
        for q, norm in zip(weights, norms, strict=True)
    ]
    epsilon_noise = available - math.fsum(
        2.0 * math.log1p(q**2 / (4.0 * kappa)) for q, kappa in zip(weights, ridges, strict=True)
    )
    if epsilon_noise <= LEAST_NOISE_SHARE * available:
        epsilon_noise = available / 2.0
        raised = [q**2 / (4.0 * math.expm1(available * q / 4.0)) for q in weights]
        ridges = list(map(max, ridges, raised))
    ridges = list(map(max, ridges, [q * 2.0 / (epsilon_noise * LARGEST_REACH) for q in weights]))
    parts = setting.parts(groups, weights, 1.0, ridges)
    noises = [setting.distribution.calibrated_to(p.n_params, 2.0, epsilon_noise) for p in parts]
    return setting.plan(1.0, groups, joint.with_noise(parts, ridges, noises, epsilon, n))


def unperturbed(setting: GroupSetting) -> GroupFit:
    """Plan the fit without privacy: no clipping, no cap; by default, hardly any penalty."""
    n, alpha, norm = setting.n_records, setting.alpha, setting.data_norm
    if alpha is None:
        constant = FREE_CONSTANT * (setting.constant > 0.0)
        ridges = [REFERENCE_RIDGE * len(group) * norm**2 for group in setting.groups]
    else:
        constant = setting.constant
        ridges = [max(n * alpha, LEAST_PENALTY)] * len(setting.groups)
    groups = tuple(ColumnGroup(group, math.inf, 1.0, constant * norm) for group in setting.groups)
    fit = setting.plan(1.0, groups, map(Unperturbed, ridges))
    return replace(fit, data_norm=math.inf)


#: How a model of all columns may be fitted, by method.
PLANS: dict[str, Callable[..., GroupFit]] = {
    "obj_pert": tight,
    "out_pert": output,
    "noisy_gd": descent,
}
