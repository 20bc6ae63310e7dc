"""Files of older layouts load, and their estimates and intervals stay what they were.

``releases_v2.json`` was written by the last version with layout 2, with these numbers.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from skdpsurv import Release
from skdpsurv.survival.comparisons import multivariate_logrank_test
from tests.support import checks

FILE = Path(__file__).with_name("releases_v2.json")


def recorded(name):
    return json.loads(FILE.read_text())[name]


def numbers(release):
    """Return what readers make of a release."""
    model = release.to_estimator()
    found = {}
    if hasattr(model, "confidence_interval"):
        resampled = {"n_resamples": 40} if hasattr(model, "percentile_interval") else {}
        found["interval"] = model.confidence_interval(**resampled)
    if hasattr(model, "summary"):
        found["summary"] = model.summary
    if hasattr(model, "table_"):
        found["table"] = model.table_
    if getattr(model, "groups_", None) is not None and hasattr(model, "of_group"):
        test = multivariate_logrank_test(model)
        found["logrank"] = np.array([test.test_statistic, test.p_value])
        found["group"] = model.of_group(model.groups_[-1]).confidence_interval()
    return {name: plain(values) for name, values in found.items()}


def plain(values):
    """Return all numbers, row by row, with None for those that are not finite."""
    frame = values.select_dtypes("number") if hasattr(values, "select_dtypes") else values
    every = np.asarray(frame, dtype=float).ravel()
    return [float(x) if np.isfinite(x) else None for x in every]


@pytest.mark.parametrize("name", sorted(json.loads(FILE.read_text())) if FILE.exists() else [])
def test_numbers_of_layout_2(name):
    kept = recorded(name)
    with checks.quiet():
        found = numbers(Release.from_json(json.dumps(kept["release"])))
    assert found.keys() == kept["numbers"].keys()
    for what, values in found.items():
        other = kept["numbers"][what]
        np.testing.assert_allclose(
            np.array(values, float), np.array(other, float), rtol=1e-9, atol=1e-12, err_msg=what
        )
