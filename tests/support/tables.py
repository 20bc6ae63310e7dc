"""Data of settings as one table, which chunks and engines cut."""

import numpy as np
import pandas as pd

from skdpsurv.base import PrivateEstimator
from skdpsurv.model_selection import PrivateSearchCV
from tests.support.registry import SETTINGS

#: Settings whose fits take records that are not in memory.
OF_TABLES = [
    setting
    for setting in SETTINGS
    if setting.is_private
    and issubclass(setting.kind, PrivateEstimator)
    and setting.kind is not PrivateSearchCV
    # Neither classes nor groups can be read from records that are somewhere else.
    and setting.parameters.get("classes", ...) is not None
    and "from the records" not in setting.name
]


def table(data):
    """Return all of a data set in one frame, and what names X, or durations, and y there."""
    X = data.X if isinstance(data.X, pd.DataFrame) else pd.DataFrame(np.asarray(data.X))
    X = X.rename(columns=str)
    y = np.zeros(len(X)) if data.y is None else data.y  # some fits ignore it
    fields = y.dtype.names
    target = {name: y[name] for name in fields} if fields else {"y": np.asarray(y)}
    columns = list(X.columns) if data.X.ndim > 1 else X.columns[0]
    return X.assign(**target, **data.options), columns, list(target) if fields else "y"
