r"""Optimal composition of many guarantees at a chosen delta, by dp-accounting.

k mechanisms of :math:`(\epsilon_i, \delta_i)` together are :math:`(\epsilon, \delta)`-private with
an :math:`\epsilon` far below :math:`\sum_i \epsilon_i` where k is large: roughly
:math:`\epsilon_0\sqrt{2 k \log(1/\delta)} + k\epsilon_0^2/2` for k equal ones. The best such
epsilon follows from the law of the privacy loss, which for a mechanism known by its
:math:`(\epsilon_i, \delta_i)` alone is that of randomised response (Kairouz, Oh and Viswanath
2015); laws are convolved on a grid, rounded so that epsilon comes out too large rather than too
small (Koskela, Jälkö and Honkela 2020; Doroshenko et al. 2022).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from skdpsurv.checks import fraction
from skdpsurv.privacy.budget import exact_sum, float_above

#: Grid of the privacy loss: at most this, and at least so many steps for the smallest epsilon_i,
#: but never finer than what takes minutes.
GRID, STEPS, FINEST_GRID = 1e-4, 100.0, 1e-7
#: No more steps than this in all: coarser steps round epsilon up.
MOST_STEPS = 2e6
#: An epsilon beyond this gains nothing, and its exponential may be no number.
LARGEST = 50.0
#: What the sums of Fourier transforms may be off by, for up to ten thousand mechanisms: kept back
#: from delta.
ROUNDING = 1e-12
#: And what the epsilon that they give may be short by, of itself.
RAISED = 1e-9


def compose(guarantees: Iterable[tuple[float, float]], delta: float) -> float:
    """Return an epsilon that mechanisms on the same records have together at ``delta``.

    Parameters
    ----------
    guarantees : iterable of (float, float)
        Epsilon and delta of each mechanism, for one kind of neighbours. They must have been fixed
        before the first result was seen: the theorem does not cover budgets that were chosen in
        view of earlier results, which basic composition does.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        Never more than the sum of the epsilons, where the deltas' sum is at most ``delta``; that
        sum where ``delta`` is below 1e-12 or an epsilon above 50; infinite where no epsilon does.

    Raises
    ------
    ImportError
        Without dp-accounting: ``pip install "skdpsurv[accounting]"``.

    References
    ----------
    Kairouz, P., Oh, S., Viswanath, P. (2015). The composition theorem for differential privacy.
    *ICML*, 1376-1385.

    Examples
    --------
    >>> from skdpsurv.privacy import compose
    >>> float(round(compose([(0.1, 0.0)] * 100, delta=1e-6), 1))  # their sum is 10
    4.8
    """
    fraction("delta", delta)
    counts = Counter((float(epsilon), float(own)) for epsilon, own in guarantees)
    for epsilon, own in counts:
        if not (epsilon >= 0.0 and 0.0 <= own < 1.0):
            raise ValueError("guarantees must hold epsilons >= 0 and deltas in [0, 1).")
    if any(math.isinf(epsilon) for epsilon, _ in counts):
        return math.inf
    counts = Counter({pair: k for pair, k in counts.items() if pair != (0.0, 0.0)})
    if not counts:
        return 0.0
    basic = math.inf
    if float_above(exact_sum(own for _, own in counts.elements())) <= delta:
        basic = float_above(exact_sum(epsilon for epsilon, _ in counts.elements()))
    left = delta - ROUNDING * max(1.0, counts.total() / 1e4)
    if left <= 0.0 or max(epsilon for epsilon, _ in counts) > LARGEST:
        return basic
    # Upwards by more than the convolutions are off by: their grids and sums are of doubles.
    raised = math.nextafter(_by_privacy_loss(counts, left) * (1.0 + RAISED), math.inf)
    return min(basic, raised)


def _by_privacy_loss(counts: Counter[tuple[float, float]], delta: float) -> float:
    try:
        from dp_accounting.pld import common, privacy_loss_distribution
    except ImportError as error:
        raise ImportError(
            'compose needs dp-accounting: pip install "skdpsurv[accounting]"'
        ) from error
    smallest = min((epsilon for epsilon, _ in counts if epsilon > 0.0), default=1.0)
    total_epsilon = math.fsum(epsilon * k for (epsilon, _), k in counts.items())
    grid = max(min(GRID, smallest / STEPS), FINEST_GRID, total_epsilon / MOST_STEPS)
    total = None
    for (epsilon, own), k in sorted(counts.items()):
        one = privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(epsilon, own), value_discretization_interval=grid
        )
        several = one.self_compose(k) if k > 1 else one
        total = several if total is None else total.compose(several)
    assert total is not None
    return float(total.get_epsilon_for_delta(delta))
