"""What a ScalarLoss promises, compared on a grid of predictors."""

import numpy as np

#: Relative difference between a bound and the largest number on the grid, as the grid is not fine.
ATTAINED = 1e-3
#: Kinks that a slope may have, for each outcome.
KINKS = 4


def check_scalar_loss(loss, outcomes, predictors):
    """Check value, slope, curvature and bounds of a loss.

    Parameters
    ----------
    loss : ScalarLoss
    outcomes : sequence of float
        All that there are, or the extreme ones and some between.
    predictors : ndarray
        Evenly spaced, and wide enough for the slope and the curvature to come near their bounds.
    """
    steep = bent = 0.0
    h = predictors[1] - predictors[0]
    c, most = loss.largest_slope, loss.largest_curvature
    for outcome in outcomes:
        y = np.full(predictors.size, float(outcome))
        value = loss.value(predictors, y)
        slope, curvature = loss.derivatives(predictors, y, 2)
        alone, nothing = loss.derivatives(predictors, y, 1)
        np.testing.assert_array_equal(alone, slope)
        assert nothing is None

        # The bounds, up to rounding, and slopes that neither fall nor rise faster than they may.
        slack = 1e-12 * (c + most)
        assert np.abs(slope).max() <= c
        assert curvature.min() >= 0.0
        assert curvature.max() <= most + slack
        rise = np.diff(slope)
        assert rise.min() >= -slack
        assert rise.max() <= most * h + slack

        # Each is the integral of the next, by the trapezoid rule: no jumps, no wrong factors. Its
        # error is h^2 most / 4 at most for the value, and of order h^3 for the slope, but for
        # steps with a kink.
        change = np.diff(value) - 0.5 * h * (slope[1:] + slope[:-1])
        rounding = 1e-14 * (1.0 + np.abs(value).max())
        assert np.abs(change).max() <= 0.25 * most * h**2 + rounding
        bend = np.abs(rise - 0.5 * h * (curvature[1:] + curvature[:-1]))
        off = bend > h**2 * most + slack
        assert np.count_nonzero(off) <= KINKS
        steep, bent = max(steep, np.abs(slope).max()), max(bent, curvature.max())
    # A bound that is not attained costs noise.
    assert steep >= (1.0 - ATTAINED) * c
    assert bent >= (1.0 - ATTAINED) * most
