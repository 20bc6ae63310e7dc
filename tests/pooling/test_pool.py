"""Pooled releases: what they hold and promise, and what is refused."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPLogisticRegression,
    PrivacyAccountant,
    PrivacyLeakWarning,
    PublicColumns,
    PublicInputWarning,
    Release,
    make_release,
    pool_releases,
)
from skdpsurv.datasets import make_discrete_time_survival
from skdpsurv.inference import Inference
from skdpsurv.pooling import heterogeneity
from skdpsurv.pooling.estimates import weighted_mean
from skdpsurv.pooling.joint_guarantee import APART, DISJOINT
from skdpsurv.priors.prior import sha256
from skdpsurv.report import explain, html_report
from tests.support.pooling_sites import PARAMETERS, guarantee, site


def hazards(n_sites=2, **options):
    model = DPDiscreteTimeSurvival(
        5.0, max_time=1.0, n_intervals=20, inference_share=0.2, **options
    )
    for seed in range(n_sites):
        data = make_discrete_time_survival(400, 2, random_state=seed)
        yield model.set_params(random_state=seed).fit(data.X, data.y).release_


def odds(n_sites=2, epsilon=5.0, **options):
    rng = np.random.default_rng(0)
    for seed in range(n_sites):
        X = rng.uniform(-1.0, 1.0, (400, 2))
        y = (X[:, 0] + rng.logistic(size=400) > 0).astype(int)
        model = DPLogisticRegression(
            epsilon, classes=[0, 1], inference_share=0.2, random_state=seed, **options
        )
        yield model.fit(X, y).release_


@pytest.fixture(scope="module")
def fitted():
    return list(hazards(3))


@pytest.mark.parametrize("effects", ["fixed", "random"])
def test_hazards(fitted, effects):
    pooled = pool_releases(fitted, effects=effects)
    assert Release.from_json(pooled.to_json()) == pooled
    model = pooled.to_estimator()
    X = make_discrete_time_survival(5, 2, random_state=9).X
    assert model.predict_survival_function(X, return_array=True).shape == (5, 20)
    assert model.recalibration_.slope == 1.0
    assert (model.coef_ == model.inference_.estimate[3:]).all()
    assert (model.baseline_coef_ == model.inference_.estimate[:3]).all()
    errors = [one.to_estimator().summary["se(coef)"] for one in fitted]
    if effects == "fixed":
        assert (model.summary["se(coef)"] < np.min(errors, axis=0)).all()
        parts = [Inference.of(one, 5) for one in fitted]
        assert model.coef_ == pytest.approx(weighted_mean(parts).estimate[3:])
    assert f"pooled by inverse variance from 3 releases ({effects} effects)" in explain(pooled)
    assert "ratio" in html_report(pooled)
    assert pool_releases(fitted[::-1], effects=effects) == pooled  # in any order


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_log_odds(fit_intercept):
    pooled = pool_releases(list(odds(fit_intercept=fit_intercept)))
    assert Release.from_json(pooled.to_json()) == pooled
    model = pooled.to_estimator()
    assert model.max_residual_ == 1.0
    assert model.recalibration_slope_ == 1.0
    assert model.coef_.shape == (1, 2)
    assert bool(model.intercept_[0]) is fit_intercept
    assert model.predict_proba(np.zeros((2, 2))).shape == (2, 2)
    assert (model.summary["coef"] == model.coef_[0]).all()
    assert pooled.values["evidence_coef"].shape == (1, 2)
    assert explain(pooled)
    assert html_report(pooled)


def test_what_is_promised(fitted):
    sites = [
        site(0, promised=guarantee(100, 1.0)),
        # Of a search the promise counts, not that of its last fit.
        site(1, promised=guarantee(50, 3.0, delta=1e-6), fit_guarantee=guarantee(50, 1.0)),
    ]
    pooled = pool_releases(sites)
    made = pooled.guarantee
    assert (made.epsilon, made.delta, made.status) == (3.0, 1e-6, "proved")
    assert made.public_inputs["n_records"] == 150
    assert "no person is in two of the pooled data sets" in made.assumptions
    assert "docs/proofs/pooling.md" in made.source
    assert pooled.fit_guarantee is None
    entries = {entry["sha256"]: entry["n_records"] for entry in made.public_inputs["pooled"]}
    assert entries == {sha256(sites[0]): 100, sha256(sites[1]): 50}
    assert pool_releases(fitted).guarantee.status == "seeded"
    prior = pool_releases(fitted)
    data = make_discrete_time_survival(400, 2, random_state=7)
    model = DPDiscreteTimeSurvival(1.0, max_time=1.0, prior=prior, random_state=0)
    said = model.fit(data.X, data.y).guarantee_.public_inputs["prior"]
    assert said[0]["sha256"] == sha256(prior)


def test_who_may_be_in_several():
    promised = [guarantee(10, 0.1, delta=1e-6), guarantee(10, 0.2, delta=2e-6)]
    sites = [site(k, promised=one) for k, one in enumerate(promised)]
    made = pool_releases(sites, disjoint=False).guarantee
    assert made.epsilon >= 0.3 - 1e-15
    assert made.epsilon == pytest.approx(0.3)
    assert made.delta == pytest.approx(3e-6)
    assert not any("no person is in two" in one for one in made.assumptions)


@pytest.mark.parametrize("inner", [True, False])
@pytest.mark.parametrize("outer", [True, False])
def test_who_may_be_in_several_of_a_pool_of_pools(inner, outer):
    """No assumption contradicts the rule by which epsilons were put together."""
    a, b, c = (site(k, promised=guarantee(10, 1.0)) for k in range(3))
    made = pool_releases([pool_releases([a, b], disjoint=inner), c], disjoint=outer).guarantee
    within = 1.0 if inner else 2.0
    assert made.epsilon == pytest.approx(within if outer else within + 1.0)
    said = [one for one in made.assumptions if "no person is in" in one]
    (first, second), third = sorted(sha256(one)[:8] for one in (a, b)), sha256(c)[:8]
    if inner and outer:
        assert said == [DISJOINT]
    elif inner:
        assert said == [f"{APART}: {first}; {second}"]
    elif outer:
        parts = sorted([f"{first} with {second}", third])
        assert said == [f"{APART}: {'; '.join(parts)}"]
    else:
        assert said == []


def charged(accountant, seed=0):
    time = np.random.default_rng(seed).exponential(5.0, 300)
    fitter = DPKaplanMeierFitter(1.0, max_time=10.0, n_intervals=4, accountant=accountant)
    return fitter.fit(time, time < 9.0).release_


def leaks(releases, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PrivacyLeakWarning)
        pooled = pool_releases(releases, **options)
    return pooled, [str(one.message) for one in caught]


def test_two_releases_of_one_ledger_are_doubted():
    """They may be of the same people: no release says of which data set it is."""
    one, other = PrivacyAccountant(9.0), PrivacyAccountant(9.0)
    a, b, c, d = charged(one), charged(one, 1), charged(other, 2), charged(None, 3)
    pooled, said = leaks([a, b, c, d])
    assert len(said) == 1
    assert said[0].startswith("2 of the releases share a ledger with another one")
    assert leaks([a, c, d])[1] == leaks([a, b], disjoint=False)[1] == []
    # Also where one of them is in a pool already; not where the pool has added them up.
    assert len(leaks([leaks([a, c])[0], b])[1]) == 1
    assert leaks([leaks([a, b], disjoint=False)[0], c])[1] == []
    assert Release.from_json(pooled.to_json()) == pooled


def test_one_release_is_one_whatever_is_written_beside_it():
    a, b = charged(PrivacyAccountant(9.0)), charged(None, 1)
    for same in (replace(a, made_with="another"), replace(a, receipt=None)):
        with pytest.raises(ValueError, match="releases must be different: one is there twice"):
            pool_releases([a, same])
        with pytest.raises(ValueError, match="releases must be different: one is pooled already"):
            pool_releases([pool_releases([a, b]), same])


def test_members_without_a_proof_are_counted_and_warned_of():
    promised = [guarantee(status="seeded"), guarantee(), guarantee(5, np.inf)]
    pooled, said = leaks([site(k, promised=one) for k, one in enumerate(promised)])
    unproved = "2 of them without a proved guarantee (1 none, 1 seeded)"
    assert len(said) == 1
    assert said[0].startswith(f"3 releases are pooled, {unproved}")
    assert pooled.guarantee.status == "none"
    assert unproved in pooled.guarantee.describe().replace("\n", " ")
    proved, said = leaks([site(k) for k in range(2)])
    assert said == []
    assert "without" not in proved.guarantee.mechanism


def test_an_infinite_epsilon_promises_nothing():
    for disjoint in (True, False):
        pooled = pool_releases([site(0), site(1, promised=guarantee(5, np.inf))], disjoint=disjoint)
        assert (pooled.guarantee.epsilon, pooled.guarantee.status) == (np.inf, "none")
        assert Release.from_json(pooled.to_json()) == pooled


def test_promises_behind_priors_are_kept():
    """And what reached members past their mechanism."""
    prior = {"epsilon": 2.0, "delta": 0.0, "status": "none", "sha256": "ab"}
    inputs = {"n_records": 3, "prior": [prior]}
    said = {"not_covered": ("a scaler",), "assumptions": ("one", "two"), "status": "none"}
    made = guarantee(public_inputs=inputs, **said)
    again = pool_releases([site(0, promised=made), site(1, promised=made)]).guarantee
    assert [dict(entry) for entry in again.public_inputs["prior"]] == [prior]
    assert again.not_covered == ("a scaler",)
    assert again.assumptions[:2] == ("one", "two")
    assert again.status == "none"


def test_what_nobody_knows_is_predicted_by_what_was_released():
    unknown = {"known": [1, 1, 0, 1]}
    sites = [site(k, promised=guarantee(n), **unknown) for k, n in enumerate((100, 300))]
    pooled = pool_releases(sites)
    coef = [one.values["coef"][0] for one in sites]
    assert pooled.values["coef"][0] == pytest.approx(0.25 * coef[0] + 0.75 * coef[1])
    assert "evidence_coef" not in pooled.values
    assert np.isinf(pooled.to_estimator().summary["se(coef)"].iloc[0])


@pytest.mark.parametrize("effects", ["fixed", "random"])
def test_who_has_no_standard_errors_counts_with_weight_0_and_is_named(effects):
    a, b, hidden = site(0), site(1), site(2, known=[1, 1, 0, 1])
    none = site(3, values={"coef": [0.0, 3.0], "baseline_coef": [0.0, 0.0]})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pooled = pool_releases([none, a, hidden, b], effects=effects)
    said = [str(one.message) for one in caught if one.category is PublicInputWarning]
    name = a.features[0].name
    assert [one.split(":")[0] for one in said] == [
        "releases[0] has no standard error of all coefficients",
        f"releases[2] has no standard error of {name}",
    ]
    assert pooled.guarantee.public_inputs["n_records"] == 4000
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PublicInputWarning)
        others = pool_releases([a, hidden, b], effects=effects)
    for value in ("coef", "baseline_coef", "inference_covariance"):
        assert pooled.values[value] == pytest.approx(others.values[value])
    with pytest.raises(ValueError, match="releases must have standard errors to be weighed by"):
        pool_releases([none, replace(none, values={**none.values, "coef": [1.0, 2.0]})])


def test_a_pool_of_pools():
    a, b, c, d = (site(k) for k in range(4))
    whole = pool_releases([a, b, c, d])
    nested = pool_releases([pool_releases([a, b]), pool_releases([c, d])])
    for name in ("coef", "inference_covariance"):
        assert nested.values[name] == pytest.approx(whole.values[name])
    assert nested.guarantee == whole.guarantee
    assert nested.guarantee.public_inputs["n_records"] == 4000


def test_nobody_counts_twice():
    a, b, c = (site(k) for k in range(3))
    with pytest.raises(ValueError, match="releases must be different: one is there twice"):
        pool_releases([a, b, Release.from_json(a.to_json())])
    pooled = pool_releases([a, b])
    for others in ([pooled, a], [pooled, pool_releases([b, c])], [pool_releases([pooled, c]), b]):
        with pytest.raises(ValueError, match="releases must be different: one is pooled already"):
            pool_releases(others)


def test_bad_input():
    for releases, match in [
        (site(), "must be a list of two or more"),
        ({"a": site()}, "must be a list"),
        (3, "must be a list"),
        ([site()], "must be two or more, got 1"),
        ([site(), None], "must be a Release, got NoneType"),
    ]:
        with pytest.raises((TypeError, ValueError), match=f"^releases.* {match}"):
            pool_releases(releases)
    two = guarantee(public_inputs={"n_records": 1, "pooled": 1})
    for changes, match in [
        ({"estimator": "PrivateStackingClassifier"}, "must come from one of .* can be pooled"),
        ({"estimator": "DPWeibullFitter"}, "must come from one estimator"),
        ({"promised": guarantee(neighbours="replace-one-person")}, "about the same neighbours"),
        ({"promised": guarantee(public_inputs={})}, "must say n_records"),
        ({"promised": two}, "must say what they were pooled from"),
        ({"n_features_in": 3}, "must have the same columns"),
        ({"feature_names_in": ("a", "b")}, "must have the same columns"),
        ({"cov": np.ones((4, 4))}, "covariance has an inverse"),
        ({"parameters": PARAMETERS | {"max_time": 2.0}}, "must have the same max_time: state it"),
        ({"parameters": PARAMETERS | {"n_intervals": 10}}, "must have the same n_intervals"),
        ({"parameters": PARAMETERS | {"n_knots": 3}}, "must have the same n_knots: state it"),
        ({"parameters": PARAMETERS | {"link": "probit"}}, "must have the same link: state it"),
    ]:
        with pytest.raises(ValueError, match=f"^releases.* {match}"):
            pool_releases([site(), site(1, **changes)])
    three, (one, other) = {"classes": [0, 1, 2]}, odds(epsilon=1.0)
    with pytest.raises(ValueError, match="n_records times epsilon of 600 or more"):
        pool_releases([one, other])
    other = replace(other, parameters={**other.parameters, **three})
    with pytest.raises(ValueError, match="releases must have the same classes"):
        pool_releases([one, other])
    with pytest.raises(ValueError, match="releases must be of two classes"):
        pool_releases([replace(one, parameters={**one.parameters, **three}), other])
    deltas = [site(k, promised=guarantee(delta=0.6)) for k in range(2)]
    for options, match in [
        ({"effects": "mixed"}, "effects must be"),
        ({"disjoint": 1}, "disjoint must be"),
        ({"disjoint": False}, "deltas whose sum is below 1"),
    ]:
        with pytest.raises((ValueError, TypeError), match=match):
            pool_releases(deltas, **options)


def test_columns_must_be_read_alike():
    """In bounds, and in units where they are stated: formulas are the same in every unit."""
    data = make_discrete_time_survival(400, 1, random_state=0)
    frame = pd.DataFrame({"age": np.random.default_rng(0).uniform(40, 90, 400)})

    def made(seed, low=40, **unit):
        columns = PublicColumns({"age": {"bounds": [low, 90], **unit}})
        options = {"n_intervals": 20, "inference_share": 0.2, "random_state": seed}
        model = DPDiscreteTimeSurvival(5.0, columns=columns, max_time=1.0, **options)
        return make_release(model.fit(frame, data.y))

    years, others = made(0, unit="years"), made(1)
    pooled = pool_releases([others, years])
    assert [f.unit for f in pooled.features] == ["years"]
    assert pooled.predict(frame).shape == (400,)
    assert list(pooled.to_estimator().summary.index) == ["age"]
    assert "age" in html_report(pooled)
    for other in (made(2, low=0, unit="years"), replace(others, columns=None)):
        with pytest.raises(ValueError, match="releases must have the same columns"):
            pool_releases([years, other])
    months = made(2, unit="months")
    for function, members in (
        (pool_releases, [years, months]),
        (pool_releases, [others, years, months]),
        (pool_releases, [pooled, months]),
        (heterogeneity, [years, months]),
    ):
        with pytest.raises(ValueError, match="releases must measure column 'age' in the same unit"):
            function(members)
