"""skdpsurv fit, in one order: places, ledger, columns, plan; then records, charge, release."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from skdpsurv.base import PrivateEstimator
from skdpsurv.classification import DPLogisticRegression
from skdpsurv.cli.columns_file import Labels, public_columns, table_of
from skdpsurv.cli.failures import refusals, require
from skdpsurv.cli.files import read_table
from skdpsurv.cli.ledger import ledger_line, ledger_state, open_ledger
from skdpsurv.cli.options import NONE, FileFormat, Spending, SurvivalColumns, command
from skdpsurv.cli.output import promise_line, reserve, result_lines, save_or_print, show, working
from skdpsurv.cli.releases import load_release
from skdpsurv.data.public_steps import columns_beyond
from skdpsurv.data.target import split_target
from skdpsurv.dp import PrivacyGuarantee
from skdpsurv.dp.input_errors import suggestion
from skdpsurv.evaluation.forecast import gain_of_delta
from skdpsurv.survival import (
    DPAalenJohansenFitter,
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPWeibullFitter,
)

#: What ``skdpsurv fit`` fits.
Kind = StrEnum("Kind", ["survival", "weibull", "km", "competing", "logistic"])
ESTIMATORS: dict[Kind, type[PrivateEstimator]] = {
    Kind.survival: DPDiscreteTimeSurvival,
    Kind.weibull: DPWeibullFitter,
    Kind.km: DPKaplanMeierFitter,
    Kind.competing: DPAalenJohansenFitter,
    Kind.logistic: DPLogisticRegression,
}
#: Options, and the parameters of an estimator that they set.
OPTIONS = {
    **{name: name for name in ("epsilon", "max_time", "link", "prior", "delta")},
    **{name: name for name in ("groups", "causes", "classes")},
    "seed": "random_state",
    "schema": "columns",
    "intervals": "inference_share",
}
#: Options that go with a parameter: they are for estimators that have it.
GOES_WITH = {
    **OPTIONS,
    **dict.fromkeys(("time", "event", "all_events", "event_is", "censored_is"), "max_time"),
    **dict.fromkeys(("drop", "strict"), "columns"),
    "group": "groups",
    "target": "classes",
}
#: Options without which no estimator that they are for is fitted.
NEEDED = ("schema", "causes", "target", "classes")
#: Where arguments of a fit come from, for whoever has a file.
ABOUT_RECORDS = (
    " (X is what the schema describes, y what --time and --event, or --target, name. Times are "
    "numbers, not dates; events are 1 and 0, or what --event-is and --censored-is say. "
    "--missing-value names what means missing.)"
)


@dataclass(frozen=True)
class Model:
    """The model.

    Parameters
    ----------
    schema : Path or None
        TOML file that says what is publicly known of each column.
    max_time : float or None
        Public horizon, in the unit of the times; later ones count as censored there.
    drop : list of str
        Column of the file to leave out. May be given several times.
    link : str or None
        logit (the default), cloglog (hazard ratios, as Cox has them) or probit.
    intervals : float, default=0.0
        Share of epsilon for standard errors and intervals of coefficients, such as 0.2.
    prior : Path or None
        Release of another site, as its fit wrote it, to start from: used if these records agree
        with it.
    delta : float, default=0.0
        Probability with which the bound by epsilon may fail, at most 1/n^2: many columns need less
        noise then.
    strict : bool, default=False
        Refuse values beyond a public bound, such as a forgotten -99, in place of clipping.
    group : str or None
        Column with the group of each record: a curve for each, at the price of one.
    groups : list of str
        The groups, which are public, such as A,B,C; needed with --group.
    causes : list of str
        Labels of the events, which are public; others but --censored-is (0, unless it is given) are
        refused.
    target : str or None
        Column with the class of each record.
    classes : list of str
        The classes, which are public, such as 0,1.
    """

    schema: Path | None = None
    max_time: float | None = None
    drop: list[str] = NONE
    link: str | None = None
    intervals: float = 0.0
    prior: Path | None = None
    delta: float = 0.0
    strict: bool = False
    group: str | None = None
    groups: list[str] = NONE
    causes: list[str] = NONE
    target: str | None = None
    classes: list[str] = NONE


@command
def fit(
    kind: Kind,
    data: Path,
    /,
    *,
    columns: SurvivalColumns,
    model: Model,
    spending: Spending,
    out: Path,
    form: FileFormat,
    set_: list[str] = NONE,
    as_json: bool = False,
) -> None:
    """Fit a model to a file of records, and write what may be published.

    survival: hazard regression, who is at risk, and when, by covariates. logistic: the probability
    of each class, by covariates. km: Kaplan-Meier curves. competing: cumulative incidences
    (Aalen-Johansen). weibull: a Weibull distribution. The last three use no other columns.

    Parameters
    ----------
    kind : Kind
        What is fitted.
    data : Path
        CSV or Parquet file: one row for each record. Private.
    set_ : list of str
        Another parameter of the estimator, as NAME=VALUE, by its name in Python: --set n_knots=5.
        May be given several times.
    """
    stated = _parameters_of(kind, columns, model, spending, form)
    if not spending.dry_run:
        reserve(out)
    estimator: Any = make(
        ESTIMATORS[kind], stated, set_, {parameter: option for option, parameter in OPTIONS.items()}
    )
    estimator._check_parameters()
    described = stated.get("columns")
    features = [] if described is None else described._names()
    if kind is Kind.competing:  # which says itself what means censored
        columns = replace(columns, censored_is=NONE)
    target = _target(kind, columns, model, stated)
    both = sorted(set(features) & set(target))
    message = f"the schema must not describe {', '.join(both)}: it is no covariate."
    require(not both, message, "description")
    ignored = None if described is None else ()
    table = table_of(data, form, features, described, target, model.drop, ignored)
    estimator.accountant = ledger = open_ledger(spending)
    elsewhere = form.dask or (ledger is not None and ledger.charge_refusals)
    message = "--strict is for files in memory, and for ledgers that do not charge refusals."
    require(not (model.strict and elsewhere), message)
    with reading(estimator, spending.dry_run, as_json):
        frame = read_table(table, form)
    some = form.dask or len(frame)
    require(some, f"{data} must have at least one row below its names.", "data")
    with refusals("data", after=ABOUT_RECORDS, private=True):
        y = survival_target(frame, columns) if model.target is None else frame[model.target]
        named = {"X": features or None, "person": columns.person, "group": model.group}
        arguments = {"y": y, **{n: frame[c] for n, c in named.items() if c is not None}}
        if spending.dry_run:
            rehearse(estimator, arguments, as_json)
            return
        if model.strict:
            beyond = columns_beyond(described, frame[features], len(features), features)
            message = f"with --strict, {', '.join(beyond)} must be within the schema's bounds."
            require(not beyond, message, "data")
        with working("Fitting", as_json):
            estimator.fit(**arguments)
    save_or_print(estimator.release_.to_json(indent=2) + "\n", out)
    content, (promise, *lines) = _said(estimator, estimator.guarantee_)
    ending = [*lines, f"Release: {out}", f"Next: skdpsurv explain {out} --html report.html"]
    shown = chain([promise], result_lines(estimator.release_), ending)
    show({"release": str(out.resolve()), **content}, shown, as_json, out)


def make(
    kind: type[PrivateEstimator],
    stated: Mapping[str, Any],
    settings: Sequence[str],
    options: Mapping[str, str],
) -> PrivateEstimator:
    """Return the estimator, not fitted.

    Parameters
    ----------
    kind : type
    stated : mapping
        Parameters that are settled.
    settings : sequence of str
        Others, as NAME=VALUE.
    options : mapping of str to str
        Parameters that have an option of their own.
    """
    allowed = set(inspect.signature(kind).parameters) - {*stated, *options, "accountant", "verbose"}
    found: dict[str, Any] = {}
    for pair in settings:
        name, equal, text = pair.partition("=")
        require(equal and pair.isprintable(), f"--set must be NAME=VALUE, got {pair!r}.")
        require(name not in options, f"--set {name}: use {_option(options.get(name, ''))}.")
        known = f"--set must name one of {', '.join(sorted(allowed))}.{suggestion(name, allowed)}"
        require(name in allowed or name.startswith("method__"), known)
        found[name] = _value(text)
    if any("__" in name for name in found):
        word = found.get("method", "auto")
        words = " or ".join(kind._methods)
        message = f"--set method__... must go with --set method={words}."
        require(word in kind._methods, message)
        found["method"] = kind._methods[word]()
    with refusals("parameter"):
        return kind(**stated).set_params(**found)


@contextmanager
def reading(estimator: PrivateEstimator, rehearsed: bool, as_json: bool) -> Iterator[None]:
    """Show that a file is being read, for a fit whose parameters were checked.

    The ledger is asked before; a file that is refused for what its records hold is charged where
    refusals are, unless this is a rehearsal.
    """
    status = estimator._status(None)
    estimator._precheck_budget(status)
    reader = estimator._without_ledger() if rehearsed else estimator
    with reader._refusals_charged(status), working("Reading", as_json):
        yield


def rehearse(estimator: Any, arguments: Mapping[str, Any], as_json: bool) -> None:
    """Say what a fit would be charged; nothing is spent."""
    guarantee = estimator._guarantee_of_fit(**{"X": None, **arguments})
    content, lines = _said(estimator, guarantee)
    lines += [f"How: {guarantee.mechanism}", "This would be charged. Nothing was spent."]
    show({"dry_run": True, **content}, lines, as_json)


def _said(estimator: Any, guarantee: PrivacyGuarantee) -> tuple[dict[str, Any], list[str]]:
    """Return what is said of a fit, for machines and for people."""
    name, ledger = type(estimator).__name__, estimator.accountant
    lines = [f"{name}: {promise_line(guarantee)}", f"Ledger: {ledger_line(ledger)}"]
    if getattr(estimator, "columns", None) is not None:
        n_records: Any = guarantee.public_inputs["n_records"]
        n_features = len(estimator.columns.get_feature_names_out())
        # What a delta would gain, if it would.
        lines.append(gain_of_delta(estimator, n_records, n_features, [estimator.epsilon]))
    stated = guarantee.to_dict()
    content = {"estimator": name, "guarantee": stated, "ledger": ledger_state(ledger)}
    return content, list(filter(None, lines))


def check_survival_columns(columns: SurvivalColumns) -> dict[str, Labels]:
    """Refuse options that contradict each other, and return the columns that they name.

    Returns
    -------
    dict of str to tuple of str or None
        The labels of those that are read as text.
    """
    time, event, person = columns.time, columns.event, columns.person
    require(time is not None, "--time must name the column of times.")
    message = "--event must name the column of events, or --all-events say that all are."
    require((event is None) == columns.all_events, message)
    seen, censored = set(columns.event_is), set(columns.censored_is)
    together = bool(seen) == bool(censored) and not (seen and event is None)
    message = "--event-is and --censored-is must differ, and must be given together, with --event."
    require(together and not seen & censored, message)
    found: dict[Any, Labels] = {time: None}
    if person is not None:
        found[person] = ()
    if event is not None:  # names may contradict what a command is told
        found[event] = (*columns.event_is, *columns.censored_is) or None
        names: dict[str, Any] = {"time": time, "event": event, "person": person}
        split_target(pd.DataFrame(columns=list(found)), **names)
    return found


def survival_target(frame: Any, columns: SurvivalColumns) -> Any:
    """Return event and time of each record, as ``fit`` takes them; times alone, if all are events.

    Of labels, 1 is that of an event, 0 that of none, and NaN, which the estimator refuses, others.
    """
    if columns.event is None:
        return frame[columns.time]
    y = frame[[columns.event, columns.time]]
    flags: dict[Any, float] = {}
    for labels, flag in ((columns.event_is, 1.0), (columns.censored_is, 0.0)):
        for label in labels:
            flags[label] = flag
            if isinstance(value := _value(label.lower()), int | float):  # of Parquet files
                flags[value] = flag
    if not flags:
        return y
    mark = partial(_flagged, columns.event, flags)
    return mark(y) if isinstance(y, pd.DataFrame) else y.map_partitions(mark, meta=mark(y._meta))


def _flagged(event: str, flags: Mapping[Any, float], frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(**{event: frame[event].map(flags.get).astype(float)})


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _parameters_of(
    kind: Kind, columns: SurvivalColumns, model: Model, spending: Spending, form: FileFormat
) -> dict[str, Any]:
    """Return the parameters of the estimator that options state; refuse what is not for it."""
    parameters = inspect.signature(ESTIMATORS[kind]).parameters
    given: dict[str, Any] = {**vars(columns), **vars(model), **vars(spending)}
    for name, parameter in GOES_WITH.items():
        taken = parameter in parameters
        require(taken or not given[name], f"{_option(name)} is not for {kind}.")
        needed = taken and name in NEEDED
        require(given[name] or not needed, f"{_option(name)} must be given for {kind}.")
    both = bool(model.group) == bool(model.groups)
    require(both, "--group and --groups must be given together.")
    if model.schema is not None:
        given["schema"] = public_columns(model.schema, form.missing_value)
    if model.prior is not None:
        given["prior"] = load_release(model.prior)
    for name in ("groups", "causes", "classes"):
        given[name] = _labels(_option(name), given[name]) if given[name] else None
    stated = {
        parameter: given[name]
        for name, parameter in OPTIONS.items()
        if parameter in parameters and given[name] is not None
    }
    if kind is Kind.competing:
        named = columns.event is not None and not columns.event_is
        message = "--event must name the column of --causes, and --censored-is one other label."
        require(named and len(columns.censored_is) <= 1, message)
        stated["censored"] = columns.censored_is[0] if columns.censored_is else "0"
        if isinstance(stated["causes"][0], int):
            stated["censored"] = _labels("--censored-is", [stated["censored"]])[0]
    return stated


def _target(
    kind: Kind, columns: SurvivalColumns, model: Model, stated: Mapping[str, Any]
) -> dict[str, Labels]:
    """Return the columns that are no covariates, and the labels of those that are text."""
    found: dict[Any, Labels] = {}
    if kind is Kind.logistic:
        found[model.target] = _texts(stated["classes"])
        if columns.person is not None:
            found[columns.person] = ()
    else:
        found |= check_survival_columns(columns)
    if kind is Kind.competing:
        found[columns.event] = _texts([*stated["causes"], stated["censored"]])
    if model.group is not None:
        found[model.group] = _texts(stated["groups"])
    return found


def _labels(option: str, texts: Sequence[str]) -> list[Any]:
    """Return labels as numbers if all are whole ones, else as text."""
    labels = [label.strip() for text in texts for label in text.split(",")]
    require(all(labels), f"{option} must be labels with commas between them.")
    # 01 is no number: it would come out as 1.
    if all(label.removeprefix("-").isdecimal() and str(int(label)) == label for label in labels):
        return [int(label) for label in labels]
    return labels


def _texts(labels: Sequence[Any]) -> Labels:
    return tuple(labels) if isinstance(labels[0], str) else None


def _value(text: str) -> Any:
    """Return a value as TOML has it; what is none is text, and none is None."""
    if text.lower() == "none":
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
