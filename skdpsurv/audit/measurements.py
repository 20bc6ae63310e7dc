"""measurement_audit: walk over the plan of a fit, and compare what is asked of two neighbours."""

from __future__ import annotations

import functools
import inspect
import math
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skdpsurv.audit.subject import at_most, audited, check_neighbours, told
from skdpsurv.audit.walk import Ready, Visit, plan_and_records, ready, visits
from skdpsurv.data.blocks import same_records
from skdpsurv.dp import random_source, suppressed_float_errors, suppressed_warnings
from skdpsurv.dp.plan import Disjoint, Measurement, Plan
from skdpsurv.dp.privacy_cost import Cost, epsilon_or_mu
from skdpsurv.evaluation.evaluation import Evaluation, private_survival_metrics

#: What no walk shows.
NOT_AUDITED = ("samplers, and that noise is drawn as the plan says", "whether a theorem is true")
#: Of a fit whose status is "none".
PROMISES_NOTHING = "the claim: this fit has the status 'none', and promises nothing"
#: Public fits within a private one may draw, as of a tree: for both data sets the same.
PUBLIC_SEED = 0


class MeasuredDistance(NamedTuple):
    """How far neighbours are apart in one thing that a theorem speaks of.

    Parameters
    ----------
    measurement : str
        Of which it is a part.
    price : float
        What that may cost: an epsilon, or a mu of Gaussian noise.
    what : str
        What was compared.
    found, allowed : float
        How far it is apart, and how far it may be.
    """

    measurement: str
    price: float
    what: str
    found: float
    allowed: float

    @property
    def share(self) -> float:
        """How much of what is allowed was found."""
        if not self.found:
            return 0.0
        return self.found / self.allowed if self.allowed else math.inf

    @property
    def passed(self) -> bool:
        """Whether it is no farther apart than it may be."""
        return at_most(self.found, self.allowed)


@dataclass(frozen=True, repr=False)
class MeasurementResult:
    """How far two data sets are apart, measurement by measurement.

    Parameters
    ----------
    distances : tuple of MeasuredDistance
        In the order in which things are asked.
    epsilon, delta : float
        What the fit claims: its plan has made sure that the prices come to no more.
    not_audited : tuple of str
        What was not looked at.

    Notes
    -----
    Nothing here is private.
    """

    distances: tuple[MeasuredDistance, ...]
    epsilon: float
    delta: float
    not_audited: tuple[str, ...] = NOT_AUDITED

    @property
    def table(self) -> pd.DataFrame:
        """The distances: measurement, price, what, found, allowed."""
        return pd.DataFrame(list(self.distances), columns=list(MeasuredDistance._fields))

    @property
    def refuted(self) -> tuple[str, ...]:
        """What does not hold, in words; nothing if the claim was not refuted."""
        return tuple(
            f"{each.measurement}, {each.what}: {each.found:.4g} of {each.allowed:.4g}"
            for each in self.distances
            if not each.passed
        )

    @property
    def passed(self) -> bool:
        """Whether nothing is farther apart than it may be."""
        return not self.refuted

    @property
    def unmoved(self) -> tuple[str, ...]:
        """Measurements that this pair did not move, of which nothing was found out."""
        most: dict[str, float] = {}
        for each in self.distances:
            most[each.measurement] = max(each.found, most.get(each.measurement, 0.0))
        return tuple(name for name, found in most.items() if not found)

    def __repr__(self) -> str:
        found = list(self.refuted) or [f"{len(self.distances)} distances"]
        if self.passed and self.unmoved:
            found.append(f"nothing found out of {', '.join(self.unmoved)}")
        if PROMISES_NOTHING in self.not_audited:
            found.append("its status is 'none'")
        return told(self, f"epsilon={self.epsilon:.4g}", "; ".join(found))


def measurement_audit(
    estimator: Any, data: tuple[Any, ...], neighbour: tuple[Any, ...], *, random_state: int = 0
) -> MeasurementResult:
    r"""Compare what each measurement of a fit asks of two neighbours with what its theorem allows.

    Parameters
    ----------
    estimator : estimator or functools.partial
        Not fitted; of this package or derived from its bases, also a Pipeline or a search. Or
        ``partial(private_survival_metrics, model, max_time=10.0, epsilon=1.0)``.
    data, neighbour : tuple
        Arguments of ``fit``: the same but for one record. As for :func:`audit_epsilon`.
    random_state : int, default=0
        Of the releases in view of which later measurements are asked: another integer gives others.

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

    * Of counts, sums and moments the exact answers are compared: they may be as far apart as the
      sensitivity from which the plan works out the noise.
    * Of perturbed minimisers, descents and chains gradients and Hessians are compared, at a few
      points, with the likelihood's constants S, :math:`\tau` and r; and the epsilon (of Gaussian
      noise, the :math:`\mu`) for which the noise hides what was found, of all models together that
      share a price, with that price.
    * Of choices the losses, of ladders the rungs are compared, and of posterior draws the energies.
    * Of measurements on records that share nobody, one alone may see another record.
    * Of a search every candidate is walked over, and of what it promises no more is taken than it
      was given.

    A sensitivity of half of what it is, or half of the noise that a calibration should state, is
    refuted by a pair that moves the measurement by more than half of what a record may. A pair that
    does not move a measurement says nothing about it: look at several. That noise is drawn as the
    plan says is not looked at here; the tests of this package do that, and :func:`audit_epsilon`.

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
    make = _evaluation if isinstance(estimator, functools.partial) else _fit
    both = make(estimator, data, neighbour)
    silent: list[str] = []
    with suppressed_warnings(), suppressed_float_errors(), _same_streams():
        plan, found = _compared(both, random_state, silent)
    if math.isinf(plan.epsilon):
        raise ValueError("epsilon of the estimator must be finite: there is no claim to audit.")
    weak = [one.status for one in both[0][0]._weaknesses(None)]
    if "none" in (plan.guarantee("proved").status, *weak):
        silent.append(PROMISES_NOTHING)
    unseen = (*NOT_AUDITED, *dict.fromkeys(silent))
    return MeasurementResult(tuple(found), plan.epsilon, plan.delta, unseen)


def _fit(estimator: Any, data: Any, neighbour: Any) -> list[Ready]:
    subject, arguments = audited(estimator, data, neighbour)
    return [ready(subject.seeded(0), **each) for each in arguments]


def _evaluation(function: functools.partial[Any], data: Any, neighbour: Any) -> list[Ready]:
    if function.func is not private_survival_metrics:
        raise TypeError("estimator must be an estimator, or a partial of private_survival_metrics.")
    signature = inspect.signature(private_survival_metrics)
    stated = signature.bind_partial(*function.args, **function.keywords).arguments
    stated = {"epsilon": 1.0, **stated, "random_state": 0, "accountant": None}
    arguments = [dict(zip(("X", "y"), each, strict=True)) for each in (data, neighbour)]
    check_neighbours(*arguments)
    model = stated.pop("model")
    evaluations = [(Evaluation(model, **stated), each) for each in arguments]
    return [(one, functools.partial(one._fit, **each)) for one, each in evaluations]


def _compared(
    both: Sequence[Ready], seed: int, silent: list[str]
) -> tuple[Plan, list[MeasuredDistance]]:
    """Return the plan, and how far all that is asked is apart; note what does not say how far."""
    plans = []
    for each in both:
        np.random.seed(PUBLIC_SEED)  # noqa: NPY002
        random.seed(PUBLIC_SEED)
        plans.append(plan_and_records(*each))
    (plan, records), (another, others) = plans
    found: list[MeasuredDistance] = []
    if plan.guarantee("seeded") != another.guarantee("seeded"):
        found.append(MeasuredDistance("the plan", plan.epsilon, "other promises", 1.0, 0.0))
    for visit in visits(plan.tree, plan.known, records, others, random_source(seed)):
        if isinstance(visit.node, Disjoint):
            found.append(_of_sets(visit, visit.node))
        else:
            found += _of_measurement(visit, visit.node, seed, silent)
    return plan, found


def _of_sets(visit: Visit, node: Disjoint) -> MeasuredDistance:
    """Return how many sets of records see that one is another: no more than one may."""
    moved = sum(not same_records(a, b) for a, b in zip(visit.one, visit.other, strict=True))
    names = " | ".join(dict.fromkeys(leaf.name for leaf in node.leaves()))
    return MeasuredDistance(names, _price(node), "sets that share a record", float(moved), 1.0)


def _of_measurement(
    visit: Visit, leaf: Measurement, seed: int, silent: list[str]
) -> list[MeasuredDistance]:
    price = _price(leaf)
    far = leaf.distances(visit.known, visit.one, visit.other)
    found = [MeasuredDistance(leaf.name, price, *each) for each in far]
    fits = [leaf.nested(visit.known, records) for records in (visit.one, visit.other)]
    if not found and not fits[0]:
        silent.append(leaf.name)
    for number, ((model, mine), (again, theirs)) in enumerate(zip(*fits, strict=True)):
        if same_records(mine, theirs):
            continue
        both = ready(model, *mine[:2], **mine[2]), ready(again, *theirs[:2], **theirs[2])
        plan, own = _compared(both, seed, silent)
        name = f"{leaf.name}, number {number}"
        found.append(MeasuredDistance(name, price, "what is promised", _number(plan.cost), price))
        found += [each._replace(measurement=f"{name}: {each.measurement}") for each in own]
    return found


def _price(node: Measurement | Disjoint) -> float:
    return epsilon_or_mu(node.price) if hasattr(node, "price") else _number(node.cost)


def _number(cost: Cost) -> float:
    """Return an epsilon, or a mu."""
    return float(cost.epsilon) if cost.rho is None else math.sqrt(2.0 * cost.rho)


@contextmanager
def _same_streams() -> Iterator[None]:
    """Leave the streams of the process as they were."""
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)
