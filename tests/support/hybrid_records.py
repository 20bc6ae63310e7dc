"""Records of a hybrid fit, without one."""

import numpy as np

from skdpsurv.data.blocks import InMemory
from skdpsurv.hybrid.hybrid_records import PublicRecords, read_table


def hybrid_records(X, y, public, classifies):
    """Return numbers and outcomes as public records, and a block of private ones."""
    table, n_private = read_table(X, ()), int(np.sum(~public))
    theirs = PublicRecords(table.rows(public), y[public], classifies, n_private)
    return theirs, InMemory([theirs.range.clipped(table.rows(~public), y[~public])])
