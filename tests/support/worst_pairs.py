"""Some of the worst neighbours of an estimator."""

import re
from itertools import islice

from skdpsurv.audit.neighbours import worst_neighbours

#: Where a pair's name goes on from the record that differs to the others.
OTHERS = re.compile(r", (?=others |one event among|its cell|alone)")


def pair(estimator, name, **sizes):
    return next(p for p in worst_neighbours(estimator, **sizes) if p.name == name)[1:]


def one_of_each_change(estimator, most=None, **sizes):
    """Yield a pair of each sort of change, the strongest first, among other records in turn."""
    changes = {}
    for one in worst_neighbours(estimator, **sizes):
        changes.setdefault(OTHERS.split(one.name)[0], []).append(one)
    for place, pairs in enumerate(islice(changes.values(), most)):
        if place == 0:
            yield from pairs[:2]
        else:
            yield pairs[(place + 1) % len(pairs)]
