"""Records in blocks: sums over them, choices among them, and where fits take them from."""

from itertools import count
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_matrix

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPLogisticRegression,
    DPWeibullFitter,
    PrivacyAccountant,
    PublicColumns,
)
from skdpsurv.data import blocks
from skdpsurv.data.blocks import InMemory, add_results, first, in_blocks, pairwise_sum
from skdpsurv.datasets import make_discrete_time_survival


class Pair(NamedTuple):
    one: float
    other: np.ndarray | None


def test_sums_and_maps():
    total = add_results((1, Pair(2.0, np.ones(2)), None), (10, Pair(3.0, np.ones(2)), None))
    assert (total[0], type(total[1]), total[1].one, total[2]) == (11, Pair, 5.0, None)
    np.testing.assert_array_equal(total[1].other, [2.0, 2.0])
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


def test_blocks_have_fewer_rows_where_more_is_made_of_them(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame({"c": rng.integers(0, 20, 300)}), rng.integers(0, 2, 300)
    made, transform = [], PublicColumns.transform

    def spy(self, rows):
        made.append(transform(self, rows))
        return made[-1]

    monkeypatch.setattr(PublicColumns, "transform", spy)
    model = DPLogisticRegression(
        1.0, classes=[0, 1], columns=PublicColumns({"c": list(range(20))}), random_state=0
    )
    whole = model.fit(X, y).coef_
    monkeypatch.setattr(blocks, "BLOCK_ENTRIES", 19 * 50)
    cut, sizes = model.fit(X, y).coef_, [len(rows) for rows in made]
    assert sizes.count(300) == 1
    assert sizes.count(50) == 6
    np.testing.assert_allclose(cut, whole, rtol=1e-9)
    assert in_blocks(X, y, width=10**9).n_blocks == 300


@pytest.mark.parametrize("kind", [np.asarray, list, pd.DataFrame])
def test_arrays_are_cut_and_a_mask_is_not_lost(monkeypatch, kind):
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 4)
    X, y = np.arange(18.0).reshape(9, 2), np.ma.masked_array(np.arange(9), np.arange(9) == 5)
    held = in_blocks(kind(X), y, None)
    assert held.n_blocks == 3
    assert [len(block[1]) for block in held.blocks] == [4, 4, 1]
    assert all(isinstance(block[1], np.ma.MaskedArray) for block in held.blocks)
    assert all(block[2] is None for block in held.blocks)
    np.testing.assert_array_equal(np.vstack([np.asarray(block[0]) for block in held.blocks]), X)


@pytest.mark.parametrize("kind", [DPDiscreteTimeSurvival, DPWeibullFitter])
@pytest.mark.parametrize("place", [3, 88])
def test_what_is_wrong_is_found_in_any_block_before_the_charge(monkeypatch, kind, place):
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 30)
    data = make_discrete_time_survival(100, 2, random_state=0)
    y = data.y.copy()
    y["time"][place] = -1.0
    accountant = PrivacyAccountant(1.0)
    for arguments, why in (
        ((data.X, y), "finite and not negative"),
        ((data.X, data.y[:-1]), r"number of records|numbers of samples"),
        ((Counted([(data.X, data.y)]), data.y), "y must be None"),
    ):
        with pytest.raises(ValueError, match=why):
            kind(max_time=1.0, accountant=accountant).fit(*arguments)
    assert accountant.spent() == 0.0


class Counted(InMemory):
    """A source of records that says how many blocks it has, and its shape."""

    @property
    def shape(self):
        return sum(len(block[0]) for block in self.blocks), self.blocks[0][0].shape[1]


def test_blocks_are_added_in_pairs_and_groups_of_eight_make_the_same_tree():
    def pair(a, b):
        return (a, b)

    assert str(pairwise_sum(range(7), pair)) == "(((0, 1), (2, 3)), ((4, 5), 6))"
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
    few = model.prepare(data.X, data.y).plan
    many = model.prepare(source).plan
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
        times, events = np.linspace(0.1, 0.9, self.N).tolist(), [0, 1] * 30 + [0]
        for place in (20, 33):
            nested = [[time] if i == place else time for i, time in enumerate(times)]
            with pytest.raises(ValueError, match="X one of rows: not both"):
                DPWeibullFitter(max_time=1.0).fit(nested, events)

    def test_of_rows_that_are_not_used(self):
        X, time = [[0.0]] * self.N, np.linspace(0.1, 0.9, self.N)
        model = DPWeibullFitter(max_time=1.0, random_state=0)
        whole = model.fit(X, time).release_
        X[40] = [0.5]
        assert model.fit(X, time).release_ == whole
        for place in (0, 40):  # what it is of others is not for it to say
            mixed = [0.5 if i == place else row for i, row in enumerate(X)]
            with pytest.raises(ValueError, match="X one of rows: not both"):
                model.fit(mixed, time)

    def test_of_sparse_rows(self):
        X, y = coo_matrix(np.eye(self.N)), np.linspace(0.1, 0.9, self.N)
        DPWeibullFitter(max_time=1.0).fit(X, y)
        with pytest.raises(TypeError, match=r"[Ss]parse"):
            DPDiscreteTimeSurvival(max_time=1.0).fit(X, y)


@pytest.mark.parametrize("verbose", [0, False, 1, True, 2])
def test_the_first_items_come_when_asked_for_and_errors_get_through(capsys, verbose):
    for n_items in (0, 1, 300):
        items = count()
        assert list(first(items, n_items, "posterior sampling", verbose)) == list(range(n_items))
        assert next(items) == n_items  # and takes no more than these
    out, err = capsys.readouterr()
    assert out == ""
    assert ("posterior sampling" in err) == ("100%" in err) == bool(verbose) == bool(err)
    assert list(first(iter("abc"), 10, "work", verbose)) == ["a", "b", "c"]
    # A chain runs no further than it is watched.
    items = count()
    some = first(items, 100, "work", verbose)
    assert [next(some), next(some)] == [0, 1]
    some.close()
    assert next(items) == 2

    def failing():
        yield 1
        raise ValueError("step_size is too large")

    with pytest.raises(ValueError, match="step_size"):
        list(first(failing(), 5, "work", verbose))
    assert capsys.readouterr().out == ""
