"""Step functions, as survival regressions predict them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.dp.types import FloatArray


@dataclass(eq=False)
class StepFunction:
    r"""A function that is constant between its steps, with the interface of scikit-survival's.

    At t it is :math:`a y_i + b` for the last :math:`x_i \le t`, and :math:`a y_0 + b` before the
    first.

    Parameters
    ----------
    x : ndarray of shape (n_steps,)
        Increasing positions of the steps.
    y : ndarray of shape (n_steps,)
        Values from each step on.
    a, b : float
        Factor and offset of the values.
    domain : tuple of float or None
        Ends of the domain. None: the first or the last of ``x``.

    Examples
    --------
    >>> import numpy as np
    >>> survival = StepFunction(np.array([0.0, 2.0, 5.0]), np.array([1.0, 0.9, 0.6]))
    >>> survival([0.0, 2.5, 5.0])
    array([1. , 0.9, 0.6])
    """

    x: FloatArray
    y: FloatArray
    a: float = field(default=1.0, kw_only=True)
    b: float = field(default=0.0, kw_only=True)
    domain: tuple[Any, Any] = field(default=(0.0, None), kw_only=True)

    def __post_init__(self) -> None:
        low, high = self.domain
        low = self.x[0] if low is None else low
        high = self.x[-1] if high is None else high
        self.domain = float(low), float(high)

    def __call__(self, x: ArrayLike) -> Any:
        """Return values at x, which must be within ``domain``; one value for one number."""
        at = np.atleast_1d(x)
        low, high = self.domain
        if not np.isfinite(at).all():
            raise ValueError("x must be finite.")
        if not ((low <= at) & (at <= high)).all():
            raise ValueError(f"x must be within [{low}; {high}].")
        step = np.searchsorted(self.x, at, side="right") - 1
        values = self.a * self.y[np.maximum(step, 0)] + self.b
        return values[0] if values.shape[0] == 1 else values

    def __eq__(self, other: object) -> bool:
        names = ("x", "y", "a", "b", "domain")
        same = (np.array_equal(getattr(self, n), getattr(other, n)) for n in names)
        return isinstance(other, StepFunction) and all(same)

    __hash__ = None  # type: ignore[assignment]
