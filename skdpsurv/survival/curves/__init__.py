"""Curves of survival, hazards and incidences, from tables of exits."""
