"""Types of the arrays that the package works with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
#: Indices of records, of NumPy's own index type.
IndexArray = NDArray[np.intp]
