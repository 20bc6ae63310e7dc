"""How epsilon is spent: never more than all of it, and by public things only."""

from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from skdpsurv.audit.walk import visits
from skdpsurv.dp import random_source
from skdpsurv.hybrid import HybridMEstimator, SubsetSelection
from skdpsurv.hybrid.hybrid_measurements import CellCounts, ResidualMoments
from skdpsurv.hybrid.hybrid_plan import (
    METHODS,
    SPLITS,
    candidates,
    cell_number,
    hybrid_plan,
    shares,
)
from skdpsurv.hybrid.hybrid_records import distinct
from skdpsurv.hybrid.meta_estimator import fit_weighted
from skdpsurv.hybrid.subset import SELECTIONS
from skdpsurv.mechanisms import moments, sums
from tests.support.hybrid_records import hybrid_records

EPSILONS = [1e-3, 0.01, 0.1, 1 / 3, 0.7, 1.0, 2.0, 6.0, 1e3, 1e8]


def make_records(n=400, n_public=150, d=2, seed=0, classifies=True, last=None):
    """Return public records, and a block of private ones, of whom the last may be stated."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X[:, 0] + rng.normal(size=n)
    outcome = (y > 0).astype(int).astype(object) if classifies else y
    if last is not None:
        X[-1], outcome[-1] = last
    return hybrid_records(X, outcome, np.arange(n) < n_public, classifies)


def public_fit(records):
    estimator = LogisticRegression() if records.classifies else LinearRegression()
    return estimator.fit(records.design_public, records.y_public)


def plan_of(records, fitted=None, **options):
    defaults = {"epsilon": 1.0, "method": "auto", "weights": "auto", "subset": SubsetSelection()}
    defaults |= {"n_cells": None, "split": None}
    fitted = fitted or public_fit(records)

    def fit_with(signed):
        X, y = records.design_public, records.y_public
        return lambda weights: fit_weighted(fitted, X, y, weights, signed, lambda: fitted)

    return hybrid_plan(records, fitted, fit_with, **{**defaults, **options})


(SMALL, FEW), (WIDE, SOME) = make_records(), make_records(d=6)
MANY, MOST = make_records(20_000, 300)
FITS = [public_fit(records) for records in (SMALL, WIDE, MANY)]


class TestBudget:
    def test_parts_add_up_to_at_most_epsilon(self):
        """In exact arithmetic, for any shares that are accepted; and to little less."""
        for method, epsilon in product(METHODS, EPSILONS):
            splits = [None]
            if method in ("auto", "subset"):
                parts = np.random.default_rng(0).dirichlet(np.full(len(SPLITS[method]), 3.0), 6)
                splits += [tuple(part) for part in parts]
            for records, fitted in zip((SMALL, WIDE, MANY), FITS, strict=True):
                for split in splits:
                    plan = plan_of(records, fitted, epsilon=epsilon, method=method, split=split)
                    spent = sum((leaf.cost.epsilon for leaf in plan.leaves), Fraction(0))
                    assert spent <= Fraction(epsilon)
                    assert spent >= Fraction(epsilon) * Fraction(1 - 1e-9)

    @pytest.mark.parametrize("method", METHODS)
    def test_mechanisms_are_called_with_no_more(self, monkeypatch, method):
        """Epsilon from the scales of the noise itself, added up over all calls."""
        spent = []

        def laplace(values, scale, source):
            # A histogram of sensitivity 2, or a sum of losses, which are 1 at most.
            sensitivity = Fraction(2) if isinstance(values, np.ndarray) else steps
            spent.append(sensitivity / Fraction(scale))
            return values

        def choice(scores, epsilon, sensitivity, source):
            assert sensitivity == steps  # a loss of 1
            spent.append(Fraction(epsilon))
            return 0

        def calibrated_noise(dimension, sensitivity, epsilon):
            spent.append(Fraction(epsilon))
            return honest(dimension, sensitivity, epsilon)

        honest = moments.calibrated_noise
        steps = Fraction(2**30)
        monkeypatch.setattr(sums, "lattice_laplace", laplace)
        monkeypatch.setattr(sums, "permute_and_flip", choice)
        monkeypatch.setattr(moments.MeanOfRows, "deviation", lambda mean, price: 0.1)
        monkeypatch.setattr(moments, "calibrated_noise", calibrated_noise)
        for (records, private), kind, epsilon in product(
            ((SMALL, FEW), (WIDE, SOME), (MANY, MOST)), SELECTIONS, (1 / 3, 50.0)
        ):
            subset = SubsetSelection(kind, candidate_sizes=(20, 40, 100))
            plan = plan_of(records, epsilon=epsilon, method=method, subset=subset)
            spent.clear()
            plan.run(private, random_source(0))
            assert Fraction(epsilon) * Fraction(1 - 1e-9) <= sum(spent) <= Fraction(epsilon)

    def test_infinite(self):
        for method in METHODS:
            plan = plan_of(SMALL, FITS[0], epsilon=np.inf, method=method)
            assert {leaf.price for leaf in plan.leaves} == {np.inf}

    def test_shares_that_are_refused(self):
        bad = [(0.5, 0.6), (0.5, 0.4), (1.5, -0.5), (1.0, 0.0), (np.nan, 1.0), (np.inf, 1.0)]
        others = [((0.5, 0.5), "subset"), ((0.5, 0.5), "cells"), ((), "all"), ((1.0,), "auto")]
        for split, method in [*((one, "auto") for one in bad), *others]:
            with pytest.raises(ValueError, match="budget_split"):
                shares(split, method)
        with pytest.raises(TypeError, match="budget_split"):
            shares(("0.5", "0.5"), "auto")


def test_candidates():
    """By default geometric, up to all."""
    for n_points in [1, 5, 20, 21, 400, 10_000]:
        sizes = candidates(None, n_points)
        assert (sizes[0], sizes[-1]) == (min(20, n_points), n_points)
        assert all(a < b for a, b in pairwise(sizes))
    ratios = np.array(sizes[1:]) / sizes[:-1]
    assert ratios.max() / ratios.min() < 1.05
    assert candidates([3, np.int64(9), 40], 40) == (3, 9, 40)
    for sizes in [[], [3, 3], [9, 3], [0, 3], [3, 41]]:
        with pytest.raises(ValueError, match=r"must rise from at least 1 to at most 40"):
            candidates(sizes, 40)


def test_cells():
    """More for more records and more epsilon; never more than public records."""
    with pytest.raises(ValueError, match="at most the 150 public records, got 151"):
        plan_of(SMALL, FITS[0], method="cells", n_cells=151)
    assert plan_of(SMALL, FITS[0], method="cells", n_cells=150).inputs["n_cells"] == 150
    for numbers in (
        [cell_number(n, 10_000, 2, 1.0) for n in (100, 1000, 10_000, 1_000_000)],
        [cell_number(10_000, 10_000, 2, e) for e in (0.01, 0.5, 2.0, np.inf)],
    ):
        assert numbers == sorted(numbers)
        assert len(set(numbers)) > 2
    for n_public, epsilon, n_columns in product([1, 2, 7, 100], [1e-9, 1.0, np.inf], [0, 1, 4]):
        assert 1 <= cell_number(1000, n_public, n_columns, epsilon) <= n_public


class TestPublicRules:
    def test_plan_is_the_same_whatever_private_records_say(self):
        for method, classifies in product(METHODS, [True, False]):
            rng = np.random.default_rng(0)
            X, public = rng.normal(size=(200, 2)), np.arange(200) < 90
            y = X[:, 0] + rng.normal(size=200)
            y = (y > 0).astype(int).astype(object) if classifies else y
            other, unlike = X.copy(), y.copy()
            other[~public] *= 100.0
            unlike[~public] = "unknown" if classifies else 1e6
            for epsilon in (0.1, 1.0, 30.0):
                estimator = LogisticRegression() if classifies else LinearRegression()
                model = HybridMEstimator(estimator, epsilon, method=method)
                one, two = (
                    model.prepare(*both, public=public).plan for both in ((X, y), (other, unlike))
                )
                assert one.public_inputs() == two.public_inputs()
                assert one.context["signed"] == two.context["signed"]
                assert [leaf.cost for leaf in one.leaves] == [leaf.cost for leaf in two.leaves]

    def test_cells_for_few_columns_only(self):
        assert isinstance(plan_of(SMALL, FITS[0]).leaves[0], CellCounts)
        assert {type(leaf) for leaf in plan_of(WIDE, FITS[1]).leaves} == {ResidualMoments}

    def test_signs_are_kept_where_noise_is_small(self):
        other = LogisticRegression(solver="liblinear").fit(SMALL.design_public, SMALL.y_public)
        for expected, fitted, options in (
            (False, FITS[0], {"epsilon": 0.1}),
            (True, FITS[0], {"epsilon": 100.0}),
            (False, other, {"epsilon": 100.0}),
            (False, FITS[0], {"epsilon": 100.0, "weights": "nonnegative"}),
            (True, FITS[0], {"epsilon": 0.1, "weights": "signed"}),
        ):
            assert plan_of(SMALL, fitted, method="all", **options).context["signed"] is expected


def test_distinct_keeps_the_first_of_each():
    points = np.array([[2.0, 0.0], [1.0, 0.0], [2.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    assert distinct(points).tolist() == [0, 1, 3]


#: A record that is far out, of either outcome: the second column says nothing of it.
ENDS = [
    make_records(last=last)
    for last in (((-9.0, -9.0), 0), ((9.0, 9.0), 1), ((0.0, 9.0), 0), ((0.0, 9.0), 1), (0.0, "?"))
]


@pytest.mark.parametrize(
    ("method", "n_bounds"), [("auto", 3), ("residuals", 1), ("all", 2), ("subset", 5)]
)
def test_what_is_asked_of_neighbours_is_within_its_bounds(method, n_bounds):
    """For each measurement and the same results before it; and each bound is nearly reached."""
    most = {}
    subset = SubsetSelection(candidate_sizes=(20, 60))
    plan = plan_of(SMALL, FITS[0], method=method, epsilon=100.0, subset=subset)
    for leaf, known, *_ in visits(plan.tree, plan.context, FEW, FEW, random_source(0)):
        for (_, one), (_, other) in combinations(ENDS, 2):
            for what, found, bound in leaf.distances(known, one, other):
                assert found <= bound, leaf.name
                name = leaf.name, what
                most[name] = max(most.get(name, 0.0), found / bound)
    assert len(most) == n_bounds
    assert min(most.values()) > 0.3


def test_the_estimator_is_assumed_where_it_is_asked():
    class Other(LogisticRegression):
        pass

    fitted = Other().fit(SMALL.design_public, SMALL.y_public)
    for method, asked in (("cells", 0), ("all", 0), ("subset", 1), ("residuals", 1), ("auto", 1)):
        plan = plan_of(SMALL, fitted, method=method, epsilon=100.0)
        assert sum("Other predicts" in said for said in plan.assumptions) == asked
        assert len(plan.assumptions) == 4 + asked
        assert len(plan_of(SMALL, FITS[0], method=method).assumptions) == 4
