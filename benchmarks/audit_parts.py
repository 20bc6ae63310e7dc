"""How much of its price is found of each part of each estimator, by pairs made for that.

OMP_NUM_THREADS=1 python -m benchmarks.audit_parts

What exceeds a half would show half of the noise in that part: tests/support/test_transcript.py
plants it in each of them.
"""

from __future__ import annotations

from typing import Any

from benchmarks._common import table
from benchmarks._run import arguments, run, setting
from tests.support.part_ratio import AuditedPart
from tests.support.transcript import transcript_audit
from tests.support.transcript_cases import CASES, Case

#: Of the grid on which ladders are compared.
N_CELLS = setting(512, quick=16)
#: How many of the estimators.
N_CASES = setting(len(CASES), quick=3)


def largest_shares(case: Case) -> list[AuditedPart]:
    """Return each part as the pair shows it that moves it most."""
    best: list[AuditedPart] = []
    for data, neighbour in case.made():
        result = transcript_audit(case.estimator, data, neighbour, n_cells=N_CELLS)
        if not result.passed:
            raise AssertionError(result)
        both = zip(best or result.parts, result.parts, strict=True)
        best = [max(pair, key=lambda part: part.share) for pair in both]
    return best


def rows_of(name: str, case: Case) -> list[tuple[Any, ...]]:
    """Return a row for each part."""
    return [
        (name, part.name, part.law, f"{part.share:.3f}", case.unmoved.get(number, ""))
        for number, part in enumerate(largest_shares(case))
    ]


def main() -> None:
    """One table."""
    arguments(__doc__ or "")
    rows = [row for name, case in list(CASES.items())[:N_CASES] for row in rows_of(name, case)]
    table(
        "audit_parts",
        ("fit", "part", "law", "share of its price", "why not more"),
        rows,
        "The largest log ratio, of Gaussian noise the largest mu, over what the plan has given the "
        "part, by tests.support.transcript.",
    )


if __name__ == "__main__":
    run(main)
