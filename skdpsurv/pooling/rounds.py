"""plan_rounds: what it costs to fit in rounds, by public numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from skdpsurv.checks import integer, is_list, number_in

#: How far one record moves a sum of gradients, in units of the bound on rows.
SENSITIVITY = 2.0
#: A record's information on one of d coefficients is about 1 / (8 d).
RECORDS_PER_INFORMATION = 8.0


def plan_rounds(
    n_records: Sequence[int], epsilon: float, n_features: int, *, most_rounds: int = 5
) -> pd.DataFrame:
    r"""Return how accurate a pooled coefficient is if sites spend epsilon in several rounds.

    A site may spend its epsilon in one fit, or in R rounds, each of which starts from the pooled
    model of the last (``prior=``). A site of n records has about the information
    :math:`h = n / (8 d)` on one of d coefficients, and the noise of a fit is as that on a sum with
    sensitivity S = 2. In R rounds with :math:`\epsilon / R` each, noise is drawn R times and
    averaged, while the people, and so what sampling did to them, stay the same:

    .. math:: v_R = \frac{(d + 1)\,S^2\,R / \epsilon^2 + h}{h^2}.

    Precisions :math:`1 / v_R` of sites add up. As :math:`v_R` grows with R, one round is always
    best where the same people answer in each; further rounds are for new records, or for new
    budgets.

    Parameters
    ----------
    n_records : sequence of int
        Size of each site; public.
    epsilon : float
        That each site spends in all rounds together.
    n_features : int
        d.
    most_rounds : int, default=5

    Returns
    -------
    pandas.DataFrame
        A row for each number of rounds: ``rounds``, ``epsilon_per_round``, and
        ``relative_error``, the expected standard error of an unshrunk pooled coefficient relative
        to that with one round.

    Raises
    ------
    TypeError, ValueError
        If an argument is none.

    Notes
    -----
    A guide for planning, from public numbers: what a fit's own standard error will be depends on
    how rows vary, and on how many have their event.

    Examples
    --------
    >>> from skdpsurv.pooling import plan_rounds
    >>> plan_rounds([2000, 5000], epsilon=1.0, n_features=5, most_rounds=3).round(3)
       rounds  epsilon_per_round  relative_error
    0       1              1.000           1.000
    1       2              0.500           1.094
    2       3              0.333           1.179
    """
    if not is_list(n_records) or len(n_records) == 0:
        raise ValueError("n_records must be a list of the sizes of sites.")
    for size in n_records:
        integer()("n_records", size)
    number_in(1e-9, 1e9)("epsilon", epsilon)
    integer()("n_features", n_features)
    integer(at_most=1000)("most_rounds", most_rounds)
    rounds = np.arange(1, int(most_rounds) + 1)
    h = np.array([float(size) for size in n_records]) / (RECORDS_PER_INFORMATION * n_features)
    noise = (n_features + 1.0) * (SENSITIVITY / float(epsilon)) ** 2 * rounds[:, None]
    precision = (h**2 / (noise + h)).sum(axis=1)
    return pd.DataFrame(
        {
            "rounds": rounds,
            "epsilon_per_round": float(epsilon) / rounds,
            "relative_error": np.sqrt(precision[0] / precision),
        }
    )
