"""Refusals that say what rule was broken and nothing of the record that broke it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

# scikit-learn prints the array (or the offending cell) in these errors; a message must not.
_MESSAGES_WITHOUT_DATA = {
    "Complex data not supported": "Complex data not supported: X must be real.",
    "Expected 2D": (
        "Expected 2D array: X must have shape (n_samples, n_features). Reshape your data with "
        "array.reshape(-1, 1) for a single column or array.reshape(1, -1) for a single record."
    ),
    "could not convert": (
        "X must be numeric, got text in at least one column. Encode categories with "
        "categories that are public, not with those found in the data."
    ),
}


@contextmanager
def errors_without_data() -> Iterator[None]:
    """Replace the text of scikit-learn's validation errors that print values of the data."""
    try:
        yield
    except ValueError as error:
        for fragment, message in _MESSAGES_WITHOUT_DATA.items():
            if fragment in str(error):
                error.args = (message,)
                # The errors behind this one hold the same text.
                error.__cause__ = error.__context__ = None
        raise


def refuse_masked(values: object, name: str) -> None:
    """Refuse a masked array: NumPy would use what is under the mask.

    Raises
    ------
    ValueError
        If ``values`` is a masked array.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(
            f"{name} must not be a masked array: what is under the mask would be used."
        )
