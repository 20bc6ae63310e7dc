"""One order for every fit: places, ledger, columns, plan; then records, charge, release."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from rich.console import Console

from skdpsurv.base import PrivateEstimator
from skdpsurv.cli.columns_file import missing_texts
from skdpsurv.cli.failures import CommandError, note
from skdpsurv.cli.files import Table, column_names, read_table, require_columns
from skdpsurv.cli.options import FileFormat, Settings, Spending
from skdpsurv.cli.printing import Printed, show, show_saved
from skdpsurv.cli.results import result_lines
from skdpsurv.cli.saving import reserve, save_or_print
from skdpsurv.cli.spending import ledger_line, ledger_state, open_ledger, promise_line
from skdpsurv.cli.targets import split_names
from skdpsurv.forecast.delta import gain_of_delta
from skdpsurv.other_names import instead_of
from skdpsurv.preprocessing.encoding import columns_beyond
from skdpsurv.privacy import PrivacyGuarantee
from skdpsurv.privacy.guarantee import PERSON

__all__ = ["Job", "fit_and_save", "make", "reading", "working"]

#: Beyond, an attacker's guess may be right in all but one case in twenty thousand.
LARGE = 10.0


@dataclass(frozen=True)
class Job:
    """What a command fits to what.

    Parameters
    ----------
    kind : type
        Of the estimator.
    stated : mapping
        Its parameters, as the command's options state them.
    used : tuple of str
        Columns of the file that go into the fit.
    labels : mapping of str to sequence of str
        Those of them that are text, and which labels they have.
    arguments : callable
        Of the table that was read; returns the arguments of ``fit``.
    target : tuple of str
        Those of them that are no covariates.
    drop : tuple of str
        Columns of the file that are left out.
    whole : bool, default=False
        Whether the file may have other columns, which no model of rows would want.
    strict : bool, default=False
        Whether values beyond public bounds are refused.
    """

    kind: type[PrivateEstimator]
    stated: Mapping[str, Any]
    used: tuple[str, ...]
    labels: Mapping[str, Sequence[str]]
    arguments: Callable[[Any], Mapping[str, Any]]
    target: tuple[str, ...]
    drop: tuple[str, ...] = ()
    whole: bool = False
    strict: bool = False
    #: Options of the command that set a parameter of the estimator.
    options: Mapping[str, str] = field(default_factory=dict)


def make(
    kind: type[PrivateEstimator],
    stated: Mapping[str, Any],
    settings: Settings,
    options: Mapping[str, str],
) -> PrivateEstimator:
    """Return the estimator, not fitted.

    Parameters
    ----------
    kind : type
    stated : mapping
        Parameters that are settled.
    settings : Settings
    options : mapping of str to str
        Which of the others have an option of their own.

    Raises
    ------
    CommandError
        If ``--set`` names what is no parameter, or what has an option of its own.
    """
    return kind(**{**_settings(kind, stated, settings.set_, options), **stated})


def fit_and_save(
    job: Job,
    data: Path,
    form: FileFormat,
    spending: Spending,
    settings: Settings,
    out: Path,
    as_json: bool,
) -> None:
    """Fit what a job says, write the release, and say so.

    Raises
    ------
    CommandError
        Before anything is spent, unless it says otherwise.
    """
    if not spending.dry_run:
        reserve(out)
    if spending.epsilon > LARGE:
        note(f"skdpsurv: warning: an epsilon of {spending.epsilon:g} promises next to nothing.")
    estimator = make(job.kind, job.stated, settings, job.options)
    estimator._check_parameters()
    names = column_names(data, form)
    job = replace(job, drop=tuple(split_names(job.drop, names)))
    _check_columns(data, names, job)
    estimator.accountant = open_ledger(spending)
    if job.strict and (form.dask or _charges_refusals(estimator)):
        raise CommandError(
            "parameter",
            "--strict is for files in memory, and for ledgers that do not charge refusals.",
        )
    used = tuple(name for name in names if name in job.used)
    table = Table(data, used, job.labels, job.target, missing_texts(job.stated.get("columns")))
    with reading(estimator, spending.dry_run, as_json):
        frame = read_table(table, form)
    if not form.dask and not len(frame):
        raise CommandError("data", f"{data} must have at least one row below its names.")
    arguments = job.arguments(frame)
    if spending.dry_run:
        with working("Planning", as_json):
            guarantee = estimator._promised(**{"X": None, **arguments})
        show(_rehearsed(estimator, guarantee), as_json)
        return
    if job.strict:
        _refuse_beyond(estimator, arguments["X"], data)
    with working("Fitting", as_json):
        estimator.fit(**arguments)
    save_or_print(estimator.release_.to_json(indent=2) + "\n", out)
    show_saved(_done(estimator, out), as_json, out)


@contextmanager
def reading(estimator: PrivateEstimator, rehearsed: bool, as_json: bool = False) -> Iterator[None]:
    """Show that a file is being read, for a fit whose parameters were checked.

    The ledger is asked before; a file that is refused for what its records hold is charged where
    refusals are, unless this is a rehearsal.
    """
    status = estimator._status(None)
    estimator._room_beforehand(status)
    fit = estimator._without_ledger() if rehearsed else estimator
    with fit._refusals_charged(status), working("Reading", as_json):
        yield


@contextmanager
def working(what: str, as_json: bool = False) -> Iterator[None]:
    """Show that work is going on, where somebody looks at a terminal."""
    if as_json:
        yield
        return
    with Console(stderr=True).status(what):
        yield


def _settings(
    kind: type[PrivateEstimator],
    stated: Mapping[str, Any],
    pairs: Sequence[str],
    options: Mapping[str, str],
) -> dict[str, Any]:
    of_methods: dict[str, list[str]] = {}
    for word, method in kind._methods.items():
        for name in inspect.signature(method).parameters:
            of_methods.setdefault(f"method__{name}", []).append(word)
    allowed = {*inspect.signature(kind).parameters, *of_methods}
    allowed -= {"accountant", "verbose", "method__verbose"}
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equal, text = pair.partition("=")
        if not equal or not pair.isprintable():
            raise CommandError("parameter", f"--set must be NAME=VALUE, got {pair!r}.")
        if name in options:
            raise CommandError("parameter", f"--set {name}: use {options[name]}.")
        if name not in allowed or name in stated:
            free = sorted(allowed - set(stated))
            raise CommandError(
                "parameter", f"--set must name one of {', '.join(free)}.{instead_of(name, allowed)}"
            )
        found[name] = _value(text)
    nested = {name: found.pop(name) for name in set(found) & set(of_methods)}
    word = found.get("method", "auto")
    for name in nested:
        if word not in of_methods[name]:
            raise CommandError(
                "parameter", f"--set {name} must go with --set method={of_methods[name][0]}."
            )
    if nested:
        method = kind._methods[word]
        found["method"] = method(**{n.partition("__")[2]: value for n, value in nested.items()})
    return found


def _value(text: str) -> Any:
    """Return a value as TOML has it; what is none is text, and none is None."""
    if text.lower() == "none":
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _check_columns(data: Path, names: Sequence[str], job: Job) -> None:
    require_columns(data, (*job.used, *job.drop), names)
    if job.whole:
        return
    if both := [name for name in job.drop if name in job.used]:
        raise CommandError("parameter", f"--drop must not name a column in use: {', '.join(both)}.")
    if extra := [name for name in names if name not in (*job.used, *job.drop)]:
        raise CommandError(
            "description",
            f"the schema must describe {', '.join(extra)}; or leave such columns out with --drop.",
        )


def _charges_refusals(estimator: PrivateEstimator) -> bool:
    return estimator.accountant is not None and estimator.accountant.charge_refusals


def _refuse_beyond(estimator: Any, rows: Any, data: Path) -> None:
    """Refuse values beyond the bounds of their columns, as missing ones are refused: by column."""
    names = list(rows.columns)
    if beyond := columns_beyond(estimator.columns, rows, len(names), names):
        raise CommandError(
            "data",
            f"{data} must be within the bounds of the schema with --strict, and "
            f"{', '.join(beyond)} is not: --missing-value names what means missing.",
        )


def _how_many(guarantee: PrivacyGuarantee) -> str:
    whom = "people" if guarantee.neighbours == PERSON else "records"
    return f"{guarantee.public_inputs['n_records']:,} {whom}"


def _gain(estimator: Any, guarantee: PrivacyGuarantee) -> list[str]:
    """Return what a delta would gain, if it would."""
    columns = getattr(estimator, "columns", None)
    if columns is None:
        return []
    n_records: Any = guarantee.public_inputs["n_records"]
    n_features = len(columns.get_feature_names_out())
    said = gain_of_delta(estimator, n_records, n_features, [estimator.epsilon])
    return [said] if said else []


def _rehearsed(estimator: PrivateEstimator, guarantee: PrivacyGuarantee) -> Printed:
    name = type(estimator).__name__
    return Printed(
        {
            "dry_run": True,
            "estimator": name,
            "guarantee": guarantee.to_dict(),
            "ledger": ledger_state(estimator.accountant),
        },
        [
            f"A {name} of {_how_many(guarantee)} would be charged {promise_line(guarantee)}.",
            f"How: {guarantee.mechanism}",
            *_gain(estimator, guarantee),
            f"Ledger: {ledger_line(estimator.accountant)}",
            "Nothing was spent.",
        ],
    )


def _done(estimator: PrivateEstimator, out: Path) -> Printed:
    guarantee = estimator.guarantee_
    name = type(estimator).__name__
    return Printed(
        {
            "release": str(out.resolve()),
            "estimator": name,
            "guarantee": guarantee.to_dict(),
            "ledger": ledger_state(estimator.accountant),
        },
        chain(
            [f"{name}: {_how_many(guarantee)}, {promise_line(guarantee)}"],
            result_lines(estimator.release_),
            [
                *_gain(estimator, guarantee),
                f"Release: {out}",
                f"Ledger: {ledger_line(estimator.accountant)}",
                f"Next: skdpsurv explain {out} --html report.html",
            ],
        ),
    )
