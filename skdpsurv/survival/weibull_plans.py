r"""Plans of Weibull fits: without privacy, and by a tight ladder.

On one side of the paper's equation stands :math:`1/p + S/N`, two sums. Noise on
these costs half of what a ladder pays, whose epsilon is halved by the exponential mechanism, and
the number of events is needed for the scale anyway. The ladder then has the other side alone.

Where there are many events per follow-up time, this is only a first fit, and one Newton step
follows, on the noisy sum of a score: one sum for both sides, whose range at the first fit is known.

Sensitivities: 1 for the number of events and for the follow-up time in horizons; omega for the sum
of log event times, counted from any point of their range; 1 rung; the range of the score; 1 for a
sum of powers. The share that each gets of epsilon may depend on what was released before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from skdpsurv.privacy.measurement import Known
from skdpsurv.privacy.plan import Plan, Sequential, Total
from skdpsurv.privacy.shares import what_is_left
from skdpsurv.survival import weibull_measurements as ask
from skdpsurv.survival.weibull_counts import all_log_times, count_table
from skdpsurv.survival.weibull_setting import LARGEST_LOG_SCALE, Way, WeibullSetting

#: What follows the number of events and the follow-up time in a tight ladder, without a correction
#: and with one.
LATER: tuple[Any, ...] = (ask.MeanLogTime, ask.ReleasedMeanLadder, ask.Scale)
CORRECTED = (*LATER, ask.Correction, ask.Scale)


def tight_plan(public: WeibullSetting) -> Plan:
    """Return the plan of the number of events, the follow-up time, and what these decide."""

    def later(n_events: int, rate: float) -> Sequential:
        shares = public.later_shares(n_events, rate)
        rest = 1.0 - public.first_shares[0] - public.first_shares[1] - sum(shares)
        kinds = CORRECTED if len(shares) > 2 else LATER
        return Sequential(priced(public, kinds, (*shares, rest)))

    def choose(known: Known) -> Sequential:
        return later(known["n_events"], known["n_events"] / known["follow_up"])

    first = priced(public, (ask.Events, ask.FollowUp), public.first_shares)
    # At most a correction, if there can be events enough; else from no events to nothing but these.
    possible = later(public.n_records, math.inf), later(0, 0.0), later(0, math.inf)
    total = what_is_left(public.epsilon, *(each.price for each in first))
    return public.plan_of(
        Sequential((*first, Total(total, choose, possible))),
        "Laplace noise on the number of events, the follow-up time and the sum of log event times, "
        "ladder for the shape, Laplace noise on sums for a correction of it and for the scale",
    )


def priced(public: WeibullSetting, kinds: Sequence[Any], shares: Sequence[float]) -> Any:
    """Return measurements, each at its share of epsilon."""
    pairs = zip(kinds, shares, strict=True)
    return tuple(kind(price=share * public.spendable, public=public) for kind, share in pairs)


def ladder_scales(public: WeibullSetting) -> tuple[float, float]:
    """Return the least and the largest log scale that ladders release."""
    return -public.omega, LARGEST_LOG_SCALE


TIGHT = Way(tight_plan, count_table, ladder_scales)
MAXIMUM_LIKELIHOOD = Way(
    lambda public: public.plan_of(ask.MaximumLikelihood(public=public), ""),
    partial(all_log_times, exact=True),
    lambda public: (-LARGEST_LOG_SCALE, LARGEST_LOG_SCALE),
)
