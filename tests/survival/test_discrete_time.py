"""DPDiscreteTimeSurvival: predictions, degenerate data, and what a fit may read, keep and say."""

import itertools
import math
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from skdpsurv import PublicColumns
from skdpsurv.base import tabular
from skdpsurv.datasets import make_discrete_time_survival
from skdpsurv.likelihoods import links
from skdpsurv.survival.hazards import regression
from tests.support.combinations import thinned
from tests.support.estimators import hazard
from tests.support.refusing import refused
from tests.support.weibull import strictly, target

LINKS = tuple(links.LINKS)
METHODS = ("obj_pert", "out_pert")


def model(epsilon=1.0, **parameters):
    return hazard(epsilon, **{"max_time": 1.0, "n_intervals": 20, "random_state": 0, **parameters})


def traced_peak(ask, *args, **options):
    """Return the most bytes that a call holds at a time."""
    tracemalloc.start()
    try:
        kept = ask(*args, **options)
        assert len(kept) == len(args[0])
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def data():
    return make_discrete_time_survival(400, 2, event_rate=0.6, random_state=0)


@pytest.fixture(scope="module")
def fitted(data):
    return model().fit(data.X, data.y)


class TestPredictions:
    def test_arrays_and_step_functions_are_over_the_public_grid(self, data, fitted):
        np.testing.assert_allclose(fitted.predict(data.X), data.X @ fitted.coef_)
        np.testing.assert_allclose(fitted.unique_times_, np.arange(1, 21) / 20)
        survival = fitted.predict_survival_function(data.X, return_array=True)
        hazards = fitted.predict_cumulative_hazard_function(data.X, return_array=True)
        np.testing.assert_allclose(hazards, -np.log(survival), atol=1e-10)
        assert (np.diff(survival, axis=1) <= 0).all()
        for name, arrays, first in (
            ("survival", survival, 1.0),
            ("cumulative_hazard", hazards, 0.0),
        ):
            functions = getattr(fitted, f"predict_{name}_function")(data.X[:7])
            for row, function in zip(arrays[:7], functions, strict=True):
                np.testing.assert_allclose(function(fitted.unique_times_), row, rtol=1e-12)
                assert function(0.0) == function(0.0499) == first != function(0.05)
                assert function.domain == (0, 1.0)
                with pytest.raises(ValueError, match="within"):
                    function(1.01)

    @pytest.mark.parametrize(
        ("method", "options"),
        [
            ("predict_survival_function", {"return_array": True}),
            ("predict_cumulative_hazard_function", {"return_array": True}),
            ("predict_survival_function", {}),
            ("predict_median", {}),
            ("predict_expectation", {}),
        ],
    )
    def test_predictions_hold_little_more_than_their_result(self, data, method, options):
        fitted, n_rows = model(n_intervals=1000).fit(data.X, data.y), 6_000
        rows, ask = np.resize(data.X, (n_rows, 2)), getattr(fitted, method)
        n_bytes = ask(rows[:1], **options).nbytes * n_rows
        if method == "predict_survival_function" and not options:
            n_bytes = n_rows * 1001 * 8  # of the values within the functions
        assert traced_peak(ask, rows, **options) <= 1.3 * n_bytes + 2**24

    def test_rows_are_encoded_in_blocks_that_change_nothing(self, data, monkeypatch):
        labels = [f"level {i}" for i in range(100)]
        columns = PublicColumns({"dose": (-1, 1), "site": labels})
        X = pd.DataFrame({"dose": data.X[:, 0], "site": np.resize(labels, len(data.X))})
        fitted = model(columns=columns).fit(X, data.y)
        asked = "predict", "predict_median", "predict_expectation"
        whole = [getattr(fitted, one)(X) for one in asked]
        curves = fitted.predict_survival_function(X, return_array=True)
        rows = X.iloc[np.resize(np.arange(len(X)), 50_000)]  # 39 MiB of features
        assert traced_peak(fitted.predict_median, rows) <= 2**25
        for module in (tabular, regression):
            monkeypatch.setattr(module, "BLOCK_ELEMENTS", 7000)
        for one, expected in zip(asked, whole, strict=True):
            np.testing.assert_allclose(getattr(fitted, one)(X), expected, rtol=1e-12)
        again = fitted.predict_survival_function(X, return_array=True)
        np.testing.assert_allclose(again, curves, rtol=1e-12)

    def test_hazard_of_one_interval_is_the_inverse_link(self, data):
        for link, inverse in (
            ("logit", lambda eta: 1 / (1 + np.exp(-eta))),
            ("cloglog", lambda eta: 1 - np.exp(-np.exp(eta))),
        ):
            one = model(link=link, n_intervals=1, n_knots=1).fit(data.X, data.y)
            slope, shift = one.recalibration_.slope, one.recalibration_.at(1.0)
            assert (slope, shift) != (1.0, 0.0)
            eta = one.baseline_coef_[0] + shift + slope * one.predict(data.X)
            survival = one.predict_survival_function(data.X, return_array=True)[:, 0]
            np.testing.assert_allclose(survival, 1 - inverse(eta), rtol=1e-9)

    def test_the_unit_of_time_is_free_and_what_is_beyond_the_horizon_is_censored_at_it(
        self, data, fitted
    ):
        days = target(data.y["event"], 365.25 * data.y["time"])
        scaled = model(max_time=365.25).fit(data.X, days)
        np.testing.assert_allclose(scaled.coef_, fitted.coef_, atol=1e-6)
        np.testing.assert_allclose(scaled.unique_times_, 365.25 * fitted.unique_times_)
        event, time = data.y["event"], 3.0 * data.y["time"]
        late, cut = target(event, time), target(event & (time <= 1), np.minimum(time, 1.0))
        assert model().fit(data.X, late).release_ == model().fit(data.X, cut).release_

    def test_weights_of_a_score(self, data, fitted):
        weight = (np.arange(400) < 100).astype(float)
        expected = fitted.score(data.X[:100], data.y[:100])
        assert fitted.score(data.X, data.y, sample_weight=weight) == pytest.approx(expected)
        assert fitted.score(data.X, target(np.zeros(400), np.ones(400))) == 0.5


X400 = np.random.default_rng(0).uniform(-1, 1, (400, 1))
#: Covariates, events and times.
AWKWARD = {
    "no events": (X400, False, np.linspace(0, 1, 400)),
    "only events": (X400, True, np.linspace(0, 1, 400)),
    "equal columns": (np.hstack([X400 * 0 + 1, X400 * 0, X400, X400]), True, np.full(400, 0.4)),
    "all at zero": (X400, True, np.zeros(400)),
    "all at the horizon": (X400, True, np.ones(400)),
    "all beyond": (X400, True, np.full(400, 7.0)),
    "separated": (X400, X400[:, 0] > 0, np.full(400, 0.5)),
    "one event": (np.full((1, 3), 0.5), True, np.full(1, 0.3)),
    "two censored": (np.full((2, 3), 0.5), False, np.full(2, 0.3)),
    "enormous": (1e300 * X400, X400[:, 0] < 0, np.linspace(0, 1e300, 400)),
}


@pytest.mark.parametrize(
    ("case", "way", "epsilon"),
    thinned(AWKWARD, itertools.product(METHODS, LINKS), [0.01, 1.0, 50.0, np.inf]),
    ids=str,
)
def test_every_data_set_gets_a_fit(case, way, epsilon):
    """What depends on data must neither raise nor warn: it would tell about the records."""
    if case == "enormous" and math.isinf(epsilon):
        return  # maximum likelihood takes columns as they are
    (X, event, time), (method, link) = AWKWARD[case], way
    one = strictly(model(epsilon, link=link, method=method).fit, X, target(event, time))
    with np.errstate(over="ignore"):
        survival = one.predict_survival_function(X[:5], return_array=True)
    assert np.isfinite([*one.coef_, *one.baseline_coef_]).all()
    assert ((survival >= 0) & (survival <= 1)).all()


def test_no_finite_record_makes_a_fit_fail():
    """Not even in the first look, where rows are divided by data_norm."""
    largest = np.finfo(float).max
    for d, extreme in itertools.product([1, 2, 4], [largest, -largest]):
        X = np.pad(np.full((1, d), extreme), ((3, 996), (0, 0)))
        fit = strictly(model().fit, X, np.full(1000, 0.5))
        assert np.isfinite(fit.coef_).all()
        assert fit.guarantee_.public_inputs["epsilon_center"] > 0


BAD_PARAMETERS = {
    "max_time": (None, 0.0, np.inf),
    "method": ("sgld",),
    "link": ("log",),
    "n_intervals": (0, 20.0),
    "n_knots": (0, 21, "3"),
    "data_norm": (0.0, np.inf, "max"),
    "alpha": (-0.1, np.inf),
    "max_cumulative_hazard": (0.0, "max"),
    "prior_event_rate": (0.0, 1.0),
    "pilot_share": (1.0, -0.1),
    "recalibration_share": (1.0, -0.1),
}
BAD_TOGETHER = [
    {"link": "probit", "published": True},
    {"n_knots": 60, "published": True, "n_intervals": 60, "epsilon": 0.1},
    {"max_cumulative_hazard": None, "link": "cloglog"},
    {"pilot_share": 0.5, "recalibration_share": 0.5},
]


def test_parameters_are_refused_before_any_record_is_read():
    alone = [{name: value} for name, values in BAD_PARAMETERS.items() for value in values]
    for parameters in alone + BAD_TOGETHER:
        name = next(iter(parameters))
        refused(model(**parameters), f"^{name}", np.full((6, 2), np.nan), None)


#: Public numbers that doubles cannot work with, whatever the records are. n times epsilon allows a
#: first look where its share of epsilon is tiny.
EXTREMES = [
    *({"epsilon": value} for value in (1e-300, 5e-324, 1e300)),
    *({"alpha": value} for value in (1e300, 1e308)),
    *({"data_norm": value} for value in (1e-320, 1e-300, 1e300)),
    *({"max_cumulative_hazard": 1e300, "link": link} for link in LINKS[1:]),
    *({"pilot_share": value, "epsilon": 1e3} for value in (1e-300, 1e-17)),
    {"epsilon": 1e-300, "published": True},
    {"alpha": 1e300, "published": True},
]


def test_extreme_numbers_are_refused_in_the_same_words_whatever_the_records_are():
    """Before the charge, not as an overflow somewhere."""
    X, y = np.full((6, 2), 0.5), target([True, False] * 3, np.linspace(0.1, 0.9, 6))
    for parameters, method in itertools.product(EXTREMES, METHODS):
        one = model(**parameters, method=method)
        text = refused(one, "too extreme", X, y)
        assert text == refused(one, "too extreme", 1e200 * X, target(True, np.full(6, 1e9)))
        others = () if "published" in parameters else ("max_cumulative_hazard", "pilot_share")
        assert all(name in text for name in ("epsilon", "alpha", "data_norm", *others))
    for parameters in [
        {"max_cumulative_hazard": 1e-306},
        {"max_cumulative_hazard": 1e300},
        {"pilot_share": 5e-324, "epsilon": 100.0},
        {"data_norm": 1e6, "epsilon": 1e11},
    ]:
        one = model(n_intervals=200, **parameters)
        refused(one, "too extreme", np.zeros((1000, 1)), np.full(1000, 0.5))


@pytest.mark.parametrize(("epsilon", "link", "method"), thinned([500.0, 3e4, 1e6], LINKS, METHODS))
def test_much_epsilon_is_little_noise(data, epsilon, link, method):
    """And not a division by a ridge that has vanished."""
    parameters = {"link": link, "method": method, "data_norm": 1.5}
    one = strictly(model(epsilon, **parameters).fit, data.X, data.y)
    assert np.isfinite(one.baseline_coef_).all()
    exact = model(np.inf, **parameters).fit(data.X, data.y)
    # The ridge of output perturbation falls with the root of epsilon only.
    atol = 0.25 if method == "out_pert" and epsilon < 1e3 else 0.05
    np.testing.assert_allclose(one.coef_, exact.coef_, atol=atol)


class TestStatus:
    def test_the_parts_of_epsilon_add_up(self):
        """Whether there was a first look or not."""
        for n, method in itertools.product([50, 5000], METHODS):
            one = model(2.0, method=method, pilot_share=0.15)
            inputs = one.fit(np.zeros((n, 2)), np.full(n, 0.5)).guarantee_.public_inputs
            parts = [inputs[f"epsilon_{part}"] for part in ("center", "fit", "recalibration")]
            assert sum(parts) == pytest.approx(2.0, rel=1e-12)
            looks = n * 2.0 >= 200
            assert parts[0] == (pytest.approx(0.3) if looks else 0.0)
            assert parts[2] == (pytest.approx(0.1 * 2.0) if looks else 0.0)


@pytest.mark.parametrize(("method", "rows"), thinned(METHODS, [37, 1000]))
def test_blocks_do_not_change_the_release(monkeypatch, method, rows):
    """More records than fit a block, also with the solver's pilot on a thinned sample."""
    data = make_discrete_time_survival(2500, 2, random_state=3)
    whole = model(method=method).fit(data.X, data.y)
    monkeypatch.setattr("skdpsurv.data.blocks.BLOCK_ROWS", rows)
    parts = model(method=method).fit(data.X, data.y)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-6)
    np.testing.assert_allclose(parts.baseline_coef_, whole.baseline_coef_, atol=1e-5)
