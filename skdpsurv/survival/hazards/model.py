r"""Public description of a hazard model, its records on a time grid, and its baseline's bases.

The published basis (Nguyen and Hui, arXiv 1708.07436, section 3.2), with equally spaced knots
:math:`0 = k_1 < \dots < k_e = 1`, is a natural cubic spline:

.. math::
    b_1 = 1,\quad b_2 = t,\quad b_{j+2} = d_j - d_{e-1},\qquad
    d_j(t) = \frac{(t - k_j)_+^3 - (t - k_e)_+^3}{k_e - k_j}

Its columns are nearly collinear, so fits use an orthogonal basis of the same space. Both bases are
public, and so is the map between them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from skdpsurv.data.blocks import Blocks
from skdpsurv.data.histories import Histories
from skdpsurv.dp.clipping import clip_rows, row_weights
from skdpsurv.dp.plan import Node, Plan
from skdpsurv.dp.references import DOUBLES, reference
from skdpsurv.dp.types import FloatArray
from skdpsurv.likelihoods.changing_hazard import ChangingHazard
from skdpsurv.likelihoods.hazard import DiscreteHazard, HazardBlock, hazard_block
from skdpsurv.likelihoods.links import LINKS, Link
from skdpsurv.likelihoods.stratified import StratifiedBlock, StratifiedHazard, stratified_block
from skdpsurv.release import Release, released_array
from skdpsurv.survival.hazards.changing import Changing


def published_basis(n_intervals: int, n_knots: int, changing: Changing | None = None) -> FloatArray:
    """Return the paper's basis at s/q, s = 1..q, of shape (n_intervals, n_knots), and steps.

    Where effects step, the baseline of the mean row steps, too, which a smooth one would leave to
    other effects. So steps are columns of the baseline, if the grid can tell them from the paper's.
    """
    t = np.arange(1, n_intervals + 1) / n_intervals
    columns = [np.ones(n_intervals), t][:n_knots]
    if n_knots > 2:
        knots = np.linspace(0.0, 1.0, n_knots)
        cubes = np.maximum(t[:, None] - knots, 0.0) ** 3
        d = (cubes[:, :-1] - cubes[:, -1:]) / (knots[-1] - knots[:-1])
        columns += [d[:, j] - d[:, -1] for j in range(n_knots - 2)]
    basis = np.stack(columns, axis=1)
    if changing is None or not changing.step_times:
        return basis
    # What the paper's columns, which are nearly collinear, leave of the steps.
    q, _ = np.linalg.qr(basis)
    left = (steps := changing.steps) - q @ (q.T @ steps)
    rank = np.linalg.matrix_rank(left / np.linalg.norm(steps, axis=0), tol=1e-3)
    return np.hstack([basis, steps]) if rank == steps.shape[1] else basis


def orthogonal_basis(
    n_intervals: int, n_knots: int, changing: Changing | None = None
) -> FloatArray:
    """Return a basis of orthogonal columns of mean square 1, the first one constant."""
    q, r = np.linalg.qr(published_basis(n_intervals, n_knots, changing))
    return np.asarray(q * np.sign(np.diag(r)) * np.sqrt(n_intervals))


def to_published(values: FloatArray, n_knots: int, changing: Changing | None = None) -> FloatArray:
    """Return coefficients in the published basis for a baseline on the grid, or for columns."""
    basis = published_basis(len(values), n_knots, changing)
    return np.asarray(np.linalg.lstsq(basis, values, rcond=None)[0])


def interval_ends(max_time: float, n_intervals: int) -> FloatArray:
    """Return the right ends of the intervals, shape (n_intervals,), in the unit of max_time."""
    return max_time * (np.arange(1, n_intervals + 1) / n_intervals)


#: max_cumulative_hazard="auto": a low cap means little noise, a high one little bias.
CAP_SCALE, CAP_POWER, CAP_RANGE = 0.9, 0.28, (0.8, 5.0)

#: Assumptions of the guarantee of a hazard model, and the public inputs that it states.
ASSUMED = (
    "n, the columns and every constructor parameter are public",
    "max_time and data_norm were not read off these records",
)
STATED = (
    *("n_records", "max_time", "n_intervals", "n_knots", "link", "data_norm"),
    *("max_cumulative_hazard", "prior_event_rate"),
)
HAZARD_PROOF = reference("docs/proofs/discrete_time", "nguyen-hui", "chaudhuri")


@dataclass(frozen=True)
class HazardModel:
    """Public description of a model, from the caller's parameters alone."""

    link: str
    n_intervals: int
    n_knots: int
    n_records: int
    n_features: int
    data_norm: float
    max_cumulative_hazard: float | str | None
    prior_event_rate: float
    max_time: float = 1.0
    has_entry: bool = False
    n_strata: int = 1
    cap_scale: float = CAP_SCALE
    changing: Changing | None = None

    @cached_property
    def n_columns(self) -> int:
        """Number of coefficients of the baseline of one stratum."""
        return published_basis(*self.curve).shape[1]

    @property
    def curve(self) -> tuple[int, int, Changing | None]:
        """What the bases of a baseline follow from."""
        return self.n_intervals, self.n_knots, self.changing

    @property
    def n_baseline(self) -> int:
        """Number of coefficients of the baselines, of one stratum after another."""
        return self.n_strata * self.n_columns

    @property
    def n_effects(self) -> int:
        """Number of coefficients of covariates, those of products with time included."""
        return self.n_features + (0 if self.changing is None else self.changing.number)

    @property
    def prior_hazard(self) -> float:
        """Constant hazard that leads to the prior event rate by the horizon."""
        return float(-np.expm1(np.log1p(-self.prior_event_rate) / self.n_intervals))

    def information(self, epsilon: float) -> float:
        """Return n * epsilon per parameter, in hundreds."""
        return self.n_records * epsilon / (100.0 * (self.n_baseline + self.n_effects))

    def cap(self, epsilon: float) -> float | None:
        """Return the cap: as given, or for "auto" growing with the information per parameter."""
        if not isinstance(self.max_cumulative_hazard, str):
            return self.max_cumulative_hazard
        return float(np.clip(self.cap_scale * self.information(epsilon) ** CAP_POWER, *CAP_RANGE))

    def bounded_link(self) -> Link:
        """Return the link with its event slope bounded at the prior hazard."""
        return LINKS[self.link].bounded_at(self.prior_hazard)


#: Records as a likelihood takes them, without strata or with them.
Block = HazardBlock | StratifiedBlock


class HazardRecords(NamedTuple):
    """A block of private records on the public grid."""

    X: FloatArray
    histories: Histories

    def clipped(
        self,
        mean: FloatArray | float,
        radius: float,
        bound: float | None = None,
        scales: FloatArray | None = None,
    ) -> Block:
        """Return rows less ``mean``, clipped to ``radius`` and divided by it (inf: unchanged).

        Their columns are divided by ``scales`` before. With a ``bound``, rows are clipped to that
        many radii, and beyond one are downweighted.
        """

        def scaled(rows: FloatArray) -> FloatArray:
            centred = rows - mean if scales is None else (rows - mean) / scales
            return clip_rows(centred, radius * (bound or 1.0)) / radius

        scale = scaled if math.isfinite(radius) else None
        sort: Any = hazard_block if self.histories.stratum is None else stratified_block
        block: Block = sort(self.X, self.histories, scale)
        if bound is None:
            return block
        return block.changed(lambda one: one._replace(weight=row_weights(one.X, 1.0)))


#: Private records on the public grid, in blocks.
Records = Blocks[HazardRecords]
#: Bands of the life table: enough for the shape of a baseline with three knots.
N_BANDS = 4


#: Names of the cap in a release, today and before.
CAPS = ("max_cumulative_hazard", "inference_cap")


def released_caps(release: Release, number: int = 1) -> FloatArray | None:
    """Return the caps of a release, or None; ValueError unless they are positive."""
    name = next((name for name in CAPS if name in release.values), None)
    if name is None:
        return None
    caps = released_array(release, name, (number,))
    if not (caps > 0.0).all():
        raise ValueError(f"values of the release must hold positive {name!r}.")
    return caps


#: Name of the coefficients of products with time in a release.
OVER_TIME = "over_time_coef"
#: Names of slope, knots and shift in a release.
RECALIBRATION = ("recalibration_slope", "recalibration_knots", "recalibration_shift")


@dataclass(frozen=True, eq=False)
class Recalibration:
    """Correction of a released predictor.

    Parameters
    ----------
    slope : float, default=1.0
        Factor of the risk score.
    knots : ndarray of shape (n_knots,)
        Increasing shares of the horizon, from 0 to 1.
    shift : ndarray of shape (n_knots,)
        Shift of the baseline at the knots, on the scale of the link; linear between them. With
        strata of shape (n_strata, n_knots).
    """

    slope: float = 1.0
    knots: FloatArray = field(default_factory=lambda: np.array([0.0, 1.0]))
    shift: FloatArray = field(default_factory=lambda: np.zeros(2))

    @property
    def slopes(self) -> FloatArray:
        """Slopes of the shift between knots."""
        return np.asarray(np.diff(self.shift) / np.diff(self.knots))

    def at(self, shares: FloatArray) -> FloatArray:
        """Return the shift of the predictor at shares of the horizon."""
        rows = [np.interp(shares, self.knots, own) for own in np.atleast_2d(self.shift)]
        return np.asarray(rows[0] if self.shift.ndim == 1 else rows)

    def values(self) -> dict[str, FloatArray]:
        """Return the numbers that a release keeps, by name."""
        values = np.asarray(self.slope), self.knots, self.shift
        return dict(zip(RECALIBRATION, values, strict=True))

    @classmethod
    def of_causes(cls, release: Release, number: int) -> list[Recalibration]:
        """Return the recalibrations of causes in a release, or such that change nothing."""
        values = {name: release.values[name] for name in RECALIBRATION if name in release.values}
        if not values:
            return [cls()] * number
        knots: Any = values.get(RECALIBRATION[1], 0.0)
        width = np.shape(knots)[-1:] or (1,)
        shapes = zip(RECALIBRATION, ((number,), (number, *width), (number, *width)), strict=True)
        each = {name: released_array(release, name, shape) for name, shape in shapes}
        rows = ({name: own[j] for name, own in each.items()} for j in range(number))
        return [cls.of(replace(release, values=row)) for row in rows]

    @classmethod
    def of(cls, release: Release, n_strata: int = 0) -> Recalibration:
        """Return the recalibration of a release, or one that changes nothing."""
        if not any(name in release.values for name in RECALIBRATION):
            return cls()
        n_knots = np.size(release.values.get(RECALIBRATION[1], ()))
        slope = released_array(release, RECALIBRATION[0], ())
        knots = released_array(release, RECALIBRATION[1], (n_knots,))
        shape = (n_strata, n_knots) if n_strata else (n_knots,)
        shift = released_array(release, RECALIBRATION[2], shape)
        found = cls(float(slope), knots, shift)
        with np.errstate(all="ignore"):
            rises = n_knots > 1 and knots[0] == 0 and knots[-1] == 1 and (np.diff(knots) > 0).all()
            if not (rises and slope > 0 and np.isfinite(np.diff(found.slopes)).all()):
                raise ValueError(
                    f"values of the release must hold valid {', '.join(RECALIBRATION)}."
                )
        return found


def hazard_plan(
    model: HazardModel,
    epsilon: float,
    alpha: float,
    tree: Node,
    delta: float = 0.0,
    assumed: Sequence[str] = (DOUBLES,),
    stated: Mapping[str, Any] = MappingProxyType({}),
) -> Plan:
    """Return the plan of a hazard fit."""
    inputs = {**{name: getattr(model, name) for name in STATED}, "alpha": alpha, **stated}
    inputs |= {"late_entry": True} if model.has_entry else {}
    inputs |= {"n_strata": model.n_strata} if model.n_strata > 1 else {}
    inputs |= {} if model.changing is None else {"over_time": list(model.changing.names)}
    return Plan(tree, epsilon, delta, inputs=inputs, assumed=(*ASSUMED, *assumed))


def likelihood_of(
    model: HazardModel, basis: FloatArray, link: Link, cap: float | None, weighted: bool = False
) -> DiscreteHazard | StratifiedHazard:
    """Return the likelihood of rows of norm 1."""
    how: Any = basis, model.n_features, 1.0, link, cap, weighted
    if model.changing is None:
        one = DiscreteHazard(*how)
    else:
        one = ChangingHazard(*how, effects=model.changing.scaled)
    return one if model.n_strata == 1 else StratifiedHazard(one, model.n_strata)


def in_published(
    model: HazardModel, coef: FloatArray, unit: FloatArray | float = 1.0
) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Return coefficients on the scale of X, and by name those of products with time.

    ``unit`` is that of the rows of the fit.
    """
    if model.changing is None:
        return coef / unit, {}
    change, level = model.changing.published(d := model.n_features)
    own = np.broadcast_to(unit, d)
    theta = change @ coef[d:] / own[model.changing.columns]
    return (coef[:d] + level @ coef[d:]) / unit, {OVER_TIME: theta}


def released(model: HazardModel, baseline: FloatArray, coef: FloatArray) -> dict[str, FloatArray]:
    """Return the values of a release: baselines in the published basis, and coefficients.

    Baselines are on the grid, one for each stratum if there are any.
    """
    rows = to_published(baseline.T, *model.curve[1:]).T
    return {"coef": coef, "baseline_coef": np.ascontiguousarray(rows)}
