"""Convex per-record losses with the constants that a privacy proof needs."""
