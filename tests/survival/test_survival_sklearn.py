"""Weibull fits inside scikit-learn's tools."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from tests.support.weibull import model, records, target

TIME, EVENT = records(240)
X, Y = np.random.default_rng(0).uniform(0, 1, (240, 3)), target(EVENT, TIME)


def test_scores_are_mean_log_likelihoods_of_the_folds():
    """Whatever is in X."""
    folds = KFold(4)
    expected = [model().fit(None, Y[train]).score(None, Y[test]) for train, test in folds.split(X)]
    for args in ((X, Y), (np.full((240, 2), "text"), Y), (X[:, 0], Y), (TIME, EVENT)):
        scores = cross_val_score(model(), *args, cv=folds, error_score="raise")
        np.testing.assert_allclose(scores, expected)
    with sklearn.config_context(enable_metadata_routing=True):
        one = model().set_fit_request(event_observed=True).set_score_request(event_observed=True)
        scores = cross_val_score(one, TIME, cv=folds, params={"event_observed": EVENT})
    np.testing.assert_allclose(scores, expected)


def test_pipelines():
    pipeline = make_pipeline(StandardScaler(), model()).fit(X, Y)
    assert pipeline[-1].release_ == model().fit(X, Y).release_
    np.testing.assert_array_equal(pipeline.predict(X), np.zeros(240))
    # One-dimensional X passes a transformer that leaves it alone.
    pipeline = make_pipeline(FunctionTransformer(), model()).fit(TIME, EVENT)
    assert pipeline[-1].release_ == model().fit(TIME, EVENT).release_


def test_columns_are_counted_where_there_were_some_in_fit():
    one = model().fit(X, Y)
    for call, args in ((one.predict, (X[:, :2],)), (one.score, (X[:, :2], Y))):
        with pytest.raises(ValueError, match="X has 2 features"):
            call(*args)
    one = model().fit(TIME, EVENT)
    assert one.score(X, Y) == one.score(TIME, EVENT)


def test_a_column_of_times_is_no_row_of_a_covariate():
    """The risk scores of rows would be zeros, as survival is late."""
    one = model().fit(X[:, :1], Y)
    for column in (TIME[:5, None], sparse.csr_array(TIME[:5, None]), pd.DataFrame(TIME[:5])):
        with pytest.raises(ValueError, match="times must be one-dimensional"):
            one.predict(column)
    np.testing.assert_array_equal(one.predict(TIME[:5]), model().fit(TIME, EVENT).predict(TIME[:5]))
