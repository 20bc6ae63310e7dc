"""Plans: how measurements compose, and that nothing runs which costs more than its budget."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import PrivacyGuarantee, random_source
from skdpsurv.dp.plan import AdaptiveChoice, Disjoint, NoisySum, Plan, PrivateSelection, Sequential
from skdpsurv.dp.privacy_cost import (
    Concentrated,
    Cost,
    cost_of,
    disjoint_cost,
    epsilon_at,
    random_runs_cost,
    rho_for,
    run_rho,
    search_curve,
    search_epsilon,
    sequential_cost,
    split_gaussian,
)
from skdpsurv.dp.proofs import PROOFS, name_of
from skdpsurv.dp.references import OWN_RECORD
from skdpsurv.dp.selection import RunCount
from skdpsurv.mechanisms.sums import Sum
from tests.support.spies import queries_without_noise

from .costs import refused


@dataclass(frozen=True, eq=False, kw_only=True)
class Count(NoisySum):
    """How many records there are, under a name."""

    name: str
    assumptions: tuple[str, ...] = ("all are counted",)
    theorem = "a page"

    def query_for(self, known):
        return Sum(0, 1)

    def exact_answer(self, known, records):
        return records.map_reduce(len)

    def postprocess(self, known, noisy):
        return {self.name: int(noisy), "seen": sorted(known)}


PROOFS[name_of(Count)] = "noise.md#laplace-on-a-lattice"


def count(price, name="count"):
    return Count(price=price, name=name)


RECORDS = InMemory([np.zeros(40)])


class TestCosts:
    def test_epsilons_add_up_exactly(self):
        three = sequential_cost([cost_of(0.1)] * 3)
        assert three.epsilon == 3 * Fraction(0.1)
        assert not three.within(0.3, 0.0)  # 0.1 is a little more than a tenth
        assert three.within(math.nextafter(0.3, 1.0), 0.0)

    def test_mus_add_up_by_their_squares(self):
        one, two = split_gaussian(1.0, 1e-6, [3.0, 4.0])
        both = sequential_cost([cost_of(one), cost_of(two)])
        assert both.rho == pytest.approx(rho_for(1.0, 1e-6), rel=1e-9)
        assert [both.within(1.0, delta) for delta in (1e-6, 1e-7, 0.0)] == [True, False, False]
        assert (both.is_pure, both.epsilon) == (False, math.inf)
        mixed = sequential_cost([cost_of(0.1), cost_of(Concentrated(0.2))])
        assert mixed.rho == pytest.approx(0.5 * (0.1**2 + 0.2**2), rel=1e-9)
        assert mixed.within(epsilon_at(0.5 * (0.1**2 + 0.2**2), 1e-6) * (1 + 1e-9), 1e-6)
        assert Plan(count(one), 1.0, 1e-6).guarantee("proved").delta == 1e-6
        assert Plan(count(0.5), 1.0, 1e-6).guarantee("proved").delta == 0.0

    def test_a_large_epsilon_is_added_to_what_gaussian_noise_is_worth(self):
        (gaussian,) = split_gaussian(0.5, 1e-6, [1.0])
        mixed = sequential_cost([cost_of(0.25), cost_of(gaussian), cost_of(0.25)])
        assert mixed.within(1.0, 1e-6)  # exactly: the epsilon of the noise is rounded downwards
        assert epsilon_at(mixed.rho, 1e-6) > 1.5
        assert not mixed.within(1.0 - 1e-9, 1e-6)
        assert not sequential_cost([cost_of(math.inf), cost_of(gaussian)]).within(1e300, 1e-6)

    def test_of_sets_that_share_nobody_the_dearest_counts(self):
        assert disjoint_cost([cost_of(0.5), cost_of(0.7)]).epsilon == Fraction(0.7)
        # What comes after is paid by all of them.
        after = sequential_cost([disjoint_cost([cost_of(0.5), cost_of(0.7)]), cost_of(0.25)])
        assert after.epsilon == Fraction(0.7) + Fraction(0.25)

    def test_sets_with_either_noise_are_within_where_both_are(self):
        gaussian = split_gaussian(1.0, 1e-6, [1.0])[0]
        either = disjoint_cost([cost_of(1.0), cost_of(gaussian)])
        assert [either.within(epsilon, 1e-6) for epsilon in (1.0, 0.999)] == [True, False]
        assert (either.rho, either.is_pure) == (None, False)

    def test_a_negative_price_pays_for_nothing(self):
        assert Cost(((),)).epsilon == sequential_cost([]).epsilon == 0
        assert Cost(()).within(1e-300, 0.0)
        assert cost_of(math.inf).within(math.inf, 0.0)
        assert not cost_of(math.inf).within(1e300, 0.0)
        for price in (-0.5, Concentrated(-0.1), math.nan):
            with pytest.raises(ValueError, match="must not be negative"):
                Plan(Sequential((count(100.0), count(price))), 1.0)
        refused("must not be negative", lambda: Sequential((count(0.1),), total=-1.0))


class TestPlans:
    def test_a_plan_beyond_its_budget_cannot_be_made(self):
        tree = Sequential((count(0.5), count(0.6)))
        refused("must cost no more", lambda: Plan(tree, 1.0))
        assert Plan(tree, 1.2).epsilon == 1.2

    def test_each_measurement_knows_what_came_before(self):
        plan = Plan(Sequential((count(0.5, "one"), count(0.5, "two"))), 1.0)
        found = plan.run(RECORDS, random_source(3))
        assert (found.keys(), found["seen"]) == ({"one", "two", "seen"}, ["one", "seen"])
        public = Plan(count(1.0), 1.0, context={"edges": 3}).run(RECORDS, random_source(3))
        assert public == {"edges": 3, "count": public["count"], "seen": ["edges"]}

    def test_what_is_said_of_a_plan_is_what_measurements_say(self):
        plan = Plan(
            Sequential((count(0.25, "one"), count(0.25, "two"))), 1.0, inputs={"n_records": 40},
            assumed=("n is public",),
        )  # fmt: skip
        assert plan.guarantee("proved") == PrivacyGuarantee(
            1.0, mechanism="one, then two", source="a page",
            assumptions=("n is public", OWN_RECORD, "all are counted"),
            public_inputs={"n_records": 40},
        )  # fmt: skip
        assert plan.scales() == [4.0, 4.0]

    @pytest.mark.parametrize("of", ["measurement", "plan", "fit"])
    def test_the_weakest_status_is_that_of_the_whole(self, of):
        weak = count(1.0)
        if of == "measurement":
            weak.__dict__["claim"] = "asymptotic"
        plan = Plan(weak, 1.0, status="asymptotic" if of == "plan" else "proved")
        of_fit = "asymptotic" if of == "fit" else "proved"
        assert plan.guarantee(of_fit).status == "asymptotic"
        assert plan.guarantee("none").status == "none"

    def test_the_noise_is_that_of_the_query_at_the_price(self, monkeypatch):
        seen = queries_without_noise(monkeypatch)
        Plan(Sequential((count(0.25), count(0.75))), 1.0).run(RECORDS, random_source(0))
        assert seen == [(1, 40, 0.25), (1, 40, 0.75)]


class TestTotals:
    def total(self, later):
        return AdaptiveChoice(0.5, lambda known: count(later(known), "later"), (count(0.5),))

    def test_what_is_chosen_may_not_exceed_the_total(self):
        plan = Plan(Sequential((count(0.5, "first"), self.total(lambda known: 0.6))), 1.0)
        refused("no more than their total", lambda: plan.run(RECORDS, random_source(0)))

    def test_a_choice_may_depend_on_what_was_released(self):
        tree = Sequential((count(0.5, "first"), self.total(lambda k: 0.5 / (2 + k["first"] % 2))))
        assert Plan(tree, 1.0).run(RECORDS, random_source(0)).keys() >= {"first", "later"}
        assert self.total(lambda known: 0.1).cost == cost_of(0.5)

    def test_a_possible_choice_beyond_the_total_cannot_be_stated(self):
        for price in (0.6, Concentrated(0.1)):
            with pytest.raises(ValueError, match="no more than their total"):
                AdaptiveChoice(0.5, lambda known: count(0.5), (count(price),))

    def test_what_may_be_chosen_decides_on_status_and_assumptions(self):
        good = count(0.5)
        bad = replace(good, assumptions=("nobody looks",))
        object.__setattr__(bad, "claim", "none")
        for possible in ((good, bad), (bad, good)):
            found = Plan(AdaptiveChoice(0.5, lambda known: good, possible), 0.5).guarantee("proved")
            assert found.status == "none"
            assert "nobody looks" in found.assumptions
        plan = Plan(AdaptiveChoice(0.5, lambda known: bad, (good,)), 0.5)
        refused("as private as", lambda: plan.run(RECORDS, random_source(0)))


class TestDisjoint:
    @staticmethod
    def halves(records, source):
        order = source.generator.permutation(40)
        return [records.map(lambda block: block[order[:10]]), records.map(lambda b: b[order[10:]])]

    def test_each_measures_its_own_records(self, monkeypatch):
        queries_without_noise(monkeypatch)
        tree = Disjoint((count(1.0, "one"), count(1.0, "two")), self.halves)
        found = Plan(tree, 1.0).run(RECORDS, random_source(0))
        assert (found["one"], found["two"]) == (10, 30)
        assert [leaf.name for leaf in Plan(tree, 1.0).leaves] == ["one", "two"]
        many = Disjoint((count(1.0),) * 3, self.halves)
        refused("zip", lambda: Plan(many, 1.0).run(RECORDS, random_source(0)))


@dataclass(frozen=True, eq=False, kw_only=True)
class Tries(Count):
    """A count for each run that was drawn."""

    def exact_answer(self, known, records):
        return np.array([records.map_reduce(len) + 1000 * each for each in known["_drawn"]])

    def postprocess(self, known, noisy):
        return {"score": noisy.tolist(), "who": list(known["_drawn"])}


class TestRandomlyMany:
    COUNT = RunCount.with_mean(0.5, 6.0)

    def tries(self, price, **options):
        return PrivateSelection(Tries(price=price, name="tries"), 3, self.COUNT, "score", **options)

    def test_pure_runs_cost_two_and_eta_times_one_exactly(self):
        assert self.tries(0.1).cost.epsilon == Fraction(5, 2) * Fraction(0.1)
        dearest = random_runs_cost([cost_of(0.1), cost_of(0.3)], self.COUNT)
        assert dearest.epsilon == Fraction(5, 2) * Fraction(0.3)
        with pytest.raises(ValueError, match="no more than"):
            Plan(self.tries(0.1), 0.25)  # 0.1 is a little more than a tenth
        assert Plan(self.tries(math.nextafter(0.1, 0.0)), 0.25).delta == 0.0

    def test_gaussian_runs_have_a_curve_and_no_rho(self):
        rho = run_rho(1.0, 1e-6, self.COUNT)
        plan = Plan(self.tries(Concentrated(math.sqrt(2.0 * rho) * (1.0 - 1e-9))), 1.0, 1e-6)
        assert plan.cost.rho is None
        assert plan.delta == 1e-6
        np.testing.assert_allclose(plan.cost.renyi, search_curve(rho, self.COUNT), rtol=1e-6)
        with pytest.raises(ValueError, match="no more than"):
            Plan(self.tries(Concentrated(math.sqrt(2.0 * rho) * (1.0 + 1e-9))), 1.0, 1e-6)

    def test_what_follows_adds_to_the_curve(self):
        last = Concentrated(0.1)
        both = Sequential((self.tries(Concentrated(0.05)), count(last)))
        needed = search_epsilon(0.5 * 0.05**2, 1e-6, self.COUNT, 0.5 * 0.1**2)
        pure = Sequential((self.tries(Concentrated(0.05)), count(0.1)))
        for plan in (both, pure):
            assert plan.cost.within(needed * (1.0 + 1e-9), 1e-6)
            assert not plan.cost.within(needed * (1.0 - 1e-9), 1e-6)

    def test_two_random_numbers_of_runs_have_no_price_together(self):
        twice = Sequential((self.tries(Concentrated(0.05)),) * 2)
        refused("one random number of runs", lambda: Plan(twice, 10.0, 1e-6))

    def test_the_best_run_is_released_and_nothing_of_the_others(self):
        for seed in range(20):
            found = Plan(self.tries(50.0), math.inf).run(RECORDS, random_source(seed))
            assert found.keys() == {"score", "who", "best"}
            assert found["who"] == found["best"]
            assert abs(found["score"] - 40 - 1000 * found["best"]) < 20
