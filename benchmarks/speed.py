"""Time and memory of a fit, against person-period rows and statsmodels in the same run.

python -m benchmarks.speed
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from benchmarks._common import SurvivalData, flchain, table
from benchmarks._run import arguments, in_new_process, part, run, setting
from skdpsurv import DPDiscreteTimeSurvival
from skdpsurv.reference import person_period
from skdpsurv.survival.hazards.model import published_basis

Q = setting(200, quick=20)
LINKS = setting(("logit", "cloglog", "probit"), quick=("logit",))
ROUNDS, SMALL = setting((3, 100), quick=(1, 3))


def seconds(call: Callable[[], object], repetitions: int) -> float:
    """Return the median time of a call, after one that does not count."""
    call()
    times = []
    gc.collect()
    for _ in range(repetitions):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def expanded_fit(data: SurvivalData, link: str) -> None:
    """Make person-period rows, and fit them with statsmodels."""
    import statsmodels.api as sm

    basis = published_basis(Q, 3)
    design, response = person_period(
        data.X, data.y, max_time=data.max_time, n_intervals=Q, basis=basis
    )
    if link == "logit":
        sm.Logit(response, design).fit(disp=0)
        return
    kinds = {"cloglog": sm.families.links.CLogLog, "probit": sm.families.links.Probit}
    sm.GLM(response, design, family=sm.families.Binomial(kinds[link]())).fit()


def own_fit(data: SurvivalData, link: str, epsilon: float) -> None:
    """Fit records as they are."""
    DPDiscreteTimeSurvival(epsilon, max_time=data.max_time, link=link, n_intervals=Q).fit(
        data.X, data.y
    )


def added_memory(kind: str, link: str) -> float:
    """Return the MiB that a fit adds to the peak of a process that has imports and data."""
    return float(in_new_process("speed", kind, link))


def worker(kind: str, link: str) -> None:
    """Print the peak of what a fit allocates."""
    import statsmodels.api  # noqa: F401  both kinds start from the same imports

    data = flchain()
    tracemalloc.start()
    expanded_fit(data, link) if kind == "expanded" else own_fit(data, link, np.inf)
    print(tracemalloc.get_traced_memory()[1] / 2**20)


@part("comparison with person-period rows")
def against_person_period() -> None:
    """Table: maximum likelihood against statsmodels, and private against non-private."""
    import statsmodels.api  # noqa: F401  before anything is timed

    rows = []
    data = flchain()
    for link in LINKS:
        # In turn, so that a machine that slows down slows all.
        times = np.array(
            [
                (
                    seconds(lambda link=link: expanded_fit(data, link), 1),
                    seconds(lambda link=link: own_fit(data, link, np.inf), 9),
                    seconds(lambda link=link: own_fit(data, link, 1.0), 9),
                )
                for _ in range(ROUNDS)
            ]
        )
        theirs, ours, private = np.median(times, axis=0)
        memory = added_memory("expanded", link), added_memory("own", link)
        rows.append(
            (
                link,
                f"{theirs:.2f} s",
                f"{1e3 * ours:.1f} ms",
                f"**{theirs / ours:.0f}x**",
                f"{memory[0]:.0f} MiB",
                f"{memory[1]:.1f} MiB",
                f"**{memory[0] / max(memory[1], 0.1):.0f}x**",
                f"{private / ours:.1f}",
            )
        )
    table(
        "speed",
        (
            "link",
            "person-period + statsmodels",
            "skdpsurv",
            "faster",
            "their added memory",
            "ours",
            "less",
            "private / non-private time",
        ),
        rows,
        f"flchain, 7,874 records, q = {Q}, maximum likelihood; private at epsilon = 1.",
    )


def small_fits() -> None:
    """Table: six rows, as an audit fits them thousands of times."""
    data = flchain()
    X, y = data.X[:6], data.y[:6]
    rows = []
    for method in ("obj_pert", "out_pert"):
        model = DPDiscreteTimeSurvival(1.0, max_time=data.max_time, method=method)
        elapsed = seconds(lambda model=model: model.fit(X, y), SMALL)
        rows.append((method, f"{1e3 * elapsed:.2f} ms"))
    table("speed_small", ("method", "fit of six rows, epsilon = 1"), rows, f"Median of {SMALL}.")


def main() -> None:
    """Two tables."""
    arguments(__doc__ or "")
    against_person_period()
    small_fits()


if __name__ == "__main__":
    run(main, worker)
