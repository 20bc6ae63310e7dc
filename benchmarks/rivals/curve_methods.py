"""Survival curves of other papers and programs, written anew from what they say, and set well."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from sklearn.isotonic import IsotonicRegression

#: Gondara and Wang's bands, and Veeraragavan and Nygård's grids and weights: the best of them is
#: chosen in hindsight, which no user could do. With many records fine ones are best.
N_BANDS = (4, 8, 16, 32, 64, 128, 256, 512)
GRIDS = (5, 10, 20, 40, 80, 160)
WEIGHTS = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
TV_STEPS = 800
#: vantage6's documentation adds Gaussian noise at this ratio of the times' variance to the noise's.
SIGNAL_TO_NOISE = 5.0

Curve = Callable[[np.ndarray], np.ndarray]


def gondara_wang(
    time: np.ndarray, event: np.ndarray, ends: np.ndarray, epsilon: float, rng: np.random.Generator
) -> np.ndarray:
    """Return survival at the ends of bands, from noisy numbers of events and of censored."""
    band = np.minimum(np.searchsorted(ends, time), ends.size - 1)
    counts = [np.bincount(band[chosen], minlength=ends.size) for chosen in (event, ~event)]
    events, censored = np.array(counts) + rng.laplace(0.0, 2.0 / epsilon, (2, ends.size))
    entering = time.size + rng.laplace(0.0, 2.0 / epsilon)
    at_risk = entering - np.append(0.0, np.cumsum(events + censored)[:-1])
    there = at_risk > 0.0
    share = np.divide(events, at_risk, out=np.zeros(ends.size), where=there)
    with np.errstate(over="ignore"):
        return falling(np.minimum(np.cumprod(np.maximum(1.0 - share, 0.0)), 1e6))


def veeraragavan_nygard(
    exact: np.ndarray, n_records: int, epsilon: float, rng: np.random.Generator
) -> Iterator[tuple[float, np.ndarray]]:
    """Yield weights and survival at the times of a grid, from noisy Kaplan-Meier estimates."""
    scale = exact.size / (n_records * epsilon)
    noisy = exact + rng.laplace(0.0, scale, exact.size)
    # The weight is by the noise's standard deviation.
    weights = np.array(WEIGHTS)
    smooth = total_variation(np.tile(noisy, (weights.size, 1)), weights * np.sqrt(2.0) * scale)
    for weight, values in zip(WEIGHTS, smooth, strict=True):
        yield weight, falling(values)


def noisy_times(time: np.ndarray, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Return the times from which vantage6 makes its table: with Poisson or Gaussian noise.

    Neither is differentially private: events are counted exactly, a time of 0 stays 0, and the
    Gaussian noise has the variance of the records' own times.
    """
    if kind == "Poisson":
        return rng.poisson(time).astype(float)
    sd = np.sqrt(np.var(time) / SIGNAL_TO_NOISE)
    return np.maximum(time + np.round(rng.normal(0.0, sd, time.size)), 0.0)


def total_variation(noisy: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return rows x with the least sum of squares (x - noisy)^2 / 2 + weight * sum |x' - x|.

    By the dual, whose variables are between -weight and weight: accelerated projected gradients.
    """
    bound = weights[:, None]

    def primal(dual: np.ndarray) -> np.ndarray:
        return noisy - np.diff(dual, axis=-1, prepend=0.0, append=0.0)

    dual = ahead = np.zeros((noisy.shape[0], noisy.shape[1] - 1))
    speed = 1.0
    for _ in range(TV_STEPS):
        # Steps are 1 over the largest eigenvalue of second differences, 4.
        new = np.clip(ahead - 0.25 * np.diff(primal(ahead), axis=-1), -bound, bound)
        faster = (1.0 + np.sqrt(1.0 + 4.0 * speed**2)) / 2.0
        ahead = new + (speed - 1.0) / faster * (new - dual)
        dual, speed = new, faster
    return primal(dual)


def falling(values: np.ndarray) -> np.ndarray:
    """Return the nearest curve that does not rise, between 0 and 1."""
    fit = IsotonicRegression(increasing=False, y_min=0.0, y_max=1.0)
    return np.asarray(fit.fit_transform(np.arange(values.size), np.clip(values, 0.0, 1.0)))


def step(times: np.ndarray, ends: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return a curve that falls at the ends of bands."""
    return np.append(1.0, values)[np.searchsorted(ends, times, side="right")]


def log_linear(times: np.ndarray, ends: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return a curve of constant hazards within bands."""
    logs = np.log(np.maximum(values, 1e-9))
    return np.exp(np.interp(times, np.append(0.0, ends), np.append(0.0, logs)))


def kaplan_meier(time: np.ndarray, event: np.ndarray) -> Curve:
    """Return the estimate without privacy, as a function of time."""
    from sksurv.nonparametric import kaplan_meier_estimator

    at, survival = kaplan_meier_estimator(event, time)
    return lambda times: step(times, at, survival)
