"""Curves of survival, hazards and incidences, from event-count tables."""
