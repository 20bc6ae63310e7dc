"""Ledgers of either kind."""

from __future__ import annotations

import pytest

from skdpsurv.privacy import PrivacyAccountant


@pytest.fixture(params=["memory", "file"])
def make(request, tmp_path):
    """Make an accountant of either kind; one path for all of a test's files."""

    def factory(*args, **kwargs):
        if request.param == "file":
            kwargs.setdefault("path", tmp_path / "ledger.sqlite")
        return PrivacyAccountant(*args, **kwargs)

    return factory


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"
