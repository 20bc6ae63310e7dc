"""Tables of awkward records for the ladders of Weibull fits."""

import numpy as np

from skdpsurv.survival.weibull.log_time_counts import N_BINS, CountTable

#: (omega, max_shape): the default, small and large shapes, short and long domains.
DOMAINS = [(6.0, 10.0), (0.4, 10.0), (20.0, 300.0), (6.0, 0.2), (2.0, 3.0)]


def make_table(records, omega):
    counts = np.zeros((2, N_BINS + 1), dtype=np.int64)
    for place, event in records:
        counts[0, place] += 1
        counts[1, place] += event
    return CountTable(omega, *counts)


def random_records(n, rng):
    """Return n records, built to be awkward."""
    kind = rng.integers(9)
    places = rng.integers(0, N_BINS + 1, n)
    events = rng.random(n) < rng.choice([0.1, 0.5, 0.9])
    if kind == 0:
        places[:] = N_BINS
    elif kind == 1:
        places[:] = 0
    elif kind == 2:
        places = rng.choice([0, N_BINS], n)
    elif kind == 3:
        events[:] = False
    elif kind == 4:
        events[:] = np.arange(n) == 0
    elif kind == 5:
        events[:] = True
    elif kind == 6:
        places = rng.choice(rng.integers(0, N_BINS + 1, 2), n)
    elif kind == 7:
        places = np.rint(N_BINS * rng.uniform(0.9, 1.0, n)).astype(int)
    else:
        places = np.clip(N_BINS - rng.geometric(0.004, n), 0, N_BINS)
    return list(zip(places.tolist(), events.tolist(), strict=True))


def levels_at(ladder, nodes):
    return np.array([[ladder.down_to(node), ladder.up_to(node)] for node in nodes])


def distances(data_sets, kinds):
    """Return how many records separate each two data sets of one size."""
    counts = np.array([[records.count(kind) for kind in kinds] for records in data_sets])
    common = np.minimum(counts[:, None], counts[None, :]).sum(axis=2)
    return len(data_sets[0]) - common
