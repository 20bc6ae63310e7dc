"""The progress bar: on the standard error stream, when asked for, and never in the way."""

from __future__ import annotations

from itertools import count

import pytest

from skdpsurv.data.blocks import first


@pytest.mark.parametrize("verbose", [0, False, 1, True, 2])
class TestFirst:
    @pytest.mark.parametrize("n_items", [0, 1, 7, 300])
    def test_yields_the_first_items_of_an_endless_iterator(self, capsys, verbose, n_items):
        items = count()
        assert list(first(items, n_items, "work", verbose)) == list(range(n_items))
        assert next(items) == n_items  # and takes no more than these

    def test_fewer_items_than_asked_for(self, capsys, verbose):
        assert list(first(iter("abc"), 10, "work", verbose)) == ["a", "b", "c"]

    def test_is_lazy(self, capsys, verbose):
        """An item is made when it is asked for: a chain runs no further than it is watched."""
        items = count()
        some = first(items, 100, "work", verbose)
        assert [next(some), next(some)] == [0, 1]
        some.close()
        assert next(items) == 2

    def test_where_it_writes(self, capsys, verbose):
        list(first(count(), 50, "posterior sampling", verbose))
        out, err = capsys.readouterr()
        assert out == ""
        if verbose:
            assert "posterior sampling" in err
            assert "100%" in err
        else:
            assert err == ""

    def test_errors_of_the_work_get_through(self, capsys, verbose):
        def failing():
            yield 1
            raise ValueError("step_size is too large")

        with pytest.raises(ValueError, match="step_size"):
            list(first(failing(), 5, "work", verbose))
        assert capsys.readouterr().out == ""
