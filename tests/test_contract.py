"""What every estimator keeps to, in every setting of the registry."""

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
from skdpsurv.dp.references import OWN_RECORD
from skdpsurv.published import SampleAggregateWeibullFitter
from tests.support import checks
from tests.support.registry import CHECKED, PRIVATE, SETTINGS

every = checks.each(SETTINGS)
private = checks.each(PRIVATE)

#: Checks that are expected to fail for some -> reason.
CURVES = (DPAalenJohansenFitter, DPKaplanMeierFitter)
BY_TIMES = (*CURVES, DPWeibullFitter, SampleAggregateWeibullFitter)
EXPECTED_FAILURES = {
    "check_fit2d_predict1d": "predict(times) is lifelines', also after a fit on two-dimensional X"
}


def _once_a_class():
    """One estimator of each class is quick."""
    for place, setting in enumerate(CHECKED):
        again = setting.kind in {one.kind for one in CHECKED[:place]}
        marks = [pytest.mark.slow] if again else []
        yield pytest.param(setting, marks=marks, id=str(setting))


@pytest.mark.parametrize("setting", list(_once_a_class()))
def test_scikit_learn_checks(setting):
    expected = EXPECTED_FAILURES if setting.kind in BY_TIMES else {}
    check_estimator(setting.checkable(), expected_failed_checks=expected, on_skip=None)


def parameters(estimator):
    """Return all parameters but the ledger, which remembers what a fit has cost."""
    shown = estimator.get_params(deep=False)
    return checks.leaves({n: value for n, value in shown.items() if n != "accountant"})


def fitted(setting, **changes):
    data, model = setting.data(), setting.make(**{"random_state": 3, **changes})
    outcome = checks.fit(model, data.X, data.y, data.options)
    assert outcome.error is None, outcome.error
    return outcome.fitted


@every
def test_parameters_are_kept_and_a_copy_says_what_the_original_says(setting):
    """By clones, which share the ledger, and by fits."""
    ledger, data = PrivacyAccountant(rehearsal=True), setting.data()
    model = setting.make(3, accountant=ledger)
    before, other = parameters(model), clone(model)
    assert parameters(other) == before
    assert not setting.is_private or other.accountant is ledger
    assert checks.fit(model, data.X, data.y, data.options).fitted is model
    assert parameters(model) == before
    copy = pickle.loads(pickle.dumps(model))
    assert repr(copy) == repr(model)
    for name in ("predict", "predict_proba", "transform"):
        if hasattr(model, name):
            found, expected = (getattr(one, name)(data.X) for one in (copy, model))
            np.testing.assert_array_equal(found, expected)


def test_only_what_leads_is_positional():
    for kind in {setting.kind for setting in PRIVATE}:
        parameters = inspect.signature(kind).parameters.values()
        positional = {one.name for one in parameters if one.kind is not one.KEYWORD_ONLY}
        assert positional <= {"estimator", "param_grid", "epsilon"}, kind


@private
def test_one_fit_is_one_entry_and_a_seed_is_one_release(setting):
    ledger = PrivacyAccountant(rehearsal=True)
    one, other = (fitted(setting, accountant=ledger) for _ in range(2))
    entries = ledger.entries()
    assert entries["epsilon"].tolist() == [setting.epsilon] * 2
    assert set(entries["estimator"]) == {setting.kind.__name__}
    assert one.guarantee_.epsilon == setting.epsilon
    assert OWN_RECORD in one.guarantee_.assumptions
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
        reasons = "from y|from the records|published|prior|spreads of a table|psgld|mala"
        assert re.search(reasons, setting.name)
    if np.isfinite(setting.epsilon):
        # Baselines with the whole range for a sensitivity end up at one of its four corners mostly:
        # all of 60 at the same one with a probability below 1e-15.
        first = unseeded[0].fitted.release_
        again = (checks.fit_data(setting, data) for _ in range(60))
        assert any(one.fitted.release_ != first for one in chain(unseeded[1:], again))


@private
def test_a_budget_that_does_not_suffice_is_left_as_it_is(setting):
    ledger = PrivacyAccountant(min(setting.epsilon, 1e6) / 2, rehearsal=True)
    data, model = setting.data(), setting.make(3, accountant=ledger)
    outcome = checks.fit(model, data.X, data.y, data.options)
    # Who reads the classes from y is refused by a ledger with any limit.
    reads = re.search("from y|from the records", setting.name)
    assert isinstance(outcome.error, RuntimeError if reads else BudgetExceededError)
    assert ledger.rehearsed() == 0.0
    checks.check_nothing_kept(outcome)


@private
def test_parameters_are_refused_by_name_before_any_charge(setting):
    data = setting.data()
    for name, value in (("epsilon", -1.0), ("epsilon", "1"), ("random_state", 0.5)):
        model = setting.make(3).set_params(**{name: value})
        outcome = checks.fit(model, data.X, data.y, data.options)
        assert isinstance(outcome.error, ValueError | TypeError)
        assert name in str(outcome.error)
        assert outcome.charges == []
        checks.check_nothing_kept(outcome)


@checks.each([setting for setting in SETTINGS if setting.one_of_its_plan])
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
