"""Past the charge nothing fails by the records, whatever NumPy and SciPy were told to raise."""

import warnings
from collections import defaultdict

import numpy as np
import pytest
from scipy import special
from sklearn.exceptions import ConvergenceWarning

from skdpsurv import PrivacyAccountant, PrivacyLeakWarning, PublicInputWarning
from skdpsurv.dp.plan import Plan
from tests.support import checks
from tests.support.registry import PRIVATE


def data_sets(setting):
    """Yield neighbours with one extreme record, and sets of nothing but extreme ones."""
    good = setting.data()
    yield from good.neighbours()[1:]
    for records in (good.extremes, good.extremes[1:3]):
        data = good
        for place in np.flatnonzero(good.private):
            data = data.replaced(*records[place % len(records)], row=place)
        yield data


def strict_fit(setting, data, seed):
    """Fit where every floating-point event raises, and every warning but of what is public."""
    outcome, accountant = checks.Outcome(), PrivacyAccountant(rehearsal=True)
    model = setting.make(seed, accountant=accountant)
    strict = np.errstate(all="raise"), special.errstate(all="raise"), warnings.catch_warnings()
    with strict[0], strict[1], strict[2], checks.quiet():
        warnings.simplefilter("error")
        # The last is of an estimator inside, on public records or with released weights.
        for public in (PrivacyLeakWarning, PublicInputWarning, ConvergenceWarning):
            warnings.simplefilter("ignore", public)
        try:
            outcome.fitted = model.fit(data.X, data.y, **data.options)
        except Exception as error:
            outcome.error = error
    outcome.charges = checks.charged(accountant)
    if outcome.fitted is not None:
        checks.forget_accountant(outcome.fitted)
    return outcome


@checks.each(PRIVATE)
def test_arithmetic_that_raises_does_not_show(setting):
    """Extreme records are fitted, charged once, and to the same release as anywhere.

    Without such settings nothing is said of them, or the same of all whose classes are the same:
    classes that are read from y are taken as public, as the guarantee says.
    """
    said = defaultdict(list)
    for place, data in enumerate(data_sets(setting)):
        strict = strict_fit(setting, data, seed=place)
        assert strict.charges == [setting.epsilon]
        if setting.diverges and strict.error is not None:
            assert "has diverged" in str(strict.error)
            continue
        assert strict.error is None, (place, repr(strict.error))
        usual = checks.fit_data(setting, data, random_state=place)
        assert usual.error is None, (place, repr(usual.error))
        classes = repr(getattr(usual.fitted, "classes_", None))
        said[classes].append([w for w in usual.warned if w[0] != ConvergenceWarning.__name__])
        expected = usual.fitted.release_.values
        for name, value in strict.fitted.release_.values.items():
            np.testing.assert_array_equal(value, expected[name])
    assert all(one == alike[0] for alike in said.values() for one in alike)


@checks.each([s for s in PRIVATE if s.representative])
def test_a_fit_that_dies_while_it_runs_stays_charged(setting, monkeypatch):
    def dies(*arguments):
        raise MemoryError

    monkeypatch.setattr(Plan, "run", dies)
    accountant, data = PrivacyAccountant(rehearsal=True), setting.data()
    with checks.quiet(), pytest.raises(MemoryError):
        setting.make(0, accountant=accountant).fit(data.X, data.y, **data.options)
    assert accountant.entries()["epsilon"].tolist() == [setting.epsilon]
