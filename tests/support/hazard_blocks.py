"""Records of hazard models, made of arrays."""

import numpy as np

from skdpsurv.data.histories import Histories
from skdpsurv.likelihoods import hazard
from skdpsurv.survival.hazards.model import HazardRecords


def hazard_block(X, interval, event, change=None):
    return hazard.hazard_block(X, Histories(interval, np.asarray(event, dtype=bool)), change)


def hazard_records(X, interval, event):
    return HazardRecords(X, Histories(interval, event))
