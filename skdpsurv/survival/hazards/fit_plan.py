"""Plans of perturbed hazard fits: the shares of a budget, and the measurements they pay for."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from skdpsurv.data.known_columns import KnownColumns
from skdpsurv.dp import privacy_cost as cost
from skdpsurv.dp.plan import Node, Plan, Sequential
from skdpsurv.dp.privacy_cost import remaining_budget
from skdpsurv.mechanisms.vector_noise import arithmetic
from skdpsurv.survival.hazards.fit import (
    OUTCOME_PART,
    PILOT_RECORDS,
    PILOT_SHARE,
    STRATUM_RECORDS,
    TABLE_PART,
    HazardFit,
)
from skdpsurv.survival.hazards.hazard_inference import HazardMoments, OutcomeCounts
from skdpsurv.survival.hazards.life_table import LifeTable
from skdpsurv.survival.hazards.model import HazardModel, hazard_plan
from skdpsurv.survival.hazards.posterior import HazardChain, LangevinFit
from skdpsurv.survival.hazards.recalibration import POSITIONS_PART, RiskCounts, RiskPositions
from skdpsurv.survival.hazards.spreads import SPREADS_SHARE, ColumnSpreads, RowMean, spreads_pay


def fit_of(
    model: HazardModel,
    epsilon: float,
    method: str,
    alpha: float,
    shares: Sequence[float | str],
    delta: float = 0.0,
    kind: type[HazardFit] = HazardFit,
    known: KnownColumns | None = None,
    **options: Any,
) -> tuple[HazardFit, tuple[cost.Price, cost.Price, cost.Price]]:
    """Return the public numbers of a fit, and prices of pilot, recalibration and inference.

    The pilot's share may be "auto": then it is larger where it pays for the columns' spreads, and
    smaller where these and their centres are public.
    """
    share, *others = shares
    if model.n_records * epsilon < PILOT_RECORDS:
        share, others = 0.0, [0.0] * len(others)
    elif model.n_strata > 1 and model.n_records * epsilon < STRATUM_RECORDS * model.n_strata:
        others[0] = 0.0
    if isinstance(share, str):
        if known is not None and known.is_complete:
            share = PILOT_SHARE * TABLE_PART
        else:
            _, (pilot, *_, inference) = _divided(epsilon, delta, [SPREADS_SHARE, *others])
            inferred = cost.epsilon_or_mu(inference) > 0.0
            pays = inferred and spreads_pay(model.n_records, known, _of_rows(pilot))
            share = SPREADS_SHARE if pays else PILOT_SHARE
    own, prices = _divided(epsilon, delta, [share, *others])
    has_pilot, _, has_inference = (cost.epsilon_or_mu(price) > 0.0 for price in prices)
    options |= {"known": known, "has_pilot": has_pilot, "has_inference": has_inference}
    fit = kind(model, epsilon, method, alpha, own, **options)
    return fit, (prices[0], prices[1], prices[2])


def _divided(
    epsilon: float, delta: float, shares: Sequence[Any]
) -> tuple[cost.Price, list[cost.Price]]:
    """Divide a budget into the price of a fit and prices of these shares."""
    if delta:
        # Squares of mus add up, so that small shares cost little: they are doubled.
        whole = [1.0 - sum(shares), *(2.0 * s for s in shares)]
        own, *prices = cost.split_gaussian(epsilon, delta, whole)
        return own, list(prices)
    each = [share * epsilon for share in shares]
    return remaining_budget(epsilon, *each), list(each)


def _of_rows(pilot: cost.Price) -> cost.Price:
    """Subtract the price of the life table from that of a pilot: the rest is for the rows."""
    return cost.subtract(pilot, cost.share_of(pilot, TABLE_PART))


def pilot_nodes(fit: HazardFit, pilot: cost.Price) -> tuple[Node, ...]:
    """Return the measurements of a pilot: a life table, and the rows' centre and perhaps spread."""
    known, kind = fit.known, fit.life_table or LifeTable
    if known is not None and known.is_complete:
        return (kind(price=pilot, fit=fit),)
    rows = _of_rows(pilot)
    pays = fit.has_inference and spreads_pay(fit.model.n_records, known, rows)
    table = kind(price=cost.share_of(pilot, TABLE_PART), fit=fit)
    return table, (ColumnSpreads if pays else RowMean)(price=rows, fit=fit)


def risk_nodes(fit: HazardFit, price: cost.Price) -> tuple[Node, ...]:
    """Return the measurements of a recalibration: a table and positions, of each cause if any."""
    nodes: list[Node] = []
    each: Any = price
    if len(fit.scored_causes) > 1:
        each = cost.divide_budget(each, Fraction(len(fit.scored_causes)))
    positions = cost.share_of(each, POSITIONS_PART)
    table = cost.subtract(each, positions)
    for cause in fit.scored_causes:
        own: Any = {"fit": fit, "cause": cause}
        nodes.append(RiskCounts(price=table, **own))
        nodes.append(RiskPositions(price=positions, table_price=table, **own))
    return tuple(nodes)


def perturbed_plan(
    fit: HazardFit,
    prices: tuple[cost.Price, cost.Price, cost.Price],
    delta: float = 0.0,
    verbose: int = 0,
) -> Plan:
    """Return the plan of a fit, with its pilot, recalibration and inference at these prices."""
    pilot, recalibration, inference = prices
    nodes: list[Node] = []
    if cost.epsilon_or_mu(pilot):
        nodes.append(Sequential(pilot_nodes(fit, pilot), pilot, "center"))
    if isinstance(fit, LangevinFit):
        nodes.append(HazardChain(fit, verbose))
    else:
        nodes.append(fit.minimiser())
    if cost.epsilon_or_mu(recalibration):
        nodes.append(Sequential(risk_nodes(fit, recalibration), recalibration, "recalibration"))
    if cost.epsilon_or_mu(inference):
        price = cost.share_of(inference, OUTCOME_PART)
        counts = OutcomeCounts(price=price, fit=fit)
        moments = HazardMoments.planned(fit, cost.subtract(inference, price))
        nodes.append(Sequential((counts, moments), inference, "inference"))
    unit = "mu" if delta else "epsilon"
    stated = {f"{unit}_center": 0.0, f"{unit}_recalibration": 0.0, **fit.promises.public_inputs()}
    tree = Sequential(tuple(nodes))
    assumed = arithmetic(fit.distribution), *fit.promises.assumptions()
    return hazard_plan(fit.model, fit.epsilon, fit.alpha, tree, delta, assumed, stated)
