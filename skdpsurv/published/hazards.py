"""PublishedDiscreteTimeSurvival: hazard models as Nguyen and Hui (2017) fit them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from skdpsurv.base import Weakness
from skdpsurv.checks import Check, word_or
from skdpsurv.mechanisms.methods import PURE
from skdpsurv.privacy import PrivacyAccountant
from skdpsurv.privacy.measurement import Measurement
from skdpsurv.privacy.plan import Plan
from skdpsurv.published.hazard_plans import PublishedDraw, PublishedPerturbation
from skdpsurv.references import DOUBLES, REAL_ARITHMETIC
from skdpsurv.shape import Shape
from skdpsurv.survival.discrete_time_model import DiscreteTimeModel
from skdpsurv.survival.hazard_constants import FIRST_LOOK_RECORDS
from skdpsurv.survival.hazard_plans import MaximumLikelihood, hazard_plan
from skdpsurv.survival.sampling_method import PosteriorSampling

__all__ = ["PublishedDiscreteTimeSurvival"]


#: Of the chain.
TWICE_ITS_EPSILON = (
    "method='psgld' as published spends twice its epsilon even in the limit: use "
    "DPDiscreteTimeSurvival."
)


class PublishedDiscreteTimeSurvival(DiscreteTimeModel):
    """Discrete-time survival regression by the algorithms of the paper, to the letter.

    Parameters
    ----------
    epsilon, columns, max_time, n_intervals, n_knots, data_norm, random_state, accountant
        As for :class:`~skdpsurv.DPDiscreteTimeSurvival`.
    method : {"obj_pert", "out_pert", "psgld"} or PosteriorSampling, default="obj_pert"
        Algorithm 1 (Ext-Obj-Pert), algorithm 2 (Ext-Out-Pert), or pSGLD, which is
        ``PosteriorSampling("psgld")``, with a first step of 1 unless it says another. **pSGLD is
        not private**: its limit spends twice its epsilon, status "none".
    link : {"logit", "cloglog", "probit"}, default="logit"
        The perturbations are for "logit" alone.
    alpha : float, default=0.0
        The paper's Lambda; 1e-4 for output perturbation at 0.

    Attributes
    ----------
    coef_, baseline_coef_, unique_times_, guarantee_, release_
        As for :class:`~skdpsurv.DPDiscreteTimeSurvival`.

    Notes
    -----
    Neighbours: replace-one; the number of records is public. The likelihood is uncapped, rows are
    clipped to ``data_norm``, and nothing is recalibrated. Where the paper's theorem does not hold a
    fit is refused (docs/errata). Records with events and times as for
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

    #: It has no standard errors.
    inference_share = 0.0
    _inference_needs = (", which DPDiscreteTimeSurvival has", FIRST_LOOK_RECORDS)

    _rules: ClassVar[dict[str, Check]] = {
        "method": word_or(PosteriorSampling, *PURE, "psgld"),
    }
    _methods: ClassVar[Mapping[str, Callable[..., Any]]] = {"psgld": PosteriorSampling}

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

    @property
    def _sampling(self) -> PosteriorSampling | None:
        """How a posterior is sampled, if it is."""
        method = self.method
        if isinstance(method, str):
            return PosteriorSampling("psgld") if method == "psgld" else None
        return method

    def _check_together(self) -> None:
        super()._check_together()
        if self._sampling is not None and self._sampling.sampler != "psgld":
            raise ValueError("sampler must be 'psgld': the paper has no other chain.")

    def _weaknesses(self, shape: Any) -> list[Weakness]:
        found = super()._weaknesses(shape)
        if self._sampling is not None:
            found.append(Weakness("none", TWICE_ITS_EPSILON))
        return found

    def _plan(self, shape: Shape) -> Plan:
        sampling, epsilon, alpha = self._sampling, float(self.epsilon), float(self.alpha)
        model = self._model(
            shape,
            exact_rows=sampling is not None,
            max_cumulative_hazard=None,
            prior_event_rate=0.5,
        )
        tree: Measurement
        numbers = DOUBLES
        if math.isinf(epsilon):
            tree = MaximumLikelihood(model)
        elif sampling is not None:
            tree = PublishedDraw(model, epsilon, alpha, sampling.schedule(), sampling.verbose)
            numbers = REAL_ARITHMETIC
        else:
            tree = PublishedPerturbation(model, epsilon, str(self.method), alpha)
        return hazard_plan(model, epsilon, alpha, tree, numbers=numbers)
