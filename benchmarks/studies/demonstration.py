"""The scores that ``skdpsurv demo`` shows, over many runs."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from benchmarks.harness import Case, Experiment, Row, Setting
from benchmarks.pages import Pages
from skdpsurv.cli.demo import compare_on_flchain

#: The demo's own.
EPSILONS = (3.0, 1.0, 0.3, 0.1)


def cases(setting: Setting) -> Iterator[Case]:
    yield {"data": "flchain"}


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return scores of all models of one run."""
    scores = compare_on_flchain(EPSILONS).scores
    return [
        {
            "model": row["model"],
            "epsilon": "none" if math.isinf(row["epsilon"]) else f"{row['epsilon']:g}",
            "concordance": row["C-index"],
            "brier": row["Brier"],
            "error": row["coef. error"],
        }
        for row in scores.to_dict("records")
    ]


def report(rows: pd.DataFrame, pages: Pages) -> None:
    """Write a table in the order of the demo."""
    cells, medians = [], {}
    for (model, epsilon), part in rows.groupby(["model", "epsilon"], sort=False):
        middle = part.concordance.quantile([0.05, 0.95])
        medians[model, epsilon] = part.concordance.median()
        private = epsilon != "none"
        cells.append(
            (
                model,
                epsilon if private else "no privacy",
                f"{medians[model, epsilon]:.3f}",
                " to ".join(f"{end:.3f}" for end in middle) if private else "",
                f"{part.brier.median():.4f}",
                "" if part.error.isna().all() else f"{part.error.median():.0%}",
            )
        )
    cox = medians["Cox regression", "none"]
    private = {float(e): c for (model, e), c in medians.items() if model.startswith("Private")}
    pages.fact("demonstration_cox", f"{cox:.3f}")
    for e, c in private.items():
        pages.fact(f"demonstration_{e:g}".replace(".", "_"), f"{c:.3f}")
    shown = ", ".join(f"{c:.3f} at ε = {e:g}" for e, c in sorted(private.items(), reverse=True))
    pages.table(
        "demonstration",
        ("model", "ε", "C-index", "middle 90 %", "Brier score", "error of coefficients"),
        cells,
        f"Cox regression has a C-index of {cox:.3f} on records that it has not seen, private "
        f"fits {shown}.",
        f"Medians of {rows.repetition.max() + 1} runs. Brier score: integrated over the follow-up. "
        "Error: distance of the coefficients from Cox's, relative to their length.",
    )


DEMONSTRATION = Experiment(cases, measure, report, repetitions=40)
