"""Perturbation of any likelihood; knows no estimator."""
