"""What one record can change of an evaluation, draw by draw, and that nothing else leaves."""

import copy
import math
import pickle
import warnings
from functools import partial
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sksurv.linear_model import CoxPHSurvivalAnalysis

from skdpsurv import PrivacyAccountant
from skdpsurv.evaluation import evaluation, private_survival_metrics, released_values
from skdpsurv.evaluation.predictions import unknown_steps
from tests.support import checks
from tests.support.registry import MAX_TIME, NAME, NUMBER, ROW, survival
from tests.support.transcript import transcript_audit

SMALLEST, LARGEST = 5e-324, float(np.finfo(float).max)
EPSILON = 1.0


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch):
    monkeypatch.setattr(released_values, "N_RESAMPLES", 10)


class Curve:
    def __init__(self, hazard):
        self.hazard = hazard

    def __call__(self, times):
        return np.exp(-self.hazard * times / MAX_TIME)


class Model:
    """Predicts from the first column; what breaks a rule of good models, it does by the row."""

    def predict_survival_function(self, X):
        first = np.asarray(X, dtype=float)[:, 0]
        return [Curve(0.3 * math.exp(2.0 * x)) for x in first]


class Failing(Model):
    """Fails for some rows, in its own words, and is no number for others."""

    def predict_survival_function(self, X):
        first = float(np.asarray(X)[0, 0])
        if first > 0.9:
            raise RuntimeError(f"{NAME} has {NUMBER}")
        if first > 0.8:
            raise KeyError(NAME)
        if first > 0.7:
            return [Curve(math.nan)]
        if first > 0.6:
            return [Curve(-math.inf), Curve(1.0)]
        return super().predict_survival_function(X)


class Talking(Model):
    """Prints and warns of every row."""

    def predict_survival_function(self, X):
        print(NAME, X)
        warnings.warn(f"{NAME}: {NUMBER}", stacklevel=1)
        return super().predict_survival_function(X)


class OfTheBatch(Model):
    """Predicts from the mean of all rows that it sees."""

    def predict_survival_function(self, X):
        return super().predict_survival_function(np.full_like(X, np.mean(X)))


class Remembering(Model):
    """Predicts something else for all once it has seen an extreme row."""

    def __init__(self):
        self.seen = []

    def predict_survival_function(self, X):
        self.seen.append(float(X[0, 0]))
        frightened = max(self.seen) > 0.5
        return [Curve(5.0)] if frightened else super().predict_survival_function(X)


MODELS = {
    "plain": Model(),
    "failing": Failing(),
    "talking": Talking(),
    "of the batch": OfTheBatch(),
    "remembering": Remembering(),
    "in a pipeline": make_pipeline(FunctionTransformer(), Failing()),
}
ROWS = (0.0, 0.65, 0.75, 0.85, 0.95, -5.0, 5.0, LARGEST, -LARGEST, SMALLEST, np.nan, np.inf)
TARGETS = (
    (True, 0.0),
    (False, 0.0),
    (True, SMALLEST),
    (True, 0.4 * MAX_TIME),
    (False, 0.4 * MAX_TIME),
    (True, MAX_TIME),
    (False, MAX_TIME),
    (True, LARGEST),
    (False, LARGEST),
)


EVENTS = np.array([(True, 1.0), (True, 2.0)], dtype=[("event", "?"), ("time", "f8")])


def transcript(monkeypatch, data, neighbour, model, **options):
    """Compare all draws of two evaluations; their intervals are made of what was released."""
    evaluate = partial(
        private_survival_metrics, model, epsilon=EPSILON, max_time=0.9 * MAX_TIME, **options
    )
    with monkeypatch.context() as patch:
        patch.setattr(evaluation, "intervals", lambda reading, released, found, level: (found,) * 2)
        return transcript_audit(evaluate, (data.X, data.y), (neighbour.X, neighbour.y))


@pytest.mark.parametrize("edges", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize(
    "name",
    [name if name == "failing" else pytest.param(name, marks=pytest.mark.slow) for name in MODELS],
)
def test_no_neighbour_exceeds_epsilon(name, edges, monkeypatch):
    """All draws of an evaluation together, over adversarial neighbours; and some come close."""
    options = {"risk_edges": [0.3, 0.6, 0.8], "time_edges": [3.0, 6.0]} if edges else {}
    data, model, largest = survival(), MODELS[name], 0.0
    records = [((x, 0.0, 0.0), TARGETS[i % len(TARGETS)]) for i, x in enumerate(ROWS)]
    records += [((0.1, 0.0, 0.0), target) for target in TARGETS]
    for record in records[:: len(records) // 2]:
        one = data.replaced(*record)
        for other in records:
            if other is record:
                continue
            result = transcript(monkeypatch, one, data.replaced(*other), model, **options)
            assert result.passed, result
            largest = max(largest, result.total)
    assert largest > 0.5 * EPSILON


def test_the_noise_of_a_cell_has_scale_two_over_its_share(monkeypatch):
    data = survival()
    pair = data.replaced((0.0, 0.0, 0.0), (True, 0.0)), data.replaced((1.0, 0.0, 0.0), (False, 9.5))
    result = transcript(monkeypatch, *pair, Model(), risk_edges=[0.5, 0.8], time_edges=[2.0])
    assert result.passed
    assert [part.name for part in result.parts] == ["Histogram", "CellSums", "CellSums", "Sum"]
    assert result.parts[0].share == pytest.approx(1.0)
    spent = sum(part.allowed for part in result.parts)
    assert spent <= EPSILON
    np.testing.assert_allclose(spent, EPSILON, rtol=1e-12)
    assert np.shape(result.released["table"]) == (3, 5)


class Unstable(Model):
    """Checks itself that it is shown one row at a time."""

    def predict_survival_function(self, X):
        assert len(X) == 1
        return super().predict_survival_function(X)


class Looking(Model):
    """Notes all that it can see of a row but its numbers."""

    seen: ClassVar[list] = []

    def predict_survival_function(self, X):
        index = X.index.tolist() if hasattr(X, "index") else getattr(X, "base", None)
        kinds = X.dtypes.tolist() if hasattr(X, "dtypes") else X.dtype
        Looking.seen.append((index, kinds, np.asarray(X).tolist()))
        return [Curve(0.5)]


@pytest.mark.parametrize(
    "change", [lambda X: X.assign(a=X["a"].where(X.index > 0)), lambda X: X.convert_dtypes()]
)
@pytest.mark.parametrize("person", [None, [3, 3, 1, 2, 2]])
def test_a_row_tells_nothing_of_other_records(change, person):
    X = pd.DataFrame({"a": [1, 2, 3, 4, 5], "b": [True, False, True, True, False]})
    y = np.array([(True, 1.0 + i) for i in range(5)], dtype=[("event", "?"), ("time", "f8")])
    seen = []
    for rows in (X, change(X)):
        Looking.seen.clear()
        private_survival_metrics(Looking(), rows, y, max_time=4.0, person=person)
        seen.append(list(Looking.seen))
    one, other = seen
    assert repr(one[2:]) == repr(other[2:])  # the first is made up, the second has the gap
    assert {tuple(index) for index, *_ in one} == {(0,)}


def test_text_is_refused_before_the_charge():
    X = pd.DataFrame({"stage": ["I", "secret"]})
    accountant = PrivacyAccountant(1.0)
    with pytest.raises(ValueError, match="unlike in stage: let the model state columns=") as caught:
        private_survival_metrics(Looking(), X, EVENTS, max_time=4.0, accountant=accountant)
    assert "secret" not in str(caught.value)
    assert len(accountant.entries()) == 0


class Leaving(Model):
    """Ends the program at some record."""

    def predict_survival_function(self, X):
        if X[0, 0] > 0.5:
            raise SystemExit("secret")
        return super().predict_survival_function(X)


def test_a_model_that_ends_the_program_has_failed_for_a_record():
    accountant = PrivacyAccountant(1.0)
    X = np.array([[0.0, 0.0], [1.0, 1.0]])
    private_survival_metrics(Leaving(), X, EVENTS, max_time=4.0, accountant=accountant)
    assert accountant.spent() == 1.0


def test_a_subclass_of_pipeline_may_remember():
    counting = type("Counting", (Pipeline,), {})
    steps = [("scale", StandardScaler()), ("cox", CoxPHSurvivalAnalysis())]
    assert unknown_steps(Pipeline(steps)) == []
    assert unknown_steps(counting(steps)) == ["Counting"]


def test_rows_are_shown_one_by_one():
    data = survival()
    found = [
        private_survival_metrics(
            model, data.X, data.y, np.inf, max_time=MAX_TIME, risk_edges=[0.5, 0.7]
        )
        for model in (Model(), Unstable())
    ]
    assert found[0].released == found[1].released
    assert found[0].groups == found[1].groups


@pytest.mark.parametrize("name", ["talking", "failing", "remembering"])
def test_nothing_but_the_release_leaves(name, capfd):
    """With the same noise neighbours differ in released numbers only; no text tells of a record."""
    data = survival()
    model = copy.deepcopy(MODELS[name])
    for record in [((NUMBER, 0.1, 0.2), (True, 5.4321)), ((0.95, 0.1, 0.2), (False, 7.65432))]:
        near = data.replaced(*record)
        outcome = checks.Outcome()
        with checks.listening(outcome):
            found = private_survival_metrics(model, near.X, near.y, 1.0, max_time=MAX_TIME)
        checks.check_texts([*outcome.texts(), found.guarantee.describe()])
        assert repr(type(found).from_dict(found.to_dict())) == repr(found)
        assert not outcome.warned
        secrets = np.concatenate([near.X.ravel(), near.y["time"]])
        checks.check_pickle(pickle.dumps(found), secrets, [NAME])
    assert capfd.readouterr() == ("", "")
    assert vars(model) == vars(MODELS[name]) or name == "in a pipeline"


@pytest.mark.parametrize("value", [np.nan, -NUMBER, np.inf])
def test_a_refusal_tells_nothing_and_costs_nothing(value):
    data, ledger = survival(), PrivacyAccountant(epsilon=5.0)
    data.y["time"][ROW] = value
    outcome = checks.called(
        partial(private_survival_metrics, max_time=MAX_TIME, accountant=ledger),
        *(Model(), data.X, data.y, 1.0),
    )
    assert isinstance(outcome.error, ValueError)
    checks.check_refusal(outcome)
    assert ledger.spent() == 0.0


def test_arithmetic_that_raises_does_not_show():
    data = survival()
    for row, target in zip(ROWS, TARGETS * 2, strict=False):
        near = data.replaced((row, 0.0, 0.0), target)
        with np.errstate(all="raise"), warnings.catch_warnings():
            warnings.simplefilter("error")
            strict = private_survival_metrics(Model(), near.X, near.y, 1.0, max_time=MAX_TIME)
        assert len(strict.groups) >= 1
