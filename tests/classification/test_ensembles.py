"""Ensembles of scikit-learn, which number the classes before they fit their members."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier

from skdpsurv import DPLogisticRegression, PrivacyAccountant

X = np.random.default_rng(0).uniform(-0.5, 0.5, (400, 3))
TWO = np.where(X[:, 0] > 0, "yes", "no")
THREE = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.2, 0.2])]


def member(classes, **parameters):
    return DPLogisticRegression(5.0, classes=classes, data_norm=1.0, **parameters)


@pytest.mark.parametrize(
    ("ensemble", "n_fits", "y", "classes"),
    [
        (lambda one: BaggingClassifier(one, 2, bootstrap=False), 2, TWO, [0, 1]),
        (lambda one: VotingClassifier([("a", one), ("b", one)], voting="soft"), 2, TWO, [0, 1]),
        (lambda one: StackingClassifier([("a", one)], one, cv=2), 4, TWO, [0, 1]),
        (OneVsRestClassifier, 1, TWO, [0, 1]),
        (OneVsOneClassifier, 1, TWO, [0, 1]),
        (lambda one: OutputCodeClassifier(one, random_state=0), 3, THREE, [-1, 1]),
        (lambda one: BaggingClassifier(one, 2, bootstrap=False), 2, THREE, [0, 1, 2]),
        (lambda one: VotingClassifier([("a", one)]), 1, THREE, [0, 1, 2]),
        (lambda one: StackingClassifier([("a", one)], one, cv=2), 4, THREE, [0, 1, 2]),
        (OneVsRestClassifier, 3, THREE, [0, 1]),
        (OneVsOneClassifier, 3, THREE, [0, 1]),
        # These pass labels on as they are.
        (lambda one: CalibratedClassifierCV(one, cv=2), 2, TWO, ["no", "yes"]),
        (FixedThresholdClassifier, 1, TWO, ["no", "yes"]),
    ],
)
def test_ensembles(ensemble, n_fits, y, classes):
    """With the classes that the guide says; each member is charged, and others are told of them."""
    ledger = PrivacyAccountant(rehearsal=True)
    fitted = ensemble(member(classes, accountant=ledger)).fit(X, y)
    assert {*fitted.predict(X)} <= {*y}
    assert len(ledger.entries()) == n_fits
    other = ["one", "other"] if len(classes) == 2 else ["one", "other", "third"]
    with pytest.raises(ValueError, match=r"state classes=\[0, 1"):
        ensemble(member(other)).fit(X, y)
