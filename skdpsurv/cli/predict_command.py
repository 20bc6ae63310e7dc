"""skdpsurv predict: what a release says of people, or of times."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from skdpsurv.cli.failures import CommandError, guarded
from skdpsurv.cli.files import MISSING, column_names, read_table
from skdpsurv.cli.fitting import working
from skdpsurv.cli.groups import grouped
from skdpsurv.cli.options import AsJson, FileFormat, Labels, NewFile, ReleaseFile
from skdpsurv.cli.printing import Printed, show_saved
from skdpsurv.cli.releases import load_release, rows_table, usable_model
from skdpsurv.cli.results import curves
from skdpsurv.cli.saving import reserve, save
from skdpsurv.cli.spreadsheet import csv_text
from skdpsurv.cli.targets import split_names
from skdpsurv.release import Release
from skdpsurv.report.text import exact
from skdpsurv.survival.curve_frames import times_argument
from skdpsurv.types import FloatArray

__all__ = ["predict"]


@guarded
@grouped
def predict(
    release: ReleaseFile,
    form: FileFormat,
    out: NewFile,
    new: Annotated[
        Path | None,
        typer.Argument(
            metavar="[NEW]",
            help="CSV or Parquet file of people to predict for. None for a release of curves.",
            show_default=False,
        ),
    ] = None,
    times: Annotated[
        Labels,
        typer.Option(
            metavar="T,T,...",
            help="Times to give survival at, in the unit of the fit. By default the horizon; of "
            "curves, all of their times.",
            show_default=False,
        ),
    ] = [],  # noqa: B006, typer copies it
    keep: Annotated[
        list[str],
        typer.Option(
            help="Column of NEW to copy beside the predictions, such as a name. May be given "
            "several times."
        ),
    ] = [],  # noqa: B006, typer copies it
    drop: Annotated[
        list[str],
        typer.Option(help="Column of NEW to leave out. May be given several times."),
    ] = [],  # noqa: B006, typer copies it
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Refuse values beyond a public bound, in place of clipping."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write predictions to a CSV file: risk and survival, or the probability of each class."""
    reserve(out)
    published = load_release(release)
    model = usable_model(published)
    at = _times(times, published) if times else None
    if hasattr(model, "survival_function_at_times"):
        if new is not None:
            raise CommandError(
                "parameter", f"a {published.estimator} predicts times, not people: give no NEW."
            )
        found = curves(model, model.timeline if at is None else at)
    else:
        if new is None:
            raise CommandError(
                "parameter", f"NEW must be a file of people: a {published.estimator} predicts them."
            )
        keep = split_names(keep, column_names(new, form))
        with working("Reading", as_json):
            # As they are written: a name may begin with a nought.
            as_text = {
                name: MISSING for name in keep if name not in (published.feature_names_in or ())
            }
            table = read_table(rows_table(published, new, form, keep, drop, as_text), form)
        with working("Predicting", as_json):
            found = _people(published, model, table, at, keep, strict)
    save(csv_text(found), out)
    says = f"{len(found):,} rows of {', '.join(found.columns)}: {out}"
    content = {"predictions": str(out.resolve()), "columns": list(found.columns)}
    show_saved(Printed(content, [says]), as_json, out)


def _times(texts: Labels, release: Release) -> FloatArray:
    times = None
    with suppress(ValueError):
        times = times_argument([float(time) for text in texts for time in text.split(",")])
    if times is None or not np.isfinite(times).all():
        raise CommandError(
            "parameter", "--times must be numbers that are not negative, such as 1,2,5."
        )
    end = float(release.parameters.get("max_time", np.inf))
    if (times > end).any():
        raise CommandError("parameter", f"--times must not be beyond the horizon, {exact(end)}.")
    return times


def _people(
    release: Release,
    model: Any,
    table: Any,
    times: FloatArray | None,
    keep: list[str],
    strict: bool,
) -> pd.DataFrame:
    rows = table[list(release.feature_names_in or ())]
    if not isinstance(rows, pd.DataFrame):  # of Dask: what is predicted is as long as the file
        rows, table = rows.compute(), table[keep].compute() if keep else table
    kept = {name: np.asarray(table[name]) for name in keep}
    predicted: dict[str, Any] = {}
    if hasattr(model, "predict_survival_function"):
        if times is None:
            times = np.array([float(release.parameters["max_time"])])
        predicted["risk"] = release.predict(rows, strict=strict)
        steps = model.unique_times_
        survival = release.predict_survival_function(rows, return_array=True, strict=strict)
        # A curve is 1 before its first step.
        survival = np.column_stack([np.ones(len(rows)), survival])
        # A step at 0.7 may be one at 0.7000000000000001.
        places = np.searchsorted(steps, times * (1.0 + 1e-12), side="right")
        for time, place in zip(times, places, strict=True):
            predicted[f"survival_{exact(float(time))}"] = survival[:, place]
    elif hasattr(model, "predict_proba"):
        predicted["class"] = release.predict(rows, strict=strict)
        shares = release.predict_proba(rows, strict=strict)
        for label, share in zip(model.classes_.tolist(), shares.T, strict=True):
            predicted[f"probability_{label}"] = share
    else:
        predicted["prediction"] = release.predict(rows, strict=strict)
    if both := [name for name in kept if name in predicted]:
        raise CommandError("parameter", f"--keep must not be called {', '.join(both)}.")
    return pd.DataFrame({**kept, **predicted})
