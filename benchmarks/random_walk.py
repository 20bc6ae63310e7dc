"""A random walk for a sanitised posterior, to check the package's own chains.

It shares no code with them but the search for a mode, near which it starts: for the energy,
losses are interpolated from a table.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from skdpsurv.likelihoods.hazard import DiscreteHazard, HazardBlock
from skdpsurv.mechanisms.posterior_sampling import Target

#: Nodes of the table from which survived losses are interpolated.
NODES = 60


class GridLosses:
    """Uncapped losses from a table of survived losses over the covariates' predictor.

    Cubic interpolation and plain sums, nothing of the estimator's own code for the energy, so that
    it checks that as well as the chains; and several times as fast.
    """

    def __init__(self, likelihood: DiscreteHazard, block: HazardBlock) -> None:
        self.X, self.survived, event, *_ = block  # nobody has a weight
        self.basis, self.link = likelihood.basis, likelihood.link
        self.events = np.flatnonzero(event)
        self.last = self.survived[self.events]

    def __call__(self, coef: np.ndarray) -> np.ndarray:
        n_basis = self.basis.shape[1]
        a, b = self.basis @ coef[:n_basis], self.X @ coef[n_basis:]
        low, width = b.min(), max(np.ptp(b), 1e-6) / (NODES - 4)
        nodes = low + width * (np.arange(NODES) - 1.5)
        sums = np.zeros((NODES, a.size + 1))
        np.cumsum(self.link.survival(nodes[:, None] + a).value, axis=1, out=sums[:, 1:])
        place = (b - nodes[0]) / width
        i = place.astype(int)
        p = place - i
        at, row = sums.ravel(), a.size + 1
        j = i * row + self.survived
        losses = (1 - p) * (2 - p) * (3 * (1 + p) * at[j] - p * at[j - row]) / 6
        losses += p * (1 + p) * (3 * (2 - p) * at[j + row] - (1 - p) * at[j + 2 * row]) / 6
        losses[self.events] += self.link.event(a[self.last] + b[self.events]).value
        return losses


def random_walk(target: Target, n_states: int, burn_in: int) -> Iterator[np.ndarray]:
    """Yield states of a random-walk Metropolis chain after its burn-in."""
    rng = np.random.default_rng()
    (block,) = target.blocks.blocks
    losses, law = GridLosses(target.likelihood, block), target.sanitizer

    def energy(coef: np.ndarray) -> float:
        total = law.ceiling * float(np.tanh(losses(coef) / law.ceiling).sum())
        return 0.5 * law.prior_precision * float(coef @ coef) + law.rate * total

    start = np.zeros(target.likelihood.n_params)
    # A hazard of 1 % in each interval.
    start[0] = target.likelihood.link.predictor(0.01) / target.likelihood.basis[0, 0]
    coef, curvature = target.mode(start)
    root, size = np.linalg.cholesky(np.linalg.inv(curvature)), 2.4 / np.sqrt(coef.size)
    value = energy(coef)
    for t in range(burn_in + n_states):
        ahead = coef + size * (root @ rng.standard_normal(coef.size))
        new = energy(ahead)
        if accepted := bool(np.log(rng.random()) < value - new):
            coef, value = ahead, new
        if t < burn_in:
            size *= np.exp((float(accepted) - 0.25) / np.sqrt(t + 1.0))
        else:
            yield coef
