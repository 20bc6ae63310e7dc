r"""What a table of exits leaves open: laws of hazards, by sampling and by noise.

Masses of hazard that were not smoothed, :math:`\hat a`, have errors that are close to normal, of a
known covariance C: each is a sum over many cells, whatever the law of one cell's noise. A
cumulative hazard is a sum of masses, and its interval
:math:`\hat A(t) \pm (z\,\sqrt{w' C w} + u)`, where u allows for what is not known of when people
were censored in bands that many leave; that of survival is its image, within 0 and 1.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg, special

from skdpsurv.survival.exit_fit import ExitFit
from skdpsurv.types import FloatArray


class HazardLaw:
    """Hazards of one group, as far as they are known.

    Parameters
    ----------
    fit : ExitFit
    ends : ndarray of shape (n_bands,)
    """

    def __init__(self, fit: ExitFit, ends: FloatArray) -> None:
        self.fit = fit
        self.ends = ends

    def elapsed(self, times: FloatArray) -> FloatArray:
        """Return the part of each band that is before each time, shape (n_times, n_bands)."""
        starts = np.append(0.0, self.ends[:-1])
        parts = (times[:, None] - starts) / (self.ends - starts)
        return np.clip(parts, 0.0, 1.0)

    def between(self, times: FloatArray, at_ends: FloatArray) -> FloatArray:
        """Return cumulated hazards at any times, of those at the ends of bands: in proportion.

        Parameters
        ----------
        times : ndarray of shape (n_times,)
        at_ends : ndarray of shape (..., n_bands)

        Returns
        -------
        ndarray of shape (..., n_times)
        """
        nothing = np.zeros((*at_ends.shape[:-1], 1))
        cumulated = np.concatenate([nothing, at_ends], axis=-1)
        band = np.clip(np.searchsorted(self.ends, times), 0, self.ends.size - 1)
        starts = np.append(0.0, self.ends)[band]
        part = np.clip((times - starts) / (self.ends[band] - starts), 0.0, 1.0)
        # As a sum of both ends: exactly either of them where it is that time.
        return cumulated[..., band] * (1.0 - part) + cumulated[..., band + 1] * part

    def survival_interval(
        self, times: FloatArray, level: float, n_causes: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return pointwise intervals of survival from the first causes."""
        q = self.ends.size
        elapsed = self.elapsed(times)
        causes = np.tile(elapsed, n_causes)
        covariance = self.fit.covariance[: n_causes * q, : n_causes * q]
        hazard = elapsed @ self.fit.free[:n_causes].sum(axis=0)
        error = np.sqrt(np.einsum("ti,ij,tj->t", causes, covariance, causes, optimize=True))
        half = special.ndtri((1.0 + level) / 2.0) * error + elapsed @ self.fit.unplaced
        return np.exp(-np.maximum(hazard + half, 0.0)), np.exp(-np.maximum(hazard - half, 0.0))

    def draws(self, n_draws: int, generator: np.random.Generator) -> FloatArray:
        """Return masses that may be the true ones, of shape (n_draws, n_ways, n_bands).

        Some are negative: they are those of the law above, which has no bias.
        """
        values, vectors = linalg.eigh(self.fit.covariance)
        normal = generator.standard_normal((n_draws, values.size))
        away = (normal * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        return self.fit.free + away.reshape(n_draws, *self.fit.free.shape)
