"""Tests of Renyi divergences of one order, and of the filter that adds them up."""

import math
import pickle
from decimal import Decimal
from functools import partial
from itertools import product

import mpmath
import pytest

from skdpsurv.dp import BudgetExceededError, PrivacyAccountant, PrivacyGuarantee
from skdpsurv.dp.privacy_cost import (
    best_order,
    epsilon_at,
    epsilon_to_rdp,
    pure_to_rdp,
    rdp_conversion_term,
    rdp_to_epsilon,
    rho_for,
)

from .costs import cost, exceeds, refused

BUDGETS = [(0.01, 1e-6), (1.0, 1e-3), (1.0, 1e-12), (3.0, 1e-6), (15.0, 1e-6), (100.0, 1e-200)]


def gaussian(epsilon, delta):
    return PrivacyGuarantee(epsilon, delta, rho=rho_for(epsilon, delta))


def renyi(epsilon=3.0, delta=1e-6, **terms):
    return PrivacyAccountant(epsilon, delta, composition="renyi", **terms)


@pytest.fixture(params=["memory", "file"])
def make(request, tmp_path):
    path = tmp_path / "ledger.sqlite" if request.param == "file" else None
    return partial(renyi, path=path)


class TestDivergences:
    @pytest.mark.parametrize("order", [1.0001, 1.5, 10.0, 1e4])
    @pytest.mark.parametrize("epsilon", [1e-300, 1e-139, 1e-8, 1e-3, 0.1, 1.0, 30.0, 700.0, 1e308])
    def test_of_pure_is_that_of_randomised_response(self, epsilon, order):
        with mpmath.workdps(60):
            e, a = mpmath.mpf(epsilon), mpmath.mpf(order)
            if epsilon > 1e3:
                exact = e  # but for one part in 1e304
            elif epsilon < 1e-20:
                exact = a * e**2 / 2
            else:
                sums = mpmath.exp(a * e) + mpmath.exp((1 - a) * e), 1 + mpmath.exp(e)
                exact = mpmath.log(sums[0] / sums[1]) / (a - 1)
            found = pure_to_rdp(epsilon, order)
            assert exact <= found * (1 + mpmath.mpf(10) ** -50) or found == epsilon
            if exact > 1e-300:
                assert found <= exact * (1 + 1e-11)
        assert found <= epsilon

    @pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
    def test_the_room_is_worth_the_budget_and_the_best_order_wastes_nothing(self, epsilon, delta):
        order = best_order(epsilon, delta)
        left = epsilon_to_rdp(epsilon, delta, order)
        assert left + rdp_conversion_term(order, delta) <= epsilon
        assert left / order == pytest.approx(rho_for(epsilon, delta), rel=1e-8)
        # What is worth the budget at any order is worth it at the best.
        assert epsilon_at(left / order, delta) == pytest.approx(epsilon, rel=1e-8)


class TestWhatAGuaranteeSays:
    def test_the_least_that_follows(self):
        assert PrivacyGuarantee(1.0).renyi_at(7.0) == pure_to_rdp(1.0, 7.0)
        assert PrivacyGuarantee(9.0, 1e-6, rho=0.1).renyi_at(7.0) == pytest.approx(0.7)
        curve = ((2.0, 0.3), (8.0, 0.5))
        both = PrivacyGuarantee(9.0, 1e-6, rho=0.1, renyi=curve)
        assert both.renyi_at(2.0) == pytest.approx(0.2)
        assert both.renyi_at(7.0) == 0.5  # that of order 8
        assert both.renyi_at(9.0) == pytest.approx(0.9)
        alone = PrivacyGuarantee(9.0, 1e-6, renyi=curve)
        assert (alone.renyi_at(2.0), alone.renyi_at(9.0)) == (0.3, math.inf)

    def test_to_json_and_back(self):
        guarantee = PrivacyGuarantee(9.0, 1e-6, renyi=[(2.0, 0.3), (8, 1)])
        assert guarantee.renyi == ((2.0, 0.3), (8.0, 1.0))
        assert PrivacyGuarantee.from_dict(guarantee.to_dict()) == guarantee
        assert PrivacyGuarantee(9.0, 1e-6, renyi=[(8, 0)]).renyi_at(8.0) == 0.0
        assert "renyi" not in PrivacyGuarantee(1.0).to_dict()

    def test_what_is_no_curve(self):
        for curve in (
            *("2, 1", (2.0, 1.0), ((2.0, 1.0, 0.0),), (("two", 1.0),), ((1.0, 0.1),)),
            *(((math.inf, 0.1),), ((2.0, -0.1),), ((2.0, math.nan),), ((3.0, 0.1), (2.0, 0.2))),
            *(((2.0, 0.2), (3.0, 0.1)), ((2.0, 8.0),)),  # the last is worth more than epsilon
        ):
            with pytest.raises((TypeError, ValueError), match="renyi must"):
                PrivacyGuarantee(9.0, 1e-6, renyi=curve)
        refused("renyi must", lambda: PrivacyGuarantee(9.0, renyi=((2.0, 0.1),)))


class TestFilter:
    @pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
    def test_one_fit_of_the_whole_budget_fits_and_fills_it(self, make, epsilon, delta):
        accountant = make(epsilon, delta)
        accountant.charge(gaussian(epsilon, delta))
        assert accountant.spent() == pytest.approx(epsilon, rel=1e-8)
        assert accountant.spent_delta() == delta
        assert accountant.remaining() <= 1e-3 * epsilon
        exceeds(accountant, gaussian(0.1 * epsilon, delta), match="Renyi divergence of order")

    def test_pure_charges_add_up_by_their_epsilons_too(self, make):
        accountant = make()
        for _ in range(30):
            accountant.charge(cost(0.1))
        # 30 epsilons of .1 have a divergence far below what is worth 3.
        assert accountant.spent() < 2.6
        assert accountant.remaining() > 0.3
        large = renyi()
        large.charge(cost(3.0))  # whose divergence would not fit
        assert (large.spent(), large.remaining()) == (3.0, 0.0)
        exceeds(large, gaussian(0.1, 1e-6))

    def test_what_was_spent_is_one_true_pair(self, make):
        """Of 150 randomised responses, together, epsilon is their sum where delta is 0."""
        assert (pure_to_rdp(0.0, 3.0), pure_to_rdp(math.inf, 3.0)) == (0.0, math.inf)
        accountant, pairs = make(), []
        for _ in range(150):
            accountant.charge(cost(0.05))
            pairs.append((accountant.spent(), accountant.spent_delta()))
        # Few are best said by their sum, many by what divergences are worth.
        assert pairs[:2] == [(0.05, 0.0), (0.1, 0.0)]
        assert pairs[-1][0] < 3.0
        for k, (epsilon, delta) in enumerate(pairs, 1):
            if delta == 0.0:
                assert epsilon == pytest.approx(0.05 * k, rel=1e-12)
                continue
            assert delta == 1e-6
            # Exactly: what of the first law is above exp(epsilon) times the second.
            yes, no = math.exp(0.05) / (1.0 + math.exp(0.05)), 1.0 / (1.0 + math.exp(0.05))
            excess = (
                math.comb(k, j)
                * (yes**j * no ** (k - j) - math.exp(epsilon) * no**j * yes ** (k - j))
                for j in range(k + 1)
            )
            assert math.fsum(max(0.0, one) for one in excess) <= delta

    def test_worth_is_rounded_upwards(self):
        delta = 1e-6
        for order, divergence in product((1.5, 10.0, 64.0), (0.0, 1e-9, 0.1, 7.0)):
            a = Decimal(order)
            exact = (
                Decimal(divergence) + (1 - 1 / a).ln() - (Decimal(delta).ln() + a.ln()) / (a - 1)
            )
            found = Decimal(rdp_to_epsilon(divergence, delta, order))
            assert 0 <= found - max(0, exact) < 1e-11

    def test_pure_and_gaussian_charges_share_the_room(self, make):
        accountant = make()
        accountant.charge(cost(1.0))
        left = accountant.remaining(delta=1e-6)
        assert 1.5 < left < 2.0
        accountant.charge(gaussian(left, 1e-6))
        assert accountant.spent() == 1.0 + left
        exceeds(accountant, cost(0.1))

    @pytest.mark.parametrize("first", [cost(0.7), gaussian(1.3, 1e-7), cost(2.999)])
    def test_what_is_left_can_be_charged_and_hardly_more(self, make, first):
        for delta in (0.0, 1e-6, 1e-9):
            accountant = renyi()
            accountant.charge(first)
            left = accountant.remaining(delta)
            assert left >= 0.0
            more = left * 1.001 + 1e-4
            with pytest.raises(BudgetExceededError):
                accountant.check(gaussian(more, delta) if delta else cost(more))
            if left:
                accountant.charge(gaussian(left, delta) if delta else cost(left))

    def test_a_delta_without_a_curve_is_refused(self, make):
        accountant = make()
        with pytest.raises(BudgetExceededError, match="must say its rho") as error:
            accountant.charge(cost(0.1, 1e-9))
        assert pickle.loads(pickle.dumps(error.value)).args == error.value.args
        accountant.charge(PrivacyGuarantee(2.9, 1e-6, renyi=((64.0, 0.4),)))
        assert accountant.entries()["renyi"].tolist() == [0.4]

    def test_what_is_not_proved_costs_infinity_or_stands_apart(self, make):
        accountant = make(rehearsal=True)
        accountant.charge(cost(2.0, status="seeded"))
        assert (accountant.spent(), accountant.rehearsed()) == (0.0, 2.0)
        exceeds(renyi(), cost(0.1, status="seeded"))

    def test_disjoint_parts_cost_the_largest_divergence(self, make):
        accountant = make()
        accountant.charge_parallel([gaussian(2.0, 1e-6), cost(0.5)], disjoint=True)
        alone = renyi()
        alone.charge(gaussian(2.0, 1e-6))
        assert accountant.remaining() == alone.remaining()
        mixed = renyi()
        mixed.charge_parallel([gaussian(0.1, 1e-6), cost(1.0)], disjoint=True)
        [charged] = mixed.entries()["renyi"]
        assert charged == cost(1.0).renyi_at(best_order(3.0, 1e-6))

    def test_needs_an_epsilon_and_a_delta(self):
        for terms in ((math.inf, 0.0), (1.0, 0.0), (math.inf, 1e-6)):
            with pytest.raises(ValueError, match="composition"):
                renyi(*terms)
        refused("composition", lambda: PrivacyAccountant(1.0, 1e-6, composition="optimal"))


class TestFile:
    def test_a_ledger_keeps_its_composition_and_order(self, path):
        made = renyi(path=path)
        made.charge(gaussian(1.0, 1e-6))
        opened = PrivacyAccountant(path=path)
        assert opened.composition == "renyi"
        assert opened.spent() == made.spent()
        PrivacyAccountant(path=path, composition="renyi")
        with pytest.raises(ValueError, match="cannot be reopened with composition='basic'"):
            PrivacyAccountant(path=path, composition="basic")
        assert "composition='renyi'" in repr(opened)
