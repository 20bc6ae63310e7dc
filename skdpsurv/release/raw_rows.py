"""How a release is used: raw rows in, predictions out, without data of the fit."""

from __future__ import annotations

from collections.abc import Sequence
from pkgutil import resolve_name
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skdpsurv.data.public_steps import columns_out_of_bounds
from skdpsurv.dp.containers import is_frame, labels_of, select
from skdpsurv.dp.guarantee import SAME_GROUP
from skdpsurv.dp.types import FloatArray
from skdpsurv.release.simulation import simulated


class Kinds(dict[str, Any]):
    """Estimators by their names; None is one that nobody knows."""

    def __missing__(self, name: str) -> Any:
        return self._all().get(name)

    def _all(self) -> Kinds:
        """Return the estimators, also those of this package that nobody has imported."""
        # Each enters itself, and the first room builds on most. No other import runs upwards.
        for room in ("published", "descriptive"):
            resolve_name(f"skdpsurv.{room}:")
        return self

    def stating(self, field: str) -> dict[str, Any]:
        """Return one field of all cards that state it, by the names of estimators."""
        stated = {name: getattr(kind._card, field) for name, kind in self._all().items()}
        return {name: stated[name] for name in sorted(stated) if stated[name]}

    def named(self, field: str) -> dict[str, Any]:
        """Return the estimators by their names of one kind: ``word`` or ``analysis``."""
        return {word: self[name] for name, word in self.stating(field).items()}


class ReleasedModel:
    """The predictions of a release."""

    #: Estimators by their names: each class enters itself when it is imported.
    kinds: ClassVar[Kinds] = Kinds()
    estimator: str
    made_with: str

    def to_estimator(self, **arguments: Any) -> Any:
        """Return a fitted estimator, without data.

        Parameters
        ----------
        **arguments : object
            Arguments of the class's ``from_release`` that no release holds: the public records of
            a :class:`~skdpsurv.hybrid.HybridMEstimator`, or the estimator inside.

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
                f"{self.estimator!r:.60}; import the module that defines it, or use what made it, "
                f"{self.made_with!r:.40}."
            )
        return kind

    def predict(self, table: Any, *, strict: bool = False) -> NDArray[Any]:
        """Predict for raw rows: risk scores, classes, or outcomes.

        Parameters
        ----------
        table : table of pandas, polars or pyarrow, or array-like, (n_samples, n_features_in)
            Raw rows, in the units of ``columns``. Columns of a frame are found by name, and may
            include the target of the fit; those of an array must be in order. For an estimator of
            one curve: times.
        strict : bool, default=False
            Refuse values beyond a public bound, which are clipped otherwise, as in fit.

        Returns
        -------
        ndarray of shape (n_samples,)

        Raises
        ------
        ValueError, TypeError
            If columns are missing, renamed, of the wrong type, or not described, or the release
            does not stand alone (:meth:`to_estimator`).
        """
        return self._predicted("predict", table, strict)

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
        return self._predicted("predict_proba", table, strict)

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
        return self._predicted(name, table, strict, return_array=return_array)

    def predict_cumulative_incidence_function(
        self, table: Any, cause: Any = None, return_array: bool = False, *, strict: bool = False
    ) -> NDArray[Any]:
        """Return probabilities of an event of a cause, before any other, for raw rows.

        Parameters
        ----------
        table, strict
            As for :meth:`predict`.
        cause : label or None
            One of the causes of a regression of competing risks. None: the first one.
        return_array : bool, default=False
            Return values at ``unique_times_`` instead of step functions.

        Returns
        -------
        ndarray of StepFunction, shape (n_samples,), or of float, shape (n_samples, n_times)
        """
        name = "predict_cumulative_incidence_function"
        return self._predicted(name, table, strict, cause=cause, return_array=return_array)

    def simulate(
        self, n_records: int, seed: int, *, table: Any = None, censoring: Any = None
    ) -> tuple[pd.DataFrame, Any]:
        """Make up a cohort that resembles the release, for teaching, code review and power.

        Nothing is spent: it follows from releases and the seed. **Nobody is in it**, and it shows
        of real people what these releases show and nothing else, so conclude nothing from it about
        them. Outcomes depend on columns as the model predicts; columns are independent of each
        other, but for the groups of a table.

        Parameters
        ----------
        n_records : int
            Number of made-up people.
        seed : int
            Not negative; the same seed gives the same people. Public.
        table : Release or None, default=None
            Release of a :class:`~skdpsurv.DPTableOne`: its columns have its margins, by group where
            its groups are a column of the model. Other columns have the centre and spread that the
            fit measured, or what its ``columns`` state, or are spread evenly.
        censoring : None, float, array-like, callable or Release, default=None
            When people are lost, if before the horizon: None, never; a rate per unit of time; a
            time for each; a function of X and a :class:`numpy.random.Generator` that returns these;
            or a release of Kaplan-Meier or Aalen-Johansen curves, whose censoring it is.

        Returns
        -------
        X : DataFrame
            Raw rows, as ``fit`` takes them. For curves: columns ``group`` and ``entry``, if the
            release has them. ``X.attrs["made_up"]`` says what it is, and ``X.attrs["margins"]``
            where the margin of each column is from.
        y : ndarray of shape (n_records,), or None
            Structured array of event or cause, and time; or classes. None for a Table 1.

        Raises
        ------
        ValueError, TypeError
            If an argument breaks its rule, or the release does not describe its raw columns.

        Notes
        -----
        Times are spread evenly in their interval. An event in the interval in which somebody is
        lost is seen, as a fit of hazards reads it. Everybody is seen from 0, but for curves of
        people who entered late.

        Examples
        --------
        >>> from skdpsurv import DPDiscreteTimeSurvival, PublicColumns
        >>> from skdpsurv.datasets import make_discrete_time_survival
        >>> data = make_discrete_time_survival(2000, 1, random_state=0)
        >>> model = DPDiscreteTimeSurvival(1.0, max_time=1.0, columns=PublicColumns.of(x0=(-1, 1)))
        >>> release = model.fit(data.X, data.y).release_
        >>> X, y = release.simulate(500, seed=1, censoring=0.5)
        >>> X.shape, y.dtype.names, X.attrs["margins"]
        ((500, 1), ('event', 'time'), {'x0': 'the fit'})
        """
        return simulated(self, n_records, seed, table, censoring)

    @property
    def _model(self) -> Any:
        """Return the estimator, if the release alone is enough to predict."""
        if needed := self._kind._card.beyond_release:
            raise ValueError(
                f"a release of a {self.estimator} needs {needed} to predict: use to_estimator."
            )
        return self.to_estimator()

    def _predicted(self, method: str, table: Any, strict: bool, **options: Any) -> NDArray[Any]:
        model = self._model
        if not hasattr(model, method):
            raise ValueError(f"a {self.estimator} has no {method}.")
        return np.asarray(getattr(model, method)(raw_rows(self, table, strict), **options))


def headline(release: Any) -> str:
    """Return estimator, number of records and guarantee in a line."""
    guarantee = release.guarantee
    return (
        f"{release.estimator}: {guarantee.public_inputs['n_records']:,} records, "
        f"epsilon = {guarantee.epsilon:g}, status {guarantee.status}"
        f"{', groups are public' * guarantee.neighbours.endswith(SAME_GROUP)}"
    )


def raw_rows(release: Any, table: Any, strict: bool) -> Any:
    """Return raw rows with their columns in the release's order, or refuse what it cannot take."""
    if release.guarantee.not_covered:
        raise ValueError(
            "a release does not hold the steps of its pipeline that learned from records: use "
            "to_estimator, for rows as they leave those steps."
        )
    if release.columns is None:
        if is_frame(table) or strict:
            raise ValueError(
                "this release does not say what its columns hold: it takes arrays of rows as they "
                "went into the fit. Fit with columns=, or use make_release, for data frames."
            )
        return table
    names = release.feature_names_in
    if is_frame(table):
        if names is None:
            raise ValueError(
                "the columns of this release have no names: it takes arrays, in order."
            )
        table = in_order(table, names, release.target_names)
    arguments = release.transformer(), table, release.n_features_in, names
    if strict and (beyond := columns_out_of_bounds(*arguments)):
        raise ValueError(
            f"table must be within the public bounds with strict=True, and {', '.join(beyond)} is "
            "not."
        )
    return table


def in_order(table: Any, names: Sequence[str], ignored: Sequence[str]) -> Any:
    """Return some columns of a table, in order."""
    given = list(map(str, labels_of(table) or ()))
    if len(set(given)) < len(given):
        raise ValueError("table must not have two columns of one name.")
    if missing := [name for name in names if name not in given]:
        raise ValueError(f"table must have the column(s) {', '.join(missing)}.")
    if extra := [name for name in given if name not in (*names, *ignored)]:
        raise ValueError(
            f"table must not have columns that the release does not know: {', '.join(extra)}."
        )
    if isinstance(table, pd.DataFrame):
        table = table.set_axis(given, axis=1)
    return select(table, list(names))
