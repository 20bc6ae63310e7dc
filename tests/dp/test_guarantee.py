"""Tests of the statement of a guarantee."""

import copy
import json
import math
import pickle
import re
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path

import numpy as np
import pytest

import skdpsurv
from skdpsurv.dp import PrivacyGuarantee
from skdpsurv.dp.guarantee import delta_warnings
from skdpsurv.dp.references import DOUBLES, REAL_ARITHMETIC, WORDS

from .costs import refused


@pytest.fixture
def guarantee():
    return PrivacyGuarantee(
        epsilon=np.float64(0.5),
        mechanism="objective perturbation",
        public_inputs={
            "n": np.int64(100),
            "norm": np.float32(1.5),
            "intercept": np.True_,
            "classes": np.array([0, 1]),
            "columns": ["age", np.str_("sex")],
            "limit": math.inf,
            "nested": {"low": -math.inf, "prior": None},
        },
        assumptions=("every row was kept",),
        source="docs/proofs",
    )


def test_frozen(guarantee):
    stated = {"grid": [1, 2]}
    copied = PrivacyGuarantee(1.0, public_inputs=stated)
    stated["grid"].append(3)
    stated["n"] = 4
    assert copied.public_inputs == {"grid": (1, 2)}
    inputs = guarantee.public_inputs
    with pytest.raises(FrozenInstanceError):
        guarantee.epsilon = 2.0
    for mapping in (inputs, inputs["nested"]):
        with pytest.raises(TypeError):
            mapping["n"] = 5
    assert type(guarantee.epsilon) is float
    assert [type(inputs[k]) for k in ("n", "norm", "intercept")] == [int, float, bool]
    assert inputs["classes"] == (0, 1)
    assert all(type(name) is str for name in inputs["columns"])


@pytest.mark.parametrize(
    "duplicate",
    [
        copy.copy,
        copy.deepcopy,
        lambda g: pickle.loads(pickle.dumps(g)),
        lambda g: PrivacyGuarantee.from_dict(json.loads(json.dumps(g.to_dict(), allow_nan=False))),
        replace,
    ],
)
def test_copies_are_equal(guarantee, duplicate):
    other = duplicate(guarantee)
    assert other == guarantee
    assert (hash(other), repr(other)) == (hash(guarantee), repr(guarantee))
    assert other != replace(guarantee, epsilon=0.6)


def test_from_dict_takes_nothing_for_granted():
    """Least of all that a guarantee without a status is proved."""
    whole = PrivacyGuarantee(1.0).to_dict()
    for name in {field.name for field in fields(PrivacyGuarantee)} - {"rho", "renyi"}:
        with pytest.raises(ValueError, match=rf"missing key\(s\) .*: {name}\."):
            PrivacyGuarantee.from_dict({key: said for key, said in whole.items() if key != name})
    refused("budget", lambda: PrivacyGuarantee.from_dict({**whole, "budget": 2}))
    assert PrivacyGuarantee.from_dict({**whole, "epsilon": "inf", "status": "none"}).epsilon > 1e300


def test_validation():
    for name, *wrong in (
        ("epsilon", -1.0, math.nan, True, "1", math.inf),
        ("delta", 1.0, -0.1),
        ("rho", math.inf, -1.0, "small", 1e9, 0.01),
        ("status", "sure"),
        ("mechanism", None),
        ("public_inputs", [1], {"n": object()}, {"n": math.nan}),
        ("assumptions", "one"),
    ):
        for value in wrong:
            delta = 1e-6 if name == "rho" and value != 0.01 else 0.0
            with pytest.raises((ValueError, TypeError), match=name):
                PrivacyGuarantee(**{"epsilon": 1.0, "delta": delta, name: value})
    refused("epsilon=inf", lambda: PrivacyGuarantee(math.inf, status="asymptotic"))
    zero = PrivacyGuarantee(-0.0, -0.0)
    assert math.copysign(1.0, zero.epsilon) == math.copysign(1.0, zero.delta) == 1.0


def test_html_is_escaped():
    stated = PrivacyGuarantee(1.0, mechanism="<script>", public_inputs={"<b>": "<i>"})
    assert not [tag for tag in ("<script>", "<b>", "<i>") if tag in stated._repr_html_()]


def flat(guarantee):
    return " ".join(guarantee.describe().split())


def test_a_bound_is_never_rounded_down():
    for epsilon, bound in ((1.0, "2.719"), (0.1, "1.106"), (1e-9, "1.001"), (1e4, "inf")):
        said = f"exp({epsilon!r}), at most {bound}, times"
        assert said in flat(PrivacyGuarantee(epsilon))


def test_description_of_a_proof(guarantee):
    for said in ("exp(0.5), at most 1.649", "n = 100", "every row was kept", "docs/proofs"):
        assert said in flat(guarantee)
    assert max(map(len, guarantee.describe().splitlines())) <= 88
    limit = flat(PrivacyGuarantee(1.0, 1e-6, status="asymptotic"))
    assert "probability of 1e-06" in limit
    assert "more than k times the delta" in limit
    assert "k times the delta" not in flat(guarantee)
    assert "only if the sampler has converged" in limit
    assert "converged" not in flat(guarantee)
    long = PrivacyGuarantee(1.0, public_inputs={"grid": list(range(100))})
    assert "[0, 1, 2, ..., 99] (100 values)" in long.describe()
    assert "'add-remove'" in PrivacyGuarantee(1.0, neighbours="add-remove").describe()


@pytest.mark.parametrize(
    ("delta", "part"),
    [(1e-4, None), (1.1e-4, "1/n^2"), (0.0099, "1/n^2"), (0.01, "1/n ="), (0.015, "1/n =")],
)
def test_deltas_are_compared_with_the_number_of_records(delta, part):
    found = delta_warnings(delta, True, 100)
    assert len(found) == (part is not None)
    assert part is None or f"above {part}" in found[0]
    assert len(delta_warnings(delta, False, 100)) == 1


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
    text = flat(PrivacyGuarantee(1.0, status=status))
    assert "Promise: none." in text
    assert "times as probable" not in text
    assert ("random_state" in text) == (status == "seeded")


class Sure(str):
    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other):
        return other == "proved"


def test_a_status_that_compares_as_it_likes():
    refused("status must be one of", lambda: PrivacyGuarantee(1.0, status=Sure("none")))


def test_every_phrase_is_said_somewhere():
    code = "".join(path.read_text() for path in Path(skdpsurv.__file__).parent.rglob("*.py"))
    assert set(re.findall(r'phrase\(\s*"(\w+)"', code)) == WORDS["phrases"].keys()
