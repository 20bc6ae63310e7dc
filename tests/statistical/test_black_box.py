"""Black-box audit: nobody tells two neighbouring data sets apart better than epsilon allows.

A correct mechanism fails an audit with probability at most 1e-7, which is below 1e-6 for all of
this file (seeds are fixed anyway). A mechanism with a quarter of the noise must be caught by the
same audit.
"""

import pytest

from skdpsurv.audit import audit_epsilon
from tests.support.estimators import logistic as perturbed
from tests.support.hazard_attacks import PAIRS, audit
from tests.support.planted_defects import less_gaussian_noise, less_vector_noise

#: Fits of either data set: enough to find a bound above 4 or, where epsilon is 1, above 3.
TRIALS = {
    name: 3000 if "epsilon" in parameters else 1000 for name, (parameters, *_) in PAIRS.items()
}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["obj_pert", "out_pert"])
@pytest.mark.parametrize("name", PAIRS)
def test_neighbours_cannot_be_told_apart(name, method):
    parameters, one, other = PAIRS[name]
    bound, epsilon = audit({**parameters, "method": method}, one, other, TRIALS[name])
    assert bound <= epsilon


@pytest.mark.slow
@pytest.mark.parametrize("method", ["obj_pert", "out_pert"])
@pytest.mark.parametrize("name", ["event or not", "large norm", "probit"])
def test_a_cheat_is_caught(name, method):
    parameters, one, other = PAIRS[name]
    # Where epsilon is 1 a bound above 1 takes as many fits as one near it.
    with less_vector_noise(1 / 4):
        bound, epsilon = audit({**parameters, "method": method}, one, other, 3000)
    assert bound > epsilon


@pytest.mark.slow
@pytest.mark.parametrize(("part", "passed"), [(1.0, True), (0.25, False)])
def test_with_a_delta(part, passed):
    """One record, of either label. A pair at delta sees a quarter of the noise, and not a half."""
    model = perturbed(classes=[0, 1], method="out_pert", delta=0.05, alpha=60.0, max_residual=0.5)
    options = {"n_trials": 3000, "random_state": 0, "confidence": 1.0 - 1e-7}
    with less_gaussian_noise(part):
        result = audit_epsilon(model, ([[1.0]], [0]), ([[1.0]], [1]), **options)
    assert result.delta == 0.05
    assert result.passed == passed
