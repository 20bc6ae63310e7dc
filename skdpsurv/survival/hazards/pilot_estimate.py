"""What a perturbed hazard fit knows of its rows and hazards before it: public, or released."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skdpsurv.dp.types import FloatArray
from skdpsurv.inference import ROW_VALUES

#: Information of rows about one coefficient, relative to rows of equal length in all directions
#: (docs/benchmarks/sites).
INFORMATION_PART = 0.25
#: Shares of people where there is one stratum.
WHOLE = np.ones(1)


class PilotEstimate(NamedTuple):
    """Estimates known before the perturbed fit: centre, mean of rows, clipping norm, row scale.

    Centred rows are divided by ``scales``, if there are any, and clipped to ``radius``; ``spread``
    bounds their root mean square length.
    """

    center: FloatArray
    mean: FloatArray
    radius: float
    spread: float
    scales: FloatArray | None = None
    #: Number of events as released, where people enter late; None: by the centre's hazard.
    events: float | None = None
    #: Shares of people by stratum, as released, or equal.
    shares: FloatArray = WHOLE

    @property
    def unit(self) -> FloatArray | float:
        """One unit of the rows of the fit, on the scale of X."""
        return self.radius if self.scales is None else self.radius * self.scales

    def information(self, levels: Any, n_records: int) -> Any:
        """Return a guess of the rows' information on a coefficient, by their numbers of events.

        ``levels`` are cumulative hazards by the horizon, in proportion to which events are shared.
        """
        if (events := self.events) is None:
            events = n_records * -np.expm1(-levels.sum())
        own = np.maximum(events * (levels / levels.sum()), 1.0)
        return INFORMATION_PART * own * ((self.spread / self.radius) ** 2 / self.mean.size)

    def values(self) -> dict[str, Any]:
        """Return how rows are read, as a release keeps it."""
        scales = np.ones_like(self.mean) if self.scales is None else self.scales
        return dict(zip(ROW_VALUES, (self.mean, scales, self.radius), strict=True))
