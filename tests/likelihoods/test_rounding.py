"""Computed gradients beside those in 50 digits: the theorem of docs/proofs/rounding holds."""

import mpmath
import numpy as np
import pytest
from mpmath import mp
from scipy import special

from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.hazard_constants import (
    gradient_rounding,
    loss_at_zero,
    predictor_rounding,
)
from skdpsurv.likelihoods.hazard_kernel import cap_thresholds, chunks, slopes, tiles
from skdpsurv.likelihoods.linear import LinearBlock, Logistic
from skdpsurv.likelihoods.links import LINKS, LOGIT, inverse_mills
from skdpsurv.likelihoods.loss import ELEMENTARY, LARGEST_BLOCK, block_derivatives
from skdpsurv.mechanisms.newton import gradient_error
from skdpsurv.survival.hazards.model import orthogonal_basis
from tests.support.hazard_blocks import hazard_block

UNIT = 2.0**-53


@pytest.fixture(autouse=True)
def _fifty_digits():
    with mp.workdps(50):
        yield


def units_off(computed, exact):
    """Largest relative error, in units of 2^-53."""
    return max(
        abs((mpmath.mpf(float(a)) - b) / b) / UNIT for a, b in zip(computed, exact, strict=True)
    )


class TestElementaryFunctions:
    """What the theorem takes for granted about NumPy and SciPy."""

    GRID = np.concatenate(
        [np.linspace(-30.0, 30.0, 997), *np.outer([1, -1], np.geomspace(1e-8, 600, 499))]
    )

    @pytest.mark.parametrize(
        ("function", "exact"),
        [
            (np.exp, mpmath.exp),
            (np.expm1, mpmath.expm1),
            (special.expit, lambda x: 1 / (1 + mpmath.exp(-mpmath.mpf(x)))),
        ],
        ids=["exp", "expm1", "expit"],
    )
    def test_exponentials(self, function, exact):
        """Arrays of any length and stride: vector instructions and what is left over of them."""
        grid = self.GRID[self.GRID != 0.0]
        for part in (grid, *(grid[start::7] for start in range(1, 9))):
            assert units_off(function(part), map(exact, part)) <= ELEMENTARY

    def test_erfcx(self):
        grid = self.GRID[self.GRID > -26.0]
        exact = [
            mpmath.exp(mpmath.mpf(x) ** 2) * mpmath.erfc(x) if x < 80.0 else scaled_tail(x)
            for x in grid
        ]
        # Below 0 it is nearly 2 exp(x^2), whose exponent is rounded, as if x were.
        for x, computed, value in zip(grid, special.erfcx(grid), exact, strict=True):
            assert units_off([computed], [value]) <= ELEMENTARY + 2.0 * min(x, 0.0) ** 2


def scaled_tail(x):
    """Asymptotic series of erfcx."""
    x = mpmath.mpf(float(x))
    terms = (
        (-1) ** k * mpmath.fac2(2 * k - 1) / (2 * x * x) ** k if k else mpmath.mpf(1)
        for k in range(12)
    )
    return mpmath.fsum(terms) / (x * mpmath.sqrt(mpmath.pi))


def test_the_series_of_logit_is_right_to_rounding():
    """Its polynomial, and what bounds on its terms are used for."""
    series, worst, terms, bends = LOGIT.series, 0, 0, 0
    for v in np.linspace(1e-9, 1.0 + 1e-9, 801):
        powers = [mpmath.mpf(float(v)) ** (j + 1) for j in range(series.slope.size)]
        parts = [mpmath.mpf(float(c)) * p for c, p in zip(series.slope, powers, strict=True)]
        u = mpmath.mpf(float(v)) * mpmath.mpf(series.limit)
        slope, curvature = u / (1 + u), u / (1 + u) ** 2
        worst = max(worst, abs(mpmath.fsum(parts) / slope - 1) / UNIT)
        terms = max(terms, mpmath.fsum(map(abs, parts)) / slope)
        bends = max(bends, mpmath.fsum((j + 1) * abs(p) for j, p in enumerate(parts)) / curvature)
    assert worst <= 40.0
    assert terms <= 1.7
    assert bends <= 2.8


# --- Exact gradients. ---


def phi_slope(name, eta):
    """Slope of the loss of an interval survived."""
    if name == "logit":
        return 1 / (1 + mpmath.exp(-eta))
    if name == "cloglog":
        return mpmath.exp(eta)
    return mpmath.npdf(eta) / mpmath.ncdf(-eta)


def event_slope(link, eta):
    """Slope of the loss of an event."""
    if link.name == "logit":
        return -1 / (1 + mpmath.exp(eta))
    if link.name == "cloglog":
        u = mpmath.exp(eta)
        return -u / mpmath.expm1(u)
    if eta < link.event_threshold:
        return -mpmath.mpf(link.event_slope)
    return -phi_slope("probit", -eta)


def exact_threshold(name, a, cap, near):
    """Solve sum of slopes = cap for b, from a point near it."""
    if not a or (name == "logit" and len(a) <= cap):
        return mpmath.inf

    def off(b):
        return mpmath.log(mpmath.fsum(phi_slope(name, s + b) for s in a) / cap)

    near = mpmath.mpf(float(near))
    return mpmath.findroot(off, (near, near + mpmath.mpf(1e-9)), solver="secant", tol=1e-60)


def exact_gradient(likelihood, coef, block):
    """Sum of gradients, in 50 digits, of the doubles as they are."""
    name, link, cap = likelihood.link.name, likelihood.link, likelihood.cap
    n_basis = likelihood.basis.shape[1]
    A = [[mpmath.mpf(float(v)) for v in row] for row in likelihood.basis]
    f = [mpmath.mpf(float(v)) for v in coef]
    a = [mpmath.fdot(row, f[:n_basis]) for row in A]
    levels = np.unique(block.survived)
    thresholds = dict.fromkeys(levels, mpmath.inf)
    if cap is not None:
        near = cap_thresholds(link, likelihood.basis @ coef[:n_basis], levels, cap)
        for k, start in zip(levels, near, strict=True):
            thresholds[k] = exact_threshold(name, a[:k], mpmath.mpf(cap), start)
    total = [mpmath.mpf(0)] * len(f)
    weights = np.ones(block.survived.size) if block.weight is None else block.weight
    for x, k, event, w in zip(block.X, block.survived, block.event, weights, strict=True):
        x = [mpmath.mpf(float(v)) for v in x]
        b = mpmath.fdot(x, f[n_basis:])
        masses = [phi_slope(name, s + min(b, thresholds[k])) for s in a[:k]]
        along = mpmath.mpf(cap) if b > thresholds[k] else mpmath.fsum(masses)
        masses += [mpmath.mpf(0)] * (len(A) - int(k))
        if event:
            slope = event_slope(link, a[k] + b)
            masses[k] += slope
            along += slope
        own = [mpmath.fdot(masses, [row[j] for row in A]) for j in range(n_basis)]
        own += [along * v for v in x]
        total = [t + mpmath.mpf(float(w)) * v for t, v in zip(total, own, strict=True)]
    return total


def error_and_bound(likelihood, coef, block, exact=None):
    """Return how far the computed gradient is from the exact one, and how far it may be."""
    computed = block_derivatives(likelihood, coef, 1, block).gradient
    exact = exact_gradient(likelihood, coef, block) if exact is None else exact
    gaps = [mpmath.mpf(float(a)) - b for a, b in zip(computed, exact, strict=True)]
    n, length = likelihood.n_records(block), float(np.linalg.norm(coef))
    return float(mpmath.norm(gaps)), gradient_error(likelihood.constants, n, length, 0.0)


Q, N_BASIS, D = 7, 2, 3


def hazards(name, cap, weighted=False):
    link = LINKS[name].bounded_at(0.05)
    basis = np.array([0.4, 0.15]) * orthogonal_basis(Q, N_BASIS)
    return DiscreteHazard(basis, D, 1.0, link, cap, weighted)


def records(n, seed, kind):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    interval, event = rng.integers(1, Q + 1, n), rng.random(n) < 0.4
    if kind == "equal":
        X[:], interval[:], event[:] = X[0], Q, False
    block = hazard_block(X * (0.999 if kind != "long" else 3.0), interval, event)
    if kind == "long":
        block = block._replace(weight=np.minimum(1.0, (1 - 1e-12) / np.sum(block.X**2, axis=1)))
    return block


#: Linear predictors of the size of coefficients, below: near the truth, and where none is any good.
LEVELS = {"usual": (-3.0, 1.0), "high": (0.5, 3.0), "far": (-30.0, 60.0), "absurd": (-3e3, 4e3)}


@pytest.mark.parametrize("level", sorted(LEVELS))
@pytest.mark.parametrize("kind", ["mixed", "equal", "long"])
@pytest.mark.parametrize("cap", [0.8, 4.0])
@pytest.mark.parametrize("name", sorted(LINKS))
def test_gradients_of_hazards(monkeypatch, name, cap, kind, level):
    """Of 70 records, enough for the powers to be used; beyond and below the threshold."""
    monkeypatch.setattr("skdpsurv.likelihoods.hazard_kernel.TERM_COST", 0)
    likelihood = hazards(name, cap, kind == "long")
    block = records(70, 5, kind)
    level_at, spread = LEVELS[level]
    rng = np.random.default_rng(8)
    coef = np.concatenate([[level_at / 0.4, 0.3 * spread], spread * rng.normal(size=D)])
    error, bound = error_and_bound(likelihood, coef, block)
    assert error <= 0.25 * bound


@pytest.mark.parametrize("level", [-1.7, -3.0, -9.0])
def test_gradients_of_tiles(monkeypatch, level):
    """Of 80 records of probit in one tile: of a sum near the cap, of small slopes, of none."""
    monkeypatch.setattr("skdpsurv.likelihoods.hazard_kernel.RECORD_COST", 0)
    monkeypatch.setattr("skdpsurv.likelihoods.hazard_kernel.TILE_COST", 1)
    likelihood, block = hazards("probit", 0.8), records(80, 5, "mixed")
    coef = np.array([level / 0.4, 0.2, 0.05, -0.1, 0.1])
    a, b = likelihood._predictor(coef, block)
    capped, _ = likelihood._capped(a, b, block.survived)
    (tile,) = tiles(likelihood.link, a, b, block.survived, likelihood.cap, ~capped)
    assert tile[1].size >= 0.9 * np.count_nonzero(~capped)
    error, bound = error_and_bound(likelihood, coef, block)
    assert error <= 0.02 * bound


def test_gradients_without_a_cap():
    likelihood, block = hazards("logit", None), records(70, 6, "mixed")
    error, bound = error_and_bound(likelihood, np.array([-4.0, 1.0, 0.5, -0.5, 2.0]), block)
    assert 0.0 < error <= bound


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("cap", [0.5, 1.0])
@pytest.mark.parametrize("kind", ["mixed", "cancelling", "weighed"])
def test_gradients_of_log_odds(cap, size, kind):
    """Also where products of the predictor cancel, so that their rounding is all that is left."""
    rng, n, d = np.random.default_rng(3), 300, 6
    likelihood = Logistic(d, 1.0, cap)
    X, coef = rng.normal(size=(n, d)), size * rng.normal(size=d)
    if kind == "cancelling":
        X -= np.outer(X @ coef, coef) / (coef @ coef)
    X *= 0.999 / np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    weight = None
    if kind == "weighed":
        X, weight = 2.0 * X, np.full(n, 0.25)
    block = LinearBlock(X, y, weight)
    exact = [mpmath.mpf(0)] * d
    f = [mpmath.mpf(float(v)) for v in coef]
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        x = [mpmath.mpf(float(v)) for v in x]
        residual = min(1 / (1 + mpmath.exp(label * mpmath.fdot(x, f))), mpmath.mpf(cap))
        slope = -label * residual * mpmath.mpf(1.0 if weight is None else weight[i])
        exact = [t + slope * v for t, v in zip(exact, x, strict=True)]
    error, bound = error_and_bound(likelihood, coef, block, exact)
    assert error <= 0.25 * bound
    if kind == "cancelling" and size == 1e6:  # the part that grows with coefficients is needed
        assert error > gradient_error(likelihood.constants, n, 0.0, 0.0)


@pytest.mark.parametrize("name", sorted(LINKS))
@pytest.mark.parametrize("size", [0.0, 5.0, 400.0, 3e4])
def test_thresholds_are_right_to_what_rounding_allows(name, size):
    """The sum of slopes at a threshold is the cap, to what slopes and predictors are rounded by."""
    rng = np.random.default_rng(4)
    link = LINKS[name].bounded_at(0.05)
    a = -4.0 + size * rng.uniform(-1.0, 1.0, 9)
    counts, cap = np.arange(1, 10), 0.7
    thresholds = cap_thresholds(link, a, counts, cap)
    for k, b in zip(counts, thresholds, strict=True):
        masses = [phi_slope(name, mpmath.mpf(float(s)) + mpmath.mpf(float(b))) for s in a[:k]]
        off = float(abs(mpmath.fsum(masses) - mpmath.mpf(cap)))
        steep = 1.0 if name != "probit" else 40.0
        allowed = (2.0 * 9 + 100.0 + 3.0 * steep * (np.abs(a).max() + abs(b))) * cap * UNIT
        assert off <= allowed


@pytest.mark.parametrize("name", sorted(LINKS))
def test_loss_at_zero_is_that_of_the_worst_record(name):
    """By the losses of all records there are at the coefficients 0."""
    for cap in (0.5, 2.0, 6.0):
        likelihood = hazards(name, cap)
        interval, event = np.repeat(np.arange(1, Q + 1), 2), np.tile([True, False], Q)
        block = hazard_block(np.zeros((2 * Q, D)), interval, event)
        worst = likelihood.losses(np.zeros(likelihood.n_params), block).max()
        bound = loss_at_zero(likelihood.link, Q, likelihood.cap)
        assert worst <= bound <= 1.3 * worst + 0.8
        assert likelihood.losses(np.full(likelihood.n_params, -3.0), block).min() >= 0.0
        baseline = np.array([2.0, -1.0, 0.0, 0.0, 0.0])
        within = float(np.abs(likelihood.basis @ baseline[:N_BASIS]).max())
        assert likelihood.losses(baseline, block).max() <= likelihood.loss_within(within)
    if LINKS[name].bounded_slope:
        free, high = hazards(name, None), np.array([20.0, 0.0, 0.0, 0.0, 0.0])
        within = float(np.abs(free.basis @ high[:N_BASIS]).max())
        assert free.losses(high, block).max() <= free.loss_within(within)


def test_large_blocks_are_cut():
    """And give what their pieces give, so that no sum is longer than the theorem supposes."""
    assert LARGEST_BLOCK == 2**16
    n = LARGEST_BLOCK + 1000
    rng = np.random.default_rng(0)
    for likelihood, block in (
        (hazards("cloglog", 0.8), records(n, 1, "mixed")),
        (Logistic(D), LinearBlock(rng.normal(size=(n, D)), np.sign(rng.normal(size=n)))),
    ):
        coef, sizes = np.full(likelihood.n_params, 0.1), []
        original = type(likelihood).derivatives

        def watched(self, coef, piece, *a, sizes=sizes, original=original, **k):
            sizes.append(self.n_records(piece))
            return original(self, coef, piece, *a, **k)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(likelihood), "derivatives", watched)
            whole = block_derivatives(likelihood, coef, 2, block)
        assert sizes == [LARGEST_BLOCK, 1000]
        expected = original(likelihood, coef, block)
        np.testing.assert_allclose(whole.gradient, expected.gradient, rtol=1e-10)
        np.testing.assert_allclose(whole.hessian, expected.hessian, rtol=1e-10)


def test_slopes_in_the_long_way_are_right_to_their_units():
    """Also of the logit link's product of two exponentials."""
    rng = np.random.default_rng(2)
    for name in sorted(LINKS):
        link = LINKS[name]
        a, b = rng.uniform(-8.0, 1.0, 6), rng.uniform(-3.0, 3.0, 40)
        (chunk,) = chunks(np.full(40, 6))
        found, _ = slopes(link, a, b, chunk, 1)
        exact = [phi_slope(name, mpmath.mpf(float(s)) + mpmath.mpf(float(t))) for t in b for s in a]
        # Those of the predictor's own rounding beside those of slopes.
        assert units_off(found.ravel(), exact) <= 36.0 + 12.0 * 40.0 * (name != "logit")
    assert inverse_mills(np.array([-40.0]))[0] == 0.0


def test_units_are_those_of_the_proof():
    """Of predictors, and of slopes, two weights, N chunks, 256 rows twice and intervals twice."""
    rounding = [predictor_rounding(LINKS[name]) for name in sorted(LINKS)]
    assert rounding == [14.0, 14.0, 44.0]
    for q, chunks_of in ((5, 256), (1000, 32), (40_000, 1)):
        baseline = 256 + (2**16 / chunks_of + 2) + 256 + 2 * q
        assert gradient_rounding(q) == (1500 + 4 * q) + 2 + baseline
