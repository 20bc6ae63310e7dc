"""A release in a line."""

from __future__ import annotations

from typing import Any


def headline(release: Any) -> str:
    """Return what was fitted to how many records, and what is promised, in a line."""
    guarantee = release.guarantee
    return (
        f"{release.estimator}: {guarantee.public_inputs['n_records']:,} records, "
        f"epsilon = {guarantee.epsilon:g}, status {guarantee.status}"
    )
