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
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from skdpsurv.classification.column_group import ColumnGroup
from skdpsurv.classification.group_fit import Coefficients, GroupFit
from skdpsurv.classification.ridge_and_cap import (
    CURVATURE_SHARE,
    auto_max_residual,
    auto_ridge,
    output_ridge,
)
from skdpsurv.likelihoods.base import PrivacyConstants
from skdpsurv.likelihoods.logistic import Logistic
from skdpsurv.mechanisms import noisy_descent, output_perturbation
from skdpsurv.mechanisms.joint_calibration import (
    Part,
    calibrate_jointly,
    joint_sensitivity,
    with_noise,
)
from skdpsurv.mechanisms.newton import LEAST_RIDGE
from skdpsurv.mechanisms.objective_perturbation import SOLVER_SHARE
from skdpsurv.mechanisms.perturbation import Calibrated, Unperturbed
from skdpsurv.mechanisms.vector_noise import MARGIN, NoiseLaw, SphericalGaussian, SphericalLaplace
from skdpsurv.privacy.concentrated import Concentrated, as_laplace
from skdpsurv.types import FloatArray

__all__ = ["CALIBRATIONS", "PLANS", "GroupSetting", "unperturbed"]

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


@dataclass(frozen=True)
class GroupSetting:
    """The public description of a fit: all of it comes from the caller.

    Parameters
    ----------
    n_records, n_outputs : int
    epsilon : float
        For all groups and all outputs together.
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
    law : type of NoiseLaw, default=SphericalLaplace
    undone : bool, default=False
        Whether what the ridge does to coefficients is undone after the release.
    price : Concentrated or None, default=None
        Of Gaussian noise for all groups and all outputs together, in place of epsilon.
    """

    n_records: int
    n_outputs: int
    epsilon: float
    groups: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...]
    data_norm: float
    group_norms: tuple[float, ...]
    constant: float
    alpha: float | None
    max_residual: float | None
    ridge_multiple: float = 1.0
    centers: tuple[Coefficients, ...] | None = None
    law: type[NoiseLaw] = SphericalLaplace
    undone: bool = False
    price: Concentrated | None = None

    @property
    def n_features(self) -> int:
        """Columns over all groups."""
        return sum(map(len, self.groups))

    @property
    def epsilon_output(self) -> float:
        """Share of one output; all together never more than epsilon.

        Of Gaussian noise, the epsilon at which Laplace noise would be as large.
        """
        if self.price is not None:
            return as_laplace(self.price_output, self.n_features)
        if self.n_outputs == 1:
            return self.epsilon
        return self.epsilon / self.n_outputs / MARGIN

    @property
    def price_output(self) -> Concentrated:
        """Share of one output in the price of Gaussian noise."""
        assert self.price is not None
        return Concentrated(self.price.mu / math.sqrt(self.n_outputs) / MARGIN)

    def constants(self, n_params: int, norm: float, max_residual: float) -> PrivacyConstants:
        """Return S, tau and r of a model of so many parameters, for rows within a norm."""
        return Logistic(n_params, norm, max_residual).constants

    def unit_columns(self) -> tuple[ColumnGroup, ...]:
        """Return the groups in units of ``data_norm``, constants beside them."""
        factor = 1.0 / self.data_norm
        return tuple(
            ColumnGroup(group, norm, factor, self.constant)
            for group, norm in zip(self.groups, self.group_norms, strict=True)
        )

    def capped(self) -> float:
        """Return c."""
        if self.max_residual is not None:
            return self.max_residual
        return auto_max_residual(self.n_records, self.n_features, self.epsilon_output)

    def model_centers(self, groups: Sequence[ColumnGroup]) -> tuple[FloatArray, ...]:
        """Return centres as parameters of the models, of shape (n_outputs, n_params) each.

        Raises
        ------
        ValueError
            If one is longer than a fit can start from.
        """
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

    def plan(
        self,
        max_residual: float,
        groups: tuple[ColumnGroup, ...],
        calibrations: Sequence[Calibrated],
        data_norm: float | None = None,
    ) -> GroupFit:
        """Return the plan."""
        return GroupFit(
            self.n_records,
            self.n_outputs,
            self.data_norm if data_norm is None else data_norm,
            max_residual,
            groups,
            tuple(calibrations),
            self.model_centers(groups),
            epsilon_output=self.epsilon_output,
        )

    def concentrated(
        self,
        max_residual: float,
        groups: tuple[ColumnGroup, ...],
        calibrations: Sequence[Calibrated],
    ) -> GroupFit:
        """Return the plan of models with Gaussian noise."""
        plan = self.plan(max_residual, groups, calibrations)
        return replace(plan, prices=(self.price_output,) * self.n_outputs)


def longest(rows: FloatArray) -> float:
    """Return the largest norm of a row."""
    return float(np.linalg.norm(rows, axis=1).max())


def tight(setting: GroupSetting) -> GroupFit:
    """Plan objective perturbation with the package's own calibration."""
    groups, cap, epsilon = setting.unit_columns(), setting.capped(), setting.epsilon_output
    constants = [setting.constants(g.n_params, g.bound, cap) for g in groups]
    # One row of norm 1 is shared by the groups; each has a constant column of its own.
    norm = math.sqrt(1.0 + len(groups) * setting.constant**2)
    whole = setting.constants(setting.n_features, norm, cap)
    parts = [
        Part(c, g.n_params, weight, 0.0, longest(center))
        for c, g, weight, center in zip(
            constants, groups, setting.weights, setting.model_centers(groups), strict=True
        )
    ]
    sensitivity = joint_sensitivity(parts, whole.gradient_sensitivity)

    def ridge(part: Part, group: ColumnGroup) -> float:
        if setting.alpha is not None:
            return setting.n_records * setting.alpha / setting.data_norm**2
        # The model of rows of norm R with epsilon_k that has the same noise.
        share = part.weight * part.constants.gradient_sensitivity / sensitivity
        wanted = auto_ridge(setting.n_records, part.n_params, share * epsilon, cap)
        return setting.ridge_multiple * wanted * group.bound**2

    parts = [
        replace(part, ridge=ridge(part, group)) for part, group in zip(parts, groups, strict=True)
    ]
    calibrations = calibrate_jointly(
        parts,
        whole,
        epsilon,
        setting.n_records,
        curvature_share=CURVATURE_SHARE,
        law=setting.law,
    )
    return setting.plan(cap, groups, calibrations)


def output(setting: GroupSetting) -> GroupFit:
    """Plan output perturbation, of one group."""
    (group,), cap = setting.unit_columns(), setting.capped()
    constants = setting.constants(group.n_params, group.bound, cap)
    n, epsilon = setting.n_records, setting.epsilon_output
    if setting.alpha is None:
        kappa = output_ridge(n, group.n_params, epsilon, cap) * group.bound**2
        if setting.undone:  # shrinkage does little harm, and noise on the minimiser much
            usual = output_perturbation.calibrate(constants, epsilon, n, group.n_params)
            kappa = max(kappa, usual.kappa)
    else:
        kappa = n * setting.alpha / setting.data_norm**2
    if setting.price is None:
        calibration = output_perturbation.calibrate_at(
            constants, epsilon, n, group.n_params, kappa, setting.law
        )
        return setting.plan(cap, (group,), (calibration,))
    calibration = output_perturbation.calibrate_at(
        constants, setting.price_output.mu, n, group.n_params, kappa, SphericalGaussian
    )
    return setting.concentrated(cap, (group,), (calibration,))


def descent(setting: GroupSetting) -> GroupFit:
    r"""Plan noisy gradient descents, with noise of deviation :math:`h / (a_k \mu)` in group k.

    Here h bounds the weighted distance that one record can move all groups' gradients by
    (:func:`~skdpsurv.mechanisms.noisy_descent.joint_distance`), so that they cost
    :math:`\tfrac12\mu^2` together (docs/proofs/gaussian).
    """
    groups, cap = setting.unit_columns(), setting.capped()
    n, mu = setting.n_records, setting.price_output.mu
    constants = [setting.constants(g.n_params, g.bound, cap) for g in groups]
    # One row of norm 1 is shared by the groups; each has a constant column of its own.
    norm = math.sqrt(1.0 + len(groups) * setting.constant**2)
    whole = setting.constants(setting.n_features, norm, cap).gradient_sensitivity
    centers = [longest(center) for center in setting.model_centers(groups)]
    each = [noisy_descent.apart(c, n, center) for c, center in zip(constants, centers, strict=True)]
    rounding = sum(d - c.gradient_sensitivity for d, c in zip(each, constants, strict=True))
    hidden = noisy_descent.joint_distance(each, setting.weights, MARGIN * whole + rounding)

    def calibrated(k: int) -> noisy_descent.DescentCalibration:
        group, own = groups[k], each[k] * setting.weights[k] * mu / hidden
        if setting.alpha is None:
            size = as_laplace(Concentrated(own), group.n_params - 1)
            kappa = auto_ridge(n, group.n_params, size, cap) * group.bound**2
            kappa *= setting.ridge_multiple
        else:
            kappa = n * setting.alpha / setting.data_norm**2
        return noisy_descent.calibrate(
            constants[k], own, n, group.n_params, ridge=kappa, center_norm=centers[k]
        )

    calibrations = [calibrated(k) for k in range(len(groups))]
    return setting.concentrated(cap, groups, calibrations)


def least_noise(setting: GroupSetting) -> GroupFit:
    """Plan objective perturbation or, if there is a price for it, descent: what has less noise."""
    pure = tight(replace(setting, price=None))
    if setting.price is None:
        return pure
    return min(pure, descent(setting), key=lambda fit: fit.noise(setting.weights))


def published(setting: GroupSetting) -> GroupFit:
    """Plan objective perturbation as Guo et al. published it."""
    n, weights = setting.n_records, setting.weights
    alpha = PUBLISHED_ALPHA if setting.alpha is None else setting.alpha
    stretch = math.hypot(1.0, setting.constant)
    groups = tuple(
        ColumnGroup(group, norm, q / (norm * stretch), q * setting.constant / stretch)
        for group, norm, q in zip(setting.groups, setting.group_norms, weights, strict=True)
    )
    epsilon = setting.epsilon_output / MARGIN
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
        Part(setting.constants(g.n_params, q, 1.0), g.n_params, q, kappa, longest(center))
        for g, q, kappa, center in zip(
            groups, weights, ridges, setting.model_centers(groups), strict=True
        )
    ]
    noises = [setting.law.hiding(part.n_params, 2.0, epsilon_noise) for part in parts]
    return setting.plan(1.0, groups, with_noise(parts, ridges, noises, epsilon, n))


def unperturbed(setting: GroupSetting) -> GroupFit:
    """Plan the fit without privacy: no clipping, no cap; by default, hardly any penalty."""
    n, alpha = setting.n_records, setting.alpha
    constant = setting.constant if alpha is not None else FREE_CONSTANT * (setting.constant > 0.0)
    groups = tuple(
        ColumnGroup(group, math.inf, 1.0, constant * setting.data_norm) for group in setting.groups
    )
    calibrations = [
        Unperturbed(
            max(n * alpha, LEAST_PENALTY)
            if alpha is not None
            else REFERENCE_RIDGE * len(group) * setting.data_norm**2
        )
        for group in setting.groups
    ]
    return setting.plan(1.0, groups, calibrations, data_norm=math.inf)


#: Of objective perturbation, by the name that an estimator gives them.
CALIBRATIONS: dict[str, Callable[[GroupSetting], GroupFit]] = {
    "tight": least_noise,
    "published": published,
}
#: How a model of all columns may be fitted, by method.
PLANS: dict[str, Callable[[GroupSetting], GroupFit]] = {
    "obj_pert": tight,
    "out_pert": output,
    "noisy_gd": descent,
}
