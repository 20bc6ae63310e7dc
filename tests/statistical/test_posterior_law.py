"""The chain that fits use, against an independent sampler on real records, for every link.

The other sampler knows nothing of the package: random-walk Metropolis on a log-density written out
here, with a covariance from a pilot run. Means and standard deviations are compared in the units of
the latter, along the principal axes. Both chains have several hundred independent states for each
of five axes: a mean is off by 0.06 and the logarithm of a standard deviation by 0.04 (one standard
deviation). 10 % on the standard deviation over all axes together (2000 and more states: 0.016) is
six of them, and so is 0.35 on one of five means: a false alarm has probability below 1e-6.
"""

from itertools import islice

import numpy as np
import pandas as pd
import pytest
from scipy import special

from skdpsurv import PublicBoundsScaler
from skdpsurv.data.blocks import InMemory
from skdpsurv.data.histories import Histories
from skdpsurv.datasets import load_flchain
from skdpsurv.dp import random_source
from skdpsurv.dp.clipping import clip_rows
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.mechanisms.langevin import MALA
from skdpsurv.mechanisms.posterior_sampling import Target, calibrate
from skdpsurv.survival.hazards.model import orthogonal_basis
from tests.support.hazard_blocks import hazard_block

Q, KNOTS, COLUMNS, EPSILON = 12, 3, ["age", "sex_male"], 4.0

SURVIVED = {
    "logit": lambda eta: np.logaddexp(0.0, eta),
    "cloglog": lambda eta: np.exp(np.minimum(eta, 300.0)),
    "probit": lambda eta: -special.log_ndtr(-eta),
}
EVENT = {
    "logit": lambda eta: np.logaddexp(0.0, -eta),
    "cloglog": lambda eta: -np.log(-np.expm1(-np.exp(np.clip(eta, -300.0, 300.0)))),
    "probit": lambda eta: -special.log_ndtr(eta),
}


@pytest.fixture(scope="module")
def records():
    data = load_flchain()
    scaler = PublicBoundsScaler.from_bounds(data.bounds, missing="midpoint")
    scaled = pd.DataFrame(np.asarray(scaler.fit_transform(data.X)), columns=data.X.columns)
    X = scaled[COLUMNS].to_numpy(dtype=float)
    event, time = (data.y[name] for name in data.y.dtype.names)
    found = Histories(time, event).on_grid(data.max_time, Q)
    third = slice(None, None, 3)
    return clip_rows(X[third], 1.0), found.exit[third], found.event[third]


def metropolis(log_density, start, covariance, n_steps, rng):
    root = np.linalg.cholesky(covariance) * 2.38 / np.sqrt(start.size)
    at, value, states = start, log_density(start), []
    for _ in range(n_steps):
        new = at + root @ rng.standard_normal(start.size)
        ahead = log_density(new)
        if np.log(rng.random()) < ahead - value:
            at, value = new, ahead
        states.append(at)
    return np.array(states)


@pytest.mark.slow
@pytest.mark.parametrize("link", sorted(LINKS))
def test_mala_and_an_independent_metropolis_agree(records, link):
    X, interval, event = records
    n = event.size
    basis = orthogonal_basis(Q, KNOTS)
    v = 2.0 * np.log(n)
    survived = np.arange(1, Q + 1) <= (interval - event)[:, None]
    last = interval - 1

    def log_density(f):
        eta = basis @ f[:KNOTS] + (X @ f[KNOTS:])[:, None]
        losses = np.where(survived, SURVIVED[link](eta), 0.0).sum(axis=1)
        losses[event] += EVENT[link](eta[event, last[event]])
        return -0.005 * f @ f - 0.5 * EPSILON * np.tanh(losses / v).sum()

    target = Target(
        DiscreteHazard(basis, 2, 1.0, LINKS[link]),
        InMemory([hazard_block(X, interval, event)]),
        calibrate(EPSILON, n),
    )
    start = np.zeros(KNOTS + 2)
    start[0] = LINKS[link].predictor(0.05) / basis[0, 0]
    chain = MALA(400).states(target, random_source(3))
    mala = np.array(list(islice(chain, 5400)))[400:]
    # The energies themselves, before the laws.
    for f in mala[::1000]:
        value = target.energy(f)[0] - target.energy(mala[0])[0]
        assert value == pytest.approx(log_density(mala[0]) - log_density(f), abs=1e-6)

    rng = np.random.default_rng(4)
    pilot = metropolis(log_density, start, 1e-2 * np.eye(start.size), 1500, rng)
    for _ in range(2):
        spread = np.cov(pilot[500:].T) + 1e-9 * np.eye(start.size)
        pilot = metropolis(log_density, pilot[-1], spread, 1500, rng)
    spread = np.cov(pilot[500:].T)
    other = metropolis(log_density, pilot[-1], spread, 12_000, rng)

    mean, axes = other.mean(axis=0), np.linalg.inv(np.linalg.cholesky(np.cov(other.T)))
    white = (mala - mean) @ axes.T
    assert np.abs(white.mean(axis=0)).max() < 0.35
    assert np.sqrt(np.mean(white.var(axis=0))) == pytest.approx(1.0, abs=0.1)
    assert np.abs(np.log(white.std(axis=0))).max() < 0.25
    # Directions too: off-diagonal correlations of whitened states.
    correlations = np.corrcoef(white.T) - np.eye(start.size)
    assert np.abs(correlations).max() < 0.35
