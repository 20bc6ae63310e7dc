"""Coefficients of other columns, bounds and codings."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer

from skdpsurv import PublicBoundsScaler, PublicColumns
from skdpsurv.data.public_steps import features_in
from skdpsurv.priors import Evidence, Terms

AGE = {"bounds": [20, 80], "unit": "years"}
WARD = ["north", "east", "west"]


def features(step):
    return features_in(step, len(step.columns), list(step.columns))


def evidence(coef, error=None):
    coef = np.asarray(coef, dtype=float)
    return Evidence(coef, np.asarray(error, dtype=float) if error is not None else coef * 0 + 0.1)


def linear(step, coef, rows):
    """What a model adds to the predictor, but for a constant."""
    return step.fit_transform(pd.DataFrame(rows)) @ np.asarray(coef)


ROWS = {"age": [30.0, 50.0, 70.0, 40.0], "ward": ["north", "east", "west", "east"]}


def test_predictors_are_the_same_but_for_a_constant():
    """Whatever the bounds, the order of columns, and the reference."""
    for other in [
        {"age": {"bounds": [0, 100], "unit": "years"}, "ward": WARD},
        {"ward": WARD, "age": AGE},
        {"age": AGE, "ward": ["west", "north", "east"]},
        {"age": {"bounds": [25, 75]}, "ward": WARD},
    ]:
        one, two = PublicColumns({"age": AGE, "ward": WARD}), PublicColumns(other)
        coef = [0.7, -0.4, 1.1]
        mapped = Terms.of(features(two), two).mapped(Terms.of(features(one), one), evidence(coef))
        gap = linear(one, coef, ROWS) - linear(two, mapped.coef, ROWS)
        np.testing.assert_allclose(gap, gap[0])
        assert np.isfinite(mapped.error).all()


def test_errors_are_mapped_too():
    one = PublicColumns({"age": AGE, "ward": WARD})
    two = PublicColumns({"age": {"bounds": [0, 120]}, "ward": ["west", "north", "east"]})
    found = Terms.of(features(two), two).mapped(
        Terms.of(features(one), one), evidence([1.0, 2.0, 3.0], [0.3, 0.5, 1.2])
    )
    # Half-widths of 30 and 60; against west: north is -3, of error 1.2, and east 2 - 3, of 1.3.
    np.testing.assert_allclose(found.coef, [2.0, -3.0, -1.0])
    np.testing.assert_allclose(found.error, [0.6, 1.2, 1.3])


def test_of_what_the_other_lacks_nothing_is_known():
    one = PublicColumns({"age": AGE})
    two = PublicColumns({"age": AGE, "ward": WARD, "ill": {"boolean": True}})
    found = Terms.of(features(two), two).mapped(Terms.of(features(one), one), evidence([1.0]))
    np.testing.assert_array_equal(np.isfinite(found.error), [True, False, False, False])
    assert not found.coef[1:].any()


def test_a_label_that_is_not_known_to_both():
    one = PublicColumns({"ward": WARD})
    two = PublicColumns({"ward": ["north", "west", "south"]})
    found = Terms.of(features(two), two).mapped(Terms.of(features(one), one), evidence([1.0, 2.0]))
    # Against north in both: west is 2, south is not known.
    assert found.coef[0] == 2.0
    assert np.isinf(found.error[1])
    three = PublicColumns({"ward": ["south", "north", "west"]})
    with pytest.raises(ValueError, match="column in common"):
        Terms.of(features(three), three).mapped(Terms.of(features(one), one), evidence([1.0, 2.0]))


def test_another_unit_is_refused_and_other_columns_are():
    one = PublicColumns({"age": AGE})
    months = PublicColumns({"age": {"bounds": [240, 960], "unit": "months"}})
    with pytest.raises(ValueError, match="in the same unit, months, got years"):
        Terms.of(features(months), months).mapped(Terms.of(features(one), one), evidence([1.0]))
    weight = PublicColumns({"weight": {"bounds": [40, 160]}})
    with pytest.raises(ValueError, match="column in common"):
        Terms.of(features(weight), weight).mapped(Terms.of(features(one), one), evidence([1.0]))


SPAN = {"bounds": [0, 100]}


def mapped(ours, theirs, coef, columns=("a", "f")):
    made = [features_in(step, len(columns), list(columns)) for step in (ours, theirs)]
    one, two = (Terms.of(f, s) for f, s in zip(made, (ours, theirs), strict=True))
    found = one.mapped(two, evidence(coef))
    return np.where(np.isfinite(found.error), found.coef, np.nan)


def test_a_missing_number_is_relative_to_the_middle():
    """Of other bounds that is another number: nothing is known of the indicator."""
    other = {"a": {"bounds": [0, 50]}}
    steps = [PublicColumns(c, missing="category") for c in ({"a": SPAN}, other)]
    np.testing.assert_array_equal(mapped(*steps, [1.25, 0.3], ["a"]), [2.5, np.nan])
    one, two = (
        PublicColumns({"a": SPAN, "f": labels}, missing="category")
        for labels in (["x", "y"], ["y", "x"])
    )
    found = mapped(two, one, [1.25, 0.3, 1.0, 0.5])
    np.testing.assert_array_equal(found, [1.25, 0.3, -1.0, -0.5])


def test_several_features_of_one_number_are_taken_as_they_are_or_not_at_all():
    def pieces(*bounds):
        parts = [(f"p{k}", PublicBoundsScaler(*b), ["a"]) for k, b in enumerate(bounds)]
        return ColumnTransformer([*parts, ("f", PublicColumns({"f": bool}), ["f"])])

    one, two = pieces((0, 40), (40, 100)), pieces((0, 50), (50, 100))
    np.testing.assert_array_equal(mapped(two, one, [1.25, -3.0, 1.0]), [np.nan, np.nan, 1.0])
    more = ColumnTransformer(
        [*one.transformers[:2], ("f", PublicColumns({"f": ["n", "y"]}), ["f"])]
    )
    np.testing.assert_array_equal(mapped(more, one, [1.25, -3.0, 1.0]), [1.25, -3.0, np.nan])


def test_a_date_is_no_number():
    date, number = (
        PublicColumns({"a": how})
        for how in ({"dates": ["2001-01-01", "2010-12-31"]}, {"bounds": [0, 100]})
    )
    for one, two in ((date, number), (number, date)):
        with pytest.raises(ValueError, match="in the same unit"):
            mapped(one, two, [1.0], ["a"])


def test_other_references_are_others_though_formulas_are_alike():
    """Indicators of y and z, against x and against w."""
    one, two = (
        PublicColumns({"s": [first, "y", "z"], "a": {"bounds": [0, 1]}}) for first in ("x", "w")
    )
    found = mapped(one, two, [1.0, 2.0, 3.0], ["s", "a"])
    np.testing.assert_array_equal(found, [np.nan, np.nan, 3.0])
    np.testing.assert_array_equal(mapped(one, one, [1.0, 2.0, 3.0], ["s", "a"]), [1.0, 2.0, 3.0])
