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


def mapped(ours, theirs, coef, error=None, columns=None):
    """Return a prior's evidence on coefficients of its columns, mapped to other ones."""
    error = np.full(len(coef), 0.1) if error is None else np.array(error)
    one, two = (
        Terms.of(features_in(step, len(names), names), step)
        for step, names in ((s, columns or list(s.columns)) for s in (ours, theirs))
    )
    return one.mapped(two, Evidence(np.array(coef, dtype=float), error))


def known(*args, columns=("a", "f")):
    """Return mapped coefficients, NaN where nothing is known."""
    found = mapped(*args, columns=list(columns))
    return np.where(np.isfinite(found.error), found.coef, np.nan)


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
        found = mapped(two, one, coef)
        gap = linear(one, coef, ROWS) - linear(two, found.coef, ROWS)
        np.testing.assert_allclose(gap, gap[0])
        assert np.isfinite(found.error).all()


def test_errors_are_mapped_too():
    one = PublicColumns({"age": AGE, "ward": WARD})
    two = PublicColumns({"age": {"bounds": [0, 120]}, "ward": ["west", "north", "east"]})
    found = mapped(two, one, [1.0, 2.0, 3.0], [0.3, 0.5, 1.2])
    # Half-widths of 30 and 60; against west: north is -3, of error 1.2, and east 2 - 3, of 1.3.
    np.testing.assert_allclose(found.coef, [2.0, -3.0, -1.0])
    np.testing.assert_allclose(found.error, [0.6, 1.2, 1.3])


def test_of_what_the_other_lacks_nothing_is_known():
    one = PublicColumns({"age": AGE})
    two = PublicColumns({"age": AGE, "ward": WARD, "ill": {"boolean": True}})
    found = mapped(two, one, [1.0])
    np.testing.assert_array_equal(np.isfinite(found.error), [True, False, False, False])
    assert not found.coef[1:].any()
    # Against north in both: west is 2, south is not known.
    one, two = (PublicColumns({"ward": w}) for w in (WARD, ["north", "west", "south"]))
    np.testing.assert_array_equal(known(two, one, [1.0, 2.0], columns=["ward"]), [2.0, np.nan])


def test_nothing_in_common_or_another_unit_is_refused():
    """A date is no number."""
    span = {"bounds": [0, 100]}
    date = {"dates": ["2001-01-01", "2010-12-31"]}
    for theirs, ours, says in (
        (WARD, ["south", "north", "west"], "column in common"),
        (AGE, {"bounds": [240, 960], "unit": "months"}, "in the same unit, months, got years"),
        (span, date, "in the same unit"),
        (date, span, "in the same unit"),
    ):
        one, two = (PublicColumns({"age": column}) for column in (theirs, ours))
        with pytest.raises(ValueError, match=says):
            mapped(two, one, [1.0, 2.0] if theirs is WARD else [1.0])
    with pytest.raises(ValueError, match="column in common"):
        mapped(PublicColumns({"weight": span}), PublicColumns({"age": AGE}), [1.0])


def test_a_missing_number_is_relative_to_the_middle():
    """Of other bounds that is another number: nothing is known of the indicator."""
    one, two, other = (
        PublicColumns({"a": {"bounds": [0, high]}, "f": labels}, missing="category")
        for high, labels in ((100, ["x", "y"]), (100, ["y", "x"]), (50, ["x", "y"]))
    )
    coef = [1.25, 0.3, 1.0, 0.5]
    np.testing.assert_array_equal(known(two, one, coef), [1.25, 0.3, -1.0, -0.5])
    np.testing.assert_array_equal(known(one, other, coef), [2.5, np.nan, 1.0, 0.5])


def test_several_features_of_one_number_are_taken_as_they_are_or_not_at_all():
    def pieces(*bounds):
        parts = [(f"p{k}", PublicBoundsScaler(*b), ["a"]) for k, b in enumerate(bounds)]
        return ColumnTransformer([*parts, ("f", PublicColumns({"f": bool}), ["f"])])

    one, two = pieces((0, 40), (40, 100)), pieces((0, 50), (50, 100))
    np.testing.assert_array_equal(known(two, one, [1.25, -3.0, 1.0]), [np.nan, np.nan, 1.0])
    label = ("f", PublicColumns({"f": ["n", "y"]}), ["f"])
    more = ColumnTransformer([*one.transformers[:2], label])
    np.testing.assert_array_equal(known(more, one, [1.25, -3.0, 1.0]), [1.25, -3.0, np.nan])


def test_other_references_are_others_though_formulas_are_alike():
    """Indicators of y and z, against x and against w."""
    one, two = (
        PublicColumns({"s": [first, "y", "z"], "a": {"bounds": [0, 1]}}) for first in ("x", "w")
    )
    coef, columns = [1.0, 2.0, 3.0], ["s", "a"]
    np.testing.assert_array_equal(known(one, two, coef, columns=columns), [np.nan, np.nan, 3.0])
    np.testing.assert_array_equal(known(one, one, coef, columns=columns), coef)
