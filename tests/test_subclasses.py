"""Subclasses of estimators, with more parameters or with others, work as in scikit-learn."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone

from skdpsurv import PrivacyAccountant, Release
from skdpsurv.model_selection import PrivateSearchCV
from tests.support import checks
from tests.support.registry import REPRESENTATIVE, beyond_release

ONE_OF_EACH = {setting.kind: setting for setting in REPRESENTATIVE[::-1] if setting.is_private}


def one_more(kind):
    """Return a subclass with one more parameter, which has no rule."""

    class OneMore(kind):
        def __init__(self, note=0, **options):
            super().__init__(**options)
            self.note = note

    more = inspect.Parameter("note", inspect.Parameter.KEYWORD_ONLY, default=0)
    own = inspect.signature(kind.__init__)
    OneMore.__init__.__signature__ = own.replace(parameters=[*own.parameters.values(), more])
    return OneMore


def others(kind):
    """Return a subclass that must be told a name, and takes what nobody can list."""

    class Others(kind):
        def __init__(self, name, **options):
            super().__init__(**options)
            self.name = name

    return Others


@pytest.mark.parametrize("make", [one_more, others])
@pytest.mark.parametrize("setting", ONE_OF_EACH.values(), ids=lambda one: one.kind.__name__)
def test_a_fit_of_a_subclass_is_that_of_the_class(setting, make):
    stated = {**setting.parameters, "epsilon": setting.epsilon, "random_state": 0}
    data, kind = setting.data(), make(setting.kind)
    name, value = ("note", object()) if make is one_more else ("name", len)
    model = kind(**{name: value}, **stated)
    model.accountant = PrivacyAccountant(rehearsal=True)
    ours, theirs = (
        checks.fit(one, data.X, data.y, data.options) for one in (setting.kind(**stated), model)
    )
    assert ours.error is None
    assert theirs.error is None, repr(theirs.error)
    assert theirs.charges == ours.charges
    assert getattr(model, name) is value
    for key, numbers in ours.fitted.release_.values.items():
        np.testing.assert_array_equal(numbers, model.release_.values[key])
    again = None
    if make is one_more:
        assert model.get_params(deep=False).keys() == {
            name,
            *setting.kind(**stated).get_params(deep=False),
        }
        assert hasattr(clone(model), name)
    if make is one_more and setting.kind is not PrivateSearchCV:
        release = Release.from_json(model.release_.to_json())
        again = kind.from_release(release, **beyond_release(model, data))
        assert again.note == 0
    if hasattr(model, "predict") and data.X is not None:
        for one in filter(None, (model, again)):
            found, expected = one.predict(data.X), ours.fitted.predict(data.X)
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("setting", ONE_OF_EACH.values(), ids=lambda one: one.kind.__name__)
def test_parameters_of_the_class_keep_their_rules(setting):
    """Those that no constructor of a subclass names, too."""

    class Fixed(setting.kind):
        def __init__(self, **options):
            super().__init__(**options)

    data = setting.data()
    model = Fixed(**{**setting.parameters, "random_state": "never"})
    outcome = checks.fit(model, data.X, data.y, data.options)
    assert "random_state must be" in str(outcome.error)
    assert not outcome.charges


def test_every_parameter_of_the_package_has_a_rule():
    for kind in ONE_OF_EACH:
        assert {*inspect.signature(kind).parameters} == {*kind._ruled()}, kind
