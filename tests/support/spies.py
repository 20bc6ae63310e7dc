"""What is asked of records: queries, on their way to the noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdpsurv.mechanisms import sums


def queries_without_noise(monkeypatch: Any) -> list[tuple[int, Any, float]]:
    """Release counts and sums as they are; return a list of sensitivity, exact value and epsilon.

    It grows with every query.
    """
    seen = []

    def spy(query: Any, exact: Any, epsilon: float, source: Any) -> Any:
        seen.append((query.sensitivity, np.array(exact), epsilon))
        return exact

    monkeypatch.setattr(sums, "_released", spy)
    return seen
