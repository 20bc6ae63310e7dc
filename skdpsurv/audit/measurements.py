"""measurement_audit: walk over the plan of a fit, and compare its queries of two neighbours."""

from __future__ import annotations

import functools
import inspect
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

from skdpsurv.audit.subject import at_most, audited, check_neighbours, verdict
from skdpsurv.audit.walk import Visit, prepared, visits
from skdpsurv.base.prepared import PreparedFit
from skdpsurv.data.blocks import same_records
from skdpsurv.dp.input_errors import suppressed_float_errors
from skdpsurv.dp.noise import random_source, restored_streams
from skdpsurv.dp.plan import Disjoint, Measurement, leaves
from skdpsurv.dp.privacy_cost import Cost, epsilon_or_mu
from skdpsurv.dp.thread_warnings import suppressed_warnings
from skdpsurv.evaluation.evaluation import Evaluation, private_survival_metrics

#: A call that prepares a fit.
Ready = functools.partial[PreparedFit]
#: What no walk over measurements can test.
NOT_AUDITED = ("samplers, and that noise is drawn as the plan says", "whether a theorem is true")
#: Remark on a fit whose status is "none".
PROMISES_NOTHING = "the claim: this fit has the status 'none', and promises nothing"
#: Seed of public fits within a private one, such as trees: the same for both data sets.
PUBLIC_SEED = 0


class MeasuredDistance(NamedTuple):
    """Distance of neighbours in one quantity that a theorem bounds.

    Parameters
    ----------
    measurement : str
        Name of the measurement.
    price : float
        Its privacy cost: an epsilon, or a mu of Gaussian noise.
    what : str
        Quantity that was compared.
    found, allowed : float
        Distance, and its bound.
    """

    measurement: str
    price: float
    what: str
    found: float
    allowed: float

    @property
    def share(self) -> float:
        """Distance that was found, as a share of the largest distance allowed."""
        if not self.found:
            return 0.0
        return self.found / self.allowed if self.allowed else math.inf

    @property
    def passed(self) -> bool:
        """Whether the distance is within its bound."""
        return at_most(self.found, self.allowed)


@dataclass(frozen=True, repr=False)
class MeasurementResult:
    """Distances of two data sets, measurement by measurement; not private.

    Parameters
    ----------
    distances : tuple of MeasuredDistance
        In the order of the measurements.
    epsilon, delta : float
        Claim of the fit: its plan has made sure that the prices come to no more.
    not_audited : tuple of str
        Parts of the claim that were not looked at.
    """

    distances: tuple[MeasuredDistance, ...]
    epsilon: float
    delta: float
    not_audited: tuple[str, ...] = NOT_AUDITED

    @property
    def table(self) -> pd.DataFrame:
        """Distances as a data frame: measurement, price, what, found, allowed."""
        return pd.DataFrame(list(self.distances), columns=list(MeasuredDistance._fields))

    @property
    def refuted(self) -> tuple[str, ...]:
        """Distances beyond their bounds, in words."""
        return tuple(
            f"{each.measurement}, {each.what}: {each.found:.4g} of {each.allowed:.4g}"
            for each in self.distances
            if not each.passed
        )

    @property
    def passed(self) -> bool:
        """Whether all distances are within their bounds."""
        return not self.refuted

    @property
    def unmoved(self) -> tuple[str, ...]:
        """Measurements with equal answers for both neighbours, so that nothing is tested."""
        moved = {each.measurement for each in self.distances if each.found}
        names = dict.fromkeys(each.measurement for each in self.distances)
        return tuple(name for name in names if name not in moved)

    def __repr__(self) -> str:
        found = list(self.refuted) or [f"{len(self.distances)} distances"]
        if self.passed and self.unmoved:
            found.append(f"nothing found out of {', '.join(self.unmoved)}")
        if PROMISES_NOTHING in self.not_audited:
            found.append("its status is 'none'")
        return verdict(self, f"epsilon={self.epsilon:.4g}", "; ".join(found))


def measurement_audit(
    estimator: Any, data: tuple[Any, ...], neighbour: tuple[Any, ...], *, random_state: int = 0
) -> MeasurementResult:
    r"""Compare the exact answers of two neighbours, measurement by measurement, with their bounds.

    Parameters
    ----------
    estimator : estimator or functools.partial
        Not fitted; of this package or derived from its bases, also a Pipeline or a search. Or
        ``partial(private_survival_metrics, model, max_time=10.0, epsilon=1.0)``.
    data, neighbour : tuple
        Arguments of ``fit``: the same but for one record. As for :func:`audit_epsilon`.
    random_state : int, default=0
        Seed of the released values that later measurements depend on.

    Returns
    -------
    MeasurementResult

    Raises
    ------
    TypeError
        If the estimator has no plan.
    ValueError
        If the data sets do not differ in exactly one record.

    See Also
    --------
    worst_neighbours : Pairs of data sets that move measurements as far as they may.
    density_ratio_audit : The minimiser alone, searched harder.
    audit_epsilon : For any estimator, by experiment.

    Notes
    -----
    A fit is a tree of measurements. The walk follows it as a fit to ``data`` with a seed does, and
    asks each of both data sets after the *same* earlier releases, as composition demands.

    * Counts, sums and moments: exact answers may differ by the sensitivity that the plan calibrates
      noise to.
    * Perturbed minimisers, descents and chains: gradients and Hessians, at a few points, are
      compared with the likelihood's constants S, :math:`\tau` and r. The epsilon (for Gaussian
      noise, the :math:`\mu`) at which noise hides the difference is compared with the price.
    * Choices: losses. Ladders: levels. Posterior draws: energies.
    * Measurements on disjoint records: at most one may see another record.
    * A search: every candidate is walked over, and must promise no more than its price.

    A pair that moves a measurement by more than half of its bound refutes half of a sensitivity, or
    half of the noise. A pair that does not move a measurement says nothing about it: use several.
    The drawing of noise is not audited here; see :func:`audit_epsilon`.

    Examples
    --------
    >>> from skdpsurv import DPKaplanMeierFitter
    >>> from skdpsurv.audit import measurement_audit
    >>> model = DPKaplanMeierFitter(max_time=10.0)
    >>> result = measurement_audit(model, ([1.0, 4.0], [1, 1]), ([9.0, 4.0], [1, 1]))
    >>> result.passed
    True
    >>> result.table[["price", "what", "found", "allowed"]]
       price           what  found  allowed
    0    1.0          in L1    2.0      2.0
    1    1.0  in squared L2    2.0      2.0
    """
    both = both_fits(estimator, data, neighbour)
    silent: list[str] = []
    with suppressed_warnings(), suppressed_float_errors(), restored_streams():
        fit, found = _compared(both, random_state, silent)
    plan, unseen = fit.plan, (*NOT_AUDITED, *dict.fromkeys((*silent, *unpromised(fit))))
    return MeasurementResult(tuple(found), plan.epsilon, plan.delta, unseen)


def seed_streams() -> None:
    """Let what draws from global streams draw the same for both neighbours."""
    np.random.seed(PUBLIC_SEED)  # noqa: NPY002
    random.seed(PUBLIC_SEED)


def unpromised(fit: PreparedFit) -> list[str]:
    """Say if a fit promises nothing; refuse one that claims nothing."""
    if math.isinf(fit.plan.epsilon):
        raise ValueError("epsilon of the estimator must be finite: there is no claim to audit.")
    return [PROMISES_NOTHING] if fit.guarantee.status == "none" else []


def both_fits(
    estimator: Any, data: Any, neighbour: Any, seed: int = 0, **parameters: Any
) -> list[Ready]:
    """Return calls that prepare the fits of an audit, perhaps with other parameters."""
    if isinstance(estimator, functools.partial):
        return _evaluations(estimator, data, neighbour, seed)
    subject, arguments = audited(estimator, data, neighbour)
    model = subject.seeded(seed)
    own = {name: name.split("__")[-1] for name in model.get_params()}
    model.set_params(**{name: parameters[word] for name, word in own.items() if word in parameters})
    return [functools.partial(prepared, clone(model), **each) for each in arguments]


def _evaluations(
    function: functools.partial[Any], data: Any, neighbour: Any, seed: int
) -> list[Ready]:
    if function.func is not private_survival_metrics:
        raise TypeError("estimator must be an estimator, or a partial of private_survival_metrics.")
    signature = inspect.signature(private_survival_metrics)
    stated = signature.bind_partial(*function.args, **function.keywords).arguments
    stated = {"epsilon": 1.0, **stated, "random_state": seed, "accountant": None}
    both = [(X, y, *more) for X, y, *more in (data, neighbour)]
    arguments = [{"X": X, "y": y} | dict(*more) for X, y, *more in both]
    check_neighbours(*arguments)
    model = stated.pop("model")
    return [functools.partial(prepared, Evaluation(model, **stated), **each) for each in arguments]


def _compared(
    both: Sequence[Ready], seed: int, silent: list[str]
) -> tuple[PreparedFit, list[MeasuredDistance]]:
    """Return the first fit and all distances; note measurements without any."""
    fits = []
    for each in both:
        seed_streams()
        fits.append(each())
        fits[-1].read()
    fit, another = fits
    plan, found = fit.plan, list[MeasuredDistance]()
    if plan.guarantee("seeded") != another.plan.guarantee("seeded"):
        found.append(MeasuredDistance("the plan", plan.epsilon, "other promises", 1.0, 0.0))
    for visit in visits(plan.tree, plan.context, fit.records, another.records, random_source(seed)):
        if isinstance(visit.node, Disjoint):
            found.append(_of_sets(visit, visit.node))
        else:
            found += _of_measurement(visit, visit.node, seed, silent)
    return fit, found


def _of_sets(visit: Visit, node: Disjoint) -> MeasuredDistance:
    """Return the number of disjoint sets that differ: at most one may."""
    moved = sum(not same_records(a, b) for a, b in zip(visit.one, visit.other, strict=True))
    names = " | ".join(dict.fromkeys(leaf.name for leaf in leaves(node)))
    return MeasuredDistance(names, price_of(node), "sets that share a record", float(moved), 1.0)


def _of_measurement(
    visit: Visit, leaf: Measurement, seed: int, silent: list[str]
) -> list[MeasuredDistance]:
    price = price_of(leaf)
    far = leaf.distances(visit.context, visit.one, visit.other)
    found = [MeasuredDistance(leaf.name, price, *each) for each in far]
    fits = [leaf.nested(visit.context, records) for records in (visit.one, visit.other)]
    if not found and not fits[0]:
        silent.append(leaf.name)
    for number, ((model, mine), (again, theirs)) in enumerate(zip(*fits, strict=True)):
        if same_records(mine, theirs):
            continue
        pair = (model, mine), (again, theirs)
        both = [functools.partial(prepared, one, *data[:2], **data[2]) for one, data in pair]
        fit, own = _compared(both, seed, silent)
        name = f"{leaf.name}, number {number}"
        found.append(
            MeasuredDistance(name, price, "what is promised", _number(fit.plan.cost), price)
        )
        found += [each._replace(measurement=f"{name}: {each.measurement}") for each in own]
    return found


def price_of(node: Measurement | Disjoint) -> float:
    """Return the epsilon of a node, or the mu of Gaussian noise."""
    return epsilon_or_mu(node.price) if hasattr(node, "price") else _number(node.cost)


def _number(cost: Cost) -> float:
    """Return the epsilon of a cost, or the mu of Gaussian noise."""
    return float(cost.epsilon) if cost.rho is None else math.sqrt(2.0 * cost.rho)
