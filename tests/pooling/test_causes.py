"""Pools of competing risks: each cause as a pool of hazards of that cause."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from skdpsurv import DPCompetingRisks, PublicInputWarning, Release, pool_releases
from skdpsurv.cli import app
from skdpsurv.pooling import heterogeneity, plot_forest
from skdpsurv.report import explain, html_report
from skdpsurv.verify_study import verify
from tests.support.pooling_sites import PARAMETERS, covariance, guarantee, site

CAUSES = ("relapse", "death")
STATED = {name: PARAMETERS[name] for name in ("max_time", "n_intervals", "n_knots")}
STATED |= {"causes": CAUSES, "censored": "alive"}


def by_cause(seed, **changes):
    """Return a release of two causes, and those of hazards of each cause."""
    each = [site(100 * seed + k, cov=covariance(np.random.default_rng(k), 4)) for k in range(2)]
    values = {name: np.stack([one.values[name] for one in each]) for name in each[0].values}
    fields = {"estimator": "DPCompetingRisks", "guarantee": guarantee(), "parameters": STATED}
    fields |= {"values": values, "n_features_in": 2}
    return Release(**(fields | changes)), each


SITES, EACH = zip(*(by_cause(k) for k in (1, 2, 3)), strict=True)


@pytest.mark.parametrize("effects", ["fixed", "random"])
def test_each_cause_is_pooled_as_hazards_of_that_cause(effects):
    pooled = pool_releases(SITES, effects=effects)
    table = heterogeneity(SITES)
    assert table.index.names == ["cause", "covariate"]
    for k, cause in enumerate(CAUSES):
        own = [each[k] for each in EACH]
        alone = pool_releases(own, effects=effects)
        assert pooled.values.keys() == alone.values.keys()
        for name, value in alone.values.items():
            np.testing.assert_allclose(pooled.values[name][k], value, rtol=1e-10, atol=1e-12)
        pd.testing.assert_frame_equal(table.loc[cause], heterogeneity(own), rtol=1e-10)
    assert pooled == pool_releases(SITES[::-1], effects=effects)


def test_what_a_pool_predicts_says_and_passes_on(tmp_path):
    pooled = pool_releases(SITES)
    assert Release.from_json(pooled.to_json()) == pooled
    assert pooled.guarantee.public_inputs["n_records"] == 3000
    model = pooled.to_estimator()
    assert model.causes_ == list(CAUSES)
    rows = np.array([[0.1, -0.2], [0.3, 0.1]])
    curves = [model.predict_survival_function(rows, return_array=True)]
    for cause in CAUSES:
        how = {"cause": cause, "return_array": True}
        curves.append(pooled.predict_cumulative_incidence_function(rows, **how))
        summary = model.of_cause(cause).summary
        np.testing.assert_allclose(summary["coef"], model.coef_[CAUSES.index(cause)])
        assert np.isfinite(summary["se(coef)"]).all()
    np.testing.assert_allclose(sum(curves), 1.0, atol=1e-12)
    assert "pooled by inverse variance from 3 releases" in explain(pooled)
    assert all(cause in html_report(pooled) for cause in CAUSES)
    assert (
        verify(pooled.to_json()).word == verify(pool_releases([e[0] for e in EACH]).to_json()).word
    )
    nested = pool_releases([pool_releases(SITES[:2]), SITES[2]])
    np.testing.assert_allclose(nested.values["coef"], pooled.values["coef"], rtol=1e-9)
    # As a prior, its evidence is in the order that a fit asks for.
    own, _ = DPCompetingRisks._evidence(pooled, "causes", list(CAUSES))
    turned, _ = DPCompetingRisks._evidence(pooled, "causes", list(CAUSES[::-1]))
    np.testing.assert_array_equal(own.coef[::-1], turned.coef)

    paths = [tmp_path / f"{k}.json" for k in range(3)]
    for path, one in zip(paths, SITES, strict=True):
        one.save(path)
    done = CliRunner().invoke(app, ["pool", *map(str, paths), "--out", f"{tmp_path}/all.json"])
    assert done.exit_code == 0, done.output
    assert Release.load(tmp_path / "all.json") == pooled


def test_a_forest_of_one_cause():
    ax = plot_forest(SITES, ("death", "x1"), ax=Figure().subplots())
    assert ax.get_xlabel() == "exp(coef) of x1 (death), 95 % interval"
    with pytest.raises(ValueError, match="covariate must be one of"):
        plot_forest(SITES, "x1")


def test_what_one_site_does_not_know_of_a_cause():
    known = np.array([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 0.0, 1.0]])
    hidden = replace(SITES[0], values={**SITES[0].values, "inference_known": known})
    with pytest.warns(PublicInputWarning, match=r"x0 \(death\)"):
        pooled = pool_releases([hidden, SITES[1]])
    both = pool_releases(SITES[:2])
    np.testing.assert_allclose(pooled.values["coef"][0], both.values["coef"][0], rtol=1e-10)
    with pytest.warns(PublicInputWarning):
        nobody = pool_releases(
            [hidden, replace(SITES[1], values={**SITES[1].values, "inference_known": known})]
        )
    assert "evidence_coef" not in nobody.values
    summary = nobody.to_estimator().summary
    assert np.isinf(summary["se(coef)"]).tolist() == [False, False, True, False]
    fitted = [one.values["coef"][1, 0] for one in SITES[:2]]
    assert nobody.values["coef"][1, 0] == pytest.approx(np.mean(fitted))


def test_what_is_refused():
    plain = {n: v for n, v in SITES[1].values.items() if not n.startswith("inference")}
    three = {"causes": (*CAUSES, "other")}
    for says, changes in (
        ("must have the same causes", {"parameters": STATED | {"causes": CAUSES[::-1]}}),
        ("must have the same causes", {"parameters": STATED | three}),
        ("must have the same censored", {"parameters": STATED | {"censored": "lost"}}),
        ("must have the same n_intervals", {"parameters": STATED | {"n_intervals": 10}}),
        ("must have the same max_time", {"parameters": STATED | {"max_time": 2.0}}),
        ("must have the same columns", {"feature_names_in": ("age", "dose")}),
        ("the same neighbours", {"guarantee": guarantee(neighbours="replace-one-person")}),
    ):
        for order in (1, -1):
            with pytest.raises(ValueError, match=says):
                pool_releases([SITES[0], replace(SITES[1], **changes)][::order])
    with pytest.raises(ValueError, match="releases must come from one estimator"):
        pool_releases([SITES[0], EACH[1][0]])
    none = replace(SITES[1], values=plain)
    with pytest.raises(ValueError, match="must have standard errors to be weighed by"):
        pool_releases([replace(SITES[0], values={**plain, "coef": [[1, 2], [3, 4]]}), none])
    for name, value in (
        ("inference_estimate", np.zeros((3, 4))),
        ("inference_covariance", -np.stack([np.eye(4)] * 2)),
        ("coef", np.zeros((2, 3))),
        ("baseline_coef", np.zeros(2)),
    ):
        broken = replace(SITES[1], values={**SITES[1].values, name: value})
        with pytest.raises(ValueError, match=name):
            pool_releases([SITES[0], broken])


def test_labels_that_are_numbers():
    numbers = [
        replace(one, parameters={**STATED, "causes": (1, 2), "censored": 0}) for one in SITES
    ]
    assert heterogeneity(numbers).index.tolist() == [(k, f"x{j}") for k in (1, 2) for j in (0, 1)]
    assert pool_releases(numbers).to_estimator().causes_ == [1, 2]
