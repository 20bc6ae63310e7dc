"""density_ratio_audit: compare the laws of two releases point by point, where they are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from skdpsurv.audit.ladder_law import ladder_ratio, plan_and_tables
from skdpsurv.audit.perturbation_law import largest_ratio, laws_of
from skdpsurv.audit.result import at_most
from skdpsurv.audit.subject import Subject, check_neighbours
from skdpsurv.classification import DPLogisticRegression, PrivateStackingClassifier
from skdpsurv.privacy import silent_arithmetic
from skdpsurv.published import (
    PublishedDiscreteTimeSurvival,
    PublishedLogisticRegression,
    PublishedStackingClassifier,
)
from skdpsurv.regression import PrivateLinearModel
from skdpsurv.survival import DPDiscreteTimeSurvival
from skdpsurv.survival.weibull_curve import WeibullCurve

__all__ = ["DensityRatioResult", "density_ratio_audit"]


@dataclass(frozen=True, repr=False)
class DensityRatioResult:
    """The largest log ratio of two densities that was found.

    Parameters
    ----------
    largest : float
        Of log p(release | data) / p(release | neighbour), in either direction.
    claimed : float
        What the estimator claims: epsilon, or the ladder's part of it.
    where : tuple of float
        The released point, in the parameters of the fit, or the shape, at which it is attained;
        the models of several classes or groups one after the other.
    law : str
        What was compared there.
    audited, not_audited : tuple of str
        Which parts of what is released have been compared, and which have not.

    Notes
    -----
    No sampling and no chance: ``largest`` is the log ratio at ``where``, so that one above
    ``claimed`` refutes the claim. The largest of all may be larger still.
    """

    largest: float
    claimed: float
    where: tuple[float, ...]
    law: str
    audited: tuple[str, ...] = ()
    not_audited: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the claim was not refuted."""
        return at_most(self.largest, self.claimed)

    def __repr__(self) -> str:
        verdict = "not refuted" if self.passed else "REFUTED"
        return (
            f"DensityRatioResult(claim of {self.claimed:.4g} {verdict}: largest log ratio "
            f"{self.largest:.4g}; {self.law}; not audited: {', '.join(self.not_audited)})"
        )


def density_ratio_audit(
    estimator: Any,
    data: tuple[Any, ...],
    neighbour: tuple[Any, ...],
    *,
    n_cells: int = 512,
) -> DensityRatioResult:
    r"""Find the largest log density ratio of what two neighbours release, without sampling.

    Parameters
    ----------
    estimator : estimator
        Not fitted. DPDiscreteTimeSurvival with ``method="obj_pert"`` or ``"out_pert"`` and without
        first look, recalibration and standard errors (shares of 0, or n * epsilon below 200);
        DPLogisticRegression, a subclass of PrivateLinearModel;
        PrivateStackingClassifier on groups of columns that vote; DPWeibullFitter or
        :class:`~skdpsurv.published.PublishedWeibullFitter`.
    data, neighbour : tuple
        Arguments of ``fit``: the same but for one record.
    n_cells : int, default=512
        Of a ladder: about as many cells it draws from here, between nodes of the estimator's grid
        at equal distances.

    Returns
    -------
    DensityRatioResult

    Raises
    ------
    TypeError, ValueError
        If the law of what the estimator releases is not known in closed form, or the data sets do
        not differ in exactly one record.

    See Also
    --------
    measurement_audit : Measurement by measurement, for any estimator of this package.
    audit_epsilon : For any estimator, by experiment.

    Notes
    -----
    **Objective perturbation.** A minimiser f has its noise, :math:`b = -\nabla F(f)`, so that its
    density is

    .. math:: p(f) \propto e^{-\|b(f)\|/s}\,|\det\nabla^2 F(f)|,

    with s, the ridge and the centre of the estimator's own plan. The ratio is evaluated around the
    minima of both objectives, far and near, and climbed from the largest values found. Several
    models of one record have independent noise: their largest log ratios add up. What hides the
    solver, a thousandth of epsilon, is not in it.

    **Output perturbation.** :math:`\|f^* - f'^*\|/s`, attained on the line through both minima.

    **Ladder.** Levels of all cells give all probabilities. The rungs are the estimator's own, on
    every so many nodes of its grid: the theorem holds for any set of nodes. The tight ladder's
    rungs depend on a mean that was released before, and its part of epsilon on a number of events:
    several means are tried, at the number of events of ``data``. Of counts and sums
    :func:`measurement_audit` has more to say.

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
    subject = Subject.of(estimator)
    arguments = [subject.fit_arguments(data, "data"), subject.fit_arguments(neighbour, "neighbour")]
    check_neighbours(*arguments)
    with silent_arithmetic():
        return _comparer(subject.step)(subject, arguments, n_cells)


#: What these release are minimisers with noise: their plans have ``problems``.
MINIMISERS = (
    DPDiscreteTimeSurvival,
    PublishedDiscreteTimeSurvival,
    DPLogisticRegression,
    PublishedLogisticRegression,
    PrivateStackingClassifier,
    PublishedStackingClassifier,
    PrivateLinearModel,
)
Comparer = Callable[[Subject, list[Mapping[str, Any]], int], DensityRatioResult]

#: Of any release: audits ask for laws, and draw nothing.
SAMPLERS = "samplers, and that drawn noise follows its stated law"


def _comparer(model: Any) -> Comparer:
    if isinstance(model, WeibullCurve):
        return _compare_ladders
    if isinstance(model, MINIMISERS):
        return _compare_minimisers
    known = ", ".join(kind.__name__ for kind in MINIMISERS)
    raise TypeError(
        f"estimator must be a {known} or DPWeibullFitter, got {type(model).__name__}: the law of "
        "others is not known in closed form."
    )


def _compare_minimisers(
    subject: Subject, arguments: list[Mapping[str, Any]], n_cells: int
) -> DensityRatioResult:
    models = [subject.seeded(None) for _ in arguments]
    laws = [laws_of(model, each) for model, each in zip(models, arguments, strict=True)]
    ratios = [largest_ratio(one, other) for one, other in zip(*laws, strict=True)]
    # In either direction, the same for all models.
    directions = list(zip(*ratios, strict=True))
    sums = [sum(ratio.largest for ratio in direction) for direction in directions]
    best = directions[sums.index(max(sums))]
    where = tuple(value for ratio in best for value in ratio.where)
    name = "minimiser" if len(best) == 1 else f"{len(best)} minimisers together"
    return DensityRatioResult(
        max(sums),
        float(models[0].epsilon),
        where,
        f"law of the {name}",
        audited=(name,),
        not_audited=("noise that hides the solver", SAMPLERS),
    )


def _compare_ladders(
    subject: Subject, arguments: list[Mapping[str, Any]], n_cells: int
) -> DensityRatioResult:
    plan, tables = plan_and_tables(subject.seeded(None), arguments, n_cells)
    largest, shape, claimed = ladder_ratio(plan, tables, n_cells)
    return DensityRatioResult(
        largest,
        claimed,
        (shape,),
        "law of the shape",
        audited=("draw of the shape",),
        not_audited=("noisy counts and sums", SAMPLERS),
    )
