"""The analyses of a study: kinds, their options, their estimators, and what these are fitted to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from typing import Protocol as Structure

import pandas as pd

from skdpsurv.base import PrivateEstimator
from skdpsurv.classification import DPLogisticRegression
from skdpsurv.data import PublicColumns
from skdpsurv.data.column_kinds import Boolean, ColumnKind
from skdpsurv.dp.guarantee import FrozenMapping
from skdpsurv.dp.privacy_cost import Spend
from skdpsurv.evaluation.evaluation import Evaluation
from skdpsurv.survival import (
    DPAalenJohansenFitter,
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPWeibullFitter,
)


class Protocol(Structure):
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
    def event_is(self) -> tuple[str, ...]: ...
    @property
    def censored_is(self) -> tuple[str, ...]: ...
    @property
    def analyses(self) -> tuple[Analysis, ...]: ...
    def analysis(self, name: str) -> Analysis: ...
    def target(self, frame: pd.DataFrame) -> Any: ...


@dataclass(frozen=True)
class Kind:
    """A kind of analysis.

    ``options`` maps those of a protocol to parameters of the estimator; ``settings`` returns
    further parameters, and ``arguments`` those of ``fit`` but for ``person``.
    """

    estimator: type[PrivateEstimator]
    options: Mapping[str, str]
    settings: Callable[[Analysis, Protocol], Mapping[str, Any]]
    arguments: Callable[[Analysis, Protocol, pd.DataFrame], Mapping[str, Any]]


@dataclass(frozen=True)
class Analysis:
    """One analysis of a study.

    Parameters
    ----------
    name : str
        Also the name of its file.
    kind : str
        One of ``KINDS``.
    share : float or None
        Share of the budget; None, for an evaluation alone: what the training part leaves.
    options : mapping
        Further public settings.
    """

    name: str
    kind: str
    share: float | None = 1.0
    options: Mapping[str, Any] = field(default_factory=lambda: FrozenMapping({}))

    def estimator(self, protocol: Protocol, spend: Spend, model: Any = None) -> Any:
        """Return the estimator, not fitted and without a ledger.

        Parameters
        ----------
        protocol : Protocol
        spend : Spend
            Its epsilon and delta.
        model : estimator or None
            The fitted model, for an evaluation; its ``fit`` is then ``_fit``.
        """
        kind = KINDS[self.kind]
        parameters = {
            kind.options[key]: value for key, value in self.options.items() if kind.options.get(key)
        }
        parameters |= kind.settings(self, protocol)
        if self.kind == "evaluation":
            parameters["model"] = model
        if spend.delta:
            parameters["delta"] = spend.delta
        return kind.estimator(epsilon=spend.epsilon, **parameters)

    def arguments(self, protocol: Protocol, frame: pd.DataFrame) -> dict[str, Any]:
        """Return the keyword arguments of ``fit`` for a frame of raw columns."""
        found = dict(KINDS[self.kind].arguments(self, protocol, frame))
        if protocol.person is not None:
            found["person"] = frame[protocol.person]
        return found

    @property
    def of(self) -> str | None:
        """Name of the analysis that an evaluation evaluates."""
        return self.options.get("of")


def group_labels(protocol: Protocol, name: str) -> list[Any]:
    """Return the public labels of a column of groups, or of classes."""
    (kind,) = (one for one in protocol.kinds if one.column == name)
    return [False, True] if isinstance(kind, Boolean) else list(kind.labels)  # type: ignore[attr-defined]


def covariates(analysis: Analysis, protocol: Protocol) -> list[str]:
    """Return the columns of a regression: those it names, or all but classes."""
    named = analysis.options.get("columns")
    if named is not None:
        return list(named)
    targets = {one.options.get("target") for one in protocol.analyses}
    return [kind.column for kind in protocol.kinds if kind.column not in targets]


def described(analysis: Analysis, protocol: Protocol) -> PublicColumns:
    """Return the description of the columns of a regression."""
    names = set(covariates(analysis, protocol))
    stated = protocol.columns._described()
    kept = [table for table in stated["columns"] if table["name"] in names]
    return PublicColumns(**{**stated, "columns": kept})


def _no_settings(analysis: Analysis, protocol: Protocol) -> dict[str, Any]:
    return {"max_time": protocol.max_time}


def _curve_settings(analysis: Analysis, protocol: Protocol) -> dict[str, Any]:
    by = analysis.options.get("by")
    groups = {} if by is None else {"groups": group_labels(protocol, by)}
    return {"max_time": protocol.max_time, **groups}


def _incidence_settings(analysis: Analysis, protocol: Protocol) -> dict[str, Any]:
    labels = {"causes": list(protocol.event_is), "censored": protocol.censored_is[0]}
    return {**_curve_settings(analysis, protocol), **labels}


def _regression_settings(analysis: Analysis, protocol: Protocol) -> dict[str, Any]:
    return {"max_time": protocol.max_time, "columns": described(analysis, protocol)}


def _classifier_settings(analysis: Analysis, protocol: Protocol) -> dict[str, Any]:
    classes = group_labels(protocol, analysis.options["target"])
    return {"classes": classes, "columns": described(analysis, protocol)}


def _target(analysis: Analysis, protocol: Protocol, frame: pd.DataFrame) -> dict[str, Any]:
    return {"y": protocol.target(frame)}


def _grouped_target(analysis: Analysis, protocol: Protocol, frame: pd.DataFrame) -> dict[str, Any]:
    by = analysis.options.get("by")
    group = {} if by is None else {"group": frame[by]}
    return {"y": protocol.target(frame), **group}


def _labelled_target(analysis: Analysis, protocol: Protocol, frame: pd.DataFrame) -> dict[str, Any]:
    found = _grouped_target(analysis, protocol, frame)
    return {
        **found,
        "y": frame[[protocol.event, protocol.time]].set_axis(["event", "time"], axis=1),
    }


def _rows(analysis: Analysis, protocol: Protocol, frame: pd.DataFrame) -> dict[str, Any]:
    return {"X": frame[covariates(analysis, protocol)], "y": protocol.target(frame)}


def _labels(analysis: Analysis, protocol: Protocol, frame: pd.DataFrame) -> dict[str, Any]:
    return {"X": frame[covariates(analysis, protocol)], "y": frame[analysis.options["target"]]}


def _evaluated_rows(analysis: Analysis, protocol: Protocol, frame: pd.DataFrame) -> dict[str, Any]:
    return _rows(protocol.analysis(str(analysis.of)), protocol, frame)


_REGRESSION = {"columns": "", "intervals": "inference_share", "alpha": "alpha"}
#: Kinds of analyses by their words.
KINDS: dict[str, Kind] = {
    "curves": Kind(DPKaplanMeierFitter, {"by": ""}, _curve_settings, _grouped_target),
    "competing": Kind(DPAalenJohansenFitter, {"by": ""}, _incidence_settings, _labelled_target),
    "regression": Kind(
        DPDiscreteTimeSurvival, {**_REGRESSION, "link": "link"}, _regression_settings, _rows
    ),
    "weibull": Kind(DPWeibullFitter, {}, _no_settings, _target),
    "classifier": Kind(
        DPLogisticRegression, {**_REGRESSION, "target": ""}, _classifier_settings, _labels
    ),
    "evaluation": Kind(Evaluation, {"of": "", "groups": "n_groups"}, _no_settings, _evaluated_rows),
}
