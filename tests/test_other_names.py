"""Names that other packages have for a parameter are answered with the one here."""

import inspect

import pytest
from sklearn.base import clone

from skdpsurv import DPDiscreteTimeSurvival, DPLogisticRegression


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("penalizer", "In its place: alpha"),
        ("duration_col", "In its place: y holds times and events"),
        ("sample_weight", "a weight would change what one record can move"),
        ("epsilonn", "Did you mean epsilon?"),
        ("qqqq", "has no parameter 'qqqq'.$"),
    ],
)
@pytest.mark.parametrize("kind", [DPDiscreteTimeSurvival, DPLogisticRegression])
def test_an_unknown_keyword_is_answered(kind, name, says):
    with pytest.raises(TypeError, match=says.replace("?", r"\?")):
        kind(**{name: 1})


def test_constructors_are_what_they_were():
    model = DPLogisticRegression(2.0, classes=[0, 1])
    assert clone(model).get_params() == model.get_params()
    assert "with_suggestions" not in str(inspect.signature(DPLogisticRegression))
    assert next(iter(inspect.signature(DPLogisticRegression).parameters)) == "epsilon"
