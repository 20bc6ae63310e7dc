"""The fit without privacy against other software, and the private one near it."""

import numpy as np
import pytest
import statsmodels.api as sm
from sklearn.model_selection import train_test_split
from sksurv import metrics

from skdpsurv import DPDiscreteTimeSurvival, PublicBoundsScaler
from skdpsurv.datasets import load_flchain, make_discrete_time_survival
from skdpsurv.reference import person_period, relative_error_to_cox
from skdpsurv.survival.hazards.model import published_basis
from tests.support.combinations import thinned

Q, E = 8, 3


@pytest.fixture(scope="module")
def flchain():
    data = load_flchain()
    scaler = PublicBoundsScaler.from_bounds(data.bounds, missing="midpoint")
    return scaler.fit_transform(data.X), data.y, data.max_time


def statsmodels_fit(link, design, response):
    if link == "logit":
        return sm.Logit(response, design).fit(disp=0, method="newton", tol=1e-14, maxiter=100)
    links = sm.families.links
    family = sm.families.Binomial(links.CLogLog() if link == "cloglog" else links.Probit())
    return sm.GLM(response, design, family=family).fit(tol=1e-14, maxiter=200)


@pytest.mark.parametrize("link", ["logit", "cloglog", "probit"])
def test_fits_without_privacy_are_those_of_statsmodels(link):
    """Coefficients, baseline, and survival as the product over person-periods."""
    small = make_discrete_time_survival(300, 3, event_rate=0.7, random_state=0)
    model = DPDiscreteTimeSurvival(np.inf, max_time=1.0, n_intervals=Q, n_knots=E, link=link)
    model.fit(small.X, small.y)
    how = {"max_time": 1.0, "n_intervals": Q, "basis": published_basis(Q, E)}
    theirs = statsmodels_fit(link, *person_period(small.X, small.y, **how))
    np.testing.assert_allclose(model.coef_, theirs.params[E:], atol=1e-5)
    np.testing.assert_allclose(model.baseline_coef_, theirs.params[:E], rtol=1e-5, atol=1e-5)
    survivors = np.array([(False, 1.0)] * 5, dtype=small.y.dtype)
    design, _ = person_period(small.X[:5], survivors, **how)
    expected = np.cumprod(1 - theirs.predict(design).reshape(5, Q), axis=1)
    survival = model.predict_survival_function(small.X[:5], return_array=True)
    np.testing.assert_allclose(survival, expected, atol=1e-6)
    # The scale of X is free: rows are not clipped.
    first = model.coef_
    np.testing.assert_allclose(model.fit(100 * small.X, small.y).coef_, first / 100, rtol=1e-6)


@pytest.mark.parametrize(("link", "error"), [("cloglog", 0.02), ("logit", 0.03)])
def test_near_cox_on_flchain(flchain, link, error):
    """The paper has 0.02 to 0.09; a fit on permuted covariates has an error of about 1."""
    X, y, max_time = flchain
    model = DPDiscreteTimeSurvival(np.inf, max_time=max_time, link=link).fit(X, y)
    assert relative_error_to_cox(model.coef_, X, y) < error


def test_private_fits_are_nearly_as_good_on_flchain(flchain):
    """C on held-out records within 0.02 of the fit without privacy, at epsilon = 1."""
    X, y, max_time = flchain
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
    model = DPDiscreteTimeSurvival(np.inf, max_time=max_time)
    best = model.fit(X, y).score(X_test, y_test)
    assert best > 0.78
    model.set_params(epsilon=1.0)
    scores = [model.set_params(random_state=i).fit(X, y).score(X_test, y_test) for i in range(5)]
    assert min(scores) > best - 0.02


@pytest.mark.parametrize(
    ("link", "method"), thinned(["logit", "cloglog", "probit"], ["obj_pert", "out_pert"])
)
def test_every_method_and_link_learns(link, method):
    """Signs and rough sizes of the coefficients, at an epsilon that leaves little noise."""
    data = make_discrete_time_survival(4000, 2, coef=[1.0, -1.0], random_state=1)
    how = {"link": link, "method": method, "n_intervals": 20, "random_state": 0}
    model = DPDiscreteTimeSurvival(20.0, max_time=1.0, **how).fit(data.X, data.y)
    assert model.score(data.X, data.y) > 0.6
    assert (model.coef_ * [1.0, -1.0] > 0.15).all()


def test_scikit_survival_judges(flchain):
    X, y, max_time = flchain
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
    X_test, y_test, times = X_test[:600], y_test[:600], np.array([500.0, 1500.0, 3000.0])
    model = DPDiscreteTimeSurvival(5.0, max_time=max_time, random_state=0).fit(X, y)
    risk = model.predict(X_test)
    harrell = metrics.concordance_index_censored(y_test["death"], y_test["futime"], risk)[0]
    assert model.score(X_test, y_test) == pytest.approx(harrell, abs=1e-6)
    assert metrics.concordance_index_ipcw(y, y_test, risk, tau=3000)[0] > 0.7
    for wrapped, least, most in (
        (metrics.as_concordance_index_ipcw_scorer(model, tau=3000.0), 0.7, 1.0),
        (metrics.as_cumulative_dynamic_auc_scorer(model, times), 0.7, 1.0),
        (metrics.as_integrated_brier_score_scorer(model, times), -0.2, 0.0),
    ):
        assert least < wrapped.fit(X[:2000], y[:2000]).score(X_test, y_test) < most
