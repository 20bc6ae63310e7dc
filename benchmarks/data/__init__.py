"""Data sets with public bounds: what everybody who compares methods is given alike."""

from benchmarks.data.labelled import LABELLED, Labelled, labelled
from benchmarks.data.organisations import ORGANISATIONS, Organisations, organisations
from benchmarks.data.survival import SURVIVAL, Survival, simulated, survival, survset_frame
from benchmarks.data.survset import survset

__all__ = [
    "LABELLED",
    "ORGANISATIONS",
    "SURVIVAL",
    "Labelled",
    "Organisations",
    "Survival",
    "labelled",
    "organisations",
    "simulated",
    "split",
    "survival",
    "survset",
    "survset_frame",
]

import numpy as np


def split(n: int, repetition: int, share: float = 0.7) -> tuple[np.ndarray, np.ndarray]:
    """Return a random split that depends on n and the repetition only."""
    order = np.random.default_rng(repetition).permutation(n)
    cut = int(share * n)
    return order[:cut], order[cut:]
