"""What a fit decides before it reads a record: cap, clipping, columns, and shares of epsilon."""

from __future__ import annotations

import inspect
import math
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sksurv.util import Surv

from skdpsurv import DPDiscreteTimeSurvival, PrivacyAccountant, PrivacyLeakWarning
from skdpsurv.data import PublicInputWarning
from skdpsurv.data.blocks import InMemory
from skdpsurv.datasets import make_discrete_time_survival
from skdpsurv.dp import random_source
from skdpsurv.mechanisms import perturbation
from skdpsurv.mechanisms.moments import MeanOfRows
from skdpsurv.mechanisms.perturbation import Perturbed
from skdpsurv.published import PublishedDiscreteTimeSurvival
from skdpsurv.survival.hazards import fit as hazard_fit
from skdpsurv.survival.hazards.discrete_time import fit_of, perturbed_plan
from skdpsurv.survival.hazards.fit import (
    CAP_LEVEL,
    FIRST_LOOK_RECORDS,
    HIGHEST_RISE,
    LEVEL_SIZE,
    SHAPE_SIZE,
    SMALLEST_SPREAD,
    SPREAD_RANGE,
    TABLE_PART,
    LifeTable,
    PilotEstimate,
    RowMean,
)
from skdpsurv.survival.hazards.model import CAP_RANGE, HazardModel, HazardRecords

MODEL = HazardModel("logit", 50, 3, 1000, 2, 1.5, "auto", 0.4)


def planned(
    epsilon=1.0, method="obj_pert", alpha=0.0, pilot_share=0.1, recalibration_share=0.0, **changes
):
    shares = pilot_share, recalibration_share, 0.0
    found = fit_of(replace(MODEL, **changes), epsilon, method, alpha, shares)
    return *found, perturbed_plan(*found)


def plan(*args, **kwargs):
    """Return what is public of a fit."""
    return planned(*args, **kwargs)[0]


def test_defaults_of_the_estimator():
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(DPDiscreteTimeSurvival).parameters.items()
    }
    assert defaults["max_cumulative_hazard"] == "auto"
    assert defaults["pilot_share"] == 0.1
    assert defaults["recalibration_share"] == 0.1


class TestCap:
    def test_signal_is_n_epsilon_in_hundreds_per_parameter(self):
        assert MODEL.signal(2.0) == pytest.approx(1000 * 2.0 / (100 * 5))
        assert replace(MODEL, n_features=7).signal(2.0) == pytest.approx(2.0)
        assert replace(MODEL, n_knots=8).signal(2.0) == pytest.approx(2.0)

    def test_auto_follows_the_signal_between_its_ends(self):
        caps = np.array([MODEL.cap(epsilon) for epsilon in np.geomspace(1e-6, 1e6, 200)])
        assert (np.diff(caps) >= 0).all()
        assert (caps[0], caps[-1]) == CAP_RANGE == (0.8, 5.0)
        inside = caps[(caps > 0.8) & (caps < 5.0)]
        assert len(inside) > 20
        assert (np.diff(inside) > 0).all()

    def test_auto_depends_on_n_epsilon_and_parameters_alone(self):
        """The public rule: 0.9 times the signal to the power 0.28."""
        assert MODEL.cap(2.0) == pytest.approx(0.9 * 4.0**0.28)
        same = replace(MODEL, n_records=500), replace(MODEL, n_features=7)
        assert [m.cap(4.0) for m in same] == pytest.approx([MODEL.cap(2.0)] * 2)
        for change in ({"data_norm": 9.0}, {"prior_event_rate": 0.01}, {"n_intervals": 7}):
            assert replace(MODEL, **change).cap(2.0) == MODEL.cap(2.0)

    @pytest.mark.parametrize("cap", [0.1, 30.0, None])
    def test_a_given_cap_is_used_as_it_is(self, cap):
        model = replace(MODEL, max_cumulative_hazard=cap)
        for epsilon in (1e-3, 1.0, 1e3):
            assert model.cap(epsilon) == cap
        assert plan(max_cumulative_hazard=cap).likelihood.max_cumulative_hazard == cap

    def test_the_guarantee_states_the_cap(self):
        data = make_discrete_time_survival(500, 2, random_state=0)
        model = DPDiscreteTimeSurvival(2.0, max_time=1.0, pilot_share=0.0, random_state=0)
        caps = "auto", 0.9 * 2.0**0.28
        fits = [
            clone(model).set_params(max_cumulative_hazard=cap).fit(data.X, data.y) for cap in caps
        ]
        for fit in fits:
            used = fit.guarantee_.public_inputs["max_cumulative_hazard"]
            assert used == pytest.approx(0.9 * 2.0**0.28)
        np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, atol=1e-6)


class TestRisingCap:
    """A cap that is ours to choose follows the level of the released life table."""

    def cap_after(self, one, level):
        """Return the cap after a first look that found a cumulative hazard."""
        center = one.public_look.center
        hazard = -np.expm1(-level / MODEL.n_intervals)
        center[0] = np.log(hazard / (1 - hazard)) / one.basis[0, 0]
        return one.after(
            PilotEstimate(center, np.zeros(2), 1.0, 1.0)
        ).likelihood.max_cumulative_hazard

    def test_it_rises_with_the_level_between_public_ends(self):
        one = plan(1.0)  # of signal 2
        least = one.likelihood.max_cumulative_hazard
        assert one.highest_cap == HIGHEST_RISE > least
        assert self.cap_after(one, 0.01) == least
        assert self.cap_after(one, 1.7 / CAP_LEVEL) == pytest.approx(1.7)
        assert self.cap_after(one, 50.0) == HIGHEST_RISE
        assert self.cap_after(one, 0.0 + 1e-300) == least

    def test_it_rises_less_for_less_signal(self):
        one = plan(0.25)
        assert self.cap_after(one, 2.9 / CAP_LEVEL) == pytest.approx(1.45)

    def test_ridge_and_noise_follow_it(self):
        one = plan(1.0)
        center = one.public_look.center
        center[0] = 3.0 / one.basis[0, 0]
        risen = one.after(PilotEstimate(center, np.zeros(2), 1.0, 1.0))
        assert risen == one.bounded(HIGHEST_RISE)._replace(likelihood=risen.likelihood)
        direct = plan(1.0, max_cumulative_hazard=HIGHEST_RISE)
        assert risen.likelihood.constants == direct.likelihood.constants
        assert risen.calibration.noise_scale == direct.calibration.noise_scale
        assert risen.calibration.noise_scale > one.calibration.noise_scale

    @pytest.mark.parametrize(
        "one",
        [
            plan(1.0, max_cumulative_hazard=1.0),
            plan(1.0, max_cumulative_hazard=None),
            plan(1.0, pilot_share=0.0),
            plan(0.1),  # no first look
            plan(1e4),  # higher already
        ],
    )
    def test_it_stays_where_it_was_given_or_nothing_was_looked_at(self, one):
        assert one.highest_cap == one.likelihood.max_cumulative_hazard
        assert self.cap_after(one, 2.9) == one.likelihood.max_cumulative_hazard

    def test_the_guarantee_states_both_ends(self):
        inputs = planned(1.0)[2].public_inputs()
        least = plan(1.0).likelihood.max_cumulative_hazard
        assert inputs["max_cumulative_hazard"] == {"from": least, "to": 3.0}
        for name in ("gradient_sensitivity", "kappa", "noise_scale"):
            assert inputs[name]["from"] < inputs[name]["to"]
        assert inputs["hessian_rank"] == 3


class TestColumns:
    @pytest.mark.parametrize(("q", "e"), [(50, 3), (7, 1), (200, 6)])
    def test_the_baseline_is_small_beside_covariates_in_a_unit_ball(self, q, e):
        likelihood = plan(n_intervals=q, n_knots=e).likelihood
        sizes = np.sqrt(np.mean(likelihood.basis**2, axis=0))
        np.testing.assert_allclose(sizes, [LEVEL_SIZE] + [SHAPE_SIZE] * (e - 1))
        np.testing.assert_allclose(likelihood.basis[:, 0], LEVEL_SIZE)
        assert likelihood.data_norm == 1.0

    def test_their_size_does_not_change_the_models_that_can_be_fitted(self, monkeypatch):
        """Much epsilon, so that only the span of the columns matters."""
        data = make_discrete_time_survival(2000, 2, random_state=1)
        model = DPDiscreteTimeSurvival(1e6, max_time=1.0, n_intervals=20, random_state=0)
        one = model.fit(data.X, data.y).coef_
        monkeypatch.setattr(hazard_fit, "LEVEL_SIZE", 0.8)
        monkeypatch.setattr(hazard_fit, "SHAPE_SIZE", 0.3)
        np.testing.assert_allclose(model.fit(data.X, data.y).coef_, one, atol=0.01)


class TestFirstLook:
    @pytest.mark.parametrize("epsilon", [0.19, 0.21, 3.0])
    def test_parts_of_epsilon(self, epsilon):
        one = planned(epsilon)
        looks = MODEL.n_records * epsilon >= FIRST_LOOK_RECORDS
        assert one[1][0] == (pytest.approx(0.1 * epsilon) if looks else 0.0)
        shared = planned(epsilon, recalibration_share=0.2)
        assert shared[1][1] == (pytest.approx(0.2 * epsilon) if looks else 0.0)
        assert ("table of risks" in shared[2].mechanism) == looks
        for fit, prices, whole in (
            one,
            shared,
            planned(epsilon, pilot_share=0.26, recalibration_share=0.7399),
        ):
            parts = fit.price, *prices
            assert sum(parts) == pytest.approx(epsilon, rel=1e-12)
            assert sum(map(Fraction, parts)) <= Fraction(epsilon)
            stated = whole.public_inputs()
            names = ("fit", "center", "recalibration")
            assert tuple(stated[f"epsilon_{name}"] for name in names) == parts[:3]
        assert ("life table" in one[2].mechanism) == looks
        parts = one[0].calibration
        spent = parts.epsilon_noise + parts.epsilon_curvature + parts.epsilon_solver
        assert spent == pytest.approx(one[0].price, rel=1e-12)

    def test_table_and_mean_share_what_it_costs(self, monkeypatch):
        """And nothing else does: what both are given adds up to the centre's share."""
        seen = {}
        for kind in (LifeTable, RowMean):

            def spy(one, *args, original=kind.run):
                seen[type(one)] = one.price
                return original(one, *args)

            monkeypatch.setattr(kind, "run", spy)
        data = make_discrete_time_survival(1000, 2, random_state=0)
        for epsilon in (2.0, 0.7, 1.9, 3.3):
            fit = DPDiscreteTimeSurvival(epsilon, max_time=1.0, n_intervals=9, random_state=0)
            fit.fit(data.X, data.y)
            assert seen[LifeTable] == pytest.approx(0.1 * epsilon * TABLE_PART)
            assert seen[RowMean] == pytest.approx(0.1 * epsilon * (1.0 - TABLE_PART))
            assert sum(seen.values()) == pytest.approx(0.1 * epsilon, rel=1e-14)
            assert sum(map(Fraction, seen.values())) <= Fraction(planned(epsilon)[1][0])

    @pytest.mark.parametrize(
        ("epsilon", "found", "expected"),
        [
            (0.5, 1.0, 1.0 * SPREAD_RANGE[0]),  # signal 1
            (2.0, 1.0, 4.0**0.16),
            (1e3, 1.0, SPREAD_RANGE[1]),
            (1e3, 0.0, SMALLEST_SPREAD * 1.5 * SPREAD_RANGE[1]),
        ],
    )
    def test_rows_are_clipped_to_the_spread_and_more_for_more_signal(
        self, monkeypatch, epsilon, found, expected
    ):
        """Radius of the rows that reach the likelihood, for a released spread ``found``."""
        mean, seen = np.array([0.25, 0.5]), []
        monkeypatch.setattr(MeanOfRows, "shrunk", lambda *args: (mean, found))
        original = HazardRecords.within
        monkeypatch.setattr(HazardRecords, "within", lambda *a: seen.append(a[1:]) or original(*a))
        point = Perturbed(np.arange(1.0, 6.0), np.zeros(5))
        monkeypatch.setattr(
            perturbation, "perturb", lambda problem, source: problem.blocks.held() and point
        )
        X = np.random.default_rng(0).uniform(-1, 1, size=(1000, 2))
        records = InMemory([HazardRecords(X, np.full(1000, 7), np.zeros(1000, dtype=bool))])
        one, _, whole = planned(epsilon)
        baseline, beta = whole.tree.run({}, records, random_source(0))["_fitted"]
        used_mean, radius, reach = seen[0]
        assert reach is None
        np.testing.assert_array_equal(used_mean, mean)
        assert radius == pytest.approx(expected)
        # What was scaled and shifted for the fit is scaled and shifted back.
        np.testing.assert_allclose(beta, np.array([4.0, 5.0]) / radius)
        np.testing.assert_allclose(
            baseline, one.likelihood.basis @ [1.0, 2.0, 3.0] - mean @ beta, rtol=1e-12
        )


class TestRecords:
    def test_rows_are_centred_clipped_and_scaled(self):
        X = np.array([[3.0, 4.0], [0.1, 0.0], [1.0, 1.0]])
        records = HazardRecords(X, np.array([1, 2, 3]), np.zeros(3, dtype=bool))
        block = records.within(np.array([1.0, 1.0]), 2.0)
        length = math.hypot(2.0, 3.0)
        expected = [[2 / length, 3 / length], [-0.45, -0.5], [0.0, 0.0]]
        np.testing.assert_allclose(block.X, expected)
        assert (np.linalg.norm(block.X, axis=1) <= 1.0).all()

    def test_an_infinite_radius_leaves_rows_as_they_are(self):
        X = np.array([[3e100, 4.0]])
        block = HazardRecords(X, np.array([1]), np.array([True])).within(0.0, math.inf)
        np.testing.assert_array_equal(block.X, X)


class TestSpans:
    """What a fit is refused for, if it is out of all proportion."""

    @pytest.mark.parametrize("method", ["obj_pert", "out_pert"])
    def test_every_scale_of_noise_is_among_them(self, method):
        one, (center, *_), whole = planned(2.0, method)
        for scale in (
            one.calibration.noise_scale,
            one.calibration.kappa,
            1.5,
            1.0 / (TABLE_PART * center),
        ):
            assert any(span == pytest.approx(scale) for span in whole.scales())
        # The mean's own scale, up to the share of its part.
        mean_scale = 2 * 1.5 / (1000 * (1.0 - TABLE_PART) * center)
        assert any(mean_scale / 2 <= span <= mean_scale * 2 for span in whole.scales())

    def test_no_first_look_has_no_scale(self):
        assert len(planned(2.0, pilot_share=0.0)[2].scales()) < len(planned(2.0)[2].scales())


def test_prior_hazard_leads_to_the_prior_event_rate():
    assert (1 - MODEL.prior_hazard) ** 50 == pytest.approx(0.6)


@pytest.mark.parametrize("n_features", [1, 2, 4])
@pytest.mark.parametrize("extreme", [1.7976931348623157e308, -1.7976931348623157e308])
def test_no_finite_record_makes_a_fit_fail(n_features, extreme):
    """Not even in the first look, where rows are divided by data_norm."""
    X = np.zeros((1000, n_features))
    X[3] = extreme
    y = Surv.from_arrays(np.ones(1000, bool), np.full(1000, 0.5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PublicInputWarning)
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        fit = DPDiscreteTimeSurvival(max_time=1.0, random_state=0).fit(X, y)
    assert np.isfinite(fit.coef_).all()
    assert fit.guarantee_.public_inputs["epsilon_center"] > 0


@pytest.mark.parametrize("link", ["logit", "cloglog", "probit"])
@pytest.mark.parametrize("epsilon", [1e7, 1e9])
def test_a_table_of_one_band_and_hardly_any_noise_is_fitted(link, epsilon):
    """A ridge that vanishes beside the Hessian must not make a system singular."""
    model = DPDiscreteTimeSurvival(epsilon, max_time=1.0, link=link, n_intervals=10, random_state=0)
    fit = model.fit(np.zeros((300, 1)), np.full(300, 0.05))
    assert np.isfinite(fit.baseline_coef_).all()


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_cumulative_hazard": 1e-306},
        {"max_cumulative_hazard": 1e300},
        {"pilot_share": 5e-324, "epsilon": 100.0},
        {"data_norm": 1e6, "epsilon": 1e11},
    ],
)
def test_public_numbers_beyond_doubles_are_refused_before_the_charge(parameters):
    accountant = PrivacyAccountant()
    model = DPDiscreteTimeSurvival(max_time=1.0, accountant=accountant).set_params(**parameters)
    with pytest.raises(ValueError, match="too extreme for double precision"):
        model.fit(np.zeros((1000, 1)), np.full(1000, 0.5))
    assert len(accountant.entries()) == 0


@pytest.mark.parametrize("epsilon", [100.0, 1000.0])
def test_published_ridge_is_one_that_a_solver_can_work_with(epsilon):
    """To the letter kappa would be 1e-12, and the minimum 1e10 away."""
    model = PublishedDiscreteTimeSurvival(
        epsilon, max_time=1.0, n_intervals=1, n_knots=1, random_state=0
    )
    fit = model.fit(np.full((300, 1), 0.3), np.full(300, 0.5))
    assert fit.guarantee_.public_inputs["kappa"] > 1e-4
    assert np.abs(fit.coef_).max() < 1e6
