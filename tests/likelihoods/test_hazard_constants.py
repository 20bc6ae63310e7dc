"""S, tau and r of one record: never passed by any pair of records, and not needlessly large."""

from dataclasses import replace

import numpy as np
import pytest

from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.hazard_constants import extent, gradient_sensitivity
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.survival.hazards.model import orthogonal_basis
from tests.support.combinations import thinned
from tests.support.hazard_blocks import hazard_block

R = 0.8
CASES = [("logit", None), *((n, h) for n in sorted(LINKS) for h in (0.5, 1.0, 2.0))]
SHAPES = [(1, 1), (2, 2), (6, 1), (6, 3), (12, 4)]
#: Size of the baseline's columns: as large as covariates, and as small as fits have them.
SIZES = [1.0, 0.1]


def make_likelihood(name, cap, q, n_basis, n_features=1, size=1.0):
    link = LINKS[name].bounded_at(0.05)
    return DiscreteHazard(size * orthogonal_basis(q, n_basis), n_features, R, link, cap)


def coefficient_vectors(likelihood, n, seed):
    """Vectors from tame to absurd, so that slopes saturate one way and the other."""
    rng = np.random.default_rng(seed)
    scales = 10.0 ** rng.uniform(-1, 2, size=(n, likelihood.n_params))
    return scales * rng.choice([-1.0, 1.0], size=scales.shape)


def record(x, interval, event):
    return hazard_block(np.array([[x]]), np.array([interval]), np.array([event]))


def all_records(q):
    """Every exit interval and status, with covariates at both ends of the domain and its middle."""
    for x in (-R, 0.0, R):
        for interval in range(1, q + 1):
            for event in (False, True):
                yield record(x, interval, event)


def gradients(likelihood, coef):
    q = likelihood.basis.shape[0]
    return np.array([likelihood.derivatives(coef, z, order=1).gradient for z in all_records(q)])


@pytest.mark.parametrize(("case", "shape", "size"), thinned(CASES, SHAPES, SIZES), ids=str)
def test_no_pair_of_records_passes_the_sensitivity(case, shape, size):
    (name, cap), (q, n_basis) = case, shape
    likelihood = make_likelihood(name, cap, q, n_basis, size=size)
    bound = likelihood.constants.gradient_sensitivity
    for coef in coefficient_vectors(likelihood, 10, seed=q):
        g = gradients(likelihood, coef)
        gaps = np.linalg.norm(g[:, None] - g[None], axis=2)
        assert gaps.max() <= bound * (1 + 1e-9)


def gradient_of(likelihood, coef, x, interval, event):
    return likelihood.derivatives(coef, record(x, interval, event), order=1).gradient


def attempts(likelihood, cap):
    """Yield the pairs that the proof of S has in mind, with coefficients.

    The baseline is a straight line in s, so steep that a record's slopes sit on one interval, or
    on as many as it takes to reach the cap.
    """
    q, line = likelihood.basis.shape[0], 1e4
    few = int(np.ceil(cap)) + 1

    def baseline(values):
        return np.linalg.lstsq(likelihood.basis, values, rcond=None)[0]

    s = np.arange(1, q + 1)
    # Beyond the cap at the end of the grid, and an event just before it, same covariates.
    coef = np.append(baseline(line * (s - (q - few) - 0.5)), 0.0)
    yield coef, (R, q, False), (R, q - few, True)
    # Beyond the cap early and late, opposite covariates.
    coef = np.append(baseline(line * s), line)
    yield coef, (R, few, False), (-R, q, False)
    # Events early and late that nobody expected, opposite covariates.
    coef = np.append(baseline(np.full(q, -300.0)), 0.0)
    yield coef, (R, 1, True), (-R, q, True)


@pytest.mark.parametrize(("name", "cap"), CASES[1:])
def test_sensitivity_is_nearly_attained(name, cap):
    """A constant five per cent too large would fail here."""
    link = LINKS[name].bounded_at(0.05)
    basis = orthogonal_basis(200, 2) * [0.4, 0.1]
    likelihood = DiscreteHazard(basis, 1, R, link, cap)
    reached = max(
        np.linalg.norm(gradient_of(likelihood, coef, *one) - gradient_of(likelihood, coef, *other))
        for coef, one, other in attempts(likelihood, cap)
    )
    assert 0.95 < reached / likelihood.constants.gradient_sensitivity <= 1 + 1e-9


@pytest.mark.parametrize(("name", "cap"), CASES)
def test_no_pair_of_records_passes_the_constants_in_two_dimensions(name, cap):
    likelihood, rng = make_likelihood(name, cap, 5, 3, n_features=2), np.random.default_rng(3)
    for coef in coefficient_vectors(likelihood, 10, seed=4):
        ends = []
        for angle in rng.uniform(0.0, 2.0 * np.pi, 20):
            x = rng.choice([0.0, R]) * np.array([[np.cos(angle), np.sin(angle)]])
            block = hazard_block(x, rng.integers(1, 6, 1), rng.random(1) < 0.5)
            ends.append(likelihood.derivatives(coef, block))
            check_hessian(ends[-1].hessian, likelihood.constants)
        g = np.array([end.gradient for end in ends])
        gaps = np.linalg.norm(g[:, None] - g[None], axis=2)
        assert gaps.max() <= likelihood.constants.gradient_sensitivity * (1 + 1e-9)


def check_hessian(hessian, constants):
    eigenvalues = np.linalg.eigvalsh(hessian)
    size = max(1.0, constants.hessian_trace)
    assert eigenvalues.min() >= -1e-9 * size
    assert np.trace(hessian) <= constants.hessian_trace * (1 + 1e-9)
    assert np.sum(eigenvalues > 1e-8 * size) <= constants.hessian_rank


@pytest.mark.parametrize(("case", "shape"), thinned(CASES, SHAPES), ids=str)
def test_no_record_passes_trace_and_rank(case, shape):
    (name, cap), (q, n_basis) = case, shape
    likelihood = make_likelihood(name, cap, q, n_basis)
    for coef in coefficient_vectors(likelihood, 5, seed=1):
        for one in all_records(q):
            check_hessian(likelihood.derivatives(coef, one).hessian, likelihood.constants)


@pytest.mark.parametrize(("name", "cap"), CASES)
def test_trace_is_of_the_right_size(name, cap):
    """Its two parts peak at different hazards, so only half of it need be attained."""
    likelihood = make_likelihood(name, cap, 6, 1)
    reached = 0.0
    for level in np.linspace(-8, 8, 161):
        for k in (5, 6):
            one = record(R, 6, k == 5)
            hessian = likelihood.derivatives(np.array([level, 0.0]), one).hessian
            reached = max(reached, np.trace(hessian))
    assert 0.5 < reached / likelihood.constants.hessian_trace <= 1.0


def test_rank_is_attained():
    likelihood = make_likelihood("logit", 1.0, 6, 3)
    hessian = likelihood.derivatives(np.zeros(4), record(R, 6, True)).hessian
    assert likelihood.constants.hessian_rank == 3
    assert np.sum(np.linalg.eigvalsh(hessian) > 1e-6) == 3


def test_few_intervals_need_the_full_logit_curvature():
    """q = 2, H = 1.5: y (1 - y) is 1/4 at y = 1/2, and H (1 - H/q) = 0.375 would be too small."""
    likelihood = make_likelihood("logit", 1.5, 2, 1)
    expected = (2 * 0.25 + 0.25) * (1.0 + R**2)
    assert likelihood.constants.hessian_trace == pytest.approx(expected)


@pytest.mark.parametrize("name", ["cloglog", "probit"])
def test_unbounded_links_need_a_cap(name):
    with pytest.raises(ValueError, match="max_cumulative_hazard"):
        make_likelihood(name, None, 4, 2).constants  # noqa: B018


def test_extent_is_the_largest_row_and_the_largest_gap():
    basis = np.random.default_rng(0).normal(size=(7, 3))
    radius, diameter = extent(basis)
    assert radius == pytest.approx(np.linalg.norm(basis, axis=1).max())
    gaps = np.linalg.norm(basis[:, None] - basis[None], axis=2)
    assert diameter == pytest.approx(gaps.max())


def test_sensitivity_bound_is_no_less_than_inside_the_box():
    """The bound is convex in the masses, so the vertices of their box are the worst."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        radius, norm, cap, slope = rng.uniform(0.1, 3, size=4)
        diameter = rng.uniform(0, 2 * radius)
        bound = gradient_sensitivity(radius, diameter, norm, cap, slope)
        u, u2 = rng.uniform(0, cap, size=2)
        v, v2 = rng.uniform(0, slope, size=2)
        plus, minus = u + v2, u2 + v
        inside = np.hypot(
            min(plus, minus) * diameter + abs(plus - minus) * radius,
            norm * (abs(u - v) + abs(u2 - v2)),
        )
        assert inside <= bound * (1 + 1e-12)


def test_weighed_rows_have_the_sensitivity_of_any_weights():
    """Two censored records cancel on the baseline only where they weigh the same."""
    basis, cap, norm = np.array([[1.0, 0.0], [1.0, 0.1]]), 2.0, 10.0
    plain = DiscreteHazard(basis, 1, norm, LINKS["logit"], cap)
    weighed = replace(plain, weighted=True)
    radius, diameter = extent(basis)
    # Either pulls with cap; their rows point to opposite sides.
    for likelihood, baseline in ((plain, diameter), (weighed, radius)):
        S = likelihood.constants.gradient_sensitivity
        assert pytest.approx(np.hypot(cap * baseline, 2.0 * cap * norm)) == S
