"""The plan of a perturbed hazard fit: a first look, a noisy minimiser, and what sets it right.

A first look spends ``center_share`` of epsilon on a life table, which gives the baseline to shrink
to, and on the covariates' mean: rows are centred by it and clipped to the spread that is left. When
coefficients are released, ``recalibration_share`` pays for a table of their scores over time, which
corrects level, course and slope of the hazard, and ``inference_share`` for standard errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skdpsurv.mechanisms.vector_noise import arithmetic
from skdpsurv.privacy.concentrated import Price, amount, left, part, parts
from skdpsurv.privacy.measurement import Measurement
from skdpsurv.privacy.plan import Node, Plan, Sequential
from skdpsurv.privacy.shares import what_is_left
from skdpsurv.survival import hazard_constants as tuned
from skdpsurv.survival.hazard_chain import HazardChain, LangevinFit
from skdpsurv.survival.hazard_fit import HazardFit, HazardMinimiser
from skdpsurv.survival.hazard_inference import ExitCounts, HazardMoments
from skdpsurv.survival.hazard_look import LifeTable, RowMean
from skdpsurv.survival.hazard_plans import HazardModel, hazard_plan
from skdpsurv.survival.recalibration import PLACES_PART
from skdpsurv.survival.risk_table import RiskPlaces, RiskTable

__all__ = ["fit_of", "perturbed_plan"]


def fit_of(
    model: HazardModel,
    epsilon: float,
    method: str,
    alpha: float,
    shares: Sequence[float],
    delta: float = 0.0,
    kind: type[HazardFit] = HazardFit,
    **options: Any,
) -> tuple[HazardFit, tuple[Price, Price, Price]]:
    """Return what is public of a fit, and the prices of look, recalibration and inference.

    Parameters
    ----------
    model : HazardModel
    epsilon : float
    method : str
    alpha : float
    shares : sequence of float
        Of epsilon, for these three; nothing of what n and epsilon are too small for.
    delta : float, default=0.0
        Positive for Gaussian noise.
    kind : type of HazardFit
    **options
        Of this type.
    """
    enough = model.n_records * epsilon >= tuned.FIRST_LOOK_RECORDS
    shares = [share if enough else 0.0 for share in shares]
    own: Price
    others: tuple[Price, Price, Price]
    if delta:
        # Squares of mus add up, so that small parts cost little: they get twice their share.
        own, *rest = parts(epsilon, delta, [1.0 - sum(shares), *(2.0 * s for s in shares)])
        others = (rest[0], rest[1], rest[2])
    else:
        others = (shares[0] * epsilon, shares[1] * epsilon, shares[2] * epsilon)
        own = what_is_left(epsilon, *(amount(price) for price in others))
    looks, weighed = amount(others[0]) > 0.0, amount(others[2]) > 0.0
    fit = kind(model, epsilon, method, alpha, own, looks=looks, weighed=weighed, **options)
    return fit, others


def perturbed_plan(
    fit: HazardFit, prices: tuple[Price, Price, Price], delta: float = 0.0, verbose: int = 0
) -> Plan:
    """Return the plan of a fit, with what comes before and after it at these prices."""
    center, recalibration, inference = prices
    nodes: list[Node] = []
    if amount(center):
        of_table = part(center, tuned.TABLE_PART)
        look = LifeTable(price=of_table, fit=fit), RowMean(price=left(center, of_table), fit=fit)
        nodes.append(Sequential(look, center, "center"))
    point: Measurement = HazardMinimiser(fit)
    if isinstance(fit, LangevinFit):
        point = HazardChain(fit, verbose)
    nodes.append(point)
    if amount(recalibration):
        of_places = part(recalibration, PLACES_PART)
        of_table = left(recalibration, of_places)
        table = (
            RiskTable(price=of_table, fit=fit),
            RiskPlaces(price=of_places, fit=fit, of_table=of_table),
        )
        nodes.append(Sequential(table, recalibration, "recalibration"))
    if amount(inference):
        of_exits = part(inference, tuned.EXITS_PART)
        moments = HazardMoments.planned(fit, left(inference, of_exits))
        nodes.append(
            Sequential((ExitCounts(price=of_exits, fit=fit), moments), inference, "inference")
        )
    unit = "mu" if delta else "epsilon"
    return hazard_plan(
        fit.model,
        fit.epsilon,
        fit.alpha,
        Sequential(tuple(nodes)),
        delta,
        arithmetic(fit.law),
        # Unless a node states what it spends.
        {f"{unit}_center": 0.0, f"{unit}_recalibration": 0.0},
    )
