"""Evidence on coefficients: of a fit, of other columns and codings, and what both say."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer

from skdpsurv import PrivacyGuarantee, PublicBoundsScaler, PublicColumns, Release
from skdpsurv.data.public_steps import features_in
from skdpsurv.mechanisms.perturbation import ridge_and_variances
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
    """A date is no number, and a logarithm is none without."""
    log, more = {"log": [1, 100]}, {"log": [1, 100], "offset": 1}
    span = {"bounds": [0, 100]}
    date = {"dates": ["2001-01-01", "2010-12-31"]}
    for theirs, ours, says in (
        (WARD, ["south", "north", "west"], "column in common"),
        (AGE, {"bounds": [240, 960], "unit": "months"}, "in the same unit, months, got years"),
        (span, date, "in the same unit"),
        (date, span, "in the same unit"),
        (span, log, "in the same unit, doubling of age, got not stated"),
        (log, span, "in the same unit, not stated, got doubling of age"),
        (AGE, log, "in the same unit, doubling of age, got years"),
        (log, more, r"in the same unit, doubling of age \+ 1, got doubling of age"),
    ):
        one, two = (PublicColumns({"age": column}) for column in (theirs, ours))
        with pytest.raises(ValueError, match=says):
            mapped(two, one, [1.0, 2.0] if theirs is WARD else [1.0])
    with pytest.raises(ValueError, match="column in common"):
        mapped(PublicColumns({"weight": span}), PublicColumns({"age": AGE}), [1.0])


def test_a_logarithm_acts_per_doubling_whatever_its_bounds():
    one, two = (PublicColumns({"age": {"log": [0, top], "offset": 1}}) for top in (99, 9))
    coef, rows = [0.7], {"age": [0.0, 1.0, 3.0, 9.0]}
    gap = linear(one, coef, rows) - linear(two, mapped(two, one, coef).coef, rows)
    np.testing.assert_allclose(gap, gap[0])


def test_a_power_acts_per_unit_of_it_and_a_spline_as_a_whole():
    one, two = (PublicColumns({"age": {"power": [0, top], "exponent": 2}}) for top in (99, 9))
    coef, rows = [0.7], {"age": [0.0, 1.0, 3.0, 9.0]}
    gap = linear(one, coef, rows) - linear(two, mapped(two, one, coef).coef, rows)
    np.testing.assert_allclose(gap, gap[0])
    cube = PublicColumns({"age": {"power": [0, 9], "exponent": 3}})
    with pytest.raises(ValueError, match=r"in the same unit, age\^2, got age\^3"):
        mapped(two, cube, coef)
    curves = [PublicColumns({"age": {"spline": [0, top]}, "f": bool}) for top in (99, 99, 9)]
    coef = [1.0, 2.0, 3.0, 4.0]
    np.testing.assert_array_equal(known(*curves[:2], coef, columns=("age", "f")), coef)
    np.testing.assert_array_equal(
        known(*curves[1:], coef, columns=("age", "f")), [np.nan, np.nan, np.nan, 4.0]
    )


def test_beside_other_products_an_effect_is_another():
    """It is that at a value of the other column, such as the middle of its bounds."""
    plain = {"a": (0, 10), "b": (0, 10), "c": (0, 1)}
    product = {"ab": {"interaction": ["a", "b"]}}
    one, wider = (PublicColumns(plain | {"b": (0, top)} | product) for top in (10, 20))
    names = {"columns": ("a", "b", "c")}
    coef = [1.0, 2.0, 3.0, 4.0]
    np.testing.assert_array_equal(known(one, one, coef, **names), coef)
    unknown = [np.nan, np.nan, 3.0]
    np.testing.assert_array_equal(known(wider, one, coef, **names), [*unknown, np.nan])
    np.testing.assert_array_equal(
        known(one, PublicColumns(plain), coef[:3], **names), [*unknown, np.nan]
    )
    np.testing.assert_array_equal(known(PublicColumns(plain), one, coef, **names), unknown)


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


def evidence(coef, error=1.0):
    coef = np.asarray(coef, dtype=float)
    return Evidence(coef, np.full(coef.shape, error))


@pytest.mark.parametrize(("linear", "output"), [(3.0, None), (None, 0.2), (3.0, 0.2)])
def test_estimate_and_error_are_those_of_a_quadratic_loss(linear, output):
    """A loss h/2 |f - z|^2 with z = theta + N(0, 1/h), and the mechanism's noise: 200,000 draws."""
    rng = np.random.default_rng(0)
    h, kappa, theta, n = 8.0, 5.0, 1.5, 200_000
    z = theta + rng.normal(size=n) / np.sqrt(h)
    b = rng.normal(size=n) * (linear or 0.0)
    e = rng.normal(size=n) * (output or 0.0)
    minimiser = (h * z + b) / (h + kappa) + e
    laws = [None if one is None else SimpleNamespace(deviation=one) for one in (linear, output)]
    calibration = SimpleNamespace(kappa=kappa, linear=laws[0], output=laws[1])
    found = Evidence.of_minimiser(minimiser, h, *ridge_and_variances(calibration))
    # The mean of 200,000 is off by more than 6 standard errors with probability 2e-9.
    assert abs(found.coef.mean() - theta) < 6.0 * found.error[0] / np.sqrt(n)
    assert found.coef.std() == pytest.approx(found.error[0], rel=6.0 / np.sqrt(2.0 * n))


def test_agreement_is_of_directions():
    """Along (3, 4), of length 5 and error 1: the part must be 1/2 and a quarter of the length."""
    for coef, agrees in [
        ([3.0, 4.0], True),
        ([-3.0, -4.0], False),  # reversed
        ([4.0, -3.0], False),  # something else
        ([0.25, 0.35], False),  # less than half of its standard error
        ([0.35, 0.4], True),
    ]:
        unit = evidence(coef, 1.0)
        assert unit.agrees(evidence([0.6, 0.8])) is agrees
        # An error that is small beside the prior: a quarter of its length.
        assert evidence([0.7, 1.0], 0.01).agrees(evidence([3.0, 4.0])) is False
        assert evidence([0.8, 1.1], 0.01).agrees(evidence([3.0, 4.0])) is True


def test_both_are_weighed_by_their_precisions():
    """The rest has a mean square of 4, where the errors' is 1; lengths alone make no rest."""
    own, prior = evidence([2.0, 2.0], 0.5), evidence([3.0, 3.0], 1.0)
    np.testing.assert_allclose(own.with_prior(prior), [(4 * 2 + 3) / 5] * 2)
    own, prior = evidence([5.0, 1.0], 0.6), evidence([3.0, 3.0], 0.8)
    variance = 0.8**2 + 3.0  # y - c = (2, -2), as rho = 1
    means = [(y / 0.36 + 3.0 / variance) / (1.0 / 0.36 + 1.0 / variance) for y in (5.0, 1.0)]
    np.testing.assert_allclose(own.with_prior(prior), means)
    longer = evidence([9.0, 9.0], 0.6)
    np.testing.assert_allclose(longer.with_prior(prior), [9.0 * 0.64 + 3.0 * 0.36] * 2)


def test_what_a_prior_does_not_know_decides_nothing():
    own = evidence([1.0, -9.0], 1.0)
    prior = Evidence(np.array([1.0, 0.0]), np.array([0.1, np.inf]))
    assert own.agrees(prior)
    found = own.posterior_mean(np.array([0.2, 0.3]), prior)
    assert found[1] == -9.0
    nothing = evidence([0.0, 0.0], np.inf)
    assert not own.agrees(nothing)
    np.testing.assert_array_equal(own.with_prior(nothing), own.coef)
    fitted = np.array([0.2, 0.3])
    assert own.posterior_mean(fitted, nothing) is fitted
    assert own.posterior_mean(fitted, None) is fitted


def test_a_release_holds_both_parts_or_none():
    def release(**values):
        return Release("Example", PrivacyGuarantee(1.0), {}, values, 2)

    both = evidence([1.0, 2.0], 0.5)
    again = Evidence.of(release(**both.values()), (2,))
    np.testing.assert_array_equal(again.coef, both.coef)
    np.testing.assert_array_equal(again.error, both.error)
    assert Evidence.of(release(coef=[1.0, 2.0]), (2,)) is None
    with pytest.raises(ValueError, match="evidence_error"):
        Evidence.of(release(evidence_coef=[1.0, 2.0]), (2,))
    for error in ([0.0, 1.0], [-1.0, 1.0]):
        with pytest.raises(ValueError, match="that are positive"):
            Evidence.of(release(evidence_coef=[1.0, 2.0], evidence_error=error), (2,))
