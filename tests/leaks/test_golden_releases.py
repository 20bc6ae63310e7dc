"""Seeded releases stay what they were: moving code must not change a result.

Of each setting a hash of all that is said around the numbers, with floats to six digits, and the
sum of each released array, to what processors differ by.

Where a release changes for a reason, write it anew and say why in the commit: ``python -m
tests.leaks.test_golden_releases WORD`` writes those whose setting's name has the word.
"""

import hashlib
import json
import platform
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy
import sklearn

from tests.support import checks
from tests.support.registry import PRIVATE

FILE = Path(__file__).with_name("golden_releases.json")


def surroundings():
    """Return what the last bits may depend on."""
    versions = {module.__name__: module.__version__ for module in (np, scipy, sklearn)}
    return {"machine": platform.machine(), **versions}


def rounded(value, key=""):
    """Round the floats of JSON, at any depth; of a hash of numbers only the length counts."""
    if isinstance(value, dict):
        return {k: rounded(v, k) for k, v in sorted(value.items())}
    if isinstance(value, list):
        return [rounded(v) for v in value]
    if key == "sha256":
        return len(value)
    return f"{value:.6g}" if isinstance(value, float) else value


def summary(content):
    """Return a hash of a release's words and settings, and what its numbers add up to."""
    content = {name: part for name, part in content.items() if name != "made_with"}
    values = content.pop("values")
    for guarantee in (content["guarantee"], content["fit_guarantee"] or {}):
        for words in ("assumptions", "mechanism", "source"):
            guarantee.pop(words, None)
    shapes = {name: np.shape(value) for name, value in values.items()}
    text = json.dumps([rounded(content), shapes], sort_keys=True)
    numbers = {
        name: float(np.asarray(value, float).ravel() @ np.arange(1, 1 + np.size(value)))
        for name, value in values.items()
        if np.asarray(value).dtype.kind in "fiub"
    }
    return {"sha256": hashlib.sha256(text.encode()).hexdigest()[:16], **numbers}


def release(setting):
    return summary(json.loads(checks.seeded(setting).release_.to_json()))


def recorded():
    return json.loads(FILE.read_text())


def test_every_setting_is_recorded():
    assert sorted(recorded()["releases"]) == sorted(str(setting) for setting in PRIVATE)


@checks.each(PRIVATE, checks.PLANS)
def test_a_seeded_release_is_the_recorded_one(setting):
    if recorded()["surroundings"] != surroundings():
        pytest.skip("recorded on another machine or with other versions of NumPy, SciPy, sklearn")
    # Chains that diverge carry a processor's last bit anywhere.
    near = np.inf if setting.diverges else 1e-8
    check_same(release(setting), recorded()["releases"][str(setting)], near)


def check_same(one, other, near=1e-8):
    assert sorted(one) == sorted(other)
    assert one["sha256"] == other["sha256"]
    for name in set(one) - {"sha256"}:
        # Of directions that noise hides, a covariance is nearly without bounds.
        own = max(near, 1e-5) if name == "inference_covariance" else near
        assert one[name] == pytest.approx(other[name], rel=own, abs=own, nan_ok=True), name


def test_what_differs_is_found():
    values = {"coef": [1.0, 2.0], "n": 3}
    was = {"guarantee": {"epsilon": 1.0}, "fit_guarantee": None, "made_with": "", "values": values}
    check_same(summary(was), summary(was | {"values": {"coef": [1.0 + 1e-12, 2.0], "n": 3}}))
    for other in (
        was | {"guarantee": {"epsilon": 1.001}},
        was | {"values": {"coef": [1.0, 2.0], "n": 4}},
        was | {"values": {"coef": [2.0, 1.0], "n": 3}},
        was | {"values": {"coef": [1.0], "n": 3}},
        was | {"more": None},
    ):
        with pytest.raises(AssertionError):
            check_same(summary(was), summary(other))


def write(word):
    """Record releases of today's code: those that are new, and those with a word in the name."""
    known = recorded()["releases"]
    kept = {str(s): known[str(s)] for s in PRIVATE if str(s) in known and word not in str(s)}
    releases = kept | {str(s): release(s) for s in PRIVATE if str(s) not in kept}
    lines = (f" {json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(releases.items()))
    head = f'{{"surroundings": {json.dumps(surroundings())},\n"releases": {{\n'
    FILE.write_text(head + ",\n".join(lines) + "\n}}\n")


if __name__ == "__main__":
    write(sys.argv[1])
