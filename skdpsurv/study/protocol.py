"""The protocol of a study: all that decides what is published, and what it costs."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Self

import pandas as pd

from skdpsurv.data import PublicColumns
from skdpsurv.data.column_kinds import ColumnKind
from skdpsurv.dp.guarantee import FrozenMapping
from skdpsurv.study.analyses import Analysis


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """The public protocol of a study.

    Parameters
    ----------
    title, owner, purpose : str
    dataset : str
        Name of the data set in the ledger.
    columns : PublicColumns
        All raw columns of the records, but for time, event and person.
    time : str
    event : str or None
        None: all events are observed.
    event_is, censored_is : tuple of str
        Labels of the event column; none: 1 and 0.
    person : str or None
    max_time : float
    unit : str
        Unit of times.
    epsilon, delta : float
    ledger : str or None
    reserve : float
        Part of epsilon that is kept back, to charge analyses again that a crash lost.
    evaluation_share : float
        Share of people who are held out for evaluations.
    analyses : tuple of Analysis
    """

    title: str
    dataset: str
    owner: str
    purpose: str
    columns: PublicColumns
    time: str
    event: str | None
    max_time: float
    epsilon: float
    analyses: tuple[Analysis, ...]
    person: str | None = None
    event_is: tuple[str, ...] = ()
    censored_is: tuple[str, ...] = ()
    unit: str = ""
    delta: float = 0.0
    ledger: str | None = None
    reserve: float = 0.0
    evaluation_share: float = 0.0

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> Self:
        """Read a protocol from a TOML file."""
        content = tomllib.loads(Path(path).read_bytes().decode())
        outcome, budget = content.pop("outcome"), content.pop("budget")
        schema = Path(path).parent / content.pop("schema")
        analyses = tuple(
            Analysis(
                table.pop("name", table["kind"]),
                table.pop("kind"),
                table.pop("share", None if table.get("of") else 1.0),
                FrozenMapping(table),
            )
            for table in content.pop("analyses")
        )
        tuples: dict[str, Any] = {k: tuple(outcome.pop(k, ())) for k in ("event_is", "censored_is")}
        columns = PublicColumns.from_toml(schema)
        return cls(columns=columns, analyses=analyses, **outcome, **tuples, **budget, **content)

    @cached_property
    def text(self) -> str:
        """The canonical text, as JSON."""
        stated = {f.name: getattr(self, f.name) for f in fields(self)}
        stated["columns"] = self.columns._described()
        stated["analyses"] = [{**vars(one), "options": dict(one.options)} for one in self.analyses]
        return json.dumps(stated, sort_keys=True, indent=1, ensure_ascii=False, default=list) + "\n"

    @cached_property
    def sha256(self) -> str:
        """Hash of the canonical text. It is no signature."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def kinds(self) -> list[ColumnKind]:
        """The columns, as described."""
        return self.columns._kinds()

    def analysis(self, name: str) -> Analysis:
        """Return the analysis of a name."""
        (found,) = (one for one in self.analyses if one.name == name)
        return found

    def target(self, frame: pd.DataFrame) -> Any:
        """Return events and times for ``fit``, or times alone if all are events.

        Labels of events become 1, those of censored records 0, and others NaN, which fit refuses.
        """
        if self.event is None:
            return frame[self.time]
        event = frame[self.event]
        flags: Mapping[Any, float] = {
            **dict.fromkeys(self.event_is, 1.0),
            **dict.fromkeys(self.censored_is, 0.0),
        }
        if flags:
            event = event.map(flags.get).astype(float)
        return pd.DataFrame({"event": event, "time": frame[self.time]})
