r"""The parts of a study: each analysis with its price, from public numbers alone.

Fits share the epsilon of the study in proportion to their shares. Those whose noise may be Gaussian
share, by zCDP, what the others leave of it. Evaluations share what the fits cost people who are not
held out. With prices p of analyses of everybody (E), of those who are not held out (T), and of
those who are (H), a study costs (docs/proofs/study)

.. math:: \sum_E p + \max\Big(\sum_T p, \sum_H p\Big).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from typing import Any

from skdpsurv.data.shape import Shape
from skdpsurv.dp import privacy_cost as cost
from skdpsurv.dp.guarantee import PrivacyGuarantee
from skdpsurv.dp.plan import Disjoint, Node, Plan, Sequential
from skdpsurv.evaluation.forecast import planned_shape
from skdpsurv.priors import PlannedScales
from skdpsurv.study.analyses import Analysis
from skdpsurv.study.analysis_kinds import KINDS
from skdpsurv.study.protocol import Protocol

#: Number of significant digits of the epsilon of a part.
DIGITS = Context(prec=4, rounding=ROUND_DOWN)
#: Whose records an analysis uses.
EVERYBODY, TRAINING, EVALUATION = "everybody", "training", "evaluation"


@dataclass(frozen=True, eq=False)
class PlannedAnalysis:
    """One analysis, with its part of the budget.

    Parameters
    ----------
    analysis : Analysis
    price : float or Concentrated
        What it counts for in the study.
    spend : Spend
        Epsilon and delta of its estimator, for that price.
    people : str
        Whose records it uses: those of everybody, of training or of evaluation.
    n_people : int
        Their number.
    shape : Shape
        Number of records and of features.
    estimator : estimator
        Not fitted; that of an evaluation has a model that is not fitted, either.
    plan : Plan
    guarantee : PrivacyGuarantee
        That of its release.
    scales : PlannedScales or None
        The table that is released before, and says how columns are scaled.
    """

    analysis: Analysis
    price: cost.Price
    spend: cost.Spend
    people: str
    n_people: int
    shape: Shape
    estimator: Any
    plan: Plan
    guarantee: PrivacyGuarantee
    scales: PlannedScales | None = None

    @classmethod
    def of(
        cls,
        protocol: Protocol,
        analysis: Analysis,
        price: cost.Price,
        people: str,
        n_people: int,
        scales: PlannedScales | None = None,
    ) -> PlannedAnalysis:
        """Plan one analysis.

        Raises
        ------
        ValueError
            If it cannot be had at this price, or if its guarantee would not be proved.
        """
        with analysis.named():
            if isinstance(price, cost.Concentrated):
                worth, delta = cost.spend_of(price.rho, protocol.delta)
                spend = cost.Spend(_rounded_down(worth), delta)
            else:
                spend = cost.Spend(price)
            earlier = {} if scales is None else {"scales": scales}
            estimator = analysis.estimator(protocol, spend, **earlier).as_fitted()
            columns = getattr(estimator, "columns", None)
            n_features = 0 if columns is None else len(columns.get_feature_names_out())
            shape = planned_shape(estimator, n_people, n_features)
            shape = replace(shape, has_entry=analysis.has_entry(protocol))
            plan, guarantee = estimator._plan_and_guarantee(
                shape, people=protocol.person is not None
            )
            if guarantee.status != "proved":
                raise ValueError(f"its guarantee must be proved, and it is {guarantee.meaning}.")
        return cls(
            analysis, price, spend, people, n_people, shape, estimator, plan, guarantee, scales
        )

    def earlier(self, found: Any = None) -> dict[str, Any]:
        """Return the parameters that the analysis before it decides, given what that released."""
        if self.scales is not None:
            return {"scales": self.scales.after(found)}
        return {} if found is None else {"model": found._model}

    @property
    def node(self) -> Sequential:
        """The measurements of the analysis, held to its price."""
        return Sequential((self.plan.tree,), total=self.price)


def _rounded_down(epsilon: float) -> float:
    """Return an epsilon with few digits, for readers."""
    return float(DIGITS.plus(Decimal(epsilon)))


def sizes(protocol: Protocol, n_people: int) -> dict[str, int]:
    """Return how many people are in each part, or refuse an empty one."""
    held_out = round(protocol.evaluation_share * n_people)
    if protocol.evaluation_share and not 0 < held_out < n_people:
        raise ValueError("evaluation_share must leave somebody in both parts.")
    return {EVERYBODY: n_people, TRAINING: n_people - held_out, EVALUATION: held_out}


def whose(protocol: Protocol, analysis: Analysis) -> str:
    """Return whose records an analysis uses."""
    if analysis.of:
        return EVALUATION
    return TRAINING if analysis.name in {one.of for one in protocol.analyses} else EVERYBODY


def parts_of(protocol: Protocol, n_people: int) -> dict[str, PlannedAnalysis]:
    """Return the parts by name, in the order of the protocol."""
    n_each = sizes(protocol, n_people)

    found: dict[str, PlannedAnalysis] = {}

    def planned(analysis: Analysis, price: cost.Price) -> PlannedAnalysis:
        place, table = whose(protocol, analysis), protocol.needs[analysis.name]
        scales = None
        if table is not None and not analysis.of:
            scales = PlannedScales(table, found[table].guarantee)
        return PlannedAnalysis.of(protocol, analysis, price, place, n_each[place], scales)

    def divide(epsilon: float, analyses: Sequence[Analysis]) -> None:
        whole = sum(Fraction(one.share) for one in analyses)
        # Rounded down, so that they add up to no more.
        each = [
            _rounded_down(cost.divide_budget(epsilon, whole / Fraction(one.share)))
            for one in analyses
        ]
        for one, price in zip(analyses, each, strict=True):
            found[one.name] = planned(one, price)

    epsilon, delta = protocol.first_epsilon, protocol.delta
    divide(epsilon, [one for one in protocol.in_order if not one.of])
    may_be = [
        part for part in found.values() if delta and "delta" in KINDS[part.analysis.kind].parameters
    ]
    while may_be:
        pure = [part.spend.epsilon for part in found.values() if part not in may_be]
        shares = [part.analysis.share for part in may_be]
        prices = cost.split_gaussian(cost.remaining_budget(epsilon, *pure), delta, shares)
        gaussian = {}
        for part, price in zip(may_be, prices, strict=True):
            with suppress(ValueError):  # as too little is left
                tried = planned(part.analysis, price)
                # With few columns Laplace noise is smaller.
                if not tried.plan.cost.is_pure:
                    gaussian[part.analysis.name] = tried
        if len(gaussian) == len(may_be):
            found |= gaussian
            break
        may_be = [found[name] for name in gaussian]
    found |= {  # with the final promise of its table
        name: planned(part.analysis, part.price) for name, part in found.items() if part.scales
    }
    shared = [part for part in found.values() if part.people == EVERYBODY]
    prices = [part.price for part in shared if isinstance(part.price, cost.Concentrated)]
    pure = [part.spend.epsilon for part in shared if not isinstance(part.price, cost.Concentrated)]
    worth = [cost.epsilon_at(cost.compose_gaussian(*prices).rho, delta)] if prices else []
    left = cost.remaining_budget(epsilon, *pure, *worth)
    divide(left, [one for one in protocol.analyses if one.of])
    return {one.name: found[one.name] for one in protocol.analyses}


def tree_of(parts: Mapping[str, PlannedAnalysis]) -> Sequential:
    """Return the measurements of a study: of everybody, and of two parts that share nobody."""
    return together([(part.people, part.node) for part in parts.values()])


def together(nodes: Sequence[tuple[str, Node]]) -> Sequential:
    """Return nodes as one, by whose records each of them uses."""
    shared, *two = (
        tuple(node for place, node in nodes if place == people)
        for people in (EVERYBODY, TRAINING, EVALUATION)
    )
    apart = [Disjoint(tuple(map(Sequential, two)), _split_elsewhere)] if two[1] else []
    return Sequential((*shared, *apart))


def _split_elsewhere(records: Any, source: Any) -> Any:
    raise NotImplementedError("people are split where a study is run, once, and durably.")
