"""Numbers of perturbed hazard fits that were tuned: where, is said of each."""

from __future__ import annotations

#: Size of the baseline's columns beside covariates in a unit ball. The first look has found the
#: baseline, so little freedom is needed, and small columns keep the sensitivity near that of the
#: covariates alone. Found on simulated data and flchain (docs/benchmarks/accuracy).
LEVEL_SIZE, SHAPE_SIZE = 0.4, 0.15
#: Part of ``center_share`` for the life table; the covariates' mean has the rest.
TABLE_PART = 1.0 / 3.0
#: Part of the price of standard errors for the table of exits.
EXITS_PART = 0.15
#: Linear predictors of the baseline that a fit starts from are no larger: hazards of 1e-11 and
#: less in an interval are taken for that.
LARGEST_PREDICTOR = 25.0
#: Below this n * epsilon a first look, or a table of risks, sees nothing but its own noise, and is
#: skipped.
FIRST_LOOK_RECORDS = 200.0
#: max_cumulative_hazard="auto" rises to this many times the level of the released life table, as
#: far as the second number: where most people have an event a low cap is biased. It does so in
#: full from a signal of the third number, for a higher cap means more noise in each parameter.
CAP_LEVEL, HIGHEST_RISE, RISE_SIGNAL = 0.8, 3.0, 1.0
#: Centred rows are clipped at this many times their root mean square length, as far as the
#: released mean tells it: again, more for more signal.
SPREAD_POWER, SPREAD_RANGE = 0.16, (1.0, 2.0)
#: The same with standard errors. Weights bend nothing in a true model, so that the bound may be
#: lower; of people of whom no model is quite true it must be wide where there is little noise, and
#: the cap must be high: a multiple of a power of the signal, at most so high, and no higher than so
#: many times the level of the life table (docs/benchmarks/hazard_intervals).
INFERENCE_SPREAD = (0.8, 4.0)
INFERENCE_CAP, INFERENCE_LEVEL = (1.0, 0.48, 12.0), 4.0
#: What rows tell of a coefficient beside what they would if all directions of rows within their
#: bound were alike (docs/benchmarks/priors).
INFORMATION_PART = 0.25
#: Centred rows keep at least this part of ``data_norm``.
SMALLEST_SPREAD = 0.25
