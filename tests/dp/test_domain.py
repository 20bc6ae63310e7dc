"""Tests of the public domain."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from skdpsurv.data.shape import row_products
from skdpsurv.dp import clip_times
from skdpsurv.dp.checks import word_or
from skdpsurv.dp.clipping import clip_rows, row_weights
from skdpsurv.dp.input_errors import check_finite

finite = st.floats(allow_nan=False, allow_infinity=False)
matrices = arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 9)), elements=finite)


def exact_squared_norm(row):
    return sum(Fraction(x) ** 2 for x in row.tolist())


class TestClipRows:
    @settings(max_examples=150, deadline=None)
    @given(X=matrices, norm=st.floats(1e-200, 1e300))
    def test_norm_never_exceeds_the_bound(self, X, norm):
        """In exact arithmetic, for every finite float."""
        before = X.copy()
        clipped = clip_rows(X, norm)
        assert np.array_equal(X, before)
        assert not np.shares_memory(X, clipped)
        for row, original in zip(clipped, X, strict=True):
            assert exact_squared_norm(row) <= Fraction(norm) ** 2
            inside = Fraction(norm) * (1 - Fraction(1, 2**40))
            if exact_squared_norm(original) <= inside**2:
                assert np.array_equal(row, original)

    @pytest.mark.parametrize("n_features", [1, 2, 784, 5000])
    def test_float_norm_in_any_order_of_summation(self, n_features):
        rows = np.random.default_rng(0).normal(size=(50, n_features)) * 1e3
        clipped = clip_rows(rows, 1.7)
        assert np.max(np.linalg.norm(clipped, axis=1)) <= 1.7
        assert np.sqrt(np.max(np.cumsum(clipped**2, axis=1)[:, -1])) <= 1.7
        assert np.sqrt(np.max(np.einsum("ij,ij->i", clipped, clipped))) <= 1.7
        # Shortened by no more than rounding asks for, and not turned.
        exact = 1.7 * rows / np.linalg.norm(rows, axis=1, keepdims=True)
        np.testing.assert_allclose(clipped, exact, rtol=1e-11)

    def test_huge_tiny_and_zero_rows(self):
        X = np.array([[1e308, 1e308], [-1.7e308, 0.0], [5e-324, 0.0], [0.0, 0.0], [-0.0, 1e-310]])
        with np.errstate(divide="raise", invalid="raise"):  # a warning would betray such rows
            clipped = clip_rows(X, 1.0)
        half = math.sqrt(0.5)
        np.testing.assert_allclose(clipped[:2], [[half, half], [-1.0, 0.0]], rtol=1e-14)
        assert np.array_equal(clipped[2:], X[2:])
        # Rows of small entries are as long as they are.
        np.testing.assert_allclose(clip_rows(np.full((1, 9), 0.4), 1.0), 1.0 / 3.0, rtol=1e-12)

    @pytest.mark.parametrize("norm", [1e-250, 1e-262, 1e-270, 1e-280, 1e-300])
    def test_small_norms_of_rows_that_are_not(self, norm):
        """The quotient of norm and length has few digits, or none."""
        sizes = np.append(10.0 ** np.linspace(-45.0, 49.4, 200), norm / 2.6e-324)
        for row in clip_rows(np.outer(sizes[sizes < 1e50], [0.6, 0.8]), norm):
            assert exact_squared_norm(row) <= Fraction(norm) ** 2

    @pytest.mark.parametrize("n_features", [5000, 9000, 10_000, 12_000])
    def test_no_row_changes_another(self, n_features):
        """Not in its last digit. NumPy adds up a row beyond its buffer in another order alone."""
        rows = np.random.default_rng(3).normal(size=(2 * (2**15 // n_features) + 1, n_features))
        alone = np.vstack([clip_rows(row[None], 1.0) for row in rows])
        for shift in range(2):
            together = clip_rows(np.roll(rows, shift, axis=0), 1.0)
            assert np.array_equal(together, np.roll(alone, shift, axis=0))

    @pytest.mark.parametrize("n_features", [3, 5000, 10_000])
    def test_a_product_depends_on_its_row_alone(self, n_features):
        rng = np.random.default_rng(4)
        rows, coef = rng.normal(size=(9, n_features)), rng.normal(size=n_features)
        alone = [row_products(row[None], coef).item() for row in rows]
        assert row_products(rows, coef).tolist() == alone
        np.testing.assert_allclose(alone, rows @ coef, rtol=1e-9)

    def test_shapes_and_types(self):
        assert clip_rows([[1, 2], [3, 4]], 10).dtype == np.float64
        assert clip_rows(np.zeros((0, 3)), 1.0).shape == (0, 3)
        assert clip_rows(np.zeros((3, 0)), 1.0).shape == (3, 0)
        fortran = np.asfortranarray(np.random.default_rng(2).normal(size=(5, 4)))
        assert np.array_equal(clip_rows(fortran, 1.0), clip_rows(fortran.copy("C"), 1.0))
        for wrong in ([1.0, 2.0], [[math.nan]], [[-math.inf]]):
            with pytest.raises(ValueError, match="X"):
                clip_rows(wrong, 1.0)

    @pytest.mark.parametrize("n_features", [1, 7, 784])
    def test_weights_are_those_of_squares(self, n_features):
        """The weight times the squared length is at most the square of the norm, exactly."""
        sizes = np.geomspace(1e-2, 1e3, 40)[:, None]
        rows = np.random.default_rng(0).normal(size=(40, n_features)) * sizes
        for row, weight in zip(rows, row_weights(rows, 1.7), strict=True):
            square = exact_squared_norm(row)
            assert Fraction(weight) * square <= Fraction(1.7) ** 2
            assert weight == pytest.approx(min(1.0, 1.7**2 / float(square)), rel=1e-11)


class TestClipTimes:
    def test_beyond_the_horizon_is_censored_there(self):
        time, event = np.array([1.0, 5.0, 6.0, 7.0]), np.array([True, True, True, False])
        clipped, seen = clip_times(time, event, 5)
        assert clip_times([1, 2], [0, 1.0], 5)[1].tolist() == [False, True]
        assert clipped.tolist() == [1.0, 5.0, 5.0, 5.0]
        assert seen.tolist() == [True, True, False, False]
        assert time.tolist() == [1.0, 5.0, 6.0, 7.0]
        assert event.tolist() == [True, True, True, False]

    def test_refusals(self):
        for event in ([0, 2], ["no", "yes"], [0.5, 1], [math.nan, 1], [True]):
            with pytest.raises(ValueError, match="event"):
                clip_times([1.0, 2.0], event, 5.0)
        with pytest.raises(ValueError, match="time contains NaN or infinity"):
            clip_times([1.0, math.nan], [0, 1], 5.0)
        with pytest.raises(ValueError, match="max_time must be a positive finite number, got inf"):
            clip_times([1.0], [0], math.inf)


def test_an_object_in_place_of_a_word_checks_itself():
    class Sized:
        size = 1

        def check(self):
            if not self.size:
                raise ValueError("size must be positive")

    method, empty = word_or(Sized, "auto", "all"), Sized()
    method("method", "auto")
    method("method", Sized())
    empty.size = 0
    for wrong, name in ((empty, "size"), ("some", "method"), (Sized, "method"), (None, "method")):
        with pytest.raises((TypeError, ValueError), match=f"{name} must"):
            method("method", wrong)


class TestMessages:
    @pytest.mark.parametrize(
        "call",
        [
            lambda: clip_rows([[1.0, "patient-4711"]], 1.0),
            lambda: clip_rows(np.array([[1.0, "patient-4711"]], dtype=object), 1.0),
            lambda: check_finite(np.array([4711.25, np.nan]), "X"),
            lambda: check_finite(["patient-4711"], "X"),
            lambda: clip_times(["4711-01-01"], [1], 1.0),
            lambda: clip_times([4711.25, np.nan], [1, 0], 1.0),
            lambda: clip_times([1.0], [4711], 1.0),
        ],
    )
    def test_no_value_in_the_message_or_what_led_to_it(self, call):
        with pytest.raises(ValueError, match=r"X|time|event") as error:
            call()
        chain, current = [], error.value
        while current is not None:
            chain.append(str(current.args))
            current = current.__cause__ or current.__context__
        assert all("4711" not in text for text in chain)
