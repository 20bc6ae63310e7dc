"""Estimators, and what a guarantee takes to be public, in a few words each."""

from __future__ import annotations

__all__ = ["ESTIMATORS", "PUBLIC"]

#: What each estimator fits.
ESTIMATORS = {
    "DPDiscreteTimeSurvival": "a regression of survival times: how the chance of the event, from "
    "one interval of time to the next, depends on columns",
    "PublishedDiscreteTimeSurvival": "a regression of survival times, as a paper has it: how the "
    "chance of the event, from one interval of time to the next, depends on columns",
    "DPWeibullFitter": "a Weibull distribution of survival times, with a shape and a scale",
    "PublishedWeibullFitter": "a Weibull distribution of survival times, by a ladder for its shape",
    "LaplaceWeibullFitter": "a Weibull distribution of survival times, by noise on its estimates",
    "SampleAggregateWeibullFitter": "a Weibull distribution of survival times, by noise on "
    "means of estimates of blocks of records",
    "DPKaplanMeierFitter": "survival curves (Kaplan-Meier), from a table of exits by band of time",
    "DPAalenJohansenFitter": "cumulative incidences of competing events (Aalen-Johansen), from a "
    "table of exits by band of time",
    "DPLogisticRegression": "a logistic regression: how the odds of a class depend on columns",
    "PublishedLogisticRegression": "a logistic regression, as papers have it: how the odds of a "
    "class depend on columns",
    "PrivateStackingClassifier": "a classifier of several logistic models, each on a part of the "
    "columns or of the records, and a rule that puts their answers together",
    "PublishedStackingClassifier": "a classifier of several logistic models, as a paper has it, "
    "each on a part of the columns or of the records, and a rule that puts their answers together",
    "HybridMEstimator": "weights of records that are public, so that they resemble the private "
    "ones; a model is fitted to the public records with these weights",
    "PerturbedHistogramMEstimator": "noisy counts in the cells of a grid; a model is fitted to the "
    "cells, weighed by their counts",
}

#: Names of public inputs. Those of the second level of a stack begin with "high_level_".
PUBLIC = {
    "alpha": "strength of the penalty on coefficients",
    "breakpoints": "where bands of time end",
    "calibration": "which calibration of the noise was used",
    "candidate_sizes": "sizes of the sets of public records that were compared",
    "causes": "events that there could be",
    "censored": "what a record holds where no event was seen",
    "classes": "classes that there could be",
    "combiner": "how the answers of several models are put together",
    "data_norm": "bound on the length of a row of features",
    "effects": "whether pooled releases are taken to have one truth, or truths around a mean",
    "epsilon_center": "part of epsilon for a first look at the records",
    "epsilon_counts": "parts of epsilon for counts",
    "epsilon_fit": "part of epsilon for the coefficients",
    "epsilon_inference": "part of epsilon for standard errors",
    "epsilon_recalibration": "part of epsilon for the table that predictions are recalibrated by",
    "epsilon_refit": "part of epsilon for the last fit, with the chosen settings",
    "epsilon_residuals": "parts of epsilon for moments of residuals",
    "epsilon_run": "epsilon of each run of the search",
    "rho_refit": "price of the last fit, with the chosen settings, in zCDP",
    "rho_run": "price of each run of the search, in zCDP",
    "estimator": "the model that is fitted to public records",
    "eta": "shape of the law of the number of runs",
    "event_of_interest": "the event that curves are about",
    "expected_runs": "how many runs there are on average",
    "feature_groups": "columns of each model, by their numbers",
    "fit_intercept": "whether there is an intercept",
    "gradient_sensitivity": "how far the values of one record can move what the fit is solved for",
    "groups": "groups that there could be",
    "hessian_rank": "bound on the rank of the curvature that one record adds",
    "hessian_trace": "bound on the curvature that one record adds",
    "high_level_kappa": "strength of the penalty that the proof needs, of the model of votes",
    "high_level_max_residual": "cap on the pull of one record, of the model of votes",
    "high_level_n_steps": "steps of the descent, of the model of votes",
    "high_level_noise_scale": "scale of the noise, of the model of votes",
    "hypothesis": "what was promised of the model from elsewhere that the fit starts from",
    "intercept_scaling": "size of the constant column that makes the intercept",
    "kappa": "strength of the penalty that the proof needs",
    "largest_count": "bound on the outcome",
    "left_censored": "whether very early events count as before a public time",
    "link": "how the hazard depends on the sum of columns times coefficients",
    "loss_ceiling": "cap on the loss of one record",
    "max_cumulative_hazard": "cap on the hazard that one record can count with",
    "max_residual": "cap on the pull of one record",
    "max_shape": "largest shape",
    "max_time": "end of follow-up; later times count as censored there",
    "method": "the mechanism that was asked for",
    "mu_center": "price of a first look at the records, in mu of Gaussian noise",
    "mu_fit": "price of the coefficients, in mu of Gaussian noise",
    "mu_inference": "price of standard errors, in mu of Gaussian noise",
    "mu_residuals": "prices of moments of residuals, in mu of Gaussian noise",
    "mu_recalibration": "price of the table that predictions are recalibrated by, in mu of "
    "Gaussian noise",
    "n_candidates": "how many settings were compared",
    "n_cells": "how many cells records were counted in",
    "n_high_level": "how many records the model of votes was fitted to",
    "n_intervals": "how many intervals of time",
    "n_knots": "how many knots the baseline hazard has",
    "n_low_level": "how many records the models below were fitted to",
    "n_private": "how many records are protected",
    "n_public": "how many records are public, and not protected",
    "n_records": "how many records, or people where people are protected",
    "n_rungs": "where the ladder of shapes ends",
    "n_scored": "how many records candidates were compared on",
    "n_steps": "steps of the chain, or of the descent",
    "noise_scale": "scale of the noise",
    "omega": "how far before the end of follow-up event times are told apart, in powers of e",
    "partition": "whether models have parts of the columns or of the records",
    "pooled": "what was promised by each of the releases that were pooled, and by which file",
    "prior_event_rate": "share of people with an event, as guessed beforehand",
    "prior_precision": "strength of the prior",
    "prior": "what was promised of the model from elsewhere that the fit starts from",
    "public_slope": "factor of log odds that follows from public numbers",
    "rate": "weight of the records in the law that is sampled from",
    "sampler": "the Markov chain",
    "shape_fraction": "share of epsilon for the shape",
    "step_size": "length of one step of the chain",
    "strategy": "how the search was done",
    "temperature": "spread of the law that the chain tends to, beside that of the posterior",
    "weights": "weight of each model in the vote",
}
