"""Errors of a validation never quote a record."""

import traceback

import numpy as np
import pytest
from sklearn.utils import check_array

from skdpsurv.dp.input_errors import call_without_data


class Talkative:
    def __init__(self, error):
        self.error = error

    def __float__(self):
        raise self.error


class Rude(BaseException):
    pass


#: Words of messages that are known, in front of the secret or behind it.
MIMICS = [
    "contains NaN secret7",
    "Input X contains NaN.\nsecret7 does not accept missing values",
    "secret7: X has 2 features, but 3 features are expected.",
    "X has 2 features, but secret7 is expected",
    "Sparse data was passed: secret7",
    "The feature names should match those that were passed during fit.\n- secret7\n",
    "Found array with 0 sample(s) (shape=(0, 3)) secret7",
    "argument must be a string or a real number, not 'a' secret7",
]


@pytest.mark.parametrize(
    "error",
    [
        *(kind("secret7") for kind in (ValueError, TypeError, OverflowError, Rude)),
        *map(ValueError, MIMICS),
    ],
    ids=repr,
)
def test_an_unknown_message_is_replaced(error):
    X = np.array([[Talkative(error)]], dtype=object)
    with pytest.raises((ValueError, TypeError)) as info:
        call_without_data(check_array, X, dtype=np.float64)
    shown = "".join(traceback.format_exception(info.value))
    assert "secret7" not in shown
    assert info.value.__context__ is None


def test_a_known_message_is_kept():
    for X, message in (
        *((np.array([[np.nan]]), "contains NaN"), (np.array([[np.inf]]), "contains infinity")),
        *((np.ones((0, 2)), r"0 sample\(s\)"), (np.ones((2, 0)), r"0 feature\(s\)")),
        (np.ones(2), "Expected 2D"),
    ):
        with pytest.raises(ValueError, match=message):
            call_without_data(check_array, X, dtype=np.float64)
