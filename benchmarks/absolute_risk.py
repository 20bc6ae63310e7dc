"""Data sets of SurvSet, for scripts that are not experiments yet."""

from benchmarks.data import survset

__all__ = ["survset"]
