r"""Plans of Weibull fits: without privacy, and by ladders, tight and exact.

**Exact ladder.** The paper's two steps, the shape by a ladder and then the scale, with exact rungs.

**Tight ladder.** On one side of the paper's equation stands :math:`1/p + S/N`, two sums. Noise on
these costs half of what a ladder pays, whose epsilon is halved by the exponential mechanism, and
the number of events is needed for the scale anyway. The ladder then has the other side alone.

Where there are many events per follow-up time, this is only a first fit, and one Newton step
follows, on the noisy sum of a score: one sum for both sides, whose range at the first fit is known.

Sensitivities: 1 for the number of events and for the follow-up time in horizons; omega for the sum
of log event times, counted from any point of their range; 1 rung; the range of the score; 1 for a
sum of powers. The share that each gets of epsilon may depend on what was released before.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from skdpsurv.privacy.measurement import Known
from skdpsurv.privacy.plan import Plan, Sequential, Total
from skdpsurv.privacy.shares import what_is_left
from skdpsurv.survival.weibull_counts import all_log_times, count_table
from skdpsurv.survival.weibull_measurements import (
    Correction,
    Events,
    ExactLadder,
    FollowUp,
    Ladder,
    MaximumLikelihood,
    MeanLogTime,
    ReleasedMeanLadder,
    Scale,
)
from skdpsurv.survival.weibull_setting import (
    CORRECTION_EVENTS,
    CORRECTION_RATE,
    CORRECTION_SHARES,
    EVENTS_PART,
    EVENTS_SHARE,
    FOLLOW_UP_PART,
    FOLLOW_UP_SHARE,
    LADDER_PART,
    LARGEST_LOG_SCALE,
    RATE_POWER,
    RATE_RANGE,
    Way,
    WeibullSetting,
)

#: What follows the number of events and the follow-up time.
WITHOUT_CORRECTION: tuple[Any, ...] = (MeanLogTime, ReleasedMeanLadder, Scale)
WITH_CORRECTION = (*WITHOUT_CORRECTION, Correction, Scale)


def tight_plan(public: WeibullSetting) -> Plan:
    """Return the plan of the number of events, the follow-up time, and what these decide."""
    begun = first_shares(public)

    def later(n_events: int, rate: float) -> Sequential:
        shares = later_shares(public, n_events, rate)
        kinds = WITH_CORRECTION if len(shares) > 2 else WITHOUT_CORRECTION
        rest = 1.0 - begun[0] - begun[1] - sum(shares)
        return Sequential(priced(public, kinds, (*shares, rest)))

    def choose(known: Known) -> Sequential:
        return later(known["n_events"], known["n_events"] / known["follow_up"])

    first = priced(public, (Events, FollowUp), begun)
    rest = Total(
        what_is_left(public.epsilon, *(each.price for each in first)),
        choose,
        (later(public.n_records, CORRECTION_RATE), *(later(0, rate) for rate in RATE_RANGE)),
    )
    return public.plan(
        Sequential((*first, rest)),
        "Laplace noise on the number of events, the follow-up time and the sum of log event times, "
        "ladder for the shape, Laplace noise on sums for a correction of it and for the scale",
    )


def priced(public: WeibullSetting, kinds: Sequence[Any], shares: Sequence[float]) -> Any:
    """Return measurements, each at its share of epsilon."""
    pairs = zip(kinds, shares, strict=True)
    return tuple(kind(price=share * public.spendable, public=public) for kind, share in pairs)


def first_shares(public: WeibullSetting) -> tuple[float, float]:
    """Return the shares of the number of events and of the follow-up time."""
    if public.shape_fraction is None:
        return EVENTS_SHARE, FOLLOW_UP_SHARE
    rest = 1.0 - public.shape_fraction
    return EVENTS_PART * rest, FOLLOW_UP_PART * rest


def later_shares(public: WeibullSetting, n_events: int, rate: float) -> tuple[float, ...]:
    """Return shares for log times and ladder and, with a correction, first scale and score."""
    if n_events * public.epsilon >= CORRECTION_EVENTS and rate >= CORRECTION_RATE:
        shares: tuple[float, ...] = CORRECTION_SHARES
    else:
        part = LADDER_PART * min(max(rate, RATE_RANGE[0]), RATE_RANGE[1]) ** RATE_POWER
        log_times_share = (1.0 - EVENTS_SHARE - FOLLOW_UP_SHARE) / (1.0 + 2.0 * part)
        shares = log_times_share, part * log_times_share
    if public.shape_fraction is None:
        return shares
    return tuple(public.shape_fraction * share / sum(shares) for share in shares)


def ladder_plan(ladder: type[Ladder], public: WeibullSetting) -> Plan:
    """Return the paper's plan of two steps: the shape by a ladder, then the scale."""
    (shape,) = priced(public, [ladder], [public.shape_share])
    epsilon_sum = (public.spendable - shape.price) / 2.0
    scale = (kind(price=epsilon_sum, public=public) for kind in (Events, Scale))
    words = f"{ladder.name} for the shape, Laplace noise on two sums for the scale"
    return public.plan(Sequential((shape, *scale)), words)


def ladder_scales(public: WeibullSetting) -> tuple[float, float]:
    """Return the least and the largest log scale that ladders release."""
    return -public.omega, LARGEST_LOG_SCALE


TIGHT = Way(tight_plan, count_table, ladder_scales)
EXACT = Way(partial(ladder_plan, ExactLadder), count_table, ladder_scales)
MAXIMUM_LIKELIHOOD = Way(
    lambda public: public.plan(MaximumLikelihood(public=public), MaximumLikelihood.name),
    partial(all_log_times, exact=True),
    lambda public: (-LARGEST_LOG_SCALE, LARGEST_LOG_SCALE),
)
