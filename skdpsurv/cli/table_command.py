"""skdpsurv table: Table 1 of a file of records."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from skdpsurv.cli.failures import require
from skdpsurv.cli.fitting import make, show_fit, spend, taken
from skdpsurv.cli.options import NONE, FileFormat, Spending, SurvivalColumns, command
from skdpsurv.cli.printing import table_lines
from skdpsurv.cli.survival_columns import other_columns, public_columns, split_names, table_of

Intervals = StrEnum("Intervals", ["people", "population", "none"])
#: Parameters that have an option of their own.
OPTIONS = {name: name for name in ("epsilon", "by", "by_is_public", "delta")}
OPTIONS |= {"random_state": "seed", "columns": "schema"}


@dataclass(frozen=True)
class Described:
    """The table. Options for Table 1.

    Parameters
    ----------
    schema : Path
        TOML file that says what is publicly known of each column, also of that of --by; or a
        release that states it.
    by : str or None
        Column of the schema whose categories are the groups.
    by_is_public : bool, default=False
        Everybody may know each person's group, such as the arm of a trial: sizes of groups are then
        exact, and the guarantee does not protect them.
    person : str or None
        Column that identifies people who have several records. The first record of each is used,
        and people are protected.
    drop : list of str
        Column of the file to leave out. May be given several times.
    delta : float, default=0.0
        Probability with which the bound by epsilon may fail, at most 1/n^2: eight columns or more
        need less noise then.
    strict : bool, default=False
        Refuse values beyond a public bound, such as a forgotten -99, in place of clipping.
    nonnormal : list of str
        Numbers that are printed as median and quartiles, such as age,dose.
    intervals : Intervals, default="people"
        Printed intervals: for these people, for the population that they come from, or none. The
        release holds both.
    """

    schema: Path
    by: str | None = None
    by_is_public: bool = False
    person: str | None = None
    drop: list[str] = NONE
    delta: float = 0.0
    strict: bool = False
    nonnormal: list[str] = NONE
    intervals: Intervals = Intervals.people


@command
def table(
    data: Path,
    /,
    *,
    described: Described,
    spending: Spending,
    out: Path,
    form: FileFormat,
    set_: list[str] = NONE,
) -> None:
    """Describe the records of a file: counts, means, quartiles and differences by group (Table 1).

    Parameters
    ----------
    data : Path
        CSV or Parquet file: one row for each record. Private.
    set_ : list of str
        Another parameter of DPTableOne, as NAME=VALUE: --set grid=20. May be given several times.
    """
    from skdpsurv.descriptive import DPTableOne

    columns = public_columns(described.schema, form.missing_value)
    stated = {name: getattr(described, name) for name in ("by", "by_is_public", "delta")}
    stated |= {"columns": columns, "epsilon": spending.epsilon, "random_state": spending.seed}
    estimator: Any = make(DPTableOne, stated, set_, OPTIONS)
    numbers = [k.column for k in estimator._described_kinds() if k.bounded]
    nonnormal = split_names(described.nonnormal, numbers)
    unknown = [name for name in nonnormal if name not in numbers]
    require(not unknown, f"--nonnormal must name numbers of the schema, not {', '.join(unknown)}.")
    names, person = columns._names(), described.person
    require(person not in names, f"the schema must not describe {person}.", "description")
    others = other_columns(None, None, person)
    read = table_of(data, form, names, columns, others, described.drop)

    arguments = partial(taken, names, SurvivalColumns(person=person), None, None)
    found = spend(estimator, read, arguments, spending, form, out, strict=described.strict)
    rows = found.table_.reset_index().to_json(orient="records")
    intervals = None if described.intervals is Intervals.none else str(described.intervals)
    lines = table_lines(found, intervals=intervals, nonnormal=nonnormal)
    show_fit(found, {"table": json.loads(rows)}, lines, out)
