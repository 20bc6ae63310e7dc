"""Rows in pieces: what comes out is what comes out of all rows at once."""

import numpy as np
import pytest

from skdpsurv.dp import checks
from skdpsurv.dp.checks import by_pieces, clip_rows, row_pieces
from skdpsurv.likelihoods.base import gram


@pytest.mark.parametrize(("n", "columns"), [(0, 3), (1, 3), (10, 3), (12, 3), (5, 0), (4, 100)])
def test_pieces_are_all_rows_once(monkeypatch, n, columns):
    monkeypatch.setattr(checks, "CHUNK_ELEMENTS", 12)
    rows = np.arange(n)
    found = [rows[piece] for piece in row_pieces(n, columns)]
    np.testing.assert_array_equal(np.concatenate([[], *found]), rows)
    assert all(0 < part.size * columns <= max(12, columns) for part in found) or not columns


def test_rows_are_made_piece_by_piece(monkeypatch):
    monkeypatch.setattr(checks, "CHUNK_ELEMENTS", 6)
    rows = np.random.default_rng(0).normal(size=(7, 2))
    sizes = []

    def double(piece):
        sizes.append(len(rows[piece]))
        return 2.0 * rows[piece]

    np.testing.assert_array_equal(by_pieces(double, 7, 2), 2.0 * rows)
    assert sizes == [3, 3, 1]


def test_clipping_does_not_depend_on_pieces(monkeypatch):
    rows = np.random.default_rng(1).standard_cauchy(size=(200, 5))
    whole = clip_rows(rows, 1.5)
    monkeypatch.setattr(checks, "CHUNK_ELEMENTS", 35)
    np.testing.assert_array_equal(clip_rows(rows, 1.5), whole)


@pytest.mark.parametrize("n", [0, 1, 20_001])
def test_gram(n):
    rng = np.random.default_rng(2)
    rows, weights = rng.normal(size=(n, 4)), rng.uniform(size=n)
    wanted = np.einsum("i,ij,ik->jk", weights, rows, rows)
    np.testing.assert_allclose(gram(rows, weights), wanted, rtol=1e-11, atol=1e-11)
