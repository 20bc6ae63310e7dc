"""What every estimator keeps to, in every setting of the registry."""

from __future__ import annotations

import inspect
import pickle
import re
from dataclasses import replace
from itertools import chain

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from skdpsurv import (
    BudgetExceededError,
    DPAalenJohansenFitter,
    DPKaplanMeierFitter,
    DPWeibullFitter,
    PrivacyAccountant,
    PublicColumns,
)
from skdpsurv.published import SampleAggregateWeibullFitter
from tests.support import checks
from tests.support.registry import CHECKED, PRIVATE, SETTINGS

every = checks.each(SETTINGS)
private = checks.each(PRIVATE)

#: Check that is expected to fail -> reason.
EXPECTED_FAILURES = {
    kind: {
        "check_fit2d_predict1d": (
            "predict(times) is lifelines' and takes a one-dimensional argument for times, also "
            "after a fit on two-dimensional X"
        )
    }
    for kind in (
        DPAalenJohansenFitter,
        DPKaplanMeierFitter,
        DPWeibullFitter,
        SampleAggregateWeibullFitter,
    )
}


def _once_a_class():
    """One estimator of each class is quick."""
    seen = set()
    for setting in CHECKED:
        marks = [pytest.mark.slow] if setting.kind in seen else []
        seen.add(setting.kind)
        yield pytest.param(setting, marks=marks, id=str(setting))


@pytest.mark.parametrize("setting", list(_once_a_class()))
def test_scikit_learn_checks(setting):
    check_estimator(
        setting.checkable(),
        expected_failed_checks=EXPECTED_FAILURES.get(setting.kind, {}),
        on_skip=None,
    )


def parameters(estimator):
    """Return all parameters but the ledger, which remembers what a fit has cost."""
    shown = estimator.get_params(deep=False)
    return checks.leaves({n: value for n, value in shown.items() if n != "accountant"})


def fitted(setting, **changes):
    data = setting.data()
    outcome = checks.fit(
        setting.make(**{"random_state": 3, **changes}), data.X, data.y, data.options
    )
    assert outcome.error is None, outcome.error
    return outcome.fitted


@every
def test_parameters_are_kept_as_they_are(setting):
    """By clones, which share the ledger, and by fits."""
    ledger = PrivacyAccountant(rehearsal=True)
    model = setting.make(3, accountant=ledger)
    before = parameters(model)
    other = clone(model)
    assert parameters(other) == before
    if setting.is_private:
        assert other.accountant is ledger
    data = setting.data()
    assert checks.fit(model, data.X, data.y, data.options).fitted is model
    assert parameters(model) == before


@private
def test_only_what_leads_is_positional(setting):
    positional = [
        name
        for name, one in inspect.signature(setting.kind).parameters.items()
        if one.kind is not one.KEYWORD_ONLY
    ]
    assert set(positional) <= {"estimator", "param_grid", "epsilon"}


@private
def test_one_fit_is_one_entry_and_a_seed_is_one_release(setting):
    ledger = PrivacyAccountant(rehearsal=True)
    one, other = (fitted(setting, accountant=ledger) for _ in range(2))
    entries = ledger.entries()
    assert entries["epsilon"].tolist() == [setting.epsilon] * 2
    assert set(entries["estimator"]) == {setting.kind.__name__}
    assert one.guarantee_.epsilon == setting.epsilon
    ledger.verify(one.release_, other.release_)
    first, second = (replace(model.release_, receipt=None) for model in (one, other))
    assert first.to_json() == second.to_json()
    assert one.guarantee_.status in ("seeded", "none")  # a seed is never proved


@private
def test_a_seed_is_warned_of_and_entropy_is_not(setting):
    data = setting.data()
    seeded, *unseeded = (
        checks.fit(setting.make(seed), data.X, data.y, data.options) for seed in (3, None, None)
    )
    for one in (seeded, *unseeded):
        checks.forget_accountant(one.fitted)
    leaks = [sum(w[0] == "PrivacyLeakWarning" for w in one.warned) for one in (seeded, *unseeded)]
    status = [one.fitted.guarantee_.status for one in (seeded, *unseeded)]
    if np.isinf(setting.epsilon):
        assert (leaks, status) == ([0] * 3, ["none"] * 3)
        assert unseeded[0].fitted.release_ == seeded.fitted.release_
    elif leaks[1] == 0:
        assert leaks == [1, 0, 0]
        assert status[0] == "seeded"
        assert status[1] in ("proved", "asymptotic")
    else:  # for another reason, which is in the name of the setting
        assert re.search("from y|from the records|published|prior|psgld|mala", setting.name)
    if np.isfinite(setting.epsilon):
        # Baselines with the whole range for a sensitivity end up at one of its four corners mostly:
        # all of 60 at the same one with a probability below 1e-15.
        first = unseeded[0].fitted.release_
        again = (checks.fit_data(setting, data) for _ in range(60))
        assert any(one.fitted.release_ != first for one in chain(unseeded[1:], again))


@private
def test_a_budget_that_does_not_suffice_is_left_as_it_is(setting):
    ledger = PrivacyAccountant(min(setting.epsilon, 1e6) / 2, rehearsal=True)
    data = setting.data()
    model = setting.make(3, accountant=ledger)
    outcome = checks.fit(model, data.X, data.y, data.options)
    # Who reads the classes from y is refused by a ledger with any limit.
    refusal = (
        RuntimeError if re.search("from y|from the records", setting.name) else BudgetExceededError
    )
    assert isinstance(outcome.error, refusal)
    assert ledger.rehearsed() == 0.0
    checks.check_nothing_kept(outcome)


@private
@pytest.mark.parametrize(
    ("name", "value"), [("epsilon", -1.0), ("epsilon", "1"), ("random_state", 0.5)]
)
def test_parameters_are_refused_by_name_before_any_charge(setting, name, value):
    data = setting.data()
    outcome = checks.fit(setting.make(3).set_params(**{name: value}), data.X, data.y, data.options)
    assert isinstance(outcome.error, ValueError | TypeError)
    assert name in str(outcome.error)
    assert outcome.charges == []
    checks.check_nothing_kept(outcome)


@every
def test_a_copy_says_what_the_original_says(setting):
    one = fitted(setting)
    other = pickle.loads(pickle.dumps(one))
    assert repr(other) == repr(one)
    X = setting.data().X
    for name in ("predict", "predict_proba", "transform"):
        if hasattr(one, name):
            np.testing.assert_array_equal(getattr(other, name)(X), getattr(one, name)(X))


@every
def test_names_of_columns_are_kept_and_checked(setting):
    data = setting.data()
    if np.ndim(data.X) != 2:
        pytest.skip("durations have no columns")
    X = pd.DataFrame(data.X)
    if setting.by_position:
        X.columns = [f"column {j}" for j in range(X.shape[1])]
    model = checks.fit(setting.make(3), X, data.y, data.options).fitted
    assert list(model.feature_names_in_) == list(X)
    asked = [name for name in ("predict", "transform") if hasattr(model, name)]
    if not asked:
        return
    ask = getattr(model, asked[0])
    # Which finds columns by name.
    if setting.kind is PublicColumns or setting.name == "PrivateSearchCV: raw pipeline":
        np.testing.assert_array_equal(ask(X[list(X)[::-1]]), ask(X))
        return
    ask(X)
    with pytest.raises(ValueError, match="feature names"):
        ask(X[list(X)[::-1]])
