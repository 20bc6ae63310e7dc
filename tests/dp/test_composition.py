"""Optimal composition, against the closed form of Kairouz, Oh and Viswanath."""

from __future__ import annotations

import math
import sys
from decimal import Decimal, localcontext

import pytest

from skdpsurv.dp import PrivacyAccountant, PrivacyGuarantee, compose
from tests.support.combinations import thinned

pytest.importorskip("dp_accounting")


def exact_delta(epsilon, k, i):
    """Return the smallest delta of k pure mechanisms at (k - 2 i) epsilon (2015, theorem 3.3)."""
    terms = (
        math.comb(k, j) * (math.exp((k - j) * epsilon) - math.exp((k - 2 * i + j) * epsilon))
        for j in range(i)
    )
    return math.fsum(terms) / (1.0 + math.exp(epsilon)) ** k


class TestCompose:
    @pytest.mark.parametrize(("epsilon", "k", "i"), [(0.1, 50, 15), (1.0, 6, 1), (0.02, 200, 60)])
    def test_closed_form(self, epsilon, k, i):
        """Never below the optimum, and above it by no more than the grid's rounding."""
        found = compose([(epsilon, 0.0)] * k, exact_delta(epsilon, k, i))
        assert (k - 2 * i) * epsilon * (1.0 - 1e-6) <= found <= (k - 2 * i) * epsilon + 0.02

    @pytest.mark.parametrize(
        ("epsilon", "k", "delta"),
        [(2.0, 200, 1e-2), (2.0, 200, 1e-3), (3.0, 200, 1e-3), (1.0, 400, 1e-2)],
    )
    def test_not_below_the_optimum_by_a_rounding(self, epsilon, k, delta):
        """What the laws of k randomised responses differ by, beyond it, is at most delta."""
        with localcontext(prec=80):
            odds = Decimal(epsilon).exp()
            bound = Decimal(compose([(epsilon, 0.0)] * k, delta))
            needed = Decimal(0)
            for j in range(k + 1):
                loss = (k - 2 * j) * Decimal(epsilon)
                if loss > bound:
                    needed += math.comb(k, j) * odds ** (k - j) * (1 - (bound - loss).exp())
            assert needed / (1 + odds) ** k <= Decimal(delta)

    def test_far_below_the_sum(self):
        assert compose([(0.01, 0.0)] * 1000, 1e-6) < 1.5

    @pytest.mark.parametrize("epsilons", [[3.0], [5.0, 5.0], [1e-4, 2.0, 0.3]])
    def test_never_above_the_sum(self, epsilons):
        assert compose([(e, 0.0) for e in epsilons], 1e-9) <= math.fsum(epsilons)

    def test_order_does_not_matter(self):
        pairs = [(0.5, 1e-7), (1.0, 0.0), (0.2, 1e-6)]
        assert compose(pairs, 1e-4) == compose(pairs[::-1], 1e-4)

    def test_deltas_of_the_parts(self):
        """Their sum must fit delta; nothing holds below the largest of them."""
        assert compose([(0.5, 1e-4)], 1e-4) == pytest.approx(0.5)
        assert compose([(0.5, 1e-4)], 1e-5) == math.inf

    def test_nothing_and_everything(self):
        assert compose([], 1e-6) == 0.0
        assert compose([(0.0, 0.0)], 1e-6) == 0.0
        assert compose([(0.1, 0.0), (math.inf, 0.0)], 1e-6) == math.inf

    @pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan])
    def test_delta(self, delta):
        with pytest.raises(ValueError, match="delta"):
            compose([(1.0, 0.0)], delta)

    @pytest.mark.parametrize("pair", [(-1.0, 0.0), (1.0, -1.0), (1.0, 1.0), (math.nan, 0.0)])
    def test_pairs(self, pair):
        with pytest.raises(ValueError, match="guarantees must hold"):
            compose([pair], 1e-6)

    def test_without_the_extra(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
        with pytest.raises(ImportError, match=r"skdpsurv\[accounting\]"):
            compose([(1.0, 0.0)], 1e-6)


class TestAccountant:
    def test_only_its_own_data_set(self):
        accountant = PrivacyAccountant()
        for _ in range(40):
            accountant.charge(PrivacyGuarantee(0.05))
        accountant.charge(PrivacyGuarantee(9.0), "other")
        assert accountant.epsilon_at(1e-6) == compose([(0.05, 0.0)] * 40, 1e-6)
        assert accountant.epsilon_at(1e-6) < accountant.spent()

    def test_a_budget_is_still_a_sum(self):
        accountant = PrivacyAccountant(epsilon=1.0)
        for _ in range(20):
            accountant.charge(PrivacyGuarantee(0.05))
        assert accountant.epsilon_at(1e-3) < 1.0
        assert accountant.remaining() == pytest.approx(0.0, abs=1e-9)


class TestNeverTooSmall:
    @pytest.mark.parametrize(
        ("charges", "delta"),
        thinned(
            [(0.01, 10_000), (0.1, 1000), (0.1, 3000)],
            [1e-14, 1e-13, 1e-12, 2e-12, 1e-11, 1e-10, 1e-8],
        ),
    )
    def test_small_deltas(self, charges, delta):
        """Exact binomial sums, in fifty digits: delta at the epsilon found is within delta."""
        epsilon, k = charges
        from decimal import Decimal, localcontext

        found = compose([(epsilon, 0.0)] * k, delta)
        if found >= k * epsilon * (1.0 - 1e-12):
            return
        with localcontext() as context:
            context.prec = 60
            e = Decimal(epsilon)
            ratio = e.exp()
            likely, unlikely = ratio / (1 + ratio), 1 / (1 + ratio)
            weight = likely**k
            total, bound = Decimal(0), Decimal(found)
            for j in range(k // 2 + 1):  # j of them against the record: loss (k - 2 j) epsilon
                loss = (k - 2 * j) * e
                if loss <= bound:
                    break
                total += weight * (1 - (bound - loss).exp())
                weight *= unlikely / likely * (k - j) / (j + 1)
        assert total <= Decimal(delta)

    @pytest.mark.parametrize(
        "pairs", [[(800.0, 0.0)] * 3, [(1e6, 0.0)], [(1e-8, 0.0)] * 5 + [(5.0, 0.0)] * 200]
    )
    def test_what_no_grid_can_hold(self, pairs):
        total = math.fsum(epsilon for epsilon, _ in pairs)
        assert 0.9 * total <= compose(pairs, 1e-6) <= total
