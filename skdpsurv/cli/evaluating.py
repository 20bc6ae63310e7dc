"""Commands that need a release and a file: predict, and evaluate, on records that must not leak."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skdpsurv.cli.columns_file import Labels, table_of
from skdpsurv.cli.failures import refusals, require
from skdpsurv.cli.files import MISSING, Table, read_table
from skdpsurv.cli.fitting import (
    ABOUT_RECORDS,
    check_survival_columns,
    reading,
    rehearse,
    survival_target,
)
from skdpsurv.cli.ledger import ledger_line, ledger_state, open_ledger
from skdpsurv.cli.options import NONE, FileFormat, Spending, SurvivalColumns, command
from skdpsurv.cli.output import csv_text, curves, reserve, save, save_or_print, show, working
from skdpsurv.cli.releases import load_release
from skdpsurv.dp.types import FloatArray
from skdpsurv.evaluation.evaluation import Evaluation
from skdpsurv.release import Release
from skdpsurv.report.text import exact
from skdpsurv.survival.released_curve import times_argument


@command
def predict(
    release: Path,
    new: Path | None = None,
    /,
    *,
    form: FileFormat,
    out: Path,
    times: list[str] = NONE,
    keep: list[str] = NONE,
    drop: list[str] = NONE,
    strict: bool = False,
    as_json: bool = False,
) -> None:
    """Write predictions to a CSV file: risk and survival, or the probability of each class.

    Parameters
    ----------
    release : Path
        A release, as fit wrote it.
    new : Path or None
        CSV or Parquet file of people to predict for. None for a release of curves.
    times : list of str
        Times to give survival at, in the unit of the fit, such as 1,2,5. By default the horizon; of
        curves, all of their times.
    keep : list of str
        Column of NEW to copy beside the predictions, such as a name. May be given several times.
    drop : list of str
        Column of NEW to leave out. May be given several times.
    strict : bool, default=False
        Refuse values beyond a public bound, in place of clipping.
    """
    reserve(out)
    published = load_release(release)
    with refusals("description"):
        model = published._model
    at = _times(times, published) if times else None
    of_times = hasattr(model, "survival_function_at_times")
    what = "times, not people: give no NEW" if of_times else "people: NEW must be a file of them"
    require(of_times == (new is None), f"a {published.estimator} predicts {what}.")
    if new is None:
        found = curves(model, model.timeline if at is None else at)
    else:
        # As they are written: a name may begin with a nought.
        table = _table(published, new, form, dict.fromkeys(keep, MISSING), drop)
        with working("Reading", as_json):
            rows = read_table(table, form)
        with working("Predicting", as_json), refusals("data", private=True):
            if form.dask:  # what is predicted is as long as the file
                rows = rows.compute()
            found = _people(published, model, rows, at, list(table.target), strict)
    save(csv_text(found), out)
    said = f"{len(found):,} rows of {', '.join(found.columns)}: {out}"
    content = {"predictions": str(out.resolve()), "columns": list(found.columns)}
    show(content, [said], as_json, out)


@command
def evaluate(
    release: Path,
    data: Path,
    /,
    *,
    columns: SurvivalColumns,
    spending: Spending,
    out: Path,
    form: FileFormat,
    max_time: float | None = None,
    drop: list[str] = NONE,
    as_json: bool = False,
) -> None:
    """Measure a released survival model privately: C-index, Brier score, calibration, intervals.

    Parameters
    ----------
    release : Path
        A release, as fit wrote it.
    data : Path
        CSV or Parquet file: records of other people than those of the fit. Private.
    max_time : float or None
        Public horizon. By default, that of the release.
    drop : list of str
        Column of DATA to leave out. May be given several times.
    """
    target = check_survival_columns(columns)
    require(not form.dask, "--dask is for fit: an evaluation reads rows in memory.")
    if not spending.dry_run:
        reserve(out)
    published = load_release(release)
    with refusals("description"):
        model = published._model
        if not hasattr(model, "predict_survival_function"):
            raise TypeError(f"a {published.estimator} does not predict survival of people.")
        evaluation = Evaluation(
            model,
            spending.epsilon,
            max_time=published.parameters.get("max_time") if max_time is None else max_time,
            random_state=spending.seed,
            accountant=open_ledger(spending),
        )
    evaluation._check_parameters()
    table = _table(published, data, form, target, drop)
    with reading(evaluation, spending.dry_run, as_json):
        frame = read_table(table, form)
    with refusals("data", after=ABOUT_RECORDS, private=True):
        arguments: dict[str, Any] = {
            "X": frame[list(published.feature_names_in or ())],
            "y": survival_target(frame, columns),
            "person": None if columns.person is None else frame[columns.person],
        }
        if spending.dry_run:
            rehearse(evaluation, arguments, as_json)
            return
        with working("Evaluating", as_json):
            found: Any = evaluation._fit(**arguments)
    save_or_print(json.dumps(found.to_dict(), indent=2) + "\n", out)
    ledger = evaluation.accountant
    content = {"evaluation": str(out.resolve()), **found.to_dict(), "ledger": ledger_state(ledger)}
    lines = [repr(found), f"Evaluation: {out}", f"Ledger: {ledger_line(ledger)}"]
    show(content, lines, as_json, out)


def _table(
    release: Release,
    path: Path,
    form: FileFormat,
    others: Mapping[str, Labels],
    drop: Sequence[str],
) -> Table:
    """Say which columns of a file a release reads, beside others, which have labels if text."""
    names = release.feature_names_in or ()
    message = "the release does not say what its columns hold, so that it takes no file of rows."
    require(release.columns is not None and names, message, "description")
    ignored = release.target_names
    return table_of(path, form, names, release.transformer(), others, drop, ignored)


def _times(texts: Sequence[str], release: Release) -> Any:
    end = float(release.parameters.get("max_time", np.inf))
    times = None
    with suppress(ValueError):
        times = times_argument([float(time) for text in texts for time in text.split(",")])
    message = f"--times must be numbers from 0 to the horizon, {exact(end)}, such as 1,2,5."
    require(times is not None and (times <= end).all(), message)
    return times


def _people(
    release: Release,
    model: Any,
    table: pd.DataFrame,
    times: FloatArray | None,
    keep: list[str],
    strict: bool,
) -> pd.DataFrame:
    rows = table[list(release.feature_names_in or ())]
    asked = {"predict_survival_function": "risk", "predict_proba": "class"}
    name = next((word for method, word in asked.items() if hasattr(model, method)), "prediction")
    predicted: dict[str, Any] = {name: release.predict(rows, strict=strict)}
    if name == "risk":
        survival = release.predict_survival_function(rows, return_array=True, strict=strict)
        # A curve is 1 before its first step.
        survival = np.column_stack([np.ones(len(rows)), survival])
        if times is None:
            times = np.array([float(release.parameters["max_time"])])
        # A step at 0.7 may be one at 0.7000000000000001.
        places = np.searchsorted(model.unique_times_, times * (1.0 + 1e-12), side="right")
        for time, place in zip(times, places, strict=True):
            predicted[f"survival_{exact(float(time))}"] = survival[:, place]
    if name == "class":
        shares = release.predict_proba(rows, strict=strict)
        labels = [f"probability_{label}" for label in model.classes_.tolist()]
        predicted |= dict(zip(labels, shares.T, strict=True))
    both = sorted(set(keep) & set(predicted))
    require(not both, f"--keep must not be called {', '.join(both)}.")
    return pd.DataFrame({**{name: np.asarray(table[name]) for name in keep}, **predicted})
