"""How far times reach within a public horizon, in words, by numbers that were released."""

from __future__ import annotations

from skdpsurv.dp.references import phrase

#: Below this share of events, or of records that outlast the first quarter of the horizon, that may
#: be in another unit than the times.
FEW = 0.05


def horizon_words(max_time: float, events: float, early: float, margin: float = 0.0) -> list[str]:
    """Say which shares of records have an event by the horizon, and end in its first quarter.

    Examples
    --------
    >>> from skdpsurv.survival.horizon import horizon_words
    >>> print(horizon_words(10.0, 0.4, 0.3, margin=0.02)[0])
    By a noisy table about 40 % of the records have an event by max_time=10, and 30 % end in its \
first quarter; noise moves these by up to 2 points, as a rule.
    """
    shown = {name: _percent(share) for name, share in (("events", events), ("early", early))}
    noise = phrase("by_horizon_noise", points=100.0 * margin) if margin else ""
    found = phrase("by_horizon", max_time=max_time, noise=noise, **shown)
    rare, soon = max(events, early) + margin < FEW, early - margin > 1.0 - FEW
    return [f"{found} {phrase('horizon_unit')}" if rare or soon else found]


def _percent(share: float) -> str:
    return f"{100.0 * share:.{0 if share >= 0.1 else 1}f} %"
