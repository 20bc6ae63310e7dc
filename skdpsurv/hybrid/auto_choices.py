r"""What to do by default, from public numbers: how many cells, which weights, how many rounds.

Found on the simulations of Wang et al. (2018, section 5.1) and variants of them (2 to 100 columns,
500 to 20,000 records; logistic, linear, Huber, median and Poisson regression), and on heart
disease, GUSTO and infarction data in both roles; docs/benchmarks/hybrid says how. A rule may know
the numbers of records and columns, epsilon and everything about the public records.
"""

from __future__ import annotations

import math

from skdpsurv.mechanisms.sums import HISTOGRAM
from skdpsurv.privacy.concentrated import Price, as_laplace

__all__ = [
    "cell_number",
    "follows_cells",
    "keeps_signs",
    "rounds_of_gaussian_residuals",
    "rounds_of_residuals",
]

#: Cells tell where records are in a few dimensions only.
MOST_COLUMNS_FOR_CELLS = 4
LEAST_CELLS, MOST_CELLS = 10, 1000
#: Share of the records' number that the noise of signed weights may reach.
SIGNED_NOISE = 0.1


def cell_number(n_private: int, n_public: int, n_columns: int, epsilon: float) -> int:
    """Return m: more where there are more records to count, at least 5 public ones a cell."""
    signal = n_private * min(epsilon, 1e6)
    wanted = math.ceil(max(n_columns, 1) * math.sqrt(signal))
    return max(1, min(max(wanted, LEAST_CELLS), n_public // 5, MOST_CELLS), min(n_public, 2))


def keeps_signs(n_cells: int, n_private: int, rarest: float, epsilon: float) -> bool:
    """Return whether noise is small enough for negative weights to do no harm.

    Parameters
    ----------
    n_cells, n_private : int
    rarest : float
        Share of the rarest public label; 1 for a numeric outcome.
    epsilon : float
    """
    noise = math.sqrt(n_cells) * HISTOGRAM.deviation(epsilon)
    return noise <= SIGNED_NOISE * n_private * rarest


def noise_of_moments(n_private: int, n_columns: int, bound: float, price: Price) -> float:
    """Return the standard deviation of one moment's noise."""
    return math.sqrt(n_columns + 2) * 2.0 * bound / (as_laplace(price, n_columns + 1) * n_private)


def follows_cells(noise: float) -> bool:
    """Return whether residuals of the fit on cells are worth half of epsilon."""
    return noise <= 0.1


def rounds_of_residuals(noise: float) -> int:
    """Return how many times to look at residuals, with equal parts of epsilon.

    Parameters
    ----------
    noise : float
        Deviation of a moment's noise, with half of epsilon.
    """
    if noise <= 0.01:
        return 3
    return 2 if noise <= 0.05 else 1


def rounds_of_gaussian_residuals(noise: float) -> int:
    """Return the same for Gaussian noise, of which many rounds have little more each than few.

    Parameters
    ----------
    noise : float
        Deviation of a moment's noise, of one of two rounds.
    """
    rounds = ((0.01, 5), (0.03, 4), (0.06, 3), (0.1, 2))
    return next((number for most, number in rounds if noise <= most), 1)
