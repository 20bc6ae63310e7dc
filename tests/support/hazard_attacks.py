"""Attacks on fits of the hazard model: what neighbours are told apart by, and how well.

A direction is learned that separates one half of the releases best. A correct mechanism passes an
audit with probability at most ``CONFIDENCE``.
"""

import numpy as np

from skdpsurv import DPDiscreteTimeSurvival
from tests.support.attacks import halves, separated

CONFIDENCE = 1e-7
Y = np.dtype([("event", "?"), ("time", "f8")])


def records(*rows):
    X = np.array([[x] for x, _, _ in rows])
    return X, np.array([(event, time) for _, event, time in rows], dtype=Y)


CROWD = [(0.2, True, 0.5), (-0.4, False, 1.0)]
ONE = records((1.0, False, 1.0)), records((1.0, True, 0.01))
FIFTY = records(*[(-1.0, False, 1.0)] * 50), records(*[(-1.0, False, 1.0)] * 49, (1.0, True, 0.01))
ALMOST_ALL = (
    *(records(*[(0.5, False, 1.0)] * 3), records(*[(0.5, False, 1.0)] * 2, (0.5, True, 0.01))),
)
LARGE = records(*CROWD, (1e6, False, 1.0)), records(*CROWD, (-1e6, False, 1.0))
ENDS = records(*CROWD, (1.0, True, 0.01)), records(*CROWD, (-1.0, True, 1.0))
FIRST_LOOK = {"n_knots": 1, "epsilon": 4.0, "pilot_share": 0.5, "recalibration_share": 0.0}
RECALIBRATED = {**FIRST_LOOK, "pilot_share": 0.0, "recalibration_share": 0.8}

#: name: (parameters, data set, neighbour). Times are shares of the horizon. A strong ridge keeps
#: minimisers near the centre, where one record moves them as far as the sensitivity says.
PAIRS = {
    "event or not": ({"n_knots": 1}, *ONE),
    "all but one censored": ({"n_knots": 1}, *ALMOST_ALL),
    "large norm": ({"n_knots": 1}, *LARGE),
    "first or last interval": ({"n_knots": 2}, *ENDS),
    "probit": ({"n_knots": 1, "link": "probit"}, *ONE),
    "after a first look": (FIRST_LOOK, *FIFTY),
    "recalibrated": (RECALIBRATED, *FIFTY),
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


def audit(parameters, one, other, trials):
    samples = [
        releases(parameters, data, trials, i * trials) for i, data in enumerate((one, other))
    ]
    train, test = halves(samples)
    # Tails are heavy: ranks of the direction's coordinates are compared, and the direction is
    # that of the medians relative to the spread.
    spread = np.subtract(*np.quantile(np.vstack(train), [0.75, 0.25], axis=0))
    # A value that is the same in every release tells nothing.
    told = spread > 0.0
    apart = np.median(train[1], axis=0) - np.median(train[0], axis=0)
    direction = np.divide(apart, spread**2, out=np.zeros_like(apart), where=told)
    train, test = ([part @ direction for part in half] for half in (train, test))
    thresholds = np.quantile(np.concatenate(train), np.linspace(0.01, 0.99, 99))
    bound = separated(train, test, thresholds, CONFIDENCE, error_of_choice=1e-2)
    return bound, parameters.get("epsilon", 1.0)
