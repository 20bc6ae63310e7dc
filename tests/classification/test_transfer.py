"""What a target learns from a source's release, and what it refuses."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

from skdpsurv import (
    DPLogisticRegression,
    FeaturePartition,
    PrivacyAccountant,
    PrivacyLeakWarning,
    PrivateStackingClassifier,
    Release,
)
from skdpsurv.model_selection import PrivateSearchCV
from tests.support.estimators import stack_of

D = 6
GROUPS = [[4, 0], [1, 2], [3, 5]]
COLUMNS = list("abcdef")


def model(epsilon=1.0, **parameters):
    return stack_of(
        epsilon, **{"classes": [0, 1], "feature_groups": GROUPS, "random_state": 0, **parameters}
    )


def make(n=400, seed=0, n_classes=2):
    """Of one law, whatever the seed."""
    direction = np.random.default_rng(99).normal(size=(D, n_classes))
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    X /= 1.1 * np.linalg.norm(X, axis=1)[:, None]
    return X, (5.0 * X @ direction + rng.gumbel(size=(n, n_classes))).argmax(axis=1)


@pytest.fixture(scope="module")
def source():
    return model(50.0).fit(*make(2000, seed=1))


@pytest.fixture(scope="module")
def target():
    return make(60, seed=2)


def distance(one, other):
    """Between all coefficients of two stacks."""
    pairs = zip(
        [*one.low_level_coef_, one.low_level_intercept_],
        [*other.low_level_coef_, other.low_level_intercept_],
        strict=True,
    )
    return max(np.abs(a - b).max() for a, b in pairs)


class TestShrinkage:
    def test_a_huge_ridge_returns_the_hypothesis(self, source, target):
        """On the scale of X, whatever the scales that either side is fitted on."""
        for calibration, own, epsilon in product(
            ["tight", "published"],
            [{}, {"intercept_scaling": 1.0}, {"data_norm": 2.0}],
            [1.0, np.inf],
        ):
            parameters = {"alpha": 1e8, "calibration": calibration, **own}
            one = model(epsilon, prior=source.release_, **parameters).fit(*target)
            assert distance(one, source) < 1e-4
            assert distance(model(epsilon, **parameters).fit(*target), source) > 0.1

    def test_three_classes(self):
        X, y = make(1000, n_classes=3)
        source = model(50.0, classes=range(3)).fit(X, y)
        one = model(classes=range(3), alpha=1e8, prior=source.release_).fit(X[:50], y[:50])
        assert distance(one, source) < 1e-4

    def test_without_privacy_the_centre_is_subtracted(self, source, target):
        """The gradient at the minimum balances the pull of the ridge, by hand."""
        X, y = target
        one = model(np.inf, alpha=0.1, prior=source.release_, fit_intercept=True).fit(X, y)
        for k, group in enumerate(GROUPS):
            coef, intercept = one.low_level_coef_[k][0], one.low_level_intercept_[k, 0]
            p = 1 / (1 + np.exp(-(X[:, group] @ coef + intercept)))
            pull = 0.1 * len(y) * (coef - source.low_level_coef_[k][0])
            np.testing.assert_allclose(X[:, group].T @ (p - y) + pull, 0, atol=1e-5)
            # The intercept's parameter is that of a column of 0.1.
            shift = (intercept - source.low_level_intercept_[k, 0]) / 0.1
            assert 0.1 * (p - y).sum() + 0.1 * len(y) * shift == pytest.approx(0, abs=1e-5)

    def test_through_json_and_any_combiner(self, source, target):
        travelled = Release.from_json(source.release_.to_json())
        for combiner in ("weighted_vote", "vote", "logistic"):
            one, other = (
                model(combiner=combiner, prior=h).fit(*target) for h in (source.release_, travelled)
            )
            assert one.release_ == other.release_

    def test_its_groups_are_those_to_pass(self, source, target):
        """As the refusal of other groups says."""
        prior = Release.from_json(source.release_.to_json())
        groups = FeaturePartition(prior.parameters["feature_groups_"])
        one = PrivateStackingClassifier(
            partition=groups, classes=[0, 1], prior=prior, random_state=0
        ).fit(*target)
        assert one.release_ == model(prior=source.release_).fit(*target).release_

    def test_only_the_targets_epsilon_is_charged(self, source, target):
        accountant = PrivacyAccountant(rehearsal=True)
        one = model(0.7, prior=source.release_, accountant=accountant).fit(*target)
        assert accountant.rehearsed() == 0.7
        assert any("prior" in text for text in one.guarantee_.assumptions)

    def test_a_release_of_a_transfer_rebuilds_and_transfers(self, source, target):
        one = model(prior=source.release_).fit(*target)
        two = PrivateStackingClassifier.from_release(Release.from_json(one.release_.to_json()))
        np.testing.assert_array_equal(two.predict_proba(target[0]), one.predict_proba(target[0]))
        model(prior=one.release_).fit(*target)


def promising(release, **changes):
    """Return a release with another promise."""
    return replace(release, guarantee=replace(release.guarantee, **changes))


NOT_PROVED = [
    {"epsilon": np.inf, "status": "none"},
    {"epsilon": 2.0, "status": "none"},
    {"epsilon": 2.0, "status": "seeded"},
    {"epsilon": 2.0, "status": "asymptotic"},
]


class TestPromisesToOthers:
    """Noise added here does not protect the people behind the prior."""

    def warned(self, prior, target, **parameters):
        parameters = {"epsilon": 1.0, "random_state": None, **parameters}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            one = model(prior=prior, **parameters).fit(*target)
        texts = [str(w.message) for w in caught if w.category is PrivacyLeakWarning]
        return one.guarantee_, texts

    def test_one_that_is_not_proved_is_warned_of_and_named(self, source, target):
        for promise in NOT_PROVED:
            guarantee, texts = self.warned(promising(source.release_, **promise), target)
            said = f"epsilon = {promise['epsilon']:g}, status {promise['status']}"
            assert len(texts) == 1
            assert said in texts[0]
            assert any(said in text for text in guarantee.assumptions)
            # The target's own records are protected all the same.
            assert (guarantee.status, guarantee.epsilon) == ("proved", 1.0)

    def test_the_hypothesis_of_a_hypothesis(self, source, target):
        """A proved guarantee in between says nothing about the first people."""
        first = promising(source.release_, epsilon=np.inf, status="none")
        second = model(1.0, random_state=None, prior=first).fit(*target).release_
        travelled = Release.from_json(second.to_json())
        guarantee, texts = self.warned(travelled, target)
        assert len(texts) == 1
        assert texts[0].startswith("the prior of the prior promises nothing")
        assert [each["status"] for each in guarantee.public_inputs["prior"]] == ["proved", "none"]

    def test_without_privacy_nothing_is_promised_anyway(self, source, target):
        first = promising(source.release_, epsilon=np.inf, status="none")
        guarantee, texts = self.warned(first, target, epsilon=np.inf)
        assert (guarantee.status, texts) == ("none", [])

    def test_a_search_warns_too(self, source, target):
        first = promising(source.release_, epsilon=np.inf, status="none")
        search = PrivateSearchCV(
            model(prior=first, random_state=None), {"alpha": [0.1, 1.0]}, epsilon=4.0
        )
        with pytest.warns(PrivacyLeakWarning, match="status none"):
            search.fit(*target)
        assert any("status none" in text for text in search.guarantee_.assumptions)

    def test_one_that_hides_its_own_hypothesis_is_refused(self, source, target):
        for earlier in [1.0, "x", [1.0], [{"epsilon": 1.0}], {"epsilon": 1.0, "status": "proved"}]:
            bad = promising(source.release_, public_inputs={"prior": earlier})
            accountant = PrivacyAccountant()
            with pytest.raises(ValueError, match=r"^prior must"):
                model(prior=bad, accountant=accountant).fit(*target)
            assert accountant.spent() == 0.0


def tampered(release, **changes):
    """Return a release with other contents, by dotted name; None takes a thing out."""
    content = json.loads(release.to_json())
    for name, value in changes.items():
        part, _, key = name.partition("__")
        if value is None:
            del content[part][key]
        else:
            content[part][key] = value
    return Release.from_json(json.dumps(content))


class TestRefusals:
    def check(self, prior, X, y, match="", **parameters):
        accountant = PrivacyAccountant()
        one = model(prior=prior, accountant=accountant, **parameters)
        named = r"^(coefficients of )?prior|^(values|parameters) of the release"
        with pytest.raises((ValueError, TypeError), match=named) as caught:
            one.fit(X, y)
        assert len(accountant.entries()) == 0
        assert not hasattr(one, "release_")
        assert match in str(caught.value)

    def test_another_setting(self, source):
        for match, changes in (
            ("groups", {"feature_groups": [[0, 4], [1, 2], [3, 5]]}),
            ("groups", {"feature_groups": [[1, 2], [4, 0], [3, 5]]}),
            ("groups", {"feature_groups": [[4, 0, 1, 2], [3, 5]]}),
            ("groups", {"feature_groups": None, "n_partitions": 3}),
            ("classes", {"classes": [0, 2]}),
            ("classes", {"classes": [0, 1, 2]}),
            ("classes", {"classes": ["0", "1"]}),
            ("fit_intercept", {"fit_intercept": False}),
        ):
            y = np.full(20, changes.get("classes", [0])[0])
            self.check(source.release_, make(20)[0], y, match, **changes)

    def test_other_columns(self, source, target):
        X, y = target
        groups = [[*range(4)], [*range(4, 8)], [*range(8, 12)]]
        wide = np.hstack([X, X])
        self.check(source.release_, wide, y, "columns", feature_groups=groups)
        frame = pd.DataFrame(X, columns=COLUMNS)
        named = model().fit(frame, y).release_
        model(prior=named).fit(frame, y)
        self.check(named, frame[COLUMNS[::-1]], y, "names")

    def test_another_estimator_or_none(self, target):
        self.check(
            DPLogisticRegression(classes=[0, 1], random_state=0).fit(*target).release_, *target
        )
        other = model(partition="samples", feature_groups=None, n_partitions=3).fit(*target)
        self.check(other.release_, *target)
        for prior in ("{}", {}, [[1.0]], np.ones(6), PrivateStackingClassifier()):
            self.check(prior, *target)

    def test_contents_that_no_stack_has_released(self, source, target):
        model(prior=tampered(source.release_, parameters__classes=[0, 1])).fit(*target)
        coef, intercept = "values__low_level_coef_1", "values__low_level_intercept"
        bad = {
            coef: [[[1.0]], [[1.0, 2.0], [1.0, 2.0]], [1.0, 2.0], [[1e9, 0.0]], None],
            intercept: [[[0.0], [0.0]], [0.0, 0.0, 0.0], [[0.0], [-1e9], [0.0]], None],
            **{f"parameters__{name}": [None] for name in ("classes", "fit_intercept", "partition")},
            "parameters__feature_groups_": [None],
        }
        for name, values in bad.items():
            for value in values:
                self.check(tampered(source.release_, **{name: value}), *target)
