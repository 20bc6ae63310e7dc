"""Optimal composition: the epsilon that several guarantees have together, at one delta."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from functools import reduce

from skdpsurv.dp.budget import exact_sum, float_above
from skdpsurv.dp.checks import fraction
from skdpsurv.dp.references import extra

#: Width of the grid of privacy losses: at most GRID, STEPS steps for the smallest epsilon_i, and
#: never finer than what takes minutes.
GRID, STEPS, FINEST_GRID = 1e-4, 100.0, 1e-7
#: No more steps than this in all: coarser steps round epsilon up.
MOST_STEPS = 2e6
#: An epsilon beyond this gains nothing, and its exponential may be no number.
LARGEST = 50.0
#: Rounding errors of the Fourier transforms, for up to ten thousand mechanisms: absolute ones are
#: kept back from delta, relative ones added to epsilon.
ROUNDING, RAISED = 1e-12, 1e-9


def compose(guarantees: Iterable[tuple[float, float]], delta: float) -> float:
    """Return an epsilon that mechanisms on the same records have together at ``delta``.

    A mechanism known by its epsilon and delta alone loses as much privacy as randomised response
    [1]_. Such losses are convolved on a grid, and rounded upwards [2]_ [3]_.

    Parameters
    ----------
    guarantees : iterable of (float, float)
        Epsilon and delta of each mechanism, for one kind of neighbours. They must have been fixed
        before the first result was seen; basic composition needs no such assumption.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        At most the sum of the epsilons if the deltas add up to at most ``delta``. Equal to it if
        ``delta`` is below 1e-12 or an epsilon above 50. Infinite if no epsilon holds.

    Raises
    ------
    ImportError
        Without dp-accounting: ``pip install "skdpsurv[accounting]"``.

    References
    ----------
    .. [1] P. Kairouz, S. Oh and P. Viswanath, "The composition theorem for differential privacy",
       ICML 2015.
    .. [2] A. Koskela, J. Jälkö and A. Honkela, "Computing tight differential privacy guarantees
       using FFT", AISTATS 2020.
    .. [3] V. Doroshenko et al., "Connect the dots: tighter discrete approximations of privacy loss
       distributions", PoPETs 2022.

    Examples
    --------
    >>> from skdpsurv.dp import compose
    >>> float(round(compose([(0.1, 0.0)] * 100, delta=1e-6), 1))  # their sum is 10
    4.8
    """
    fraction("delta", delta)
    counts = Counter((float(epsilon), float(own)) for epsilon, own in guarantees)
    del counts[0.0, 0.0]
    if not all(epsilon >= 0.0 and 0.0 <= own < 1.0 for epsilon, own in counts):
        raise ValueError("guarantees must hold epsilons >= 0 and deltas in [0, 1).")
    if not counts:
        return 0.0
    largest, basic = max(epsilon for epsilon, _ in counts), math.inf
    if math.isinf(largest):
        return math.inf
    if float_above(exact_sum(own for _, own in counts.elements())) <= delta:
        basic = float_above(exact_sum(epsilon for epsilon, _ in counts.elements()))
    left = delta - ROUNDING * max(1.0, counts.total() / 1e4)
    if left <= 0.0 or largest > LARGEST:
        return basic
    # Upwards by more than the convolutions are off by: their grids and sums are of doubles.
    raised = math.nextafter(_by_privacy_loss(counts, left) * (1.0 + RAISED), math.inf)
    return min(basic, raised)


def _by_privacy_loss(counts: Counter[tuple[float, float]], delta: float) -> float:
    with extra("accounting", "dp-accounting", "compose"):
        from dp_accounting.pld import common, privacy_loss_distribution
    smallest = min((epsilon for epsilon, _ in counts if epsilon > 0.0), default=1.0)
    total_epsilon = math.fsum(epsilon * k for (epsilon, _), k in counts.items())
    grid = max(min(GRID, smallest / STEPS), FINEST_GRID, total_epsilon / MOST_STEPS)
    losses = []
    for pair, k in sorted(counts.items()):
        loss = privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(*pair), value_discretization_interval=grid
        )
        losses.append(loss.self_compose(k) if k > 1 else loss)
    total = reduce(lambda one, other: one.compose(other), losses)
    return float(total.get_epsilon_for_delta(delta))
