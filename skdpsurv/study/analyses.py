"""The analyses of a study, and the rules for their entries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import pandas as pd

from skdpsurv.descriptive.released_moments import features_of
from skdpsurv.dp.checks import boolean, choice, instance, positive, suggestion
from skdpsurv.dp.guarantee import as_json, immutable
from skdpsurv.dp.privacy_cost import Spend
from skdpsurv.study.analysis_kinds import KINDS, StudySetting, column_labels, events_of, require

#: Options that are true or false.
FLAGS = {"scales", "over_time", "ph_test"}
#: Names that are names of files on all systems: Windows has devices of some.
_NAME = re.compile(r"(?!(?:con|prn|aux|nul|com[0-9]|lpt[0-9])$)[a-z][a-z0-9_-]{0,39}")


@dataclass(frozen=True)
class Analysis:
    """One analysis of a study.

    Parameters
    ----------
    kind : str
        One of ``KINDS``.
    name : str
        Name of its release, and of the file that holds it.
    share : float, default=1.0
        Its part of the budget, in proportion to those of others. Shares of evaluations divide
        what the fits cost the people who are not held out.
    options : mapping
        Options of the kind, and parameters of the estimator by their names in Python.
    """

    kind: str
    name: str
    share: float = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        choice(*KINDS)("kind of analyses", self.kind)
        if not (isinstance(self.name, str) and _NAME.fullmatch(self.name)):
            raise ValueError(
                "name of analyses must be a small letter, and up to 39 small letters, digits, - "
                f"and _, and no device of Windows, got {self.name!r}."
            )
        with self.named():
            positive()("share", self.share)
            instance(Mapping, "a table")("options", self.options)
            for key in self.options:
                if key not in (known := KINDS[self.kind].options):
                    raise ValueError(f"no option {key!r}.{suggestion(key, sorted(known))}")
            object.__setattr__(self, "options", immutable("options", self.options))
        object.__setattr__(self, "share", float(self.share))

    @classmethod
    def of_table(cls, table: Any) -> Self:
        """Make an analysis of a table in a file; its kind is its name, unless it has one."""
        instance(Mapping, "a list of tables, [[analyses]]")("analyses", table)
        rest = dict(table)
        kind = rest.pop("kind", None)
        return cls(kind, rest.pop("name", kind), rest.pop("share", 1.0), rest)

    @property
    def table(self) -> dict[str, Any]:
        """The table of a file that makes this analysis."""
        named = {"kind": self.kind, "name": self.name, "share": self.share}
        return {**named, **as_json(self.options)}

    @property
    def by(self) -> str | None:
        """Column whose labels are the groups."""
        return self.options.get("by")

    @property
    def of(self) -> str | None:
        """Name of the other analysis that this one evaluates; None if it is no evaluation."""
        return self.options.get("of")

    def table_of(self, protocol: StudySetting) -> str | None:
        """Return the name of the table by whose means and spreads columns are scaled, if any is.

        It is the first that says them of all columns. None, too, if ``scales`` is false, or the
        schema states all spreads, or ``data_norm`` is a number: nothing would be scaled.
        """
        if "scales" not in KINDS[self.kind].words or not self.options.get("scales", True):
            return None
        own = self.estimator(protocol, Spend(1.0))
        known = own._known_columns()
        if known is None or known.is_complete:
            return None
        names = {one.name for one in own.columns._features()}
        for one in protocol.analyses:
            if one.kind == "table":
                columns = one.estimator(protocol, Spend(1.0)).columns
                if names <= {feature.name for feature in features_of(columns)}:
                    return str(one.name)
        return None

    def estimator(self, protocol: StudySetting, spend: Spend, **earlier: Any) -> Any:
        """Return the estimator, not fitted and without a ledger.

        Parameters
        ----------
        protocol : Protocol
        spend : Spend
            Its epsilon and delta.
        **earlier
            ``model`` of an evaluation, fitted; by default one that is not, for plans. ``scales`` of
            a regression.

        Returns
        -------
        estimator
        """
        kind = KINDS[self.kind]
        chosen = {kind.words.get(key, key): value for key, value in as_json(self.options).items()}
        stated = {key: value for key, value in chosen.items() if key}
        if spend.delta:
            stated["delta"] = spend.delta
        found = kind.settings(self.options, protocol) | earlier
        return kind.estimator(epsilon=spend.epsilon, **stated, **found)

    def arguments(self, protocol: StudySetting, frame: pd.DataFrame) -> dict[str, Any]:
        """Return the keyword arguments of ``fit`` for a frame of raw columns.

        Raises
        ------
        ValueError
            If a group or a class has no public label.
        """
        found = KINDS[self.kind].arguments(self.options, protocol, frame)
        if protocol.person is not None:
            found["person"] = frame[protocol.person]
        if self.has_entry(protocol):
            found["entry"] = frame[protocol.entry]
        return found

    def has_entry(self, protocol: StudySetting) -> bool:
        """Return whether its ``fit`` is given late entries."""
        return protocol.entry is not None and KINDS[self.kind].estimator._card.late_entry

    def check(self, protocol: StudySetting) -> None:
        """Raise ValueError or TypeError for an option that breaks a rule."""
        with self.named():
            names = [kind.column for kind in protocol.kinds]
            for key in ("by", "target"):
                if key in self.options:
                    require(self.options[key] in names, f"{key} must be a described column")
                    column_labels(protocol, self.options[key])
            if "columns" in KINDS[self.kind].options:
                _check_columns(self.options, names)
            if self.kind == "evaluation":
                _check_evaluation(self.options, protocol)
            if "causes" in KINDS[self.kind].estimator._card.takes:
                labels = protocol.event_is and len(protocol.censored_is) == 1
                require(labels, "event_is must hold all causes, and censored_is one label")
            for key in FLAGS & self.options.keys():
                boolean(key, self.options[key])
            if self.options.get("ph_test"):
                intervals = self.options.get("intervals")
                require(intervals, "intervals must be positive, such as 0.3, for ph_test")
            if "cause" in KINDS[self.kind].words:
                _check_cause(self.options, protocol)
            kind = KINDS[self.kind].estimator
            knows = not kind._card.histories or self.has_entry(protocol)
            rule = f"entry must not be stated: {kind.__name__} knows of no late entries"
            require(protocol.entry is None or knows, rule)
            self.estimator(protocol, Spend(1.0))._check_parameters()

    @contextmanager
    def named(self) -> Iterator[None]:
        """Name the analysis in errors that are raised meanwhile."""
        try:
            yield
        except (TypeError, ValueError) as error:
            message = str(error)
            for word, parameter in KINDS[self.kind].words.items():
                message = message.replace(parameter or word, word)
            raise type(error)(f"analysis {self.name!r}: {message}") from None


def _check_evaluation(options: Mapping[str, Any], protocol: StudySetting) -> None:
    kinds = [one.kind for one in protocol.analyses if one.name == options.get("of")]
    of_causes = kinds == ["competing_regression"]
    rule = "of must be the name of a regression of this study"
    require(of_causes or kinds == ["regression"], rule)
    own = [one for one in protocol.event_is if repr(one) == repr(options.get("cause"))]
    known = ", ".join(map(repr, protocol.event_is)) or "none"
    rule = f"cause must be one of event_is, {known}, of a competing_regression alone"
    require(bool(own) if of_causes else "cause" not in options, rule)
    rule = "entry must not be stated with a cause: incidence is counted from 0"
    require(protocol.entry is None or not of_causes, rule)


def _check_columns(options: Mapping[str, Any], names: list[str]) -> None:
    listed = options.get("columns", ("",))
    require(isinstance(listed, tuple) and listed, "columns must be a list of described columns")
    for name in options.get("columns", ()):
        more = "; products go along with their columns" if ":" in str(name) else ""
        require(name in names, f"columns must be described, {name!r} is not{more}")
        require(name != options.get("target"), f"columns must not hold target, {name!r}")


def _check_cause(options: Mapping[str, Any], protocol: StudySetting) -> None:
    known = [*map(repr, protocol.event_is)]  # True is no label 1
    own = {*map(repr, events_of(options, protocol))}
    clear = own and own <= {*known} if "cause" in options else len(known) < 2
    rule = "cause must be one of event_is, {}, or a list of those that count together"
    require(clear, rule.format(", ".join(known) or "none"))


def event_labels(name: str, labels: Any) -> tuple[Any, ...]:
    """Return labels of events: all text, or all integers."""
    kinds = {type(label) for label in labels} if isinstance(labels, list | tuple) else {None}
    if len(kinds) > 1 or not kinds <= {str, int}:
        raise ValueError(f"{name} must be a list of labels, all text or all integers.")
    if len(set(labels)) < len(labels):
        raise ValueError(f"{name} must not hold a label twice.")
    return tuple(labels)
