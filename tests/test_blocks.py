"""Records in blocks: sums over them, choices among them, and where fits take them from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from skdpsurv import DPDiscreteTimeSurvival, DPLogisticRegression, DPWeibullFitter
from skdpsurv.data import blocks
from skdpsurv.data.blocks import InMemory, add_results, in_blocks, pairwise_sum
from skdpsurv.datasets import make_discrete_time_survival


class Pair(NamedTuple):
    one: float
    other: np.ndarray | None


def test_added():
    total = add_results((1, Pair(2.0, np.ones(2)), None), (10, Pair(3.0, np.ones(2)), None))
    assert total[0] == 11
    assert total[2] is None
    assert isinstance(total[1], Pair)
    assert total[1].one == 5.0
    np.testing.assert_array_equal(total[1].other, [2.0, 2.0])


def test_sums_and_maps():
    held = InMemory([np.arange(3), np.arange(5)])
    assert held.n_blocks == 2
    assert held.map_reduce(np.sum) == 13
    assert held.map(lambda block, k: block * k, [10, 1]).map_reduce(np.sum) == 40
    assert list(held.results(np.size)) == [3, 5]


def test_chosen_records_keep_their_order_within_a_block():
    held = InMemory([np.arange(10), np.arange(10, 25), np.arange(25, 27)])
    places = np.array([26, 3, 12, 1, 11, 9])
    chosen = held.chosen(places, np.size, lambda block, inside: block[inside])
    assert [block.tolist() for block in chosen.blocks] == [[3, 1, 9], [12, 11], [26]]


@pytest.mark.parametrize("kind", [np.asarray, list, pd.DataFrame])
def test_arrays_are_cut(monkeypatch, kind):
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 4)
    X, y = np.arange(18.0).reshape(9, 2), np.arange(9)
    held = in_blocks(kind(X), y, None)
    assert held.n_blocks == 3
    assert [len(block[1]) for block in held.blocks] == [4, 4, 1]
    assert all(block[2] is None for block in held.blocks)
    np.testing.assert_array_equal(np.vstack([np.asarray(block[0]) for block in held.blocks]), X)


def test_a_mask_is_not_lost(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 4)
    held = in_blocks(np.ma.masked_array(np.arange(9.0), mask=np.arange(9) == 5))
    assert all(isinstance(block[0], np.ma.MaskedArray) for block in held.blocks)


@pytest.mark.parametrize("model", [
    DPDiscreteTimeSurvival(max_time=1.0, n_intervals=20),
    DPWeibullFitter(max_time=1.0),
])  # fmt: skip
@pytest.mark.parametrize("place", [3, 88])
def test_what_is_wrong_is_found_in_any_block_before_the_charge(monkeypatch, model, place):
    from sklearn.base import clone

    from skdpsurv import PrivacyAccountant

    monkeypatch.setattr(blocks, "BLOCK_ROWS", 30)
    data = make_discrete_time_survival(100, 2, random_state=0)
    y = data.y.copy()
    y["time"][place] = -1.0
    accountant = PrivacyAccountant(1.0)
    with pytest.raises(ValueError, match="finite and not negative"):
        clone(model).set_params(accountant=accountant).fit(data.X, y)
    with pytest.raises(ValueError, match=r"number of records|numbers of samples"):
        clone(model).set_params(accountant=accountant).fit(data.X, data.y[:-1])
    with pytest.raises(ValueError, match="y must be None"):
        clone(model).set_params(accountant=accountant).fit(Counted([(data.X, data.y)]), data.y)
    assert accountant.spent() == 0.0


class Counted(InMemory):
    """A source of records that says how many blocks it has, and its shape."""

    @property
    def shape(self):
        return sum(len(block[0]) for block in self.blocks), self.blocks[0][0].shape[1]


@pytest.mark.parametrize("model", [
    DPDiscreteTimeSurvival(max_time=1.0, n_intervals=20, random_state=0),
    DPWeibullFitter(max_time=1.0, random_state=0),
    DPLogisticRegression(classes=[0, 1], random_state=0),
])  # fmt: skip
def test_a_source_of_blocks_is_fitted_as_arrays_are(model):
    from sklearn.base import clone

    data = make_discrete_time_survival(900, 2, random_state=0)
    y = data.y["event"].astype(int) if isinstance(model, DPLogisticRegression) else data.y
    parts = np.array_split(np.arange(900), 7)
    source = Counted([(data.X[part], y[part]) for part in parts])
    whole = clone(model).fit(data.X, y).release_
    found = clone(model).fit(source, None).release_
    for name, value in whole.values.items():
        np.testing.assert_allclose(found.values[name], value, atol=2e-5)


@pytest.mark.parametrize(
    ("n", "tree"),
    [
        (1, "0"),
        (2, "(0, 1)"),
        (3, "((0, 1), 2)"),
        (5, "(((0, 1), (2, 3)), 4)"),
        (7, "(((0, 1), (2, 3)), ((4, 5), 6))"),
    ],
)
def test_blocks_are_added_in_pairs(n, tree):
    total = pairwise_sum(range(n), lambda a, b: (a, b))
    assert str(total) == tree


def test_groups_of_eight_make_the_same_tree():
    def pair(a, b):
        return (a, b)

    for n in range(1, 200):
        parts = list(range(n))
        while len(parts) > 1:
            parts = [pairwise_sum(parts[k : k + 8], pair) for k in range(0, len(parts), 8)]
        assert parts[0] == pairwise_sum(range(n), pair)


def test_a_plan_does_not_know_how_many_blocks_there_are():
    """The certificate of a minimiser allows for the height of any tree of blocks."""
    data = make_discrete_time_survival(600, 2, random_state=0)
    model = DPDiscreteTimeSurvival(max_time=1.0, n_intervals=20)
    source = Counted([(data.X[k::100], data.y[k::100]) for k in range(100)])
    _, few, _ = model._planned(data.X, data.y)
    _, many, _ = model._planned(source, None)
    assert few.public_inputs() == many.public_inputs()
    fits = [plan.leaves[2].fit for plan in (few, many)]
    assert fits[0].calibration == fits[1].calibration
    short = Counted([(data.X[k::100], data.y[k::100]) for k in range(99)])
    with pytest.raises(ValueError, match="must hold the 600 records"):
        model._read(model._shape(data.X, data.y), short, None)


class TestOneRecordDecidesForItselfAlone:
    """What X and y are is decided once: a record in a later block cannot change how it is read."""

    N = 61

    @pytest.fixture(autouse=True)
    def small_blocks(self, monkeypatch):
        monkeypatch.setattr(blocks, "BLOCK_ROWS", 20)

    def test_of_durations(self):
        times = np.linspace(0.1, 0.9, self.N).tolist()
        events = (np.arange(self.N) % 2).tolist()
        for place in (20, 33):
            nested = list(times)
            nested[place] = [times[place]]
            with pytest.raises(ValueError, match="X one of rows: not both"):
                DPWeibullFitter(max_time=1.0).fit(nested, events)

    def test_of_rows_that_are_not_used(self):
        X = [[0.0]] * self.N
        time = np.linspace(0.1, 0.9, self.N)
        whole = DPWeibullFitter(max_time=1.0, random_state=0).fit(X, time)
        X[40] = [0.5]
        other = DPWeibullFitter(max_time=1.0, random_state=0).fit(X, time)
        assert other.release_ == whole.release_
        for place in (0, 40):  # what it is of others is not for it to say
            mixed = [0.5 if i == place else row for i, row in enumerate(X)]
            with pytest.raises(ValueError, match="X one of rows: not both"):
                DPWeibullFitter(max_time=1.0).fit(mixed, time)

    def test_of_sparse_rows(self):
        from scipy.sparse import coo_matrix

        y = np.linspace(0.1, 0.9, self.N)
        DPWeibullFitter(max_time=1.0).fit(coo_matrix(np.eye(self.N)), y)
        with pytest.raises(TypeError, match=r"[Ss]parse"):
            DPDiscreteTimeSurvival(max_time=1.0).fit(coo_matrix(np.eye(self.N)), y)
