"""What an evaluation asks: for no more than epsilon, and of neighbours within its bounds."""

import itertools
import math
from fractions import Fraction
from itertools import product

import numpy as np

from skdpsurv.audit.walk import visits
from skdpsurv.data.blocks import InMemory
from skdpsurv.data.histories import Histories
from skdpsurv.dp import random_source
from skdpsurv.evaluation.evaluation_plan import EvaluationSetting, TimeEdges, evaluation_plan
from skdpsurv.evaluation.risk_table import EvaluationRecords

HORIZON = 2.0
GIVEN = {"risk_edges": np.array([0.3, 0.6, 0.8]), "time_edges": np.array([0.5])}
EXTREME = [
    (risk, event, time)
    for risk in (0.0, 0.29, 0.3, 1.0)
    for event, time in (
        (True, 0.0), (False, 0.0), (True, 0.5), (False, 1.9), (True, 2.0), (False, 2.0), (True, 9.0)
    )
]  # fmt: skip


def setting(epsilon=1.0, **edges):
    return EvaluationSetting(epsilon, 30, HORIZON, 4, 2, edges)


def records(last):
    rng = np.random.default_rng(0)
    risk, event, time = rng.uniform(size=30), rng.uniform(size=30) < 0.5, rng.uniform(0, 3, 30)
    risk[-1], event[-1], time[-1] = last
    survival = risk[:, None] ** np.linspace(0.1, 1.0, 33)
    cuts = np.array_split(np.arange(30), 3)
    return InMemory([EvaluationRecords(survival[i], Histories(time[i], event[i])) for i in cuts])


def test_prices_add_up_to_epsilon():
    """Exactly to no more, and to little less, whatever is given."""
    for edges, epsilon in product(
        [{}, GIVEN, {"risk_edges": GIVEN["risk_edges"]}], [1e-6, 1 / 3, 1.0, 50.0]
    ):
        plan = evaluation_plan(setting(epsilon, **edges))
        spent = sum((leaf.cost.epsilon for leaf in plan.leaves), Fraction())
        assert Fraction(epsilon) * Fraction(1 - 1e-12) <= spent <= Fraction(epsilon)
        assert plan.cost.epsilon == spent
        assert len(plan.leaves) == 6 - len(edges)
        assert ("permute-and-flip" in plan.mechanism) == (len(edges) < 2)


def test_one_band_has_no_edges():
    plan = evaluation_plan(EvaluationSetting(1.0, 30, HORIZON, 4, 1))
    assert not any(isinstance(leaf, TimeEdges) for leaf in plan.leaves)
    released = plan.run(records(EXTREME[0]), random_source(0))
    assert released["time_edges"].size == 0
    assert released["table"].shape[1] == 3


def test_what_is_asked_of_neighbours_is_within_its_bounds():
    """For each measurement and the same results before it; and each bound is nearly reached."""
    most = {}
    plan, first = evaluation_plan(setting()), records(EXTREME[0])
    for leaf, known, *_ in visits(plan.tree, plan.context, first, first, random_source(0)):
        for last, other in itertools.product(EXTREME, (EXTREME[0], EXTREME[9], EXTREME[-1])):
            for what, found, bound in leaf.distances(known, records(last), records(other)):
                assert found <= bound, leaf.name
                name = leaf.name, what
                most[name] = max(most.get(name, 0.0), found / bound)
    assert len(most) == 9
    assert min(most.values()) > 0.2


def test_without_privacy_released_numbers_are_exact():
    plan = evaluation_plan(setting(math.inf, **GIVEN))
    released = plan.run(records(EXTREME[0]), random_source(0))
    assert released["table"].sum() == 30
    assert list(released) == [
        "risk_edges", "time_edges", "table", "risk_offsets", "time_offsets", "brier",
    ]  # fmt: skip
