"""How the records of one group come in: as in lifelines, or as in scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from skdpsurv.base import PrivateEstimator
from skdpsurv.blocks import Blocks, in_blocks
from skdpsurv.privacy import call_without_data
from skdpsurv.shape import Shape, seen_shape, size
from skdpsurv.sources import in_memory, one_target, require_in_memory
from skdpsurv.survival.curve_frames import CurveFrames, Shown
from skdpsurv.target import (
    event_and_time_of,
    fit_target,
    is_two_dimensional,
    n_targets,
    no_events,
    single_column,
    target_reader,
)
from skdpsurv.types import BoolArray, FloatArray


class UnivariateRecords(CurveFrames, PrivateEstimator):
    """Base of estimators that fit times and events, and do not use any columns of X."""

    n_features_in_: int

    _one_of_each: ClassVar[tuple[str, ...]] = ("durations", "event_observed")

    def fit(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        durations: ArrayLike | None = None,
        event_observed: ArrayLike | None = None,
        person: ArrayLike | None = None,
        timeline: ArrayLike | None = None,
        label: str | None = None,
        alpha: float | None = None,
        ci_labels: Sequence[str] | None = None,
    ) -> Self:
        """Fit the distribution, spending ``epsilon``.

        As in lifelines, ``fit(durations, event_observed)``, by position or by name; or as in
        scikit-learn, ``fit(X, y)``, where X has a row for each record and is not used.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_features), or None
            One-dimensional, or alone and of one column: durations. Two-dimensional: ignored but
            for its length.
        y : array-like of shape (n_samples,) or None
            Structured array of event indicator and time, as scikit-survival has them. Else, events
            if X is one-dimensional, and times, all observed, if X is two-dimensional or None;
            beside a frame of one column only if names say so: times, and that column is not.
        durations : array-like of shape (n_samples,) or None
            Times of event or censoring, in the unit of ``max_time``. Private.
        event_observed : array-like of shape (n_samples,) or None
            True or 1 where the event was seen, False or 0 where censored. Private. None: all seen.
        person : array-like of shape (n_samples,), or None
            Whose each record is, as whole numbers or text: of each person the first record is used,
            and the guarantee is about people. Private. None: nobody has two records.
        timeline : array-like of shape (n_times,), or None
            Times that ``survival_function_`` and its like are tables of. Public. None: up to
            ``max_time``.
        label : str or None
            Name of the estimate in these tables.
        alpha : float or None
            Their intervals cover 1 - alpha. None: the parameter ``alpha``.
        ci_labels : sequence of two str, or None
            Names of the lower and of the upper end of intervals.

        Returns
        -------
        self
        """
        shown = Shown.checked(timeline, label, alpha, ci_labels)
        if y is None and durations is None:
            X = single_column(X)
        self._fit(X, y, durations=durations, event_observed=event_observed, person=person)
        self._show(shown)
        return self

    @available_if(lambda fitter: hasattr(fitter._curve_type, "hazard"))
    def score(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        durations: ArrayLike | None = None,
        event_observed: ArrayLike | None = None,
    ) -> float:
        """Return the mean log-likelihood of records, which is not private.

        Times are clipped as in ``fit``.

        Parameters
        ----------
        X, y, durations, event_observed
            As for ``fit``.

        Returns
        -------
        float
            Of densities in the unit of ``max_time``; higher is better.
        """
        curve = self._curve
        require_in_memory(X, y, durations, event_observed)
        if self.n_features_in_ > 0 and is_two_dimensional(X):
            self._see_rows(X)
        event, time = fit_target(X, y, durations, event_observed)
        return curve.mean_log_likelihood(time, event)

    def _sources(
        self,
        X: Any,
        y: Any,
        *,
        person: Any = None,
        durations: Any = None,
        event_observed: Any = None,
        **others: Any,
    ) -> tuple[Any, Any, dict[str, Any]]:
        """Return the arguments; what is not in memory as one source, with one target."""
        options = {"durations": durations, "event_observed": event_observed, **others}
        if in_memory(X, y, *options.values()):
            return super()._sources(X, y, person=person, **options)
        for name, values in others.items():
            if values is not None and in_memory(values):
                raise TypeError(f"{name} must be where X and y are, and not in memory.")
        X, y, event_observed = one_target(X, y, durations, event_observed)
        options = {"event_observed": event_observed, **others}
        X, y, _ = super()._sources(X, y, person=person, **options)
        return X, y, {"durations": None, "event_observed": None, **dict.fromkeys(others)}

    def _shape(self, X: Any, y: Any, durations: Any = None, event_observed: Any = None) -> Shape:
        """Return the number of records, and columns of a two-dimensional X, which are not used."""
        if isinstance(X, Blocks):
            n_records, n_columns = size(X)
            if n_columns > 0:
                return seen_shape(self, X, used=False)
        else:
            n_records = n_targets(X, y, durations, event_observed)
            if is_two_dimensional(X):
                return replace(seen_shape(self, X, used=False), n_records=n_records)
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = 0
        return Shape(n_records, 0)

    def _doubts(self, shape: Shape, X: Any, y: Any = None, **options: Any) -> list[str]:
        # Durations by themselves are all observed, as in lifelines; of scikit-learn's X and y
        # somebody may have forgotten the events.
        return no_events(y) if is_two_dimensional(X) else []

    def _read(
        self, shape: Shape, X: Any, y: Any, durations: Any = None, event_observed: Any = None
    ) -> Blocks[tuple[BoolArray, FloatArray]]:
        """Return blocks of events and times."""
        if isinstance(X, Blocks):
            read, blocks = event_and_time_of, in_blocks(X, y).map(lambda block: block[1:])
        else:
            read, arguments = target_reader(X, y, durations, event_observed)
            blocks = in_blocks(*arguments)
        records = blocks.map(lambda block: read(*block)).held()
        shape.require(records.map_sum(lambda block: block[1].size))
        return records

    def _see_rows(self, X: Any) -> int:
        """Return how many rows X has, which must have as many columns as in ``fit``."""
        checked = call_without_data(
            validate_data,
            self,
            X,
            dtype=None,
            ensure_all_finite=False,
            accept_sparse=True,
            reset=False,
        )
        return int(checked.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        return tags
