"""What a target learns from a source's release, and what it refuses."""

import json
import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

from skdpsurv import (
    DPLogisticRegression,
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
    """Return the largest distance between coefficients of two stacks."""
    found, expected = (
        np.hstack([np.ravel(part) for part in (*stack.low_level_coef_, stack.low_level_intercept_)])
        for stack in (one, other)
    )
    return np.abs(found - expected).max()


class TestShrinkage:
    def test_a_huge_ridge_returns_the_hypothesis(self, source, target):
        """On the scale of X, whatever the scales that either side is fitted on."""
        scales = [{}, {"intercept_scaling": 1.0}, {"data_norm": 2.0}]
        for calibration, own, epsilon in product(["tight", "published"], scales, [1.0, np.inf]):
            parameters = {"alpha": 1e8, "calibration": calibration, **own}
            one = model(epsilon, prior=source.release_, **parameters).fit(*target)
            assert distance(one, source) < 1e-4
            assert distance(model(epsilon, **parameters).fit(*target), source) > 0.1
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

    def test_through_json_with_any_combiner_and_again(self, source, target):
        """A release says which groups to pass; and that of a transfer transfers."""
        travelled = Release.from_json(source.release_.to_json())
        groups = travelled.parameters["feature_groups_"]
        for combiner in ("weighted_vote", "vote", "logistic"):
            one = model(combiner=combiner, prior=source.release_).fit(*target)
            other = model(combiner=combiner, prior=travelled, feature_groups=groups).fit(*target)
            assert one.release_ == other.release_
            model(prior=one.release_).fit(*target)

    def test_only_the_targets_epsilon_is_charged(self, source, target):
        accountant = PrivacyAccountant(rehearsal=True)
        one = model(0.7, prior=source.release_, accountant=accountant).fit(*target)
        assert accountant.rehearsed() == 0.7
        assert any("prior" in text for text in one.guarantee_.assumptions)


def promising(release, **changes):
    """Return a release with another promise."""
    return replace(release, guarantee=replace(release.guarantee, **changes))


@pytest.fixture(scope="module")
def unproved(source):
    return promising(source.release_, epsilon=np.inf, status="none")


class TestPromisesToOthers:
    """Noise added here does not protect the people behind the prior."""

    def warned(self, prior, target, epsilon=1.0):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            one = model(epsilon, prior=prior, random_state=None).fit(*target)
        texts = [str(w.message) for w in caught if w.category is PrivacyLeakWarning]
        return one.guarantee_, texts

    def test_one_that_is_not_proved_is_warned_of_and_named(self, source, target):
        promises = [(np.inf, "none"), (2.0, "none"), (2.0, "seeded"), (2.0, "asymptotic")]
        for epsilon, status in promises:
            prior = promising(source.release_, epsilon=epsilon, status=status)
            guarantee, (text,) = self.warned(prior, target)
            said = f"epsilon = {epsilon:g}, status {status}"
            assert said in text
            assert any(said in assumed for assumed in guarantee.assumptions)
            # The target's own records are protected all the same.
            assert (guarantee.status, guarantee.epsilon) == ("proved", 1.0)

    def test_the_hypothesis_of_a_hypothesis(self, unproved, target):
        """A proved guarantee in between says nothing about the first people."""
        second = model(1.0, random_state=None, prior=unproved).fit(*target).release_
        guarantee, (text,) = self.warned(Release.from_json(second.to_json()), target)
        assert text.startswith("the prior of the prior promises nothing")
        assert [each["status"] for each in guarantee.public_inputs["prior"]] == ["proved", "none"]

    def test_searches_warn_too_and_fits_that_promise_nothing_do_not(self, unproved, target):
        guarantee, texts = self.warned(unproved, target, epsilon=np.inf)
        assert (guarantee.status, texts) == ("none", [])
        candidate = model(prior=unproved, random_state=None)
        search = PrivateSearchCV(candidate, {"alpha": [0.1, 1.0]}, epsilon=4.0)
        with pytest.warns(PrivacyLeakWarning, match="status none"):
            search.fit(*target)
        assert any("status none" in text for text in search.guarantee_.assumptions)


def tampered(release, name, value):
    """Return a release with another value of a part; None takes it out."""
    content = json.loads(release.to_json())
    part, key = name.split(".")
    content[part][key] = value
    if value is None:
        del content[part][key]
    return Release.from_json(json.dumps(content))


class TestRefusals:
    def check(self, prior, X, y, match="", **parameters):
        accountant = PrivacyAccountant()
        named = r"^(coefficients of )?prior|^(values|parameters) of the release"
        with pytest.raises((ValueError, TypeError), match=named) as caught:
            model(prior=prior, accountant=accountant, **parameters).fit(X, y)
        assert len(accountant.entries()) == 0
        assert match in str(caught.value)

    def test_another_setting(self, source):
        bad = {
            "groups": [[[0, 4], [1, 2], [3, 5]], [[1, 2], [4, 0], [3, 5]], [[4, 0, 1, 2], [3, 5]]],
            "classes": [[0, 2], [0, 1, 2], ["0", "1"]],
            "fit_intercept": [False],
        }
        for match, values in bad.items():
            name = "feature_groups" if match == "groups" else match
            for value in values:
                y = np.full(20, value[0] if name == "classes" else 0)
                self.check(source.release_, make(20)[0], y, match, **{name: value})

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
        rows = model(partition="samples", feature_groups=None, n_partitions=3)
        for other in (DPLogisticRegression(classes=[0, 1], random_state=0), rows):
            self.check(other.fit(*target).release_, *target)
        for prior in ("{}", {}, [[1.0]], np.ones(6), PrivateStackingClassifier()):
            self.check(prior, *target)

    def test_contents_that_no_stack_has_released(self, source, target):
        """One that hides what it started from among them."""
        model(prior=tampered(source.release_, "parameters.classes", [0, 1])).fit(*target)
        coef, intercept = "values.low_level_coef_1", "values.low_level_intercept"
        names = ("classes", "fit_intercept", "partition", "feature_groups_")
        bad = {
            coef: [[[1.0]], [[1.0, 2.0], [1.0, 2.0]], [1.0, 2.0], [[1e9, 0.0]], None],
            intercept: [[[0.0], [0.0]], [0.0, 0.0, 0.0], [[0.0], [-1e9], [0.0]], None],
            **{f"parameters.{name}": [None] for name in names},
        }
        for name, values in bad.items():
            for value in values:
                self.check(tampered(source.release_, name, value), *target)
        for earlier in [1.0, "x", [1.0], [{"epsilon": 1.0}], {"epsilon": 1.0, "status": "proved"}]:
            self.check(promising(source.release_, public_inputs={"prior": earlier}), *target)
