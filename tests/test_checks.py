"""Rules of parameters: what they allow, what they refuse, and in which words."""

from __future__ import annotations

import inspect
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from skdpsurv.base import PrivateEstimator
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
from skdpsurv.model_selection import PrivateSearchCV

HUGE = 10**400


def concrete(kind=PrivateEstimator):
    """Yield all estimators of the package that can be made."""
    for below in kind.__subclasses__():
        if below.__module__.startswith("skdpsurv.") and "__init__" in vars(below):
            yield below
        yield from concrete(below)


@pytest.mark.parametrize("kind", sorted(concrete(), key=lambda kind: kind.__name__))
def test_rules_are_of_the_parameters(kind):
    rules = {name for base in kind.__mro__ for name in vars(base).get("_rules", ())}
    assert rules == set(inspect.signature(kind).parameters)


def test_there_are_estimators():
    assert len(list(concrete())) >= 7
    assert PrivateSearchCV in concrete()


#: Rule, what it allows, what it refuses as a value, what it refuses as a type, what it says.
CASES = [
    (
        positive(),
        [1, 0.5, 5e-324, np.float32(2), np.int64(3), Fraction(1, 2)],
        [0, -1, math.inf, math.nan, -math.inf, HUGE],
        [True, np.True_, "1", None, 1j, [1.0], np.array(1.0), Decimal(1)],
        "a positive finite number",
    ),
    (
        positive(allow_inf=True),
        [1, math.inf],
        [0, math.nan, -math.inf, HUGE],
        [None],
        "a positive number or inf",
    ),
    (number_in(0, 1), [0, 1, 0.5], [-1e-9, 1.1, math.nan], [True, "0"], "a number in [0, 1]"),
    (number_in(0, 1, closed="left"), [0, 0.5], [1, -1, math.nan], [], "a number in [0, 1)"),
    (number_in(0, 1, closed="right"), [1, 0.5], [0, -1, math.nan], [], "a number in (0, 1]"),
    (number_in(0, 1, closed="neither"), [0.5], [0, 1, math.inf], [], "a number in (0, 1)"),
    (
        number_in(1e-9, 1.0 - 1e-9, allow_inf=True),
        [1e-9, 1 - 1e-9, math.inf],
        [0.0, 1.0, -math.inf, math.nan, HUGE],
        ["inf"],
        "a number in [1e-09, 0.999999999], or inf",
    ),
    (integer(), [1, np.int32(4), HUGE], [0, -3], [2.0, True, np.True_, "1"], "a positive integer"),
    (integer(at_least=0), [0, 1], [-1], [0.0], "a non-negative integer"),
    (integer(at_least=4), [4], [3], [4.0], "an integer, at least 4"),
    (integer(at_most=2000), [1, 2000], [0, 2001], [None], "an integer from 1 to 2,000"),
    (choice("a", "b"), ["a", "b", np.str_("a")], ["c", "", None, 1, ["a"], b"a"], [], "one of 'a'"),
    (instance(dict), [{}], [], [[], None, dict], "a dict"),
    (instance(dict, "some words"), [{}], [], [[]], "some words"),
    (boolean, [True, np.False_], [], [0, None, "no"], "True or False"),
    (
        verbosity,
        [0, 1, True, np.int64(2)],
        [-1, 0.5, np.True_, "1", None, [1]],
        [],
        "a non-negative integer",
    ),
    (
        seed,
        [None, 0, np.uint8(7), 2**64],
        [-1],
        [True, np.True_, 0.5, "1", np.random.default_rng(0)],
        "None or a non-negative integer",
    ),
    (
        workers,
        [None, 1, -1, LARGEST_JOBS],
        [0, LARGEST_JOBS + 1, -LARGEST_JOBS - 1, True, "all", 1.0, 10**30],
        [],
        "None or an integer other than 0, to 32768",
    ),
    (optional(positive()), [None, 1], [0], ["auto"], "None or a positive finite number"),
    (auto_or(positive()), ["auto", 1], [0, "max"], [None], "'auto' or a positive finite number"),
    (
        zero_or(positive()),
        [0, 0.0, -0.0, 1],
        [-1, math.nan],
        [False, 0j, None],
        "0 or a positive finite number",
    ),
    (optional(auto_or(positive())), [None, "auto", 2], ["x"], [[]], "None, 'auto' or a positive"),
    (
        list_of(positive()),
        [[], [1], (1, 2), np.array([1.0])],
        [[1, 0], np.array([math.nan])],
        [{1}, {1: 1}, 1, None, "1", b"12", ["1"], iter([1]), np.array(1.0)],
        "a list, each a positive finite number",
    ),
    (
        one_or_list_of(integer()),
        [1, [1, 2]],
        [0, [1, 0]],
        ["1", b"12", 1.0, [1.0]],
        "a positive integer, or a list of such",
    ),
]


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


@pytest.mark.parametrize(
    ("rule", "value", "got"),
    [
        (positive(), np.float64(-0.5), "-0.5."),
        (positive(), HUGE, "one beyond all floating-point numbers."),
        (positive(), "1", "str."),
        (choice("a"), "b", "'b'."),
        (list_of(positive()), [1, -2], "-2."),
        (number_in(0, 1, why="For a reason."), 2, "2. For a reason."),
        (auto_or(number_in(0, 1, why="For a reason.")), "x", "'x'. For a reason."),
    ],
)
def test_what_was_got(rule, value, got):
    with pytest.raises((TypeError, ValueError)) as caught:
        rule("name", value)
    assert str(caught.value).endswith(f", got {got}")


def test_what_must_be_given():
    rule = required("some bound.", positive())
    rule("name", 1)
    with pytest.raises(ValueError, match=r"^name must be given: some bound\.$"):
        rule("name", None)
    with pytest.raises(ValueError, match="name must be a positive"):
        rule("name", 0)
    with pytest.raises(ValueError, match="max_time must be given: a public horizon"):
        horizon(positive())("max_time", None)


def test_a_function_that_names_its_parameter():
    asked = []
    custom(asked.append)("name", 3)
    assert asked == [3]


def test_a_parameter_without_a_rule_cannot_be_forgotten():
    class Forgetful(PrivateEstimator):
        def __init__(self, epsilon=1.0, size=3):
            self.epsilon = epsilon
            self.size = size

    with pytest.raises(KeyError, match="size"):
        Forgetful()._check_parameters()


class TestPlainValues:
    """Functions that return Python's own numbers and words."""

    @pytest.mark.parametrize("value", [1, np.float32(2), np.int64(3), Fraction(1, 2)])
    def test_numbers(self, value):
        for number in (positive_number("q", value), required_horizon(value)):
            assert type(number) is float
            assert number == value

    def test_infinity_where_allowed(self):
        assert positive_number("epsilon", math.inf, allow_inf=True) == math.inf
        with pytest.raises(ValueError, match="epsilon must be a positive number or inf, got nan"):
            positive_number("epsilon", math.nan, allow_inf=True)

    def test_fractions(self):
        assert fraction("share", np.float32(0.25)) == 0.25
        assert type(fraction("share", 0, closed="left")) is float
        with pytest.raises(ValueError, match=r"share must be a number in \(0, 1\), got 1"):
            fraction("share", 1)

    def test_integers_and_words(self):
        assert type(positive_int("q", np.int32(4))) is int
        assert type(one_of("q", np.str_("a"), ("a", "b"))) is str

    @pytest.mark.parametrize("check", [positive_number, fraction, positive_int])
    def test_wrong_types(self, check):
        for value in (True, "1", None, 1j):
            with pytest.raises(TypeError, match=r"^q must be "):
                check("q", value)
