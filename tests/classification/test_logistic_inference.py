"""Standard errors of DPLogisticRegression: what they cost, what they cover, what they refuse."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import special, stats

from skdpsurv import DPLogisticRegression, PrivacyAccountant, PublicColumns, Release
from skdpsurv.audit.density_ratio import minimisations
from skdpsurv.audit.walk import planned
from skdpsurv.classification.label_inference import LabelMoments, LabelResponse
from skdpsurv.classification.logistic_measurements import ColumnGroup, GroupFit, SignedRows
from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import random_source
from skdpsurv.dp.clipping import row_weights
from skdpsurv.dp.privacy_cost import remaining_budget
from skdpsurv.inference import DOWNWEIGHTING_BOUND, MomentRows, ReleasedMoments
from skdpsurv.likelihoods.linear import LinearBlock, Logistic, LogisticLoss
from skdpsurv.mechanisms.perturbation import Unperturbed
from tests.support.combinations import thinned
from tests.support.estimators import logistic as perturbed

METHODS = ("obj_pert", "out_pert")
TRUTH = np.array([-0.5, 1.0, -1.0, 0.5, 0.0])


def make(n=5000, seed=0, truth=TRUTH):
    """Rows of a cube, some of them longer than 1, and labels of a logistic model."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, truth.size - 1))
    y = (rng.random(n) < special.expit(truth[0] + X @ truth[1:])).astype(int)
    return X, y


def model(epsilon=3.0, **parameters):
    usual = {"classes": [0, 1], "random_state": 0, "inference_share": 0.2}
    return perturbed(epsilon, **{**usual, **parameters})


def moments_of(group, price):
    fit = GroupFit(4000, 1, 1.0, 1.0, (group,), (Unperturbed(1.0),), (np.zeros((1, 4)),))
    return LabelMoments.planned(fit, price)


@pytest.fixture(scope="module")
def data():
    return make()


@pytest.fixture(scope="module")
def fitted(data):
    return model().fit(*data)


class TestBudget:
    def test_parts_add_up(self, data):
        for method, epsilon, shares in product(
            METHODS, [0.3, 1.1, 7.3], [(0.1, 0.2), (0.0, 0.3), (0.26, 0.7399)]
        ):
            options = {"method": method, "alpha": "auto" if method == "obj_pert" else 0.01}
            names = ("recalibration_share", "inference_share")
            one = model(epsilon, **options, **dict(zip(names, shares, strict=True)))
            plan = one._plan(one._shape(*data))
            minimisers, *others, moments = plan.leaves
            parts = others[0].price if others else 0.0, moments.price
            assert parts == tuple(share * epsilon for share in shares)
            rest = remaining_budget(epsilon, *parts)
            assert 0 <= Fraction(epsilon) - sum(map(Fraction, (rest, *parts))) < 1e-15 * epsilon
            bare = model(rest, **options, **dict.fromkeys(names, 0.0))
            (alone,) = bare._plan(bare._shape(*data)).leaves
            assert minimisers.fit.calibrations == alone.fit.calibrations
            assert plan.public_inputs()["epsilon_inference"] == parts[1]
            assert plan.mechanism.endswith(", then second moments")
            assert moments.scales()[0] in plan.scales()

    def test_few_records_have_none_and_pay_nothing(self):
        """As without a share, which is the default."""
        one, other = (model(1.0, inference_share=s).fit(*make(500)) for s in (0.2, 0.0))
        assert DPLogisticRegression().inference_share == 0.0
        assert one.inference_ is None
        assert one.coef_.tolist() == other.coef_.tolist()
        assert one.release_.guarantee == other.release_.guarantee
        assert not [name for name in one.release_.values if name.startswith("inference")]
        np.testing.assert_array_equal(one.summary["coef"], one.coef_[0])
        assert one.summary["se(coef)"].isna().all()
        with pytest.raises(ValueError, match="inference_share must be positive"):
            one.confidence_interval()

    def test_an_audit_attacks_a_minimiser_only(self, data):
        one = model(recalibration_share=0.0, random_state=None)
        with pytest.raises(TypeError, match=r"minimisers and nothing else.*second moments"):
            minimisations(*planned(one, dict(zip(("X", "y"), data, strict=True))))


class TestWeights:
    def test_of_long_rows(self):
        for constant in [0.0, 0.1, 3.0]:
            rng, group = np.random.default_rng(0), ColumnGroup((0, 1, 2), 2.0, 0.5, constant)
            X = rng.normal(size=(4000, 3)) * rng.uniform(0.0, 6.0, (4000, 1))
            X = SignedRows(X, np.ones((1, 4000))).clipped(DOWNWEIGHTING_BOUND * 2.0).X
            seen = group.rows(X, 2.0)
            weight, norm = row_weights(seen, group.bound), np.linalg.norm(seen, axis=1)
            assert norm.max() > 1.1 * group.bound
            assert (weight * norm**2 <= group.bound**2).all()
            near = np.minimum(1.0, (group.bound / norm) ** 2)
            np.testing.assert_allclose(weight, near, rtol=1e-12)
            assert (weight * np.maximum(1.0, norm / group.bound) <= 1.0).all()
            # What second moments see of them is no longer than they say.
            asked = moments_of(group, 1.0)
            rows = np.concatenate(list(asked.rows(MomentRows(seen, weight))))
            norm = np.linalg.norm(rows, axis=1)
            assert norm.shape == (4000,)
            assert norm.max() == pytest.approx(asked.query_for({}).norm, rel=0.01)
            assert norm.max() <= asked.query_for({}).norm * (1.0 + 1e-14)

    def test_count_as_whole_records_would(self):
        for cap in [0.5, 0.8, 1.0]:
            rng = np.random.default_rng(1)
            likelihood, coef = Logistic(3, 1.0, cap), rng.normal(size=3)
            plain = LinearBlock(rng.normal(size=(50, 3)), rng.choice([-1.0, 1.0], 50))
            weight = rng.uniform(0.1, 1.0, 50)
            weighed = plain._replace(weight=weight)
            for more in (None, rng.uniform(size=50)):
                product = weight if more is None else weight * more
                expected = likelihood.derivatives(coef, plain, product)
                found = likelihood.derivatives(coef, weighed, more)
                np.testing.assert_allclose(found.gradient, expected.gradient)
                np.testing.assert_allclose(found.hessian, expected.hessian)
            losses = weight * likelihood.losses(coef, plain)
            np.testing.assert_allclose(likelihood.losses(coef, weighed), losses)
            assert (likelihood.thin(weighed, 3).weight == weight[::3]).all()
            assert (likelihood.take(weighed, np.array([1, 5])).weight == weight[[1, 5]]).all()

    def test_one_record_moves_gradients_by_no_more_than_stated(self):
        for n in [1, 300]:
            rng = np.random.default_rng(n)
            one = model(1000.0, recalibration_share=0.0, intercept_scaling=0.7, data_norm=0.5)
            X = rng.normal(size=(n, 3))
            fit = one._plan(one._shape(X, rng.integers(2, size=n))).leaves[0].fit
            assert fit.downweighting_bound == DOWNWEIGHTING_BOUND
            (problem,) = fit.problems(InMemory([SignedRows(X, rng.choice([-1.0, 1.0], (1, n)))]))
            likelihood, (block,) = problem.likelihood, problem.blocks.results(lambda b: b)
            bound = likelihood.constants
            for i in range(min(n, 50)):
                single = likelihood.take(block, np.array([i]))
                derivatives = likelihood.derivatives(rng.normal(size=4), single)
                assert 2.0 * np.linalg.norm(derivatives.gradient) <= bound.gradient_sensitivity
                assert np.trace(derivatives.hessian) <= bound.hessian_trace


@pytest.mark.parametrize(("constant", "cap"), [(0.0, 0.7), (0.3, 0.5), (0.3, 1.0)])
def test_derivatives_of_the_response(constant, cap):
    response = LabelResponse(constant, LogisticLoss(cap))
    a, b, step = np.full(int(constant > 0), 0.4), np.linspace(-3.0, 3.0, 61) + 0.013, 1e-6
    chance, slopes = response.outcome_probabilities(a, b)
    np.testing.assert_allclose(chance.sum(axis=1), 1.0)
    assert slopes.shape == response.record_scores(a, b).shape == (1 + a.size, 61, 2)
    assert response.outcome_probabilities(a, b, slopes=False)[1].shape == (0, 61, 2)

    def losses(a, b):
        eta = (constant * a.sum() + b)[:, None]
        return LogisticLoss(cap).value(eta, np.array([1.0, -1.0]))

    moves = [(step, 0.0)] * a.size + [(0.0, step)]
    for place, (by_a, by_b) in enumerate(moves):
        up, down = (a + by_a, b + by_b), (a - by_a, b - by_b)
        for found, function in (
            (slopes[place], lambda *at: response.outcome_probabilities(*at)[0]),
            (response.record_scores(a, b)[place], losses),
        ):
            gap = (function(*up) - function(*down)) / (2.0 * step)
            np.testing.assert_allclose(found, gap, atol=1e-6)
        curved = response.expected_curvature(a, b, chance)[:, place]
        scores = (response.record_scores(*at) for at in (up, down))
        gap = next(scores) - next(scores)
        expected = (gap * chance).sum(axis=2).T / (2.0 * step)
        np.testing.assert_allclose(curved, expected, atol=1e-6)


class TestEstimates:
    @pytest.mark.parametrize(
        ("method", "fit_intercept", "cap"), thinned(METHODS, [True, False], [1.0, "auto"])
    )
    def test_without_noise_they_are_those_of_maximum_likelihood(self, method, fit_intercept, cap):
        truth = TRUTH if fit_intercept else np.append(0.0, TRUTH[1:])
        X, y = make(20_000, truth=truth)
        options = {"fit_intercept": fit_intercept, "max_residual": cap, "data_norm": 2.0}
        one = model(1e6, method=method, **options).fit(X, y)
        theirs = sm.Logit(y, sm.add_constant(X) if fit_intercept else X).fit(disp=0)
        error = one.inference_.standard_errors()
        assert (np.abs(one.inference_.estimate - theirs.params) <= 5.0 * theirs.bse).all()
        np.testing.assert_allclose(error, theirs.bse, rtol=0.15)

    def test_caps_and_weights_are_undone(self):
        """Where a half of all rows is longer than the bound, and all residuals are capped."""
        X, y = make(40_000)
        one = model(1e6, max_residual=0.5, data_norm=1.15).fit(X, y)
        assert np.abs(one.coef_[0, 0] - TRUTH[1]) > 0.4
        error = one.inference_.standard_errors()
        assert (np.abs(one.inference_.estimate - TRUTH) < 5.0 * error).all()
        assert error.max() < 0.2

    @pytest.mark.slow
    @pytest.mark.parametrize(("cap", "method"), thinned(["auto", 0.5], METHODS))
    def test_intervals_cover(self, cap, method):
        """60 fits; each of 5 parameters fails by chance with a probability below 1e-8."""
        fits = [
            model(method=method, max_residual=cap, random_state=s).fit(*make(seed=s)).inference_
            for s in range(60)
        ]
        errors = np.array([one.estimate - TRUTH for one in fits])
        deviations = np.array([one.standard_errors() for one in fits])
        missed = (np.abs(errors) > 1.96 * deviations).sum(axis=0)
        assert (missed <= stats.binom.isf(1e-8, 60, 0.05)).all()
        assert np.median(deviations) < 0.3
        # And they are not far wider than they need to be, but for what the undone cap may hide.
        spread = np.sqrt((errors**2).mean(axis=0))
        assert (spread > (0.25 if cap == 0.5 else 0.5) * np.median(deviations, axis=0)).all()

    def test_much_noise_says_that_nothing_is_known(self):
        one = model(0.3, inference_share=0.01).fit(*make(2000))
        assert np.isinf(one.inference_.standard_errors()[1:]).all()
        assert one.summary["coef"].isna().all()


class TestSummary:
    def test_per_unit_of_a_raw_column(self, data):
        X, y = data
        frame = pd.DataFrame(100.0 * X, columns=list("abcd"))
        columns = PublicColumns(dict.fromkeys("abcd", (-100.0, 100.0)))
        one = model(columns=columns).fit(frame, y)
        assert list(one.summary.index) == list("abcd")
        width = 5 * one.summary["se(coef)"].max()
        np.testing.assert_allclose(one.summary["coef"], TRUTH[1:] / 100.0, atol=width)

    def test_a_release_holds_all(self, data, fitted):
        for one in (fitted, model(fit_intercept=False).fit(*data)):
            again = DPLogisticRegression.from_release(Release.from_json(one.release_.to_json()))
            pd.testing.assert_frame_equal(again.summary, one.summary)
            assert again.inference_.estimate.shape == (4 + one.fit_intercept,)

    def test_crafted_releases_are_refused(self, fitted):
        whole = fitted.release_
        for name in ["inference_estimate", "inference_covariance", "inference_known"]:
            values = {k: v for k, v in whole.values.items() if k != name}
            with pytest.raises(ValueError, match=name):
                DPLogisticRegression.from_release(replace(whole, values=values))


def test_refusals(data):
    X, y = data
    for changes, z in (
        ({"recalibration_share": 0.8}, y),
        ({"classes": [0, 1, 2]}, y),
        ({"classes": [0]}, y),
        ({"classes": None}, y + (X[:, 0] > 0.5)),
    ):
        accountant = PrivacyAccountant(rehearsal=True)
        with pytest.raises(ValueError, match="inference_share must"):
            model(accountant=accountant, **changes).fit(X, z)
        assert accountant.entries().empty
    assert model(classes=None).fit(X, y).inference_ is not None


def test_moments_are_those_of_the_rows():
    """With hardly any noise, and a constant column larger than a half."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-0.5, 0.5, (4000, 3))
    group = ColumnGroup((0, 1, 2), 1.0, 1.0, 0.8)
    asked = moments_of(group, 1e9)
    seen = group.rows(X, 1.0)
    blocks = InMemory([MomentRows(seen, row_weights(seen, group.bound))])
    exact = asked.query_for({}).total(blocks, asked.rows)
    law = ReleasedMoments(
        asked, asked.query_for({}).release(exact, 1e9, random_source(0))
    ).distribution
    assert law.mass == pytest.approx(4000, rel=1e-3)
    np.testing.assert_allclose(law.mean, X.mean(axis=0), atol=1e-4)
    rows = law.rows("normal")
    np.testing.assert_allclose(np.cov(rows.T, bias=True), np.cov(X.T, bias=True), atol=1e-4)
