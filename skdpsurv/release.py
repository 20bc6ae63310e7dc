"""Release: the one thing that leaves a private fit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.privacy import FrozenMapping, PrivacyGuarantee
from skdpsurv.types import FloatArray

__all__ = ["Release", "check_parameters", "released_array"]

#: Version of the JSON layout. A reader refuses versions that it does not know.
SCHEMA_VERSION = 1


@dataclass(frozen=True, eq=False)
class Release:
    """Everything that a fitted estimator may publish: differentially private or public.

    One class serves all estimators. From a release alone, ``Estimator.from_release`` builds an
    estimator that predicts without ever having seen data.

    Parameters
    ----------
    estimator : str
        Name of the class that made it.
    guarantee : PrivacyGuarantee
        What was promised.
    parameters : mapping of str to JSON value
        The public constructor parameters that prediction needs.
    values : mapping of str to array-like of float
        The released numbers. Kept as read-only arrays.
    n_features_in : int
        Number of columns.
    feature_names_in : tuple of str or None
        Names of the columns, if the data had them.
    fit_guarantee : PrivacyGuarantee or None, default=None
        Of the fit that made the values, where ``guarantee`` speaks of more than that: of a search
        that the fit was a part of. It says how the values were made, and not what they cost.
    schema_version : int, default=1
        Version of the JSON layout.

    Examples
    --------
    >>> from skdpsurv import Release
    >>> from skdpsurv.privacy import PrivacyGuarantee
    >>> release = Release("Example", PrivacyGuarantee(epsilon=1.0), {}, {"coef": [0.5, -1.0]}, 2)
    >>> Release.from_json(release.to_json()) == release
    True
    >>> release.values["coef"]
    array([ 0.5, -1. ])
    """

    estimator: str
    guarantee: PrivacyGuarantee
    parameters: Mapping[str, Any]
    values: Mapping[str, ArrayLike]
    n_features_in: int
    feature_names_in: tuple[str, ...] | None = None
    fit_guarantee: PrivacyGuarantee | None = None
    schema_version: int = field(default=SCHEMA_VERSION)

    def __post_init__(self) -> None:
        frozen = {name: _read_only(name, value) for name, value in self.values.items()}
        # object.__setattr__: the dataclass is frozen, also to its own __post_init__.
        object.__setattr__(self, "values", FrozenMapping(frozen))
        object.__setattr__(self, "parameters", FrozenMapping(self.parameters))
        if type(self.n_features_in) is not int or self.n_features_in < 0:
            raise ValueError("n_features_in of a release must be an integer from 0.")
        if self.feature_names_in is not None:
            names = self.feature_names_in
            if isinstance(names, str) or len(names) != self.n_features_in:
                raise ValueError("feature_names_in must hold a name for each column, or be None.")
            object.__setattr__(self, "feature_names_in", tuple(map(str, names)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Release) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    # Arrays lose their read-only flag in NumPy's own pickles and copies.
    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self))

    def __copy__(self) -> Release:
        return self

    def __deepcopy__(self, memo: object) -> Release:
        return self

    @property
    def made_by(self) -> PrivacyGuarantee:
        """Guarantee of the fit that made the values: its epsilon, and how many records it had.

        What follows from the noise, such as an interval, is computed from this one.
        """
        return self.guarantee if self.fit_guarantee is None else self.fit_guarantee

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the release as JSON text; numbers survive the round trip to the last bit.

        Parameters
        ----------
        indent : int or None
            As for :func:`json.dumps`.

        Returns
        -------
        str
        """
        return json.dumps(
            {
                "schema_version": self.schema_version,
                "estimator": self.estimator,
                "guarantee": self.guarantee.to_dict(),
                "fit_guarantee": (
                    None if self.fit_guarantee is None else self.fit_guarantee.to_dict()
                ),
                "parameters": dict(self.parameters),
                "values": {name: np.asarray(v).tolist() for name, v in self.values.items()},
                "n_features_in": self.n_features_in,
                "feature_names_in": self.feature_names_in,
            },
            indent=indent,
            allow_nan=False,
            sort_keys=True,
        )

    @classmethod
    def from_json(cls, text: str) -> Release:
        """Read what :meth:`to_json` wrote.

        Parameters
        ----------
        text : str

        Returns
        -------
        Release

        Raises
        ------
        ValueError
            If the text is not a release, or of a version that this package does not know.
        """
        try:
            data = json.loads(text)
        except RecursionError:
            data = None
        if not isinstance(data, dict) or "schema_version" not in data:
            raise ValueError("text must be the JSON of a Release, as made by Release.to_json.")
        if data["schema_version"] != SCHEMA_VERSION:
            raise ValueError(
                f"schema_version must be {SCHEMA_VERSION} for this version of skdpsurv, got "
                f"{data['schema_version']!r}."
            )
        names = ("estimator", "guarantee", "parameters", "values", "n_features_in")
        if missing := [name for name in names if name not in data]:
            raise ValueError(f"the JSON of a Release must hold {', '.join(missing)}.")
        if unknown := sorted(set(data) - {f.name for f in fields(cls)}):
            raise ValueError(f"the JSON of a Release must not hold {', '.join(unknown)}.")
        try:
            data["guarantee"] = PrivacyGuarantee.from_dict(data["guarantee"])
            if data.get("fit_guarantee") is not None:
                data["fit_guarantee"] = PrivacyGuarantee.from_dict(data["fit_guarantee"])
            release = cls(**data)
        except (TypeError, AttributeError):
            release = None
        if release is None:
            raise ValueError("the JSON of a Release holds a field of the wrong type.")
        return release

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}{np.shape(v)}" for name, v in self.values.items())
        return f"Release({self.estimator}: {shapes}; {self.guarantee!r})"


def _read_only(name: str, value: ArrayLike) -> FloatArray:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):  # ragged, or no number
        array = np.array(np.nan)
    if not np.isfinite(array).all():
        raise ValueError(f"values of a release must be finite numbers, {name!r} is not.")
    array.setflags(write=False)
    return array


def released_array(release: Release, name: str, shape: tuple[int, ...]) -> FloatArray:
    """Return a copy of released numbers.

    Raises
    ------
    ValueError
        If they are missing or of another shape.
    """
    array = np.array(release.values.get(name, np.nan))
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"values of the release must hold {name!r} of shape {shape}.")
    return array


def check_parameters(release: Release, *names: str) -> None:
    """Refuse a release without the parameters that its estimator needs.

    Raises
    ------
    ValueError
        Naming what is missing.
    """
    if missing := [name for name in names if name not in release.parameters]:
        raise ValueError(f"parameters of the release must hold {', '.join(missing)}.")
