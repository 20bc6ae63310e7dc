"""DPCompetingRisks: exact fits, what is spent, and what follows from a release."""

from dataclasses import replace
from fractions import Fraction

import lifelines
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from sklearn.base import clone
from typer.testing import CliRunner

from skdpsurv import (
    DPAalenJohansenFitter,
    DPCompetingRisks,
    DPDiscreteTimeSurvival,
    PrivacyAccountant,
    PrivateSearchCV,
    PublicColumns,
    Release,
    forecast_accuracy,
)
from skdpsurv.audit import measurement_audit, worst_neighbours
from skdpsurv.cli import app
from skdpsurv.data.blocks import in_blocks
from skdpsurv.data.histories import Histories
from skdpsurv.data.target import survival_target
from skdpsurv.evaluation import concordance_index, private_survival_metrics
from skdpsurv.survival.hazards.causes import against_survivors
from skdpsurv.survival.hazards.life_table import entry_counts, outcome_counts
from skdpsurv.survival.hazards.model import HazardRecords, published_basis

HORIZON = 8.0


def simulated(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 2))
    first = rng.exponential(8.0 * np.exp(-X[:, 0]))
    second = rng.exponential(12.0 * np.exp(0.5 * X[:, 1]))
    censored = rng.uniform(0.0, 12.0, n)
    time = np.minimum(np.minimum(first, second), censored)
    cause = np.where(time == censored, 0, np.where(time == first, 1, 2))
    return X, cause, time


def made(epsilon=np.inf, **parameters):
    given = {"causes": [1, 2], "max_time": HORIZON, "n_intervals": 12, "data_norm": 1.5}
    return DPCompetingRisks(epsilon, **{**given, **parameters})


def target(cause, time, dtype=float):
    y = np.empty(len(time), dtype=[("cause", dtype), ("time", float)])
    y["cause"], y["time"] = cause, time
    return y


@pytest.fixture(scope="module")
def exact():
    X, cause, time = simulated()
    return made().fit(X, target(cause, time))


class TestWithoutPrivacy:
    @pytest.mark.parametrize("cause", [1, 2])
    def test_coefficients_are_those_of_a_logit_of_each_cause(self, exact, cause):
        X, seen, time = simulated()
        seen = np.where(time > HORIZON, 0, seen)
        last = np.clip(np.ceil(12 * np.minimum(time, HORIZON) / HORIZON), 1, 12).astype(int)
        last = last - ((seen != 0) & (seen != cause))
        person = np.repeat(np.arange(len(X)), last)
        interval = np.concatenate([np.arange(k) for k in last])
        happened = (seen[person] == cause) & (interval == last[person] - 1)
        rows = np.column_stack([published_basis(12, 3)[interval], X[person]])
        found = sm.Logit(happened.astype(float), rows).fit(disp=0, method="newton", tol=1e-13)
        own = np.append(exact.baseline_coef_[cause - 1], exact.coef_[cause - 1])
        np.testing.assert_allclose(own, found.params, rtol=0, atol=1e-8)

    def test_it_is_near_one_multinomial_logit(self, exact):
        """That of all causes at once, which is a little more efficient."""
        X, seen, time = simulated()
        seen = np.where(time > HORIZON, 0, seen)
        last = np.clip(np.ceil(12 * np.minimum(time, HORIZON) / HORIZON), 1, 12).astype(int)
        person = np.repeat(np.arange(len(X)), last)
        interval = np.concatenate([np.arange(k) for k in last])
        outcome = np.where(interval == last[person] - 1, seen[person], 0)
        rows = np.column_stack([published_basis(12, 3)[interval], X[person]])
        found = sm.MNLogit(outcome, rows).fit(disp=0, method="newton", tol=1e-12)
        own = np.column_stack([exact.baseline_coef_, exact.coef_]).T
        assert (np.abs(own - found.params) < 0.3 * found.bse).all()

    def test_without_covariates_it_is_aalen_johansen(self):
        """Ours and lifelines': at the ends of intervals, where nobody is censored inside of one."""
        rng = np.random.default_rng(1)
        time, cause = rng.uniform(0.0, 10.0, 800), rng.integers(1, 3, 800)
        cause[time > HORIZON] = 0
        ends = np.arange(1.0, 9.0)
        model = made(n_intervals=8, n_knots=8).fit(np.zeros((800, 1)), target(cause, time))
        bands = {"n_intervals": 8, "breakpoints": "equal"}
        ours = DPAalenJohansenFitter(np.inf, max_time=HORIZON, causes=[1, 2], **bands)
        ours.fit(time, cause)
        for number in (1, 2):
            own = model.predict_cumulative_incidence_function([[0.0]], number, return_array=True)
            expected = ours.cumulative_density_at_times(ends, cause=number)
            np.testing.assert_allclose(own[0], expected, rtol=0, atol=1e-8)
            np.testing.assert_allclose(own[0], lifelines_at(time, cause, number, ends), atol=1e-8)

    def test_it_is_lifelines_aalen_johansen_with_people_censored_between_intervals(self):
        rng = np.random.default_rng(2)
        time, cause = rng.uniform(0.0, 9.0, 800), rng.integers(0, 3, 800)
        time[cause == 0] = np.ceil(time[cause == 0])
        model = made(n_intervals=8, n_knots=8).fit(np.zeros((800, 1)), target(cause, time))
        for number in (1, 2):
            own = model.predict_cumulative_incidence_function([[0.0]], number, return_array=True)
            expected = lifelines_at(time, cause, number, np.arange(1.0, 9.0))
            np.testing.assert_allclose(own[0], expected, rtol=0, atol=1e-8)

    def test_a_cap_is_used_only_if_it_is_a_number(self, exact):
        X, cause, time = simulated()
        capped = made(max_cumulative_hazard=0.4).fit(X, target(cause, time))
        assert np.abs(capped.coef_ - exact.coef_).max() > 0.01
        wide = made(max_cumulative_hazard=100.0).fit(X, target(cause, time))
        np.testing.assert_allclose(wide.coef_, exact.coef_, atol=1e-8)

    def test_one_cause_is_the_hazard_model(self):
        X, cause, time = simulated()
        y = target(cause > 0, time)
        one = made(causes=[1]).fit(X, y)
        both = {"max_time": HORIZON, "n_intervals": 12, "data_norm": 1.5}
        hazard = DPDiscreteTimeSurvival(np.inf, **both).fit(X, (cause > 0, time))
        np.testing.assert_allclose(one.coef_[0], hazard.coef_, atol=1e-9)
        np.testing.assert_allclose(one.predict(X), hazard.predict(X), atol=1e-8)
        np.testing.assert_allclose(
            one.predict_survival_function(X[:5], return_array=True),
            hazard.predict_survival_function(X[:5], return_array=True),
            atol=1e-9,
        )
        assert one.score(X, y) == hazard.score(X, (cause > 0, time))


def lifelines_at(time, cause, number, ends):
    curve = lifelines.AalenJohansenFitter(calculate_variance=False)
    found = curve.fit(time, cause, event_of_interest=number).cumulative_density_.iloc[:, 0]
    return found.asof(ends).to_numpy()


class TestPredictions:
    def test_incidences_and_survival_add_up_to_one(self, exact):
        X = np.r_[simulated()[0][:50], [[40.0, -40.0], [-700.0, 700.0]]]
        total = exact.predict_survival_function(X, return_array=True)
        for cause in exact.causes_:
            curve = exact.predict_cumulative_incidence_function(X, cause, return_array=True)
            assert (np.diff(curve, axis=1) >= 0.0).all()
            assert (curve <= 1.0 + 1e-12).all()
            total = total + curve
        np.testing.assert_allclose(total, 1.0, atol=1e-12)

    def test_step_functions_are_the_arrays(self, exact):
        X = simulated()[0][:3]
        array = exact.predict_cumulative_incidence_function(X, 2, return_array=True)
        for function, row in zip(
            exact.predict_cumulative_incidence_function(X, 2), array, strict=True
        ):
            assert function(0.0) == 0.0
            np.testing.assert_array_equal(function(exact.unique_times_), row)

    def test_the_first_cause_is_meant_unless_one_is_named(self, exact):
        X, cause, time = simulated()
        y = target(cause, time)
        np.testing.assert_array_equal(exact.predict(X), exact.predict(X, 1))
        np.testing.assert_array_equal(exact.predict(X, 2), X @ exact.coef_[1])
        assert exact.score(X, y) == exact.score(X, y, cause=1) != exact.score(X, y, cause=2)
        with pytest.raises(ValueError, match=r"cause must be one of causes, \[1, 2\], got 3"):
            exact.predict(X, 3)

    def test_score_is_that_of_a_cause_with_the_others_censored(self, exact):
        X, cause, time = simulated()
        for number in (1, 2):
            expected = lifelines.utils.concordance_index(
                time, -exact.predict(X, number), cause == number
            )
            assert exact.score(X, target(cause, time), cause=number) == pytest.approx(expected)

    def test_summary_has_a_row_for_each_cause_and_column(self):
        X, cause, time = simulated()
        frame = pd.DataFrame({"age": 50.0 + 30.0 * X[:, 0], "dose": X[:, 1]})
        columns = PublicColumns({"age": (20, 80), "dose": (-1, 1)})
        model = made(columns=columns, data_norm="auto").fit(frame, target(cause, time))
        assert model.summary.index.names == ["cause", "covariate"]
        expected = made().fit(X, target(cause, time))
        found = model.summary["coef"]
        assert found[1, "age"] == pytest.approx(expected.coef_[0, 0] / 30.0, abs=1e-8)
        assert found[2, "dose"] == pytest.approx(expected.coef_[1, 1], abs=1e-8)


class TestTargets:
    def test_labels_are_as_stated(self, exact):
        X, cause, time = simulated()
        words = np.array(["alive", "relapse", "death"])[cause]
        model = made(causes=["relapse", "death"], censored="alive")
        y = target(words, time, dtype="U7")
        for given in (y, (words, time), pd.DataFrame({"event": words, "time": time})):
            fitted = clone(model).fit(X, given)
            np.testing.assert_array_equal(fitted.coef_, exact.coef_)
        assert fitted.causes_ == ["relapse", "death"]

    def test_other_labels_are_refused_without_a_word_about_them(self):
        X, cause, time = simulated(50)
        with pytest.raises(ValueError, match="causes, or censored") as caught:
            made().fit(X, target(np.where(cause == 2, 7654, cause), time))
        assert "7654" not in str(caught.value)

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"causes": None}, "causes must be given|causes must be"),
            ({"causes": [1, 1]}, "causes must"),
            ({"causes": [0, 1]}, "censored must not be one of causes"),
            ({"n_knots": 13}, "n_knots must be at most n_intervals"),
            ({"max_cumulative_hazard": None}, "max_cumulative_hazard must be"),
        ],
    )
    def test_parameters_that_are_refused(self, parameters, message):
        X, cause, time = simulated(20)
        with pytest.raises((ValueError, TypeError), match=message):
            made(**parameters).fit(X, target(cause, time))


def entries(n=2000):
    """Some people are there from the start; some enter after their exit."""
    return np.random.default_rng(7).uniform(-2.0, 6.0, n).clip(0.0)


class TestLateEntry:
    @pytest.mark.parametrize("cause", [1, 2])
    def test_coefficients_are_those_of_a_logit_of_the_intervals_after_the_entry(self, cause):
        X, seen, time = simulated()
        model = made().fit(X, target(seen, time), entry=entries())
        seen = np.where(time > HORIZON, 0, seen)
        last = np.clip(np.ceil(12 * np.minimum(time, HORIZON) / HORIZON), 1, 12).astype(int)
        first = np.ceil(12 * entries() / HORIZON).astype(int)
        own_last = last - ((seen != 0) & (seen != cause))
        pairs = [(i, s) for i in range(len(X)) for s in range(first[i], own_last[i])]
        person, interval = np.transpose(pairs)
        happened = (seen[person] == cause) & (interval == last[person] - 1)
        rows = np.column_stack([published_basis(12, 3)[interval], X[person]])
        found = sm.Logit(happened.astype(float), rows).fit(disp=0, method="newton", tol=1e-13)
        own = np.append(model.baseline_coef_[cause - 1], model.coef_[cause - 1])
        np.testing.assert_allclose(own, found.params, rtol=0, atol=1e-8)

    def test_who_is_never_at_risk_counts_for_nothing_and_entries_at_0_change_nothing(self, exact):
        X, cause, time = simulated()
        last = np.ceil(12 * np.minimum(time, HORIZON) / HORIZON)
        at_risk = np.ceil(12 * entries() / HORIZON) < last
        assert 0 < at_risk.sum() < 2000
        everybody = made().fit(X, target(cause, time), entry=entries())
        some = made().fit(
            X[at_risk], target(cause[at_risk], time[at_risk]), entry=entries()[at_risk]
        )
        np.testing.assert_allclose(everybody.coef_, some.coef_, atol=1e-9)
        usual = made().fit(X, target(cause, time), entry=np.zeros(2000))
        np.testing.assert_allclose(usual.coef_, exact.coef_, atol=1e-9)

    def test_baselines_of_a_life_table_by_entry_are_near_those_of_the_fit(self):
        """With hardly any noise; a table that forgot entries would halve the hazards."""
        X, cause, time = simulated(20_000)
        entry = entries(20_000)
        model = made(1e4, n_intervals=48)
        table = model.prepare(X, target(cause, time), entry=entry).plan.leaves[0]
        on_grid = [np.ceil(48 * one / HORIZON).astype(int) for one in (time, entry)]
        seen = np.where(time > HORIZON, 0, cause)
        histories = Histories(np.minimum(on_grid[0], 48), seen, on_grid[1])
        records = in_blocks(X, width=2).map(lambda block: HazardRecords(X, histories))
        answer = table.exact_answer({}, records)
        found = table.postprocess({}, answer)["_baseline"] @ table.fit.basis.T
        fitted = made(n_intervals=48).fit(np.zeros((20_000, 1)), target(cause, time), entry=entry)
        expected = fitted.baseline_coef_ @ published_basis(48, 3).T
        assert np.abs(found - expected).mean() < 0.15

    def test_each_record_is_in_one_cell(self):
        rng = np.random.default_rng(3)
        X = np.zeros((30, 1))

        def counts(exit_, cause, entry):
            records = in_blocks(X, width=1).map(
                lambda block: HazardRecords(X, Histories(exit_, cause, entry))
            )
            return entry_counts(records, 12, 4, n_causes=3)

        held = rng.integers(1, 13, 30), rng.integers(0, 4, 30), rng.integers(0, 13, 30)
        before = counts(*held)
        assert before.shape == (4 * 5 * 4 + 1,)
        assert before.sum() == 30
        for _ in range(50):
            moved = [column.copy() for column in held]
            for column, new in zip(moved, rng.integers((1, 0, 0), (13, 4, 13)), strict=True):
                column[0] = new
            change = np.abs(counts(*moved) - before)
            assert change.sum() <= 2
            assert change.max() <= 1

    def test_scores_count_pairs_at_risk_and_a_private_fit_states_entries(self):
        X, cause, time = simulated()
        y = target(cause, time)
        model = made(3.0).fit(X, y, entry=entries())
        assert model.guarantee_.status == "proved"
        assert model.guarantee_.public_inputs["late_entry"] is True
        for number in (1, 2):
            expected = concordance_index(
                survival_target(cause == number, time), model.predict(X, number), entry=entries()
            )
            assert model.score(X, y, cause=number, entry=entries()) == expected
        built = DPCompetingRisks.from_release(model.release_)
        np.testing.assert_array_equal(built.predict(X), model.predict(X))


class TestElsewhere:
    """What is not provided for is refused by name, and costs nothing."""

    def test_searches_by_losses_of_survival(self):
        X, cause, time = simulated(50)
        search = PrivateSearchCV(made(1.0), {"alpha": [0.01, 1.0]}, epsilon=2.0)
        with pytest.raises(ValueError, match="several causes"):
            search.fit(X, target(cause, time))

    def test_forecasts_priors_of_hazards_and_private_metrics(self):
        X, cause, time = simulated(400)
        model = made(1.0).fit(X, target(cause, time))
        with pytest.raises(TypeError, match="estimator must be one of"):
            forecast_accuracy(made(1.0), 500)
        hazard = DPDiscreteTimeSurvival(max_time=HORIZON, prior=model.release_)
        with pytest.raises(ValueError, match="prior must be a model of hazards"):
            hazard.fit(X, (cause > 0, time))
        with pytest.raises(ValueError, match="of y must be boolean"):  # but by cause
            private_survival_metrics(model, X, target(cause, time), max_time=HORIZON, epsilon=1.0)


class TestPilot:
    def test_whoever_had_another_event_leaves_one_interval_earlier(self):
        exits = np.array([[5.0, 1.0, 2.0], [0.0, 3.0, 4.0], [7.0, 0.0, 6.0]])
        np.testing.assert_array_equal(against_survivors(exits, 1), [[9, 1], [6, 3], [7, 0]])
        np.testing.assert_array_equal(against_survivors(exits, 2), [[8, 2], [0, 4], [7, 6]])

    def test_caps_follow_the_shares_of_causes(self):
        X, cause, time = simulated(4000)
        rare = np.where((cause == 2) & (np.arange(4000) % 10 > 0), 0, cause)
        caps = made(20.0, n_intervals=50).fit(X, target(rare, time)).max_cumulative_hazard_
        assert 0.25 * caps.sum() <= caps[1] < 0.4 * caps.sum()


class TestPrivacy:
    def test_each_record_is_in_one_cell(self):
        """Replacing a record moves two counts by one, whatever its time and cause."""
        rng = np.random.default_rng(3)
        interval, cause = rng.integers(1, 13, 30), rng.integers(0, 4, 30)
        X = np.zeros((30, 1))

        def counts(interval, cause):
            records = in_blocks(X, width=1).map(
                lambda block: HazardRecords(X, Histories(interval, cause))
            )
            return outcome_counts(records, 12, 4, n_causes=3).reshape(4, 4)

        before = counts(interval, cause)
        assert before.shape == (4, 4)
        assert before.sum() == 30
        for _ in range(50):
            moved = interval.copy(), cause.copy()
            moved[0][0], moved[1][0] = rng.integers(1, 13), rng.integers(0, 4)
            change = np.abs(counts(*moved) - before)
            assert change.sum() <= 2
            assert change.max() <= 1

    @pytest.mark.parametrize("share", ["auto", 0.0, 0.3])
    def test_all_parts_cost_epsilon(self, share):
        X, cause, time = simulated(500)
        fit = made(1.0, pilot_share=share).prepare(X, target(cause, time))
        prices = [Fraction(leaf.price) for leaf in fit.plan.leaves]
        assert sum(prices) <= 1
        assert float(sum(prices)) == pytest.approx(1.0)
        ledger = PrivacyAccountant(epsilon=1.0)
        model = made(1.0, pilot_share=share, accountant=ledger).fit(X, target(cause, time))
        assert ledger.spent() == 1.0
        assert model.guarantee_.status == "proved"

    @pytest.mark.parametrize("causes", [[1, 2], [1, 2, 3]])
    def test_caps_add_up_and_are_within_what_is_stated(self, causes):
        X, cause, time = simulated(1000)
        for epsilon in (0.1, 1.0, 30.0):
            prepared = made(epsilon, causes=causes).prepare(X, target(cause, time))
            model = prepared.run()
            stated = model.guarantee_.public_inputs
            fit = prepared.plan.leaves[-1].fit
            caps = model.max_cumulative_hazard_
            drawn = fit.bounded(tuple(caps))
            for name, found in (
                ("max_cumulative_hazard", caps.sum()),
                ("gradient_sensitivity", drawn.likelihood.constants.gradient_sensitivity),
                ("hessian_trace", drawn.likelihood.constants.hessian_trace),
                ("kappa", drawn.calibration.kappa),
                ("noise_scale", drawn.calibration.noise_scale),
            ):
                ends = stated[name]
                low, high = (ends["from"], ends["to"]) if hasattr(ends, "keys") else (ends, ends)
                assert low * (1 - 1e-9) <= found <= high * (1 + 1e-9), name

    @pytest.mark.parametrize("n_intervals", [1, 3, 5])
    def test_caps_of_few_intervals_are_within_what_is_stated(self, n_intervals):
        """A cap counts as the number of intervals, whatever the shares of eight causes are."""
        X, cause, time = simulated(1000)
        few = {"causes": list(range(1, 9)), "n_intervals": n_intervals, "n_knots": 1}
        model = made(1.0, max_cumulative_hazard=29.0, **few)
        prepared = model.prepare(X, target(cause, time))
        fit, ends = prepared.plan.leaves[-1].fit, prepared.guarantee.public_inputs
        stated = ends["gradient_sensitivity"]
        rng = np.random.default_rng(0)
        for levels in (np.eye(8)[0], np.ones(8), *rng.dirichlet(np.full(8, 0.2), 40)):
            caps = fit.shared(29.0, levels)
            assert sum(caps) == pytest.approx(n_intervals)
            found = fit.bounded(caps).likelihood.constants.gradient_sensitivity
            assert stated["from"] * (1 - 1e-9) <= found <= stated["to"] * (1 + 1e-9)

    @pytest.mark.parametrize("causes", [[1], [1, 2, 3]])
    def test_no_centre_of_the_ridge_is_longer_than_the_certificate_supposes(self, causes):
        """As the baselines of all causes are, at their largest predictors."""
        X, cause, time = simulated(300)
        y = target(np.minimum(cause, 1), time)
        fit = made(5.0, causes=causes).prepare(X, y).plan.leaves[-1].fit
        bound = fit.center_of(fit.likelihood)
        rng, longest = np.random.default_rng(4), 0.0
        for size in 10.0 ** rng.uniform(0.0, 6.0, 200):
            one = fit.clip_baseline(size * rng.normal(size=3))
            center = fit.centered(fit.public_pilot.center, np.tile(one, (len(causes), 1)))
            longest = max(longest, float(np.linalg.norm(center)))
        assert longest <= bound.norm
        assert longest > 0.5 * bound.norm

    @pytest.mark.slow
    def test_audit_of_each_measurement(self):
        model = made(20.0, n_intervals=4, n_knots=1, alpha=1.0, causes=[1, 2])
        most = {}
        for pair in worst_neighbours(model, n=12, n_features=1):
            result = measurement_audit(model, *pair[1:])
            assert result.passed, result
            for one in result.distances:
                most[one.measurement] = max(most.get(one.measurement, 0.0), one.share)
        assert len(most) == 3
        assert min(most.values()) > 0.5

    def test_the_release_stands_alone(self, tmp_path):
        X, cause, time = simulated(1000)
        model = made(3.0).fit(X, target(cause, time))
        model.release_.save(tmp_path / "model.json")
        built = DPCompetingRisks.from_release(Release.load(tmp_path / "model.json"))
        for number in (1, 2):
            np.testing.assert_array_equal(
                built.predict_cumulative_incidence_function(X[:9], number, return_array=True),
                model.predict_cumulative_incidence_function(X[:9], number, return_array=True),
            )
        assert built.causes_ == [1, 2]

    @pytest.mark.parametrize("cap", [0.0, -1.0, np.nan])
    def test_caps_of_a_release_are_positive(self, cap):
        X, cause, time = simulated(300)
        for model in (
            made(3.0).fit(X, target(cause, time)),
            DPDiscreteTimeSurvival(3.0, max_time=HORIZON).fit(X, (cause > 0, time)),
        ):
            release = model.release_
            caps = np.array(release.values["max_cumulative_hazard"])
            caps[0] = cap
            values = {**release.values, "max_cumulative_hazard": caps}
            with pytest.raises(ValueError, match="max_cumulative_hazard"):
                type(model).from_release(replace(release, values=values))

    def test_a_release_and_a_command_predict_incidences_by_cause(self, tmp_path):
        X, cause, time = simulated(1000)
        frame = pd.DataFrame(X, columns=["a", "b"])
        columns = PublicColumns({"a": (-1, 1), "b": (-1, 1)})
        release = made(3.0, columns=columns, data_norm="auto").fit(frame, (cause, time)).release_
        release.save(tmp_path / "model.json")
        frame[:4].to_csv(tmp_path / "rows.csv", index=False)
        files = [str(tmp_path / name) for name in ("model.json", "rows.csv", "out.csv")]
        command = ["predict", *files[:2], "--out", files[2], "--times", "0,4,8"]
        assert CliRunner().invoke(app, command).exit_code == 0
        found = pd.read_csv(files[2])
        for number in (1, 2):
            curves = release.predict_cumulative_incidence_function(frame[:4], number)
            for t in (0, 4, 8):
                expected = [curve(t) for curve in curves]
                np.testing.assert_allclose(found[f"incidence_{number}_{t}"], expected)
        total = found.filter(regex="_8$").sum(axis=1)
        np.testing.assert_allclose(total, 1.0)
        hazard = DPDiscreteTimeSurvival(max_time=HORIZON, columns=columns)
        other = hazard.fit(frame, (cause > 0, time)).release_
        with pytest.raises(ValueError, match="has no predict_cumulative_incidence_function"):
            other.predict_cumulative_incidence_function(frame)


def test_more_epsilon_is_nearer_to_the_fit_without_privacy(exact):
    X, cause, time = simulated(2000)
    errors = [
        np.mean(
            [
                np.abs(
                    made(epsilon, n_intervals=50).fit(X, target(cause, time)).coef_ - exact.coef_
                )
                for _ in range(5)
            ]
        )
        for epsilon in (0.3, 30.0)
    ]
    assert errors[1] < 0.25 < errors[0] + 0.25
