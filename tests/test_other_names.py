"""Names that other packages have for a parameter are answered with the one here."""

import inspect
import re

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import has_fit_parameter

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPLogisticRegression,
    DPWeibullFitter,
    HybridMEstimator,
    PrivacyAccountant,
    PrivateSearchCV,
    PrivateStackingClassifier,
    PublicColumns,
    PublicInputWarning,
)


def test_an_unknown_keyword_is_answered():
    for name, says in (
        ("penalizer", "In its place: alpha"),
        ("sample_weight", "a weight would change what one record can move"),
        ("epsilonn", r"Did you mean epsilon\?"),
        ("qqqq", "has no parameter 'qqqq'.$"),
    ):
        for kind in (DPDiscreteTimeSurvival, DPLogisticRegression):
            with pytest.raises(TypeError, match=says):
                kind(**{name: 1})


def test_an_unknown_argument_of_fit_is_answered_before_anything_else():
    ledger = PrivacyAccountant(1.0)
    for model, name, says in (
        (DPDiscreteTimeSurvival(), "duration_col", "In its place: y holds times and events"),
        (DPLogisticRegression(), "sample_weight", "would change what one record can move"),
        (DPDiscreteTimeSurvival(), "cluster_col", "In its place: person, which says whose each"),
        (DPWeibullFitter(), "penalizer", "has no parameter 'penalizer'."),
        (DPLogisticRegression(), "epsilon", "It is a parameter of the constructor."),
        (PrivateStackingClassifier(), "persons", "Did you mean person?"),
        (HybridMEstimator(LogisticRegression()), "person", "has no parameter 'person'"),
    ):
        with pytest.raises(TypeError, match=re.escape(says)):
            model.set_params(accountant=ledger).fit(**{name: 1})
    assert ledger.spent() == 0.0


def test_an_unknown_option_of_a_picture_is_answered():
    """Not by the function behind it, which nobody called."""
    pytest.importorskip("matplotlib")
    curve = DPWeibullFitter(random_state=0, max_time=5.0).fit([1.0, 2.0])
    for model, name, says in (
        (
            curve,
            "ci_show",
            "plot of DPWeibullFitter has no parameter 'ci_show'. In its place: band=F",
        ),
        (curve, "show_censors", "each time of censoring is private"),
        (curve, "label", "Did you mean labels?"),
        (curve, "models", "has no parameter 'models'"),
        (DPDiscreteTimeSurvival(), "colors", "plot of DPDiscreteTimeSurvival has no parameter"),
    ):
        with pytest.raises(TypeError, match=re.escape(says)):
            model.plot(**{name: 1})


def test_a_search_answers_for_the_step_that_it_fits():
    model = make_pipeline(PublicColumns({"a": (0, 1)}), DPLogisticRegression(classes=[0, 1]))
    search = PrivateSearchCV(model, {"dplogisticregression__alpha": [0.1, 1.0]})
    with pytest.raises(TypeError, match=r"fit of DPLogisticRegression has no .* a weight would"):
        search.fit([[0.5]] * 30, [0, 1] * 15, dplogisticregression__sample_weight=[1.0] * 30)


def test_warnings_and_signatures_are_those_of_the_method():
    with pytest.warns(PublicInputWarning, match="hardly a limit") as caught:
        DPWeibullFitter(20.0, max_time=1.0).fit([0.5] * 30)
    assert {one.filename for one in caught} == {__file__}
    assert list(inspect.signature(DPLogisticRegression().fit).parameters) == ["X", "y", "person"]
    assert not has_fit_parameter(DPLogisticRegression(), "sample_weight")
    signature = inspect.signature(DPLogisticRegression)
    assert "with_suggestions" not in str(signature)
    assert next(iter(signature.parameters)) == "epsilon"
