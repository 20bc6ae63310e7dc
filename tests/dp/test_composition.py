"""Optimal composition, against the closed form of Kairouz, Oh and Viswanath."""

import math
import sys
from decimal import Decimal, localcontext

import numpy as np
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

    def test_deltas_of_the_parts(self):
        """Their sum must fit delta; nothing holds below the largest of them."""
        assert compose([(0.5, 1e-4)], 1e-4) == pytest.approx(0.5)
        assert compose([(0.5, 1e-4)], 1e-5) == math.inf
        assert compose([(0.1, 0.0)] * 2, 1e-9) == pytest.approx(0.2)
        assert compose([], 1e-6) == 0.0
        assert compose([(0.0, 0.0)], 1e-6) == 0.0
        assert compose([(0.1, 0.0), (math.inf, 0.0)], 1e-6) == math.inf

    def test_parameters(self):
        for delta in (0.0, 1.0, -1.0, math.nan):
            with pytest.raises(ValueError, match="delta"):
                compose([(1.0, 0.0)], delta)
        for pair in ((-1.0, 0.0), (1.0, -1.0), (1.0, 1.0), (math.nan, 0.0)):
            with pytest.raises(ValueError, match="guarantees"):
                compose([pair], 1e-6)

    def test_without_the_extra(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
        with pytest.raises(ImportError, match=r"skdpsurv\[accounting\]"):
            compose([(1.0, 0.0)], 1e-6)


class TestAccountant:
    def test_only_its_own_data_set_and_nothing_rehearsed(self):
        accountant = PrivacyAccountant(rehearsal=True)
        for _ in range(40):
            accountant.charge(PrivacyGuarantee(0.05))
        accountant.charge(PrivacyGuarantee(9.0), "other")
        accountant.charge(PrivacyGuarantee(9.0, status="seeded"))
        assert accountant.epsilon_at(1e-6) == compose([(0.05, 0.0)] * 40, 1e-6)
        assert accountant.epsilon_at(1e-6) < accountant.spent()


class TestNeverTooSmall:
    @pytest.mark.parametrize(
        ("charges", "delta"),
        [
            *thinned([(0.01, 10_000), (0.1, 1000), (0.1, 3000)], 10.0 ** np.arange(-14, -7)),
            *(((2.0, 200), 1e-2), ((2.0, 200), 1e-3), ((3.0, 200), 1e-3), ((1.0, 400), 1e-2)),
        ],
    )
    def test_what_exceeds_the_bound_is_within_delta(self, charges, delta):
        """By exact binomial sums of k randomised responses, in 60 digits."""
        epsilon, k = charges
        found = compose([(epsilon, 0.0)] * k, delta)
        if found >= k * epsilon * (1.0 - 1e-12):
            return
        with localcontext(prec=60):
            ratio, bound = Decimal(epsilon).exp(), Decimal(found)
            weight, total = (ratio / (1 + ratio)) ** k, Decimal(0)
            for j in range(k // 2 + 1):  # j of them against the record
                loss = (k - 2 * j) * Decimal(epsilon)
                if loss <= bound:
                    break
                total += weight * (1 - (bound - loss).exp())
                weight *= (k - j) / (ratio * (j + 1))
        assert total <= Decimal(delta)

    @pytest.mark.parametrize(
        "pairs", [[(800.0, 0.0)] * 3, [(1e6, 0.0)], [(1e-8, 0.0)] * 5 + [(5.0, 0.0)] * 200]
    )
    def test_what_no_grid_can_hold(self, pairs):
        total = math.fsum(epsilon for epsilon, _ in pairs)
        assert 0.9 * total <= compose(pairs, 1e-6) <= total
