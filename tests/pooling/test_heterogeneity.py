"""How far sites differ, what rounds cost, and forest plots of sites."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from skdpsurv.pooling import heterogeneity, plan_rounds, plot_forest, pool_releases
from tests.support.pooling_sites import site


def sites(n=4, **changes):
    return [site(k, **changes) for k in range(n)]


def test_against_plain_formulas():
    found = sites()
    table = heterogeneity(found)
    y = np.array([one.values["inference_estimate"][2:] for one in found])
    v = np.array([np.diag(one.values["inference_covariance"])[2:] for one in found])
    w = 1.0 / v
    mean = (w * y).sum(axis=0) / w.sum(axis=0)
    q = (w * (y - mean) ** 2).sum(axis=0)
    c = w.sum(axis=0) - (w**2).sum(axis=0) / w.sum(axis=0)
    np.testing.assert_allclose(table["Q"], q)
    np.testing.assert_allclose(table["tau2"], np.maximum(0.0, (q - 3) / c))
    np.testing.assert_allclose(table["p"], stats.chi2.sf(q, 3))
    np.testing.assert_allclose(table["I2"], np.maximum(0.0, 1.0 - 3 / q))
    for effects in ("fixed", "random"):
        summary = pool_releases(found, effects=effects).to_estimator().summary
        np.testing.assert_allclose(table[f"coef {effects}"], summary["coef"])
        np.testing.assert_allclose(table[f"se(coef) {effects}"], summary["se(coef)"])


def test_what_nobody_knows():
    row = heterogeneity(sites(known=[1, 1, 0, 1])).iloc[0]
    assert row[["coef fixed", "p", "I2"]].isna().all()
    assert np.isinf(row["se(coef) fixed"])
    assert row["df"] == 0
    with pytest.raises(ValueError, match="two or more"):
        heterogeneity(sites(1))


def test_rounds_against_the_formula():
    table = plan_rounds([1000, 3000], 2.0, 4, most_rounds=4)
    assert table["rounds"].tolist() == [1, 2, 3, 4]
    assert table["epsilon_per_round"].tolist() == pytest.approx([2.0, 1.0, 2 / 3, 0.5])
    for row in table.itertuples():
        precision = [0.0, 0.0]
        for n in (1000, 3000):
            h = n / (8 * 4)
            for k, r in enumerate((1, row.rounds)):
                # r fits with epsilon / r each: their noise is averaged, sampling is not.
                noise = 5 * (2.0 * r / 2.0) ** 2 / r
                precision[k] += h**2 / (noise + h)
        assert row.relative_error == pytest.approx(np.sqrt(precision[0] / precision[1]))
    bad = [([], 1.0, 2), (100, 1.0, 2), ([0], 1.0, 2), ([1.5], 1.0, 2), ([10], 0.0, 2)]
    for arguments in (*bad, ([10], np.inf, 2), ([10], 1.0, 0)):
        with pytest.raises((ValueError, TypeError)):
            plan_rounds(*arguments)
    with pytest.raises(ValueError, match="most_rounds"):
        plan_rounds([10], 1.0, 1, most_rounds=0)


@pytest.fixture
def ax():
    figure = pytest.importorskip("matplotlib.figure")
    return figure.Figure().subplots()


@pytest.mark.parametrize("effects", ["fixed", "random"])
def test_forest(ax, effects):
    found = dict(zip("abcd", sites(), strict=True))
    table = heterogeneity(list(found.values()))
    name = table.index[1]
    plot_forest(found, name, effects=effects, ax=ax)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["a", "b", "c", "d", f"pooled ({effects} effects)"]
    squares = ax.collections[1]
    expected = [np.exp(one.values["inference_estimate"][3]) for one in found.values()]
    assert np.asarray(squares.get_offsets())[:, 0] == pytest.approx(expected)
    diamond = ax.patches[0].get_xy()
    coef, error = table.loc[name, [f"coef {effects}", f"se(coef) {effects}"]]
    assert diamond[:, 0].max() == pytest.approx(np.exp(coef + 1.959964 * error))
    assert f"Q = {table.loc[name, 'Q']:.1f}" in ax.get_title(loc="left")
    areas = squares.get_sizes()
    v = np.array([one.values["inference_covariance"][3, 3] for one in found.values()])
    assert (np.argsort(areas) == np.argsort(-v)).all()


def test_forest_of_what_some_or_all_do_not_know(ax):
    found = [site(0), site(1, known=[1, 1, 0, 1])]
    name = heterogeneity(found).index[0]
    plot_forest(found, name, ratios=False, limits=(-1.0, 1.0), ax=ax)
    assert len(ax.collections[1].get_offsets()) <= 1
    segment = ax.collections[0].get_segments()[1]
    assert segment[:, 0].tolist() == [-1.0, 1.0]
    assert ax.get_xlabel() == f"coef of {name}, 95 % interval"
    ax.clear()
    plot_forest(sites(2, known=[1, 1, 0, 1]), name, ax=ax)
    assert not ax.patches
    for wrong in ([], ["no"]):
        with pytest.raises(ValueError, match="covariate must be one of"):
            plot_forest(sites(2), *wrong, ax=ax)
    with pytest.raises(TypeError, match="must be a Release"):
        plot_forest({"a": site(), "b": None}, ax=ax)
