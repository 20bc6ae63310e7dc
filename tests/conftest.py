"""Tests pass or fail by what the code does: never by how busy the machine is, nor by chance.

Fits without a seed draw their noise from the system, so that a test of one in twenty thousand draws
would fail on some days. Here their key, and the noise that OpenDP would draw, follow from the name
of the test, or of the fixture if several tests share it. `tests/dp` and `tests/fence` are about
that noise itself, and are left alone, as are the processes that tests start.
"""

import contextlib
import hashlib
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

ABOUT_NOISE = ("tests/dp", "tests/fence")

settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("untimed")


def pytest_addoption(parser):
    parser.addoption(
        "--part", metavar="K/N", help="the K-th of N parts of the tests, by their names"
    )


def pytest_collection_modifyitems(config, items):
    """Leave out tests of other parts."""
    if (part := config.getoption("--part", default=None)) is None:
        return
    number, parts = map(int, part.split("/"))
    of = [int(hashlib.sha256(item.nodeid.encode()).hexdigest(), 16) % parts + 1 for item in items]
    config.hook.pytest_deselected(
        items=[i for i, own in zip(items, of, strict=True) if own != number]
    )
    items[:] = [item for item, own in zip(items, of, strict=True) if own == number]


class _Chance:
    """What the system's randomness is replaced by, while a test or a shared fixture runs."""

    def __init__(self, name):
        key = int(hashlib.sha256(name.encode()).hexdigest(), 16)
        self.randbits, self.generator = random.Random(key).getrandbits, np.random.default_rng(key)

    def opendp(self, distribution, exact, scale):
        from skdpsurv.dp import noise

        return noise._seeded(distribution, exact, scale, self.generator)


@contextlib.contextmanager
def _drawing_from(name):
    from skdpsurv.dp import noise

    chance = _Chance(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise, "secrets", chance)
        patch.setattr(noise, "_opendp", chance.opendp)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    if item.nodeid.startswith(ABOUT_NOISE):
        return (yield)
    with _drawing_from(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    # A fixture of a module must not depend on which of its tests asks first.
    if fixturedef.scope == "function" or request.node.nodeid.startswith(ABOUT_NOISE):
        return (yield)
    with _drawing_from(f"{fixturedef.baseid}::{fixturedef.argname}{request.param_index}"):
        return (yield)
