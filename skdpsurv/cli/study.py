"""skdpsurv study: one protocol, one charge, one report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from skdpsurv.cli.columns import Labels, table_of
from skdpsurv.cli.failures import refusals, require
from skdpsurv.cli.files import Table, read_table
from skdpsurv.cli.options import FileFormat, command
from skdpsurv.cli.output import guarantee_line, reserve, rich_table, save, show, working
from skdpsurv.study.deal import People
from skdpsurv.study.forecast import Scenario
from skdpsurv.study.page import protocol_page
from skdpsurv.study.plan import StudyPlan
from skdpsurv.study.protocol import Protocol

app = typer.Typer(help="One protocol, one charge, one report.", no_args_is_help=True)


@app.command()
@command
def plan(
    protocol: Path,
    /,
    *,
    form: FileFormat,
    n_people: int | None = None,
    data: Path | None = None,
    out: Path | None = None,
    event_rate: float = 0.3,
    concordance: float = 0.7,
    censoring: float = 0.5,
    baseline: str = "flat",
    repeats: int = 5,
    as_json: bool = False,
) -> None:
    """Print what a study costs and what it will get, with advice. Nothing is spent.

    Parameters
    ----------
    protocol : Path
        TOML file: docs/user_guide/study has one.
    n_people : int or None
        Number of people, which is public.
    data : Path or None
        In place of --n-people: CSV or Parquet file, in which people are counted. No other value of
        it is used.
    out : Path or None
        Write the protocol as a page to sign, in HTML, with its hash. It must not exist yet.
    event_rate : float, default=0.3
        Guess: share of people with an event before the horizon.
    concordance : float, default=0.7
        Guess: C-index of the best model.
    censoring : float, default=0.5
        Guess: share of the others who are censored before the horizon.
    baseline : str, default="flat"
        Guess: course of the hazard, front-loaded, flat or rising.
    repeats : int, default=5
        Number of studies to simulate; 0 for no forecast and no advice.
    """
    require((n_people is None) != (data is None), "give either --n-people or --data.")
    if out is not None:
        reserve(out)
    stated = read_protocol(protocol)
    if data is not None:
        n_people = _count(stated, data, form)
    with refusals("parameter"):
        planned = StudyPlan.of(stated, n_people)  # type: ignore[arg-type]
        guarantee = planned.guarantee()
    scenario = None
    if repeats:
        scenario = Scenario(event_rate, censoring, baseline, concordance, repeats)
    with working("Simulating", as_json), refusals("parameter"):
        advice = [] if scenario is None else planned.advice(scenario)
        page = "" if out is None else protocol_page(planned, scenario)
    lines: list[Any] = [f"{stated.title}: {guarantee_line(guarantee)}", rich_table(planned.table)]
    if scenario is not None:
        forecast = planned.forecast(scenario)
        lines += [rich_table(forecast.drop(columns="times").round(3)), scenario.words, *advice]
    lines += [f"Protocol: SHA-256 {stated.sha256}"]
    if out is not None:
        save(page, out)
        lines.append(f"To sign: {out}")
    lines.append("Nothing was spent.")
    content: dict[str, Any] = {"sha256": stated.sha256, "guarantee": guarantee.to_dict()}
    content["analyses"] = planned.table.reset_index().to_dict("records")
    if scenario is not None:
        content["forecast"] = forecast.reset_index().replace({np.nan: None}).to_dict("records")
        content |= {"advice": advice, "best_shares": planned.best_shares(scenario)}
    show(content, lines, as_json, out)


def read_protocol(path: Path) -> Protocol:
    """Return the protocol in a file."""
    require(path.is_file(), f"there is no protocol {path}.", "description")
    with refusals("description"):
        return Protocol.from_toml(path)


def table_of_study(protocol: Protocol, data: Path, form: FileFormat) -> Table:
    """Return the part of a file that a study reads; columns that it does not name are left out."""
    require(not form.dask, "--dask is for fit: a study reads rows in memory.")
    columns = protocol.columns
    others: dict[str, Labels] = {protocol.time: None}
    if protocol.person is not None:
        others[protocol.person] = ()
    if protocol.event is not None:
        labels = (*protocol.event_is, *protocol.censored_is)
        others[protocol.event] = labels if labels and isinstance(labels[0], str) else None
    return table_of(data, form, columns._names(), columns, others, (), None)


def _count(protocol: Protocol, data: Path, form: FileFormat) -> int:
    """Return the number of people in a file, from the column that names them alone."""
    table = table_of_study(protocol, data, form)
    named = (protocol.time if protocol.person is None else protocol.person,)
    frame = read_table(replace(table, columns=named), form)
    with refusals("data", private=True):
        return int(People.of(protocol, frame).held_out.size)
