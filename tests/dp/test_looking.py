"""A ledger that charges refusals is asked before records are looked at, and never for nothing."""

import pytest

from skdpsurv.dp import BudgetExceededError, PrivacyAccountant, PrivacyGuarantee
from skdpsurv.dp.ledger import REFUSED
from skdpsurv.dp.looking import looking, require_free

PURE = PrivacyGuarantee(1.0, mechanism=REFUSED)
GAUSSIAN = PrivacyGuarantee(1.0, 1e-6, rho=0.02, mechanism=REFUSED)


def charged(accountant):
    return accountant.entries()[["estimator", "epsilon", "delta"]].values.tolist()


@pytest.mark.parametrize("error", [ValueError, TypeError, MemoryError, RuntimeError])
@pytest.mark.parametrize("charges", [False, True])
def test_whatever_fails_is_charged_once_where_the_ledger_says_so(charges, error):
    accountant, failed = PrivacyAccountant(3.0, charge_refusals=charges), error("a reason")
    outer, inner = (looking(accountant, [PURE], name) for name in ("outer", "inner"))
    with pytest.raises(error) as raised, outer, inner:
        raise failed
    assert raised.value is failed
    assert charged(accountant) == [["inner", 1.0, 0.0]] * charges


@pytest.mark.parametrize("other", ["less", "another ledger", "another data set"])
def test_what_does_not_pay_for_a_look(other):
    accountant = PrivacyAccountant(5.0, charge_refusals=True)
    another = {
        "less": accountant,
        "another ledger": PrivacyAccountant(5.0),
        "another data set": accountant.for_dataset("b"),
    }[other]

    def fit():
        another.charge(PrivacyGuarantee(0.9 if other == "less" else 1.0), estimator="a fit")
        raise ValueError("after")

    with pytest.raises(ValueError, match="after"), looking(accountant, [PURE], "a look"):
        fit()
    assert charged(accountant)[-1] == ["a look", 1.0, 0.0]


def test_what_was_charged_inside_has_paid():
    accountant = PrivacyAccountant(5.0, charge_refusals=True)

    def fit():
        accountant.charge(PrivacyGuarantee(1.0), estimator="a fit")
        raise ValueError("after")

    with pytest.raises(ValueError, match="after"), looking(accountant, [PURE], "a look"):
        fit()
    assert charged(accountant) == [["a fit", 1.0, 0.0]]
    with pytest.raises(ValueError, match="before"), looking(accountant, [PURE], "a look"):
        raise ValueError("before")
    assert len(charged(accountant)) == 2


@pytest.mark.parametrize("charges", [False, True])
def test_what_does_not_fail_costs_nothing_of_its_own(charges):
    accountant = PrivacyAccountant(3.0, charge_refusals=charges)
    with looking(accountant, [PURE], ""), looking(None, [PURE], ""):
        pass
    assert charged(accountant) == []


@pytest.mark.parametrize("charges", [False, True])
def test_without_room_for_a_refusal_nothing_is_looked_at(charges):
    accountant = PrivacyAccountant(0.5, charge_refusals=charges)
    with pytest.raises(BudgetExceededError), looking(accountant, [PURE, GAUSSIAN], ""):
        raise AssertionError
    assert charged(accountant) == []


@pytest.mark.parametrize(
    ("terms", "price"),
    [
        ({}, [1.0, 0.0]),
        ({"delta": 1e-6}, [1.0, 1e-6]),
        ({"delta": 1e-6, "composition": "renyi"}, [1.0, 0.0]),
    ],
)
def test_the_dearest_price_that_fits_is_charged(terms, price):
    accountant = PrivacyAccountant(3.0, **terms, charge_refusals=True)
    with pytest.raises(ZeroDivisionError), looking(accountant, [PURE, GAUSSIAN], "a look"):
        raise ZeroDivisionError
    assert charged(accountant) == [["a look", *price]]


def test_a_plan_looks_only_where_refusals_are_free():
    require_free(None, looks=True)
    require_free(PrivacyAccountant(0.5), looks=True)
    accountant = PrivacyAccountant(9.0, charge_refusals=True)
    require_free(accountant, looks=False)
    with pytest.raises(ValueError, match="must not look"):
        require_free(accountant, looks=True)
