"""What a ledger says beforehand of the charges of fits."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, LeaveOneGroupOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdpsurv import DPLogisticRegression, FrameChunks, PrivacyAccountant
from skdpsurv.base.pipelines import charges_of
from skdpsurv.data import PublicBoundsScaler
from skdpsurv.model_selection import PrivateSearchCV

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(-0.5, 0.5, (60, 2)), RNG.integers(0, 2, 60).astype(float)
BAD = np.where(np.arange(60) == 7, np.nan, Y)
WHOSE = np.arange(60) // 2


def model(**settings):
    return DPLogisticRegression(**{"epsilon": 1.0, "classes": [0, 1], **settings})


def planned(accountant, *fit):
    [row] = accountant.plan([fit]).to_dict("records")
    return row["charges"], row["epsilon"], row["status"], row["allowed"]


def test_charges_in_their_order_and_the_room_for_them():
    grid, scaled = {"alpha": [0.1, 1.0]}, make_pipeline(PublicBoundsScaler(-1.0, 1.0), model())
    for charges in (False, True):
        accountant = PrivacyAccountant(4.5, charge_refusals=charges)
        fits = [
            *((model(), X, BAD), (scaled, X, BAD), (GridSearchCV(model(), grid, cv=2), X, BAD)),
            *((PrivateSearchCV(model(), grid, epsilon=2.0), X, Y), (model(), X, BAD)),
        ]
        table = accountant.plan(fits)
        assert table["charges"].tolist() == [1, 1, 5, 1, 1]
        assert table["epsilon"].tolist() == [1.0, 1.0, 5.0, 2.0, 1.0]
        assert table["allowed"].tolist() == [1, 1, 2, 0, 0]
        assert table["remaining"].tolist() == [3.5, 2.5, 0.5, 0.5, 0.5]
        assert accountant.spent() == 0.0


def test_no_record_is_looked_at_where_refusals_are_charged():
    """Whether a plan is accepted would be an answer that nobody is charged for."""
    grid = {"alpha": [0.1, 1.0]}
    groups = GridSearchCV(model(), grid, cv=LeaveOneGroupOut())
    free, account = PrivacyAccountant(9.0), PrivacyAccountant(9.0, charge_refusals=True)
    chunks = FrameChunks([pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y})])
    looks = [
        (model(classes=None), X, Y),
        (PrivateSearchCV(model(classes=None), grid), X, Y),
        (PrivateSearchCV(model(), {"classes": [[0, 1], None]}), X, Y),
        (make_pipeline(StandardScaler(), model()), X, Y),
        (make_pipeline(PublicBoundsScaler(-1.0, 1.0), model(classes=None)), X, Y),
        (GridSearchCV(model(classes=None), grid), X, Y),
        (groups, X, Y, {"groups": WHOSE}),
        (GridSearchCV(model(), grid, cv=GroupKFold(2)), X, Y, {"groups": WHOSE}),
        (model(data_norm=1.0), chunks[["a", "b"]], chunks["y"]),
    ]
    for fit in looks:
        assert planned(free, *fit)[0] >= 1
        with pytest.raises(ValueError, match="a plan must not look at records where the ledger"):
            account.plan([fit])
    assert planned(free, *looks[6])[0] == 30 * 2 + 1
    assert account.spent() == free.spent() == 0.0
    assert "_settled" not in vars(looks[1][0])


def test_people_are_counted_only_where_that_is_free():
    for charges, n_records in ((False, 30), (True, 60)):
        accountant = PrivacyAccountant(9.0, charge_refusals=charges)
        [asked] = charges_of(model(), X, Y, {"person": WHOSE}, ledger=accountant)
        assert asked.public_inputs["n_records"] == n_records
        assert asked.neighbours == "replace-one-person"
        nobody = {"person": [None] * 60}
        if charges:
            assert planned(accountant, model(), X, Y, nobody)[:2] == (1, 1.0)
        else:
            with pytest.raises(ValueError, match="person must"):
                accountant.plan([(model(), X, Y, nobody)])


def test_what_is_no_private_fit_is_refused():
    with pytest.raises(TypeError, match="must be a private estimator"):
        PrivacyAccountant(1.0).plan([(LogisticRegression(), X, Y)])


@pytest.mark.slow
def test_in_a_process_that_has_imported_nothing_else():
    code = (
        "import numpy as np\n"
        "from skdpsurv import DPWeibullFitter, PrivacyAccountant\n"
        "fit = DPWeibullFitter(1.0, max_time=9.0), None, np.arange(1.0, 9.0)\n"
        "print(PrivacyAccountant(2.0).plan([fit]).loc[0, 'remaining'])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout == "1.0\n", found.stderr
