"""Products of parameters of which the quick suite takes a few and the slow suite the rest."""

import itertools

import pytest


def thinned(*values):
    """Return all combinations; quick are as many as it takes for each value to be in one."""
    lists = [list(one) for one in values]
    diagonal = {tuple(t % len(one) for one in lists) for t in range(max(map(len, lists)))}
    return [
        pytest.param(
            *(one[place] for one, place in zip(lists, places, strict=True)),
            marks=() if places in diagonal else pytest.mark.slow,
        )
        for places in itertools.product(*(range(len(one)) for one in lists))
    ]
