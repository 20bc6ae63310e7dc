"""Result of a test, as in lifelines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class ComparisonResult:
    """Result of a test, as in lifelines.

    Parameters
    ----------
    test_name : str
    test_statistic : float
        Approximately chi-squared under the null hypothesis.
    p_value : float
    degrees_of_freedom : int, default=1
        Number of groups less one.
    """

    test_name: str
    test_statistic: float
    p_value: float
    degrees_of_freedom: int = 1

    @property
    def summary(self) -> pd.DataFrame:
        """Statistic, p-value and -log2(p) as a table."""
        with np.errstate(divide="ignore"):
            surprise = float(-np.log2(self.p_value))
        row = {"test_statistic": self.test_statistic, "p": self.p_value, "-log2(p)": surprise}
        return pd.DataFrame([row])

    def print_summary(self, decimals: int = 2) -> None:
        """Print the name of the test and the numbers.

        Parameters
        ----------
        decimals : int, default=2
        """
        print(self.test_name)
        print(self.summary.to_string(index=False, float_format=lambda x: f"{x:.{decimals}f}"))
