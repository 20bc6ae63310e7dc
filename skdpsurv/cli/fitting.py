"""skdpsurv fit and evaluate: options, ledger and plan first; then records, charge, release."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from skdpsurv.cli import printing
from skdpsurv.cli.failures import WORDS, refusals, require
from skdpsurv.cli.ledger_command import ledger_line, ledger_state, open_ledger
from skdpsurv.cli.options import NONE, FileFormat, Spending, SurvivalColumns, command, flag, parse
from skdpsurv.cli.record_files import RecordFile, read_table
from skdpsurv.cli.releases import load_release, table_of_release
from skdpsurv.cli.survival_columns import (
    Labels,
    other_columns,
    public_columns,
    survival_columns,
    table_of,
)

if TYPE_CHECKING:
    from skdpsurv.base import PrivateEstimator
    from skdpsurv.dp.guarantee import PrivacyGuarantee

#: Models that ``skdpsurv fit`` fits.
Kind = StrEnum(
    "Kind", ["survival", "competing-regression", "weibull", "km", "competing", "logistic"]
)
_LISTS = ("groups", "causes", "classes")
#: Parameters of an estimator, and the options that set them.
OPTIONS = {name: name for name in ("epsilon", "max_time", "link", "strata", "prior", "delta")}
OPTIONS |= dict(zip(_LISTS, _LISTS, strict=True))
OPTIONS |= {"random_state": "seed", "columns": "schema", "inference_share": "intervals"}
#: Options, and the parameter that an estimator must have to take them.
REQUIRES = dict.fromkeys(("time", "event", "all_events", "event_is", "censored_is"), "max_time")
REQUIRES |= dict.fromkeys(("entry_date", "exit_date", "origin_date"), "max_time")
REQUIRES |= {"drop": "columns", "strict": "columns", "group": "groups", "target": "classes"}
REQUIRES |= {option: parameter for parameter, option in OPTIONS.items()}
#: Options that must be given to every estimator that takes them.
NEEDED = ("schema", "causes", "target", "classes")


@dataclass(frozen=True)
class Model:
    """The model. Options for the parameters of a fit.

    Parameters
    ----------
    schema : Path or None
        TOML file that says what is publicly known of each column, or a release that states it.
    max_time : float or None
        Public horizon, in the unit of the times; later ones count as censored there.
    drop : list of str
        Column of the file to leave out. May be given several times.
    link : str or None
        logit (the default), cloglog (hazard ratios, as Cox has them) or probit.
    strata : str or None
        Category of the schema whose labels have a baseline each, such as a site; it is no covariate
        then. For fit survival.
    intervals : float, default=0.0
        Share of epsilon for standard errors and intervals of coefficients, such as 0.3.
    prior : Path or None
        Release of another site, as its fit wrote it, to start from: used if these records agree
        with it.
    delta : float, default=0.0
        Probability with which the bound by epsilon may fail, at most 1/n^2: many columns need less
        noise then.
    strict : bool, default=False
        Refuse values beyond a public bound, such as a forgotten -99, in place of clipping.
    group : str or None
        Column with the group of each record. Curves of all groups cost as much as one.
    groups : list of str
        The groups, which are public, such as A,B,C; needed with --group.
    causes : list of str
        Labels of the events, which are public. Other labels are refused, except that of
        --censored-is, which is 0 by default.
    target : str or None
        Column with the class of each record.
    classes : list of str
        The classes, which are public, such as 0,1.
    """

    schema: Path | None = None
    max_time: float | None = None
    drop: list[str] = NONE
    link: str | None = None
    strata: str | None = None
    intervals: float = 0.0
    prior: Path | None = None
    delta: float = 0.0
    strict: bool = False
    group: str | None = None
    groups: list[str] = NONE
    causes: list[str] = NONE
    target: str | None = None
    classes: list[str] = NONE


def estimator_class(kind: str) -> type[PrivateEstimator]:
    """Return the estimator of a kind of model."""
    from skdpsurv.release import Release

    found: type[PrivateEstimator] = Release.kinds.named("word")[kind]
    return found


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
) -> None:
    """Fit a model to a file of records, and write a release, which may be published.

    survival: hazard regression, the risk over time by covariates. competing-regression: that of
    each of several causes. logistic: the probability of each class by covariates. km: Kaplan-Meier
    curves. competing: cumulative incidences (Aalen-Johansen). weibull: a Weibull distribution. The
    last three use no covariates.

    Parameters
    ----------
    kind : Kind
        Model to fit.
    data : Path
        CSV or Parquet file: one row for each record. Private.
    set_ : list of str
        Another parameter of the estimator, as NAME=VALUE, by its name in Python: --set n_knots=5.
        May be given several times.
    """
    from skdpsurv.dp.references import phrase

    stated = _parameters_of(kind, columns, model, spending, form)
    estimator: Any = make(estimator_class(kind), stated, set_, OPTIONS)
    described = stated.get("columns")
    features = described._names() if described is not None else []
    if "causes" in estimator._card.takes:  # the estimator reads the labels itself
        columns = replace(columns, censored_is=NONE)
    target = _target(estimator._card, columns, model, stated)
    both = sorted(set(features) & set(target))
    require(not both, f"the schema must not describe {', '.join(both)}.", "description")
    ignored = None if described is None else ()
    table = table_of(data, form, features, described, target, model.drop, ignored, columns)

    arguments = partial(taken, features, columns, model.target, model.group)
    found = spend(estimator, table, arguments, spending, form, out, strict=model.strict)
    for words in getattr(found, "_horizon_words", list)():
        if phrase("horizon_unit") in words:  # also beside results for machines
            typer.echo(f"skdpsurv: warning: {words}", err=True)
    show_fit(found, {}, printing.result_lines(found.release_), out)


def taken(
    features: Sequence[str],
    columns: SurvivalColumns,
    target: str | None,
    group: str | None,
    frame: Any,
) -> dict[str, Any]:
    """Return the arguments of ``fit``: columns of a file by what is taken of them."""
    named = {"X": features or None, "y": target, "person": columns.person, "group": group}
    if columns.dates is not None:
        frame = columns.dates.replaced(frame)
    outcome = columns.named()
    named["entry"] = outcome.entry
    found = {name: frame[column] for name, column in named.items() if column is not None}
    if outcome.time is not None:
        found["y"] = outcome.target(frame)
    return found


def spend(
    estimator: Any,
    table: RecordFile,
    arguments: Callable[[Any], Mapping[str, Any]],
    spending: Spending,
    form: FileFormat,
    out: Path,
    *,
    strict: bool = False,
) -> Any:
    """Ask the ledger, read a file, fit, and write what is released; or rehearse that, and exit.

    Parameters
    ----------
    estimator : estimator
    table : RecordFile
    arguments : callable
        Makes the arguments of ``fit`` of the rows.
    spending, form, out
    strict : bool, default=False
        Refuse values beyond the bounds of ``columns``.

    Returns
    -------
    object
        What the fit returns.
    """
    from skdpsurv.base.prepared import looking_for

    estimator._check_parameters()
    estimator._made_up = table.made_up
    if not spending.dry_run:
        printing.reserve(out)
    estimator.accountant = ledger = open_ledger(spending)
    elsewhere = form.dask or (ledger is not None and ledger.charge_refusals)
    message = "--strict is for files in memory, and for ledgers that do not charge refusals."
    require(not (strict and elsewhere), message)
    hint = WORDS["about_cells" if estimator._card.takes == ("rows",) else "about_records"]
    with looking_for(estimator):  # whatever fails until the charge may tell of the records
        with printing.working("Reading"):
            frame = read_table(table, form)
        rows = form.dask or len(frame)
        require(rows, f"{table.path} must have at least one row below its names.", "data")
        with refusals("data", after=hint, private=True):
            given = arguments(frame)
            if spending.dry_run:
                _rehearse(estimator, given)
            elif strict:
                from skdpsurv.data.public_steps import columns_out_of_bounds

                names = estimator.columns._names()
                beyond = columns_out_of_bounds(estimator.columns, frame[names], len(names), names)
                message = f"--strict: values beyond the bounds of {', '.join(beyond)}."
                require(not beyond, message, "data")
            doing = "Fitting" if hasattr(estimator, "fit") else "Evaluating"
            with printing.working(doing):
                found: Any = None if spending.dry_run else estimator.prepare(**given).run()
    if spending.dry_run:
        raise typer.Exit
    released = getattr(found, "release_", None)
    text = json.dumps(found.to_dict(), indent=2) if released is None else released.to_json(indent=2)
    printing.save_or_print(f"{text}\n", out)
    return found


def show_fit(fitted: Any, found: dict[str, Any], lines: Iterable[Any], out: Path) -> None:
    """Print a fit whose release is written: its summary, around results for machines or people."""
    content, (first, *rest) = _summary(fitted, fitted.guarantee_)
    ending = [*rest, f"Release: {out}", f"Next: skdpsurv explain {out} --html report.html"]
    content = {"release": str(out.resolve()), **content, **found}
    printing.show(content, chain([first], lines, ending), out)


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
    cause: str | None = None,
    max_time: float | None = None,
    drop: list[str] = NONE,
) -> None:
    """Measure a released survival model privately: C-index, Brier score, calibration, intervals.

    Parameters
    ----------
    release : Path
        A release, as fit wrote it.
    data : Path
        CSV or Parquet file: records of other people than those of the fit. Private.
    cause : str or None
        Of a release of competing-regression: the cause whose incidence is evaluated. The column of
        events holds labels, as for its fit.
    max_time : float or None
        Public horizon. By default, that of the release.
    drop : list of str
        Column of DATA to leave out. May be given several times.
    """
    from skdpsurv.evaluation.evaluation import Evaluation

    if cause is not None:  # the release states its labels
        columns = replace(columns, event_is=NONE, censored_is=NONE)
    target = survival_columns(columns, late_entry=True)
    require(not form.dask, "--dask is for fit: an evaluation reads rows in memory.")
    published = load_release(release)
    with refusals("description"):
        model, what = published._model, "survival" if cause is None else "cumulative_incidence"
        if not hasattr(model, f"predict_{what}_function"):
            raise TypeError(f"a {published.estimator} does not predict {what} of people.")
        if cause is not None:
            labels = {str(label): label for label in (*model.causes_, model.censored)}
            require(cause in map(str, model.causes_), f"--cause must be one of {model.causes_}.")
            require(columns.event, "--cause needs --event.")
            target |= {str(columns.event): _texts(list(labels.values()))}
            cause = labels[cause]
        horizon = published.parameters.get("max_time") if max_time is None else max_time
        given: dict[str, Any] = {"cause": cause, "max_time": horizon, "random_state": spending.seed}
        evaluation = Evaluation(model, spending.epsilon, **given)
    table = table_of_release(published, data, form, target, drop, columns)
    arguments = partial(taken, list(published.feature_names_in or ()), columns, None, None)
    found = spend(evaluation, table, arguments, spending, form, out)
    ledger = evaluation.accountant
    content = {"evaluation": str(out.resolve()), **found.to_dict(), "ledger": ledger_state(ledger)}
    lines = [repr(found), f"Evaluation: {out}", f"Ledger: {ledger_line(ledger)}"]
    printing.show(content, lines, out)


def make(
    kind: type[PrivateEstimator],
    stated: Mapping[str, Any],
    settings: Sequence[str],
    options: Mapping[str, str],
) -> PrivateEstimator:
    """Return an estimator that is not fitted.

    Parameters
    ----------
    kind : type
    stated : mapping
        Values of parameters that the command has read already.
    settings : sequence of str
        Other parameters, as NAME=VALUE.
    options : mapping of str to str
        Names of parameters that ``settings`` may not name, and the options that state them.
    """
    from skdpsurv.dp.checks import suggestion

    allowed = set(inspect.signature(kind).parameters) - {*stated, *options, "accountant", "verbose"}
    found: dict[str, Any] = {}
    for pair in settings:
        name, equal, text = pair.partition("=")
        require(equal and pair.isprintable(), f"--set must be NAME=VALUE, got {pair!r}.")
        require(name not in options, f"--set {name}: use {flag(options.get(name, ''))}.")
        known = f"--set must name one of {', '.join(sorted(allowed))}.{suggestion(name, allowed)}"
        require(name in allowed or name.startswith("method__"), known)
        found[name] = parse(text)
    if any("__" in name for name in found):
        word = found.get("method", "auto")
        words = " or ".join(kind._card.methods)
        require(word in kind._card.methods, f"--set method__... must go with --set method={words}.")
        found["method"] = kind._card.methods[word]()
    with refusals("parameter"):
        return kind(**stated).set_params(**found)


def _rehearse(estimator: Any, arguments: Mapping[str, Any]) -> None:
    """Print what a fit would be charged; nothing is spent."""
    fit = estimator.prepare(**arguments)
    fit.warn()
    guarantee = fit.guarantee
    if estimator.accountant is not None:
        estimator.accountant.check(guarantee)
    content, found = _summary(estimator, guarantee)
    lines: list[Any] = list(found)
    lines += [f"How: {guarantee.mechanism}", "This would be charged. Nothing was spent."]
    content = {"dry_run": True, **content}
    if hasattr(estimator, "expected_table"):
        n_records: Any = guarantee.public_inputs["n_records"]
        expected = printing.expected_widths(estimator, n_records)
        content["expected"] = expected.to_dict("records")
        lines.append(printing.rich_table(expected, "Half-widths of intervals to be expected"))
    printing.show(content, lines)


def _summary(estimator: Any, guarantee: PrivacyGuarantee) -> tuple[dict[str, Any], list[str]]:
    """Return a summary of a fit, for machines and for people."""
    from skdpsurv.evaluation.forecast import gain_of_delta

    name, ledger = type(estimator).__name__, estimator.accountant
    lines = [f"{name}: {printing.guarantee_line(guarantee)}", f"Ledger: {ledger_line(ledger)}"]
    if getattr(estimator, "columns", None) is not None and hasattr(estimator, "data_norm"):
        n_records: Any = guarantee.public_inputs["n_records"]
        n_features = len(estimator.as_fitted().columns.get_feature_names_out())
        lines.append(gain_of_delta(estimator, n_records, n_features, [estimator.epsilon]))
    stated = guarantee.to_dict()
    content = {"estimator": name, "guarantee": stated, "ledger": ledger_state(ledger)}
    return content, list(filter(None, lines))


def _parameters_of(
    kind: Kind, columns: SurvivalColumns, model: Model, spending: Spending, form: FileFormat
) -> dict[str, Any]:
    """Return the parameters that options state; refuse options that are not for the estimator."""
    parameters = inspect.signature(estimator_class(kind)).parameters
    given: dict[str, Any] = {**vars(columns), **vars(model), **vars(spending)}
    for name, parameter in REQUIRES.items():
        taken = parameter in parameters
        require(taken or not given[name], f"{flag(name)} is not for {kind}.")
        needed = taken and name in NEEDED
        require(given[name] or not needed, f"{flag(name)} must be given for {kind}.")
    require(bool(model.group) == bool(model.groups), "--group and --groups go together.")
    if model.schema is not None:
        given["schema"] = public_columns(model.schema, form.missing_value)
    if model.prior is not None:
        given["prior"] = load_release(model.prior)
    for name in _LISTS:
        given[name] = _labels(flag(name), given[name]) if given[name] else None
    stated = {p: given[n] for p, n in OPTIONS.items() if p in parameters and given[n] is not None}
    if "causes" in estimator_class(kind)._card.takes:
        named = columns.event is not None and not columns.event_is
        message = "--event must name the column of --causes, and --censored-is one other label."
        require(named and len(columns.censored_is) <= 1, message)
        stated["censored"] = columns.censored_is[0] if columns.censored_is else "0"
        if isinstance(stated["causes"][0], int):
            stated["censored"] = _labels("--censored-is", [stated["censored"]])[0]
    return stated


def _target(
    card: Any, columns: SurvivalColumns, model: Model, stated: Mapping[str, Any]
) -> dict[str, Labels]:
    """Return the columns that are no covariates, with their labels if they are text."""
    named = {model.target: stated.get("classes"), model.group: stated.get("groups")}
    if "causes" in card.takes:
        named[columns.event] = [*stated["causes"], stated["censored"]]
    if "classes" in card.takes:
        found = other_columns(None, None, columns.person)
    else:
        found = survival_columns(columns, card.late_entry)
    return found | {name: _texts(labels) for name, labels in named.items() if name and labels}


def _labels(option: str, texts: Sequence[str]) -> list[Any]:
    """Return labels as numbers if all are integers, else as text."""
    labels = SurvivalColumns.labels(option, texts)
    # 01 is text: as a number it would lose its 0.
    if all(label.removeprefix("-").isdecimal() and str(int(label)) == label for label in labels):
        return [int(label) for label in labels]
    return labels


def _texts(labels: Sequence[Any]) -> Labels:
    return tuple(labels) if isinstance(labels[0], str) else None
