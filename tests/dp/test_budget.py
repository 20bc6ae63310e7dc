"""Tests of what a budget adds up: exactly, and only what is proved."""

import math
import unicodedata
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdpsurv.dp import BudgetExceededError, PrivacyAccountant, compose
from skdpsurv.dp.budget import dataset_name, exact_sum, float_above, float_below

from .costs import cost, exceeds

UNPROVED = ["none", "seeded", "asymptotic"]
SIZES = st.floats(min_value=0.0, allow_nan=False, allow_infinity=False)


class TestExactSums:
    def test_ten_tenths_fill_one_and_leave_nothing(self, make):
        accountant = make(1.0, 3e-7)
        for _ in range(7):
            accountant.charge(cost(0.1))
        for _ in range(3):
            accountant.charge(cost(0.1, 1e-7))
        assert (accountant.spent(), accountant.remaining()) == (1.0, 0.0)
        assert accountant.spent_delta() == 3e-7
        exceeds(accountant, cost(1e-10), cost(5e-324), cost(0.0, 1e-300))

    def test_small_beside_large(self, make):
        accountant = make(1e308)
        accountant.charge(cost(5e-324))
        exceeds(accountant, cost(1e308))
        assert accountant.spent() == 5e-324
        assert accountant.remaining() < 1e308
        accountant.charge(cost(accountant.remaining()))

    def test_beyond_the_largest_float(self, make):
        accountant = make(math.inf)
        accountant.charge(cost(1e308))
        accountant.charge(cost(1e308))
        assert accountant.spent() == accountant.remaining() == math.inf
        assert compose([(1e308, 0.0), (1.1e308, 0.0)], 1e-6) == math.inf

    @given(st.lists(SIZES, max_size=6))
    def test_sums_are_those_of_fractions(self, values):
        exact = sum((Fraction(repr(v)) for v in values), Fraction(0))
        found = exact_sum(values)
        assert Fraction(found) == exact
        above, below = float_above(found), float_below(found)
        assert math.isinf(above) or Fraction(repr(above)) >= exact
        if not math.isinf(below):
            assert Fraction(repr(below)) <= exact
            assert above in (below, math.nextafter(below, math.inf))

    @given(st.floats(min_value=0.0, max_value=1e300, exclude_min=True), st.lists(SIZES, max_size=4))
    def test_what_remains_can_be_charged(self, budget, charges):
        accountant = PrivacyAccountant(budget)
        for epsilon in charges:
            if epsilon <= accountant.remaining():
                accountant.charge(cost(epsilon))
        left = accountant.remaining()
        if left > 0.0:
            accountant.charge(cost(left))
        assert accountant.spent() <= budget


class TestUnproved:
    @pytest.mark.parametrize("status", UNPROVED)
    def test_costs_infinity(self, make, status):
        accountant = make(1.0)
        for call in (accountant.check, accountant.charge):
            with pytest.raises(BudgetExceededError, match=f"status '{status}' costs infinity"):
                call(cost(0.1, status=status))
        with pytest.raises(BudgetExceededError, match="costs infinity"):
            accountant.charge_parallel([cost(0.1), cost(0.1, status=status)], disjoint=True)
        assert accountant.spent() == 0.0

    def test_shows_in_every_sum(self, make):
        accountant = make(math.inf)
        accountant.charge(cost(0.1))
        for status in UNPROVED:
            other = accountant.for_dataset(status)
            other.charge(cost(0.1))
            other.charge(cost(0.1, status=status))
            assert other.spent() == other.epsilon_at(1e-6) == other.remaining() == math.inf
            assert other.rehearsed() == 0.0
        assert accountant.entries()["epsilon"].tolist() == [0.1, *[0.1, math.inf] * 3]
        assert accountant.spent() == 0.1

    @pytest.mark.parametrize("status", UNPROVED)
    def test_stands_apart_in_rehearsals(self, make, status):
        accountant = make(1.0, rehearsal=True)
        accountant.charge(cost(0.75, status=status))
        accountant.charge(cost(0.5))
        assert (accountant.spent(), accountant.remaining()) == (0.5, 0.5)
        assert accountant.rehearsed() == 0.75
        assert accountant.entries()[["epsilon", "status"]].values.tolist() == [
            [0.75, status], [0.5, "proved"],
        ]  # fmt: skip
        assert repr(accountant).endswith("spent=0.5, rehearsed=0.75)")
        exceeds(accountant, cost(0.5, status=status), match=r"only 0\.25 is left")
        exceeds(accountant, cost(0.75), match=r"only 0\.5 is left")
        other = accountant.for_dataset("trial")
        assert (other.rehearsed(), other.rehearsal) == (0.0, True)


def test_a_delta_is_held_where_epsilon_has_no_limit(make):
    accountant = make(math.inf, 1e-6)
    accountant.charge(cost(1e6, 1e-6))
    exceeds(accountant, cost(1.0, 1e-9), match="delta")


def test_of_letters_only_fillers_cannot_be_seen():
    for letter in (c for c in map(chr, range(0x4000)) if unicodedata.category(c)[0] == "L"):
        if "FILLER" in unicodedata.name(letter):
            with pytest.raises(ValueError, match="dataset"):
                dataset_name(f"x{letter}")
        else:
            assert dataset_name(f"x{letter}") == unicodedata.normalize("NFC", f"x{letter}")


def test_the_last_of_a_range_that_is_drawn_as_nothing_cannot_be_seen():
    for code in (0x180F, 0xFE0F, 0xFFF8, 0x13446, 0xE0FFF):
        with pytest.raises(ValueError, match="dataset"):
            dataset_name(f"x{chr(code)}")
    assert dataset_name("x\ufe10") == "x\ufe10"  # a comma, for vertical text
