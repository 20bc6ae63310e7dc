"""Check the arithmetic of a release without trusting the program that wrote it.

This file needs the standard library alone: ``python -I verify.py release.json`` ends with 0 for
verified, 9 refuted, 10 not covered. It reads the tree of measurements that a release states, each
with its query or loss, sensitivity, law, scale and price, computes sensitivities and prices again,
adds these up, and compares the sum with the guarantee. Numbers are exact rationals, as a double is
one; logarithms and roots are rounded upwards. What no file can show is taken for granted, and
printed: that the program drew the noise that is stated, and that a record moves an answer by no
more than its query or loss says.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

#: What a release may be, and the exit codes that say so.
CODES = {"verified": 0, "refuted": 9, "not covered": 10}
#: Relative allowances: for the doubles of a bound and of a price, for numbers that follow from
#: others, for what a tree may leave unspent (a missing measurement leaves more), and for a solver.
_ULPS, _ROUNDING, _NEAR = Fraction(1, 2**48), Fraction(1, 2**40), Fraction(1, 10**11)
_UNSPENT, _SOLVER = Fraction(1, 10**6), Fraction(1, 50)
#: The program hides a solver by at least so much noise, which may cost less than its price.
_LEAST_NOISE = 1.001e-9
_DIGITS, _PAD = Context(prec=60), Fraction(1, 10**50)
_ZERO = Fraction()
_sum: Callable[..., Fraction] = partial(sum, start=_ZERO)  # type: ignore[assignment]
_STATUSES = ("proved", "asymptotic", "asserted", "seeded", "none")
_SAID = {"-person": "person names whose", "-same-group": "the group of each record"}
#: Theorems of docs/proofs, by law.
_THEOREMS = {
    "laplace": "noise.md: discrete Laplace noise on integers",
    "gaussian": "gaussian.md: discrete Gaussian noise on integers",
    "spherical laplace": "noise.md: L2-Laplace noise on vectors",
    "spherical gaussian": "gaussian.md: Gaussian noise on vectors",
    "semidefinite laplace": "noise.md: noise on symmetric matrices",
    "objective perturbation": "objective_perturbation.md, stacking.md: perturbed minimisers",
    "output perturbation": "output_perturbation.md: noise on a minimiser",
    "noisy gradients": "gaussian.md: noisy gradients",
    "permute-and-flip": "noise.md: choices by permute-and-flip",
    "ladder": "ladder.md: a ladder is drawn at its epsilon, and a record moves it by one level",
    "that of each fit": "the fit of every candidate keeps within its price, as the stated one",
}
#: The word for what no rule here is about.
_NEW = "not covered"
_NORMS = {"laplace": "L1", "gaussian": "squared L2", "semidefinite laplace": "traces"}
_SPHERICAL = {"spherical laplace": "epsilon", "spherical gaussian": "mu"}


class _EndError(Exception):
    """A word of ``CODES``, and the reason for it."""


def _need(holds: object, otherwise: str, word: str = "refuted") -> None:
    if not holds:
        raise _EndError(word, otherwise)


@dataclass
class Verdict:
    """What was found: ``word`` is one of ``CODES``."""

    word: str
    reason: str = ""
    granted: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yield the verdict as text."""
        yield f"{self.word}: {self.reason}"
        yield from (f"  taken for granted: {what}" for what in self.granted)


# ---- Numbers of a file, and functions of them.


def _number(value: Any, what: str, least: float = 0.0) -> Fraction:
    good = isinstance(value, int | float) and type(value) is not bool and math.isfinite(value)
    _need(good and value >= least, f"{what} is no number from {least:g} on")
    return Fraction(value)


class _Node(dict[str, Any]):
    """An object of JSON, whose fields are read as what they must be."""

    def have(self, name: str) -> Any:
        _need(name in self, f"{name!r} is not stated, as by older versions", _NEW)
        return self[name]

    def number(self, name: str, least: float = 0.0) -> Fraction:
        return _number(self.have(name), name, least)

    def positive(self, name: str) -> Fraction:
        return _number(self.have(name), name, 5e-324)

    def count(self, name: str, least: int = 1, most: float = math.inf) -> int:
        good = type(self.have(name)) is int and self[name] <= most
        _need(good, f"{name} is no integer up to {most:g}")
        return int(self.number(name, least))

    def several(self, name: str) -> list[Any]:
        found = self.have(name)
        return found if isinstance(found, list) else [found]

    def each(self, name: str) -> list[Fraction]:
        return [_number(one, name) for one in self.several(name)]

    def part(self, name: str) -> _Node:
        _need(isinstance(self.have(name), _Node), f"{name} is no object")
        return _Node(self[name])


def _decimal(value: Fraction) -> Decimal:
    return _DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))


def _log(value: Fraction) -> Fraction:
    found = Fraction(_DIGITS.ln(_decimal(value)))  # right to its last digit
    return found + _PAD * (1 + abs(found))


def _root(value: Fraction | int) -> Fraction:
    return Fraction(math.isqrt(math.ceil(value * 2**400)) + 1, 2**200)


def _bound(stated: Fraction, needed: Fraction, what: str, above: Any = _NEAR) -> Fraction:
    """Return a stated bound, which must be as large as needed and hardly larger."""
    holds = needed * (1 - _ULPS) <= stated <= needed * (1 + above)
    _need(holds, f"{what} is {float(stated):.12g}, and follows as {float(needed):.12g}")
    return stated


# ---- Prices: an epsilon, a mu of Gaussian noise, or rho, eta and gamma of the best of many runs.

_Prices = tuple[tuple[str, Any], ...]
#: Prices one after another, on each of several sets of records that share nobody.
_Cost = list[_Prices]


def _stated_cost(price: Any) -> _Cost:
    _need(isinstance(price, _Node) and len(price) == 1, "a price is none")
    ((kind, value),) = price.items()
    if kind in ("sequence", "disjoint"):
        each = [_stated_cost(one) for one in price.several(kind)]
        return _sequence(each) if kind == "sequence" else [one for own in each for one in own]
    _need(kind in ("epsilon", "mu"), "a price is in another unit")
    _need(value != "inf", "a measurement costs an infinite epsilon: nothing is promised", _NEW)
    return [((kind, price.number(kind)),)]


def _sequence(costs: Iterable[_Cost]) -> _Cost:
    found: _Cost = [()]
    for cost in costs:
        found = list(dict.fromkeys(a + b for a, b in product(found, cost)))
        _need(len(found) <= 10_000, "there are more sets of people than are added up here", _NEW)
    return found


def _gaussian(prices: _Prices) -> bool:
    return any(kind != "epsilon" for kind, _ in prices)


def _rho(prices: Iterable[tuple[str, Any]]) -> Fraction:
    return _sum(value**2 / 2 for _, value in prices)  # an epsilon is worth as much as a mu


def _size(cost: _Cost) -> tuple[bool, Fraction]:
    """Return whether noise is Gaussian, and the largest rho, or else epsilon, of a set."""
    several = any(kind == "runs" for prices in cost for kind, _ in prices)
    _need(not several, "a random number of runs has no total")
    if any(map(_gaussian, cost)):
        return True, max(map(_rho, cost))
    return False, max(_sum(value for _, value in prices) for prices in cost)


def _pays(price: _Cost, found: _Cost, what: str, unspent: Fraction = _UNSPENT) -> None:
    (kind, most), (own, spent) = _size(price), _size(found)
    words = f"{what}: its noise costs {float(spent):.12g}, and its price is {float(most):.12g}"
    _need(kind == own and most * (1 - unspent) <= spent <= most * (1 + _ROUNDING), words)


def _converted(order: Fraction, delta: Fraction) -> Fraction:
    """Return epsilon at delta less the divergence of an order (Canonne et al. 2020)."""
    return _log(1 - 1 / order) + (_log(1 / delta) + _log(1 / order)) / (order - 1)


def _epsilon_at(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an epsilon of rho-zCDP at delta: that of any order holds."""
    if not rho:
        return rho
    scale, lost = float(rho), math.log(delta)

    def at(x: float) -> float:  # of the order 1 + exp(x): it has one minimum
        a = math.exp(x)
        return scale * a + x - (1 + 1 / a) * math.log1p(a) - lost / a

    best = 0.5 * math.log(-lost / scale)
    for width in (5.0, 0.5, 0.05, 5e-3, 5e-4, 5e-5, 5e-6):
        best = min((best + width * k / 16 for k in range(-16, 17)), key=at)
    order = 1 + Fraction(math.exp(best))
    return max(_ZERO, rho * order + _converted(order, delta))


def _mean_runs(eta: Fraction, gamma: Fraction) -> Fraction:
    if gamma == 1:
        return gamma
    odds = _log(1 / gamma)
    power = Fraction(_DIGITS.exp(_decimal(-eta * odds)))
    return (eta / (1 - power) if eta else 1 / odds) * (1 - gamma) / gamma


def _divergence(prices: _Prices, order: Fraction) -> Fraction:
    """Return a bound for the best of K runs, and a last fit (Papernot and Steinke 2022)."""
    runs = [value for kind, value in prices if kind == "runs"]
    _need(len(runs) == 1, "there is more than one random number of runs")
    ((rho, eta, gamma),) = runs
    odds = _log(1 / gamma)
    beta = max(Fraction(1), Fraction(math.sqrt(odds / rho)) if rho else _ZERO)
    hidden = (1 + eta) * ((beta - 1) * rho + odds / beta)
    rest = _rho(one for one in prices if one[0] != "runs")
    return order * (rho + rest) + hidden + _log(_mean_runs(eta, gamma)) / (order - 1)


def _epsilon_of(prices: _Prices, delta: Fraction) -> Fraction:
    pure = _sum(value for kind, value in prices if kind == "epsilon")
    if not _gaussian(prices):
        return pure
    if any(kind == "runs" for kind, _ in prices):
        orders = (1 + Fraction(2.0 ** (step / 8.0)) for step in range(-24, 81))
        return min(_divergence(prices, order) + _converted(order, delta) for order in orders)
    beside = _epsilon_at(_rho(one for one in prices if one[0] == "mu"), delta)
    return min(_epsilon_at(_rho(prices), delta), pure + beside)


# ---- Queries.


def _integers(query: _Node) -> list[tuple[Fraction, Fraction, Fraction]]:
    """Return sensitivity in L1, its square in L2, and lattice of each part of an answer."""
    kind, step = query.have("kind"), Fraction(1)
    if "exponent" in query:
        step = Fraction(2) ** query.count("exponent", -1000, 1000)
    if kind in ("Histogram", "Histograms"):
        one = kind == "Histogram"
        moves = [query.number("sensitivity", 2)] if one else [2 * u for u in query.each("units")]
        _need(all(k and k % 2 == 0 for k in moves), "a record moves a histogram by two units")
        return [(k, k * k / 2, step if one else 2 / k) for k in moves]
    if kind == "Sum":
        apart = query.number("high", -math.inf) - query.number("low", -math.inf)
        return [(apart, apart**2, step)]
    if kind == "Sums":
        n, move = query.number("number"), query.number("each")
        return [(n * move, n * move**2, step)]
    _need(kind == "CellSums", f"a query of the kind {kind!r:.40}", _NEW)
    apart = far = Fraction(2 * round(query.positive("size") / step))
    if query.get("distance") is not None:
        far = Fraction(round(query.positive("distance") / step) + 2)
    return [(apart, far**2, step)]


def _vectors(query: _Node, law: str) -> tuple[Fraction, int]:
    """Return the sensitivity of a mean or of second moments, and the number of its entries."""
    kind, n = query.have("kind"), query.count("n_records")
    error = Fraction(1, 2**31) + Fraction(n, 2**52)
    if kind == "MeanOfRows":
        d = query.count("n_features")
        return 2 * (1 + _root(d) * error) * query.positive("data_norm") / n, d
    if kind == "ColumnMoments":
        columns, squares = query.count("n_columns"), query.count("n_squares", 0)
        move, d = query.count("squared_move"), columns + squares
        _need(squares <= columns and move <= 4 * columns, "a column moves by at most 2")
        return (_root(move) + 2 * _root(d) * error) / n, d
    _need(kind == "SecondMoments", f"a query of the kind {kind!r:.40}", _NEW)
    width = query.count("width")
    trace = (query.positive("norm") + _root(width) / 2**16) ** 2 + width * _root(width) * n / 2**50
    return trace * (1 if law == "semidefinite laplace" else _root(2)), width * (width + 1) // 2


def _check_lattice(step: Fraction, scale: Fraction) -> None:
    """Refuse what is not the largest power of two up to scale / 256."""
    odd = step.numerator & (step.numerator - 1) | step.denominator & (step.denominator - 1)
    _need(step and not odd and step <= scale / 256 < 2 * step, "a lattice is not that of its scale")


def _check_query(node: _Node, price: _Cost) -> None:
    law, query, scales = node["law"], node.part("query"), node.each("scale")
    _need(node.have("norm") == _NORMS.get(law, "L2") and all(scales), f"{law}: its norm or scale")
    pure, stated, steps = law.endswith("laplace"), node.each("sensitivity"), node.each("lattice")
    if law in ("laplace", "gaussian"):
        parts = _integers(query)
        if len(parts) == len(stated) == len(steps) == 1:  # one question, with several answers
            parts, stated, steps = parts * len(scales), stated * len(scales), steps * len(scales)
        spent, variance = [], _ZERO
        for (l1, l2, step), scale, move, own in zip(parts, scales, stated, steps, strict=True):
            _bound(move, l1 if pure else l2, "a sensitivity")
            _bound(own, step, "a lattice")
            spent.append((l1 if pure else _root(l2)) / scale)
            variance = max(variance, (2 if pure else 1) * (scale * step) ** 2)
    else:
        apart, d = _vectors(query, law)
        (scale,), (move,), (own,) = scales, stated, steps
        _bound(move, apart, "a sensitivity")
        _check_lattice(own, scale)
        spent, variance = [apart / scale], scale**2 * (d + 1 if law == "spherical laplace" else 1)
        if law == "semidefinite laplace":
            w = query.count("width")
            square = Fraction(w + 3, 2 * w * (d + 1)) * (1 + Fraction(d, d + 2))
            variance *= 2 * d * (2 * d + 1) * (square - Fraction(2 * d, (d + 1) * w**2))
    _bound(node.number("variance"), variance, "a variance")
    unit = "epsilon" if pure else "mu"
    _pays(price, [tuple((unit, one) for one in spent)], f"{law} noise")


# ---- Losses: S, tau and r of one record, from public numbers alone.


def _curvature(link: str, slope: Fraction) -> Fraction:
    """Return the largest curvature of survival up to a slope; of probit, ten digits."""
    if link == "cloglog":
        return slope
    if link == "logit":
        return min(slope, Fraction(1, 2)) * (1 - min(slope, Fraction(1, 2)))
    y, low, high = float(slope), -37.0, max(float(slope), 1.0)
    for _ in range(200 if y < 30.0 else 0):  # the inverse Mills ratio is y at low
        x = 0.5 * (low + high)
        ratio = math.sqrt(2 / math.pi) * math.exp(-0.5 * x**2) / math.erfc(x / math.sqrt(2))
        low, high = (low, x) if ratio > y else (x, high)
    return Fraction(min(y * (y - low), 1.0)) * (1 - 10 * _NEAR)


#: Links, and the largest curvature of an event.
_LINKS = {"logit": Fraction(0.25), "cloglog": Fraction(0.4128), "probit": Fraction(1)}


def _constants(loss: _Node) -> tuple[Fraction, Fraction, int, int]:
    """Return S, tau and r, and the number of parameters (discrete_hazard.md, linear.md)."""
    norm, d = loss.positive("data_norm"), loss.count("n_features", 0)
    if loss.have("kind") != "hazard":
        slope, bend = loss.positive("slope"), loss.positive("curvature")
        logistic = slope <= 1 and bend == Fraction(1, 4)
        _need(logistic or loss["kind"] != "LogisticLoss", "a logistic loss is not as steep")
        return 2 * slope * norm, bend * norm**2, 1, d
    slope, radius, diameter = map(loss.positive, ("event_slope", "radius", "diameter"))
    q, n_basis, link = loss.count("n_intervals"), loss.count("n_basis"), loss.have("link")
    known = link in _LINKS and (slope == 1 or link == "probit")
    _need(diameter <= 2 * radius and known, "radius, diameter, link and slope do not fit together")
    strata = loss.count("n_strata") if "n_strata" in loss else 1
    diameter = max(diameter, _root(2 * radius**2)) if strata > 1 else diameter
    caps = [slope * (q if cap is None else _number(cap, "a cap")) for cap in loss.several("caps")]
    _need(link == "logit" or None not in loss["caps"], "without a cap a gradient has no bound")
    _need(len(caps) <= 100, "more causes than are looked at here", _NEW)
    caps = [min(cap, Fraction(q)) for cap in caps] if link == "logit" else caps
    bends = _LINKS[link] + q * _sum(_curvature(link, cap / q) for cap in caps)
    weights = (0, 1) if loss.have("weighted") else (1,)
    reach, width, n_functions, n_terms = _over_time(loss)

    def length(u: Fraction, v: Fraction) -> Fraction:  # discrete_hazard.md, effects that change
        return _root((u - v) ** 2 + (min(u, v) * width + abs(u - v) * reach) ** 2)

    def largest(cap: Fraction, sign: int, v: Fraction, v2: Fraction) -> Fraction:
        found = []
        for u, u2, w, w2 in product((_ZERO, cap), (_ZERO, cap), weights, weights):
            plus, minus = w * u + w2 * v2, w2 * u2 + w * v
            baseline = min(plus, minus) * diameter + abs(plus - minus) * radius
            moved = length(u, v) + length(u2, v2) if n_terms else abs(u - v + sign * (u2 - v2))
            found.append(baseline**2 + (norm * moved) ** 2)
        return max(found)

    square = max(  # competing_risks.md, theorem 1; of one cause it is that of discrete_hazard.md
        _sum(largest(h, sign, slope * (j == c), slope * (j == c2)) for j, h in enumerate(caps))
        for sign in (1, -1)
        for c, c2 in product(range(len(caps) + 1), repeat=2)
    )
    _need(len(caps) == 1 or not n_terms, "causes whose effects change", _NEW)
    n_params = (len(caps) if strata == 1 else strata) * n_basis + len(caps) * d + n_terms
    trace = bends * (radius**2 + norm**2 * (1 + reach**2))
    return _root(square), trace, len(caps) * min(q, n_basis + n_functions), n_params


def _over_time(loss: _Node) -> tuple[Fraction, Fraction, int, int]:
    """Return the norm and distance of functions of time, their number, and that of products."""
    if "n_terms" not in loss:
        return _ZERO, _ZERO, 0, 0
    reach, width = loss.positive("reach"), loss.positive("width")
    _need(width <= 2 * reach, "functions of time are further apart than they are long")
    return reach, width, loss.count("n_functions"), loss.count("n_terms")


def _units(loss: _Node) -> tuple[Fraction, Fraction]:
    """Return k and m, the units of 2^-53 by which a gradient may be rounded (rounding.md)."""
    d = Fraction(loss["n_features"])
    if loss["kind"] != "hazard":
        return Fraction(170), d
    q = loss["n_intervals"]
    sums = 512 + Fraction(2**16, min(256, max(1, 2**15 // q))) + 2 + 2 * q
    strata = loss.get("n_strata", 0)
    k = 1502 + 4 * q + max(sums, Fraction(322)) + (strata if strata > 1 else 0)
    m = d + loss["n_basis"] + (44 if loss["link"] == "probit" else 14)
    m += loss["n_terms"] + 4 if "n_terms" in loss else 0
    return k * (_root(len(loss["caps"])) if len(loss["caps"]) > 1 else 1), m


# ---- Perturbed minimisers, and noisy gradients.


class _Fit:
    """One perturbed fit, with its constants computed again."""

    def __init__(self, stated: _Node, published: bool) -> None:
        loss = stated.part("loss")
        S, tau, r, self.n_params = _constants(loss)
        hazard = loss["kind"] == "hazard"  # whose published sensitivity is larger
        above = 1000 if published and hazard else _NEAR
        digits = 100 * _NEAR if loss.get("link") == "probit" else _NEAR
        self.S = _bound(stated.number("sensitivity"), S, "the sensitivity of a gradient", above)
        self.tau = _bound(stated.number("hessian_trace"), tau, "the trace of a Hessian", digits)
        self.r, self.kappa = stated.count("hessian_rank"), stated.positive("kappa")
        _need(self.r == r, "the rank of a Hessian is another")
        self.stated, self.loss, self.n = stated, loss, stated.count("n_records")
        if hazard or loss["kind"] == "LogisticLoss":
            for name, value in zip(("rounding", "predictor_rounding"), _units(loss), strict=True):
                _bound(stated.number(name), value, f"{name} of a gradient")

    def law(self, name: str) -> tuple[str, Fraction]:
        noise = self.stated.part(f"{name}_noise")
        law = noise.have("law")
        _need(law in _SPHERICAL, f"noise of the law {law!r:.40}", _NEW)
        _need(noise.count("dimension") == self.n_params, "noise is not as long as the parameters")
        return _SPHERICAL[law], noise.positive("scale")

    def error(self, distance: Fraction, kappa: Fraction, noise: Fraction) -> Fraction:
        """Return the largest error of a computed gradient (rounding.md)."""
        k, m, far = map(self.stated.number, ("rounding", "predictor_rounding", "center_norm"))
        total, bend = self.n * self.S, self.n * self.tau
        ridge = 6 * (kappa * (2 * distance + far) + noise + total)
        lengths = (m * bend + 2 * (bend + kappa)) * (distance + far)
        return Fraction(1001, 1000) * ((k + 40) * total + lengths + ridge) / 2**53

    def solver(self) -> Fraction:
        """Return how far a certified point may be from the minimiser (rounding.md)."""
        noise, stated, loss = _ZERO, self.stated, self.stated.have("center_loss")
        if "objective_noise" in stated:
            length = self.n_params + _root(200 * self.n_params) + 100
            noise = self.law("objective")[1] * length
        distance = 2 * (self.n * self.S + noise) / self.kappa
        if loss is None and stated.have("loss_at_zero") != "inf":
            loss = float(stated.number("loss_at_zero") + self.S * stated.number("center_norm"))
        if loss is not None:
            by_loss = _root(2 * self.n * _number(loss, "a loss") / self.kappa)
            distance = min(distance, 2 * noise / self.kappa + by_loss)
        error = self.error(distance * Fraction(1001, 1000), self.kappa, noise)
        least = max(4 * error, Fraction(1e-9))
        return _bound(stated.number("tolerance"), least, "a solver's tolerance") / self.kappa

    def hidden(self, distance: Fraction) -> tuple[str, Fraction]:
        unit, scale = self.law("output")
        _check_lattice(self.stated.number("lattice"), scale)
        return unit, distance / scale


def _together(fits: list[_Fit]) -> tuple[Fraction, Fraction]:
    """Return S and tau of all that the fits of one part read of a record."""
    whole = fits[0].stated.part("whole") if "whole" in fits[0].stated else None
    alike = all(fit.stated.get("whole") == whole and fit.n == fits[0].n for fit in fits)
    _need(alike and (whole is None or len(fits) > 1), "fits do not read the same records")
    if whole is None:
        return _sum(fit.S for fit in fits), _sum(fit.tau for fit in fits)
    S, tau, *_ = _constants(whole)
    steep = all(S >= fit.S and fit.loss.get("slope") == whole.get("slope") for fit in fits)
    _need(steep, "all of a record moves a gradient by less than a part of it")
    return S, tau


def _objective(fits: list[_Fit]) -> tuple[str, Fraction]:
    """Return the epsilon of perturbed minimisers (objective_perturbation.md, stacking.md)."""
    S, tau = _together(fits)
    pure = all(fit.law(name)[0] == "epsilon" for fit in fits for name in ("objective", "output"))
    _need(pure, "objective perturbation by Gaussian noise", _NEW)
    spent = _sum(fit.hidden(2 * fit.solver())[1] for fit in fits)
    # The largest weighted sum of moves, each within its S, and within that of all in L2.
    moves = [(fit.S, 1 / fit.law("objective")[1]) for fit in fits]
    moves.sort(key=lambda pair: pair[0] / pair[1])
    square = S**2
    for k, (bound, weight) in enumerate(moves):
        steep, left = _root(_sum(w**2 for _, w in moves[k:])), _root(max(square, _ZERO))
        if weight * left <= bound * steep:
            spent += steep * left
            break
        spent, square = spent + weight * bound, square - bound**2
    # J, or more: its Lagrange dual is a bound at any level.
    traces = [fit.tau for fit in fits]
    if tau < _sum(traces):
        low, high = min(fit.kappa for fit in fits), max(fit.kappa for fit in fits) + tau
        for _ in range(60):
            level = Fraction(float(low + high) / 2)
            traces = [min(max(f.r * (level - f.kappa), _ZERO), f.tau) for f in fits]
            low, high = (level, high) if _sum(traces) < tau else (low, level)
        spent += abs(tau - _sum(traces)) / level
    logs = (f.r * _log(1 + v / (f.r * f.kappa)) for f, v in zip(fits, traces, strict=True))
    return "epsilon", spent + _sum(logs)


def _output(fits: list[_Fit]) -> tuple[str, Fraction]:
    _together(fits)
    (fit,) = fits
    return fit.hidden(fit.S / fit.kappa + 2 * fit.solver())


def _gradients(fits: list[_Fit]) -> tuple[str, Fraction]:
    """Return the mu of noisy gradients of the parts of a record (gaussian.md)."""
    _need(all(fit.law("gradient")[0] == "mu" for fit in fits), "gradients with Laplace noise", _NEW)
    slack = [2 * fit.error(2000 * fit.S / fit.tau, _ZERO, _ZERO) for fit in fits]
    left, square = (_together(fits)[0] + _sum(slack)) ** 2, _ZERO
    weights = [fit.stated.count("n_steps") / fit.law("gradient")[1] ** 2 for fit in fits]
    moves = [(fit.S + error) ** 2 for fit, error in zip(fits, slack, strict=True)]
    for weight, move in sorted(zip(weights, moves, strict=True), reverse=True):
        square, left = square + weight * min(move, left), left - min(move, left)
    return "mu", _root(square)


_SPENT = {"objective perturbation": _objective, "output perturbation": _output}
_SPENT["noisy gradients"] = _gradients


# ---- The tree, and the guarantee.


class _Tree:
    """A plan that a release states: its cost, and what the guarantee says of it."""

    def __init__(self, plan: Any, published: bool) -> None:
        self.published, self.searches = published, False
        self.gives: dict[str, Any] = {}
        self.granted: dict[str, None] = {}
        self.prices: list[tuple[str, Any]] = []
        self.trained: list[_Cost] = []
        self.n_records: list[int] = []
        self.runs: list[Fraction] = []
        self.fits: list[list[_Fit]] = []
        self.unknown: set[str] = set()
        self.cost = self.walk(plan)

    def priced(self, price: Any) -> _Cost:
        cost = _stated_cost(price)
        kind, spent = _size(cost)
        self.prices += [*cost[0], ("mu", _root(2 * spent)) if kind else ("epsilon", spent)]
        return cost

    def walk(self, node: Any) -> _Cost:
        """Return the cost of a node, with all below it checked."""
        _need(isinstance(node, _Node), "a plan is made of nodes")
        kind = node.have("node")
        if kind == "measurement":
            return self.measured(node, self.priced(node.have("price")))
        costs = [self.walk(one) for one in node.several("nodes")]
        if kind == "random number of runs":
            (each_run,) = costs
            eta, gamma = node.number("eta", -1.0), node.positive("gamma")
            _need(-1 < eta <= 1 and gamma <= 1, "eta or gamma is beyond its range")
            needs_delta, spent = _size(each_run)
            self.runs += [eta, _mean_runs(eta, gamma)]
            return [
                (("runs", (spent, eta, gamma)) if needs_delta else ("epsilon", (2 + eta) * spent),)
            ]
        if kind == "disjoint":
            if any(one.get("law") == "that of each fit" for one in node["nodes"]):
                self.searches = len(costs) == 2  # candidates, and what tells the best
                _pays(costs[0], costs[-1], "what tells the best candidate")
            return [one for cost in costs for one in cost]
        _need(kind in ("sequence", "choice"), f"a node of the kind {kind!r:.40}", _NEW)
        found = _sequence(costs)
        if "total" not in node and kind == "sequence":
            return found
        total = self.priced(node.have("total"))
        _pays(total, found, f"a {kind}")
        return total

    def measured(self, node: _Node, price: _Cost) -> _Cost:
        law, (needs_delta, most) = node.have("law"), _size(price)
        if law == "none" and not most:
            _need(not {"query", "gives", "fits"} & {*node}, "an answer about records has no noise")
            self.granted[f"public, and no answer about records: {node.have('name')}"] = None
            return price
        _need(law != "sanitised posterior", "a theorem about the limit of a chain only", _NEW)
        _need(law in _THEOREMS, f"a measurement of the law {law!r:.60}", _NEW)
        self.granted[_THEOREMS[law]] = None
        if law in _SPENT:
            self.perturbed(node, price)
        elif law in ("permute-and-flip", "ladder"):
            spent = node.each("epsilon")
            moves = node.each("sensitivity") if law != "ladder" else [2**30]
            _need(moves == [2**30] * len(spent), "a loss is at most 1, in units of 2^-30")
            _pays(price, [tuple(("mu" if needs_delta else "epsilon", one) for one in spent)], law)
        elif law == "that of each fit":
            self.trained.append(price)
        else:
            _check_query(node, price)
            self.n_records += [n for name, n in node["query"].items() if name == "n_records"]
        if "gives" in node:
            self.gives[node["gives"]] = {"law": law, "variance": node["variance"]}
        return price

    def perturbed(self, node: _Node, price: _Cost) -> None:
        """Compare the calibration of perturbed fits with their price."""
        parts: dict[tuple[int, int], list[_Fit]] = {}
        unspent = Fraction(1) if self.published else _UNSPENT
        for stated in node.several("fits"):
            _need(isinstance(stated, _Node), "a fit is no object")
            fit = _Fit(stated, self.published)
            key = stated.count("part", 0), stated.count("models", most=1000)
            parts.setdefault(key, []).append(fit)
            self.unknown |= {fit.loss["kind"]} - {"hazard", "LogisticLoss"}
            if "output_noise" in stated and fit.law("output")[1] <= _LEAST_NOISE:
                unspent = max(unspent, _SOLVER)
        own = [[(_SPENT[node["law"]](fits),) * models] for (_, models), fits in parts.items()]
        apart = "parts" in node  # of the records, or one after another
        sets = own if apart else [_sequence(own)]
        numbered = sorted(part for part, _ in parts) == list(range(len(parts)))
        alike = all(len(prices) == len(found[0]) for prices in price for found in sets)
        _need(numbered and alike, "parts, and models of each, are not those of the price")
        _need(node.get("parts", "disjoint") == "disjoint", "parts are disjoint, or none")
        for found in sets:
            _pays(price, found, node["law"], unspent)
        each = [fits[0].n for fits in parts.values()]
        self.n_records += [sum(each)] if apart else sorted(set(each))
        self.fits.append(parts[next(iter(parts))])


def _check_guarantee(promised: _Node, tree: _Tree) -> str:
    """Compare a guarantee with what a tree costs, and return that."""
    epsilon, delta = promised.positive("epsilon"), promised.number("delta")
    needs_delta = any(map(_gaussian, tree.cost))
    _need(
        needs_delta == (delta > 0) and delta < 1,
        "delta is above 0 where noise is Gaussian, and else 0",
    )
    spent = max(_epsilon_of(one, delta) for one in tree.cost)
    words = f"all costs {float(spent):.12g}, and epsilon is {float(epsilon):.12g}"
    _need(epsilon * (1 - _UNSPENT) <= spent <= epsilon * (1 + _ROUNDING), words)
    runs = any(kind == "runs" for prices in tree.cost for kind, _ in prices)
    has_rho = all(map(_gaussian, tree.cost)) and not runs
    _need(("rho" in promised) == has_rho, "rho is stated where all noise is Gaussian")
    if has_rho:
        _bound(promised.number("rho"), max(map(_rho, tree.cost)), "rho")
    curve, last, least = promised.get("renyi", []), math.inf, None
    _need(bool(curve) == runs, "divergences are those of a search")
    for order, value in reversed(curve):
        _need(1 < order < last, "orders rise from 1 on")
        found = _divergence(tree.cost[0], Fraction(order))
        least, last = found if least is None else min(least, found), order  # higher ones hold
        _bound(_number(value, "a divergence"), least, "a Renyi divergence")
    return f"epsilon {float(spent):.9g}" + (f" at delta {float(delta):.3g}" if delta else "")


_OF_LOSS = {"max_residual": "slope"} | {n: n for n in ("link", "n_intervals", "n_strata")}
_OF_FITS = {"gradient_sensitivity": "sensitivity", "prior_precision": "kappa"}
_OF_FITS |= {n: n for n in ("hessian_trace", "hessian_rank", "kappa", "n_steps")}


def _of_fit(fit: _Fit, name: str) -> Any:
    """Return what a guarantee states of a fit, too."""
    if name == "noise_scale":
        noises = (fit.stated.get(f"{law}_noise") for law in ("objective", "gradient", "output"))
        return next(noise for noise in noises if noise)["scale"]
    return fit.loss.get(_OF_LOSS[name]) if name in _OF_LOSS else fit.stated.get(_OF_FITS[name])


def _check_inputs(inputs: _Node, tree: _Tree) -> None:
    """Compare the public numbers that a guarantee states with those of the tree."""
    for name, value in inputs.items():
        kind, of_fit = name.split("_")[0], name.removeprefix("high_level_")
        if kind in ("epsilon", "mu", "rho"):
            of = [one for one in tree.prices if one[0] == kind or kind == "rho"]
            known = [_rho([one]) if kind == "rho" else one[1] for one in of]
            known += [_ZERO] * name.endswith(("_center", "_recalibration"))
            for stated in inputs.each(name):
                near = any(abs(stated - one) <= _NEAR * one for one in known)
                _need(near, f"no measurement costs {name}, {float(stated):.9g}")
        if tree.fits and of_fit in (*_OF_LOSS, *_OF_FITS, "noise_scale"):
            own = [[_of_fit(fit, of_fit) for fit in fits] for fits in tree.fits]
            last = own[-1 if name != of_fit else 0]
            if isinstance(value, _Node) and name != "n_steps":  # which neither end bounds
                low, high = sorted(map(value.number, ("from", "to")))
                _need(all(0.95 * low <= one <= 1.05 * high for one in last), f"{name} of a fit")
            elif not isinstance(value, _Node):
                same = value in own if isinstance(value, list) else {value} == {*last}
                _need(same, f"{name} is not that of the fits")
    for kind in ("epsilon", "mu"):
        if f"{kind}_fit" in inputs:
            names = [name for name in inputs if name.startswith(f"{kind}_")]
            parts = tuple((kind, value) for name in names for value in inputs.each(name))
            _pays(tree.cost, [parts], "the prices that the guarantee states")
    levels = [inputs[name] for name in ("n_low_level", "n_high_level") if inputs.get(name)]
    n = inputs.get("n_records", inputs.get("n_private"))
    whole = tree.n_records == levels and sum(levels) == n if levels else {*tree.n_records} <= {n}
    _need(whole or n is None, "n_records is not that of the fits")
    if tree.runs and "eta" in inputs:
        _need(tree.runs[0] == inputs["eta"], "eta is not that of the runs")
        near = abs(inputs.number("expected_runs") / tree.runs[1] - 1) < 1e-9
        _need(near, "expected_runs are not those of eta and gamma")


def _check_part(release: _Node, prefix: str) -> tuple[_Tree, str]:
    promised, plan = release.part(f"{prefix}guarantee"), release.get(f"{prefix}plan")
    status, neighbours = promised.have("status"), str(promised.have("neighbours"))
    relation, said = neighbours, [str(one) for one in promised.have("assumptions")]
    for suffix, words in _SAID.items():
        told = any(one.startswith(words) for one in said)
        _need((suffix in neighbours) == told, f"{neighbours}, and assumptions say otherwise")
        relation = relation.replace(suffix, "")
    _need(relation == "replace-one" and status in _STATUSES, "unknown neighbours or status")
    _need(promised.have("epsilon") != "inf", "epsilon is infinite: nothing is promised", _NEW)
    _need(plan is not None, "no plan is stated, as by older versions", _NEW)
    tree = _Tree(plan, str(release.get("estimator")).startswith("Published"))
    found = _check_guarantee(promised, tree)
    _check_inputs(promised.part("public_inputs"), tree)
    _need(status in ("proved", "asserted"), f"the status is {status!r}, which is no promise", _NEW)
    known = not tree.unknown or status == "asserted"
    _need(known, f"a loss of the kind {', '.join(sorted(tree.unknown))}", _NEW)
    return tree, found


def _check_release(release: Any) -> Verdict:
    _need(isinstance(release, _Node), "the file is no release")
    _need(release.have("schema_version") == 3, "the layout is not that of version 3", _NEW)
    noise = release.part("noise")
    pooled = any(noise.part(name).get("law") == "sum" for name in noise)
    _need(not pooled, "a pool of releases: check each of them", _NEW)
    tree, found = _check_part(release, "")
    last = tree
    if release.get("fit_guarantee") is not None:
        last, _ = _check_part(release, "fit_")
        kind, spent = _size(last.cost)
        most = [size for own, size in map(_size, tree.trained) if own == kind]
        within = tree.searches and most and spent <= max(most) * (1 + _ROUNDING)
        _need(within, "a last fit costs more than a search has for it")
    else:
        _need(not tree.trained and release.get("fit_plan") is None, "a last fit has no guarantee")
    _need(release["noise"] == last.gives, "the noise on values is not that of the plan")
    granted = [*tree.granted, "the program drew this noise, once, and published nothing else"]
    granted.append("a record is clipped and counted as its queries and losses say")
    if tree.fits:
        granted.append("rounding.md: roundings and losses at the centre; points are certified")
    granted += [f"the slope and the curvature of {kind}" for kind in sorted(tree.unknown)]
    promised = release["guarantee"]
    words = f"{release.get('estimator')}, {found}, {promised['neighbours']}, {promised['status']}"
    return Verdict("verified", words, granted)


def _unrepeated(pairs: Sequence[tuple[str, Any]]) -> _Node:
    found = _Node(pairs)
    _need(len(found) == len(pairs), "a key is there twice")
    return found


def verify(text: str) -> Verdict:
    """Check the text of a release.

    Examples
    --------
    >>> from skdpsurv.verify import verify
    >>> verify("{}").word
    'not covered'
    """
    try:
        return _check_release(json.loads(text, object_pairs_hook=_unrepeated))
    except _EndError as error:
        return Verdict(*error.args)
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
        return Verdict("refuted", "the file is no release as the program writes it")


def worst(verdicts: Iterable[Verdict]) -> int:
    """Return the exit code of several releases together."""
    found = {verdict.word for verdict in verdicts}
    return next((CODES[word] for word in ("refuted", "not covered") if word in found), 0)


def main(arguments: Sequence[str]) -> int:
    """Check files, print the verdicts, and return the exit code."""
    found = [verify(Path(path).read_text(encoding="utf-8")) for path in arguments]
    for path, verdict in zip(arguments, found, strict=True):
        print(path, *verdict.lines(), sep="\n")
    return worst(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
