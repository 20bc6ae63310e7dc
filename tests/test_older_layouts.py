"""Files of each layout load, of later versions too, and their numbers stay what they were.

``releases_v2.json`` was written by the last version with layout 2, with these numbers; but bands of
incidences are by draws that processors agree on, which came later. Layout 3 may still change until
version 0.3: ``python -m tests.test_older_layouts`` writes its file anew.
"""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from skdpsurv import Release
from skdpsurv.report import explain
from skdpsurv.survival.comparisons import multivariate_logrank_test
from skdpsurv.survival.weibull import tuning
from tests.leaks.test_golden_releases import FILE as GOLDEN
from tests.leaks.test_golden_releases import surroundings
from tests.support import checks
from tests.support.registry import PRIVATE

FILES = {layout: Path(__file__).with_name(f"releases_v{layout}.json") for layout in (2, 3)}
RECORDED = {layout: json.loads(file.read_text()) for layout, file in FILES.items()}
OF_TODAY = (
    "DPWeibullFitter: ladder", "DPKaplanMeierFitter: groups", "DPAalenJohansenFitter: two causes",
    "DPTableOne: raw columns by ward", "DPTableOne: raw columns, Gaussian noise",
    "DPDiscreteTimeSurvival: standard errors", "PrivateSearchCV: Weibull",
)  # fmt: skip


def recorded(name, layout=2):
    return RECORDED[layout][name]


def numbers(release, *, simulated=False):
    """Return what readers make of a release; of 500 simulated fits, too, if wanted."""
    model = release.to_estimator()
    found = {}
    if hasattr(model, "confidence_interval"):
        resampled = {"n_resamples": 40} if hasattr(model, "percentile_interval") else {}
        found["interval"] = model.confidence_interval(**resampled)
    if hasattr(type(model), "summary") and (simulated or not hasattr(model, "lambda_")):
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


@pytest.mark.parametrize(
    ("name", "law", "variance"),
    [
        ("DPKaplanMeierFitter: groups", "laplace", 8.0),
        ("DPAalenJohansenFitter: no privacy", "none", 0.0),
        ("DPTableOne: raw columns by ward", "laplace", 72.0),
        ("DPTableOne: raw columns, Gaussian noise", "gaussian", None),
        ("pooled curves", "sum", 40.0),
        ("pooled Table 1", "sum", 64.0),
    ],
)
def test_noise_that_layout_2_did_not_state(name, law, variance):
    kept = recorded(name)["release"]
    release = Release.from_json(json.dumps(kept))
    if variance is None:
        variance = kept["values"]["count_variance"]
    assert release.noise == {"counts": {"law": law, "variance": pytest.approx(variance)}}
    assert (release.plan, release.fit_plan) == (None, None)
    assert release.schema_version == 3
    assert {k: np.asarray(v).tolist() for k, v in release.values.items()} == kept["values"]


def test_constants_of_a_weibull_fit_are_those_that_its_release_states(monkeypatch):
    """Constants of later versions do not change intervals of a release, nor do unknown ones."""
    kept = recorded("Weibull with a correction")
    release = Release.from_json(json.dumps(kept["release"]))
    assert release.parameters["tuning"] == 1
    later = tuning.Tuning(events_share=0.3, correction_events=math.inf)
    monkeypatch.setattr(tuning, "TUNINGS", {**tuning.TUNINGS, 2: later})
    monkeypatch.setattr(tuning, "TUNING", 2)
    with checks.quiet():
        found = numbers(release)["interval"]
        others = replace(release, parameters={**release.parameters, "tuning": 2})
        assert numbers(others)["interval"] != found
    np.testing.assert_allclose(found, kept["numbers"]["interval"], rtol=1e-9)
    for unknown in (3, "1", None, 1.0, [1]):
        wrong = replace(release, parameters={**release.parameters, "tuning": unknown})
        with pytest.raises(ValueError, match="tuning of the release"):
            wrong.to_estimator()


#: An interval from hardly any information, whose ends hang on the last bits of simulated fits.
HANGS_ON_BITS = "PrivateSearchCV: Weibull", "interval"
SURROUNDINGS = json.loads(GOLDEN.read_text())["surroundings"]


@pytest.mark.parametrize("simulated", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("layout", "name"), [(layout, name) for layout in FILES for name in RECORDED[layout]]
)
def test_numbers_are_those_that_were_kept(layout, name, simulated):
    kept = recorded(name, layout)
    with checks.quiet():
        found = numbers(Release.from_json(json.dumps(kept["release"])), simulated=simulated)
    assert not simulated or found.keys() == kept["numbers"].keys()
    for what, values in found.items():
        if (name, what) == HANGS_ON_BITS and surroundings() != SURROUNDINGS:
            continue
        now, then = np.array(values, float), np.array(kept["numbers"][what], float)
        if what == "summary" and "Weibull" in name:
            # Its ends are found by simulated fits; rounding on another processor moves some.
            tolerance = 0.15 * np.maximum(1.0, np.abs(np.log(then)))
            assert (np.abs(np.log(now / then)) <= tolerance).all()
        else:
            np.testing.assert_allclose(now, then, rtol=1e-9, atol=1e-12, err_msg=what)


def of_a_later_version(content):
    """Return a release with what a later version may add without another layout."""
    content = json.loads(json.dumps(content)) | {
        "estimator": "DPLater",
        "made_with": "skdpsurv 1.9",
    }
    content["parameters"]["later"] = [1, {"a": None}]
    content["values"]["later"] = [1.5, 2.0]
    content["guarantee"]["public_inputs"]["later"] = 3
    ahead = [content["plan"]]
    while ahead:
        node = ahead.pop()
        ahead += node.get("nodes", [])
        if "query" in node:
            node["query"] |= {"kind": "LaterQuery", "later": 1}
    return content


@pytest.mark.parametrize("name", RECORDED[3])
def test_releases_of_later_versions_load(name):
    content = of_a_later_version(recorded(name, 3)["release"])
    schema = Path(__file__).parents[1] / "docs" / "schemas" / "release-3.json"
    Draft202012Validator(json.loads(schema.read_text())).validate(content)
    release = Release.from_json(json.dumps(content))
    assert json.loads(release.to_json()) == content
    assert "epsilon" in explain(release)
    with pytest.raises(ValueError, match=r"'DPLater'.*use what made it, 'skdpsurv 1\.9'"):
        release.to_estimator()


def write():
    """Keep releases of today's layout, with their numbers."""
    kept = {}
    for setting in (one for one in PRIVATE if str(one) in OF_TODAY):
        fitted = checks.seeded(setting)
        with checks.quiet():
            found = numbers(fitted.release_, simulated=True)
        kept[str(setting)] = {"numbers": found, "release": json.loads(fitted.release_.to_json())}
    lines = (f" {json.dumps(name)}: {json.dumps(one)}" for name, one in sorted(kept.items()))
    FILES[3].write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write()
