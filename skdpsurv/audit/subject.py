"""The subject of an audit: an estimator that claims an epsilon, and two neighbours."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from skdpsurv.base.pipelines import last_step
from skdpsurv.dp.containers import SPARSE, shape_of
from skdpsurv.dp.types import BoolArray


def at_most(found: float, allowed: float) -> bool:
    """Compare a distance with its bound; sums over thousands of records are rounded."""
    return found <= allowed * (1.0 + 1e-9)


def verdict(result: Any, claim: str, found: str) -> str:
    """Return the result of an audit in words."""
    words = "not refuted" if result.passed else "REFUTED"
    if hasattr(result, "audited"):
        found += f"; {', '.join(result.audited)}; not audited: {', '.join(result.not_audited)}"
    return f"{type(result).__name__}(claim of {claim} {words}: {found})"


@dataclass(frozen=True)
class Subject:
    """A clone of an estimator without accountant, and the claim of its parameters."""

    estimator: Any
    epsilon: float
    delta: float

    @classmethod
    def of(cls, estimator: Any) -> Subject:
        """Check an estimator, and read what it claims."""
        _, step = last_step(estimator)
        is_made = hasattr(step, "get_params") and not isinstance(step, type)
        parameters = step.get_params(deep=False) if is_made else {}
        epsilon, delta = parameters.get("epsilon"), parameters.get("delta", 0.0)
        if isinstance(epsilon, bool) or not isinstance(epsilon, Real):
            raise TypeError(
                "estimator must be a private estimator, with a number for its parameter epsilon, "
                f"or a Pipeline that ends in one, got {getattr(step, '__name__', repr(step))}."
            )
        if any(name.endswith("_") and not name.startswith("_") for name in vars(step)):
            raise ValueError("estimator must not be fitted. Pass sklearn.base.clone(estimator).")
        delta = float(delta) if isinstance(delta, Real) else 0.0
        if not (0.0 < float(epsilon) < math.inf and 0.0 <= delta < 1.0):
            raise ValueError(
                "epsilon of the estimator must be positive and finite, and its delta in [0, 1), "
                f"got {epsilon} and {delta}: there is no claim to audit."
            )
        copy = clone(estimator)
        ledgers = [name for name in copy.get_params() if name.split("__")[-1] == "accountant"]
        return cls(copy.set_params(**dict.fromkeys(ledgers)), float(epsilon), delta)

    def seeded(self, seed: int | None) -> Any:
        """Return an unfitted clone with another seed, or none."""
        copy = clone(self.estimator)
        _, step = last_step(copy)
        if "random_state" in step.get_params(deep=False):
            step.set_params(random_state=seed)
        return copy

    def fit_arguments(self, data: object, name: str) -> Mapping[str, Any]:
        """Return the arguments of ``fit`` by name; see :func:`~skdpsurv.audit.audit_epsilon`."""
        if not isinstance(data, tuple) or not data:
            raise TypeError(f"{name} must be a tuple (X, y) of arguments of fit.")
        named = data[-1] if isinstance(data[-1], Mapping) and len(data) > 1 else {}
        positional = data[:-1] if named else data
        found = inspect.signature(self.estimator.fit).parameters.values()
        names = [each.name for each in found if each.kind is each.POSITIONAL_OR_KEYWORD]
        if len(positional) > len(names):
            raise TypeError(
                f"{name} must hold at most {len(names)} arguments, and further ones as a dict."
            )
        return {**dict(zip(names, positional, strict=False)), **named}


def audited(estimator: Any, data: Any, neighbour: Any) -> tuple[Subject, list[Mapping[str, Any]]]:
    """Return the subject of an audit, and the arguments of ``fit`` of two neighbours."""
    subject = Subject.of(estimator)
    arguments = [subject.fit_arguments(data, "data"), subject.fit_arguments(neighbour, "neighbour")]
    check_neighbours(*arguments)
    return subject, arguments


def check_neighbours(data: Mapping[str, Any], neighbour: Mapping[str, Any]) -> None:
    """Refuse data sets that do not differ in exactly one private record."""
    if set(data) != set(neighbour):
        raise ValueError("data and neighbour must hold the same arguments of fit.")
    compared = ((name, _changed_rows(data[name], neighbour[name], name)) for name in data)
    changes = {name: rows for name, rows in compared if rows is not None}
    if len({rows.size for rows in changes.values()}) > 1:
        raise ValueError("all arguments of fit in data must have the same number of records.")
    changed = np.any(list(changes.values()), axis=0)
    if np.count_nonzero(changed) != 1:
        found = "differ in more" if np.any(changed) else "are identical"
        raise ValueError(f"data and neighbour must differ in one record, they {found}.")
    for name, rows in changes.items():
        # Of a HybridMEstimator, be it inside a pipeline.
        is_public = name.split("__")[-1] == "public"
        if is_public and (rows.any() or np.asarray(data[name], dtype=bool)[changed].any()):
            raise ValueError(
                "public is no secret, and must be the same in data and neighbour; the record that "
                "differs must be private."
            )


def _changed_rows(one: Any, other: Any, name: str) -> BoolArray | None:
    """Return which rows differ, or None for an argument without rows."""
    if np.ndim(one) == 0 and shape_of(one) is None:
        if type(one) is not type(other) or one != other:
            raise ValueError(f"{name} is no array of records, and must not differ.")
        return None
    a, b = _table(one), _table(other)
    if len(a) != len(b) or list(a.columns) != list(b.columns):
        raise ValueError(
            f"{name} must have the same number of records and the same columns in data and "
            "neighbour."
        )
    # Missing values are not equal to themselves.
    equal = (a == b) | (a.isna() & b.isna())
    return np.asarray(~equal.to_numpy(dtype=bool).all(axis=1))


def _table(values: Any) -> pd.DataFrame:
    """Return a frame of objects; the fields of a structured array are its columns."""
    if isinstance(values, SPARSE):
        values = values.toarray()
    if not isinstance(values, pd.DataFrame | pd.Series):
        values = np.asarray(values)
    return pd.DataFrame(values).astype(object).reset_index(drop=True)
