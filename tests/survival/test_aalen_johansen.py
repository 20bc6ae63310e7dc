"""Private cumulative incidences of competing events."""

import numpy as np
import pandas as pd
import pytest
from lifelines import AalenJohansenFitter

from skdpsurv import DPAalenJohansenFitter, DPKaplanMeierFitter, PrivacyAccountant, Release
from tests.support.refusing import refused

N = 2000


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


def counts(fit):
    return fit.release_.values["counts"]


def test_equals_lifelines_without_privacy(records):
    theirs = AalenJohansenFitter(calculate_variance=False)
    for cause in [1, 2]:
        ours = fitter(np.inf).fit(*records, event_of_interest=cause)
        expected = theirs.fit(*records, event_of_interest=cause).predict(ours.timeline)
        np.testing.assert_allclose(ours.predict(ours.timeline), np.ravel(expected), atol=0.01)


def test_ties_are_at_risk_together():
    time, cause = np.array([1.0, 1.0, 3.0, 2.0, 3.0]), np.array([1, 2, 0, 1, 0])
    ours = fitter(np.inf, breakpoints=[1.0, 2.0]).fit(time, cause)
    found = [ours.cumulative_density_at_times([1.0, 2.0], cause=k).tolist() for k in (1, 2)]
    np.testing.assert_allclose(found, [[0.2, 0.2 + 0.6 / 3], [0.2, 0.2]])


def test_one_kind_of_event_is_a_kaplan_meier_curve(records):
    time, cause = records
    one = fitter(causes=[1]).fit(time, cause > 0)
    two = DPKaplanMeierFitter(max_time=6.0, random_state=0).fit(time, cause > 0)
    np.testing.assert_array_equal(counts(one), counts(two))
    np.testing.assert_allclose(1.0 - one.predict([1.0, 4.0]), two.predict([1.0, 4.0]), atol=1e-9)
    assert fitter(causes=[1]).fit(time).predict(5.0) > one.predict(5.0)  # all are events


def test_words_for_causes_and_groups(records):
    time, cause = records
    words = np.array(["alive", "relapse", "death"], dtype=object)[cause]
    group = np.where(np.arange(N) % 2, "a", "b")
    breakpoints = [1.0, 3.0]
    options = {"causes": ["relapse", "death"], "censored": "alive", "groups": ["a", "b"]}
    model = fitter(np.inf, breakpoints=breakpoints, **options)
    ours = model.fit(time, words, group=group)
    assert ours.causes_ == ["relapse", "death"]
    for label, found in zip("ab", counts(ours), strict=True):
        here = group == label
        alone = fitter(np.inf, breakpoints=breakpoints).fit(time[here], cause[here])
        np.testing.assert_array_equal(found, counts(alone)[0])
        assert ours.of_group(label).cumulative_density_.columns.tolist() == [label]
    y = pd.DataFrame({"what": words, "when": time})
    again = model.fit(None, y, group=group, event_of_interest="death")
    np.testing.assert_array_equal(counts(again), counts(ours))
    # What a release was made to say, it says anywhere.
    built = DPAalenJohansenFitter.from_release(Release.from_json(again.release_.to_json()))
    assert built.predict(5.0) == ours.cumulative_density_at_times(5.0, cause="death").iloc[0]


def test_a_summary_is_of_the_event_of_interest(records, capsys):
    one = fitter().fit(*records, event_of_interest=2)
    shown, times = one.summary, one.summary.index.to_numpy()
    np.testing.assert_array_equal(shown["incidence of 2"], one.predict(times))
    ends = shown[["incidence of 2 lower 95%", "incidence of 2 upper 95%"]]
    np.testing.assert_array_equal(ends, one.cumulative_density_band(times))
    one.print_summary()
    printed = capsys.readouterr().out
    assert "median time to any event" in printed
    assert "survival" not in printed
    assert printed.split("\n")[-2].split()[2] == f"{one.predict(6.0):.2f}"


def test_a_score_knows_causes(records):
    """One of labels that never come costs what its hazard takes from the others, and no more."""
    time, cause = records
    one, two = fitter(np.inf), fitter(np.inf, causes=[2, 1])
    assert one.fit(time, cause).score(time, cause) == pytest.approx(
        two.fit(time, cause).score(time, cause)
    )
    assert one.score(time, cause) > one.score(time, np.where(cause, 3 - cause, 0))
    any_event = DPKaplanMeierFitter(np.inf, max_time=6.0).fit(time, cause > 0)
    alone = fitter(np.inf, causes=[1]).fit(time, cause > 0)
    assert alone.score(time, cause > 0) == any_event.score(time, cause > 0)
    with pytest.raises(ValueError, match="event_observed must hold"):
        one.score(time, cause + 1)


def test_refusals(records):
    time, causes = records
    for options, message in [
        ({"causes": None}, "causes must be given"),
        ({"causes": []}, "causes must be a list"),
        ({"causes": [1, 1]}, "causes must not hold"),
        ({"causes": list(range(1, 30))}, "causes must be at most"),
        ({"censored": 1}, "censored must not be"),
        ({"censored": None}, "censored must be"),
    ]:
        refused(fitter(**options), message, *records)
    for cause in (3, "Zebedee Quux", np.nan, None):
        events = causes.astype(object)
        events[5] = cause
        assert "Zebedee" not in refused(fitter(), "event_observed must hold", time, events)
    refused(fitter(), "event_observed must be given", time)
    for cause in [3, "1", np.nan, True, [1]]:
        refused(fitter(), "event_of_interest must be", *records, event_of_interest=cause)
    ours = fitter().fit(*records)
    for ask in (ours.of_cause, lambda k: ours.cumulative_density_at_times(4.0, cause=k)):
        with pytest.raises(ValueError, match="cause must be one of"):
            ask(9)


def test_parameters_that_are_set_later_change_nothing(records):
    ours = fitter().fit(*records)
    survival, table = ours.survival_function_at_times([1.0, 4.0]).tolist(), ours.event_table
    total = sum(ours.cumulative_density_at_times([1.0, 4.0], cause=k) for k in (1, 2))
    np.testing.assert_allclose(1.0 - total, survival, atol=1e-9)
    ours.set_params(causes=[1], censored=7)
    assert ours.survival_function_at_times([1.0, 4.0]).tolist() == survival
    pd.testing.assert_frame_equal(ours.event_table, table)


def test_the_event_of_interest_is_one_of_a_fit(records):
    """As in lifelines an argument of the fit; what is drawn and charged does not depend on it."""
    ledger = PrivacyAccountant(9.0, rehearsal=True)
    one = fitter(accountant=ledger).fit(*records)
    other = fitter(accountant=ledger).fit(*records, event_of_interest=2, label="second")
    assert (one.event_of_interest_, other.event_of_interest_) == (1, 2)
    assert other.cumulative_density_.columns.tolist() == ["second"]
    np.testing.assert_array_equal(counts(one), counts(other))
    view, band = one.of_cause(2), other.cumulative_density_band([1.0, 4.0])
    assert (view.event_of_interest_, view.predict(4.0)) == (2, other.predict(4.0))
    assert one.cumulative_density_at_times(4.0, cause=2).iloc[0] == other.predict(4.0)
    assert one.event_of_interest_ == 1
    pd.testing.assert_frame_equal(band, one.cumulative_density_band([1.0, 4.0], cause=2))
    # As for any fit: the ledger knows the release.
    ledger.verify(one.release_, other.release_)
    assert other.fit(*records).event_of_interest_ == 1
