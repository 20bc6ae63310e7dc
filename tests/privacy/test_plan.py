"""Tests of what a ledger says of fits beforehand: it is what they charge."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline

from skdpsurv import DPKaplanMeierFitter, DPLogisticRegression, PrivateSearchCV, PublicBoundsScaler

from .costs import cost

X = np.random.default_rng(0).uniform(-1.0, 1.0, (120, 2))
Y = (np.arange(120) % 2).astype(int)


def model(**parameters):
    return DPLogisticRegression(0.25, classes=[0, 1], **parameters)


def estimators():
    scaled = make_pipeline(PublicBoundsScaler(), model())
    grid = {"alpha": [0.1, 1.0]}
    piped = {"dplogisticregression__epsilon": [0.125, 0.25]}
    return [
        (model(), X, Y),
        (scaled, X, Y),
        (GridSearchCV(model(), grid, cv=2), X, Y),
        (GridSearchCV(scaled, piped, cv=3, refit=False), X, Y),
        (RandomizedSearchCV(model(), {"alpha": [0.1, 1.0, 2.0]}, n_iter=2, cv=2), X, Y),
        (PrivateSearchCV(model(), grid, epsilon=1.0), X, Y),
        (DPKaplanMeierFitter(epsilon=0.5, max_time=130.0), np.arange(120.0), Y == 1),
    ]


@pytest.mark.parametrize("place", range(len(estimators())))
def test_it_is_what_the_fits_charge(make, place):
    accountant = make(50.0)
    accountant.charge(cost(1.0))
    estimator, data, y = estimators()[place]
    [row] = accountant.plan([(estimator, data, y)]).to_dict("records")
    assert len(accountant.entries()) == 1
    inner = estimator
    while hasattr(inner, "steps") or not hasattr(inner, "accountant"):
        inner = inner.steps[-1][1] if hasattr(inner, "steps") else inner.estimator
    inner.accountant = accountant
    estimator.fit(data, y)
    charged = accountant.entries().iloc[1:]
    assert row["charges"] == row["allowed"] == len(charged)
    assert row["epsilon"] == charged["epsilon"].sum()
    assert row["remaining"] == accountant.remaining()


def test_one_after_another(make):
    accountant = make(1.0)
    table = accountant.plan([(model(), X, Y)] * 3 + [(GridSearchCV(model(), {}, cv=2), X, Y)])
    assert table["allowed"].tolist() == [1, 1, 1, 1]
    assert table["remaining"].tolist() == [0.75, 0.5, 0.25, 0.0]
    seeded = accountant.plan([(model(random_state=1), X, Y)]).iloc[0]
    assert (seeded["status"], seeded["allowed"]) == ("seeded", 0)
    assert accountant.plan([]).empty
    assert len(accountant.entries()) == 0


def test_something_else(make):
    with pytest.raises(TypeError, match="private estimator"):
        make(1.0).plan([(LogisticRegression(), X, Y)])
