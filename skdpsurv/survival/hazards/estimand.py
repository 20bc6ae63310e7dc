r"""The coefficients that a private fit estimates, computed by those who hold the records.

With the released centre m, scales s, radius :math:`\rho` and cap H, rows and weights are

.. math::
    z_i = \mathrm{clip}_c\big((x_i - m)/s,\ c\rho\big)/\rho,\qquad w_i = \min(1, \|z_i\|^{-2}),

with c = :data:`~skdpsurv.inference.DOWNWEIGHTING_BOUND` with standard errors, and c = 1 without,
where all weights are 1. The estimand :math:`\beta(H, R)` minimises, with a baseline a,
:math:`\sum_i w_i \tilde\ell_H(a, \beta; \rho s z_i)`, without noise and ridge
(docs/proofs/inference).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn import config_context
from sklearn.utils.validation import check_is_fitted

from skdpsurv.data.feature import Feature
from skdpsurv.data.known_columns import Moments
from skdpsurv.data.shape import in_memory
from skdpsurv.dp.containers import unlabelled
from skdpsurv.dp.input_errors import suppressed_float_errors
from skdpsurv.dp.types import FloatArray
from skdpsurv.inference import DOWNWEIGHTING_BOUND, ROW_VALUES
from skdpsurv.release import Release, released_array
from skdpsurv.survival.hazards.maximum import maximum_likelihood
from skdpsurv.survival.hazards.model import OVER_TIME, Block, HazardRecords, in_published
from skdpsurv.survival.hazards.strata import n_strata
from skdpsurv.survival.hazards.time_varying import TimeVaryingModel

#: Name of the series that is returned, so that it goes along.
PRIVATE = "private: not to be published"


def released_rows(release: Release) -> tuple[np.ndarray, float, np.ndarray]:
    """Return centre, radius and scales of rows."""
    if release.values.keys().isdisjoint(ROW_VALUES):
        raise ValueError(
            "release_ must hold row_center, row_scale and row_radius, by which a private fit reads "
            "rows; this one has none. With epsilon=inf, coef_ itself is the estimand."
        )
    d = release.n_features
    center, scales, radius = (
        released_array(release, name, shape)
        for name, shape in zip(ROW_VALUES, ((d,), (d,), ()), strict=True)
    )
    if not (scales > 0.0).all() or not radius > 0.0:
        raise ValueError("values of the release must hold positive row_scale and row_radius.")
    return center, float(radius), scales


def moments_of(model: Any) -> Iterator[tuple[Feature, Moments]]:
    """Yield features with centres and squared scales of a fit's rows, as if without errors."""
    release = model.release_
    center, _, scales = released_rows(release)
    for feature, mean, scale in zip(release.features, center, scales, strict=True):
        yield feature, (mean, scale**2, 0.0)


class EstimandModel(TimeVaryingModel):
    """Base of hazard models whose releases state how rows were read."""

    def estimand(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        person: ArrayLike | None = None,
        entry: ArrayLike | None = None,
    ) -> pd.Series[float]:
        """Return the coefficients that ``summary`` is about, without noise: private.

        **Do not publish the result**: it depends on each record, and no guarantee covers it. It is
        for those who hold the records. No ledger is charged.

        The coefficients minimise the loss of the fit without its noise and ridge: with the centre,
        scales, radius and cap that the release states. After a fit with ``inference_share``, people
        with extreme rows have smaller weights, as they had in the fit; else their rows are scaled
        down.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : structured array of shape (n_samples,), or array-like of times
            As for ``fit``.
        person, entry : array-like of shape (n_samples,), or None
            As for ``fit``.

        Returns
        -------
        pandas.Series
            Named "private: not to be published"; indexed by ``covariate`` and per unit, as
            ``summary``.

        Raises
        ------
        ValueError
            If entries were given to the fit, and are not here; or to here alone. If the release
            does not say how rows were read: of a fit with ``epsilon=inf``, whose
            ``coef_`` is the estimand, of a chain without a delta, of a pool, or of an older file.

        Examples
        --------
        >>> from skdpsurv import DPDiscreteTimeSurvival
        >>> from skdpsurv.datasets import make_discrete_time_survival
        >>> data = make_discrete_time_survival(1000, 2, random_state=0)
        >>> model = DPDiscreteTimeSurvival(epsilon=3.0, max_time=data.max_time, data_norm=1.0)
        >>> found = model.fit(data.X, data.y).estimand(data.X, data.y)
        >>> found.name, list(found.index)
        ('private: not to be published', ['x0', 'x1'])
        """
        coef, over_time = without_noise(self, maximum_likelihood, X, y, person, entry)
        features, nothing = self.release_.features, np.zeros(0)
        found = self._table(coef, over_time.get(OVER_TIME, nothing), features)
        return found["coef"].rename(PRIVATE)


def without_noise(
    fitted: Any, minimum: Callable[..., tuple[Any, FloatArray]], X: Any, y: Any, *others: Any
) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Return the coefficients of the loss of a fit without noise and ridge; see ``estimand``.

    And those of products with time, by name.

    ``minimum`` finds baselines and coefficients, given a model with the fit's cap, the records, and
    these as the fit read them. ``others`` are person and entry.
    """
    check_is_fitted(fitted, "release_")
    release, (person, entry) = fitted.release_, others
    center, radius, scales = released_rows(release)
    inputs = release.made_by.public_inputs
    if ("late_entry" in inputs) != (entry is not None):
        raise ValueError("entry must be given as it was to fit.")
    stated = inputs.get("prior_event_rate")
    fitted._ruled()["prior_event_rate"]("prior_event_rate", stated)
    # Two models made of the release: the fitted one and its ledger are left alone.
    own, measured = (type(fitted).from_release(release) for _ in range(2))
    X, y, person = map(unlabelled, (X, y, person), ("X", "y", "person"))
    options = {} if entry is None else {"entry": unlabelled(entry, "entry")}
    with suppressed_float_errors(), config_context(assume_finite=False):
        X, y = own._given(X, y, {})
        if person is not None or not in_memory(X, y, *options.values()):
            X, y, options = own._sources(X, y, person=person, **options)
        shape = measured._shape(X, y, **options)
        records = own._read(shape, X, y, **options)
        how: dict[str, Any] = {"max_cumulative_hazard": fitted.max_cumulative_hazard_}
        how |= {"has_entry": shape.has_entry, "n_strata": n_strata(own)}
        model = own._model(shape, exact_rows=False, prior_event_rate=stated, **how)
        bound = None if fitted.inference_ is None else DOWNWEIGHTING_BOUND

        def as_in_the_fit(block: HazardRecords) -> Block:
            rows: Block = block.clipped(center, radius, bound, scales)
            # for coefficients on X's scale
            return rows.changed(lambda one: one._replace(X=one.X * (radius * scales)))

        _, coef = minimum(model, records, records.map(as_in_the_fit).persist())
        return in_published(model, coef)
