"""Release: the one thing that leaves a private fit, and all that is needed to use it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpsurv.data.feature import Feature, known_names, raw_features, same_features
from skdpsurv.data.public_steps import MOST_FEATURES, features_in, made_of_one, rebuild
from skdpsurv.dp import FrozenMapping, PrivacyGuarantee
from skdpsurv.dp.guarantee import frozen
from skdpsurv.dp.ledger import Receipt
from skdpsurv.dp.references import __version__
from skdpsurv.dp.types import FloatArray
from skdpsurv.release import layout
from skdpsurv.release.published_table import published_table
from skdpsurv.release.raw_rows import raw_rows

#: More columns than any table has: a release with more was crafted.
MOST_COLUMNS = 10_000_000


class Kinds(dict[str, Any]):
    """Estimators by their names; None is one that nobody knows."""

    #: Imports those of this package: nobody may have asked for them yet.
    import_all: Callable[[], object] = staticmethod(lambda: None)

    def __missing__(self, name: str) -> Any:
        self.import_all()
        return self.get(name)


@dataclass(frozen=True, eq=False)
class Release:
    """Everything that a fitted estimator may publish: differentially private or public.

    One class serves all estimators. It stands alone if it says what its columns hold, which it does
    after a fit with ``columns=``, or through :func:`skdpsurv.make_release`: then it predicts from
    raw rows (:meth:`predict`, :meth:`predict_survival_function`), wherever it is.

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
    schema_version : int, default=2
        Version of the JSON layout.
    columns : mapping or None, default=None
        What raw columns hold, and how they become features: the public transformer that made them,
        as JSON has it. None: rows must come as they went into the fit.
    target_names : tuple of str, default=()
        Names of what was predicted, such as those of event and time, if they had any.
    made_with : str
        The software.
    receipt : Receipt or None, default=None
        Where in a ledger the charge for it stands: the ledger's identity, how many entries it held
        with this one, and the hash of its history. None: it was charged to no ledger.

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

    #: Estimators by their names: each class enters itself when it is imported.
    kinds: ClassVar[Kinds] = Kinds()

    def __post_init__(self) -> None:
        arrays = {name: _read_only(name, value) for name, value in self.values.items()}
        # object.__setattr__: the dataclass is frozen, also to its own __post_init__.
        object.__setattr__(self, "values", FrozenMapping(arrays))
        object.__setattr__(self, "parameters", FrozenMapping(self.parameters))
        if not isinstance(self.estimator, str):
            raise TypeError("estimator of a release must be text.")
        number = self.n_features_in
        if type(number) is not int or not 0 <= number <= MOST_COLUMNS:
            raise ValueError(
                f"n_features_in of a release must be an integer from 0 to {MOST_COLUMNS:,}."
            )
        if self.feature_names_in is not None:
            names = self.feature_names_in
            if isinstance(names, str) or len(names) != number:
                raise ValueError("feature_names_in must hold a name for each column, or be None.")
            object.__setattr__(self, "feature_names_in", tuple(map(str, names)))
        if not all(isinstance(text, str) for text in (self.made_with, *self.target_names)):
            raise TypeError("made_with and target_names of a release must be text.")
        object.__setattr__(self, "target_names", tuple(self.target_names))
        if self.receipt is not None:
            object.__setattr__(self, "receipt", Receipt.checked(*self.receipt))
        if self.columns is not None:
            self._keep_columns()

    def _keep_columns(self) -> None:
        """Keep a description that can be used: it is refused here, and not by whoever predicts."""
        if self.n_features_in > MOST_FEATURES:
            raise ValueError(
                f"n_features_in of described columns must be at most {MOST_FEATURES:,}."
            )
        try:
            object.__setattr__(self, "columns", frozen("columns", self.columns))
            n_features = len(self.features)
            made = made_of_one(self.transformer(), self.n_features_in, self.feature_names_in)
            made.reshape(1, n_features)
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
        """Guarantee of the fit that made the values: its epsilon, and how many records it had.

        What follows from the noise, such as an interval, is computed from this one.
        """
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
            What they are ratios of.
        references : mapping of str to label, or None
            What labels of a category are compared with; required for those.
        source : str
            Where they are published.

        Returns
        -------
        Release

        Raises
        ------
        ValueError
            If a number is none, or it is not said what a category is compared with.

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
        return cls(
            **published_table(
                coef, standard_errors, ratios, model=model, references=references, source=source
            )
        )

    # ---- Columns.

    def transformer(self) -> Any:
        """Return the public transformer that makes features of raw rows, not fitted; or None.

        Whoever fits records of their own with ``columns=release.transformer()`` reads them as those
        of this release were read: by the same bounds, categories and order.
        """
        return None if self.columns is None else rebuild(self.columns)

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The numbers that coefficients belong to: names, formulas of raw columns, units."""
        if self.columns is not None:
            made = features_in(self.transformer(), self.n_features_in, self.feature_names_in)
            return tuple(made)
        return tuple(raw_features(known_names(self.feature_names_in, self.n_features_in)))

    @property
    def n_features(self) -> int:
        """How many numbers of a row coefficients belong to."""
        return self.n_features_in if self.columns is None else len(self.features)

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the numbers that coefficients belong to, if they have any."""
        if self.columns is None and self.feature_names_in is None:
            return None
        return [feature.name for feature in self.features]

    def has_columns(self, features: Sequence[Feature] | None) -> bool:
        """Say whether raw columns were read as others are, of which these features were made.

        None are those of columns that nobody describes.
        """
        if features is None or self.columns is None:
            return features is None and self.columns is None
        return same_features(self.features, features)

    # ---- Use.

    def to_estimator(self, **arguments: Any) -> Any:
        """Return a fitted estimator, without data.

        Parameters
        ----------
        **arguments : object
            What no release holds, for ``from_release`` of the class: the public records of a
            :class:`~skdpsurv.hybrid.HybridMEstimator`, or the estimator inside.

        Raises
        ------
        ValueError, TypeError
            If there is no such estimator, or the release is not one of its own.
        """
        return self._kind.from_release(self, **arguments)

    @property
    def _kind(self) -> Any:
        kind = self.kinds[self.estimator]
        if kind is None:
            raise ValueError(
                f"estimator of the release must be a class of this package, got "
                f"{self.estimator!r:.60}; import the module that defines it."
            )
        return kind

    @property
    def _model(self) -> Any:
        """The estimator, of what can be built from a release alone."""
        if needed := self._kind._beyond_release:
            raise ValueError(
                f"a release of a {self.estimator} needs {needed} to predict: use to_estimator."
            )
        return self.to_estimator()

    def predict(self, table: Any, *, strict: bool = False) -> NDArray[Any]:
        """Return what the estimator predicts for raw rows: risk scores, classes, or outcomes.

        Parameters
        ----------
        table : data frame of pandas or polars, or array-like of shape (n_samples, n_features_in)
            Raw rows, in the units of ``columns``. Columns of a frame are found by name; those that
            hold the target of the fit may be there. Those of an array must be in order. Times, of
            an estimator of one curve.
        strict : bool, default=False
            Refuse values beyond a public bound, which are clipped otherwise, as they were in fit.

        Returns
        -------
        ndarray of shape (n_samples,)

        Raises
        ------
        ValueError, TypeError
            If columns are missing, renamed, of the wrong type, or not described; and if the release
            needs more than itself (:meth:`to_estimator`).
        """
        return np.asarray(self._asked("predict", table, strict))

    def predict_proba(self, table: Any, *, strict: bool = False) -> FloatArray:
        """Return class probabilities for raw rows.

        Parameters
        ----------
        table, strict
            As for :meth:`predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return np.asarray(self._asked("predict_proba", table, strict))

    def predict_survival_function(
        self, table: Any, return_array: bool = False, *, strict: bool = False
    ) -> NDArray[Any]:
        """Return survival functions for raw rows.

        Parameters
        ----------
        table, strict
            As for :meth:`predict`.
        return_array : bool, default=False
            Return values at ``unique_times_`` instead of step functions.

        Returns
        -------
        ndarray of StepFunction, shape (n_samples,), or of float, shape (n_samples, n_times)
        """
        name = "predict_survival_function"
        return np.asarray(self._asked(name, table, strict, return_array=return_array))

    def _asked(self, method: str, table: Any, strict: bool, **options: Any) -> Any:
        model = self._model
        if not hasattr(model, method):
            raise ValueError(f"a {self.estimator} has no {method}.")
        return getattr(model, method)(raw_rows(self, table, strict), **options)

    # ---- Files.

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the release as JSON text; numbers survive the round trip to the last bit.

        Parameters
        ----------
        indent : int or None
            As for :func:`json.dumps`.
        """
        return layout.written(self, indent)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what :meth:`to_json` wrote, in this version of the layout or an earlier one.

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
        content = layout.read(text)
        try:
            return cls(**content)
        except (TypeError, AttributeError):
            pass
        raise ValueError("the JSON of a Release holds a field of the wrong type.")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release to a new file, as JSON: the whole of it, or nothing.

        Parameters
        ----------
        path : str or Path

        Raises
        ------
        FileExistsError
            If there is such a file: what was published is not overwritten.
        """
        layout.save(self.to_json(indent=2) + "\n", path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a release from a file that :meth:`save` wrote.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        Release

        Raises
        ------
        ValueError
            As :meth:`from_json` does.
        """
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
