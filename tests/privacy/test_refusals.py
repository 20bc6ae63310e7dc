"""Errors of a validation never quote a record."""

from __future__ import annotations

import traceback

import numpy as np
import pytest
from sklearn.utils import check_array

from skdpsurv.privacy import call_without_data, refuse_masked


class Talkative:
    def __init__(self, error):
        self.error = error

    def __float__(self):
        raise self.error


@pytest.mark.parametrize(
    "error", [ValueError("secret7"), TypeError("secret7"), OverflowError("secret7")]
)
def test_an_unknown_message_is_replaced(error):
    X = np.array([[Talkative(error)]], dtype=object)
    with pytest.raises((ValueError, TypeError)) as info:
        call_without_data(check_array, X, dtype=np.float64)
    shown = "".join(traceback.format_exception(info.value))
    assert "secret7" not in shown.replace('ValueError("secret7")', "")
    assert info.value.__context__ is None


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([[np.nan]]), "contains NaN"),
        (np.array([[np.inf]]), "contains infinity"),
        (np.ones((0, 2)), r"0 sample\(s\)"),
        (np.ones((2, 0)), r"0 feature\(s\)"),
        (np.ones(2), "Expected 2D"),
    ],
)
def test_a_known_message_is_kept(X, message):
    with pytest.raises(ValueError, match=message):
        call_without_data(check_array, X, dtype=np.float64)


def test_masked():
    with pytest.raises(ValueError, match="y must not be a masked array"):
        refuse_masked(np.ma.MaskedArray([1.0], mask=[True]), "y")
    refuse_masked(np.ones(1), "y")
