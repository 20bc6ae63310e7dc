"""Step functions, against those of scikit-survival."""

import numpy as np
import pytest
import sksurv.functions

from skdpsurv.survival.step_function import StepFunction

X, Y = np.array([1.0, 2.5, 4.0]), np.array([0.9, 0.5, 0.2])
SETTINGS = [{}, {"a": 2.0, "b": -1.0}, {"domain": (None, None)}, {"domain": (0.5, 3)}]


def test_it_has_the_interface_of_scikit_survival():
    for setting in SETTINGS:
        ours, theirs = StepFunction(X, Y, **setting), sksurv.functions.StepFunction(X, Y, **setting)
        assert ours.domain == theirs.domain
        for name in ("x", "y", "a", "b"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
        times = np.linspace(*ours.domain, 41)
        np.testing.assert_array_equal(ours(times), theirs(times))
        np.testing.assert_array_equal(ours(list(X[:2])), theirs(list(X[:2])))
        assert np.ndim(ours(2.5)) == np.ndim(theirs(2.5)) == 0
        assert ours(2.5) == theirs(2.5)
        assert ours == StepFunction(X, Y, **setting)
        assert ours != StepFunction(X + 1.0, Y, **setting)
        assert ours != X
        for beyond in (ours.domain[0] - 1e-9, ours.domain[1] + 1e-9, np.nan, np.inf):
            for function in (ours, theirs):
                with pytest.raises(ValueError, match="x must be"):
                    function([2.0, beyond])
