"""Records of a hybrid fit, without one."""

from typing import Any

import numpy as np

from skdpsurv.data.blocks import InMemory
from skdpsurv.hybrid.hybrid_records import PrivateRecords, PublicRecords, read_table


def hybrid_records(
    X: Any, y: Any, public: Any, classifies: bool
) -> tuple[PublicRecords, InMemory[PrivateRecords]]:
    """Return numbers and outcomes as public records, and a block of private ones."""
    table, n_private = read_table(X, ()), int(np.sum(~public))
    theirs = PublicRecords(table.rows(public), y[public], classifies, n_private)
    return theirs, InMemory([theirs.range.clipped(table.rows(~public), y[~public])])
