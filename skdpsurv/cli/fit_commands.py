"""skdpsurv fit: one command for each kind of model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from skdpsurv.classification import DPLogisticRegression
from skdpsurv.cli.columns_file import public_columns, text_labels
from skdpsurv.cli.failures import CommandError, guarded
from skdpsurv.cli.fitting import Job, fit_and_save
from skdpsurv.cli.groups import grouped
from skdpsurv.cli.options import (
    AsJson,
    FileFormat,
    Labels,
    MaxTime,
    NewFile,
    Settings,
    Spending,
    SurvivalColumns,
)
from skdpsurv.cli.releases import load_release
from skdpsurv.cli.targets import (
    check_survival_columns,
    survival_target,
    target_labels,
    target_names,
)
from skdpsurv.preprocessing import PublicColumns
from skdpsurv.survival import (
    DPAalenJohansenFitter,
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPWeibullFitter,
)

__all__ = ["app"]

app = typer.Typer(
    help="Fit a model to a file of records, and write what may be published.",
    no_args_is_help=True,
)

Data = Annotated[
    Path,
    typer.Argument(metavar="DATA", help="CSV or Parquet file: one row for each record. Private."),
]
SchemaFile = Annotated[
    Path,
    typer.Option(help="TOML file that says what is publicly known of each column."),
]
Drop = Annotated[
    list[str],
    typer.Option(help="Column of the file to leave out. May be given several times."),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse values beyond a public bound, such as a forgotten -99, in place of clipping.",
    ),
]
Intervals = Annotated[
    float,
    typer.Option(
        "--intervals",
        min=0.0,
        max=0.9,
        help="Share of epsilon for standard errors and intervals of coefficients, such as 0.2.",
    ),
]
Delta = Annotated[
    float,
    typer.Option(
        help="Probability with which the bound by epsilon may fail, at most 1/n^2: many columns "
        "need less noise then.",
        rich_help_panel="Privacy",
    ),
]
Prior = Annotated[
    Path | None,
    typer.Option(
        "--prior",
        metavar="RELEASE",
        help="Release of another site, as its fit wrote it, to start from: used if these records "
        "agree with it.",
        show_default=False,
    ),
]

Group = Annotated[
    str | None,
    typer.Option(
        help="Column with the group of each record: a curve for each, at the price of one.",
        show_default=False,
    ),
]
Groups = Annotated[
    Labels,
    typer.Option(
        metavar="A,B,...",
        help="The groups, which are public; needed with --group.",
        show_default=False,
    ),
]


@app.command()
@guarded
@grouped
def survival(
    data: Data,
    columns: SurvivalColumns,
    schema: SchemaFile,
    max_time: MaxTime,
    spending: Spending,
    out: NewFile,
    form: FileFormat,
    settings: Settings,
    drop: Drop = [],  # noqa: B006, typer copies it
    link: Annotated[
        str, typer.Option(help="logit, cloglog (hazard ratios, as Cox has them) or probit.")
    ] = "logit",
    intervals: Intervals = 0.0,
    prior: Prior = None,
    delta: Delta = 0.0,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Hazard regression: who is at risk, and when; survival curves by covariates."""
    check_survival_columns(columns)
    job = _regression(
        DPDiscreteTimeSurvival,
        {"max_time": max_time, "link": link, **_beside(intervals, prior, delta)},
        public_columns(schema, form.missing_value),
        target_names(columns),
        target_labels(columns),
        lambda frame: {"y": survival_target(frame, columns), **_person(frame, columns.person)},
        spending,
        drop,
        strict,
    )
    fit_and_save(job, data, form, spending, settings, out, as_json)


@app.command()
@guarded
@grouped
def weibull(
    data: Data,
    columns: SurvivalColumns,
    max_time: MaxTime,
    spending: Spending,
    out: NewFile,
    form: FileFormat,
    settings: Settings,
    as_json: AsJson = False,
) -> None:
    """Weibull distribution of one group: shape and scale. Other columns are not used."""
    check_survival_columns(columns)
    job = _curve(DPWeibullFitter, {}, columns, max_time, spending, None, [])
    fit_and_save(job, data, form, spending, settings, out, as_json)


@app.command()
@guarded
@grouped
def km(
    data: Data,
    columns: SurvivalColumns,
    max_time: MaxTime,
    spending: Spending,
    out: NewFile,
    form: FileFormat,
    settings: Settings,
    group: Group = None,
    groups: Groups = [],  # noqa: B006, typer copies it
    as_json: AsJson = False,
) -> None:
    """Kaplan-Meier curves, with intervals. Other columns are not used."""
    check_survival_columns(columns)
    job = _curve(DPKaplanMeierFitter, {}, columns, max_time, spending, group, groups)
    fit_and_save(job, data, form, spending, settings, out, as_json)


@app.command()
@guarded
@grouped
def competing(
    data: Data,
    columns: SurvivalColumns,
    causes: Annotated[
        Labels,
        typer.Option(
            metavar="A,B,...",
            help="Labels of the events, which are public; others but --censored-is (0, unless it "
            "is given) are refused.",
        ),
    ],
    max_time: MaxTime,
    spending: Spending,
    out: NewFile,
    form: FileFormat,
    settings: Settings,
    group: Group = None,
    groups: Groups = [],  # noqa: B006, typer copies it
    as_json: AsJson = False,
) -> None:
    """Cumulative incidences of competing events (Aalen-Johansen). Other columns are not used."""
    if columns.event is None or columns.all_events or columns.event_is:
        raise CommandError(
            "parameter", "--event must name the column that says which of --causes was seen."
        )
    if len(columns.censored_is) > 1:
        raise CommandError("parameter", "--censored-is must be one label here.")
    labels = _labels("--causes", causes)
    censored: Any = columns.censored_is[0] if columns.censored_is else "0"
    if not isinstance(labels[0], str):
        (censored,) = _labels("--censored-is", [censored])
    stated = {"causes": labels, "censored": censored}
    job = _curve(DPAalenJohansenFitter, stated, columns, max_time, spending, group, groups)
    texts = {**job.labels, **_text_of(columns.event, [*labels, censored])}
    fit_and_save(replace(job, labels=texts), data, form, spending, settings, out, as_json)


@app.command()
@guarded
@grouped
def logistic(
    data: Data,
    target: Annotated[str, typer.Option(help="Column with the class of each record.")],
    classes: Annotated[
        Labels, typer.Option(metavar="A,B,...", help="The classes, which are public, such as 0,1.")
    ],
    schema: SchemaFile,
    spending: Spending,
    out: NewFile,
    form: FileFormat,
    settings: Settings,
    person: Annotated[
        str | None,
        typer.Option(
            help="Column that says whose each record is, where people have several.",
            show_default=False,
        ),
    ] = None,
    drop: Drop = [],  # noqa: B006, typer copies it
    intervals: Intervals = 0.0,
    prior: Prior = None,
    delta: Delta = 0.0,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Logistic regression: the probability of each class, by covariates."""
    described = public_columns(schema, form.missing_value)
    labels = _labels("--classes", classes)
    people = [] if person is None else [person]
    job = _regression(
        DPLogisticRegression,
        {"classes": labels, **_beside(intervals, prior, delta)},
        described,
        [target, *people],
        {**_text_of(target, labels), **dict.fromkeys(people, ())},
        lambda frame: {"y": frame[target], **_person(frame, person)},
        spending,
        drop,
        strict,
    )
    fit_and_save(job, data, form, spending, settings, out, as_json)


def _beside(intervals: float, prior: Path | None, delta: float) -> dict[str, Any]:
    """Return what regressions of all kinds may have."""
    start = None if prior is None else load_release(prior)
    return {"inference_share": intervals, "prior": start, "delta": delta}


def _regression(
    kind: Any,
    stated: dict[str, Any],
    described: PublicColumns,
    others: list[str],
    labels: Mapping[str, Sequence[str]],
    target: Callable[[Any], dict[str, Any]],
    spending: Spending,
    drop: list[str],
    strict: bool,
) -> Job:
    """Return what an estimator of tables fits: the columns of a schema, and others beside them."""
    features = described._names()
    if both := [name for name in features if name in others]:
        # It would be predicted from itself.
        raise CommandError(
            "description",
            f"the schema must not describe {', '.join(both)}, which the fit is told to predict or "
            "to tell people by: delete that from the schema.",
        )
    return Job(
        kind,
        {
            "epsilon": spending.epsilon,
            "columns": described,
            "random_state": spending.seed,
            **stated,
        },
        (*others, *features),
        {**text_labels(described), **labels},
        lambda frame: {"X": frame[features], **target(frame)},
        tuple(others),
        tuple(drop),
        strict=strict,
        options={
            "inference_share": "--intervals",
            "prior": "--prior",
            "delta": "--delta",
            "random_state": "--seed",
        },
    )


def _curve(
    kind: Any,
    stated: dict[str, Any],
    columns: SurvivalColumns,
    max_time: float,
    spending: Spending,
    group: str | None,
    groups: Labels,
) -> Job:
    """Return what an estimator of curves fits, which takes times and events alone."""
    if (group is None) != (not groups):
        raise CommandError("parameter", "--group and --groups must be given together.")
    of_group: dict[str, tuple[str, ...]] = {}
    if group is not None:
        stated = {**stated, "groups": _labels("--groups", groups)}
        of_group = _text_of(group, stated["groups"])

    def arguments(frame: Any) -> dict[str, Any]:
        grouped_by = {} if group is None else {"group": frame[group]}
        return {
            "y": survival_target(frame, columns),
            **grouped_by,
            **_person(frame, columns.person),
        }

    used = (*target_names(columns), *([] if group is None else [group]))
    return Job(
        kind,
        {
            "epsilon": spending.epsilon,
            "max_time": max_time,
            "random_state": spending.seed,
            **stated,
        },
        used,
        {**target_labels(columns), **of_group},
        arguments,
        used,
        whole=True,
        options={"random_state": "--seed", "groups": "--groups"},
    )


def _person(frame: Any, person: str | None) -> dict[str, Any]:
    return {} if person is None else {"person": frame[person]}


def _labels(option: str, texts: Labels) -> list[Any]:
    """Return labels as numbers if all are whole ones, else as text."""
    labels = [label.strip() for text in texts for label in text.split(",")]
    if not all(labels):
        raise CommandError("parameter", f"{option} must be labels with commas between them.")
    # 01 is no number: it would come out as 1.
    if all(label.removeprefix("-").isdecimal() and str(int(label)) == label for label in labels):
        return [int(label) for label in labels]
    return list(labels)


def _text_of(column: str, labels: list[Any]) -> dict[str, tuple[str, ...]]:
    return {column: tuple(labels)} if isinstance(labels[0], str) else {}
