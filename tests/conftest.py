"""Tests pass or fail by what the code does, and never by how busy the machine is."""

import hashlib

from hypothesis import HealthCheck, settings

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
