"""Several problems at once: one stream of noise each, whatever backend solves them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from joblib import parallel_config
from scipy import stats

from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import RandomSource, random_source
from skdpsurv.likelihoods.linear import LinearBlock, Logistic
from skdpsurv.mechanisms import descent, output, perturbation
from skdpsurv.mechanisms.descent import Descent
from skdpsurv.mechanisms.newton import Certificate, Objective, minimize
from skdpsurv.mechanisms.objective import calibrate
from skdpsurv.mechanisms.perturbation import Problem, Unperturbed, perturb, perturb_all

N, D = 12, 2


def problem(seed=0, calibration=None, center=(0.3, -0.1)):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.7, 0.7, size=(N, D))
    likelihood = Logistic(D)
    block = LinearBlock(X, rng.choice([-1.0, 1.0], size=N))
    if calibration is None:
        calibration = calibrate(likelihood.constants, 1.0, N, D)
    return Problem(likelihood, InMemory([block]), calibration, np.array(center))


def output_problem(seed=0):
    return problem(seed, output.calibrate(Logistic(D).constants, 1.0, N, D))


def descent_problem(seed=0):
    return problem(seed, descent.calibrate(Logistic(D).constants, 0.3, N, D))


def noise_behind(problem, coef):
    """Return the b that makes ``coef`` the minimiser: minus the gradient of the rest."""
    gradient = problem.likelihood.derivatives(coef, problem.blocks.blocks[0], order=1).gradient
    return -gradient - problem.calibration.kappa * (coef - problem.center)


@pytest.fixture
def problems():
    return [
        problem(0),
        problem(1),
        output_problem(2),
        problem(3, Unperturbed(2.0)),
        descent_problem(4),
    ]


def test_each_is_perturbed_with_a_child_of_its_own(problems):
    children = random_source(5).spawn(len(problems))
    expected = [perturb(p, child) for p, child in zip(problems, children, strict=True)]
    for one, other in zip(perturb_all(problems, random_source(5)), expected, strict=True):
        np.testing.assert_array_equal(one.coef, other.coef)


def test_no_problem_at_all():
    assert perturb_all([], random_source(0)) == []


@pytest.mark.parametrize("seed", [0, None])
@pytest.mark.parametrize("make", [problem, output_problem, descent_problem])
def test_equal_problems_get_different_noise(make, seed):
    """In one call, and in two calls on one source."""
    source = random_source(seed)
    released = [*perturb_all([make()] * 3, source), *perturb_all([make()] * 3, source)]
    assert len({each.coef.tobytes() for each in released}) == 6


def test_noise_of_different_problems_is_unrelated():
    """Cosines between directions in the plane follow the law of uniform angles; seeds are fixed.

    False-alarm rate of the test by itself: 1e-7.
    """
    angles = []
    for seed in range(300):
        one, other = perturb_all([problem(), problem()], random_source(seed))
        b, c = noise_behind(problem(), one.coef), noise_behind(problem(), other.coef)
        angles.append(np.arctan2(b[1], b[0]) - np.arctan2(c[1], c[0]))
    uniform = stats.uniform(0, 2 * np.pi).cdf
    assert stats.kstest(np.mod(angles, 2 * np.pi), uniform).pvalue > 1e-7
    assert stats.kstest(np.mod(np.array(angles) / 3, 2 * np.pi), uniform).pvalue < 1e-7


def test_law_of_the_noise():
    """Norm Gamma(d, S / epsilon_b), direction uniform, of every problem; seeds are fixed.

    False-alarm rate of each test by itself: 1e-7.
    """
    made = [problem(0), problem(1)]
    noise = np.array(
        [
            [noise_behind(p, f.coef) for p, f in zip(made, perturb_all(made, source), strict=True)]
            for source in map(random_source, range(300))
        ]
    )
    law = stats.gamma(D, scale=2.0 / made[0].calibration.epsilon_noise)
    for k in range(2):
        norms, (x, y) = np.linalg.norm(noise[:, k], axis=1), noise[:, k].T
        assert stats.kstest(norms, law.cdf).pvalue > 1e-7
        assert stats.kstest(np.arctan2(y, x), stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > 1e-7
        assert stats.kstest(0.6 * norms, law.cdf).pvalue < 1e-7


def test_without_perturbation_it_is_the_minimum():
    free = problem(3, Unperturbed(2.0))
    ((coef, _),) = perturb_all([free], random_source(None))
    exact = minimize(
        Objective(free.likelihood, free.blocks, 2.0, free.center, np.zeros(D)),
        Certificate(1e-10, np.inf),
    )
    np.testing.assert_allclose(coef, exact, atol=1e-6)


#: Processes take seconds to start; of the quick tests, those of the accountant have them.
PROCESSES = pytest.param("loky", marks=pytest.mark.slow)


@pytest.mark.parametrize("backend", ["threading", PROCESSES])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_backend_and_number_of_jobs_do_not_matter(problems, backend, n_jobs):
    expected = perturb_all(problems, random_source(7))
    with parallel_config(backend=backend):
        found = perturb_all(problems, random_source(7), n_jobs=n_jobs)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.coef, other.coef)
        np.testing.assert_array_equal(one.center, other.center)


@pytest.mark.parametrize("backend", ["threading", PROCESSES])
def test_unseeded_workers_do_not_repeat_noise(backend):
    with parallel_config(backend=backend):
        released = perturb_all([problem()] * 4, random_source(None), n_jobs=2)
    assert len({each.coef.tobytes() for each in released}) == 4


def test_workers_get_no_stream_of_random_numbers(problems, monkeypatch):
    """Nothing in their arguments is one, which could not be pickled, or has a handle to one."""
    seen, honest = [], perturbation._computed

    def spy(*args):
        seen.append(args)
        return honest(*args)

    monkeypatch.setattr(perturbation, "_computed", spy)
    perturb_all(problems, random_source(0))
    assert len(seen) == 5
    for objective, certificate in seen:
        assert isinstance(objective, Objective | Descent)
        assert certificate is None or isinstance(certificate, Certificate)
        pickle.dumps(objective)
        assert not any(isinstance(v, RandomSource) for v in vars(objective).values())
    linear = [objective.linear for objective, _ in seen[:4]]
    assert all((b != 0).all() for b in linear[:2])
    assert all((b == 0).all() for b in linear[2:])
    assert all((noise != 0).all() for noise in seen[4][0].noise)


def test_a_stream_cannot_be_pickled():
    """Else the test above would prove little."""
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(random_source(0))


@pytest.mark.parametrize("backend", ["threading", PROCESSES])
def test_floating_point_errors_are_not_raised(backend):
    """Whether some product underflows is for the records to know."""
    likelihood, row = Logistic(D), np.array([[0.7, 1e-300]])
    block = LinearBlock(row, np.ones(1))
    far = Problem(
        likelihood,
        InMemory([block]),
        calibrate(likelihood.constants, 1.0, 1, D),
        np.array([40.0, 0.0]),
    )
    with np.errstate(all="raise"), parallel_config(backend=backend):
        with pytest.raises(FloatingPointError):
            far.likelihood.derivatives(far.center, block)
        for n_jobs in (1, 2):
            for found in perturb_all([far, far], random_source(0), n_jobs=n_jobs):
                assert np.isfinite(found.coef).all()
