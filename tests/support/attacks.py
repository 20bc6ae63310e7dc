"""How well neighbours are told apart by scores of their releases.

Both data sets are fitted many times. On one half of the releases a threshold is chosen, and on the
other half the rates on either side give Clopper-Pearson bounds on the two probabilities, and so a
lower bound on epsilon, which a correct mechanism passes with probability at most ``error``.
"""

import numpy as np
from scipy import stats
from sklearn.ensemble import RandomForestClassifier


def log_ratio_bounds(hits, others, n, error):
    """Lower bounds on the log ratio of two probabilities, from hits out of n each."""
    low = stats.beta.ppf(error / 2, hits, n - hits + 1)
    high = stats.beta.ppf(1 - error / 2, others + 1, np.maximum(n - others, 1e-9))
    with np.errstate(divide="ignore"):
        return np.log(np.where(hits > 0, low, 0.0)) - np.log(np.where(others < n, high, 1.0))


def separated(train, test, thresholds, error, error_of_choice=None):
    """Return a lower bound on epsilon by the best of thresholds, from two pairs of scores."""

    def bounds(pair, thresholds, error):
        n = len(pair[0])
        one, other = (np.sum(each[:, None] > thresholds, axis=0) for each in pair)
        events = (one, other), (other, one), (n - one, n - other), (n - other, n - one)
        return np.array([log_ratio_bounds(*event, n, error) for event in events])

    found = bounds(train, thresholds, error if error_of_choice is None else error_of_choice)
    side, place = np.unravel_index(np.argmax(found), found.shape)
    return bounds(test, thresholds[[place]], error)[side, 0]


def halves(samples):
    return zip(*(np.array_split(each, 2) for each in samples), strict=True)


def by_scores(samples, shares, error):
    """Return a lower bound on epsilon by numbers of which shares are the thresholds' quantiles."""
    train, test = halves(samples)
    return separated(train, test, np.quantile(np.concatenate(train), shares), error)


def by_forest(samples, shares, error, **options):
    """Return a lower bound on epsilon by a forest that learns which data set a release is of."""
    train, test = halves(samples)
    forest = RandomForestClassifier(100, oob_score=True, random_state=0, **options)
    forest.fit(np.vstack(train), np.repeat([0, 1], [len(half) for half in train]))
    # Each release of the half that was learned from is scored by the trees that did not see it.
    learned = np.split(forest.oob_decision_function_[:, 1], [len(train[0])])
    thresholds = np.unique(np.quantile(np.concatenate(learned), shares))
    held_out = [forest.predict_proba(half)[:, 1] for half in test]
    return separated(learned, held_out, thresholds, error)
