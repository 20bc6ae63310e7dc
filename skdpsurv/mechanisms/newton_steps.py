r"""Newton's method for a convex function with few Hessians.

.. math:: x' = x - t H^{-1} \nabla F(x), \qquad
    H' = H + \frac{yy^\top}{y^\top s} - \frac{Hss^\top H}{s^\top Hs}

H is the Hessian at x. Once steps make gradients much smaller, gradients alone are computed, and H
is updated with the last move s and the change y of the gradient (Broyden, Fletcher, Goldfarb and
Shanno; Nocedal and Wright, "Numerical Optimization", 2006, section 6.1): with p columns a Hessian
takes p times the work of a gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy import linalg

from skdpsurv.dp.types import FloatArray
from skdpsurv.likelihoods.loss import Derivatives

#: Newton steps before a caller does something else. Five to ten are usual.
NEWTON_STEPS = 60
#: Gradients alone are computed after a step that left this part of the last one, or of fewer
#: records than so many, where a Hessian takes hardly longer, its square.
FAST, FEW_RECORDS = 0.1, 3600
#: With more columns, where a Hessian takes long, slower progress is enough for gradients alone.
WIDE = 32
#: A wide problem's Hessian is computed within a standard error of the optimum, if gradients alone
#: would take more steps than so many, and one for so many columns.
LEAST_LEFT, COLUMNS_OF_A_STEP = 4.0, 20.0
#: A step is made longer where its end has this part of the first slope left; and the longest step.
STEEP, LONGEST = 0.3, 16.0


class Smooth(Protocol):
    """A smooth convex function: a sum over records."""

    @property
    def n_records(self) -> int:
        """Number of records."""

    def derivatives(self, shift: FloatArray, order: int = 2) -> Derivatives:
        """Return gradient and, at order 2, Hessian."""


@dataclass(frozen=True)
class Goal:
    r"""When to stop: a last step may be taken without looking at the gradient after it.

    Parameters
    ----------
    tolerance : float
        Norm of a gradient that is small enough.
    decrement : float
        The same for :math:`\nabla F^\top H^{-1} \nabla F`, before a last step.
    error : float
        Standard errors that a last step may leave, judged by the step before it.
    """

    tolerance: float
    decrement: float = 0.0
    error: float = 0.0


class Found(NamedTuple):
    """The last point, whether it reached the goal, and a Hessian of about there."""

    shift: FloatArray
    reached: bool
    hessian: FloatArray


class Step(NamedTuple):
    """A point, its part of the whole Newton step, and derivatives there."""

    shift: FloatArray
    length: float
    derivatives: Derivatives


def newton(
    function: Smooth,
    start: FloatArray,
    goal: Goal,
    hessian: FloatArray | None = None,
    box: float = math.inf,
) -> Found:
    """Minimise from a start, with the Hessian of a point nearby if there is one."""
    shift = start
    fast = FAST if function.n_records >= FEW_RECORDS else FAST**2
    fast **= min(1.0, WIDE / shift.size)
    gradient, new = function.derivatives(shift, 2 if hessian is None else 1)
    # With a Hessian of about there, a wide problem tries gradients first.
    ratio = 1.0 if hessian is None or shift.size <= WIDE else fast
    hessian = new if hessian is None else hessian
    assert hessian is not None
    norm, stretched = float(np.linalg.norm(gradient)), False
    for _ in range(NEWTON_STEPS):
        if norm <= goal.tolerance:
            return Found(shift, True, hessian)
        direction = _direction(hessian, gradient)
        slope = float(direction @ gradient)
        if not slope < 0.0:
            break
        # What is left of a long step says nothing about the next one.
        error = math.inf if stretched else ratio * math.sqrt(-slope)
        if -slope <= goal.decrement or error <= goal.error:
            return Found(shift + direction, True, hessian)
        order = 1 if ratio <= fast else 2
        if order == 1 and -slope < 1.0 and shift.size > WIDE:
            left = math.log(goal.tolerance / norm) / math.log(ratio)
            order += left > LEAST_LEFT + shift.size / COLUMNS_OF_A_STEP
        step = _line_search(function, shift, direction, slope, order)
        after, new = step.derivatives
        hessian = _secant(hessian, step.shift - shift, after - gradient) if new is None else new
        if np.max(np.abs(step.shift)) > box:
            return Found(_inside_box(box, shift, step.shift), False, hessian)
        shift, gradient, before = step.shift, after, norm
        stretched |= step.length > 1.0
        norm = float(np.linalg.norm(gradient))
        ratio = norm / before
    return Found(shift, norm <= goal.tolerance, hessian)


def _inside_box(box: float, inside: FloatArray, beyond: FloatArray) -> FloatArray:
    """Return the last point of a step that is in the box.

    Cut one by one, coefficients that go to infinity together would no longer cancel each other.
    """
    move = np.abs(beyond - inside)
    out = np.abs(beyond) > box
    length = float(np.min((box - np.abs(inside[out])) / move[out]))
    return np.clip(inside + max(length, 0.0) * (beyond - inside), -box, box)


def _direction(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
    _, solved, failed = linalg.lapack.dposv(hessian, gradient)
    if failed:  # rounding made a tiny ridge vanish beside a large Hessian
        solved = np.linalg.lstsq(hessian, gradient, rcond=1e-14)[0]
    return np.asarray(-solved)


def _secant(hessian: FloatArray, move: FloatArray, change: FloatArray) -> FloatArray:
    """Return the updated H, which maps the move to the change."""
    image = hessian @ move
    old, new = float(move @ image), float(move @ change)
    if not new > 0.1 * old > 0.0:  # the change is rounding
        return hessian
    return np.asarray(hessian + np.outer(change, change) / new - np.outer(image, image) / old)


def _line_search(
    function: Smooth, shift: FloatArray, direction: FloatArray, slope: float, order: int
) -> Step:
    """Search by the derivative along a descent direction: F is convex, so no values are needed.

    Steps are halved where it rises too much. Within a standard error of the optimum they are made
    longer where it falls too little, as along a coefficient whose optimum is at infinity: there,
    the slope falls e-fold in each Newton step.
    """
    low, high, length = 0.0, math.inf, 1.0
    steep = STEEP * slope if -slope < 1.0 else -math.inf
    for _ in range(40):
        point = shift + length * direction
        found = function.derivatives(point, order)
        along = float(direction @ found.gradient)
        if along > -0.5 * slope:
            high = length
        elif along < steep and length < min(high, LONGEST):
            low, steep, order = length, 0.0, 1
        else:
            break
        length = 0.5 * (low + high) if high < math.inf else 4.0 * length
    return Step(point, length, function.derivatives(point) if low > 0.0 else found)
