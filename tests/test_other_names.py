"""Names that other packages have for a parameter are answered with the one here."""

import inspect
import re

import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import has_fit_parameter

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPLogisticRegression,
    DPWeibullFitter,
    HybridMEstimator,
    PrivacyAccountant,
    PrivateSearchCV,
    PrivateStackingClassifier,
    PublicColumns,
    PublicInputWarning,
)


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


@pytest.mark.parametrize(
    ("kind", "name", "says"),
    [
        (DPDiscreteTimeSurvival, "duration_col", "In its place: y holds times and events"),
        (DPDiscreteTimeSurvival, "event_observed", "In its place: y holds times and events"),
        (DPKaplanMeierFitter, "event_col", "In its place: y holds times and events"),
        (DPLogisticRegression, "sample_weight", "a weight would change what one record can move"),
        (DPKaplanMeierFitter, "weights", "a weight would change what one record can move"),
        (DPWeibullFitter, "entry", "people who enter late"),
        (DPDiscreteTimeSurvival, "penalizer", "In its place: alpha of the constructor."),
        (DPDiscreteTimeSurvival, "cluster_col", "In its place: person, which says whose each"),
        (DPWeibullFitter, "penalizer", "has no parameter 'penalizer'.$"),
        (DPKaplanMeierFitter, "formula", "has no parameter 'formula'.$"),
        (DPLogisticRegression, "epsilon", "It is a parameter of the constructor."),
        (PrivateStackingClassifier, "persons", "Did you mean person?"),
        (DPDiscreteTimeSurvival, "max_tim", "Did you mean max_time of the constructor?"),
        (HybridMEstimator, "person", "fit of HybridMEstimator has no parameter 'person'"),
    ],
)
def test_an_unknown_argument_of_fit_is_answered_before_anything_else(kind, name, says):
    ledger = PrivacyAccountant(1.0)
    model = kind(LogisticRegression()) if kind is HybridMEstimator else kind()
    model.set_params(accountant=ledger)
    with pytest.raises(TypeError, match=re.escape(says).replace(r"\$", "$")):
        model.fit(**{name: 1})
    assert ledger.spent() == 0.0


def test_a_search_answers_for_the_step_that_it_fits():
    model = make_pipeline(PublicColumns({"a": (0, 1)}), DPLogisticRegression(classes=[0, 1]))
    search = PrivateSearchCV(model, {"dplogisticregression__alpha": [0.1, 1.0]})
    with pytest.raises(TypeError, match=r"fit of DPLogisticRegression has no .* a weight would"):
        search.fit([[0.5]] * 30, [0, 1] * 15, dplogisticregression__sample_weight=[1.0] * 30)


def test_warnings_and_signatures_of_fit_are_those_of_the_method():
    with pytest.warns(PublicInputWarning, match="hardly a limit") as caught:
        DPWeibullFitter(20.0, max_time=1.0).fit([0.5] * 30)
    assert {one.filename for one in caught} == {__file__}
    assert list(inspect.signature(DPLogisticRegression().fit).parameters) == ["X", "y", "person"]
    assert not has_fit_parameter(DPLogisticRegression(), "sample_weight")


def test_constructors_are_what_they_were():
    model = DPLogisticRegression(2.0, classes=[0, 1])
    assert clone(model).get_params() == model.get_params()
    assert "with_suggestions" not in str(inspect.signature(DPLogisticRegression))
    assert next(iter(inspect.signature(DPLogisticRegression).parameters)) == "epsilon"
