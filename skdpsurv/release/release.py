"""Release, the one thing that leaves a private fit."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.data import public_steps
from skdpsurv.data.feature import Feature, known_names, raw_features, same_features
from skdpsurv.dp.guarantee import FrozenMapping, PrivacyGuarantee, immutable
from skdpsurv.dp.ledger import Receipt
from skdpsurv.dp.references import __version__
from skdpsurv.dp.stated_noise import checked_noise, checked_plan
from skdpsurv.dp.types import FloatArray
from skdpsurv.release import layout, older_layouts
from skdpsurv.release.published_table import published_table
from skdpsurv.release.raw_rows import ReleasedModel

#: Largest number of columns: a release with more was crafted.
MOST_COLUMNS = 10_000_000


@dataclass(frozen=True, eq=False)
class Release(ReleasedModel):
    """Everything that a fitted estimator may publish: differentially private or public.

    One class serves all estimators. After a fit with ``columns=``, or through
    :func:`skdpsurv.make_release`, a release stands alone: it predicts from raw rows
    (:meth:`predict`, :meth:`predict_survival_function`), wherever it is.

    Parameters
    ----------
    estimator : str
        Name of the class that made it.
    guarantee : PrivacyGuarantee
        Its privacy guarantee.
    parameters : mapping of str to JSON value
        The public constructor parameters that prediction needs.
    values : mapping of str to array-like of float
        The released numbers. Kept as read-only arrays.
    n_features_in : int
        Number of columns.
    feature_names_in : tuple of str or None
        Names of the columns, if the data had them.
    fit_guarantee : PrivacyGuarantee or None, default=None
        Guarantee of the fit that made the values, if ``guarantee`` covers more: a search that the
        fit was a part of. It describes the fit that was chosen; ``guarantee`` has the total cost.
    schema_version : int, default=3
        Version of the JSON layout.
    columns : mapping or None, default=None
        The public transformer that makes features of raw columns, as JSON has it. None: rows must
        come as they went into the fit.
    target_names : tuple of str, default=()
        Names of what was predicted, such as those of event and time, if they had any.
    made_with : str
        The software.
    receipt : Receipt or None, default=None
        Where the charge for it stands in a ledger; None if no ledger was charged.
    study : mapping or None, default=None
        Of an analysis in a study: its title, data set and protocol, the analysis and its
        evaluations, and columns, labels and unit of the outcome; texts, or lists of labels.
    plan, fit_plan : mapping or None, default=None
        All that was drawn for each guarantee: measurements, and how they compose. None: not stated.
    noise : mapping of str to mapping, default={}
        ``law`` and ``variance`` of the noise on a released value, by its name.

    Examples
    --------
    >>> from skdpsurv import Release
    >>> from skdpsurv.dp import PrivacyGuarantee
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
    schema_version: int = field(default=layout.SCHEMA_VERSION)
    columns: Mapping[str, Any] | None = None
    target_names: tuple[str, ...] = ()
    made_with: str = f"skdpsurv {__version__}"
    receipt: Receipt | None = None
    study: Mapping[str, Any] | None = None
    plan: Mapping[str, Any] | None = None
    fit_plan: Mapping[str, Any] | None = None
    noise: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names, number = self.feature_names_in, self.n_features_in
        texts = (self.estimator, self.made_with, *self.target_names)
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("estimator, made_with and target_names of a release must be text.")
        most = MOST_COLUMNS if self.columns is None else public_steps.MOST_FEATURES
        if type(number) is not int or not 0 <= number <= most:
            raise ValueError(f"n_features_in of a release must be an integer from 0 to {most:,}.")
        if names is not None and (isinstance(names, str) or len(names) != number):
            raise ValueError("feature_names_in must hold a name for each column, or be None.")
        arrays = {name: _read_only(name, value) for name, value in self.values.items()}
        self._replace(
            values=FrozenMapping(arrays),
            parameters=FrozenMapping(self.parameters),
            feature_names_in=None if names is None else tuple(map(str, names)),
            target_names=tuple(self.target_names),
            receipt=None if self.receipt is None else Receipt.checked(*self.receipt),
            study=None if self.study is None else layout.checked_study(self.study),
            plan=checked_plan(self.plan),
            fit_plan=checked_plan(self.fit_plan),
        )
        pooled = "pooled" in self.guarantee.public_inputs
        plan = self.plan if self.fit_plan is None else self.fit_plan
        self._replace(noise=checked_noise(self.noise, plan, pooled=pooled))
        if plan is None and not pooled and self.noise:
            older_layouts.require_noise(self.noise, self.estimator, self.values, self.made_by)
        if self.made_by.epsilon > self.guarantee.epsilon:
            raise ValueError("fit_guarantee of a release must not be of more than its guarantee.")
        if self.columns is not None:
            self._check_columns()
        # Nested ones are refused by the rule of the parameter.
        if getattr(self.transformer(), "strata", None) != self.parameters.get("strata"):
            raise ValueError("strata of a release must be those of its columns.")

    def _replace(self, **changes: Any) -> None:
        """Set fields of this frozen dataclass while it is made."""
        for name, value in changes.items():
            object.__setattr__(self, name, value)

    def _check_columns(self) -> None:
        """Refuse a description that cannot be used here, and not when somebody predicts."""
        try:
            self._replace(columns=immutable("columns", self.columns))
            n_features = len(self.features)
            step, names = self.transformer(), self.feature_names_in
            row = public_steps.made_of_one(step, self.n_features_in, names)
            row.reshape(1, n_features)
        except (ArithmeticError, AttributeError, LookupError, RecursionError):
            raise ValueError(
                "columns of a release must describe public steps, as its schema has it."
            ) from None

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
        """Guarantee of the fit that made the values, from which intervals are computed."""
        return self.guarantee if self.fit_guarantee is None else self.fit_guarantee

    @classmethod
    def from_coefficients(
        cls,
        coef: Mapping[Any, float] | None = None,
        standard_errors: Mapping[Any, float] | None = None,
        *,
        ratios: Mapping[Any, Sequence[float]] | None = None,
        model: str = "hazard",
        references: Mapping[str, Any] | None = None,
        source: str,
    ) -> Release:
        """Return published coefficients as a release that a fit can start from (``prior=``).

        A table in a paper is public: nothing is spent, and nothing is promised about its people.

        Parameters
        ----------
        coef, standard_errors : mapping or None
            Log hazard ratios or log odds ratios, per unit of the raw column, and their standard
            errors, by column: ``"age"``, or ``("smoker", "yes")`` for a label of a category.
        ratios : mapping or None
            Instead: ratios with the ends of their 95 % intervals, (ratio, low, high).
        model : {"hazard", "odds"}, default="hazard"
            Kind of the ratios.
        references : mapping of str to label, or None
            Reference label of each category; required for categories.
        source : str
            Where they are published.

        Returns
        -------
        Release

        Raises
        ------
        ValueError
            If a number or a reference is missing.

        Examples
        --------
        >>> from skdpsurv import Release
        >>> table = {"age": (1.05, 1.03, 1.07), ("smoker", "yes"): (1.8, 1.3, 2.5)}
        >>> prior = Release.from_coefficients(
        ...     ratios=table, references={"smoker": "no"}, source="Smith 2020, table 2"
        ... )
        >>> prior.values["evidence_coef"].round(3)
        array([0.049, 0.588])
        """
        return cls(**published_table(coef, standard_errors, ratios, model, references, source))

    def transformer(self) -> Any:
        """Return the public transformer that makes features of raw rows, not fitted; or None.

        A fit with ``columns=release.transformer()`` reads its records by the same bounds,
        categories and order.
        """
        return None if self.columns is None else public_steps.rebuild(self.columns)

    @functools.cached_property
    def features(self) -> tuple[Feature, ...]:
        """Features that coefficients belong to: names, formulas of raw columns, units."""
        names, number = self.feature_names_in, self.n_features_in
        if self.columns is None:
            return tuple(raw_features(known_names(names, number)))
        return tuple(public_steps.features_in(self.transformer(), number, names))

    @property
    def n_features(self) -> int:
        """Number of features that coefficients belong to."""
        return self.n_features_in if self.columns is None else len(self.features)

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features that coefficients belong to, if they have any."""
        if self.columns is None and self.feature_names_in is None:
            return None
        return [feature.name for feature in self.features]

    def has_columns(self, features: Sequence[Feature] | None) -> bool:
        """Return True if raw columns are described as these features; None: if they are not."""
        if features is None or self.columns is None:
            return features is None and self.columns is None
        return same_features(self.features, features)

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the release as JSON text, ``indent`` as for :func:`json.dumps`.

        Numbers survive the round trip to the last bit.
        """
        return layout.written(self, indent)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what :meth:`to_json` wrote, in this version of the layout or an earlier one.

        Raises
        ------
        ValueError
            If the text is not a release, or of a version that this package does not know.
        """
        content = layout.read(text)
        with suppress(TypeError, AttributeError):
            return cls(**content)
        raise ValueError(layout.WRONG_TYPE)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release to a new file, as JSON: the whole of it, or nothing.

        Raises
        ------
        FileExistsError
            If there is such a file: what was published is not overwritten.
        """
        layout.save(self.to_json(indent=2) + "\n", path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a release from a file that :meth:`save` wrote; errors as of :meth:`from_json`."""
        with suppress(UnicodeDecodeError):
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        return cls.from_json("")

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
