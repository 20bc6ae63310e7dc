"""What a fit decides before it reads a record: cap, clipping, columns, and shares of epsilon."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from sksurv.util import Surv

from skdpsurv import DPDiscreteTimeSurvival, PrivacyAccountant, PrivacyLeakWarning
from skdpsurv.data import PublicInputWarning
from skdpsurv.data.blocks import InMemory
from skdpsurv.datasets import make_discrete_time_survival
from skdpsurv.dp import random_source
from skdpsurv.mechanisms import perturbation
from skdpsurv.mechanisms.perturbation import Perturbed
from skdpsurv.mechanisms.sums import MeanOfRows
from skdpsurv.published import PublishedDiscreteTimeSurvival
from skdpsurv.survival.hazards.discrete_time import fit_of, perturbed_plan
from skdpsurv.survival.hazards.fit import (
    CAP_LEVEL,
    HIGHEST_RISE,
    LEVEL_SIZE,
    PILOT_RECORDS,
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


class TestCap:
    def test_information_is_n_epsilon_in_hundreds_per_parameter(self):
        assert MODEL.information(2.0) == pytest.approx(1000 * 2.0 / (100 * 5))
        assert replace(MODEL, n_features=7).information(2.0) == pytest.approx(2.0)
        assert replace(MODEL, n_knots=8).information(2.0) == pytest.approx(2.0)

    def test_auto_depends_on_n_epsilon_and_parameters_alone(self):
        """The public rule: 0.9 times the information to the power 0.28, between its ends."""
        assert MODEL.cap(2.0) == pytest.approx(0.9 * 4.0**0.28)
        assert (MODEL.cap(1e-6), MODEL.cap(1e6)) == CAP_RANGE == (0.8, 5.0)
        same = replace(MODEL, n_records=500), replace(MODEL, n_features=7)
        assert [m.cap(4.0) for m in same] == pytest.approx([MODEL.cap(2.0)] * 2)
        for change in ({"data_norm": 9.0}, {"prior_event_rate": 0.01}, {"n_intervals": 7}):
            assert replace(MODEL, **change).cap(2.0) == MODEL.cap(2.0)
        assert (1 - MODEL.prior_hazard) ** 50 == pytest.approx(0.6)

    def test_a_given_cap_is_used_as_it_is(self):
        for cap in (0.1, 30.0, None):
            model = replace(MODEL, max_cumulative_hazard=cap)
            assert {model.cap(epsilon) for epsilon in (1e-3, 1.0, 1e3)} == {cap}
            assert plan(max_cumulative_hazard=cap).likelihood.max_cumulative_hazard == cap


class TestRisingCap:
    """A cap that is ours to choose follows the level of the released life table."""

    def cap_after(self, one, level):
        """Return the cap after a first look that found a cumulative hazard."""
        center = one.public_pilot.center
        hazard = -np.expm1(-level / MODEL.n_intervals)
        center[0] = np.log(hazard / (1 - hazard)) / one.basis[0, 0]
        return one.after(
            PilotEstimate(center, np.zeros(2), 1.0, 1.0)
        ).likelihood.max_cumulative_hazard

    def test_it_rises_with_the_level_between_public_ends(self):
        one = plan(1.0)  # information 2
        least = one.likelihood.max_cumulative_hazard
        assert one.highest_cap == HIGHEST_RISE > least
        assert self.cap_after(one, 0.01) == least
        assert self.cap_after(one, 1.7 / CAP_LEVEL) == pytest.approx(1.7)
        assert self.cap_after(one, 50.0) == HIGHEST_RISE
        assert self.cap_after(one, 1e-300) == least
        # Less for less information.
        assert self.cap_after(plan(0.25), 2.9 / CAP_LEVEL) == pytest.approx(1.45)

    def test_ridge_and_noise_follow_it(self):
        one = plan(1.0)
        center = one.public_pilot.center
        center[0] = 3.0 / one.basis[0, 0]
        risen = one.after(PilotEstimate(center, np.zeros(2), 1.0, 1.0))
        assert risen == one.bounded(HIGHEST_RISE)._replace(likelihood=risen.likelihood)
        direct = plan(1.0, max_cumulative_hazard=HIGHEST_RISE)
        assert risen.likelihood.constants == direct.likelihood.constants
        assert risen.calibration.noise_scale == direct.calibration.noise_scale
        assert risen.calibration.noise_scale > one.calibration.noise_scale

    def test_it_stays_where_it_was_given_or_nothing_was_looked_at(self):
        for one in [
            plan(1.0, max_cumulative_hazard=1.0),
            plan(1.0, max_cumulative_hazard=None),
            plan(1.0, pilot_share=0.0),
            plan(0.1),  # no first look
            plan(1e4),  # higher already
        ]:
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
    def test_the_baseline_is_small_beside_covariates_in_a_unit_ball(self):
        for q, e in [(50, 3), (7, 1), (200, 6)]:
            likelihood = plan(n_intervals=q, n_knots=e).likelihood
            sizes = np.sqrt(np.mean(likelihood.basis**2, axis=0))
            np.testing.assert_allclose(sizes, [LEVEL_SIZE] + [SHAPE_SIZE] * (e - 1))
            np.testing.assert_allclose(likelihood.basis[:, 0], LEVEL_SIZE)
            assert likelihood.data_norm == 1.0


class TestPilot:
    def test_parts_of_epsilon(self):
        for epsilon in [0.19, 0.21, 3.0]:
            one = planned(epsilon)
            has_pilot = MODEL.n_records * epsilon >= PILOT_RECORDS
            assert one[1][0] == (pytest.approx(0.1 * epsilon) if has_pilot else 0.0)
            shared = planned(epsilon, recalibration_share=0.2)
            assert shared[1][1] == (pytest.approx(0.2 * epsilon) if has_pilot else 0.0)
            assert ("table of risks" in shared[2].mechanism) == has_pilot
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
            assert ("life table" in one[2].mechanism) == has_pilot
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
    def test_rows_are_clipped_to_the_spread_and_more_for_more_information(
        self, monkeypatch, epsilon, found, expected
    ):
        """Radius of the rows that reach the likelihood, for a released spread ``found``."""
        mean, seen = np.array([0.25, 0.5]), []
        monkeypatch.setattr(MeanOfRows, "shrunk", lambda *args: (mean, found))
        original = HazardRecords.within
        monkeypatch.setattr(HazardRecords, "within", lambda *a: seen.append(a[1:]) or original(*a))
        point = Perturbed(np.arange(1.0, 6.0), np.zeros(5))
        monkeypatch.setattr(
            perturbation, "perturb", lambda problem, source: problem.blocks.persist() and point
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


class TestScales:
    """What a fit is refused for, if it is out of all proportion."""

    def test_every_scale_of_noise_is_among_them(self):
        for method in ["obj_pert", "out_pert"]:
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


def test_no_finite_record_makes_a_fit_fail():
    """Not even in the first look, where rows are divided by data_norm."""
    for n_features, extreme in itertools.product(
        [1, 2, 4], [1.7976931348623157e308, -1.7976931348623157e308]
    ):
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


def test_public_numbers_beyond_doubles_are_refused_before_the_charge():
    for parameters in [
        {"max_cumulative_hazard": 1e-306},
        {"max_cumulative_hazard": 1e300},
        {"pilot_share": 5e-324, "epsilon": 100.0},
        {"data_norm": 1e6, "epsilon": 1e11},
    ]:
        accountant = PrivacyAccountant()
        model = DPDiscreteTimeSurvival(max_time=1.0, accountant=accountant).set_params(**parameters)
        with pytest.raises(ValueError, match="too extreme for double precision"):
            model.fit(np.zeros((1000, 1)), np.full(1000, 0.5))
        assert len(accountant.entries()) == 0


def test_published_ridge_is_one_that_a_solver_can_work_with():
    """To the letter kappa would be 1e-12, and the minimum 1e10 away."""
    for epsilon in [100.0, 1000.0]:
        model = PublishedDiscreteTimeSurvival(
            epsilon, max_time=1.0, n_intervals=1, n_knots=1, random_state=0
        )
        fit = model.fit(np.full((300, 1), 0.3), np.full(300, 0.5))
        assert fit.guarantee_.public_inputs["kappa"] > 1e-4
        assert np.abs(fit.coef_).max() < 1e6
