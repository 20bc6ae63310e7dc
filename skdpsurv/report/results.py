"""Tables, figures and numbers from a release or an evaluation, for any page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from skdpsurv.evaluation.result import SurvivalEvaluation
from skdpsurv.plotting.survival_curves import plot_calibration
from skdpsurv.report.coefficients import coefficients
from skdpsurv.report.curves import curves
from skdpsurv.report.figures import figures
from skdpsurv.report.numbers import ShownNumber, between, probability
from skdpsurv.report.profiles import example_predictions
from skdpsurv.report.table_one_page import table_one
from skdpsurv.report.text import Table, short

#: The parts of results, in the order of a page.
PARTS = ("table_one", "curves", "coefficients", "people", "quality")


def results(
    release: Any, evaluation: SurvivalEvaluation | None = None, *, unit: str = ""
) -> dict[str, Any]:
    """Return the parts of a page about a release, None where there is nothing to show.

    Raises
    ------
    ValueError
        If the estimator that the release names refuses it.
    """
    kind = release.kinds[release.estimator]
    unit = unit or str((release.study or {}).get("unit", ""))
    found = {"kind": kind, **dict.fromkeys(PARTS)}
    if evaluation is not None:
        found["quality"] = evaluated(evaluation, unit)
    if kind is None or kind._card.beyond_release:
        return found
    try:
        model = release.to_estimator()
    except TypeError as error:
        raise ValueError(f"release cannot be used: {error}") from error
    if (table := table_one(model)) is not None:
        return found | {"table_one": table}
    if hasattr(model, "survival_function_at_times"):
        return found | {"curves": curves(model, unit)}
    people = example_predictions(release, model, unit)
    return found | {"coefficients": coefficients(release, model), "people": people}


def evaluated(evaluation: SurvivalEvaluation, unit: str = "") -> dict[str, Any]:
    """Return the part about how good a model is."""
    level, end = f"{100 * evaluation.level:g} %", short(evaluation.max_time)
    measures = [ShownNumber(name, "all", *row) for name, *row in evaluation.summary.itertuples()]
    rows = [(n.quantity, short(n.estimate), between(n.low, n.high)) for n in measures]
    tables = [Table("Measures", ("Measure", "Value", f"{level} interval"), rows)]
    groups, numbers = evaluation.groups, []
    cells: list[Sequence[str]] = []
    for k, group in enumerate(groups, 1):
        name = f"{k} of {len(groups)}"
        pair = [
            ShownNumber(
                f"{what} {evaluation.outcome} to {end}", f"risk group {name}", *getattr(group, what)
            )
            for what in ("predicted", "observed")
        ]
        share = ShownNumber("share of records", f"risk group {name}", group.share)
        cells.append((name, f"{group.share:.0%}", *map(probability, pair)))
        numbers += [share, *pair]
    title = evaluation.outcome[0].upper() + evaluation.outcome[1:]
    caption = f"{title} to {end} by group of risk, from the highest, with {level} intervals"
    tables.append(Table(caption, ("Group", "Share", "Predicted", "Observed"), cells))
    caption = f"Observed against predicted {evaluation.outcome}, by groups of predicted risk."
    drawn = figures(partial(plot_calibration, evaluation), "calibration", 4.4, caption)
    shown = {"measures": tables[0], "groups": tables[1], "figures": drawn}
    horizon = f"{end} {unit}" if unit else f"{end}, in the unit of the fit"
    return {"evaluation": evaluation, "horizon": horizon, **shown, "numbers": measures + numbers}


def all_of(parts: Mapping[str, Any], what: str) -> list[Any]:
    """Return the "numbers" or the "figures" of all parts."""
    return [one for name in PARTS for one in (parts.get(name) or {}).get(what, ())]
