"""Losses of survival since late entries, and searches that use them."""

import numpy as np
import pytest
from sksurv.util import Surv

from skdpsurv import DPDiscreteTimeSurvival
from skdpsurv.data.histories import Histories
from skdpsurv.mechanisms.sums import LOSS
from skdpsurv.model_selection import PrivateSearchCV
from skdpsurv.model_selection.losses import SurvivalLoss, summed_losses
from tests.evaluation.test_entry_evaluation import in_y, people

STEPS = np.random.default_rng(0).uniform(0.01, 0.3, 20)


def hazard(t):
    """The cumulative hazard at shares of the horizon."""
    return np.interp(t, np.arange(21) / 20, np.append(0.0, np.cumsum(STEPS)))


def losses(kind, found, steps=STEPS):
    return SurvivalLoss(kind, 1.0)._losses(np.tile(steps, (found.size, 1)), found)


@pytest.mark.parametrize("kind", ["likelihood", "brier"])
def test_who_is_seen_from_zero_has_the_loss_of_before(kind):
    _, found = people(200, 1)
    since = Histories(found.exit, found.event, np.zeros(200))
    np.testing.assert_array_equal(
        losses(kind, since), losses(kind, Histories(found.exit, found.event))
    )


def test_the_likelihood_is_from_the_entry_to_the_exit():
    _, found = people(200, 1)
    seen, end = found.clipped(1.0), np.minimum(found.exit, 1.0)
    inside = np.clip(np.ceil(end * 20), 1, 20).astype(int) - 1
    expected = hazard(end) - hazard(np.minimum(found.entry, end))
    expected -= np.where(seen.event, np.log(STEPS[inside] * 20), 0.0)
    expected = np.clip((expected + 2.0) / 8.0, 0.0, 1.0) * (found.entry < end)
    np.testing.assert_allclose(losses("likelihood", found), expected, atol=1e-12)


def test_the_brier_score_is_of_the_intervals_after_the_entry():
    for entry, exits, event in [(0.0, 0.12, True), (0.07, 0.33, True), (0.2, 0.9, False)]:
        found = Histories(np.array([exits]), np.array([event]), np.array([entry]))
        first, last = int(np.ceil(entry * 20 - 1e-9)), int(np.ceil(exits * 20)) - 1
        p = 1.0 - np.exp(-STEPS)
        total = (p[first:last] ** 2).sum() + ((1.0 - p[last]) ** 2 if event else 0.0)
        assert losses("brier", found) == pytest.approx(total / 20)


@pytest.mark.parametrize("kind", ["likelihood", "brier"])
def test_who_is_never_at_risk_has_the_same_loss_in_all_models(kind):
    entry = np.array([0.5, 0.9, 1.0, 2.0])
    found = Histories(np.array([0.5, 0.3, 2.0, 1e300]), np.ones(4, bool), entry)
    np.testing.assert_array_equal(losses(kind, found), losses(kind, found, 2.0 * STEPS))


def test_the_true_model_has_the_least_expected_loss():
    """And the marginal hazard, as if all were seen from 0, has not: 20,000 people."""
    _, found = people(20000, 5)
    for kind in ("likelihood", "brier"):
        grid = np.arange(1, 21) / 20
        ends, events = np.minimum(found.exit, 1.0), found.clipped(1.0).event
        there = (found.entry[:, None] <= grid - 0.05) & (ends[:, None] > grid - 0.05)
        last = np.ceil(ends * 20).astype(int)
        own = np.array([(there[:, j] & events & (last == j + 1)).sum() for j in range(20)])
        right = own / there.sum(axis=0)
        wrong = own / (ends[:, None] > grid - 0.05).sum(axis=0)
        right, wrong = (losses(kind, found, -np.log1p(-h)).mean() for h in (right, wrong))
        assert right < wrong - 1e-4


@pytest.mark.parametrize("kind", ["likelihood", "brier"])
def test_one_record_moves_the_sum_by_one_at_most(kind):
    x, found = people(60, 2)
    model = DPDiscreteTimeSurvival(epsilon=np.inf, max_time=1.0).fit(x, in_y(found))
    loss, sums = SurvivalLoss(kind, 1.0), []
    late = (0.0, 3.0, False, 2.0), (9.0, 0.5, False, 0.5), (9.0, 1.0, True, 1e-300)
    for value in ((50.0, 0.9, True, 0.0), (-50.0, 0.9, True, 0.0), (0.0, 0.0, True, 0.0), *late):
        rows, exits = x.copy(), found.exit.copy()
        event, entry = found.event.copy(), found.entry.copy()
        rows[3], exits[3], event[3], entry[3] = value
        sums.append(summed_losses(loss, model, rows, Surv.from_arrays(event, exits), entry))
    assert max(sums) - min(sums) <= LOSS.sensitivity


@pytest.mark.parametrize("strategy", ["repeat", "split"])
@pytest.mark.parametrize("scoring", ["likelihood", "brier"])
def test_a_search_with_entries(strategy, scoring):
    x, found = people(400, 3)
    search = PrivateSearchCV(
        DPDiscreteTimeSurvival(max_time=1.0),
        {"n_intervals": [10, 20]},
        epsilon=8.0,
        strategy=strategy,
        scoring=scoring,
    )
    search.fit(x, in_y(found), entry=found.entry)
    assert search.best_estimator_.release_.plan is not None
    assert search.guarantee_.epsilon == 8.0
    assert search.score(x, in_y(found), entry=found.entry) > 0.5


def test_a_loss_of_ones_own_is_not_told_of_entries():
    x, found = people(100, 3)
    model = DPDiscreteTimeSurvival(max_time=1.0)
    search = PrivateSearchCV(model, {"n_intervals": [10]}, scoring=lambda model, X, y: 0.5)
    with pytest.raises(ValueError, match="entry must be None with a scoring of your own"):
        search.fit(x, in_y(found), entry=found.entry)


@pytest.mark.parametrize("kind", ["likelihood", "brier"])
def test_who_enters_beyond_the_horizon_has_no_loss_and_later_hazards_do_not_matter(kind):
    beyond = Histories(np.array([1.5]), np.array([True]), np.array([1.2]))
    assert losses(kind, beyond).tolist() == [0.0]
    early = Histories(np.array([0.3]), np.array([False]), np.array([0.1]))
    with np.errstate(all="ignore"):
        found = losses(kind, early, np.where(np.arange(20) < 10, STEPS, np.inf))
    assert found == pytest.approx(losses(kind, early))
