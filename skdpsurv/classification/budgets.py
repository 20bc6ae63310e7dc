r"""How groups of columns share epsilon: plans for logistic models, from public numbers alone.

``tight``: objective perturbation with noise proportional to :math:`1/a_k` in group k, calibrated to
what a whole row can do (:mod:`skdpsurv.mechanisms.joint_calibration`). ``published``: Algorithms 1
and 3 of Guo et al. (arXiv 1811.09491), whose groups are scaled to :math:`\|x_k\| \le q_k`, with

.. math::
    \epsilon' = \epsilon - \sum_k 2\log\Big(1 + \frac{q_k^2}{4n\Lambda}\Big), \qquad
    p(b_k) \propto e^{-\epsilon'\|b_k\|/2},

or, should :math:`\epsilon'` not be positive (here, at least 5 % of epsilon), :math:`\epsilon' =
\epsilon/2` and :math:`\Lambda` raised to :math:`q_k^2 / (4n(e^{\epsilon q_k/4} - 1))`. With one
group, q = 1, this is Chaudhuri, Monteleoni and Sarwate (2011). Both pay for inexact minima out of
epsilon. The outputs of a model of more than two classes have equal shares of epsilon.

Ridge and cap follow from n, the number of columns and epsilon where nobody states them. Their
constants were found on simulated and real data sets by accuracy on rows that were held out
(docs/benchmarks/classification). Noise moves a coefficient by about its size over the curvature, so
the ridge that balances noise against shrinkage grows with the number of columns over epsilon and
falls with n. Powers below those that theory gives for isotropic rows, :math:`(2cd/(\epsilon\sqrt
n))^2`, did better on real ones, whose columns are related.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from skdpsurv.classification.group_fit import Coefficients, ColumnGroup, GroupFit
from skdpsurv.dp.privacy_cost import Concentrated, Price, as_laplace, epsilon_or_mu
from skdpsurv.dp.types import FloatArray
from skdpsurv.likelihoods.base import PrivacyConstants
from skdpsurv.likelihoods.linear import Logistic
from skdpsurv.mechanisms import descent as noisy_descent
from skdpsurv.mechanisms import output as output_perturbation
from skdpsurv.mechanisms.joint_calibration import (
    Part,
    calibrate_jointly,
    joint_sensitivity,
    with_noise,
)
from skdpsurv.mechanisms.newton import LEAST_RIDGE
from skdpsurv.mechanisms.objective import SOLVER_SHARE
from skdpsurv.mechanisms.perturbation import Calibrated, Unperturbed
from skdpsurv.mechanisms.vector_noise import (
    MARGIN,
    NoiseDistribution,
    SphericalGaussian,
    SphericalLaplace,
)

#: Share of epsilon that the curvature term of objective perturbation may use.
CURVATURE_SHARE = 0.2
#: Objective perturbation: kappa = RIDGE 2c d^1.25 / (n^0.5 epsilon^1.5).
RIDGE = 1.25
#: Output perturbation with many records: kappa over the root of n times the noise.
OUTPUT_SHARE = 0.04
#: Groups of columns whose models vote want so many times the ridge: their errors add up, and a
#: model that knows little should vote little.
VOTE_RIDGE = 2.0
#: A centre that others have released is worth shrinking to.
TRANSFER_RIDGE = 5.0
#: max_residual="auto" is 0.5 up to n epsilon / d = 256, and 1 from 1024.
RESIDUAL_SCALE = 1.0 / 32.0
#: Lambda of the published algorithms where ``alpha`` is "auto"; the papers tuned it.
PUBLISHED_ALPHA = 1e-2
#: The published algorithms go on with whatever epsilon' is positive. With less than this share of
#: epsilon, or with coefficients further out than this, per column, no solver could be certified.
LEAST_NOISE_SHARE, LARGEST_REACH = 0.05, 25.0
#: Ridge of the fit without privacy where ``alpha`` is 0: separated classes have no finite optimum.
LEAST_PENALTY = 1e-6
#: The same where it is "auto", for each column and rows of norm 1: nearly as good as a ridge that
#: cross-validation chooses. The constant column is then so large that the intercept is free.
REFERENCE_RIDGE, FREE_CONSTANT = 1e-3, 10.0
#: Parameters of a model that a fit can start from. Those of useful models are below 100.
LARGEST_CENTER = 1e4


def of_each(price: Price, n_outputs: int) -> Price:
    """Return what the models of one output may cost; all together never more than the price."""
    if isinstance(price, Concentrated):
        return Concentrated(price.mu / math.sqrt(n_outputs) / MARGIN)
    return price if n_outputs == 1 else price / n_outputs / MARGIN


@dataclass(frozen=True)
class GroupSetting:
    """The public description of a fit: all of it comes from the caller.

    Parameters
    ----------
    n_records, n_outputs : int
    price : float or Concentrated
        An epsilon, or what Gaussian noise costs: of the models of all groups for one output.
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
        Of the public rule's ridge.
    centers : tuple of Coefficients or None, default=None
        For each group, what its models are shrunk towards, on the scale of X; None for 0.
    law : type of NoiseDistribution, default=SphericalLaplace
        Of what epsilon pays for.
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
    law: type[NoiseDistribution] = SphericalLaplace

    @property
    def n_features(self) -> int:
        """Columns over all groups."""
        return sum(map(len, self.groups))

    def capped(self) -> float:
        """Return c: as stated, or 1/2, or more where there is little noise to halve."""
        if self.max_residual is not None:
            return self.max_residual
        signal = self.n_records * as_laplace(self.price, self.n_features) / self.n_features
        return min(max(RESIDUAL_SCALE * math.sqrt(signal), 0.5), 1.0)

    def ridge(self, by_rule: float) -> float:
        """Return kappa of rows in units of ``data_norm``: that of alpha, or of the public rule."""
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
            raise ValueError(
                "prior must have coefficients, times data_norm, and intercepts, over "
                f"intercept_scaling, of at most {LARGEST_CENTER:g}."
            )
        return centers

    def center_norms(self, groups: Sequence[ColumnGroup]) -> list[float]:
        """Return the norm of each group's longest centre."""
        centers = self.model_centers(groups)
        return [float(np.linalg.norm(rows, axis=1).max()) for rows in centers]

    def plan(
        self,
        max_residual: float,
        groups: tuple[ColumnGroup, ...],
        calibrations: Sequence[Calibrated],
    ) -> GroupFit:
        """Return the plan."""
        return GroupFit(
            self.n_records,
            self.n_outputs,
            self.data_norm,
            max_residual,
            groups,
            tuple(calibrations),
            self.model_centers(groups),
            price=self.price,
        )


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


def bounds(
    setting: GroupSetting, groups: Sequence[ColumnGroup], cap: float
) -> tuple[list[PrivacyConstants], PrivacyConstants]:
    """Return S, tau and r of each group's models, and of all groups of one row together."""
    # One row of norm 1 is shared by the groups; each has a constant column of its own.
    norm = math.sqrt(1.0 + len(groups) * setting.constant**2)
    each = [Logistic(group.n_params, group.bound, cap).constants for group in groups]
    return each, Logistic(setting.n_features, norm, cap).constants


def tight(setting: GroupSetting) -> GroupFit:
    """Plan objective perturbation with the package's own calibration."""
    groups, cap, epsilon = setting.unit_columns(), setting.capped(), epsilon_or_mu(setting.price)
    constants, whole = bounds(setting, groups, cap)
    parts = [
        Part(c, group.n_params, weight, 0.0, center)
        for c, group, weight, center in zip(
            constants, groups, setting.weights, setting.center_norms(groups), strict=True
        )
    ]
    sensitivity = joint_sensitivity(parts, whole.gradient_sensitivity)

    def ridge(part: Part, group: ColumnGroup) -> float:
        # That of the model of rows of norm R with epsilon_k that has the same noise.
        share = part.weight * part.constants.gradient_sensitivity / sensitivity
        wanted = auto_ridge(setting.n_records, part.n_params, share * epsilon, cap)
        return setting.ridge(setting.ridge_multiple * wanted * group.bound**2)

    calibrations = calibrate_jointly(
        [replace(part, ridge=ridge(part, g)) for part, g in zip(parts, groups, strict=True)],
        whole,
        epsilon,
        setting.n_records,
        curvature_share=CURVATURE_SHARE,
        law=setting.law,
    )
    return setting.plan(cap, groups, calibrations)


def output(setting: GroupSetting, *, shrinkage_corrected: bool = False) -> GroupFit:
    """Plan output perturbation, of one group; ``undone`` says whether shrinkage will be."""
    (group,), cap = setting.unit_columns(), setting.capped()
    (constants,), _ = bounds(setting, [group], cap)
    n, d, epsilon = setting.n_records, group.n_params, as_laplace(setting.price, setting.n_features)
    kappa = output_ridge(n, d, epsilon, cap) * group.bound**2
    if (
        shrinkage_corrected and setting.alpha is None
    ):  # shrinkage does little harm, and noise on the minimiser much
        kappa = max(kappa, output_perturbation.calibrate(constants, epsilon, n, d).kappa)
    law = SphericalGaussian if isinstance(setting.price, Concentrated) else setting.law
    calibration = output_perturbation.calibrate_at(
        constants, epsilon_or_mu(setting.price), n, d, setting.ridge(kappa), law
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
    constants, whole = bounds(setting, groups, cap)
    centers = setting.center_norms(groups)
    each = [noisy_descent.apart(c, n, center) for c, center in zip(constants, centers, strict=True)]
    rounding = sum(d - c.gradient_sensitivity for d, c in zip(each, constants, strict=True))
    hidden = noisy_descent.joint_distance(
        each, setting.weights, MARGIN * whole.gradient_sensitivity + rounding
    )

    def calibrated(k: int) -> noisy_descent.DescentCalibration:
        group, own = groups[k], each[k] * setting.weights[k] * mu / hidden
        size = as_laplace(Concentrated(own), group.n_params - 1)
        kappa = auto_ridge(n, group.n_params, size, cap) * group.bound**2
        ridge = setting.ridge(kappa * setting.ridge_multiple)
        return noisy_descent.calibrate(
            constants[k], own, n, group.n_params, ridge=ridge, center_norm=centers[k]
        )

    return setting.plan(cap, groups, [calibrated(k) for k in range(len(groups))])


def least_noise(setting: GroupSetting, pure: Price) -> GroupFit:
    """Plan objective perturbation for an epsilon or, if that is less noise, a Gaussian descent."""
    fit = tight(replace(setting, price=pure))
    if not isinstance(setting.price, Concentrated):
        return fit
    return min(fit, descent(setting), key=lambda fit: fit.noise(setting.weights))


def published(setting: GroupSetting) -> GroupFit:
    """Plan objective perturbation as Guo et al. published it."""
    n, weights = setting.n_records, setting.weights
    alpha = PUBLISHED_ALPHA if setting.alpha is None else setting.alpha
    stretch = math.hypot(1.0, setting.constant)
    groups = tuple(
        ColumnGroup(group, norm, q / (norm * stretch), q * setting.constant / stretch)
        for group, norm, q in zip(setting.groups, setting.group_norms, weights, strict=True)
    )
    epsilon = epsilon_or_mu(setting.price) / MARGIN
    available = (1.0 - SOLVER_SHARE) * epsilon
    ridges = [
        max(n * alpha / norm**2, LEAST_RIDGE * q**2 / 4.0)
        for q, norm in zip(weights, setting.group_norms, strict=True)
    ]
    epsilon_noise = available - math.fsum(
        2.0 * math.log1p(q**2 / (4.0 * kappa)) for q, kappa in zip(weights, ridges, strict=True)
    )
    if epsilon_noise <= LEAST_NOISE_SHARE * available:
        epsilon_noise = available / 2.0
        ridges = [
            max(kappa, q**2 / (4.0 * math.expm1(available * q / 4.0)))
            for q, kappa in zip(weights, ridges, strict=True)
        ]
    ridges = [
        max(kappa, q * 2.0 / (epsilon_noise * LARGEST_REACH))
        for q, kappa in zip(weights, ridges, strict=True)
    ]
    parts = [
        Part(Logistic(g.n_params, q, 1.0).constants, g.n_params, q, kappa, center)
        for g, q, kappa, center in zip(
            groups, weights, ridges, setting.center_norms(groups), strict=True
        )
    ]
    noises = [setting.law.calibrated_to(part.n_params, 2.0, epsilon_noise) for part in parts]
    return setting.plan(1.0, groups, with_noise(parts, ridges, noises, epsilon, n))


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
    fit = setting.plan(1.0, groups, list(map(Unperturbed, ridges)))
    return replace(fit, data_norm=math.inf)


#: How a model of all columns may be fitted, by method.
PLANS: dict[str, Callable[..., GroupFit]] = {
    "obj_pert": tight,
    "out_pert": output,
    "noisy_gd": descent,
}
