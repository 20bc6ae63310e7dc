"""Table 1: do its intervals hold the truth, for these people and for their population?

A data set is these people, and with other noise on its exact counts each time, that is how often
intervals for these people hold its exact statistics. It is also a population: as many people are
drawn from it with replacement, and noise is added to their counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages
from benchmarks.studies.table_one_data import FOUND_ON, TABLES, People, people
from skdpsurv import DPTableOne
from skdpsurv.data.column_kind import ColumnKind

#: Draws of noise, and of people.
DRAWS = 1000
PRICES = ((1.0, 0.0), (0.3, 0.0), (1.0, 1e-8))
STATISTICS = {"share": "shares", "mean": "means", "sd": "SDs", "smd": "SMDs"}
STATISTICS |= dict.fromkeys(("q1", "median", "q3"), "quartiles")
KINDS = ("shares", "means", "SDs", "quartiles", "SMDs")
WHOM = {"people": "these people", "population": "the population"}
OVERALL = "Overall"


def cases(setting: Setting) -> Iterator[Case]:
    for name in setting.of(list(TABLES), list(TABLES)[:1]):
        for epsilon, delta in setting.of(PRICES, PRICES[:1]):
            yield {"data": name, "epsilon": epsilon, "delta": delta}


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return how many intervals hold the truth, for each kind of statistic and part of people."""
    given, n_draws = people(setting, case["data"]), setting.of(DRAWS, 10)
    number = seed(*case.values(), repetition)
    private = _table(given, case["epsilon"], delta=case["delta"], random_state=number)
    release = private.fit(given.frame).release_
    grid = dict(release.parameters["grid"])
    exact = _table(given, math.inf, grid=grid).fit(given.frame)
    rng = np.random.default_rng(number)
    everyone = np.asarray(exact.release_.values["counts"])
    cells, (group, values) = exact._cells(grid), exact._values((given.frame,))

    def counted(rows: np.ndarray) -> np.ndarray:
        """Return the exact counts of some records."""
        found = [
            one.count(x[rows], group[rows], len(exact.groups_)) / one.unit
            for one, x in zip(cells, values, strict=True)
        ]
        return np.hstack(found)

    deviation = math.sqrt(float(release.noise["counts"]["variance"]))

    def noisy(counts: np.ndarray) -> pd.DataFrame:
        """Return the table of counts with other noise.

        Noise is drawn as the continuous limit of the discrete one, of a deviation of at least ten.
        """
        if release.guarantee.delta:
            noise = rng.normal(0.0, deviation, counts.shape)
        else:
            noise = rng.laplace(0.0, deviation / math.sqrt(2.0), counts.shape)
        values = {**release.values, "counts": counts + noise}
        return DPTableOne.from_release(replace(release, values=values)).table_

    def drawn() -> np.ndarray:
        return counted(rng.integers(group.size, size=group.size))

    table = exact.table_
    truth = truths(given, table, exact.groups_[0])
    index, true = pd.MultiIndex.from_tuples(list(truth)), np.array(list(truth.values()))
    places = table.index.get_indexer(index)
    held, half = {}, {}
    for whom, counts in {"people": lambda: everyone, "population": drawn}.items():
        names = [f"{whom}_low", f"{whom}_high"]
        tables = (noisy(counts()) for _ in range(n_draws))
        ends = np.array([one[names].to_numpy()[places] for one in tables])
        low, high = ends[:, :, 0], ends[:, :, 1]
        # An SMD that noise hides has no interval, which claims nothing.
        held[whom] = 100.0 * np.mean(~((true < low) | (high < true)), axis=0)
        half[whom] = 100.0 * np.nanmean(high - low, axis=0) / 2.0
    return list(_rows(given, index, held, half))


def _table(given: People, epsilon: float, **options: Any) -> DPTableOne:
    return DPTableOne(epsilon, columns=given.columns, by=given.by, **options)


def truths(given: People, exact: pd.DataFrame, first: Any) -> dict[tuple[Any, ...], float]:
    """Return the exact statistics, by column, level, statistic and part."""
    groups = {str(label): rows for label, rows in given.frame.groupby(given.by)}
    parts = {OVERALL: given.frame, **groups}
    numbers, found = numbers_of(given), {}
    for (column, level, statistic, part), estimate in exact.estimate.items():
        if statistic not in STATISTICS or math.isnan(estimate):
            continue
        # Exact counts of labels have exact shares and differences.
        truth = estimate
        if (kind := numbers.get(column)) is not None:
            both = parts[str(part)], parts[str(first)]
            values = [one[column].clip(*kind.ends).dropna() for one in both]
            truth = _of(statistic, *values)
        found[column, level, statistic, part] = float(truth)
    return found


def numbers_of(given: People) -> dict[str, ColumnKind]:
    """Return the descriptions of numbers."""
    return {one.column: one for one in given.columns._kinds() if one.bounded}


def _of(statistic: str, values: pd.Series, first: pd.Series) -> float:
    """Return a statistic of numbers, or their difference from those of the first group."""
    if statistic == "smd":
        scale = math.sqrt((values.var(ddof=0) + first.var(ddof=0)) / 2.0)
        return float((values.mean() - first.mean()) / scale)
    of: dict[str, Callable[[], float]] = {
        "mean": values.mean,
        "sd": lambda: values.std(ddof=0),
        "q1": lambda: values.quantile(0.25),
        "median": values.median,
        "q3": lambda: values.quantile(0.75),
    }
    return of[statistic]()


def _rows(
    given: People, index: pd.MultiIndex, held: dict[str, np.ndarray], half: dict[str, np.ndarray]
) -> Iterator[Row]:
    kinds = np.array([STATISTICS[statistic] for _, _, statistic, _ in index])
    groups = np.array([part != OVERALL for *_, part in index])
    numbers = numbers_of(given)
    ranges = [
        np.ptp(numbers[column].ends) if column in numbers and statistic != "smd" else 1.0
        for column, _, statistic, _ in index
    ]
    for kind in KINDS:
        for in_group in (False, True):
            here = (kinds == kind) & (groups == in_group)
            if not here.any():
                continue
            row: Row = {"statistic": kind, "in_group": int(in_group), "number": int(here.sum())}
            for whom in WHOM:
                row |= {f"{whom}_held": held[whom][here].mean()}
                row |= {f"{whom}_least": held[whom][here].min()}
                row |= {f"{whom}_half": np.median((half[whom] / ranges)[here])}
            yield row


def report(rows: pd.DataFrame, pages: Pages) -> None:
    rows = rows.assign(kept=~rows.data.isin(FOUND_ON))
    _coverage(rows, pages)
    _widths(rows, pages)


def _coverage(rows: pd.DataFrame, pages: Pages) -> None:
    """Write the coverage of each kind of statistic, over data sets found on and kept apart."""

    def held(here: pd.DataFrame, whom: str) -> tuple[float, float]:
        weighted = np.average(here[f"{whom}_held"], weights=here.number)
        return float(weighted), float(here[f"{whom}_least"].min())

    table, least = [], {}
    for kind in KINDS:
        for epsilon, delta in _prices(rows):
            of_kind = rows[rows.statistic == kind]
            of_kind = of_kind[(of_kind.epsilon == epsilon) & (of_kind.delta == delta)]
            cells = []
            for whom in WHOM:
                for kept in sorted(set(rows.kept)):
                    here = of_kind[of_kind.kept == kept]
                    mean, lowest = held(here, whom)
                    least[kind, whom] = min(least.get((kind, whom), 100.0), lowest)
                    cells.append(f"{mean:.1f}, {lowest:.1f}")
            table.append((kind, f"{epsilon:g}", f"{delta:g}", *cells))
    parts = ["found on", "kept apart"][: len(set(rows.kept))]
    heads = [f"{said}, {part}" for said in WHOM.values() for part in parts]
    mean = {
        whom: [held(here, whom)[0] for _, here in rows.groupby(["statistic", "epsilon", "delta"])]
        for whom in WHOM
    }
    (kind, whom), lowest = min(least.items(), key=lambda item: item[1])
    said = "; ".join(
        f"for {said} {min(mean[whom]):.1f} to {max(mean[whom]):.1f} %"
        for whom, said in WHOM.items()
    )
    pages.table(
        "table_one_coverage",
        ("statistic", "ε", "δ", *heads),
        table,
        f"Of nominal 95 % intervals these hold the truth in the mean: {said}. The least of any "
        f"single number is {lowest:.1f} % ({kind}, {WHOM[whom]}). Intervals of "
        "quartiles suppose values that are spread between points, and miss those in coarse steps, "
        "such as whole degrees (hdfail) or tenths (flchain).",
        f"Per cent of {DRAWS:,} draws, mean and least over all columns, groups and data sets. With "
        "exactly 95 %, the least of hundreds is near 93. For the population, people are drawn "
        "with replacement from the data set. An SMD that noise hides has no interval, and counts "
        f"as held. Found on: {', '.join(FOUND_ON)}; the others were kept apart.",
    )


def _prices(rows: pd.DataFrame) -> list[tuple[float, float]]:
    return list(dict.fromkeys(zip(rows.epsilon, rows.delta, strict=True)))


def _widths(rows: pd.DataFrame, pages: Pages) -> None:
    """Write the median half-widths within groups."""
    table = []
    here = rows[rows.in_group == 1]
    here = here.set_index(["data", "epsilon", "delta", "statistic"]).sort_index()
    for name, kept in dict(zip(rows.data, rows.kept, strict=True)).items():
        for epsilon, delta in _prices(rows):
            place = here.loc[(name, epsilon, delta)]
            halves = (place.loc[kind] if kind in place.index else None for kind in KINDS)
            cells = (
                "" if one is None else f"{_short(one.people_half)}, {_short(one.population_half)}"
                for one in halves
            )
            label = f"{name}*" if kept else name
            table.append((label, f"{epsilon:g}", f"{delta:g}", *cells))
    shares = rows[(rows.statistic == "shares") & (rows.in_group == 1)]
    at = {
        epsilon: shares[(shares.epsilon == epsilon) & (shares.delta == 0.0)]
        for epsilon in sorted(set(shares.epsilon))
    }
    said = "; ".join(
        f"at ε = {epsilon:g} {_short(one.people_half.min())} to {_short(one.people_half.max())} "
        f"points for these people, and {_short(one.population_half.min())} to "
        f"{_short(one.population_half.max())} for the population"
        for epsilon, one in at.items()
    )
    pages.table(
        "table_one_widths",
        ("data", "ε", "δ", *KINDS),
        table,
        f"Half an interval of a share within a group is, in the median over columns, {said}.",
        "Half-widths within groups for these people, for the population: mean over draws, median "
        "over columns and groups. In per cent of the range between bounds; of shares in points; of "
        "SMDs in hundredths of a standard deviation. *kept apart.",
    )


def _short(number: float) -> str:
    return f"{number:.2g}" if number < 100.0 else f"{number:.0f}"


COVERAGE = Experiment(cases, measure, report)
