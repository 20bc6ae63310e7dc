"""The C-index of a model from a table of risk groups by band of time.

Whoever had an event of another cause counts as staying in the table (of Wolbers and others): of two
people, the one at higher predicted incidence is to have the event, and the other later or never.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from skdpsurv.dp.types import FloatArray
from skdpsurv.evaluation.risk_table import LEAST_AT_RISK, parts_of


def concordance(
    tables: FloatArray, slopes: tuple[FloatArray, ...], late: FloatArray | None = None
) -> FloatArray:
    r"""Return Harrell's C of groups, where pairs within a group count one half.

    The order of two events in one band is unknown. With hazards :math:`\lambda_g, \lambda_h` in a
    band of length 1, the event of group g is first with probability
    :math:`\frac12 + (\lambda_g - \lambda_h)/12`, to first order. An event is before a censored
    record of its band with probability :math:`\frac12 + (a_C - a_E)/12`, where densities have
    slopes :math:`a_C, a_E`. Those who enter in the band are likewise in it before an event, or not.
    """
    events, censored, later = parts_of(tables, late)
    n_groups = tables.shape[-2]
    # 1 where the group of the row is at higher risk, 1/2 where it is the same.
    wins = np.triu(np.ones((n_groups, n_groups)), 1) + 0.5 * np.eye(n_groups)
    event_first = np.clip(0.5 + (slopes[1] - slopes[0]) / 12.0, 0.0, 1.0)
    against = later + event_first[..., None, :] * censored
    if late is not None:
        entry_after = np.clip(0.5 + (slopes[2] - slopes[0]) / 12.0, 0.0, 1.0)
        against = against - entry_after[..., None, :] * late
    cross = np.einsum("...gk,gh,...hk->...", events, wins, against)
    comparable = (events.sum(axis=-2) * against.sum(axis=-2)).sum(axis=-1)
    total = events.sum(axis=-2)
    same = 0.5 * (total * (total - 1.0)).sum(axis=-1)
    gone = np.clip(events / np.maximum(later + events + censored, LEAST_AT_RISK), 0.0, 0.9)
    hazard = -np.log1p(-gone)
    lead = np.einsum("...gk,gh,...hk->...", events * hazard, wins, events)
    lead -= np.einsum("...gk,gh,...hk->...", events, wins, events * hazard)
    comparable, concordant = comparable + same, cross + 0.5 * same + lead / 12.0
    found = np.where(comparable > 0.5, concordant / np.maximum(comparable, 0.5), 0.5)
    return np.clip(found, 0.0, 1.0)


def between_ties(found: FloatArray, shares: FloatArray) -> FloatArray:
    r"""Return C without ties within groups, from a grouped C and the groups' shares.

    The correction is exact for normal risks: N(0, 1) of all, and N(b, 1) of events. Their C is
    :math:`\Phi(b/\sqrt2)`, and is smaller in groups.
    """
    b = np.linspace(-6.0, 6.0, 601)
    p = np.maximum(shares, 0.0) / max(np.maximum(shares, 0.0).sum(), LEAST_AT_RISK)
    # Group 0 is at the highest risk.
    above = np.append(-special.ndtri(np.clip(np.cumsum(p)[:-1], 1e-12, 1.0 - 1e-12)), -np.inf)
    events = np.diff(special.ndtr(b[:, None] - above), axis=1, prepend=0.0)
    grouped = (events * (0.5 * p + np.cumsum(p[::-1])[::-1] - p)).sum(axis=1)
    if p.max() > 0.9:  # hardly anything is known of the order
        return found
    return np.interp(found, grouped, special.ndtr(b / np.sqrt(2.0)))
