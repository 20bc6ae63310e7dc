"""Rules of parameters: what they allow and refuse, in which words; rows in pieces are all rows."""

import inspect
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from skdpsurv import DPKaplanMeierFitter, PublicBoundsScaler
from skdpsurv.base import PrivateEstimator
from skdpsurv.data.shape import column_index
from skdpsurv.dp import clipping
from skdpsurv.dp.checks import (
    LARGEST_JOBS,
    auto_or,
    boolean,
    choice,
    custom,
    fraction,
    horizon,
    instance,
    integer,
    list_of,
    number_in,
    one_of,
    one_or_list_of,
    optional,
    positive,
    positive_int,
    positive_number,
    required,
    required_horizon,
    seed,
    verbosity,
    workers,
    zero_or,
)
from skdpsurv.dp.clipping import clip_rows, row_pieces
from skdpsurv.likelihoods.loss import gram
from skdpsurv.model_selection import PrivateSearchCV
from skdpsurv.survival.curves.event_counts import check_breakpoints

HUGE = 10**400


def concrete(kind=PrivateEstimator):
    """Yield all estimators of the package that can be made."""
    for below in kind.__subclasses__():
        if below.__module__.startswith("skdpsurv.") and "__init__" in vars(below):
            yield below
        yield from concrete(below)


def test_rules_are_of_the_parameters():
    assert {PrivateSearchCV} < set(concrete())
    for kind in concrete():
        rules = {name for base in kind.__mro__ for name in vars(base).get("_rules", ())}
        assert rules == set(inspect.signature(kind).parameters), kind


#: Rule, what it allows, what it refuses as a value, what it refuses as a type, what it says.
CASES = [
    (positive(), [1, 0.5, 5e-324, np.float32(2), np.int64(3), Fraction(1, 2)],
     [0, -1, math.inf, math.nan, -math.inf, HUGE],
     [True, np.True_, "1", None, 1j, [1.0], np.array(1.0), Decimal(1)],
     "a positive finite number"),
    (positive(allow_inf=True), [1, math.inf], [0, math.nan, -math.inf, HUGE], [None],
     "a positive number or inf"),
    (number_in(0, 1), [0, 1, 0.5], [-1e-9, 1.1, math.nan], [True, "0"], "a number in [0, 1]"),
    (number_in(0, 1, closed="left"), [0, 0.5], [1, -1, math.nan], [], "a number in [0, 1)"),
    (number_in(0, 1, closed="right"), [1, 0.5], [0, -1, math.nan], [], "a number in (0, 1]"),
    (number_in(0, 1, closed="neither"), [0.5], [0, 1, math.inf], [], "a number in (0, 1)"),
    (number_in(1e-9, 1.0 - 1e-9, allow_inf=True), [1e-9, 1 - 1e-9, math.inf],
     [0.0, 1.0, -math.inf, math.nan, HUGE], ["inf"], "a number in [1e-09, 0.999999999], or inf"),
    (integer(), [1, np.int32(4), HUGE], [0, -3], [2.0, True, np.True_, "1"], "a positive integer"),
    (integer(at_least=0), [0, 1], [-1], [0.0], "a non-negative integer"),
    (integer(at_least=4), [4], [3], [4.0], "an integer, at least 4"),
    (integer(at_most=2000), [1, 2000], [0, 2001], [None], "an integer from 1 to 2,000"),
    (choice("a", "b"), ["a", "b", np.str_("a")], ["c", "", None, 1, ["a"], b"a"], [], "one of 'a'"),
    (instance(dict), [{}], [], [[], None, dict], "a dict"),
    (instance(dict, "some words"), [{}], [], [[]], "some words"),
    (boolean, [True, np.False_], [], [0, None, "no"], "True or False"),
    (verbosity, [0, 1, True, np.int64(2)], [-1, 0.5, np.True_, "1", None, [1]], [],
     "a non-negative integer"),
    (seed, [None, 0, np.uint8(7), 2**64], [-1],
     [True, np.True_, 0.5, "1", np.random.default_rng(0)], "None or a non-negative integer"),
    (workers, [None, 1, -1, LARGEST_JOBS],
     [0, LARGEST_JOBS + 1, -LARGEST_JOBS - 1, True, "all", 1.0, 10**30], [],
     "None or an integer other than 0, to 32768"),
    (optional(positive()), [None, 1], [0], ["auto"], "None or a positive finite number"),
    (auto_or(positive()), ["auto", 1], [0, "max"], [None], "'auto' or a positive finite number"),
    (zero_or(positive()), [0, 0.0, -0.0, 1], [-1, math.nan], [False, 0j, None],
     "0 or a positive finite number"),
    (optional(auto_or(positive())), [None, "auto", 2], ["x"], [[]], "None, 'auto' or a positive"),
    (list_of(positive()), [[], [1], (1, 2), np.array([1.0])], [[1, 0], np.array([math.nan])],
     [{1}, {1: 1}, 1, None, "1", b"12", ["1"], iter([1]), np.array(1.0)],
     "a list, each a positive finite number"),
    (one_or_list_of(integer()), [1, [1, 2]], [0, [1, 0]], ["1", b"12", 1.0, [1.0]],
     "a positive integer, or a list of such"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "good", "bad", "wrong", "says"), CASES)
def test_rules(rule, good, bad, wrong, says):
    for value in good:
        rule("name", value)
    for error, values in ((ValueError, bad), (TypeError, wrong)):
        for value in values:
            with pytest.raises(error) as caught:
                rule("name", value)
            assert str(caught.value).startswith(f"name must be {says}")
            assert ", got " in str(caught.value)


def test_what_must_be_given():
    rule = required("some bound.", positive())
    rule("name", 1)
    for wrong, why in ((None, r"given: some bound\.$"), (0, "a positive")):
        with pytest.raises(ValueError, match=f"name must be {why}"):
            rule("name", wrong)
    with pytest.raises(ValueError, match="max_time must be given: a public horizon"):
        horizon(positive())("max_time", None)


def test_functions_that_return_plain_numbers_and_words():
    for value in (1, np.float32(2), np.int64(3), Fraction(1, 2)):
        for number in (positive_number("q", value), required_horizon(value)):
            assert (type(number), number) == (float, value)
    assert positive_number("epsilon", math.inf, allow_inf=True) == math.inf
    assert fraction("share", np.float32(0.25)) == 0.25
    assert type(fraction("share", 0, closed="left")) is float
    assert type(positive_int("q", np.int32(4))) is int
    assert type(one_of("q", np.str_("a"), ("a", "b"))) is str
    for refuse in (
        lambda: positive_number("q", math.nan, allow_inf=True),
        lambda: fraction("q", 1),
    ):
        with pytest.raises(ValueError, match=r"^q must be a .*, got"):
            refuse()
    for check in (positive_number, fraction, positive_int):
        for value in (True, "1", None, 1j):
            with pytest.raises(TypeError, match=r"^q must be "):
                check("q", value)


def test_a_function_that_names_its_parameter():
    asked = []
    custom(asked.append)("name", 3)
    assert asked == [3]


@pytest.mark.parametrize(("n", "columns"), [(0, 3), (1, 3), (10, 3), (12, 3), (5, 0), (4, 100)])
def test_pieces_are_all_rows_once(monkeypatch, n, columns):
    monkeypatch.setattr(clipping, "CHUNK_ELEMENTS", 12)
    rows = np.arange(n)
    found = [rows[piece] for piece in row_pieces(n, columns)]
    np.testing.assert_array_equal(np.concatenate([[], *found]), rows)
    assert all(0 < part.size * columns <= max(12, columns) for part in found) or not columns


def test_rows_are_clipped_piece_by_piece(monkeypatch):
    rows = np.random.default_rng(1).standard_cauchy(size=(7, 2))
    rows[3], rows[5] = 0.0, 1e-170  # as one without a norm, or whose square vanishes
    for norm in (1.5, 1e-50):
        whole = clip_rows(rows, norm)
        with monkeypatch.context() as patch:
            patch.setattr(clipping, "CHUNK_ELEMENTS", 6)
            np.testing.assert_array_equal(clip_rows(rows, norm), whole)
        np.testing.assert_array_equal(whole[[3, 5]], rows[[3, 5]])


@pytest.mark.parametrize("least", [-1.0, 0.0, 0.5])
@pytest.mark.parametrize("n", [0, 1, 20_001])
@pytest.mark.parametrize("unused", [0.1, 0.9])
def test_gram(n, least, unused):
    """Rows without a weight are left out where they are many."""
    rng = np.random.default_rng(2)
    rows, weights = rng.normal(size=(n, 4)), np.maximum(rng.normal(size=n), least)
    weights[rng.random(n) < unused] = 0.0
    wanted = np.einsum("i,ij,ik->jk", weights, rows, rows)
    np.testing.assert_allclose(gram(rows, weights), wanted, rtol=1e-11, atol=1e-11)


def test_a_span_of_time_is_no_number():
    """NumPy counts it among its integers."""
    for rule in (positive(), integer(), number_in(0, 1), zero_or(positive()), seed, workers):
        with pytest.raises((TypeError, ValueError), match=r"name must be .* got .*timedelta64"):
            rule("name", np.timedelta64(5, "D"))
    with pytest.raises(ValueError, match="non-negative integer"):
        verbosity("name", np.timedelta64(5, "D"))
    days, rows = np.timedelta64(5, "D"), np.zeros((3, 2))
    with pytest.raises(ValueError, match="breakpoints must be"):
        check_breakpoints("breakpoints", [days])
    with pytest.raises(TypeError, match=r"groups must hold indices or names .* got timedelta64"):
        column_index("groups", days, [], 2)
    with pytest.raises(ValueError, match="upper must be a finite number"):
        PublicBoundsScaler(0.0, [days, 9.0]).fit(rows)
    fitter = DPKaplanMeierFitter(math.inf, max_time=9.0, breakpoints="equal")
    with pytest.raises(TypeError, match="times must be numbers in the unit of the fit"):
        fitter.fit(durations=[1.0, 2.0], event_observed=[1, 1]).predict(days)
