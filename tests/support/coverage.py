"""How often intervals miss the truth, by as few of them as decide it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

#: Probability of a false alarm, and that a miss rate that is too high passes.
FALSE_ALARM, SLIP = 5e-7, 0.02


def miss_rarely(missed: Callable[[int], Any], allowed: float, wrong: float) -> bool:
    """Return whether intervals miss at a rate up to ``allowed`` rather than ``wrong`` or more.

    ``missed(seed)`` says it of one interval, or of one of each of some kinds, all of which are to
    miss rarely. By Wald's sequential test: for each kind, and whatever its rate is, the evidence
    for ``wrong`` exceeds 1 / FALSE_ALARM with a probability of at most FALSE_ALARM if the rate is
    allowed, and falls to SLIP with a probability of at most SLIP if it is wrong (Ville).
    """
    by_miss, by_hit = np.log([wrong / allowed, (1.0 - wrong) / (1.0 - allowed)])
    evidence, seed = 0.0, 0
    while -np.log(FALSE_ALARM) > np.max(evidence) > np.log(SLIP):
        evidence = evidence + np.where(missed(seed), by_miss, by_hit)
        seed += 1
    return bool(np.max(evidence) <= np.log(SLIP))
