"""make_release: a pipeline of public steps and a private estimator, as one release."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdpsurv.base.pipelines import flat_steps, one_after_another, private_step
from skdpsurv.base.tabular import TabularEstimator
from skdpsurv.data import public_steps
from skdpsurv.data.cells import as_table
from skdpsurv.data.feature import known_names
from skdpsurv.dp.guarantee import PrivacyLeakWarning
from skdpsurv.dp.references import phrase
from skdpsurv.dp.thread_warnings import suppressed_warnings
from skdpsurv.model_selection.best_model import BestModel
from skdpsurv.release import Release


def make_release(model: Any) -> Release:
    """Return the release of a fitted pipeline, with the steps that transform raw rows.

    The release of the private estimator itself starts from transformed rows, as it does not know
    the steps. This one takes raw rows.

    Parameters
    ----------
    model : estimator, Pipeline or PrivateSearchCV
        Fitted. A pipeline's last step is a private estimator of this package; the steps before it
        are public: :class:`~skdpsurv.data.PublicColumns`,
        :class:`~skdpsurv.data.PublicBoundsScaler`, scikit-learn's ``Normalizer``,
        ``Binarizer`` and ``PolynomialFeatures``, and a ``ColumnTransformer`` or ``Pipeline`` of
        such.

    Returns
    -------
    Release
        If a step may learn from records (such as ``StandardScaler``), the guarantee has status
        "none" and names the step as not covered. Such a release holds nothing that the step
        learned, and takes no raw rows.

    Warns
    -----
    PrivacyLeakWarning
        If there is such a step.

    Raises
    ------
    TypeError, ValueError, NotFittedError
        If there is no private estimator at the end, or it is not fitted.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdpsurv import DPDiscreteTimeSurvival, PublicBoundsScaler, make_release
    >>> from skdpsurv.datasets import load_flchain
    >>> data = load_flchain()
    >>> scaler = PublicBoundsScaler.from_bounds(data.bounds, missing="midpoint")
    >>> private = DPDiscreteTimeSurvival(epsilon=1.0, max_time=data.max_time)
    >>> model = make_pipeline(scaler, private).fit(data.X, data.y)
    >>> release = make_release(model)
    >>> bool((release.predict(data.X) == model.predict(data.X)).all())
    True
    """
    if isinstance(model, BestModel):
        check_is_fitted(model, "best_estimator_")
        model = model.best_estimator_
    _, private = private_step(model)
    check_is_fitted(private, "release_")
    steps = flat_steps(model)[:-1]
    release = private.release_
    if not steps or not isinstance(private, TabularEstimator):
        return release
    if learned := [name for step in steps for name in public_steps.learned_steps(step)]:
        return _not_covered(release, learned)
    n_columns = int(steps[0].n_features_in_)
    names = public_steps.input_names(
        steps[0], n_columns, getattr(steps[0], "feature_names_in_", None)
    )
    n_features = len(public_steps.features_in(one_after_another(steps), n_columns, names))
    # The private estimator was fitted behind the steps as they were then.
    if n_features != private.n_features_in_ or not _as_fitted(steps, n_columns, names):
        raise ValueError("steps of the pipeline must be as they were when it was fitted.")
    whole = one_after_another(steps if private.columns_ is None else [*steps, private.columns_])
    return replace(
        release,
        n_features_in=n_columns,
        feature_names_in=None if names is None else tuple(names),
        columns=public_steps.describe(whole, known_names(names, n_columns)),
    )


def _as_fitted(steps: list[Any], n_columns: int, names: list[str] | None) -> bool:
    """Return True if fitted steps transform invented rows as their present parameters say."""
    whole = one_after_another(steps)
    row = public_steps.valid_row(whole, known_names(names, n_columns))
    # These stand for any number: try others, too.
    other = [j + 0.37 if type(x) is float else x for j, x in enumerate(row)]
    for cells in (row, other):
        rows = as_table([cells], known_names(names, n_columns))
        found: Any = rows if names is not None else rows.to_numpy()
        with suppressed_warnings():
            for step in steps:
                found = step.transform(found)
        found, expected = (
            np.asarray(found, float),
            public_steps.encoded(whole, rows, n_columns, names),
        )
        if found.shape != expected.shape or not np.allclose(found, expected):
            return False
    return True


def _not_covered(release: Release, learned: list[str]) -> Release:
    named = ", ".join(learned)
    warnings.warn(phrase("learned_before", steps=named), PrivacyLeakWarning, stacklevel=3)
    text = f"Statistics of the records that {named} learned: no mechanism covers them."
    void = {
        name: replace(claim, status="none", not_covered=(*claim.not_covered, text))
        for name in ("guarantee", "fit_guarantee")
        if (claim := getattr(release, name)) is not None
    }
    return replace(release, **void)
