"""The fence sees what it is there to see: a planted change in a scale, and a draw too many."""

from unittest.mock import patch

import pytest

import skdpsurv.mechanisms.sums as counting
from skdpsurv.dp.noise import lattice_laplace
from tests.fence.compare import differences, first_difference
from tests.fence.places import make
from tests.fence.record import MODES, recorded
from tests.fence.settings import column, settings


def run(random_state):
    model = make("DPKaplanMeierFitter", max_time=10.0, random_state=random_state)
    return model.fit(column("time"), column("event"))


def scaled(value, scale, source):
    return lattice_laplace(value, scale * (1.0 + 1e-9), source)


def drawn_twice(value, scale, source):
    noisy = lattice_laplace(value, scale, source)
    lattice_laplace(value, scale, source)  # after the one that is released
    return noisy


@pytest.mark.parametrize("mode", MODES)
def test_the_same_twice(mode):
    old, new = recorded(run, mode), recorded(run, mode)
    assert old["values"]["guarantee_"]["epsilon"] == (1.0).hex()
    assert old["draws"]
    assert list(differences({mode: old}, {mode: new})) == []


@pytest.mark.parametrize(
    ("mode", "planted"),
    [("asked", scaled), ("unseeded", scaled), *((mode, drawn_twice) for mode in MODES)],
)
def test_a_planted_change_is_reported(mode, planted):
    old = recorded(run, mode)
    with patch.object(counting, "lattice_laplace", planted):
        ((name, why),) = differences({mode: old}, {mode: recorded(run, mode)})
    assert name == mode
    assert "['draws']" in why


def test_the_first_difference_is_named():
    assert first_difference({"a": [1, 2]}, {"a": [1, 2]}) is None
    assert first_difference({"a": [1, 2]}, {"a": [1, 3]}) == "['a'][1]: 2 -> 3"
    assert first_difference({"a": [1]}, {"a": [1, 3]}) == "['a']: 1 -> 2 entries"
    assert first_difference({}, {"a": 1}) == "['a']: only in the new package"
    assert first_difference(0, False) is not None


def test_what_does_not_run_differs_and_what_cannot_be_read_does_not():
    ran = {"values": {}, "draws": {}}
    assert [n for n, _ in differences({"a": ran, "b": ran}, {"a": {"error": "E"}})] == ["a", "b"]
    assert not list(differences({"a (asked)": ran}, {"a (asked)": {"lacks": "AskedSource"}}))


def test_names_of_settings_are_their_own():
    names = [name for name, _ in settings()]
    assert len(set(names)) == len(names) >= 40
