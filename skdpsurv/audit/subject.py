"""What is audited: an estimator that promises an epsilon, checked before it is fitted."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

__all__ = ["Subject"]


@dataclass(frozen=True)
class Subject:
    """An estimator to be audited, without accountant, and what it claims.

    Parameters
    ----------
    estimator : estimator
        A clone.
    prefix : str
        Of the private step's parameters, in a pipeline.
    epsilon, delta : float
        What is claimed, read from the parameters.
    """

    estimator: Any
    prefix: str
    epsilon: float
    delta: float

    @classmethod
    def of(cls, estimator: Any) -> Subject:
        """Check an estimator, and read what it claims.

        Raises
        ------
        TypeError, ValueError
            If it makes no claim, or is fitted already.
        """
        if isinstance(estimator, type) or not (
            hasattr(estimator, "fit") and hasattr(estimator, "get_params")
        ):
            raise TypeError(
                "estimator must be a private estimator, or a Pipeline that ends in one, got "
                f"{_name(estimator)}."
            )
        step, prefix = estimator, ""
        while isinstance(step, Pipeline):
            name, step = step.steps[-1]
            prefix += f"{name}__"
        parameters = step.get_params(deep=False) if hasattr(step, "get_params") else {}
        epsilon = parameters.get("epsilon")
        if isinstance(epsilon, bool) or not isinstance(epsilon, Real):
            raise TypeError(
                "estimator must be a private estimator, with a number for its parameter epsilon, "
                f"got {_name(step)}."
            )
        if any(name.endswith("_") and not name.startswith("_") for name in vars(step)):
            raise ValueError(
                "estimator must not be fitted: what it claims is read before any fit, and clones "
                "of it are fitted. Pass sklearn.base.clone(estimator)."
            )
        if not 0.0 < float(epsilon) < math.inf:
            raise ValueError(
                f"epsilon of the estimator must be positive and finite, got {epsilon}: there is no "
                "claim to audit."
            )
        delta = parameters.get("delta", 0.0)
        delta = float(delta) if isinstance(delta, Real) else 0.0
        if not 0.0 <= delta < 1.0:
            raise ValueError(f"delta of the estimator must be in [0, 1), got {delta}.")
        copy = clone(estimator)
        ledgers = [name for name in copy.get_params() if name.split("__")[-1] == "accountant"]
        return cls(copy.set_params(**dict.fromkeys(ledgers)), prefix, float(epsilon), float(delta))

    def seeded(self, seed: int | None) -> Any:
        """Return an unfitted clone with another seed, or none."""
        copy = clone(self.estimator)
        if f"{self.prefix}random_state" in copy.get_params():
            copy.set_params(**{f"{self.prefix}random_state": seed})
        return copy

    @property
    def step(self) -> Any:
        """The private step, unfitted."""
        return private_step(self.estimator)

    def fit_arguments(self, data: object, name: str) -> Mapping[str, Any]:
        """Return the arguments of ``fit`` by name; see :func:`~skdpsurv.audit.audit_epsilon`.

        Raises
        ------
        TypeError
            If ``data`` is no tuple of arguments.
        """
        if not isinstance(data, tuple) or not data:
            raise TypeError(f"{name} must be a tuple (X, y) of arguments of fit.")
        *positional, last = data
        named = dict(last) if isinstance(last, Mapping) and positional else {}
        if not named:
            positional = list(data)
        names = _argument_names(self.estimator)
        if len(positional) > len(names):
            raise TypeError(
                f"{name} must hold at most {len(names)} arguments, and further ones as a dict."
            )
        return {**dict(zip(names, positional, strict=False)), **named}


def private_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def _argument_names(estimator: Any) -> list[str]:
    found = inspect.signature(estimator.fit).parameters.values()
    return [p.name for p in found if p.kind is p.POSITIONAL_OR_KEYWORD]


def _name(estimator: object) -> str:
    kind = estimator if isinstance(estimator, type) else type(estimator)
    return f"the class {kind.__name__}" if isinstance(estimator, type) else kind.__name__


def check_neighbours(data: Mapping[str, Any], neighbour: Mapping[str, Any]) -> None:
    """Refuse data sets that do not differ in exactly one private record.

    Raises
    ------
    ValueError, TypeError
    """
    if set(data) != set(neighbour):
        raise ValueError("data and neighbour must hold the same arguments of fit.")
    changed: Any = None
    for name, ours in data.items():
        rows = _changed_rows(ours, neighbour[name], name)
        if rows is None:
            continue
        if changed is not None and changed.size != rows.size:
            raise ValueError("all arguments of fit in data must have the same number of records.")
        changed = rows if changed is None else changed | rows
    if changed is None or not changed.any():
        raise ValueError("data and neighbour must differ in one record, they are identical.")
    if np.count_nonzero(changed) > 1:
        raise ValueError("data and neighbour must differ in one record, they differ in more.")
    # Of a HybridMEstimator, be it inside a pipeline.
    masks = [name for name in data if name.split("__")[-1] == "public" and data[name] is not None]
    for name in masks:
        if _changed_rows(data[name], neighbour[name], name).any():
            raise ValueError("public must be the same in data and neighbour: it is no secret.")
        if np.asarray(data[name], dtype=bool)[changed].any():
            raise ValueError("the record that differs must be private, but public is True for it.")


def _changed_rows(one: Any, other: Any, name: str) -> Any:
    """Return which rows differ, or None for an argument without rows."""
    if one is None and other is None:
        return None
    if hasattr(one, "columns") or hasattr(other, "columns"):
        columns = [list(getattr(each, "columns", ())) for each in (one, other)]
        if columns[0] != columns[1]:
            raise ValueError(f"{name} must have the same columns in data and neighbour.")
    a, b = _table(one), _table(other)
    if a.ndim == 0 or b.ndim == 0:
        if type(one) is not type(other) or bool(a != b):
            raise ValueError(f"{name} is no array of records, and must not differ.")
        return None
    if a.shape[0] != b.shape[0]:
        raise ValueError(
            f"{name} must have the same number of records in data and neighbour: neighbours "
            "differ by the replacement of one record."
        )
    if a.shape != b.shape:
        raise ValueError(f"{name} must have the same columns in data and neighbour.")
    same = np.frompyfunc(_same, 2, 1)(a, b).astype(bool)
    return ~same.reshape(a.shape[0], -1).all(axis=1)


def _table(values: Any) -> Any:
    """Return an array of objects; the fields of a structured array become columns."""
    if hasattr(values, "toarray"):
        values = values.toarray()
    if hasattr(values, "to_numpy"):
        values = values.to_numpy(dtype=object)
    array = np.asarray(values)
    if array.dtype.names:
        columns = [array[field].astype(object) for field in array.dtype.names]
        return np.column_stack(columns)
    return array.astype(object)


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    try:
        # Missing values are not equal to themselves.
        return bool(one == other) or bool(one != one and other != other)
    except (TypeError, ValueError):
        return False
