"""The risk appetite of an environment: refusals name the rule, and nothing is charged."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from skdpsurv import DPKaplanMeierFitter
from skdpsurv.dp import (
    AppetiteError,
    BudgetExceededError,
    PrivacyAccountant,
    PrivacyGuarantee,
    RiskAppetite,
)

APPETITE = RiskAppetite(max_epsilon=1.0, max_delta=1e-6, min_records=20, name="appetite.toml")
REFUSED = {
    "max_epsilon = 1.0 of appetite.toml": PrivacyGuarantee(1.5),
    "max_delta = 1e-06 of appetite.toml": PrivacyGuarantee(0.5, 1e-5),
    "status = proved of appetite.toml": PrivacyGuarantee(0.5, status="seeded"),
    "min_records = 20 of appetite.toml": PrivacyGuarantee(0.5, public_inputs={"n_private": 19}),
}


def ledgers(tmp_path):
    yield PrivacyAccountant(epsilon=6.0, delta=1e-3)
    yield PrivacyAccountant(epsilon=6.0, delta=1e-3, path=tmp_path / "ledger.sqlite")
    yield PrivacyAccountant(epsilon=6.0, delta=1e-3, rehearsal=True)


@pytest.mark.parametrize("rule", REFUSED)
def test_refusal_names_the_rule_and_charges_nothing(rule, tmp_path):
    for ledger in ledgers(tmp_path):
        limited = ledger.within(APPETITE)
        for ask in (limited.check, limited.charge):
            with pytest.raises(AppetiteError, match=rule) as caught:
                ask(REFUSED[rule])
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
        assert len(ledger.entries()) == 0
        other = PrivacyGuarantee(0.1, public_inputs={"n_records": 20})
        with pytest.raises(AppetiteError):
            limited.charge_parallel([other, REFUSED[rule]], disjoint=True)
        limited.charge(other)
        assert ledger.spent() == 0.1


def test_limits_are_of_all_charges_to_a_data_set(tmp_path):
    """Exactly so: ten times 0.1 are 1, and the eleventh is refused."""
    for ledger in ledgers(tmp_path):
        limited = ledger.within(APPETITE)
        for _ in range(10):
            limited.charge(PrivacyGuarantee(0.1))
        with pytest.raises(AppetiteError, match=r"with earlier charges 1\.1\. Nothing") as caught:
            limited.charge(PrivacyGuarantee(0.1))
        assert (caught.value.requested, caught.value.remaining) == (0.1, 0.0)
        limited.for_dataset("other").charge(PrivacyGuarantee(1.0))
        ledger.charge(PrivacyGuarantee(2.0))  # the ledger has a budget of its own
        assert ledger.spent() == 3.0
        with pytest.raises(BudgetExceededError, match="privacy budget of data set"):
            ledger.within(RiskAppetite(max_epsilon=9.0)).charge(PrivacyGuarantee(4.0))


def test_divergences_count_as_what_they_are_worth():
    """Gaussian charges add up to less than their epsilons; either sum is a true statement."""
    ledger = PrivacyAccountant(epsilon=3.0, delta=1e-6, composition="renyi")
    limited = ledger.within(RiskAppetite(max_epsilon=1.5, max_delta=1e-6))
    charge = PrivacyGuarantee(0.5, 1e-7, rho=0.003)
    for _ in range(5):
        limited.charge(charge)
    assert ledger.spent() < 1.5 < 2.5
    pure = PrivacyAccountant(epsilon=3.0, delta=1e-6, composition="renyi")
    without_delta = pure.within(RiskAppetite(max_epsilon=1.5))
    for _ in range(3):
        without_delta.charge(PrivacyGuarantee(0.5))
    with pytest.raises(AppetiteError):
        without_delta.charge(PrivacyGuarantee(0.5))


def test_threads_do_not_spend_more_together(tmp_path):
    for ledger in ledgers(tmp_path):
        limited = ledger.within(APPETITE)

        def charge(_, limited=limited):
            try:
                limited.charge(PrivacyGuarantee(0.3))
            except AppetiteError:
                return 0
            return 1

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(charge, range(8))) == 3
        assert ledger.spent() == 0.9


@pytest.mark.parametrize("composition", ["basic", "renyi"])
def test_a_fit_is_refused_before_a_record_is_looked_at(composition):
    ledger = PrivacyAccountant(epsilon=6.0, delta=1e-5, composition=composition)
    times = np.full(50, np.nan)  # a look would refuse these
    limited = ledger.within(APPETITE)
    model = DPKaplanMeierFitter(epsilon=1.5, max_time=5.0, accountant=limited)
    with pytest.raises(AppetiteError, match="max_epsilon"):
        model.fit(times)
    model.set_params(epsilon=0.5).fit(np.ones(50), np.ones(50))
    assert pickle.loads(pickle.dumps(limited))._appetite == APPETITE
    assert ledger.spent() == 0.5
    assert limited.plan([(model.set_params(epsilon=0.4), np.ones(50), np.ones(50))] * 2)[
        "allowed"
    ].tolist() == [1, 0]


def test_file(tmp_path):
    path = tmp_path / "appetite.toml"
    path.write_text('max_epsilon = 2\nmax_delta = 1e-6\nstatus = "asserted"\nsafe_threshold = 5\n')
    read = RiskAppetite.from_toml(path)
    stated = {"max_epsilon": 2, "max_delta": 1e-6, "status": "asserted", "safe_threshold": 5}
    assert read == RiskAppetite(**stated, name="appetite.toml")
    read.require(PrivacyGuarantee(2.0, status="asserted"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("max_epsilon = 0", "max_epsilon must be"),
        ("max_epsilon = true", "max_epsilon must be"),
        ("max_epsilon = 1\nmax_delta = 1", "max_delta must be"),
        ("max_epsilon = 1\nstatus = 'good'", "status must be"),
        ("max_epsilon = 1\nmin_records = 0", "min_records must be"),
        ("max_epsilon = 1\nmax_epsilom = 2", "no key 'max_epsilom'. Did you mean"),
        ("max_epsilon = 1\nname = 'x'", "no key 'name'"),
        ("max_delta = 0", "max_epsilon must be given"),
        ("max_epsilon", "appetite.toml: "),
        (f"max_epsilon = {'[' * 5000}", "appetite.toml: "),
    ],
)
def test_file_that_breaks_a_rule(tmp_path, text, says):
    path = tmp_path / "appetite.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"appetite\.toml: ") as caught:
        RiskAppetite.from_toml(path)
    assert says in str(caught.value)


def test_within_needs_an_appetite():
    with pytest.raises(TypeError, match="appetite must be"):
        PrivacyAccountant(epsilon=1.0).within("appetite.toml")
