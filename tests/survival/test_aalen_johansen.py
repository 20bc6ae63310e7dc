"""Private cumulative incidences of competing events."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from lifelines import AalenJohansenFitter

from skdpsurv import DPAalenJohansenFitter, DPKaplanMeierFitter, PrivacyAccountant, Release

N = 4000


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(0)
    time = rng.exponential(3.0, N)
    cause = rng.choice([1, 2], N, p=[0.7, 0.3])
    end = rng.uniform(0.5, 9.0, N)
    return np.minimum(time, end), np.where(time <= end, cause, 0)


def fitter(epsilon=1.0, **options):
    options = {"max_time": 6.0, "causes": [1, 2], "random_state": 0, **options}
    return DPAalenJohansenFitter(epsilon, **options)


def test_equals_lifelines_without_privacy(records):
    for cause in [1, 2]:
        theirs = AalenJohansenFitter(calculate_variance=False).fit(
            *records, event_of_interest=cause
        )
        ours = fitter(np.inf).fit(*records, event_of_interest=cause)
        expected = theirs.predict(ours.timeline).to_numpy().ravel()
        np.testing.assert_allclose(ours.predict(ours.timeline), expected, rtol=0, atol=0.01)


def test_ties_are_at_risk_together():
    time, cause = np.array([1.0, 1.0, 3.0, 2.0, 3.0]), np.array([1, 2, 0, 1, 0])
    ours = fitter(np.inf, breakpoints=[1.0, 2.0]).fit(time, cause)
    found = [ours.cumulative_density_at_times([1.0, 2.0], cause=k).tolist() for k in (1, 2)]
    assert found[0] == pytest.approx([0.2, 0.2 + 0.6 / 3])
    assert found[1] == pytest.approx([0.2, 0.2])


def test_one_kind_of_event_is_a_kaplan_meier_curve(records):
    time, cause = records
    one = fitter(causes=[1]).fit(time, cause > 0)
    two = DPKaplanMeierFitter(max_time=6.0, random_state=0).fit(time, cause > 0)
    np.testing.assert_array_equal(one.release_.values["counts"], two.release_.values["counts"])
    np.testing.assert_allclose(1.0 - one.predict([1.0, 4.0]), two.predict([1.0, 4.0]), atol=1e-9)
    all_seen = fitter(causes=[1]).fit(time)
    assert all_seen.predict(5.0) > one.predict(5.0)


def test_words_for_causes_and_groups(records):
    time, cause = records
    words = np.array(["alive", "relapse", "death"], dtype=object)[cause]
    group = np.where(np.arange(N) % 2, "a", "b")
    options = {"causes": ["relapse", "death"], "censored": "alive", "groups": ["a", "b"]}
    ours = fitter(**options).fit(time, words, group=group)
    assert ours.causes_ == ["relapse", "death"]
    assert ours.release_.values["counts"].shape[0] == 2
    built = DPAalenJohansenFitter.from_release(Release.from_json(ours.release_.to_json()))
    for label in ("a", "b"):
        one, two = ours.of_group(label), built.of_group(label)
        pd.testing.assert_frame_equal(one.cumulative_density_, two.cumulative_density_)
        assert one.cumulative_density_.columns.tolist() == [label]
    dead = built.cumulative_density_at_times(5.0, cause="death").iloc[0]
    assert dead < ours.predict(5.0)
    # What a release was made to say, it says anywhere.
    how = {"group": group, "event_of_interest": "death"}
    other = fitter(**options).fit(time, words, **how).release_
    again = DPAalenJohansenFitter.from_release(Release.from_json(other.to_json()))
    assert again.predict(5.0) == dead
    y = pd.DataFrame({"what": words, "when": time})
    same = fitter(**options).fit(None, y, group=group)
    np.testing.assert_array_equal(same.release_.values["counts"], ours.release_.values["counts"])


def test_parameters_that_make_no_sense(records):
    for options, message in [
        ({"causes": None}, "causes must be given"),
        ({"causes": []}, "causes must be a list"),
        ({"causes": [1, 1]}, "causes must not hold a label twice"),
        ({"causes": list(range(1, 30))}, "causes must be at most"),
        ({"censored": 1}, "censored must not be one of causes"),
        ({"censored": None}, "censored must be a label"),
    ]:
        ledger = PrivacyAccountant(9.0, rehearsal=True)
        with pytest.raises((TypeError, ValueError), match=message):
            fitter(accountant=ledger, **options).fit(*records)
        assert ledger.rehearsed() == 0.0


def test_events_that_were_not_stated_are_refused(records):
    time, causes = records
    ledger = PrivacyAccountant(9.0, rehearsal=True)
    for cause in (3, "Zebedee Quux", np.nan, None):
        events = causes.astype(object)
        events[5] = cause
        with pytest.raises(ValueError, match="event_observed must hold") as refusal:
            fitter(accountant=ledger).fit(time, events)
        assert "Zebedee" not in str(refusal.value)
    with pytest.raises(ValueError, match="event_observed must be given"):
        fitter(accountant=ledger).fit(time)
    assert ledger.rehearsed() == 0.0


def test_parameters_that_are_set_later_change_nothing(records):
    ours = fitter().fit(*records)
    before = ours.survival_function_at_times([1.0, 4.0]).tolist(), ours.event_table
    first = ours.predict(4.0)
    total = sum(ours.cumulative_density_at_times([1.0, 4.0], cause=k) for k in (1, 2))
    np.testing.assert_allclose(1.0 - total, before[0], atol=1e-9)
    ours.set_params(causes=[1], censored=7)
    assert ours.survival_function_at_times([1.0, 4.0]).tolist() == before[0]
    pd.testing.assert_frame_equal(ours.event_table, before[1])
    assert ours.cumulative_density_at_times(4.0, cause=2).iloc[0] < first
    with pytest.raises(ValueError, match="cause must be one of"):
        ours.cumulative_density_at_times(4.0, cause=9)


def test_an_event_of_interest_that_is_no_cause_is_refused_before_any_charge(records):
    for cause in [3, "1", np.nan, True, [1]]:
        ledger = PrivacyAccountant(9.0, rehearsal=True)
        with pytest.raises((TypeError, ValueError), match="event_of_interest must be"):
            fitter(accountant=ledger).fit(*records, event_of_interest=cause)
        assert ledger.rehearsed() == 0.0


def test_the_event_of_interest_is_one_of_a_fit(records):
    """As in lifelines an argument of the fit; what is drawn and charged does not depend on it."""
    ledger = PrivacyAccountant(9.0, rehearsal=True)
    one = fitter(accountant=ledger).fit(*records)
    other = fitter(accountant=ledger).fit(*records, event_of_interest=2, label="second")
    assert (one.event_of_interest_, other.event_of_interest_) == (1, 2)
    assert "event_of_interest" not in other.get_params()
    assert other.cumulative_density_.columns.tolist() == ["second"]
    np.testing.assert_array_equal(one.release_.values["counts"], other.release_.values["counts"])
    assert one.cumulative_density_at_times(4.0, cause=2).iloc[0] == other.predict(4.0)
    view = one.of_cause(2)
    assert (view.event_of_interest_, view.predict(4.0)) == (2, other.predict(4.0))
    assert one.event_of_interest_ == 1
    with pytest.raises(ValueError, match="cause must be one of"):
        one.of_cause(9)
    pd.testing.assert_frame_equal(
        other.cumulative_density_band([1.0, 4.0]), one.cumulative_density_band([1.0, 4.0], cause=2)
    )
    # As for any fit: the ledger knows the release.
    ledger.verify(one.release_, other.release_)
    assert other.fit(*records).event_of_interest_ == 1
