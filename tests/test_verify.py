"""The verifier alone: what a release states, forgeries of it, and where it has no rule."""

import copy
import json
import random
import subprocess
import sys

import numpy as np
import pytest

from skdpsurv import verify as verifier
from skdpsurv.verify import verify
from tests.support import checks
from tests.support.registry import PRIVATE

#: Words, descriptions of columns, and promises that are weaker: none is part of the arithmetic.
HARMLESS = {
    *("name", "mechanism", "source", "assumptions", "not_covered"),
    *("alpha", "calibration", "classes", "data_norm", "fit_intercept", "intercept_scaling"),
    *("public_slope", "max_time", "n_knots", "prior_event_rate", "sampler", "step_size"),
    *("temperature", "strategy", "n_candidates", "n_scored", "omega", "left_censored"),
    *("max_shape", "shape_fraction", "causes", "censored", "breakpoints", "groups", "weights"),
    *("combiner", "partition", "feature_groups", "n_partitions", "estimator", "method"),
    *("n_private", "n_public", "n_cells", "candidate_sizes", "by", "by_is_public", "grid"),
    *("n_columns", "prior", "max_cumulative_hazard", "n_bins", "bounds", "outcome", "n_blocks"),
    *("n_records", "n_levels", "ladder", "knots", "left_censored", "labels"),
    # Where the tolerance is the least there is, nothing depends on these.
    *("center_loss", "center_norm", "loss_at_zero", "weighted", "diameter", "height"),
    # A table's L1 and L2 bounds: one of both is used.
    *("distance", "size"),
}


def released(setting):
    data = setting.data()
    with checks.quiet():
        fitted = checks.quietly(setting.make().fit, data.X, data.y, **data.options)
    return fitted.release_.to_json()


def expected(setting):
    """Return why a setting is not covered, or None."""
    name = str(setting)
    for words, reason in (
        ("classes from y", "the status is 'none'"),
        ("spreads of a table", "the status is 'seeded'"),
        ("DPPoissonRegressor", "a loss of the kind CappedPoisson"),
        ("psgld", "a theorem about the limit"),
        ("mala", "a theorem about the limit"),
    ):
        if words in name:
            return reason
    return None if np.isfinite(setting.epsilon) else "epsilon is infinite"


@checks.each(PRIVATE, quick=True)
def test_every_setting_is_verified_or_has_a_reason(setting):
    verdict, reason = verify(released(setting)), expected(setting)
    assert verdict.word == ("verified" if reason is None else "not covered"), verdict.reason
    assert verdict.granted if reason is None else verdict.reason.startswith(reason)


def leaves(value, path=()):
    """Yield the places of numbers and words, and of the last entries of lists."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in items:
        if isinstance(one, dict | list) and one:
            yield from leaves(one, (*path, key))
            if isinstance(one, list):
                yield (*path, key)
        else:
            yield (*path, key)


def forged(release, path, rng):
    """Return a release with another value at a place, or an entry less."""
    found = copy.deepcopy(release)
    *way, last = path
    node = found
    for key in way:
        node = node[key]
    value = node[last]
    if isinstance(value, list) and value:
        value.pop() if rng.random() < 0.5 or len(value) > 1 else value.append(value[0])
    elif isinstance(value, bool):
        node[last] = not value
    elif isinstance(value, int):
        node[last] = rng.choice([value // 2, 2 * value + 1, value + 1, value - 1])
    elif isinstance(value, float):
        node[last] = rng.choice([0.5 * value, 0.999 * value, 2.0 * value + 1e-3, value + 1.0])
    else:
        node[last] = rng.choice(["forged", 1.0])
    return found


def forgeries(setting, number, seed):
    """Yield forgeries of a setting's release, drawn by a seed, of all that counts."""
    rng, release = random.Random(seed), json.loads(released(setting))
    parts = {name: release[name] for name in ("guarantee", "plan", "fit_guarantee", "fit_plan")}
    parts["noise"] = release["noise"]
    places = [p for p in leaves({k: v for k, v in parts.items() if v}) if not {*p} & HARMLESS]
    for path in rng.sample(places, min(number, len(places))):
        yield path, forged(release, path, rng)


def harmless(setting, path, release):
    """Say whether a forgery leaves a guarantee true: more noise than needed, or a weaker promise."""
    before = setting[path[0]]
    old, new = before, release[path[0]]
    for key in path[1:]:
        old, new = old[key], new[key] if not isinstance(new, list) or key < len(new) else None
    return old == new
