"""Fitted hazard models of which some effects change over time: predictions, and these effects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.data.columns import PublicColumns
from skdpsurv.data.dask import supports_lazy_input
from skdpsurv.data.feature import Feature
from skdpsurv.data.public_steps import column_names, raw_kinds
from skdpsurv.dp import checks
from skdpsurv.dp.types import FloatArray
from skdpsurv.inference.effects import errors_of
from skdpsurv.inference.uncertainty import interval_table, table
from skdpsurv.inference.wald import terms_of, tests_table, wald_test
from skdpsurv.release import Release, check_parameters, released_array
from skdpsurv.survival.hazards.changing import Changing, FittedChanges
from skdpsurv.survival.hazards.discrete_model import DiscreteTimeModel
from skdpsurv.survival.hazards.model import OVER_TIME

#: Number of times at which effects are shown.
N_TIMES = 20


class TimeVaryingModel(DiscreteTimeModel):
    """Base of hazard models whose columns may state how their effects change over time."""

    _sampling: Any
    prior: Any
    recalibration_share: Any

    def _changing(self, features: Sequence[Feature]) -> Changing | None:
        if isinstance(self.columns, PublicColumns):
            kinds: Sequence[ColumnKind | None] = self.columns._kinds()
        else:
            names = column_names(self.columns, self.n_features_in_, self._raw_names())
            kinds = raw_kinds(self.columns, names)
        kept = {str(one.column) for one in features if one.over_time is not None}
        for kind in kinds:
            if kind is not None and kind.over_time is not None and kind.column not in kept:
                raise ValueError(
                    f"columns must not state over_time of {kind.column!r}, whose values later "
                    "steps mix with others, or which is the strata."
                )
        grid: Any = int(self.n_intervals), checks.required_horizon(self.max_time)
        return Changing.of(features, *grid)

    def _refuse_over_time(self) -> None:
        """Refuse settings that are not provided for with effects that change."""
        if self._sampling is not None:
            raise ValueError("columns must not state over_time with method='psgld'.")
        if self.prior is not None:
            raise ValueError("prior must be None where columns state over_time.")
        if not isinstance(self.recalibration_share, str) and self.recalibration_share:
            raise ValueError("recalibration_share must be 0 where columns state over_time.")

    def _set_fitted(self, release: Release) -> None:
        check_parameters(release, "max_time", "n_intervals")
        stated, d = release.parameters, release.n_features
        grid = int(stated["n_intervals"]), float(stated["max_time"])
        self.over_time_coef_, self._changes = np.zeros(0), None
        if (public := Changing.of(release.features, *grid)) is not None:
            self.over_time_coef_ = released_array(release, OVER_TIME, (public.number,))
            center = np.zeros(d)  # of the fit's rows; without privacy they have none
            if "row_center" in release.values or not math.isinf(release.made_by.epsilon):
                center = released_array(release, "row_center", (d,))
            self._changes = FittedChanges(public, self.over_time_coef_, center)
        super()._set_fitted(release)

    def _summary(self, level: float) -> pd.DataFrame:
        check_is_fitted(self, "release_")
        d, n_terms, inference = self.coef_.size, self.over_time_coef_.size, self.inference_
        if inference is None:
            given = self.coef_, self.over_time_coef_
            return self._table(*given, self.release_.features, level=level)
        found = inference.estimate[-d - n_terms :], inference.standard_errors()[-d - n_terms :]
        (more, coef), (more_error, error) = (np.split(one, [n_terms]) for one in found)
        return self._table(coef, more, self.release_.features, error, more_error, level)

    def _table(
        self,
        coef: FloatArray,
        over_time: FloatArray,
        features: Sequence[Feature],
        error: FloatArray | None = None,
        over_time_error: FloatArray | None = None,
        level: float = 0.95,
    ) -> pd.DataFrame:
        """Return a table of coefficients, and of those of products with time after them."""
        own = np.full(coef.size, np.nan) if error is None else error
        found = table(coef, own, features, level)
        if self._changes is None:
            return found
        changing = self._changes.public
        steps = np.array([_step(features[j]) for j in changing.columns])
        index = pd.Index(changing.names, name=found.index.name)
        more = np.full(over_time.size, np.nan) if over_time_error is None else over_time_error
        products = interval_table(over_time * steps, more * np.abs(steps), index, level)
        return pd.concat([found, products])

    def proportional_hazards_test(self) -> pd.DataFrame:
        """Test that effects do not change over time, as ``cox.zph`` of R prints it.

        It is a Wald test of each column's products with its functions of time, and of all of them.
        Post-processing of this release: no budget is spent.

        Returns
        -------
        pandas.DataFrame
            Indexed by ``term``: the columns that state ``over_time``, and "GLOBAL". ``df`` is the
            number of coefficients that are tested, ``chi2`` the statistic, ``p`` its p-value, and
            ``hidden`` names coefficients that noise hides. p is NaN where it hides all.

        Raises
        ------
        ValueError
            If no column states ``over_time``, or there are no standard errors.

        Notes
        -----
        That effects do not change is meant on the scale of the link: of log hazards for "cloglog",
        of log odds in an interval for "logit". The level is approximate, as of all Wald tests of
        private estimates (docs/benchmarks/changing_effects).
        """
        check_is_fitted(self, "release_")
        if self._changes is None:
            raise ValueError(
                "columns must state over_time to test that their effects do not change: fit with "
                "columns such as {'age': {'bounds': [20, 80], 'over_time': 'log'}}."
            )
        inference, features = self._require_inference(), self.release_.features
        changing = self._changes.public
        places = {
            term: np.flatnonzero(np.isin(changing.columns, own))
            for term, own in terms_of(features).items()
        }
        places = {term: own for term, own in places.items() if own.size}
        first = inference.known.size - len(features) - changing.number
        scale = self._row_scale()
        found = []
        for own in (*places.values(), np.arange(changing.number)):
            columns, functions = changing.columns[own], changing.scaled.functions[own]
            hidden, at = inference.hidden, first + own
            if hidden is not None:
                same = functions[:, None] == functions
                hidden = np.where(same, hidden[np.ix_(columns, columns)], 0.0)
            estimated = inference.estimate[at], inference.covariance[np.ix_(at, at)]
            names = [changing.names[e] for e in own]
            found.append(wald_test(*estimated, inference.known[at], names, hidden, scale[columns]))
        return tests_table(found, pd.Index([*places, "GLOBAL"], name="term"))

    @supports_lazy_input(lambda self: None)
    def predict(self, X: ArrayLike) -> FloatArray:
        """Return risk scores: the covariates' part of the linear predictor, higher is riskier.

        Where effects change over time, the score is the logarithm of the cumulative hazard at the
        horizon, relative to that of the baseline.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        risk : ndarray of shape (n_samples,)
        """
        if self._changes is None:
            return self._scores(X)
        zero = np.zeros((1, 1 + self._changes.public.functions.shape[1]))
        n_strata = np.atleast_2d(self.baseline_coef_).shape[0]
        strata = [None] if self.strata is None else [np.array([g]) for g in range(n_strata)]
        base = float(np.mean([self._cumulative_hazard(zero, own)[0, -1] for own in strata]))

        def score(hazard: FloatArray) -> FloatArray:
            return np.asarray(np.log(np.maximum(hazard[:, -1], 1e-300)) - np.log(base))

        return self._by_blocks(X, score)

    def effect_over_time(
        self, column: str, times: ArrayLike | None = None, level: float = 0.95
    ) -> pd.DataFrame:
        """Return the coefficient of a column at stated times.

        Parameters
        ----------
        column : str
            A feature, such as ``"age"`` or ``"stage_II"``; or a column that has one alone.
        times : array-like of shape (n_times,), or None
            Times above 0 and up to ``max_time``. None: 20 times, spread evenly.
        level : float, default=0.95
            Nominal pointwise coverage.

        Returns
        -------
        pandas.DataFrame
            Indexed by ``time``; columns as in ``summary``, per unit of the raw column. Errors are
            missing without standard errors, and infinite where noise hides the effect. No budget
            is spent.

        Raises
        ------
        ValueError
            If there is no such feature, or a time is beyond the horizon.
        """
        check_is_fitted(self, "release_")
        level = checks.fraction("level", level)
        return over_time_table(self, column, times, level)


def _step(feature: Feature) -> float:
    return 1.0 if feature.per_unit is None else feature.per_unit


def over_time_table(model: Any, column: str, times: Any, level: float) -> pd.DataFrame:
    """Return the coefficient of a column at times; see ``effect_over_time``."""
    features, end = model.release_.features, float(model.release_.parameters["max_time"])
    found = [j for j, one in enumerate(features) if column in (one.name, one.column)]
    own = [j for j in found if features[j].name == column] or found
    if len(own) != 1:
        names = ", ".join(one.name for one in features)
        raise ValueError(f"column must be the name of one feature, of {names}, got {column!r:.60}.")
    if times is None:
        at = end * np.arange(1, N_TIMES + 1) / N_TIMES
    else:
        at = np.atleast_1d(np.asarray(times, dtype=np.float64))
        if at.ndim != 1 or not ((at > 0.0) & (at <= end)).all():
            raise ValueError(f"times must be above 0 and at most max_time, {end:g}.")
    (j,) = own
    d, n_terms = len(features), model.over_time_coef_.size
    # Of products with time first, as estimates have them.
    change = np.zeros((at.size, n_terms + d))
    change[:, n_terms + j] = 1.0
    if model._changes is not None:
        changing = model._changes.public
        terms = np.flatnonzero(changing.columns == j)
        change[:, terms] = changing.at(at, end)[:, changing.scaled.functions[terms]]
    step = _step(features[j])
    coef = change @ np.concatenate([model.over_time_coef_, model.coef_]) * step
    error = np.full(at.size, np.nan)
    if (inference := model.inference_) is not None:
        coef = change @ inference.estimate[-change.shape[1] :] * step
        error = errors_of(inference, change) * abs(step)
    index = pd.Index(at, name="time")
    return interval_table(coef, error, index, level).drop(columns=["z", "p", "-log2(p)"])
