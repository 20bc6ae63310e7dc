"""Kinds of analyses: their options, their estimators, and what these are fitted to."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skdpsurv.base import PrivateEstimator
from skdpsurv.classification import DPLogisticRegression
from skdpsurv.data import PublicColumns
from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.descriptive import DPTableOne
from skdpsurv.dp.privacy_cost import Spend
from skdpsurv.evaluation.evaluation import Evaluation
from skdpsurv.survival import (
    DPAalenJohansenFitter,
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPWeibullFitter,
)

#: Parameters of estimators that follow from the rest of a protocol, or that it may not set.
_SETTLED = {
    *("epsilon", "delta", "max_time", "columns", "classes", "causes", "censored", "groups"),
    *("model", "prior", "random_state", "accountant", "inference_share"),
}
#: Group of records without a label, where its column allows that.
MISSING = "missing"
#: Options of an analysis, by name.
Options = Mapping[str, Any]


class StudySetting(Protocol):
    """What an analysis must know of the protocol of its study."""

    @property
    def columns(self) -> PublicColumns: ...
    @property
    def kinds(self) -> list[ColumnKind]: ...
    @property
    def max_time(self) -> float: ...
    @property
    def time(self) -> str: ...
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


def covariates(options: Options, protocol: StudySetting) -> list[str]:
    """Return the columns of an analysis: those it names, or all but the classes of classifiers."""
    names = [kind.column for kind in protocol.kinds if kind.column not in protocol.targets]
    return list(options.get("columns", names))


def described(options: Options, protocol: StudySetting) -> PublicColumns:
    """Return the description of the columns of an analysis, in the order of the protocol."""
    return columns_of(protocol, covariates(options, protocol))


def columns_of(protocol: StudySetting, names: Collection[object]) -> PublicColumns:
    """Return the description of some columns, in the order of the protocol."""
    stated = protocol.columns._described()
    kept = [table for table in stated["columns"] if table["name"] in names]
    return PublicColumns(**{**stated, "columns": kept})


def events_of(options: Options, protocol: StudySetting) -> tuple[Any, ...]:
    """Return the labels that count as the event of an analysis: its cause, or all of them."""
    cause = options.get("cause", protocol.event_is)
    return cause if isinstance(cause, tuple) else (cause,)


def require(holds: object, rule: str) -> None:
    if not holds:
        raise ValueError(f"{rule}.")


# ---- Parameters of estimators, and arguments of ``fit``.


def _horizon(options: Options, protocol: StudySetting) -> dict[str, Any]:
    return {"max_time": protocol.max_time}


def _groups(options: Options, protocol: StudySetting) -> dict[str, Any]:
    by = options.get("by")
    groups = {} if by is None else {"groups": column_labels(protocol, by)}
    return {"max_time": protocol.max_time, **groups}


def _causes(options: Options, protocol: StudySetting) -> dict[str, Any]:
    labels = {"causes": list(protocol.event_is), "censored": protocol.censored_is[0]}
    return {**_groups(options, protocol), **labels}


def _columns(options: Options, protocol: StudySetting) -> dict[str, Any]:
    return {"columns": described(options, protocol)}


def _table(options: Options, protocol: StudySetting) -> dict[str, Any]:
    names = options.get("columns", [kind.column for kind in protocol.kinds])
    return {"columns": columns_of(protocol, {*names, options.get("by")})}


def _regression(options: Options, protocol: StudySetting) -> dict[str, Any]:
    known = [*map(repr, protocol.event_is)]  # True is no label 1
    own = {*map(repr, events_of(options, protocol))}
    clear = own and own <= {*known} if "cause" in options else len(known) < 2
    either = ", ".join(known) or "none"
    rule = "cause must be one of event_is, {}, or a list of those that count together"
    require(clear, rule.format(either))
    return {**_columns(options, protocol), "max_time": protocol.max_time}


def _classes(options: Options, protocol: StudySetting) -> dict[str, Any]:
    name = options.get("target")
    require(name, "target must be given: the column of classes")
    (kind,) = (one for one in protocol.kinds if one.column == name)
    require(kind.missing == "error", f"{name} must not have missing values, as a target")
    return {**_columns(options, protocol), "classes": column_labels(protocol, str(name))}


def _model(options: Options, protocol: StudySetting) -> dict[str, Any]:
    evaluated = protocol.analysis(str(options.get("of"))).estimator(protocol, Spend(1.0))
    return {"model": evaluated, "max_time": protocol.max_time}


def _times(options: Options, protocol: StudySetting, frame: pd.DataFrame) -> dict[str, Any]:
    by = options.get("by")
    group = {} if by is None else {"group": labels_of(protocol, by, frame)}
    return {"y": protocol.target(frame), **group}


def _events(options: Options, protocol: StudySetting, frame: pd.DataFrame) -> dict[str, Any]:
    return {**_times(options, protocol, frame), "y": frame[[protocol.event, protocol.time]]}


def _rows(options: Options, protocol: StudySetting, frame: pd.DataFrame) -> dict[str, Any]:
    return {"X": frame[described(options, protocol)._names()]}


def _table_rows(options: Options, protocol: StudySetting, frame: pd.DataFrame) -> dict[str, Any]:
    return {"X": frame[_table(options, protocol)["columns"]._names()]}


def _rows_and_times(
    options: Options, protocol: StudySetting, frame: pd.DataFrame
) -> dict[str, Any]:
    y = protocol.target(frame, events_of(options, protocol))
    return {**_rows(options, protocol, frame), "y": y}


def _rows_and_classes(
    options: Options, protocol: StudySetting, frame: pd.DataFrame
) -> dict[str, Any]:
    name = options["target"]
    labels = pd.Series(labels_of(protocol, name, frame), index=frame.index, name=name)
    return {**_rows(options, protocol, frame), "y": labels}


def _evaluated(options: Options, protocol: StudySetting, frame: pd.DataFrame) -> dict[str, Any]:
    return _rows_and_times(protocol.analysis(options["of"]).options, protocol, frame)


@dataclass(frozen=True)
class Kind:
    """A kind of analysis.

    ``words`` maps its own options to parameters of the estimator, or to "" where ``settings``
    uses them: that returns further parameters. ``arguments`` returns those of ``fit``.
    """

    estimator: type[PrivateEstimator]
    settings: Callable[[Options, StudySetting], dict[str, Any]]
    arguments: Callable[[Options, StudySetting, pd.DataFrame], dict[str, Any]]
    words: Mapping[str, str] = field(default_factory=dict)

    @property
    def options(self) -> set[str]:
        """Names of all options."""
        return {*self.words, *inspect.signature(self.estimator).parameters} - (
            _SETTLED - set(self.words)
        )

    @property
    def takes_delta(self) -> bool:
        """Whether its noise may be Gaussian."""
        return "delta" in inspect.signature(self.estimator).parameters


_BY = {"by": ""}
_COLUMNS = {"columns": "", "intervals": "inference_share"}
_CAUSE = {**_COLUMNS, "cause": ""}
#: Kinds of analyses by their words.
KINDS: dict[str, Kind] = {
    "table": Kind(DPTableOne, _table, _table_rows, {"columns": ""}),
    "curves": Kind(DPKaplanMeierFitter, _groups, _times, _BY),
    "competing": Kind(DPAalenJohansenFitter, _causes, _events, _BY),
    "regression": Kind(DPDiscreteTimeSurvival, _regression, _rows_and_times, _CAUSE),
    "weibull": Kind(DPWeibullFitter, _horizon, _times),
    "classifier": Kind(
        DPLogisticRegression, _classes, _rows_and_classes, _COLUMNS | {"target": ""}
    ),
    "evaluation": Kind(Evaluation, _model, _evaluated, {"of": ""}),
}
