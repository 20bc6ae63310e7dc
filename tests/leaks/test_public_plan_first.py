"""What is public is looked at first, so that no fit can ask about records without being charged."""

import numpy as np
import pytest

from skdpsurv import DPLogisticRegression, PrivacyAccountant
from skdpsurv.base.pipelines import private_step
from skdpsurv.model_selection import PrivateSearchCV
from tests.support import checks
from tests.support.registry import PRIVATE, ROW, SURVIVAL


def faulty(setting):
    """Yield data in which one private record has no place in the public domain, and good data."""
    data = setting.data()
    yield data.X, data.y
    for value in (np.nan, np.inf, -np.inf) if isinstance(data.X, np.ndarray) else ():
        X = data.X.astype(float)
        X[ROW] = value
        if X.ndim == 2 or value is not np.nan:
            yield X, data.y
    of_times = data.y is not None and data.y.dtype == SURVIVAL
    for value in (np.nan, np.inf, -1.0) if of_times else (np.nan, None, 17):
        if data.y is not None:
            y = data.y.copy() if of_times else data.y.astype(object)
            (y["time"] if of_times else y)[ROW] = value
            yield data.X, y


def inner_kind(setting):
    model = setting.make(3)
    while isinstance(model, PrivateSearchCV):
        model = private_step(model.estimator)[1]
    return type(model)


@checks.each(PRIVATE, checks.PLANS)
def test_a_plan_that_fails_says_the_same_of_all_records(setting, monkeypatch):
    def fails(self, shape):
        raise ValueError("no such plan.")

    monkeypatch.setattr(inner_kind(setting), "_plan", fails)
    reads_labels = "classes from y" in setting.name  # which needs a ledger without limit
    for X, y in list(faulty(setting))[: 1 if reads_labels else None]:
        outcome = checks.fit(setting.make(3), X, y, setting.data().options)
        assert str(outcome.error) == "no such plan.", outcome.error
        assert outcome.charges == []


@checks.each(PRIVATE, checks.PLANS)
def test_refusals_are_charged_where_the_ledger_says_so(setting):
    """Once, and at the price of the fit; what is accepted is charged once, too."""
    for X, y in faulty(setting):
        accountant = PrivacyAccountant(charge_refusals=True)
        outcome = checks.fit(
            setting.make(None, accountant=accountant), X, y, setting.data().options
        )
        if outcome.error is not None and "classes from y" in setting.name:
            continue  # a refusal of the labels, which are released as they are
        assert len(outcome.charges) == 1, outcome.error
        assert outcome.charges[0] >= setting.epsilon


def test_the_label_of_one_person_cannot_be_asked_for():
    """By a plan that always fails: it was found, uncharged, by bisection."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.5, 0.5, (60, 3)), rng.integers(0, 2, 60)
    y[7] = 1733
    said = set()
    for labels in ([0, 1], [0, 1, 1733], [0, 1, *range(1700, 1800)]):
        accountant = PrivacyAccountant(0.1)
        model = DPLogisticRegression(0.1, classes=labels, alpha=1e300, accountant=accountant)
        with pytest.raises(ValueError, match="double precision") as refusal:
            model.fit(X, y)
        said.add(str(refusal.value))
        assert accountant.spent() == 0.0
    assert len(said) == 1


def test_labels_are_read_only_if_the_ledger_allows_it():
    """To read the classes from y is to release them."""
    X, y = np.eye(6), np.array([0, 1, 0, 1, 0, np.nan])
    with pytest.raises(RuntimeError, match="budget"):
        DPLogisticRegression(1.0, accountant=PrivacyAccountant(5.0)).fit(X, y)
