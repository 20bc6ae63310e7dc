"""Tests of the statement of a guarantee."""

from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest

from skdpsurv.dp import PrivacyGuarantee, PrivacyLeakWarning
from skdpsurv.dp.references import DOUBLES, REAL_ARITHMETIC


@pytest.fixture
def guarantee():
    return PrivacyGuarantee(
        epsilon=np.float64(0.5),
        mechanism="objective perturbation",
        public_inputs={
            "n": np.int64(100),
            "classes": np.array([0, 1]),
            "columns": ["age", np.str_("sex")],
            "norm": np.float32(1.5),
            "limit": math.inf,
            "intercept": np.True_,
            "nested": {"low": -math.inf, "prior": None},
        },
        assumptions=("every row was kept",),
        source="docs/proofs",
    )


def test_warning_is_a_user_warning():
    assert issubclass(PrivacyLeakWarning, UserWarning)


def test_frozen(guarantee):
    with pytest.raises(FrozenInstanceError):
        guarantee.epsilon = 2.0
    with pytest.raises(TypeError):
        guarantee.public_inputs["n"] = 5
    with pytest.raises(TypeError):
        guarantee.public_inputs["nested"]["low"] = 5


def test_does_not_follow_changes_of_its_inputs():
    inputs = {"grid": [1, 2]}
    guarantee = PrivacyGuarantee(1.0, public_inputs=inputs)
    inputs["grid"].append(3)
    inputs["n"] = 4
    assert guarantee.public_inputs == {"grid": (1, 2)}


@pytest.mark.parametrize(
    "duplicate",
    [
        copy.copy,
        copy.deepcopy,
        lambda g: pickle.loads(pickle.dumps(g)),
        lambda g: pickle.loads(pickle.dumps(g, protocol=2)),
        lambda g: PrivacyGuarantee.from_dict(g.to_dict()),
        lambda g: PrivacyGuarantee.from_dict(json.loads(json.dumps(g.to_dict(), allow_nan=False))),
        replace,
    ],
)
def test_copies_are_equal(guarantee, duplicate):
    other = duplicate(guarantee)
    assert other == guarantee
    assert hash(other) == hash(guarantee)
    assert repr(other) == repr(guarantee)
    assert other != replace(guarantee, epsilon=0.6)


def test_only_plain_types_inside(guarantee):
    assert type(guarantee.epsilon) is float
    inputs = guarantee.public_inputs
    assert [type(inputs[k]) for k in ("n", "norm", "intercept")] == [int, float, bool]
    assert inputs["classes"] == (0, 1)
    assert all(type(name) is str for name in inputs["columns"])


def test_infinity_in_json():
    data = PrivacyGuarantee(math.inf, status="none").to_dict()
    assert data["epsilon"] == "inf"
    assert PrivacyGuarantee.from_dict(data).epsilon == math.inf


def test_from_dict_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match=r"unknown key.*: budget"):
        PrivacyGuarantee.from_dict({"epsilon": 1.0, "budget": 2})
    with pytest.raises(ValueError, match="missing key"):
        PrivacyGuarantee.from_dict({"delta": 0.0})


@pytest.mark.parametrize(
    "name", [field.name for field in fields(PrivacyGuarantee) if field.name not in ("rho", "renyi")]
)
def test_from_dict_takes_nothing_for_granted(name):
    """Least of all that a guarantee without a status is proved."""
    data = PrivacyGuarantee(1.0).to_dict()
    del data[name]
    with pytest.raises(ValueError, match=rf"missing key\(s\) in a privacy guarantee: {name}\."):
        PrivacyGuarantee.from_dict(data)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"epsilon": -1.0}, ValueError, r"epsilon must be a number in \[0, inf\], got -1"),
        ({"epsilon": math.nan}, ValueError, r"epsilon must be a number in \[0, inf\], got nan"),
        (
            {"rho": math.inf, "delta": 0.1},
            ValueError,
            r"rho must be None or a number in \[0, inf\), got",
        ),
        (
            {"rho": -1.0, "delta": 0.1},
            ValueError,
            r"rho must be None or a number in \[0, inf\), got",
        ),
        (
            {"rho": "small", "delta": 0.1},
            TypeError,
            r"rho must be None or a number in \[0, inf\), got str",
        ),
        ({"rho": 0.01}, ValueError, "rho must be worth no more than epsilon at delta"),
        ({"rho": 1e9, "delta": 1e-6}, ValueError, "rho must be worth no more than epsilon"),
        ({"epsilon": True}, TypeError, r"epsilon must be a number in \[0, inf\], got bool"),
        ({"epsilon": "1"}, TypeError, r"epsilon must be a number in \[0, inf\], got str"),
        ({"delta": 1.0}, ValueError, r"delta must be a number in \[0, 1\), got 1.0"),
        ({"status": "sure"}, ValueError, "status must be one of 'proved', .*, got 'sure'"),
        ({"mechanism": None}, TypeError, "mechanism must be a string"),
        ({"public_inputs": [1]}, TypeError, "public_inputs must be a mapping"),
        ({"public_inputs": {"n": object()}}, TypeError, r"public_inputs\['n'\] must be made of"),
        ({"public_inputs": {"n": math.nan}}, ValueError, r"public_inputs\['n'\] must not hold NaN"),
        ({"assumptions": "one"}, TypeError, "assumptions must be a tuple of strings"),
        ({"epsilon": math.inf}, ValueError, "use status='none'"),
        ({"epsilon": math.inf, "status": "asymptotic"}, ValueError, "use status='none'"),
    ],
)
def test_validation(change, error, message):
    with pytest.raises(error, match=message):
        PrivacyGuarantee(**{"epsilon": 1.0, **change})


def test_repr_is_one_line(guarantee):
    text = repr(guarantee)
    assert "\n" not in text
    assert text.startswith("PrivacyGuarantee(epsilon=0.5, delta=0.0, neighbours='replace-one'")
    assert "status='proved'" in text


def test_html_is_escaped():
    page = PrivacyGuarantee(
        1.0,
        mechanism="<script>alert(1)</script>",
        public_inputs={"<b>": "<i>"},
        assumptions=("a < b",),
    )._repr_html_()
    for tag in ("<script>", "<b>", "<i>"):
        assert tag not in page
    assert "&lt;script&gt;" in page
    assert page.startswith("<pre>")


@pytest.mark.parametrize(("epsilon", "bound"), [(1.0, "2.719"), (0.1, "1.106"), (1e-9, "1.001")])
def test_a_bound_is_never_rounded_down(epsilon, bound):
    text = " ".join(PrivacyGuarantee(epsilon).describe().split())
    assert f"more than exp({epsilon!r}), at most {bound}, times" in text


def test_equal_guarantees_say_the_same():
    one, other = (
        PrivacyGuarantee(1.0, public_inputs=p) for p in ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    )
    assert one == other
    assert one.describe() == other.describe()


def test_description_of_a_proof(guarantee):
    text = guarantee.describe()
    flat = " ".join(text.split())
    assert "more than exp(0.5), at most 1.649, times as probable" in flat
    assert "each single record (replace-one" in flat
    assert "n = 100" in flat
    assert "every row was kept" in flat
    assert "docs/proofs" in flat
    for uncovered in ("grid search", "scaler", "Publishing a score", "rows were dropped"):
        assert uncovered in flat
    assert max(map(len, text.splitlines())) <= 88


def test_a_proof_is_of_the_program_unless_it_says_otherwise(guarantee):
    """What a program cannot have is among what is not covered, with its size."""
    promised, uncovered = guarantee.describe().split("Not covered")
    assert "status proved." in promised
    assert "real arithmetic" not in promised
    assert "(1 + exp(epsilon)) 1e-30 for each noisy vector" in " ".join(uncovered.split())
    assert "1e-30 (here 5.2e-09) for each" in " ".join(replace(guarantee, epsilon=50.0).limits)
    assert PrivacyGuarantee.from_dict(guarantee.to_dict()).status == "proved"

    real = replace(guarantee, assumptions=(REAL_ARITHMETIC,))
    promised, _ = real.describe().split("Not covered")
    assert "status proved in real arithmetic" in promised
    assert "times as probable in real arithmetic." in " ".join(promised.split())
    assert "proved in real arithmetic" in real._repr_html_()
    assert "real arithmetic" not in replace(guarantee, assumptions=(DOUBLES,)).meaning


@pytest.mark.parametrize("status", ["none", "seeded"])
def test_description_promises_nothing_without_privacy(status):
    text = " ".join(PrivacyGuarantee(1.0, status=status).describe().split())
    assert "Promise: none." in text
    assert "times as probable" not in text
    assert ("random_state" in text) == (status == "seeded")


def test_description_of_a_limit():
    text = " ".join(PrivacyGuarantee(1.0, 1e-6, status="asymptotic").describe().split())
    assert "only if the sampler has converged" in text
    assert "up to a probability of 1e-06" in text


def test_description_of_extremes():
    assert "times as probable" in PrivacyGuarantee(1e4).describe()
    assert "Promise: none." in PrivacyGuarantee(math.inf, status="none").describe()
    long = PrivacyGuarantee(1.0, public_inputs={"grid": list(range(100))})
    assert "[0, 1, 2, ..., 99] (100 values)" in long.describe()
    other = PrivacyGuarantee(1.0, neighbours="add-remove").describe()
    assert "'add-remove'" in other


def test_a_status_that_compares_as_it_likes():
    class Sure(str):
        __slots__ = ()

        def __eq__(self, other):
            return other == "proved"

        __hash__ = str.__hash__

    with pytest.raises(ValueError, match="status must be one of"):
        PrivacyGuarantee(1.0, status=Sure("none"))
