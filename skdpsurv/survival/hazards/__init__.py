"""Hazard regressions over discrete time."""
