"""Links against their definitions, and the curvature constants that proofs rest on."""

import numpy as np
import pytest
from scipy import stats

from skdpsurv.likelihoods.links import ETA_LIMIT, LINKS, LOGIT, inverse_mills

ETA = np.linspace(-9.0, 9.0, 721)
NAMES = sorted(LINKS)

# Inverse links as scipy.stats has them: logistic, smallest extreme value, normal.
HAZARD = {"logit": stats.logistic, "cloglog": stats.gumbel_l, "probit": stats.norm}


@pytest.fixture(params=NAMES)
def link(request):
    return LINKS[request.param]


@pytest.fixture(params=["natural", "bounded"])
def any_link(request, link):
    """The link as it is, and with its event slope bounded at a small hazard."""
    return link if request.param == "natural" else link.bounded_at(0.02)


def test_predictor_inverts_the_hazard(link):
    hazards = np.array([1e-9, 1e-3, 0.2, 0.5, 0.9, 1 - 1e-6])
    eta = np.array([link.predictor(h) for h in hazards])
    np.testing.assert_allclose(HAZARD[link.name].cdf(eta), hazards, rtol=1e-9)


def test_survival_is_minus_log_of_survival(link):
    eta = np.linspace(-30, 20, 200) if link.name != "cloglog" else np.linspace(-30, 6, 200)
    expected = -HAZARD[link.name].logsf(eta)
    np.testing.assert_allclose(link.survival(eta).value, expected, rtol=1e-10, atol=1e-300)


def test_event_is_minus_log_of_hazard(link):
    eta = np.linspace(-20, 3, 200)
    expected = -HAZARD[link.name].logcdf(eta)
    np.testing.assert_allclose(link.event(eta).value, expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("part", ["survival", "event"])
def test_derivatives_are_derivatives(any_link, part):
    curve, step = getattr(any_link, part), 1e-5
    eta = np.linspace(-8.0, 3.0, 441)
    eta = eta[np.abs(eta - any_link.event_threshold) > 1e-3]  # psi'' jumps at the threshold
    up, down, here = curve(eta + step), curve(eta - step), curve(eta)
    slope, curvature = (up.value - down.value) / (2 * step), (up.slope - down.slope) / (2 * step)
    np.testing.assert_allclose(here.slope, slope, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(here.curvature, curvature, rtol=1e-5, atol=1e-8)


def test_survival_is_increasing_and_event_decreasing_and_both_convex(any_link):
    survival, event = any_link.survival(ETA), any_link.event(ETA)
    assert min(survival.slope.min(), -event.slope.max()) >= 0.0
    for curve in (survival, event):
        assert (curve.curvature >= 0).all()
        assert (np.diff(curve.slope) >= -1e-12).all()


def test_survival_slope_is_below_the_exponential(link):
    """What the search for records beyond the cap takes for granted."""
    eta = np.linspace(-60, 60, 4801)
    assert (link.survival(eta).slope <= np.exp(eta) * (1 + 1e-12)).all()


@pytest.mark.parametrize("scale", [4.0, 2.0 * ETA_LIMIT])
def test_outer_agrees_with_survival(any_link, scale):
    """Also beyond the limit where logit's product of exponentials would overflow."""
    a, b = np.linspace(-9.0, 3.0, 41), scale * np.linspace(-1.0, 1.0, 17)
    slope, curvature = any_link.survival_outer(a, b, 2)
    expected = any_link.survival(a + b[:, None])
    np.testing.assert_allclose(slope, expected.slope, rtol=1e-14, atol=1e-300)
    np.testing.assert_allclose(curvature, expected.curvature, rtol=1e-13, atol=1e-300)
    alone, nothing = any_link.survival_outer(a, b, 1)
    np.testing.assert_array_equal(alone, slope)
    assert nothing is None


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_slopes_of_events_are_those_of_their_curve(any_link, scale):
    expected = any_link.event(scale * ETA)
    slope, curvature = any_link.event_slopes(scale * ETA, 2)
    np.testing.assert_allclose(slope, expected.slope, rtol=1e-14, atol=1e-300)
    np.testing.assert_allclose(curvature, expected.curvature, rtol=1e-13, atol=1e-300)
    alone, nothing = any_link.event_slopes(scale * ETA, 1)
    np.testing.assert_array_equal(alone, slope)
    assert nothing is None


@pytest.mark.parametrize("scale", [1.0, 100.0, 5000.0])
def test_nothing_overflows(any_link, scale):
    for curve in (any_link.survival(scale * ETA), any_link.event(scale * ETA)):
        for values in curve[1:]:
            assert np.isfinite(values).all()
    if any_link.name == "probit":  # where slope - eta has lost its digits
        curvature = any_link.survival(scale * ETA).curvature
        assert (curvature >= 0.0).all()
        assert (curvature <= 1.0).all()


class TestConstants:
    def test_event_slope_bounds_the_slope_and_is_attained(self, any_link):
        if any_link is LINKS["probit"]:  # its natural slope is unbounded
            return
        slope = -any_link.event(np.linspace(-40, 20, 5001)).slope
        assert slope.max() <= any_link.event_slope
        assert slope.max() > 0.999999 * any_link.event_slope

    def test_event_curvature_is_the_supremum(self, link):
        curvature = link.event(np.linspace(-40, 20, 600_001)).curvature.max()
        assert 0.999 * link.event_curvature < curvature <= link.event_curvature

    def test_only_logit_has_bounded_survival_slopes(self, link):
        largest = link.survival(np.array([50.0])).slope[0]
        assert link.bounded_slope == (largest <= 1.0) == (link.name == "logit")

    @pytest.mark.parametrize("slope", [1e-6, 0.003, 0.1, 0.49, 0.51, 0.99, 1.7, 6.0])
    def test_curvature_of_slope_bounds_every_curvature_at_smaller_slopes(self, link, slope):
        if link.bounded_slope and slope >= 1:
            assert link.curvature_of_slope(slope) == 0.25
            return
        edge = link.slope_inverse(np.array([slope]))[0]
        assert link.survival(np.array([edge])).slope[0] == pytest.approx(slope, rel=1e-8)
        curvature = link.survival(np.linspace(edge - 30.0, edge, 20_001)).curvature.max()
        bound = link.curvature_of_slope(slope)
        assert curvature <= bound * (1 + 1e-12)
        assert curvature >= bound * (1 - 1e-6)

    @pytest.mark.parametrize("slope", [1e3, 1.1e3, 1e5, 1e8, 1e150, 1e300])
    def test_probit_curvature_of_a_huge_slope_is_its_supremum(self, slope):
        """Never below the truth, 1 - 1/slope^2 and more, where slope - eta has lost its digits."""
        bound = LINKS["probit"].curvature_of_slope(slope)
        assert 1 - 2 / slope / slope <= bound <= 1.0
        if slope > 1e3:
            assert bound == 1.0

    def test_curvature_is_a_concave_function_of_the_slope(self, link):
        """Concavity makes q equal hazards the worst case of a sum (trace bound)."""
        curve = link.survival(np.linspace(-6, 3, 400))
        chord = np.diff(curve.curvature) / np.diff(curve.slope)
        assert (np.diff(chord) <= 1e-7).all()


class TestBoundedProbit:
    @pytest.mark.parametrize("hazard", [1e-6, 0.0035, 0.3])
    def test_slope_is_the_inverse_mills_ratio_at_the_hazard(self, hazard):
        bounded = LINKS["probit"].bounded_at(hazard)
        threshold = stats.norm.ppf(hazard)
        assert bounded.event_threshold == pytest.approx(threshold)
        assert bounded.event_slope == pytest.approx(stats.norm.pdf(threshold) / hazard, rel=1e-9)

    def test_linear_below_the_threshold_and_unchanged_above(self):
        bounded, gaps = LINKS["probit"].bounded_at(0.01), np.array([1.0, 7.0])
        threshold, natural = bounded.event_threshold, LINKS["probit"]
        above = np.array([threshold, threshold + 1.0])
        start = natural.event(above).value
        np.testing.assert_allclose(bounded.event(above).value, start)
        value, slope, curvature = bounded.event(threshold - gaps)
        np.testing.assert_allclose(value, start[0] + bounded.event_slope * gaps)
        assert (slope == -bounded.event_slope).all()
        assert not curvature.any()

    def test_other_links_need_no_bound(self):
        assert LOGIT.bounded_at(0.01) is LOGIT
        assert LINKS["cloglog"].bounded_at(0.01) is LINKS["cloglog"]


@pytest.mark.parametrize("eta", [-35.0, -3.0, 0.0, 2.0, 30.0, 1e4])
def test_inverse_mills_ratio_in_both_tails(eta):
    exact = np.exp(stats.norm.logpdf(eta) - stats.norm.logsf(eta))
    assert inverse_mills(np.array(eta)) == pytest.approx(exact, rel=1e-7)
