"""Time and memory of a fit, against person-period rows and statsmodels in the same run.

python benchmarks/speed.py
"""

from __future__ import annotations

import gc
import resource
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from _common import arguments, flchain, in_new_process, table

from skdpsurv import DPDiscreteTimeSurvival
from skdpsurv.reference import person_period
from skdpsurv.survival.spline import published_basis

Q = 200
LINKS = ("logit", "cloglog", "probit")


def seconds(call: Callable[[], object], repetitions: int) -> float:
    """Return the median time of a call, after one that does not count."""
    call()
    times = []
    for _ in range(repetitions):
        gc.collect()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def expanded_fit(link: str) -> None:
    """Fit person-period rows with statsmodels."""
    import statsmodels.api as sm

    data = flchain()
    basis = published_basis(Q, 3)
    design, response = person_period(
        data.X, data.y, max_time=data.max_time, n_intervals=Q, basis=basis
    )
    if link == "logit":
        sm.Logit(response, design).fit(disp=0)
        return
    kinds = {"cloglog": sm.families.links.CLogLog, "probit": sm.families.links.Probit}
    sm.GLM(response, design, family=sm.families.Binomial(kinds[link]())).fit()


def own_fit(link: str, epsilon: float) -> None:
    """Fit records as they are."""
    data = flchain()
    DPDiscreteTimeSurvival(epsilon, max_time=data.max_time, link=link, n_intervals=Q).fit(
        data.X, data.y
    )


def added_memory(kind: str, link: str) -> float:
    """Return the MiB that a fit adds to the peak of a process that has imports and data."""
    return float(in_new_process(__file__, kind, link))


def worker(kind: str, link: str) -> None:
    """Print how far a fit raises the peak of resident memory."""
    import statsmodels.api  # noqa: F401  both kinds start from the same imports

    data = flchain()
    tiny = DPDiscreteTimeSurvival(np.inf, max_time=data.max_time, link=link)
    tiny.fit(data.X[:50], data.y[:50])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    expanded_fit(link) if kind == "expanded" else own_fit(link, np.inf)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


def against_person_period() -> None:
    """Table: maximum likelihood against statsmodels, and private against non-private."""
    rows = []
    for link in LINKS:
        theirs = seconds(lambda link=link: expanded_fit(link), 3)
        load = seconds(flchain, 5)
        ours = seconds(lambda link=link: own_fit(link, np.inf), 15) - load
        private = seconds(lambda link=link: own_fit(link, 1.0), 15) - load
        theirs -= load
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
        "flchain, 7,874 records, q = 200, maximum likelihood; private at epsilon = 1.",
    )


def small_fits() -> None:
    """Table: six rows, as an audit fits them thousands of times."""
    data = flchain()
    X, y = data.X[:6], data.y[:6]
    rows = []
    for method in ("obj_pert", "out_pert"):
        model = DPDiscreteTimeSurvival(1.0, max_time=data.max_time, method=method)
        rows.append((method, f"{1e3 * seconds(lambda model=model: model.fit(X, y), 100):.2f} ms"))
    table("speed_small", ("method", "fit of six rows, epsilon = 1"), rows, "Median of 100.")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if "--worker" in sys.argv:
        worker(*sys.argv[2:])
    else:
        arguments(__doc__ or "")
        against_person_period()
        small_fits()
