"""Table 1 on the page: each estimate with both of its intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup

from skdpsurv.descriptive.table_one import MUCH, DPTableOne
from skdpsurv.report.numbers import ShownNumber
from skdpsurv.report.text import WORDS, Table, distinct, escape_hidden

#: Largest number of rows of Table 1 on a page.
MOST_ROWS = 300


def table_one(model: Any) -> dict[str, Any] | None:
    """Return the table with notes on how to read it, for the template; None for other models."""
    if not isinstance(model, DPTableOne):
        return None
    frame = model.to_frame(intervals=None)
    rows = list(_rows(model))
    numbers = ["quartiles"] if model.release_.parameters["grid"] else []
    notes = ["both", "clipped", *numbers, *(["smd"] if len(model.groups_) > 1 else [])]
    words = [WORDS["table_one"][name] for name in notes]
    if (half := model._uncertainty(model.n_records_)) > MUCH:
        words.insert(0, WORDS["table_one"]["hidden"].format(half))
    caption = "Table 1" if model.by is None else f"Table 1, by {escape_hidden(model.by)}"
    return {
        "notes": words,
        "table": Table(caption, ("", *distinct(frame.columns)), rows[:MOST_ROWS]),
        "left": len(rows) - MOST_ROWS,
        "numbers": list(_numbers(model)),
    }


def _rows(model: DPTableOne) -> Iterator[Sequence[str]]:
    """Yield rows; those of medians and quartiles follow those of means."""
    points = model.release_.parameters["grid"]
    means, quartiles = (list(_filled(model, names)) for names in ((), list(points)))
    for mean, other in zip(means, quartiles, strict=True):
        yield mean
        if other[0] != mean[0]:
            # Missing values and differences stand beside the mean.
            n_groups = len(model.groups_)
            yield (other[0], "", *other[2 : 3 + n_groups], *[""] * max(n_groups - 1, 0))


def _filled(model: DPTableOne, nonnormal: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield all rows as HTML: a name, and cells of an estimate with its two intervals below."""
    bare, *both = (
        model.to_frame(intervals=one, nonnormal=nonnormal) for one in (None, "people", "population")
    )
    for label, *rows in zip(bare.index, *(one.to_numpy() for one in (bare, *both)), strict=True):
        name, level = map(escape_hidden, label)
        cells = (_cell(*texts) for texts in zip(*rows, strict=True))
        yield (f"{name}: {level}" if level else name, *cells)


def _cell(estimate: str, *with_intervals: str) -> str:
    """Return an estimate with the intervals that others have in braces behind it."""
    lines = [one.removeprefix(estimate).strip(" {}") for one in with_intervals]
    if not any(lines):
        return estimate
    ends = Markup("").join(Markup('<span class="ends">{}</span>').format(one) for one in lines)
    return Markup('<span class="estimate">{}{}</span>').format(estimate, ends)


def _numbers(model: DPTableOne) -> Iterator[ShownNumber]:
    """Yield all statistics, with intervals for the population and for these people."""
    for (name, level, statistic, part), row in model.table_.iterrows():
        what = statistic if statistic == "n" else f"{statistic} of {name}"
        quantity = what if level == "" else f"{what} {level}"
        of_people, of_population = (
            (row[f"{whom}_low"], row[f"{whom}_high"]) for whom in ("people", "population")
        )
        if math.isnan(of_people[0]) or not math.isnan(of_population[0]):
            yield ShownNumber(quantity, str(part), row["estimate"], *of_population)
        if not math.isnan(of_people[0]):
            yield ShownNumber(
                f"{quantity}, of these people", str(part), row["estimate"], *of_people
            )
