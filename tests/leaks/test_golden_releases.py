"""Seeded releases stay what they were, to the last bit: moving code must not change a result.

Where a release changes for a reason, write the file anew and say why in the commit:
``python -m tests.leaks.test_golden_releases``.
"""

from __future__ import annotations

import json
import platform
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
    assert release(setting) == recorded()["releases"][str(setting)]


def write() -> None:
    """Record the releases of today's code."""
    releases = {str(setting): release(setting) for setting in PRIVATE}
    content = {"surroundings": surroundings(), "releases": releases}
    FILE.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    write()
