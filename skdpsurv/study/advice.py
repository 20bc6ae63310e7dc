"""Advice on a study before it is charged: what will say nothing, and what would say more."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.data.shape import INTERVALS_NEED, USUAL_SHARE
from skdpsurv.dp.guarantee import delta_warnings, epsilon_warnings
from skdpsurv.dp.references import WORDS, phrase
from skdpsurv.evaluation.forecast import FIGURES, gain_in_figures, gain_of_delta
from skdpsurv.evaluation.forecast_result import WIDE_FACTOR, factor_in_words
from skdpsurv.study.analysis_kinds import KINDS
from skdpsurv.study.parts import PlannedAnalysis
from skdpsurv.study.protocol import Protocol
from skdpsurv.study.study_forecast import FACTOR, MEASURES, Expected

#: Errors, relative to those without privacy, from which advice calls them large.
LARGE = 2.0
#: From this share of coefficients with a finite interval, advice has nothing to say.
MOST_INTERVALS = 0.9
#: Largest factor by which an epsilon changes: errors are known for half and twice of it.
MOST_CHANGE = 4.0
#: Largest distance of a typical value from the middle of its range, as a part of the range.
FAR = 0.1
#: Errors that fall with a smaller power of epsilon are not balanced by shares.
LEAST_POWER = 0.25
TINY = 1e-6
#: Measures, in words, of which advice says what a delta gains.
GAINS = [MEASURES[name][0] for name in FIGURES]
#: Forecasts of all analyses, by name; the decisive error comes first.
StudyForecast = Mapping[str, Sequence[Expected]]


def ratio(expected: Sequence[Expected]) -> float:
    """Return the decisive error relative to no privacy; NaN if nothing is known of it."""
    return max(expected[0].ratio, 1.0) if expected else math.nan


@dataclass(frozen=True)
class Balance:
    """Shares that make the worst part best, and the largest relative errors before and after."""

    shares: Mapping[str, float]
    before: float
    after: float

    @classmethod
    def of(cls, parts: Mapping[str, PlannedAnalysis], outlook: StudyForecast) -> Balance:
        r"""Return the balance, with all relative errors equal.

        It solves :math:`\sum_i \epsilon_i (a_i / (r - 1))^{1 / p_i} = \sum_i \epsilon_i` for r.
        Parts that hardly depend on epsilon, or that nothing is known of, keep their shares, and so
        do evaluations, which share what is left.
        """
        moving = {
            name: (part.spend.epsilon, ratio(outlook[name]) - 1.0, outlook[name][0].power)
            for name, part in parts.items()
            if not part.analysis.of and outlook[name] and outlook[name][0].power >= LEAST_POWER
        }
        stated = {name: part.analysis.share for name, part in parts.items()}
        if len(moving) < 2:
            return cls(stated, 1.0, 1.0)
        whole = sum(epsilon for epsilon, _, _ in moving.values())

        def needed(excess: float) -> dict[str, float]:
            factors = {n: (max(a, TINY) / excess) ** (1 / p) for n, (_, a, p) in moving.items()}
            return {n: moving[n][0] * _limited(factor) for n, factor in factors.items()}

        before = 1.0 + max(excess for _, excess, _ in moving.values())
        low, high = TINY, before
        for _ in range(60):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if sum(needed(middle).values()) > whole else (low, middle)
        unit = sum(stated[name] for name in moving) / whole
        shares = {name: round(unit * epsilon, 2) for name, epsilon in needed(high).items()}
        return cls(stated | shares, before, 1.0 + high)


def _limited(factor: float) -> float:
    return min(max(factor, 1.0 / MOST_CHANGE), MOST_CHANGE)


def gains(protocol: Protocol, parts: Mapping[str, PlannedAnalysis]) -> Iterator[tuple[str, str]]:
    """Yield where a delta would reduce the noise of coefficients, and how much."""
    for name, part in parts.items():
        if not protocol.delta and "intervals" in KINDS[part.analysis.kind].words:
            n_features = part.shape.n_features
            text = gain_of_delta(part.estimator, part.n_people, n_features, [part.spend.epsilon])
            if text:
                yield name, f"{name}: {text}"


def advice(
    protocol: Protocol,
    parts: Mapping[str, PlannedAnalysis],
    outlook: StudyForecast,
    with_delta: StudyForecast,
    n_people: int,
) -> Iterator[str]:
    """Yield what will say nothing, and what would help; ``with_delta`` has fits that gain."""
    used = any(part.guarantee.delta for part in parts.values())
    yield from epsilon_warnings(protocol.epsilon)
    yield from delta_warnings(protocol.delta, used, n_people)
    for name, part in parts.items():
        expected = outlook[name]
        intervals = [one for one in expected if one.what.startswith("share of coefficients")]
        for one in intervals:
            if one.private < MOST_INTERVALS:
                yield f"{name}: {_on_intervals(part, one.private)}"
        terms = [one for one in expected if one.what.startswith(FACTOR)]
        if wide := [
            f"{one.what.removeprefix(FACTOR)}: {factor_in_words(one.private)}"
            for one in terms
            if one.private > WIDE_FACTOR
        ]:
            said = phrase("wide_terms", factor=WIDE_FACTOR, terms="; ".join(wide))
            yield f"{name}: {said}"
        if expected and ratio(expected) >= LARGE and expected[0].private > expected[0].small:
            what, without, private, *_ = expected[0]
            remedy = WORDS["remedies"].get(part.analysis.kind)
            remedy = f", {remedy}," if remedy else ""
            errors = {"what": what, "without": without, "private": private}
            yield phrase("large_error", name=name, remedy=remedy, **errors)
    yield from _far_midpoints(protocol.kinds)
    for name, text in gains(protocol, parts):
        both = outlook[name], with_delta.get(name, [])
        figures = [{one.what: one.private for one in each if one.what in GAINS} for each in both]
        if said := gain_in_figures(figures):
            yield f"{text} {said}"
    if protocol.ledger is None:
        yield phrase("no_ledger")


def _far_midpoints(kinds: Sequence[ColumnKind]) -> Iterator[str]:
    """Yield of which columns the midpoint, by which missing cells are filled, is not typical."""
    for kind in kinds:
        if kind.bounded and kind.missing == "midpoint" and kind.typical is not None:
            center = kind.features()[0].center
            if center is not None and abs(center) > 2.0 * FAR:
                cells = {"middle": kind.cell(kind.value_at(0.0)), "typical": kind.typical}
                yield phrase("far_midpoint", column=kind.column, **cells)


def _on_intervals(part: PlannedAnalysis, finite: float) -> str:
    """Say how many coefficients will have an interval, and how many columns all would."""
    estimator, n_features = part.estimator, part.shape.n_features
    how_many = "none" if finite < 0.5 / n_features else f"about {finite:.0%}"
    text = f"of {n_features} coefficients {how_many} will have a finite interval at epsilon "
    text += f"{part.spend.epsilon:.2g}"
    if estimator.delta:
        return f"{text}. More people, or a larger share, would help."
    # The rule by which a fit warns (skdpsurv.data.shape.few_intervals).
    least = INTERVALS_NEED * USUAL_SHARE / estimator.inference_share
    enough = math.isqrt(int(part.n_people * part.spend.epsilon / least))
    if 0 < enough < n_features:
        return f"{text}; of {enough} coefficient{'s' * (enough > 1)} all would."
    return f"{text}. Fewer columns, more people, or a larger share, would help."
