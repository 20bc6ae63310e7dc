"""What runs in diffprivlib's own environment: the time of a fit of its logistic regression.

python diffprivlib_fit.py fit IN.npz OPTIONS.json OUT.json

Imports nothing of skdpsurv.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np


def seconds(X: np.ndarray, y: np.ndarray, fits: int) -> float:
    """Return the median processor time of fits at the defaults, after one that does not count."""
    from diffprivlib.models import LogisticRegression

    model, times = LogisticRegression(epsilon=1.0, data_norm=1.0), []
    for _ in range(fits + 1):
        start = time.process_time()
        model.fit(X, y)
        times.append(time.process_time() - start)
    return float(np.median(times[1:]))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    _, source, wishes, target = sys.argv[1:]
    with np.load(source) as archive:
        found = seconds(archive["X"], archive["y"], **json.loads(Path(wishes).read_text()))
    Path(target).write_text(json.dumps(found))
