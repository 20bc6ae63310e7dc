"""Seeded releases stay what they were: moving code must not change a result.

Integers and words to the last bit, numbers to what processors differ by in their sums.

Where a release changes for a reason, write it anew and say why in the commit: ``python -m
tests.leaks.test_golden_releases WORD`` writes those whose setting's name has the word.
"""

from __future__ import annotations

import json
import platform
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
import sklearn

from tests.support import checks
from tests.support.registry import PRIVATE, Setting

SEED = 3
FILE = Path(__file__).with_name("golden_releases.json")


def surroundings() -> dict[str, str]:
    """Return what the last bits may depend on."""
    versions = {module.__name__: module.__version__ for module in (np, scipy, sklearn)}
    return {"machine": platform.machine(), **versions}


def release(setting: Setting) -> dict[str, Any]:
    """Return what a seeded fit releases, as JSON, without the words of its guarantee."""
    data = setting.data()
    with warnings.catch_warnings(), checks.quiet():
        warnings.simplefilter("ignore")
        fitted = setting.make(SEED).fit(data.X, data.y, **data.options)
    content = json.loads(fitted.release_.to_json())
    content.pop("made_with")
    for guarantee in (content["guarantee"], content["fit_guarantee"] or {}):
        for words in ("assumptions", "mechanism", "source"):
            guarantee.pop(words, None)
    return content


def recorded() -> dict[str, Any]:
    return json.loads(FILE.read_text())


def test_every_setting_is_recorded():
    assert sorted(recorded()["releases"]) == sorted(str(setting) for setting in PRIVATE)


@checks.each(PRIVATE)
def test_a_seeded_release_is_the_recorded_one(setting):
    if recorded()["surroundings"] != surroundings():
        pytest.skip("recorded on another machine or with other versions of NumPy, SciPy, sklearn")
    # Chains that diverge carry a last bit far.
    near = 0.02 if setting.diverges else 1e-8
    check_same(release(setting), recorded()["releases"][str(setting)], near)


def check_same(one: Any, other: Any, near: float = 1e-8, path: str = "") -> None:
    """Compare JSON, at any depth."""
    assert type(one) is type(other), path
    if isinstance(one, dict):
        assert sorted(one) == sorted(other), path
        for name, value in one.items():
            check_same(value, other[name], near, f"{path}.{name}")
    elif isinstance(one, list):
        assert len(one) == len(other), path
        for place, pair in enumerate(zip(one, other, strict=True)):
            check_same(*pair, near, f"{path}[{place}]")
    elif path.endswith(".sha256"):
        # Of a fit's numbers, whose last bits are a processor's.
        assert len(one) == len(other), path
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=near, abs=near / 100), path
    else:
        assert one == other, path


def test_what_differs_is_found():
    was = {"values": {"coef": [1.0, 2.0], "n": 3}, "name": "x"}
    check_same(was, json.loads(json.dumps(was)))
    check_same({"a": 1.0}, {"a": 1.0 + 1e-12})
    for other in (
        was | {"name": "y"},
        was | {"values": {"coef": [1.0, 2.0], "n": 4}},
        was | {"values": {"coef": [1.0, 2.00001], "n": 3}},
        was | {"values": {"coef": [1.0], "n": 3}},
        was | {"more": None},
    ):
        with pytest.raises(AssertionError):
            check_same(was, other)


def write(word: str) -> None:
    """Record releases of today's code: those that are new, and those with a word in the name."""
    known = recorded()["releases"]
    releases = {
        str(setting): release(setting)
        if word in str(setting) or str(setting) not in known
        else known[str(setting)]
        for setting in PRIVATE
    }
    content = {"surroundings": surroundings(), "releases": releases}
    FILE.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    write(sys.argv[1])
