r"""How a chain gets from the prior to the law without an optimiser that picks a mode for it.

The state starts as a draw of the prior, which knows no record. It then moves under

.. math:: p_h \propto \pi\, e^{-h \frac\epsilon2 \sum_i C_v(\ell_i) / v}

with h rising from where the records together weigh one nat to 1, in stages; the curvature where
a stage begins steers the moves of that stage, and no more than that. Between modes the state moves
while it still can, at small h, and the law :math:`p_h` differs between neighbours by a factor of at
most :math:`e^{h\epsilon}`. **Nothing is proved** about a finite number of moves
(docs/proofs/posterior_sampling); but where they are too few the state knows less of the records,
where a search for the mode would know more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from skdpsurv.mechanisms.metropolis import Frame, Walk
from skdpsurv.mechanisms.posterior_sampling import Target
from skdpsurv.types import FloatArray

#: Least moves in a stage, and most stages: each costs a Hessian, as much as some six moves.
STAGE_MOVES, MOST_STAGES = 10, 10
#: How fast the step follows the acceptance rate.
ADAPTATION = 0.5


def prior_draw(target: Target, rng: np.random.Generator) -> FloatArray:
    """Return a draw of the prior: a function of public numbers and of the randomness alone."""
    normal = rng.standard_normal(target.likelihood.n_params)
    return np.asarray(normal / math.sqrt(target.sanitizer.prior_precision))


def weights(target: Target, n_stages: int) -> FloatArray:
    """Return h of each stage."""
    law = target.sanitizer
    nats = law.rate * law.ceiling * target.n_records
    return np.geomspace(min(1.0, 1.0 / nats), 1.0, n_stages)


def anneal(
    target: Target, n_moves: int, rng: np.random.Generator
) -> Iterator[tuple[FloatArray, float | None]]:
    """Yield the state and its step at first and after each of n moves.

    Parameters
    ----------
    target : Target
    n_moves : int
        Too few for a stage: the first weight alone.
    rng : numpy.random.Generator
    """
    coef, step = prior_draw(target, rng), None
    yield coef, step
    if not n_moves:
        return
    n_stages = min(MOST_STAGES, max(1, n_moves // STAGE_MOVES))
    law, done = target.sanitizer, 0
    for stage, h in enumerate(weights(target, n_stages), start=1):
        warm = replace(target, sanitizer=replace(law, rate=h * law.rate))
        walk = Walk(warm, Frame.around(warm, coef, warm.curvature(coef)), coef, step)
        until = n_moves * stage // n_stages
        for _ in range(until - done):
            walk.move(rng, ADAPTATION)
            yield walk.coef, walk.step
        done, coef, step = until, walk.coef, walk.step
