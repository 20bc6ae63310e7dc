"""What makes a result private: randomness, noise, domains, guarantees and the ledger.

Nothing here knows a model; every other part of the package may import from here.
"""

from __future__ import annotations

from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.budget import BudgetExceededError, compose
from skdpsurv.dp.checks import clip_rows, clip_times, row_weights
from skdpsurv.dp.exact_vectors import spherical_gaussian, spherical_laplace
from skdpsurv.dp.guarantee import (
    FrozenMapping,
    PrivacyGuarantee,
    PrivacyLeakWarning,
    weakest_status,
)
from skdpsurv.dp.input_errors import (
    InputValueError,
    call_without_data,
    check_finite,
    check_unclipped,
    refuse_masked,
    suppressed_float_errors,
    suppressed_warnings,
    warnings_as_errors,
)
from skdpsurv.dp.ledger import Receipt
from skdpsurv.dp.noise import (
    RandomSource,
    lattice_gaussian,
    lattice_laplace,
    lattice_step,
    lattice_sum,
    random_source,
    round_to_lattice,
    to_lattice,
    uniform_below,
)
from skdpsurv.dp.selection import exponential_mechanism, permute_and_flip

__all__ = [
    "BudgetExceededError",
    "FrozenMapping",
    "InputValueError",
    "PrivacyAccountant",
    "PrivacyGuarantee",
    "PrivacyLeakWarning",
    "RandomSource",
    "Receipt",
    "call_without_data",
    "check_finite",
    "check_unclipped",
    "clip_rows",
    "clip_times",
    "compose",
    "exponential_mechanism",
    "lattice_gaussian",
    "lattice_laplace",
    "lattice_step",
    "lattice_sum",
    "permute_and_flip",
    "random_source",
    "refuse_masked",
    "round_to_lattice",
    "row_weights",
    "spherical_gaussian",
    "spherical_laplace",
    "suppressed_float_errors",
    "suppressed_warnings",
    "to_lattice",
    "uniform_below",
    "warnings_as_errors",
    "weakest_status",
]
