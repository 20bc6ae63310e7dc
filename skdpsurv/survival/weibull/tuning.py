"""Tuned constants of Weibull fits, today's and those that earlier releases were made with."""

from __future__ import annotations

from typing import NamedTuple


class Tuning(NamedTuple):
    """Tuned constants of the tight ladder; shares are of epsilon.

    They were tuned on simulated Weibull data of many shapes, scales and censorings, and with the
    data sets of docs/benchmarks/weibull in view.
    """

    #: Shares of the number of events and of the follow-up time without a shape_fraction.
    events_share: float = 0.14
    follow_up_share: float = 0.03
    #: With one: their shares of the rest; half of what remains is for the last sum of powers.
    events_part: float = 0.4
    follow_up_part: float = 0.1
    #: Shares of ladder and last sum of powers, relative to the sum of log times: at one event per
    #: horizon of follow-up, and the power and the range of that rate by which they grow.
    ladder_part: float = 0.4
    rate_power: float = 0.8
    rate_range: tuple[float, float] = (0.25, 20.0)
    #: With a correction: shares of the sum of log times, ladder, first sum of powers, and score.
    correction_shares: tuple[float, ...] = (0.10, 0.10, 0.03, 0.35)
    #: A correction needs so many events times epsilon, and events per horizon of follow-up.
    correction_events: float = 1500.0
    correction_rate: float = 1.0
    #: Largest relative corrections of the shape, down and up.
    largest_correction: tuple[float, float] = (-0.5, 1.0)
    #: Shape allowed by a released mean of log event times, relative to the largest.
    steepest: float = 0.9


#: Number of today's constants, which a release states: its intervals simulate fits with them. Those
#: of earlier numbers stay as they are, so that intervals of earlier releases do.
TUNING = 1
TUNINGS = {1: Tuning()}
