"""Several problems at once: one stream of noise each, whatever backend solves them."""

import pickle

import numpy as np
import pytest
from joblib import parallel_config
from scipy import stats

from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import RandomSource, random_source
from skdpsurv.dp.privacy_cost import Concentrated
from skdpsurv.likelihoods.linear import LinearBlock, Logistic
from skdpsurv.mechanisms import descent, output_perturbation, perturbation
from skdpsurv.mechanisms.descent import Descent
from skdpsurv.mechanisms.newton import Certificate, Objective, minimize
from skdpsurv.mechanisms.objective import calibrate
from skdpsurv.mechanisms.perturbation import Problem, Unperturbed, perturb, perturb_all
from skdpsurv.mechanisms.vector_noise import SphericalGaussian

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
    return problem(seed, output_perturbation.calibrate(Logistic(D).constants, 1.0, N, D))


def descent_problem(seed=0):
    return problem(seed, descent.calibrate(Logistic(D).constants, 0.3, N, D))


def noise_behind(problem, coef):
    """Return the b that makes ``coef`` the minimiser: minus the gradient of the rest."""
    gradient = problem.likelihood.derivatives(coef, problem.blocks.blocks[0], order=1).gradient
    return -gradient - problem.calibration.kappa * (coef - problem.center)


@pytest.fixture
def problems():
    free = problem(3, Unperturbed(2.0))
    return [problem(0), problem(1), output_problem(2), free, descent_problem(4)]


def test_each_is_perturbed_with_a_child_of_its_own(problems):
    children = random_source(5).spawn(len(problems))
    expected = [perturb(p, child) for p, child in zip(problems, children, strict=True)]
    for one, other in zip(perturb_all(problems, random_source(5)), expected, strict=True):
        np.testing.assert_array_equal(one.coef, other.coef)


@pytest.mark.parametrize("make", [problem, output_problem, descent_problem])
def test_equal_problems_get_different_noise(make):
    """In one call, and in two calls on one source."""
    for seed in (0, None):
        source = random_source(seed)
        released = [*perturb_all([make()] * 3, source), *perturb_all([make()] * 3, source)]
        assert len({each.coef.tobytes() for each in released}) == 6


def test_law_of_the_noise():
    """Norm Gamma(d, S / epsilon_b), direction uniform, of every problem, and unrelated.

    Angles between two problems' noise are uniform, too. Seeds are fixed; false-alarm rate of each
    test by itself: 1e-7.
    """
    made = [problem(0), problem(1)]
    found = [perturb_all(made, random_source(seed)) for seed in range(300)]
    noise = np.array([[noise_behind(made[k], pair[k].coef) for k in range(2)] for pair in found])
    law = stats.gamma(D, scale=2.0 / made[0].calibration.epsilon_noise)
    for k in range(2):
        norms, (x, y) = np.linalg.norm(noise[:, k], axis=1), noise[:, k].T
        assert stats.kstest(norms, law.cdf).pvalue > 1e-7
        assert stats.kstest(np.arctan2(y, x), stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > 1e-7
        assert stats.kstest(0.6 * norms, law.cdf).pvalue < 1e-7
    between = np.diff(np.arctan2(noise[..., 1], noise[..., 0]), axis=1).ravel()
    uniform = stats.uniform(0, 2 * np.pi).cdf
    assert stats.kstest(np.mod(between, 2 * np.pi), uniform).pvalue > 1e-7
    assert stats.kstest(np.mod(between / 3, 2 * np.pi), uniform).pvalue < 1e-7


def test_without_perturbation_it_is_the_minimum():
    free = problem(3, Unperturbed(2.0))
    ((coef, _),) = perturb_all([free], random_source(None))
    assert free.calibration.noise_scale == perturbation.deviation(free.calibration) == 0.0
    objective = Objective(free.likelihood, free.blocks, 2.0, free.center, np.zeros(D))
    np.testing.assert_allclose(coef, minimize(objective, Certificate(1e-10, np.inf)), atol=1e-6)


#: Processes take seconds to start; of the quick tests, those of the accountant have them.
PROCESSES = pytest.param("loky", marks=pytest.mark.slow)


@pytest.mark.parametrize("backend", ["threading", PROCESSES])
def test_backend_and_number_of_jobs_do_not_matter(problems, backend, capfd):
    expected = perturb_all(problems, random_source(7))
    for n_jobs in (1, 2):
        with parallel_config(backend=backend):
            found = perturb_all(problems, random_source(7), n_jobs=n_jobs)
            released = perturb_all([problem()] * 4, random_source(None), n_jobs=n_jobs)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one.coef, other.coef)
            np.testing.assert_array_equal(one.center, other.center)
        assert len({each.coef.tobytes() for each in released}) == 4
    assert capfd.readouterr() == ("", "")  # no progress is shown


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


@pytest.mark.parametrize("backend", ["threading", PROCESSES])
def test_floating_point_errors_are_not_raised(backend):
    """Whether some product underflows is for the records to know."""
    likelihood, row = Logistic(D), np.array([[0.7, 1e-300]])
    block = LinearBlock(row, np.ones(1))
    calibration = calibrate(likelihood.constants, 1.0, 1, D)
    far = Problem(likelihood, InMemory([block]), calibration, np.array([40.0, 0.0]))
    with np.errstate(all="raise"), parallel_config(backend=backend):
        with pytest.raises(FloatingPointError):
            far.likelihood.derivatives(far.center, block)
        for n_jobs in (1, 2):
            for found in perturb_all([far, far], random_source(0), n_jobs=n_jobs):
                assert np.isfinite(found.coef).all()


def test_every_method_is_calibrated_by_its_theorem():
    """And compared by the noise in units of a gradient; a mu has Gaussian noise."""
    constants, gaussian = Logistic(D).constants, Concentrated(0.3)

    def made(method, price):
        return perturbation.calibrate(method, constants, price, N, D, 0.1)

    by_objective = calibrate(constants, 1.0, N, D, 0.1)
    by_output = output_perturbation.calibrate(
        constants, 0.3, N, D, 0.1, distribution=SphericalGaussian
    )
    steps = descent.calibrate(constants, 0.3, N, D, 0.1)
    assert made("obj_pert", 1.0) == by_objective
    assert made("out_pert", 1.0) == output_perturbation.calibrate(constants, 1.0, N, D, 0.1)
    assert made("out_pert", gaussian) == by_output
    assert made("noisy_gd", gaussian) == steps
    deviations = [perturbation.deviation(each) for each in (by_objective, by_output, steps)]
    assert deviations == [
        by_objective.linear.deviation,
        by_output.output.deviation * by_output.kappa,
        steps.linear.deviation * steps.excess,
    ]
