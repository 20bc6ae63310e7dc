"""skdpsurv evaluate: how good a released model is, on records that must not leak."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from skdpsurv.cli.failures import CommandError, guarded
from skdpsurv.cli.files import read_table
from skdpsurv.cli.fitting import reading, working
from skdpsurv.cli.groups import grouped
from skdpsurv.cli.options import (
    AsJson,
    FileFormat,
    NewFile,
    ReleaseFile,
    Spending,
    SurvivalColumns,
)
from skdpsurv.cli.printing import Printed, show, show_saved
from skdpsurv.cli.releases import load_release, rows_table, usable_model
from skdpsurv.cli.saving import reserve, save_or_print
from skdpsurv.cli.spending import ledger_line, ledger_state, open_ledger, promise_line
from skdpsurv.cli.targets import (
    check_survival_columns,
    survival_target,
    target_labels,
    target_names,
)
from skdpsurv.metrics.evaluation import Evaluation

__all__ = ["evaluate"]


@guarded
@grouped
def evaluate(
    release: ReleaseFile,
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="CSV or Parquet file: records of other people than those of the fit. Private.",
        ),
    ],
    columns: SurvivalColumns,
    spending: Spending,
    out: NewFile,
    form: FileFormat,
    max_time: Annotated[
        float | None,
        typer.Option(help="Public horizon. By default, that of the release.", show_default=False),
    ] = None,
    drop: Annotated[
        list[str], typer.Option(help="Column of DATA to leave out. May be given several times.")
    ] = [],  # noqa: B006, typer copies it
    as_json: AsJson = False,
) -> None:
    """Measure a released survival model privately: C-index, Brier score, calibration, intervals."""
    check_survival_columns(columns)
    if form.dask:
        raise CommandError("parameter", "--dask is for fit: an evaluation reads rows in memory.")
    if not spending.dry_run:
        reserve(out)
    published = load_release(release)
    model = usable_model(published)
    if not hasattr(model, "predict_survival_function"):
        raise CommandError(
            "description", f"a {published.estimator} does not predict survival of people."
        )
    evaluation = Evaluation(
        model,
        spending.epsilon,
        max_time=published.parameters["max_time"] if max_time is None else max_time,
        random_state=spending.seed,
        accountant=open_ledger(spending),
    )
    evaluation._check_parameters()
    labels = target_labels(columns)
    table = rows_table(published, data, form, target_names(columns), drop, labels)
    with reading(evaluation, spending.dry_run, as_json):
        frame = read_table(table, form)
    arguments: dict[str, Any] = {
        "X": frame[list(published.feature_names_in or ())],
        "y": survival_target(frame, columns),
        "person": None if columns.person is None else frame[columns.person],
    }
    ledger = evaluation.accountant
    if spending.dry_run:
        guarantee = evaluation._promised(**arguments)
        content = {
            "dry_run": True,
            "guarantee": guarantee.to_dict(),
            "ledger": ledger_state(ledger),
        }
        lines = [
            f"An evaluation would be charged {promise_line(guarantee)}.",
            f"Ledger: {ledger_line(ledger)}",
            "Nothing was spent.",
        ]
        show(Printed(content, lines), as_json)
        return
    with working("Evaluating", as_json):
        found: Any = evaluation._fit(**arguments)
    save_or_print(json.dumps(found.to_dict(), indent=2) + "\n", out)
    content = {"evaluation": str(out.resolve()), **found.to_dict(), "ledger": ledger_state(ledger)}
    lines = [repr(found), f"Evaluation: {out}", f"Ledger: {ledger_line(ledger)}"]
    show_saved(Printed(content, lines), as_json, out)
