"""Attacks on fits of the hazard model: what neighbours are told apart by, and how well.

Both data sets are fitted many times. On one half of the releases a direction and a threshold are
learned that separate them best; on the other half the rates on either side give Clopper-Pearson
bounds on the two probabilities, and so a lower bound on epsilon that a correct mechanism passes
with probability at most ``CONFIDENCE`` per audit.
"""

import numpy as np
from scipy import stats

from skdpsurv import DPDiscreteTimeSurvival

CONFIDENCE = 1e-7
Y = np.dtype([("event", "?"), ("time", "f8")])


def records(*rows):
    X = np.array([[x] for x, _, _ in rows])
    return X, np.array([(event, time) for _, event, time in rows], dtype=Y)


CROWD = [(0.2, True, 0.5), (-0.4, False, 1.0)]

#: name: (parameters, data set, neighbour). Times are shares of the horizon. A strong ridge keeps
#: minimisers near the centre, where one record moves them as far as the sensitivity says.
PAIRS = {
    "event or not": ({"n_knots": 1}, records((1.0, False, 1.0)), records((1.0, True, 0.01))),
    "all but one censored": (
        {"n_knots": 1},
        records(*[(0.5, False, 1.0)] * 3),
        records(*[(0.5, False, 1.0)] * 2, (0.5, True, 0.01)),
    ),
    "large norm": (
        {"n_knots": 1},
        records(*CROWD, (1e6, False, 1.0)),
        records(*CROWD, (-1e6, False, 1.0)),
    ),
    "first or last interval": (
        {"n_knots": 2},
        records(*CROWD, (1.0, True, 0.01)),
        records(*CROWD, (-1.0, True, 1.0)),
    ),
    "probit": (
        {"n_knots": 1, "link": "probit"},
        records((1.0, False, 1.0)),
        records((1.0, True, 0.01)),
    ),
    "after a first look": (
        {"n_knots": 1, "epsilon": 4.0, "pilot_share": 0.5, "recalibration_share": 0.0},
        records(*[(-1.0, False, 1.0)] * 50),
        records(*[(-1.0, False, 1.0)] * 49, (1.0, True, 0.01)),
    ),
    "recalibrated": (
        {"n_knots": 1, "epsilon": 4.0, "pilot_share": 0.0, "recalibration_share": 0.8},
        records(*[(-1.0, False, 1.0)] * 50),
        records(*[(-1.0, False, 1.0)] * 49, (1.0, True, 0.01)),
    ),
}


def releases(parameters, data, trials, first_seed):
    fixed = {
        "max_time": 1.0,
        "n_intervals": 4,
        "data_norm": 1.0,
        "max_cumulative_hazard": 1.0,
        "alpha": 20.0 / len(data[0]),
    }
    model = DPDiscreteTimeSurvival(**{**fixed, **parameters})
    fits = (model.set_params(random_state=first_seed + i).fit(*data) for i in range(trials))
    return np.array([np.hstack(list(fit.release_.values.values())) for fit in fits])


def bound(half, threshold, above, swapped, error):
    """Return a Clopper-Pearson bound on epsilon from scores beyond a threshold."""
    first, second = reversed(half) if swapped else half
    sign = 1 if above else -1
    hits = [int(np.sum(sign * part > sign * threshold)) for part in (first, second)]
    n, m = first.size, second.size
    lower = stats.beta.ppf(error / 2, hits[0], n - hits[0] + 1) if hits[0] else 0.0
    upper = stats.beta.ppf(1 - error / 2, hits[1] + 1, m - hits[1]) if hits[1] < m else 1.0
    return np.log(lower / upper) if lower > 0 else -np.inf


def audit(parameters, one, other, trials):
    """Return a lower bound on epsilon, and epsilon."""
    samples = [
        releases(parameters, data, trials, i * trials) for i, data in enumerate((one, other))
    ]
    train, test = zip(*(np.array_split(sample, 2) for sample in samples), strict=True)
    # Tails are heavy: ranks of the direction's coordinates are compared, and the direction is
    # that of the medians relative to the spread.
    spread = np.subtract(*np.quantile(np.vstack(train), [0.75, 0.25], axis=0))
    # A value that is the same in every release tells nothing.
    told = spread > 0.0
    apart = np.median(train[1], axis=0) - np.median(train[0], axis=0)
    direction = np.divide(apart, spread**2, out=np.zeros_like(apart), where=told)
    train, test = ([part @ direction for part in half] for half in (train, test))
    thresholds = np.quantile(np.concatenate(train), np.linspace(0.01, 0.99, 99))

    choices = [(t, above, swap) for t in thresholds for above in (0, 1) for swap in (0, 1)]
    best = max(choices, key=lambda choice: bound(train, *choice, 1e-2))
    return bound(test, *best, CONFIDENCE), parameters.get("epsilon", 1.0)
