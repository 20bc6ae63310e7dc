"""Black-box audit of the whole search, on the smallest estimator that spends its epsilon whole.

Two neighbouring data sets are searched many times; from the rates of an event stated beforehand,
Clopper-Pearson bounds give a lower bound on epsilon. A correct search passes each audit with
probability above 1 - 2e-7 (below 1e-6 for all of this file; seeds are fixed anyway), and one whose
runs spend all of epsilon must be caught by the same audit.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy import stats
from sklearn.utils.validation import validate_data

from skdpsurv.base import PrivateEstimator
from skdpsurv.data.shape import public_shape
from skdpsurv.dp import plan, random_source
from skdpsurv.dp.checks import boolean
from skdpsurv.dp.plan import Mechanism, Plan
from skdpsurv.dp.privacy_cost import disjoint_cost
from skdpsurv.dp.proofs import PROOFS, name_of
from skdpsurv.model_selection.strategies import Repeat
from tests.support.estimators import search_of

CONFIDENCE = 1e-7
#: Fewer where the search spends all of epsilon on each training.
TRIALS = {"split": 1000, "repeat": 3000}
N = 12


@dataclass(frozen=True, eq=False)
class Response(Mechanism):
    """An answer that is wrong with odds exp(-epsilon)."""

    price: float

    name = "response"
    proof = ""

    def run(self, context, X, source):
        wrong = source.generator.random() < 1 / (1 + np.exp(self.price))
        return {"answer": float(bool((X == 1).any()) != wrong)}


PROOFS[name_of(Response)] = "noise.md#laplace-on-a-lattice"


class Answer(PrivateEstimator):
    """Randomised response: says whether any record is 1, wrongly with odds exp(-epsilon)."""

    _rules: ClassVar = {"flip": boolean}

    def __init__(self, epsilon=1.0, *, flip=False, random_state=None, accountant=None):
        self.epsilon = epsilon
        self.flip = flip
        self.random_state = random_state
        self.accountant = accountant

    def fit(self, X, y=None):
        return self._fit(X, y)

    def _shape(self, X, y):
        return public_shape(self, X)

    def _plan(self, shape):
        return Plan(Response(float(self.epsilon)), float(self.epsilon))

    def _read(self, shape, X, y):
        return validate_data(self, X, reset=False)

    def _release_parameters(self, shape):
        return {"flip": self.flip}

    def _set_fitted(self, release):
        self.answer_ = bool(release.values["answer"])


def against_no(model, X, y):
    """A loss of the model alone: the search prefers the answer yes."""
    return np.full(len(X), 1.0 - model.answer_)


def against_ones(model, X, y):
    """A loss of records: those that are 1 speak against one of the candidates."""
    return (X[:, 0] == 1).astype(float) * model.flip


def place(part, **parameters):
    """Return the place of a record in some part of the seeded split."""
    split = random_source(parameters["random_state"], purpose="split")
    sizes = {"epsilon": 1.0, "n_candidates": 2, "holdout": 0.5}
    parts = Repeat(**sizes, eta=1.0, expected_runs=6.0).parts(N, split)
    return parts.scoring[0] if part == "scoring" else parts.training[0][0]


def rates(event, strategy, loss, part, value):
    count = 0
    for seed in range(TRIALS[strategy]):
        search = search_of(
            Answer(),
            {"flip": [False, True]},
            strategy=strategy,
            scoring=loss,
            holdout=0.5,
            expected_runs=6.0,
            random_state=2 * seed + value,
        )
        X = np.zeros((N, 1))
        # The order is public: the audit may put the record that differs where it likes.
        X[place(part, random_state=search.random_state)] = value
        count += event(search.fit(X).best_estimator_)
    return count


def audit(event, **parameters):
    """Return a lower bound on epsilon."""
    counts = np.array([rates(event, value=value, **parameters) for value in (0, 1)])
    trials = TRIALS[parameters["strategy"]]
    low = stats.beta.ppf(CONFIDENCE, counts, trials - counts + 1)
    high = stats.beta.ppf(1 - CONFIDENCE, counts + 1, trials - counts)
    return max(np.log(low[0] / high[1]), np.log(low[1] / high[0]))


CASES = {
    "what was trained": (against_no, "training", lambda best: not best.answer_),
    "what was scored": (against_ones, "scoring", lambda best: best.flip),
}


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["split", "repeat"])
@pytest.mark.parametrize("case", CASES)
def test_nobody_tells_neighbours_apart(strategy, case):
    loss, part, event = CASES[case]
    assert audit(event, strategy=strategy, loss=loss, part=part) <= 1.0


@pytest.mark.slow
def test_runs_that_spend_all_of_epsilon_are_caught(monkeypatch):
    monkeypatch.setattr(Repeat, "run_epsilon", property(lambda self: self.epsilon))
    loss, part, event = CASES["what was trained"]
    with pytest.raises(ValueError, match="must cost no more"):
        audit(event, strategy="repeat", loss=loss, part=part)
    monkeypatch.setattr(plan, "random_runs_cost", lambda runs, count: disjoint_cost(runs))
    assert audit(event, strategy="repeat", loss=loss, part=part) > 1.0
