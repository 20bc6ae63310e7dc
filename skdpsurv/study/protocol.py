"""The protocol of a study: all that decides what is published, and what it costs."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Any, Self

import pandas as pd

from skdpsurv.data import PublicColumns
from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.data.dates import DateColumns
from skdpsurv.data.histories import UNSTATED, Columns, checked_events, read_columns
from skdpsurv.dp.appetite import RiskAppetite
from skdpsurv.dp.budget import dataset_name, text
from skdpsurv.dp.checks import instance, integer, number_in, optional, positive, suggestion
from skdpsurv.dp.guarantee import PrivacyGuarantee, as_json
from skdpsurv.dp.input_errors import InputValueError
from skdpsurv.dp.ledger_storage import database_url
from skdpsurv.dp.privacy_cost import remaining_budget
from skdpsurv.study.analyses import Analysis, event_labels
from skdpsurv.study.analysis_kinds import events_of

#: Tables of the file, with the keys of each; those of the first are at its top.
TABLES = {
    "": ("title", "dataset", "owner", "purpose", "n_people", "evaluation_share"),
    "outcome": (
        *("time", "event", "event_is", "censored_is", "person", "max_time", "unit", "entry"),
        *("entry_date", "exit_date", "origin_date", "date_format"),
    ),
    "budget": ("epsilon", "delta", "reserve", "ledger", "appetite"),
}
#: Keys that a file must have.
NEEDED = ("title", "dataset", "owner", "purpose", "time", "max_time", "epsilon")
#: Parameters of ``DateColumns``, and the keys that state them.
_DATES = {**{name: f"{name}_date" for name in ("entry", "exit", "origin")}, "format": "date_format"}
#: Layout of the canonical text.
LAYOUT = 1

_RULES = {
    "max_time": positive(),
    "epsilon": positive(),
    "delta": number_in(0.0, 1.0, closed="left"),
    "reserve": number_in(0.0, float("inf"), closed="left"),
    "evaluation_share": number_in(0.0, 1.0, closed="left"),
    "n_people": optional(integer(2)),
    "columns": instance(PublicColumns),
    "time": instance(str, "the name of a column"),
    "event": optional(instance(str, "the name of a column")),
    "person": optional(instance(str, "the name of a column")),
    "entry": optional(instance(str, "the name of a column")),
    "dates": optional(instance(DateColumns)),
    "ledger": optional(instance(str, "a file, or postgresql://user@host/database")),
    "appetite": optional(instance(RiskAppetite)),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Protocol:
    """The public protocol of a study.

    Parameters
    ----------
    title, owner, purpose : str
        What is studied, by whom, and why. None may be empty.
    dataset : str
        Name of the data set in the ledger.
    columns : PublicColumns
        The raw columns of the records, but for time, event and person.
    time : str or None
        Column of times, from a common start to the event or to censoring; None with ``dates``.
    event : str or None
        Column of events; None if all are observed.
    max_time : float
        Public horizon.
    epsilon : float
        The most that the study may ever cost.
    analyses : tuple of Analysis
    person : str or None, default=None
        Column that names whose record it is: people are protected, and the first record of each
        is used. None: nobody has two records.
    event_is, censored_is : tuple, default=()
        Labels in the column of events; none for 1 and 0.
    unit : str, default=""
        Unit of times.
    delta : float, default=0.0
        Probability with which the bound by epsilon may fail. Noise may be Gaussian then.
    ledger : str or None, default=None
        Ledger that is charged: a file, or postgresql://user@host/database. A relative path starts
        where the program runs.
    reserve : float, default=0.0
        Part of epsilon that is kept back, to run analyses again that a crash lost.
    evaluation_share : float, default=0.0
        Share of people who are held out, to evaluate models.
    n_people : int or None, default=None
        Number of people, if the protocol is for no other one.
    entry : str or None, default=None
        Column of late entries, on the scale of ``time``. Analyses that know of none are refused.
    dates : DateColumns or None, default=None
        Columns of dates of which times, and entries if there is an origin, follow. ``unit`` is
        theirs.
    appetite : RiskAppetite or None, default=None
        What the environment lets be charged, to the study and by its ledger.

    Raises
    ------
    ValueError, TypeError
        If an entry breaks a rule; the message names both.
    AppetiteError
        If the appetite does not allow the epsilon or the delta.
    """

    title: str
    dataset: str
    owner: str
    purpose: str
    columns: PublicColumns
    time: str | None
    event: str | None
    max_time: float
    epsilon: float
    analyses: tuple[Analysis, ...]
    person: str | None = None
    event_is: tuple[Any, ...] = ()
    censored_is: tuple[Any, ...] = ()
    unit: str = ""
    delta: float = 0.0
    ledger: str | None = None
    reserve: float = 0.0
    evaluation_share: float = 0.0
    n_people: int | None = None
    entry: str | None = None
    dates: DateColumns | None = None
    appetite: RiskAppetite | None = None

    def __post_init__(self) -> None:
        for name in ("title", "owner", "purpose"):
            _require(bool(text(name, getattr(self, name)).strip()), name, "be text, and not empty")
        text("unit", self.unit)
        optional(instance(DateColumns))("dates", self.dates)
        if self.dates is not None:
            for name, own in {"entry": None, **self.dates.times, "unit": self.dates.unit}.items():
                # As a copy of a protocol states them.
                free = getattr(self, name) in (None, "", own)
                _require(free, name, "not be given beside dates, of which it follows")
                object.__setattr__(self, name, own)
        for name, rule in _RULES.items():
            rule(name, getattr(self, name))
        plain: dict[str, Any] = {"dataset": dataset_name(self.dataset)}
        for name in ("max_time", "epsilon", "delta", "reserve", "evaluation_share"):
            plain[name] = float(getattr(self, name)) + 0.0
        plain |= {name: event_labels(name, getattr(self, name)) for name in _LABELS}
        plain["analyses"] = tuple(self.analyses)
        self.columns._check()
        plain["columns"] = PublicColumns(**self.columns._described())  # nobody else's
        for name, value in plain.items():
            object.__setattr__(self, name, value)  # frozen, also to its own __post_init__
        self._check_outcome()
        self._check_budget()
        self._check_analyses()

    def _check_outcome(self) -> None:
        dated = [] if self.dates is None else self.dates.columns
        of_people = self.event, self.person
        for name in dated:
            _require(name not in of_people, "dates", f"not name {name}, which is no date")
        named = self.time, self.entry, *of_people, *dated
        others = [name for name in named if name is not None]
        for name in others:
            both = [kind.column for kind in self.kinds if kind.column == name]
            _require(not both, "columns", f"not describe {name}, which is no covariate")
        self._outcome.check()

    def _check_budget(self) -> None:
        _require(self.reserve < self.epsilon, "reserve", "be less than epsilon")
        if self.ledger is not None:
            _require(bool(text("ledger", self.ledger).strip()), "ledger", "be a file or an address")
        if self.ledger is not None and "://" in self.ledger:
            database_url(self.ledger)  # without a password, as the protocol is published
        if self.appetite is not None:
            self.appetite.require(PrivacyGuarantee(self.epsilon, self.delta))
        rule = "be 0 with a delta: what is charged again would need a delta of its own"
        _require(not (self.reserve and self.delta), "reserve", rule)

    def _check_analyses(self) -> None:
        _require(bool(self.analyses), "analyses", "hold at least one")
        names = [one.name for one in self.analyses]
        for name in names:
            _require(names.count(name) == 1, "analyses", f"have names of their own, got two {name}")
        for one in self.analyses:
            one.check(self)
        groups = {one.by for one in self.analyses if one.options.get("by_is_public")}
        _require(len(groups) < 2, "by_is_public", "be said of one column alone")
        evaluated = any(one.of for one in self.analyses)
        rule = "be a share of people in (0, 1) with an evaluation, and 0 without one"
        _require(evaluated == (self.evaluation_share > 0.0), "evaluation_share", rule)

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> Self:
        """Read a protocol from a TOML file.

        Parameters
        ----------
        path : str or path
            A file such as::

                title = "Survival after diagnosis"
                dataset = "registry-2026"
                owner = "A. Person, Registry"
                purpose = "Protocol 17/2026"
                schema = "columns.toml"  # beside this file: PublicColumns.from_toml reads it
                evaluation_share = 0.25

                [outcome]
                time = "days"
                event = "died"
                person = "id"
                max_time = 3650
                unit = "days"

                [budget]
                epsilon = 2.0
                ledger = "registry.sqlite"
                appetite = "appetite.toml"  # optional, beside this file: RiskAppetite.from_toml

                [[analyses]]
                kind = "curves"
                by = "stage"

                [[analyses]]
                kind = "regression"
                share = 2
                intervals = 0.3

                [[analyses]]
                kind = "evaluation"
                of = "regression"

        Returns
        -------
        Protocol

        Raises
        ------
        ValueError
            If the file breaks a rule; the message names both. Nothing is read but this file, the
            description of columns, and the risk appetite.
        OSError
            If one of them cannot be read.
        """
        content = Path(path).read_bytes()
        try:
            stated = tomllib.loads(content.decode())
            if "columns" in stated:
                raise ValueError("columns belong into the file that schema names.")
            schema = stated.pop("schema", None)
            instance(str, "the name of a file that describes the columns")("schema", schema)
            columns = PublicColumns.from_toml(Path(path).parent / schema)
            budget = stated.get("budget")
            if isinstance(budget, dict) and "appetite" in budget:
                name = instance(str, "the name of a file")("appetite", budget["appetite"])
                budget["appetite"] = asdict(RiskAppetite.from_toml(Path(path).parent / name))
            return cls._of(stated, columns)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"{path}: {error}") from None

    @classmethod
    def from_text(cls, content: str) -> Self:
        """Read a protocol from its canonical text, :attr:`text`."""
        stated = json.loads(content)
        if stated.pop("layout", None) != LAYOUT:
            raise ValueError(f"the protocol must have layout {LAYOUT}.")
        return cls._of(stated, PublicColumns(**stated.pop("columns")))

    @classmethod
    def _of(cls, stated: Mapping[str, Any], columns: PublicColumns) -> Self:
        """Make a protocol of tables, after refusing unknown keys and missing ones."""
        tables: dict[str, Any] = {"": dict(stated)}
        analyses = tables[""].pop("analyses", [])
        tables |= {name: tables[""].pop(name, {}) for name in TABLES if name}
        found: dict[str, Any] = {}
        for name, keys in TABLES.items():
            instance(Mapping, "a table")(name, tables[name])
            _refuse_unknown(name or "a protocol", tables[name], keys)
            found |= tables[name]
        stated_dates = {
            name: found.pop(key) for name, key in _DATES.items() if found.get(key) is not None
        }
        if stated_dates:
            for name in ("entry", "exit"):
                _require(name in stated_dates, _DATES[name], "be given with dates")
            _require(found.get("unit"), "unit", "be given with dates: days, months or years")
            found["dates"] = DateColumns(**stated_dates, unit=found["unit"])
            found.setdefault("time", None)
        if found.get("appetite") is not None:
            found["appetite"] = RiskAppetite(**found["appetite"])
        for key in NEEDED:
            (table,) = (name for name, keys in TABLES.items() if key in keys)
            _require(key in found, key, f"be given, {f'in [{table}]' if table else 'at the top'}")
        instance(list, "a list of tables, [[analyses]]")("analyses", analyses)
        listed = tuple(map(Analysis.of_table, analyses))
        return cls(**{"event": None, **found}, columns=columns, analyses=listed)

    @cached_property
    def text(self) -> str:
        """The canonical text: JSON, with the columns in place of their file."""
        stated = {f.name: as_json(getattr(self, f.name)) for f in fields(self) if f.name != "dates"}
        if self.dates is not None:  # of which these follow
            stated |= {"time": None, "entry": None}
            stated |= {key: getattr(self.dates, name) for name, key in _DATES.items()}
        if self.appetite is not None:
            stated["appetite"] = asdict(self.appetite)
        # Keys of later versions stand there only where they say something: hashes stay.
        later = "time", "entry", *_DATES.values(), "appetite"
        unsaid = [key for key in later if not stated.get(key)]
        found = {key: stated[key] for key in TABLES[""]}
        for name in filter(None, TABLES):
            found[name] = {key: stated[key] for key in TABLES[name] if key not in unsaid}
        found |= {"analyses": [one.table for one in self.analyses], "layout": LAYOUT}
        found["columns"] = self.columns._described()
        return json.dumps(found, sort_keys=True, indent=1, ensure_ascii=False) + "\n"

    @cached_property
    def sha256(self) -> str:
        """Hash of the canonical text: of all that the protocol states, and no signature.

        What it leaves to defaults is settled by the version of the program, which the journal has.
        """
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def kinds(self) -> list[ColumnKind]:
        """The described columns."""
        return self.columns._kinds()

    @property
    def targets(self) -> set[str]:
        """Columns of classes, which are no covariates unless they are named."""
        return {one.options["target"] for one in self.analyses if "target" in one.options}

    @cached_property
    def needs(self) -> dict[str, str | None]:
        """By the name of an analysis, that of the model or the table that is released before it."""
        return {one.name: one.of or one.table_of(self) for one in self.analyses}

    @property
    def in_order(self) -> list[Analysis]:
        """The analyses as they run: each after the one that it needs."""
        needs = self.needs
        return sorted(self.analyses, key=lambda one: (bool(one.of), bool(needs[one.name])))

    @property
    def first_epsilon(self) -> float:
        """Epsilon of the first charge: what is not kept back."""
        return remaining_budget(self.epsilon, self.reserve)

    def analysis(self, name: str) -> Analysis:
        """Return the analysis of a name."""
        return {one.name: one for one in self.analyses}[name]

    def stated(self, analysis: Analysis) -> dict[str, Any]:
        """Return the statements of a release about its study: public, as JSON has them."""
        model = analysis if analysis.of is None else self.analysis(analysis.of)
        labels = list(events_of(model.options, self) or (1,))
        return {
            **{name: getattr(self, name) for name in ("title", "dataset", "time", "unit", "event")},
            "protocol_sha256": self.sha256,
            "analysis": analysis.name,
            "kind": analysis.kind,
            **{name: model.options.get(name) for name in ("by", "target")},
            "evaluates": analysis.of,
            "evaluated_by": [one.name for one in self.analyses if one.of == analysis.name],
            "event_is": labels,
            "censored_is": list(self.censored_is or (0,)),
            "other_events": [label for label in self.event_is if label not in labels],
        }

    @property
    def _outcome(self) -> Columns:
        """The columns that hold histories."""
        labels = self.event_is, self.censored_is
        return Columns(self.time, self.event, self.person, *labels, self.entry)

    def target(self, frame: pd.DataFrame, labels: tuple[Any, ...] = ()) -> pd.DataFrame:
        """Return events and times for ``fit``, under the names of their columns.

        Labels of events become true, those of censored records false. ``labels`` are those of the
        events that count, if not all do: the others become false, too.

        Raises
        ------
        ValueError
            If an event or a time is none; the message names the column.
        """
        event: Any = None if self.event is None else self._outcome.events(frame, labels)
        words = f"{self.time}, the column of times,", f"{self.event}, the column of events,"
        if self.event_is and (event == UNSTATED).any():
            raise InputValueError(
                f"{words[1]} must hold labels of event_is and censored_is alone. Case and spaces "
                "count."
            )
        hint = "event_is and censored_is state other labels."
        seen = read_columns(frame[self.time], event, words, partial(checked_events, hint=hint))
        found = pd.DataFrame({"event": seen.cause, "time": seen.exit}, index=frame.index)
        return found if self.event is None else found.set_axis([self.event, self.time], axis=1)


_LABELS = ("event_is", "censored_is")


def _require(holds: object, name: str, rule: str) -> None:
    if not holds:
        raise ValueError(f"{name} must {rule}.")


def _refuse_unknown(where: str, given: Collection[str], known: Collection[str]) -> None:
    for key in given:
        if key not in known:
            raise ValueError(f"{where} has no key {key!r}.{suggestion(key, known)}")
