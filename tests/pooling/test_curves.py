"""Curves and Weibull distributions of several sites."""

from dataclasses import replace

import numpy as np
import pytest

from skdpsurv import (
    DPAalenJohansenFitter,
    DPKaplanMeierFitter,
    DPWeibullFitter,
    PublicInputWarning,
    Release,
    pool_releases,
)
from skdpsurv.pooling import heterogeneity, poolable
from skdpsurv.report import explain, html_report


def records(seed, n=300):
    rng = np.random.default_rng(seed)
    return rng.exponential(6.0, n), rng.integers(0, 2, n), rng.integers(0, 2, n)


def curves(kind=DPKaplanMeierFitter, epsilon=1.0, seeds=(0, 1), **options):
    fitter = kind(epsilon, max_time=10.0, random_state=0, **{"n_intervals": 5} | options)
    grouped = fitter.groups is not None
    for seed in seeds:
        time, event, group = records(seed, 200 + 100 * seed)
        yield fitter.fit(time, event, group=group if grouped else None).release_


@pytest.mark.parametrize("groups", [None, [0, 1]])
def test_tables_without_noise_add_up_to_that_of_all(groups):
    pooled = pool_releases(list(curves(DPKaplanMeierFitter, np.inf, groups=groups)))
    time, event, group = map(np.concatenate, zip(records(0, 200), records(1, 300), strict=True))
    fitter = DPKaplanMeierFitter(np.inf, max_time=10.0, n_intervals=5, groups=groups)
    whole = fitter.fit(time, event, group=None if groups is None else group)
    counts = whole.release_.values["counts"]
    assert (pooled.values["counts"] == counts).all()
    curve = pooled.to_estimator()
    # The same table, read without the times themselves.
    same = replace(whole.release_, values={"counts": counts}).to_estimator()
    at = [1.0, 3.0, 9.0]
    np.testing.assert_array_equal(curve.predict(at), same.predict(at))
    np.testing.assert_array_equal(curve.survival_band(at), same.survival_band(at))
    survival = whole.survival_function_at_times(at)
    np.testing.assert_allclose(curve.survival_function_at_times(at), survival, atol=0.03)
    assert pooled.guarantee.status == "none"
    if groups is not None:
        assert 0.0 < curve.of_group(1).predict(3.0) < 10.0


def test_noise_adds_up():
    north, south = *curves(epsilon=1.0, seeds=(0,)), *curves(epsilon=0.5, seeds=(1,))
    pooled = pool_releases([north, south])
    variance = 2.0 * (2.0 / 1.0) ** 2 + 2.0 * (2.0 / 0.5) ** 2
    assert pooled.noise["counts"] == {"law": "sum", "variance": pytest.approx(variance)}
    fitter = pooled.to_estimator()
    assert fitter._curve.table.variance == pytest.approx(variance)
    assert fitter._curve.table.n_people == 500
    assert pooled.guarantee.epsilon == 1.0
    assert (pooled.values["counts"] == np.add(north.values["counts"], south.values["counts"])).all()
    assert Release.from_json(pooled.to_json()) == pooled
    assert not fitter.summary.isna().any(axis=None)
    assert "counts" in explain(pooled)
    assert html_report(pooled)
    pooled = pool_releases([*curves(epsilon=np.inf, seeds=(0,)), south])
    assert pooled.noise["counts"]["variance"] == pytest.approx(2.0 * (2.0 / 0.5) ** 2)
    for variance in [-1.0, 1e30, [1.0, 2.0]]:
        with pytest.raises(ValueError, match="noise of a release must"):
            replace(
                north, noise={"counts": {"law": "laplace", "variance": variance}}
            ).to_estimator()


def test_order_and_nesting_do_not_matter():
    a, b, c = curves(seeds=(0, 1, 2))
    whole = pool_releases([a, b, c])
    assert whole == pool_releases([c, a, b])
    nested = pool_releases([pool_releases([a, b]), c])
    assert (nested.values["counts"] == whole.values["counts"]).all()
    assert nested.noise["counts"] == pytest.approx(whole.noise["counts"])


def test_competing_events():
    causes = {"kind": DPAalenJohansenFitter, "censored": 0}
    a, b = curves(**causes, causes=[1, 2])
    pooled = pool_releases([a, b])
    assert 0.0 < pooled.to_estimator().predict(5.0) < 1.0
    assert "event_of_interest" not in pooled.parameters
    with pytest.raises(ValueError, match="releases must have the same causes"):
        pool_releases([a, *curves(**causes, seeds=(1,), causes=[1, 3])])


def test_other_tables_are_refused_and_random_effects():
    (a, b), equal = curves(), {"n_intervals": "auto", "breakpoints": [2.0, 5.0]}
    for name, change in [
        ("n_intervals", {"n_intervals": 6}),
        ("breakpoints", {"breakpoints": "equal"}),
        ("breakpoints", equal),
        ("groups", {"groups": [0, 1]}),
    ]:
        with pytest.raises(ValueError, match=f"releases must have the same {name}"):
            pool_releases([a, *curves(seeds=(1,), **change)])
    with pytest.raises(ValueError, match="effects must be 'fixed' for curves"):
        pool_releases([a, b], effects="random")
    with pytest.raises(ValueError, match=r"releases\[0\] must come from one of"):
        heterogeneity([a, b])


@pytest.fixture(scope="module")
def distributions():
    fitter = DPWeibullFitter(5.0, max_time=10.0)
    return [
        fitter.set_params(random_state=seed)
        .fit(np.random.default_rng(seed).weibull(1.5, 300) * 5.0)
        .release_
        for seed in range(3)
    ]


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    monkeypatch.setattr(poolable, "N_DRAWS", 60)


@pytest.mark.slow
def test_weibull(distributions):
    pooled = pool_releases(distributions)
    fitter = pooled.to_estimator()
    members = [one.to_estimator() for one in distributions]
    logs = [np.log(m._draws(60)) for m in members]
    covariances = [poolable._covariance(one) for one in logs]
    precisions = np.linalg.inv(covariances)
    sigma = np.linalg.inv(precisions.sum(axis=0))
    centers = [np.log([m.lambda_, m.rho_]) for m in members]
    mean = sigma @ sum(p @ c for p, c in zip(precisions, centers, strict=True))
    assert np.log([fitter.lambda_, fitter.rho_]) == pytest.approx(mean)
    assert pooled.values["log_covariance"] == pytest.approx(sigma)
    # Intervals belong to the pooled errors.
    ends = np.log(fitter.confidence_interval(n_resamples=4000))
    half = 0.5 * (ends["upper"] - ends["lower"]).to_numpy()
    assert half == pytest.approx(1.96 * np.sqrt(np.diag(sigma)), rel=0.06)
    assert Release.from_json(pooled.to_json()) == pooled
    assert fitter.summary.shape == (2, 3)
    assert explain(pooled)
    assert pool_releases(distributions[::-1]) == pooled
    nested = pool_releases([pool_releases(distributions[:2]), distributions[2]])
    assert nested.values["rho"] == pytest.approx(pooled.values["rho"])
    assert pooled.guarantee.public_inputs["left_censored"] is True
    # A crafted covariance, and other scales of time, are refused.
    one, other = distributions[:2]
    for matrix in [np.ones((2, 2)), -np.eye(2), [[1.0, 0.5], [0.0, 1.0]], np.eye(3)]:
        with pytest.raises(ValueError, match="values of the release must hold"):
            replace(one, values={**one.values, "log_covariance": matrix}).to_estimator()
    for name in ["max_time", "omega"]:
        with pytest.raises(ValueError, match=f"releases must have the same {name}"):
            pool_releases([one, replace(other, parameters={**other.parameters, name: 7.0})])


def test_a_distribution_that_noise_hides_counts_with_weight_0(distributions, monkeypatch):
    a, b, c = distributions
    alone = pool_releases([a, b])
    with np.errstate(all="ignore"):
        wild = np.exp(np.array([[0.0, 0.0], [np.inf, 0.1]] * 30))
    read = poolable._estimate

    def hidden(release):
        if release is not c:
            return read(release)
        with monkeypatch.context() as patch:
            patch.setattr(type(c.to_estimator()), "_draws", lambda self, n: wild)
            return read(release)

    monkeypatch.setattr(poolable, "_estimate", hidden)
    with pytest.warns(PublicInputWarning, match=r"releases\[1\] has no standard error"):
        pooled = pool_releases([a, c, b])
    assert pooled.values["rho"] == pytest.approx(alone.values["rho"])


def test_weibull_spreads(distributions):
    table = heterogeneity(distributions)
    assert list(table.index) == ["log lambda_", "log rho_"]
    assert (table["df"] == 2).all()
    wide, narrow = (
        np.diag(pool_releases(distributions, effects=effects).values["log_covariance"])
        for effects in ("random", "fixed")
    )
    assert (wide >= narrow).all()
