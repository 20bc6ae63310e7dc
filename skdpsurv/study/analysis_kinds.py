"""Kinds of analyses: their options, their estimators, and what these are fitted to."""

from __future__ import annotations

import inspect
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skdpsurv.base import PrivateEstimator
from skdpsurv.data import PublicColumns
from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.dp.privacy_cost import Spend
from skdpsurv.evaluation.evaluation import Evaluation
from skdpsurv.release import Release

#: Group of records without a label, where its column allows that.
MISSING = "missing"
#: Options of an analysis, by name.
Options = Mapping[str, Any]


class StudySetting(Protocol):
    """The parts of a protocol that analyses depend on."""

    @property
    def columns(self) -> PublicColumns: ...
    @property
    def kinds(self) -> list[ColumnKind]: ...
    @property
    def max_time(self) -> float: ...
    @property
    def time(self) -> str | None: ...
    @property
    def entry(self) -> str | None: ...
    @property
    def event(self) -> str | None: ...
    @property
    def person(self) -> str | None: ...
    @property
    def event_is(self) -> tuple[Any, ...]: ...
    @property
    def censored_is(self) -> tuple[Any, ...]: ...
    @property
    def targets(self) -> set[str]: ...
    @property
    def analyses(self) -> tuple[Any, ...]: ...
    def analysis(self, name: str) -> Any: ...
    def target(self, frame: pd.DataFrame, labels: tuple[Any, ...] = ()) -> pd.DataFrame: ...


def column_labels(protocol: StudySetting, name: str) -> list[Any]:
    """Return the public labels of a column of categories or of truth values."""
    (kind,) = (one for one in protocol.kinds if one.column == name)
    require(kind.labels, f"{name} must be categories, or a boolean")
    labels = list(kind.labels)
    if kind.missing != "error":
        labels = [*map(str, labels), MISSING]
    require(labels.count(MISSING) < 2, f"{name} must not have a category {MISSING!r}")
    return labels


def labels_of(protocol: StudySetting, name: str, frame: pd.DataFrame) -> NDArray[Any]:
    """Return the label of each record in a column, after refusing cells that have none."""
    (kind,) = (one for one in protocol.kinds if one.column == name)
    labels = column_labels(protocol, name)
    # A missing cell is in the last group.
    return np.array(labels)[np.nan_to_num(kind.read(frame[name]), nan=-1.0).astype(np.intp)]


def described(options: Options, protocol: StudySetting) -> PublicColumns:
    """Return the columns of an analysis: those it names, or all but the classes of classifiers.

    Interactions are among them if both of their columns are. With ``over_time = false`` effects do
    not change; with ``ph_test`` those that would not change do, with the logarithm of time.
    """
    every = [kind.column for kind in protocol.kinds if kind.column not in protocol.targets]
    names, stated = options.get("columns", every), protocol.columns._described()
    kept = [
        table
        for table in stated["columns"]
        if {*table.get("interaction", [table["name"]])} <= {*names}
    ]
    if not options.get("over_time", True):
        kept = [{key: table[key] for key in table if key != "over_time"} for table in kept]
    if options.get("ph_test"):
        kept = [t if "interaction" in t else {"over_time": "log"} | t for t in kept]
    return PublicColumns(**{**stated, "columns": kept})


def events_of(options: Options, protocol: StudySetting) -> tuple[Any, ...]:
    """Return the labels that count as the event of an analysis: its cause, or all of them."""
    cause = options.get("cause", protocol.event_is)
    return cause if isinstance(cause, tuple) else (cause,)


def require(holds: object, rule: str) -> None:
    if not holds:
        raise ValueError(f"{rule}.")


# ---- Parameters of estimators, and arguments of ``fit``.


def _classes(options: Options, protocol: StudySetting) -> list[Any]:
    """Return the labels of the column of classes."""
    target = options.get("target")
    require(target, "target must be given: the column of classes")
    (kind,) = (one for one in protocol.kinds if one.column == target)
    require(kind.missing == "error", f"{target} must not have missing values, as a target")
    return column_labels(protocol, str(target))


#: Parameters of estimators that follow from a protocol, so that options may not set them.
_FOLLOWING: Mapping[str, Callable[[Options, StudySetting], Any]] = {
    "max_time": lambda _, protocol: protocol.max_time,
    "groups": lambda own, protocol: own.get("by") and column_labels(protocol, own["by"]),
    "causes": lambda _, protocol: list(protocol.event_is),
    "censored": lambda _, protocol: protocol.censored_is[0],
    "columns": described,
    "classes": _classes,
    "model": lambda own, study: study.analysis(str(own.get("of"))).estimator(study, Spend(1.0)),
}
#: Other parameters that the options of an analysis may not set.
_SETTLED = {"epsilon", "delta", "prior", "scales", "random_state", "accountant", "inference_share"}


def _taken(
    what: str, options: Options, protocol: StudySetting, frame: pd.DataFrame
) -> dict[str, Any]:
    """Return the arguments of ``fit`` for what an estimator takes."""
    by, target = options.get("by"), options.get("target")
    match what:
        case "rows":
            return {"X": frame[described(options, protocol)._names()]}
        case "times":
            return {"y": protocol.target(frame, events_of(options, protocol))}
        case "causes":
            return {"y": frame[[protocol.event, protocol.time]]}
        case "classes":
            cells = labels_of(protocol, str(target), frame)
            return {"y": pd.Series(cells, index=frame.index, name=target)}
        case "group":
            return {} if by is None else {"group": labels_of(protocol, by, frame)}
    return dict(protocol.analysis(options["of"]).arguments(protocol, frame))


@dataclass(frozen=True)
class Kind:
    """A kind of analysis: its options follow from the parameters and the card of its estimator."""

    estimator: type[PrivateEstimator]

    @cached_property
    def parameters(self) -> set[str]:
        """Names of the parameters of the estimator."""
        return {*inspect.signature(self.estimator).parameters}

    @cached_property
    def words(self) -> dict[str, str]:
        """Own options, and the parameter that each sets; "" where it decides of others."""
        takes, has = self.estimator._card.takes, self.parameters
        own = {
            "by": "groups" in has,
            "columns": "rows" in takes,
            "intervals": "inference_share" in has,
            "cause": {"rows", "times"} <= {*takes},
            "target": "classes" in takes,
            "scales": "scales" in has,
            "of": "model" in takes,
            "over_time": {"columns", "max_time"} <= has,
            "ph_test": hasattr(self.estimator, "proportional_hazards_test"),
        }
        return {word: "inference_share" * (word == "intervals") for word in own if own[word]}

    @property
    def options(self) -> set[str]:
        """Names of all options."""
        return {*self.words} | self.parameters - _FOLLOWING.keys() - _SETTLED

    def settings(self, options: Options, protocol: StudySetting) -> dict[str, Any]:
        """Return the parameters that follow from the protocol."""
        options, names = self._stated(options, protocol), _FOLLOWING.keys() & self.parameters
        return {name: _FOLLOWING[name](options, protocol) for name in names}

    def arguments(
        self, options: Options, protocol: StudySetting, frame: pd.DataFrame
    ) -> dict[str, Any]:
        """Return the arguments of ``fit``."""
        options, takes = self._stated(options, protocol), self.estimator._card.takes
        each = [_taken(what, options, protocol, frame) for what in takes]
        return dict(ChainMap(*each))

    def _stated(self, options: Options, protocol: StudySetting) -> Options:
        """Return the options; a table has all columns by default, and always that of its groups."""
        if self.estimator._card.takes != ("rows",):
            return options
        names = options.get("columns", [kind.column for kind in protocol.kinds])
        return {**options, "columns": {*names, options.get("by")}}


#: Kinds of analyses by their words.
KINDS = {word: Kind(one) for word, one in Release.kinds.named("analysis").items()}
KINDS["evaluation"] = Kind(Evaluation)
