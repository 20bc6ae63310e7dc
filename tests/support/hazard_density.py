"""The exact density ratio of objective perturbation of the hazard model, in two dimensions.

The minimiser f determines the noise, b = -(grad L(f) + kappa (f - c)), so its density is
nu(b) |det Hessian of F at f|. No sampling: the ratio for two neighbours is computed at every point
of a grid, and must stay below e^(epsilon_b + J). What the solver adds is not in it.
"""

import numpy as np

from skdpsurv.data.blocks import InMemory
from skdpsurv.data.histories import Histories
from skdpsurv.likelihoods.hazard import DiscreteHazard, hazard_block
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.mechanisms.newton import Objective
from skdpsurv.mechanisms.objective import calibrate

Q = 5
CASES = [("logit", None), *((name, cap) for name in sorted(LINKS) for cap in (0.5, 1.0, 2.0))]
#: (x, interval, event) of the record that differs: the extremes of the public domain.
EXTREMES = [(x, s, d) for x in (-1.0, 1.0) for s, d in ((1, True), (Q, True), (Q, False))]
#: The same of people who enter late: before the last interval, or where they are never at risk.
LATE = [(x, Q, d, e) for x in (-1.0, 1.0) for d in (True, False) for e in (Q - 1, 1)]
LATE += [(1.0, 2, True, 2), (-1.0, 1, True, 0), (1.0, Q, False, 0)]
#: The other records: none, or some that pull either way.
CROWDS = [[], [(0.3, 2, True), (-0.8, Q, False), (0.0, 1, False)]]


def make_likelihood(name, cap):
    link = LINKS[name].bounded_at(0.1)
    return DiscreteHazard(np.full((Q, 1), 0.4), 1, 1.0, link, cap)


def density_parts(likelihood, records, calibration, points):
    """Return ||b|| and the log determinant of the Hessian at every point."""
    x, *seen = (np.array(column) for column in zip(*records, strict=True))
    block = hazard_block(x[:, None], Histories(*seen))
    center = np.array([-2.0, 0.0])
    objective = Objective(likelihood, InMemory([block]), calibration.kappa, center, np.zeros(2))
    norms, determinants = np.empty(len(points)), np.empty(len(points))
    for i, point in enumerate(points):
        gradient, hessian = objective.derivatives(point - center)
        norms[i] = np.linalg.norm(gradient)
        determinants[i] = np.linalg.slogdet(hessian)[1]
    return norms, determinants


def grid(kappa, noise_scale, likelihood):
    """Points around where losses bend, and as far away as the noise can push."""
    near = np.array([(10 * a, b) for a in np.linspace(-3, 3, 7) for b in np.linspace(-15, 15, 7)])
    reach = 40.0 * max(noise_scale, likelihood.constants.gradient_sensitivity) / kappa
    angles = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    return np.vstack([near, *(share * reach * circle for share in (0.02, 0.1, 0.5))])


def largest_log_ratio(name, cap, epsilon, calibration=None, constants=None, late=False):
    """Return the largest log density ratio found, and epsilon_b + J."""
    likelihood = make_likelihood(name, cap)
    calibration = calibration or calibrate(
        constants or likelihood.constants, epsilon, 4, 2, curvature_share=0.25
    )
    points = grid(calibration.kappa, calibration.noise_scale, likelihood)
    largest = -np.inf
    for crowd in CROWDS:
        if late:
            crowd = [(*one, entry) for one, entry in zip(crowd, (1, 3, 0), strict=False)]
        parts = [
            density_parts(likelihood, [*crowd, extreme], calibration, points)
            for extreme in (LATE if late else EXTREMES)
        ]
        logs = np.array([-norm / calibration.noise_scale + det for norm, det in parts])
        largest = max(largest, (logs.max(axis=0) - logs.min(axis=0)).max())
    return largest, calibration.epsilon_noise + calibration.epsilon_curvature
