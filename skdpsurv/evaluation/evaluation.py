"""private_survival_metrics: how good a released model is, on private records."""

from __future__ import annotations

import copy
import math
from dataclasses import KW_ONLY, dataclass, replace
from itertools import starmap
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.base.private_estimator import PrivateEstimator, Published
from skdpsurv.base.tabular import TabularEstimator
from skdpsurv.data.blocks import Blocks, in_blocks
from skdpsurv.data.histories import Histories, read_target, with_entry
from skdpsurv.data.shape import Shape, length, public_shape, refuse_no_target, require_one_each
from skdpsurv.dp import PrivacyAccountant, checks
from skdpsurv.dp.checks import Check, horizon
from skdpsurv.dp.guarantee import immutable
from skdpsurv.dp.plan import Context, Mechanism, Plan, Sequential
from skdpsurv.dp.stated_noise import checked_plan
from skdpsurv.dp.types import FloatArray
from skdpsurv.evaluation import predictions
from skdpsurv.evaluation.evaluation_plan import EvaluationSetting, evaluation_plan
from skdpsurv.evaluation.released_values import Reading, ReleasedSums, exact_measures, intervals
from skdpsurv.evaluation.result import Estimate, RiskGroup, SurvivalEvaluation
from skdpsurv.evaluation.risk_table import EvaluationRecords
from skdpsurv.survival.curves.aalen_johansen import is_label
from skdpsurv.survival.curves.event_counts import plain

#: Upper limit on groups and on bands: more cells than that drown in their noise.
MOST = 50


def private_survival_metrics(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    epsilon: float = 1.0,
    *,
    person: ArrayLike | None = None,
    entry: ArrayLike | None = None,
    cause: Any = None,
    max_time: float | None = None,
    level: float = 0.95,
    n_groups: int = 5,
    n_bands: int = 3,
    risk_edges: ArrayLike | None = None,
    time_edges: ArrayLike | None = None,
    random_state: int | None = None,
    accountant: PrivacyAccountant | None = None,
) -> SurvivalEvaluation:
    r"""Evaluate a survival model on private records, with differential privacy.

    Releases Harrell's C-index, the integrated Brier score, predicted and observed survival by risk
    group, and the ratio of expected to observed events. Their intervals allow for sampling and for
    the privacy noise.

    Parameters
    ----------
    model : estimator
        Fitted, with ``predict_survival_function``: a regression of this package or of
        scikit-survival, or a Pipeline that ends in one. The model counts as public: it was released
        before, and from other people's records. Otherwise its privacy loss adds to ``epsilon``.
    X : array-like or data frame of shape (n_samples, n_features)
        Rows, as the model takes them. Private.
    y : structured array of shape (n_samples,), or array-like of times
        Event indicator and time, as for scikit-survival. Private.
    person : array-like of shape (n_samples,), or None, default=None
        Person identifier of each record, as whole numbers or text. Private. The first record of
        each person is used, and the guarantee protects people. None: nobody has two records.
    entry : array-like of shape (n_samples,), or None, default=None
        Time from which each record was seen (delayed entry, left truncation), from the same start
        as the times of ``y``. All measures are then of those who are at risk: a pair counts for C
        if both are at the time of the event, and survival is predicted and observed since the
        entry. Who enters at the exit or later, or at ``max_time``, counts for nothing. Private;
        that there are entries is public. None: all are seen from 0. Not with a ``cause``.
    cause : label or None, default=None
        Cause of events to evaluate, one of the model's ``causes_``; ``y`` holds the labels of
        causes, and the model's ``censored``. The model predicts incidences, as
        :class:`~skdpsurv.DPCompetingRisks` does, by a method
        ``predict_cumulative_incidence_function(X, cause)``. All measures are then of this cause.
        None: events are of one kind.
    epsilon : float, default=1.0
        Privacy loss, spent whole. ``numpy.inf`` gives the values without noise, and intervals for
        sampling alone.
    max_time : float
        Public horizon, in the unit of the times; required. Survival is compared there, and all
        measures stop there. The model's survival functions must reach it.
    level : float, default=0.95
        Coverage of each interval.
    n_groups : int, default=5
        Number of risk groups, of about equal size. With few records some are merged.
    n_bands : int, default=3
        Number of time bands in which exits are counted. The table has n_groups (2 n_bands + 1)
        cells, and n_groups (3 n_bands + 1) with a cause.
    risk_edges : array-like of shape (n_groups - 1,) or None, default=None
        Public edges of the groups: predicted probabilities to survive ``max_time``, or to have no
        event of the cause by then, rising, within (0, 1). They replace ``n_groups``. None: edges
        are chosen privately, for a share of epsilon.
    time_edges : array-like of shape (n_bands - 1,) or None, default=None
        Public edges of the bands, rising, within (0, max_time). They replace ``n_bands``. None:
        edges are chosen privately, for a share of epsilon.
    random_state : None or int, default=None
        None draws from the operating system's entropy. An int makes the evaluation reproducible and
        therefore not private: status "seeded", with a PrivacyLeakWarning.
    accountant : PrivacyAccountant or None, default=None
        Ledger that the evaluation is charged to, once, before any record is used.

    Returns
    -------
    SurvivalEvaluation
        Values, intervals and the guarantee; a function of the released numbers alone.

    Raises
    ------
    ValueError, TypeError
        If a parameter is not allowed, the model's survival functions end before ``max_time``, or
        ``y`` is not a survival target. No budget is spent.
    BudgetExceededError
        If the accountant's budget would be exceeded. No record is read then.

    See Also
    --------
    skdpsurv.plotting.plot_calibration : Predicted and observed survival by risk group.
    skdpsurv.plotting.plot_risk_groups : Survival of risk groups over time.

    Notes
    -----
    Neighbours: replace-one; the number of records is public. A record is in one cell of a table
    (risk group, time band, event), which depends on that record, the model and public edges
    alone. So the table has L1 sensitivity 2. Offsets within groups and bands, and terms of the
    Brier score, are clipped and have sensitivity 1; edges are chosen by permute-and-flip. Theorem:
    adaptive composition of these (docs/proofs/evaluation). The measures follow from the released
    numbers: C from pairs of cells, corrected for ties within groups as if risks were normal, and
    observed survival from hazards within bands, with densities that are linear in each.

    With a cause, a cell says whether the event was of this cause or of another: one table, of the
    same sensitivity. Observed incidence is Aalen and Johansen's. In the Brier score, whoever had an
    event of another cause has none of this one at all later times. C is that of Wolbers and others:
    such people stay in the pairs of all events of the cause, whenever these were. (In the ``score``
    of a model they count as censored, which ranks hazards.)

    The model sees one row at a time, made of that record's own cells. These are raw cells if the
    model, or a first step :class:`~skdpsurv.data.PublicColumns`, declares its columns; otherwise
    they are numbers in double precision, and text is refused. Each row is shown to a fresh copy of
    the model, unless its type is known not to change. If the model fails, or predicts NaN, the
    record counts as predicted to survive every time with probability 1/2. Its output and its
    warnings are suppressed.

    References
    ----------
    .. [1] F. E. Harrell et al., "Evaluating the yield of medical tests", JAMA 247, 1982.
    .. [2] E. Graf et al., "Assessment and comparison of prognostic classification schemes for
       survival data", Statistics in Medicine 18, 1999.
    .. [3] M. Wolbers et al., "Prognostic models with competing risks: methods and application to
       coronary risk prediction", Epidemiology 20, 2009.
    .. [4] R. Schoop et al., "Quantifying the predictive accuracy of time-to-event models in the
       presence of competing risks", Biometrical Journal 53, 2011.

    Examples
    --------
    >>> from skdpsurv import DPDiscreteTimeSurvival
    >>> from skdpsurv.datasets import make_discrete_time_survival
    >>> from skdpsurv.evaluation import private_survival_metrics
    >>> data = make_discrete_time_survival(4000, 2, random_state=0)
    >>> model = DPDiscreteTimeSurvival(epsilon=1.0, max_time=data.max_time)
    >>> model = model.fit(data.X[:2000], data.y[:2000])
    >>> found = private_survival_metrics(
    ...     model, data.X[2000:], data.y[2000:], epsilon=1.0, max_time=data.max_time
    ... )
    >>> found.summary.columns.tolist(), found.guarantee.epsilon
    (['value', 'lower', 'upper'], 1.0)
    >>> bool(found.c_index.lower <= found.c_index.value <= found.c_index.upper)
    True

    People who entered late, of whom only those who lived then are seen:

    >>> import numpy as np
    >>> entry = np.random.default_rng(0).uniform(0.0, 0.5 * data.max_time, 2000)
    >>> X, y = data.X[2000:], data.y[2000:]
    >>> seen = entry < y["time"]
    >>> late = private_survival_metrics(
    ...     model, X[seen], y[seen], max_time=data.max_time, entry=entry[seen]
    ... )
    >>> bool(late.groups[0].observed == late.groups[0].since_entry)
    True
    """
    records = ("X", "y", "person", "entry")
    settings = {
        name: value for name, value in locals().items() if name not in (*records, "records")
    }
    late = {} if entry is None else {"entry": entry}
    return Evaluation(**settings).prepare(X, y, person=person, **late).run()


def _check_model(model: Any) -> None:
    if predictions.unknown_steps(model):
        try:
            copy.deepcopy(model)
        except Exception:
            raise TypeError(
                "model must allow copies: each record is shown to a fresh one."
            ) from None


@dataclass(frozen=True, eq=False)
class Exactly(Mechanism):
    """The measures of an evaluation without noise: not private."""

    setting: EvaluationSetting

    name = "the measures without noise"
    price = math.inf
    proof = ""
    claim = "none"
    law = "none"

    def run(
        self, context: Context, records: Blocks[EvaluationRecords], source: Any
    ) -> dict[str, Any]:
        """Return the exact measures, for the released groups."""
        survival, histories, at_entry = zip(*records.results(lambda block: block), strict=True)
        late = None if at_entry[0] is None else np.concatenate(at_entry)
        whole = EvaluationRecords(np.concatenate(survival), Histories.joined(histories), late)
        return {"exact": exact_measures(whole, Reading.of(self.setting, dict(context)))}


@dataclass(eq=False, repr=False)
class Evaluation(PrivateEstimator, released=False, takes=("model",), late_entry=True):
    """An evaluation as a fit, which returns a :class:`SurvivalEvaluation`."""

    model: Any
    epsilon: float
    _: KW_ONLY
    cause: Any = None
    max_time: Any = None
    level: float = 0.95
    n_groups: int = 5
    n_bands: int = 3
    risk_edges: Any = None
    time_edges: Any = None
    random_state: int | None = None
    accountant: PrivacyAccountant | None = None

    _one_of_each = ("entry",)

    _rules: ClassVar[dict[str, Check]] = {
        "model": checks.custom(_check_model),
        "cause": checks.optional(is_label),
        "max_time": horizon(checks.positive()),
        "level": checks.number_in(0.0, 1.0, closed="neither"),
        "n_groups": checks.integer(2, MOST),
        "n_bands": checks.integer(1, MOST),
        "risk_edges": checks.optional(checks.list_of(checks.number_in(0.0, 1.0, closed="neither"))),
        "time_edges": checks.optional(checks.list_of(checks.positive())),
    }

    def _check_together(self) -> None:
        predictions.check_predicts(self.model, self.cause)
        if self.cause is not None:
            predictions.causes_of(self.model).index(self.cause)
        for name, edges in self._edges().items():
            end = 1.0 if name == "risk_edges" else float(self.max_time)
            if (np.diff(edges) <= 0.0).any() or (edges >= end).any():
                raise ValueError(f"{name} must rise, and be less than {end:g}.")
            if edges.size >= MOST:
                raise ValueError(f"{name} must be fewer than {MOST}, got {edges.size}.")

    def _edges(self) -> dict[str, FloatArray]:
        stated = {"risk_edges": self.risk_edges, "time_edges": self.time_edges}
        return {name: np.asarray(x, float) for name, x in stated.items() if x is not None}

    def _shape(self, X: Any, y: Any, entry: Any = None) -> Shape:
        shape = replace(public_shape(self, X), has_entry=entry is not None)
        if entry is not None and self.cause is not None:
            raise ValueError("entry must be None with a cause: incidence is counted from 0.")
        predictions.check_last_time(self.model, X, float(self.max_time), self.cause)
        return shape

    def _plan(self, shape: Shape) -> Plan:
        setting, unknown = self._setting(shape), ", ".join(predictions.unknown_steps(self.model))
        assumption = f"copies of {unknown} share no state that predictions change"
        plan = evaluation_plan(setting, (assumption,) if unknown else ())
        if self.cause is not None:
            stated = {"cause": plain(self.cause), **predictions.causes_of(self.model).stated()}
            plan = replace(plan, inputs={**plan.inputs, **stated})
        if math.isinf(setting.epsilon):
            return replace(plan, tree=Sequential((plan.tree, Exactly(setting))))
        return plan

    def _setting(self, shape: Shape) -> EvaluationSetting:
        edges, sizes = self._edges(), (("risk_edges", self.n_groups), ("time_edges", self.n_bands))
        n_groups, n_bands = (edges[name].size + 1 if name in edges else int(n) for name, n in sizes)
        horizon = float(self.max_time)
        table = horizon, n_groups, n_bands, edges, shape.has_entry, self.cause is not None
        return EvaluationSetting(float(self.epsilon), shape.n_records, *table)

    def _read(self, shape: Shape, X: Any, y: Any, entry: Any = None) -> Blocks[Any]:
        """Return predictions and histories; cells are checked if their columns are declared."""
        model = self.model
        described = isinstance(model, TabularEstimator) and model.columns_ is not None
        reader, own = None, 0
        if self.cause is not None:
            causes = predictions.causes_of(model)
            reader, own = causes.reader, causes.index(self.cause) + 1

        def read(block: tuple[Any, ...]) -> tuple[Any, ...]:
            rows, target, *late = block
            refuse_no_target(target)
            if described:  # refused here, as a failed prediction would count as unknown
                model._prediction_rows(rows)
            histories = with_entry(read_target(target, causes=reader), *(late or [None]))
            if own:  # 1 for this cause, 2 for the others
                kinds = (histories.cause > 0) * (2 - (histories.cause == own))
                histories = replace(histories, cause=kinds)
            require_one_each(histories.size, length(rows))
            return predictions.single_rows(model, rows), histories

        horizon = float(self.max_time)
        times = np.append(self._setting(shape).times, horizon)
        late = [] if entry is None or isinstance(X, Blocks) else [entry]
        records = in_blocks(X, y, *late).map(read).persist()
        shape.require(records.map_reduce(lambda block: block[1].size))

        def predicted(block: tuple[Any, ...]) -> EvaluationRecords:
            rows, histories = block
            entry = histories.entry
            late = None if entry is None else np.minimum(entry, horizon)
            survival, at_entry = predictions.predicted_survival(
                model, rows, times, late, self.cause
            )
            return EvaluationRecords(survival, histories, at_entry)

        return records.map(predicted)

    def _publish(self, shape: Shape, published: Published) -> Any:
        """Return the evaluation, from the released values alone."""
        released = dict(published.values)
        exact = released.pop("exact", None)
        reading = Reading.of(self._setting(shape), released)
        sums = ReleasedSums.of(released)
        found = reading.measures(sums) if exact is None else exact
        ends = intervals(reading, sums, found, float(self.level))
        triples = zip(found, *ends, strict=True)  # values, lower and upper ends
        each = [np.stack(triple, axis=-1) for triple in triples]
        group_ends = np.stack([reading.ends[:-1], reading.ends[1:]], axis=-1)
        if self.cause is not None:  # incidences, whose lower ends are the upper ones of survival
            group_ends = 1.0 - group_ends[:, ::-1]
            each[3:] = [1.0 - triple[..., [0, 2, 1]] for triple in each[3:]]
        *overall, predicted, observed, curves = (triple.tolist() for triple in each)
        shares = np.maximum(reading.merged @ reading.shares, 0.0)
        shares /= max(shares.sum(), 1.0)
        columns = [*group_ends.T, shares, predicted, curves]
        rows = zip(*columns, *[observed] * shape.has_entry, strict=True)
        c_index, brier, ratio = starmap(Estimate, overall)
        stated: Any = {"max_time": float(self.max_time), "level": float(self.level)}
        stated |= {"guarantee": published.guarantee, "released": immutable("released", released)}
        groups = tuple(starmap(RiskGroup.of, rows))
        times = tuple(reading.edges.band_ends[1:].tolist())
        stated |= {"uncensored": reading.uncensored(sums), "cause": plain(self.cause)}
        stated["plan"] = checked_plan(published.plan)
        return SurvivalEvaluation(c_index, brier, ratio, groups, times, **stated)
