r"""Curves: tables of counts add up.

With the same bands, groups and causes, the table of all people is the sum of the tables of sites,
:math:`z = \sum_i z_i`, and so is its noise, with variance :math:`v = \sum_i v_i` in each cell. The
pooled release is a table like any other, with that variance: curves, intervals and tests of it are
about all people together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skdpsurv.pooling.members import require_same
from skdpsurv.release import Release, released_array
from skdpsurv.survival.curves.table import COUNT_VARIANCE, table_variance

HINT = ' n_intervals="auto" depends on the number of records and epsilon.'


def check_tables(members: Sequence[Release]) -> None:
    """Refuse tables of different cells.

    Raises
    ------
    ValueError
        Naming what differs.
    """
    require_same(members, ("max_time", "breakpoints"))
    require_same(members, ("n_intervals",), HINT)
    optional = ("groups", "causes", "censored")
    require_same(members, [n for n in optional if any(n in m.parameters for m in members)])


def sum_of_tables(members: Sequence[Release]) -> dict[str, Any]:
    """Return the values of the release of all."""
    shape = np.asarray(members[0].values.get("counts")).shape
    counts = [released_array(member, "counts", shape) for member in members]
    return {
        "counts": np.sum(counts, axis=0),
        COUNT_VARIANCE: float(sum(map(table_variance, members))),
    }
