"""Weibull distributions of survival times."""
