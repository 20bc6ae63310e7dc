r"""How far errors of coefficients are from what could be had, in standard errors of Cox regression.

With n records, of which a share r has an event, and d columns that are made uncorrelated with
variance 1, a standard error of Cox regression is near :math:`1 / \sqrt{nr}`. The *ideal mechanism*
spends all of epsilon on one gradient, at the truth, whose rows are no longer than
:math:`\sqrt d`: noise of sensitivity :math:`2 \sqrt d`, in standard errors

.. math:: 2 \sqrt{d (d + 1)} / (\epsilon \sqrt{nr})\ (\delta = 0), \qquad
          2 \sqrt d / (\mu \sqrt{nr}) \ (\delta > 0) .

The *rate* of the mean square error of all coefficients is :math:`d / n + d^2 / (n \epsilon)^2` for
a small delta (Cai, Wang and Zhang, arXiv:2011.03900); here with constants of 1 and with events for
records. Being a rate, it bounds how errors grow, and not their size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from benchmarks.harness import Case, Experiment, Row, Setting
from benchmarks.pages import Pages
from skdpsurv import DPDiscreteTimeSurvival, forecast_accuracy
from skdpsurv.dp.privacy_cost import rho_for
from skdpsurv.evaluation.forecast import small_delta

SIZES, COLUMNS, EPSILONS = (2000, 8000), (4, 10), (1.0, 3.0)
EVENTS, SHARE, STUDIES = 0.3, 0.3, 5
MEASURES = ["loss", "finite_intervals", "interval_width", "coefficient_error"]


def cases(setting: Setting) -> Iterator[Case]:
    for n in setting.of(SIZES, SIZES[:1]):
        for d in setting.of(COLUMNS, COLUMNS[:1]):
            for delta in (0.0, small_delta(n)):
                yield {"n": n, "columns": d, "delta": delta}


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return the forecast for one number of records and columns at each epsilon, and without."""
    model = DPDiscreteTimeSurvival(max_time=1.0, delta=case["delta"], inference_share=SHARE)
    found = forecast_accuracy(
        model,
        case["n"],
        n_columns=case["columns"],
        event_rate=EVENTS,
        epsilons=EPSILONS,
        n_repeats=setting.of(STUDIES, 1),
        random_state=0,
    )
    deviation = found.studies["coefficient_error"].groupby("epsilon").sem()
    return [
        {"epsilon": f"{e:g}", **found.table.loc[e, MEASURES], "error_of_mean": deviation[e]}
        for e in found.table.index
    ]


def ideal(n: int, d: int, delta: float, epsilon: float) -> float:
    """Return the noise of the ideal mechanism in standard errors of Cox regression."""
    events = n * EVENTS
    if delta:
        return 2.0 * math.sqrt(d / (2.0 * rho_for(epsilon, delta) * events))
    return 2.0 * math.sqrt(d * (d + 1.0) / events) / epsilon


def rate(n: int, d: int, epsilon: float) -> float:
    """Return the part of the rate that is due to privacy in standard errors of Cox regression."""
    return math.sqrt(d / (n * EVENTS)) / epsilon


def report(rows: pd.DataFrame, pages: Pages) -> None:
    cells, times, key = [], [], ["n", "columns", "delta"]
    private = rows.epsilon.astype(float) < math.inf
    exact = rows[~private].set_index(key).coefficient_error
    for line in rows[private].sort_values([*key, "epsilon"]).itertuples():
        n, d, epsilon = int(line.n), int(line.columns), float(line.epsilon)
        best = ideal(n, d, line.delta, epsilon)
        without = exact[n, d, line.delta]
        noise = math.sqrt(max(line.coefficient_error**2 - without**2, 0.0))
        times.append(noise / best)
        cells.append(
            (
                *(f"{n:,}", d, f"{line.delta:.0e}" if line.delta else "0", f"{epsilon:g}"),
                *(f"{line.loss:.3f}".replace("-0.000", "0.000"), f"{line.finite_intervals:.0%}"),
                f"{line.interval_width:.1f}",
                f"{line.coefficient_error:.2f} ± {line.error_of_mean:.2f}",
                *(f"{without:.2f}", f"{noise:.2f}", f"{best:.2f}", f"{rate(n, d, epsilon):.3f}"),
            )
        )
    pages.table(
        "forecast_limits",
        (
            *("n", "columns", "δ", "ε", "loss in C", "finite", "width", "error"),
            *("error, ε = ∞", "of it by privacy", "ideal", "rate"),
        ),
        cells,
        "What privacy adds to the error of a coefficient is "
        f"{min(times):.1f} to {max(times):.1f} times what the ideal mechanism would add, "
        f"{pd.Series(times).median():.1f} times in the median.",
        "Errors of `coef_` (root mean square over columns) and widths of intervals, in standard "
        f"errors of Cox regression; means, widths medians, over {STUDIES} simulated studies with "
        f"`inference_share={SHARE:g}` and three events in ten, ± a standard error. By privacy: the "
        "root of the difference of squares to the fit without. Ideal: all of ε on one gradient at "
        "the truth, with columns that are made uncorrelated. Rate: "
        "$\\sqrt{d / (nr)} / \\epsilon$, up to a constant that is not known.",
    )


EXPERIMENT = Experiment(cases, measure, report)
