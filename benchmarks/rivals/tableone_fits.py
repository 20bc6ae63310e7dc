"""What runs in the environment of the package tableone: Table 1 without privacy.

The measure of time and memory is also used for this package, which is why pandas is imported late.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from worker import serve


def measured(call: Callable[[], Any]) -> dict[str, float]:
    """Return the seconds of processor time, and the peak of memory in MiB that a call adds."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before, start = _kilobytes("VmRSS"), time.process_time()
    call()
    return {
        "seconds": time.process_time() - start,
        "MiB": max(_kilobytes("VmHWM") - before, 0) / 2**10,
    }


def _kilobytes(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) if found else 0


def table(arrays: dict[str, np.ndarray], options: dict[str, Any]) -> dict[str, float]:
    """Return time and memory of a table of columns by the last one."""
    import pandas as pd
    from tableone import TableOne

    frame = pd.DataFrame(arrays)
    small = frame.head(1000)

    def make(rows: pd.DataFrame) -> Any:
        labels = options["labels"]
        return TableOne(
            rows,
            categorical=[*labels, options["by"]],
            groupby=options["by"],
            nonnormal=options["nonnormal"],
            smd=True,
            **options["more"],
        ).tabulate()

    make(small)
    return measured(lambda: make(frame))


if __name__ == "__main__":
    serve(table=table)
