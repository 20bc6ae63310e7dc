"""What a fit decides before it reads a record: cap, clipping, columns, and shares of epsilon."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from skdpsurv import DPDiscreteTimeSurvival
from skdpsurv.data.blocks import InMemory
from skdpsurv.data.histories import Histories
from skdpsurv.datasets import make_discrete_time_survival
from skdpsurv.dp import random_source
from skdpsurv.mechanisms import perturbation
from skdpsurv.mechanisms.moments import MeanOfRows
from skdpsurv.mechanisms.perturbation import Perturbed
from skdpsurv.survival.hazards import fit as hazard_fit
from skdpsurv.survival.hazards.fit import HIGHEST_RISE, TABLE_PART
from skdpsurv.survival.hazards.fit_plan import fit_of, perturbed_plan
from skdpsurv.survival.hazards.life_table import LifeTable
from skdpsurv.survival.hazards.model import CAP_RANGE, HazardModel, HazardRecords
from skdpsurv.survival.hazards.pilot_estimate import PilotEstimate
from skdpsurv.survival.hazards.spreads import SMALLEST_SPREAD, RowMean

MODEL = HazardModel("logit", 50, 3, 1000, 2, 1.5, "auto", 0.4)


def planned(epsilon=1.0, method="obj_pert", pilot_share=0.1, recalibration_share=0.0, **changes):
    shares = pilot_share, recalibration_share, 0.0
    found = fit_of(replace(MODEL, **changes), epsilon, method, 0.0, shares)
    return *found, perturbed_plan(*found)


def plan(*args, **kwargs):
    """Return what is public of a fit."""
    return planned(*args, **kwargs)[0]


def test_the_cap_depends_on_n_epsilon_and_parameters_alone():
    """The public rule: 0.9 times the information to the power 0.28, between its ends."""
    assert MODEL.information(2.0) == pytest.approx(1000 * 2.0 / (100 * 5))
    assert replace(MODEL, n_features=7).information(2.0) == pytest.approx(2.0)
    assert replace(MODEL, n_knots=8).information(2.0) == pytest.approx(2.0)
    assert MODEL.cap(2.0) == pytest.approx(0.9 * 4.0**0.28)
    assert (MODEL.cap(1e-6), MODEL.cap(1e6)) == CAP_RANGE == (0.8, 5.0)
    same = replace(MODEL, n_records=500), replace(MODEL, n_features=7)
    assert [m.cap(4.0) for m in same] == pytest.approx([MODEL.cap(2.0)] * 2)
    for change in ({"data_norm": 9.0}, {"prior_event_rate": 0.01}, {"n_intervals": 7}):
        assert replace(MODEL, **change).cap(2.0) == MODEL.cap(2.0)
    assert (1 - MODEL.prior_hazard) ** 50 == pytest.approx(0.6)
    for cap in (0.1, 30.0, None):  # one that is given is used as it is
        model = replace(MODEL, max_cumulative_hazard=cap)
        assert {model.cap(epsilon) for epsilon in (1e-3, 1.0, 1e3)} == {cap}
        assert plan(max_cumulative_hazard=cap).likelihood.max_cumulative_hazard == cap


class TestFollowingCap:
    """A cap that is ours to choose follows the level of the released life table."""

    @staticmethod
    def looked(one, level):
        """Return the fit after a first look that found a cumulative hazard."""
        center = one.public_pilot.center
        hazard = -np.expm1(-level / MODEL.n_intervals)
        center[0] = np.log(hazard / (1 - hazard)) / one.basis[0, 0]
        return one.after(PilotEstimate(center, np.zeros(2), 1.0, 1.0))

    def cap_after(self, one, level):
        return self.looked(one, level).likelihood.max_cumulative_hazard

    def test_it_falls_and_rises_with_the_level_between_public_ends(self):
        one, level = plan(1.0), hazard_fit.CAP_LEVEL  # information 2
        least, usual = CAP_RANGE[0], one.likelihood.max_cumulative_hazard
        assert one.highest_cap == HIGHEST_RISE > usual > least
        found = [self.cap_after(one, at) for at in (1e-300, 0.01, 0.5, 1.1, 1.7 / level, 50.0)]
        fallen = usual * 0.5 ** (1.0 / 3.0)
        assert found == pytest.approx([least, least, fallen, usual, 1.7, HIGHEST_RISE])
        # With more information it falls from higher, and with standard errors as well.
        for share in (0.0, 0.2):
            many = fit_of(MODEL, 100.0, "obj_pert", 0.0, (0.1, 0.0, share))[0]
            high = many.likelihood.max_cumulative_hazard
            assert self.cap_after(many, 0.1) == pytest.approx(high * 0.1 ** (1.0 / 3.0))
        # Less for less information.
        assert self.cap_after(plan(0.25), 2.9 / level) == pytest.approx(1.45)
        inputs = planned(1.0)[2].public_inputs()
        assert inputs["max_cumulative_hazard"] == {"from": least, "to": 3.0}
        for name in ("gradient_sensitivity", "kappa", "noise_scale"):
            assert inputs[name]["from"] < inputs[name]["to"]
        assert inputs["hessian_rank"] == 3

    def test_ridge_and_noise_follow_it(self):
        one = plan(1.0)
        risen = self.looked(one, 50.0)
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


def test_the_baseline_is_small_beside_covariates_in_a_unit_ball():
    for q, e in [(50, 3), (7, 1), (200, 6)]:
        likelihood = plan(n_intervals=q, n_knots=e).likelihood
        sizes = np.sqrt(np.mean(likelihood.basis**2, axis=0))
        level, shape = hazard_fit.LEVEL_SIZE, hazard_fit.SHAPE_SIZE
        np.testing.assert_allclose(sizes, [level] + [shape] * (e - 1))
        np.testing.assert_allclose(likelihood.basis[:, 0], level)
        assert likelihood.data_norm == 1.0


class TestPilot:
    def test_parts_of_epsilon(self):
        for epsilon in [0.19, 0.21, 3.0]:
            one, shared = planned(epsilon), planned(epsilon, recalibration_share=0.2)
            has_pilot = MODEL.n_records * epsilon >= hazard_fit.PILOT_RECORDS
            assert one[1][0] == (pytest.approx(0.1 * epsilon) if has_pilot else 0.0)
            assert shared[1][1] == (pytest.approx(0.2 * epsilon) if has_pilot else 0.0)
            assert ("table of risks" in shared[2].mechanism) == has_pilot
            assert ("life table" in one[2].mechanism) == has_pilot
            many = planned(epsilon, pilot_share=0.26, recalibration_share=0.7399)
            for fit, prices, whole in (one, shared, many):
                parts = fit.price, *prices
                assert sum(parts) == pytest.approx(epsilon, rel=1e-12)
                assert sum(map(Fraction, parts)) <= Fraction(epsilon)
                stated = whole.public_inputs()
                names = ("fit", "center", "recalibration")
                assert tuple(stated[f"epsilon_{name}"] for name in names) == parts[:3]
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
            parts = [0.1 * epsilon * part for part in (TABLE_PART, 1.0 - TABLE_PART)]
            assert [seen[LifeTable], seen[RowMean]] == pytest.approx(parts, rel=1e-13)
            assert sum(map(Fraction, seen.values())) <= Fraction(planned(epsilon)[1][0])

    @pytest.mark.parametrize(
        ("epsilon", "found", "expected"),
        [
            (0.5, 1.0, 1.0 * hazard_fit.SPREAD_RANGE[0]),  # signal 1
            (2.0, 1.0, 4.0**0.16),
            (1e3, 1.0, hazard_fit.SPREAD_RANGE[1]),
            (1e3, 0.0, SMALLEST_SPREAD * 1.5 * hazard_fit.SPREAD_RANGE[1]),
        ],
    )
    def test_rows_are_clipped_to_the_spread_and_more_for_more_information(
        self, monkeypatch, epsilon, found, expected
    ):
        """Radius of the rows that reach the likelihood, for a released spread ``found``."""
        mean, seen = np.array([0.25, 0.5]), []
        monkeypatch.setattr(MeanOfRows, "shrunk", lambda *args: (mean, found))
        original = HazardRecords.clipped
        monkeypatch.setattr(HazardRecords, "clipped", lambda *a: seen.append(a[1:]) or original(*a))
        point = Perturbed(np.arange(1.0, 6.0), np.zeros(5))
        monkeypatch.setattr(
            perturbation, "perturb", lambda problem, source: problem.blocks.persist() and point
        )
        X = np.random.default_rng(0).uniform(-1, 1, size=(1000, 2))
        records = InMemory(
            [HazardRecords(X, Histories(np.full(1000, 7), np.zeros(1000, dtype=bool)))]
        )
        one, _, whole = planned(epsilon)
        baseline, beta = whole.tree.run({}, records, random_source(0))["_fitted"]
        ((used_mean, radius, reach, scales),) = seen[:1]
        assert scales is None
        assert reach is None
        np.testing.assert_array_equal(used_mean, mean)
        assert radius == pytest.approx(expected)
        # What was scaled and shifted for the fit is scaled and shifted back.
        np.testing.assert_allclose(beta, np.array([4.0, 5.0]) / radius)
        shifted = one.likelihood.basis @ [1.0, 2.0, 3.0] - mean @ beta
        np.testing.assert_allclose(baseline, shifted, rtol=1e-12)


def test_every_scale_of_noise_is_among_those_that_a_fit_is_refused_for():
    for method in ["obj_pert", "out_pert"]:
        one, (center, *_), whole = planned(2.0, method)
        scales, ends = np.array(whole.scales()), [end.calibration for end in one.ends]
        own = [scale for end in ends for scale in (end.noise_scale, end.kappa)]
        for scale in (*own, 1.5, 1.0 / (TABLE_PART * center)):
            assert np.isclose(scales, scale, rtol=1e-6).any()
        # The mean's own scale, up to the share of its part.
        mean_scale = 2 * 1.5 / (1000 * (1.0 - TABLE_PART) * center)
        assert ((mean_scale / 2 <= scales) & (scales <= mean_scale * 2)).any()
