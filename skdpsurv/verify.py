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

import hashlib
import json
import math
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

#: What a release may be, and the exit codes that say so.
CODES = {"verified": 0, "refuted": 9, "not covered": 10}
_NEW = "not covered"
#: Relative allowances: for the doubles of a bound and of a price, for numbers that follow from
#: others, for what a tree may leave unspent (a missing measurement leaves more), and for a solver.
_ULPS, _ROUNDING, _NEAR = Fraction(1, 2**48), Fraction(1, 2**40), Fraction(1, 10**11)
_UNSPENT, _SOLVER = Fraction(1, 10**6), Fraction(1, 50)
#: The program hides a solver by at least so much noise, which may cost less than its price.
_LEAST_NOISE = 1.001e-9
_DIGITS, _PAD = Context(prec=60), Fraction(1, 10**50)
_ZERO, _ONE = Fraction(0), Fraction(1)
_STATUSES = ("proved", "asymptotic", "asserted", "seeded", "none")
_SAID = {"-person": "person names whose", "-same-group": "the group of each record"}
#: What no release can show.
_GRANTED = (
    "the program drew this noise, once, and published nothing else",
    "a record is clipped and counted as its queries and losses say",
)
#: By law: the unit of its price, the norm of its sensitivity, and the theorem in docs/proofs.
_LAWS = {
    "laplace": ("epsilon", "L1", "noise.md: discrete Laplace noise on integers"),
    "gaussian": ("mu", "squared L2", "gaussian.md: discrete Gaussian noise on integers"),
    "spherical laplace": ("epsilon", "L2", "noise.md: L2-Laplace noise on vectors"),
    "spherical gaussian": ("mu", "L2", "gaussian.md: Gaussian noise on vectors"),
    "semidefinite laplace": ("epsilon", "traces", "noise.md: noise on symmetric matrices"),
}
_THEOREMS = {law: theorem for law, (*_, theorem) in _LAWS.items()} | {
    "objective perturbation": "objective_perturbation.md, stacking.md: perturbed minimisers",
    "output perturbation": "output_perturbation.md: noise on a minimiser",
    "noisy gradients": "gaussian.md: noisy gradients",
    "permute-and-flip": "noise.md: choices by permute-and-flip",
    "ladder": "ladder.md: a ladder is drawn at its epsilon, and a record moves it by one level",
    "that of each fit": "the fit of every candidate keeps within its price, as the stated one",
}


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
        yield _shown(f"{self.word}: {self.reason}")
        yield from (_shown(f"  taken for granted: {what}") for what in self.granted)


def _shown(text: str) -> str:
    """Return a text without what would move a cursor or begin a line: a file may hold it."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


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
        return self.number(name, 5e-324)

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


def _log(value: Fraction) -> Fraction:
    exact = _DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))
    found = Fraction(_DIGITS.ln(exact))  # right to its last digit
    return found + _PAD * (1 + abs(found))


def _root(value: Fraction | int) -> Fraction:
    return Fraction(math.isqrt(math.ceil(value * 2**400)) + 1, 2**200)


def _bound(stated: Fraction, needed: Fraction, what: str, above: Any = _NEAR) -> Fraction:
    """Return a stated bound, which must be as large as needed and hardly larger."""
    holds = needed * (1 - _ULPS) <= stated <= needed * (1 + above)
    _need(holds, f"{what} is {float(stated):.12g}, and follows as {float(needed):.12g}")
    return stated


# ---- Prices: an epsilon, a mu of Gaussian noise, or rho, eta and gamma of the best of many runs.


class _Spent(NamedTuple):
    """Prices of measurements of the same people, one after another, added up."""

    n_prices: int = 0
    n_gaussian: int = 0
    epsilon: Fraction = _ZERO  # of those without a delta
    rho: Fraction = _ZERO  # of all, as an epsilon is worth as much as a mu
    rho_of_mu: Fraction = _ZERO  # of those with a delta
    runs: tuple[tuple[Fraction, Fraction, Fraction], ...] = ()

    @classmethod
    def of(cls, unit: str, value: Fraction) -> _Spent:
        rho = value**2 / 2
        return cls(1, 1, _ZERO, rho, rho) if unit == "mu" else cls(1, 0, value, rho)

    def plus(self, other: _Spent) -> _Spent:
        pairs: Any = zip(self, other, strict=True)
        return _Spent(*(a + b for a, b in pairs))


#: What each of several sets of people spends that share nobody.
_Cost = list[_Spent]


def _sequence(costs: Iterable[_Cost]) -> _Cost:
    found = [_Spent()]
    for cost in map(dict.fromkeys, costs):
        few = len(found) * len(cost) <= 1_000
        _need(few, "there are more sets of people than are added up here", _NEW)
        found = list(dict.fromkeys(one.plus(other) for one, other in product(found, cost)))
    return found


def _size(cost: _Cost) -> tuple[str, Fraction]:
    """Return the unit of a cost, and the largest rho, or else epsilon, of a set."""
    _need(not any(one.runs for one in cost), "a random number of runs has no total")
    if any(one.n_gaussian for one in cost):
        return "mu", max(one.rho for one in cost)
    return "epsilon", max(one.epsilon for one in cost)


def _covers(price: _Cost, found: _Cost) -> bool:
    """Say whether one set of a price allows all that was found, in each unit, or all as a mu."""

    def within(most: _Spent, own: _Spent) -> bool:
        each = zip(most[2:5], own[2:5], strict=True)  # epsilon, rho, rho of mu
        pairs = (*each,), ((most.rho_of_mu, own.rho),)
        return any(all(b <= a * (1 + _ROUNDING) ** 2 for a, b in some) for some in pairs)

    return any(all(within(most, own) and not own.runs for own in found) for most in price)


def _pays(price: _Cost, found: _Cost, what: str, unspent: Fraction = _UNSPENT) -> None:
    (unit, most), (own, spent) = _size(price), _size(found)
    words = f"{what}: its noise costs {float(spent):.12g}, and its price is {float(most):.12g}"
    _need(unit == own and most * (1 - unspent) <= spent <= most * (1 + _ROUNDING), words)
    _need(_covers(price, found), f"{what}: its price is of other noise")


def _mean_runs(eta: Fraction, gamma: Fraction) -> Fraction:
    if gamma == 1:
        return gamma
    odds = _log(1 / gamma)
    power = -eta * odds
    power = Fraction(_DIGITS.exp(_DIGITS.divide(power.numerator, power.denominator)))
    return (eta / (1 - power) if eta else 1 / odds) * (1 - gamma) / gamma


def _divergence(spent: _Spent, order: Fraction) -> Fraction:
    """Return a bound of an order: of the best of K runs that of Papernot and Steinke (2022)."""
    if not spent.runs:
        return order * spent.rho
    _need(len(spent.runs) == 1, "there is more than one random number of runs")
    ((rho, eta, gamma),) = spent.runs
    odds = _log(1 / gamma)
    beta = max(_ONE, Fraction(math.sqrt(odds / rho)) if rho else _ZERO)
    hidden = (1 + eta) * ((beta - 1) * rho + odds / beta)
    return order * (rho + spent.rho) + hidden + _log(_mean_runs(eta, gamma)) / (order - 1)


def _epsilon_of(spent: _Spent, delta: Fraction) -> Fraction:
    """Return an epsilon at delta: that of any order holds (Canonne et al. 2020)."""

    def at(excess: float, spent: _Spent) -> Fraction:
        order = 1 + Fraction(excess)
        shared = _log(1 - 1 / order) + (_log(1 / delta) + _log(1 / order)) / (order - 1)
        return max(_ZERO, _divergence(spent, order) + shared)

    def least(spent: _Spent) -> Fraction:
        rho, lost = float(spent.rho), -math.log(delta)

        def near(x: float) -> float:  # the same in doubles, of the order 1 + exp(x)
            a = math.exp(x)
            return rho * a + x - (1 + 1 / a) * math.log1p(a) + lost / a

        best, width = 0.5 * math.log(lost / rho), 5.0
        while width > 1e-6:  # there is one minimum
            best = min((best + width * k / 16 for k in range(-16, 17)), key=near)
            width /= 10
        return at(math.exp(best), spent)

    if not spent.n_gaussian:
        return spent.epsilon
    if spent.runs:
        return min(at(2.0 ** (step / 8.0), spent) for step in range(-24, 81))
    beside = spent._replace(rho=spent.rho_of_mu)
    return min(
        least(one) + more if one.rho else more
        for one, more in ((spent, _ZERO), (beside, spent.epsilon))
    )


# ---- Queries.


def _integers(query: _Node, law: str) -> list[tuple[Fraction, Fraction]]:
    """Return the sensitivity, in L1 or squared in L2, and the lattice of each part of an answer."""
    kind, step, n = query.have("kind"), _ONE, _ONE
    if "exponent" in query:
        step = Fraction(2) ** query.count("exponent", -1000, 1000)
    if kind in ("Histogram", "Histograms"):
        one = kind == "Histogram"
        moves = [query.number("sensitivity", 2)] if one else [2 * u for u in query.each("units")]
        _need(all(k and k % 2 == 0 for k in moves), "a record moves a histogram by two units")
        return [(k if law == "laplace" else k * k / 2, step if one else 2 / k) for k in moves]
    if kind == "Sum":
        apart = far = query.number("high", -math.inf) - query.number("low", -math.inf)
    elif kind == "Sums":
        n, apart = query.number("number"), query.number("each")
        far = apart
    else:
        _need(kind == "CellSums", f"a query of the kind {kind!r:.40}", _NEW)
        apart = far = Fraction(2 * round(query.positive("size") / step))
        if query.get("distance") is not None:
            far = Fraction(round(query.positive("distance") / step) + 2)
    return [(n * apart if law == "laplace" else n * far**2, step)]


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
        fits = squares == 0 or query.number("square_weight") <= Fraction(1665, 1000)
        _need(fits, "a column and its square move by more than 2")
        return (_root(move) + 2 * _root(d) * error) / n, d
    _need(kind == "SecondMoments", f"a query of the kind {kind!r:.40}", _NEW)
    width = query.count("width")
    trace = (query.positive("norm") + _root(width) / 2**16) ** 2 + width * _root(width) * n / 2**50
    return trace * (1 if law == "semidefinite laplace" else _root(2)), width * (width + 1) // 2


def _check_lattice(step: Fraction, scale: Fraction) -> None:
    most = Fraction(2) ** (math.frexp(scale / 256)[1] - 1)  # a power of two
    _need(step == most, "a lattice is not that of its scale")


def _check_query(node: _Node, price: _Cost) -> None:
    law, query, scales = node["law"], node.part("query"), node.each("scale")
    unit, norm, _ = _LAWS[law]
    _need(node.have("norm") == norm and all(scales), f"{law}: its norm or scale")
    stated, steps = node.each("sensitivity"), node.each("lattice")
    if law in ("laplace", "gaussian"):
        parts = _integers(query, law)
        if len(parts) == len(stated) == len(steps) == 1:  # one question, with several answers
            parts, stated, steps = parts * len(scales), stated * len(scales), steps * len(scales)
        for (_, step), own in zip(parts, steps, strict=True):
            _bound(own, step, "a lattice")
        least = [move if law == "laplace" else _root(move) for move, _ in parts]
        times = Fraction(2 if law == "laplace" else 1)
    else:
        (scale,), (step,), (move, d) = scales, steps, _vectors(query, law)
        _check_lattice(step, scale)
        parts, least, steps = [(move, step)], [move], [_ONE]
        times = Fraction(d + 1 if law == "spherical laplace" else 1)
        if law == "semidefinite laplace":
            w = query.count("width")
            square = Fraction(w + 3, 2 * w * (d + 1)) * (1 + Fraction(d, d + 2))
            times = 2 * d * (2 * d + 1) * (square - Fraction(2 * d, (d + 1) * w**2))
    for (needed, _), own in zip(parts, stated, strict=True):
        _bound(own, needed, "a sensitivity")
    noise = [scale * step for scale, step in zip(scales, steps, strict=True)]
    _bound(node.number("variance"), times * max(noise) ** 2, "a variance")
    spent = [_Spent.of(unit, move / scale) for move, scale in zip(least, scales, strict=True)]
    _pays(price, _sequence([[one] for one in spent]), f"{law} noise")


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
    bends = _LINKS[link] + q * sum(_curvature(link, cap / q) for cap in caps)
    weights = (0, 1) if loss.have("weighted") else (1,)
    reach = width = _ZERO  # of functions of time: their norm, and their distance
    n_functions = n_terms = 0
    if "n_terms" in loss:
        reach, width = loss.positive("reach"), loss.positive("width")
        n_functions, n_terms = loss.count("n_functions"), loss.count("n_terms")
        _need(width <= 2 * reach, "functions of time are further apart than they are long")
        _need(len(caps) == 1, "causes whose effects change", _NEW)

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
        sum(largest(h, sign, slope * (j == c), slope * (j == c2)) for j, h in enumerate(caps))
        for sign in (1, -1)
        for c, c2 in product(range(len(caps) + 1), repeat=2)
    )
    n_params = (len(caps) if strata == 1 else strata) * n_basis + len(caps) * d + n_terms
    trace = bends * (radius**2 + norm**2 * (1 + reach**2))
    return _root(square), trace, len(caps) * min(q, n_basis + n_functions), n_params


def _units(loss: _Node) -> tuple[Fraction, Fraction]:
    """Return k and m, the units of 2^-53 by which a gradient may be rounded (rounding.md)."""
    d = Fraction(loss["n_features"])
    if loss["kind"] != "hazard":
        return Fraction(170), d
    q, strata, n_causes = loss["n_intervals"], loss.get("n_strata", 0), len(loss["caps"])
    sums = 512 + Fraction(2**16, min(256, max(1, 2**15 // q))) + 2 + 2 * q
    k = 1502 + 4 * q + max(sums, Fraction(322)) + (strata if strata > 1 else 0)
    m = d + loss["n_basis"] + (44 if loss["link"] == "probit" else 14)
    m += loss["n_terms"] + 4 if "n_terms" in loss else 0
    return k * (_root(n_causes) if n_causes > 1 else 1), m


# ---- Perturbed minimisers, and noisy gradients.


class _Fit:
    """One perturbed fit, with its constants computed again."""

    def __init__(self, stated: _Node, published: bool) -> None:
        self.stated, self.loss, self.n = stated, stated.part("loss"), stated.count("n_records")
        S, tau, r, self.n_params = _constants(self.loss)
        hazard = self.loss["kind"] == "hazard"  # whose published sensitivity is larger
        above = 1000 if published and hazard else _NEAR
        digits = 100 * _NEAR if self.loss.get("link") == "probit" else _NEAR
        self.S = _bound(stated.number("sensitivity"), S, "the sensitivity of a gradient", above)
        self.tau = _bound(stated.number("hessian_trace"), tau, "the trace of a Hessian", digits)
        self.r, self.kappa = stated.count("hessian_rank"), stated.positive("kappa")
        _need(self.r == r, "the rank of a Hessian is another")
        if hazard or self.loss["kind"] == "LogisticLoss":
            for name, value in zip(
                ("rounding", "predictor_rounding"), _units(self.loss), strict=True
            ):
                _bound(stated.number(name), value, f"{name} of a gradient")

    def law(self, name: str) -> tuple[str, Fraction]:
        noise = self.stated.part(f"{name}_noise")
        law = noise.have("law")
        _need(
            law in ("spherical laplace", "spherical gaussian"),
            f"noise of the law {law!r:.40}",
            _NEW,
        )
        _need(noise.count("dimension") == self.n_params, "noise is not as long as the parameters")
        return _LAWS[law][0], noise.positive("scale")

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
        return sum((fit.S for fit in fits), _ZERO), sum((fit.tau for fit in fits), _ZERO)
    S, tau, *_ = _constants(whole)
    apart = dict.fromkeys(("data_norm", "n_features"))
    steep = all(S >= fit.S and {**fit.loss, **apart} == {**whole, **apart} for fit in fits)
    _need(steep, "all of a record has another loss, or moves a gradient by less than a part of it")
    return S, tau


def _objective(fits: list[_Fit]) -> tuple[str, Fraction]:
    """Return the epsilon of perturbed minimisers (objective_perturbation.md, stacking.md)."""
    S, tau = _together(fits)
    pure = all(fit.law(name)[0] == "epsilon" for fit in fits for name in ("objective", "output"))
    _need(pure, "objective perturbation by Gaussian noise", _NEW)
    spent = sum((fit.hidden(2 * fit.solver())[1] for fit in fits), _ZERO)
    # The largest weighted sum of moves, each within its S, and within that of all in L2.
    moves = [(fit.S, 1 / fit.law("objective")[1]) for fit in fits]
    moves.sort(key=lambda pair: pair[0] / pair[1])
    square = S**2
    for k, (bound, weight) in enumerate(moves):
        steep, left = _root(sum(w**2 for _, w in moves[k:])), _root(max(square, _ZERO))
        if weight * left <= bound * steep:
            spent += steep * left
            break
        spent, square = spent + weight * bound, square - bound**2
    # J, or more: its Lagrange dual is a bound at any level.
    traces = [fit.tau for fit in fits]
    if tau < sum(traces):
        low, high = min(fit.kappa for fit in fits), max(fit.kappa for fit in fits) + tau
        for _ in range(60):
            level = Fraction(float(low + high) / 2)
            traces = [min(max(f.r * (level - f.kappa), _ZERO), f.tau) for f in fits]
            low, high = (level, high) if sum(traces) < tau else (low, level)
        spent += abs(tau - sum(traces)) / level
    logs = (f.r * _log(1 + v / (f.r * f.kappa)) for f, v in zip(fits, traces, strict=True))
    return "epsilon", sum(logs, spent)


def _output(fits: list[_Fit]) -> tuple[str, Fraction]:
    _together(fits)
    (fit,) = fits
    return fit.hidden(fit.S / fit.kappa + 2 * fit.solver())


def _gradients(fits: list[_Fit]) -> tuple[str, Fraction]:
    """Return the mu of noisy gradients of the parts of a record (gaussian.md)."""
    _need(all(fit.law("gradient")[0] == "mu" for fit in fits), "gradients with Laplace noise", _NEW)
    slack = [2 * fit.error(2000 * fit.S / fit.tau, _ZERO, _ZERO) for fit in fits]
    left, square = (_together(fits)[0] + sum(slack)) ** 2, _ZERO
    weights = [fit.stated.count("n_steps") / fit.law("gradient")[1] ** 2 for fit in fits]
    moves = [(fit.S + error) ** 2 for fit, error in zip(fits, slack, strict=True)]
    for weight, move in sorted(zip(weights, moves, strict=True), reverse=True):
        square, left = square + weight * min(move, left), left - min(move, left)
    return "mu", _root(square)


_RULES = {"objective perturbation": _objective, "output perturbation": _output}
_RULES["noisy gradients"] = _gradients


# ---- The tree of measurements, and the guarantee.


class _Tree:
    """A plan that a release states: its cost, the noise on values, and what else was seen in it."""

    def __init__(self, plan: Any, published: bool = False) -> None:
        self.published, self.searches = published, False
        self.gives: dict[str, Any] = {}
        self.seen: defaultdict[str, list[Any]] = defaultdict(list)
        self.cost = self.walk(plan)

    def price(self, stated: Any) -> _Cost:
        """Return a stated price, which a guarantee may state, too."""
        _need(isinstance(stated, _Node) and len(stated) == 1, "a price is none")
        ((unit, value),) = stated.items()
        if unit in ("sequence", "disjoint"):
            each = [self.price(one) for one in stated.several(unit)]
            cost = _sequence(each) if unit == "sequence" else [one for own in each for one in own]
        else:
            _need(unit in ("epsilon", "mu"), "a price is in another unit")
            _need(
                value != "inf", "a measurement costs an infinite epsilon: nothing is promised", _NEW
            )
            cost = [_Spent.of(unit, stated.number(unit))]
        unit, spent = _size(cost)
        self.seen["prices"].append((unit, _root(2 * spent) if unit == "mu" else spent))
        return cost

    def walk(self, node: Any) -> _Cost:
        """Return the cost of a node, with all below it checked."""
        _need(isinstance(node, _Node), "a plan is made of nodes")
        kind = node.have("node")
        if kind == "measurement":
            return self.measured(node, self.price(node.have("price")))
        costs = [self.walk(one) for one in node.several("nodes")]
        if kind == "random number of runs":
            (each_run,) = costs
            eta, gamma = node.number("eta", -1.0), node.positive("gamma")
            _need(-1 < eta <= 1 and gamma <= 1, "eta or gamma is beyond its range")
            unit, spent = _size(each_run)
            self.seen["runs"] += [eta, _mean_runs(eta, gamma)]
            if unit == "mu":
                return [_Spent(1, 1, runs=((spent, eta, gamma),))]
            return [_Spent.of(unit, (2 + eta) * spent)]
        if kind == "disjoint":
            self.seen["granted"].append("composition.md: the parts of a split share nobody")
            if any(one.get("law") == "that of each fit" for one in node["nodes"]):
                self.searches = len(costs) == 2  # candidates, and what tells the best
                _pays(costs[0], costs[-1], "what tells the best candidate")
            return [one for cost in costs for one in cost]
        _need(kind in ("sequence", "choice"), f"a node of the kind {kind!r:.40}", _NEW)
        found = _sequence(costs)
        if "total" not in node and kind == "sequence":
            return found
        total = self.price(node.have("total"))
        _pays(total, found, f"a {kind}")
        return total

    def measured(self, node: _Node, price: _Cost) -> _Cost:
        law, (unit, most) = node.have("law"), _size(price)
        if law == "none" and not most:
            _need(not {"query", "gives", "fits"} & {*node}, "an answer about records has no noise")
            self.seen["granted"].append(f"public, and no answer about records: {node.have('name')}")
            return price
        _need(law != "sanitised posterior", "a theorem about the limit of a chain only", _NEW)
        _need(law in _THEOREMS, f"a measurement of the law {law!r:.60}", _NEW)
        self.seen["granted"].append(_THEOREMS[law])
        if law in _RULES:
            self.perturbed(node, price)
        elif law in ("permute-and-flip", "ladder"):
            spent = node.each("epsilon")
            if law != "ladder":  # a loss up to 1, or evaluation.md: ranks of quartiles and of bands
                n, moves = len(spent), node.each("sensitivity")
                known = moves in ([2**30] * n, [4, 2, 4], [n + 1] * n)
                _need(known and len(moves) == n, "a record moves a loss by another number")
            _pays(price, _sequence([_Spent.of(unit, one)] for one in spent), law)
        elif law == "that of each fit":
            self.seen["trained"].append(price)
        else:
            _check_query(node, price)
            self.seen["n_records"] += [n for key, n in node["query"].items() if key == "n_records"]
        if "gives" in node:
            self.gives[node["gives"]] = {"law": law, "variance": node["variance"]}
        return price

    def perturbed(self, node: _Node, price: _Cost) -> None:
        """Compare the calibration of perturbed fits with their price."""
        parts: defaultdict[tuple[int, int], list[_Fit]] = defaultdict(list)
        unspent = _ONE if self.published else _UNSPENT
        for stated in node.several("fits"):
            _need(isinstance(stated, _Node), "a fit is no object")
            fit = _Fit(stated, self.published)
            parts[stated.count("part", 0), stated.count("models", most=1000)].append(fit)
            self.seen["unknown"] += {fit.loss["kind"]} - {"hazard", "LogisticLoss"}
            if "output_noise" in stated and fit.law("output")[1] <= _LEAST_NOISE:
                unspent = max(unspent, _SOLVER)
        own = [
            _sequence([[_Spent.of(*_RULES[node["law"]](fits))]] * n)
            for (_, n), fits in parts.items()
        ]
        apart = "parts" in node  # of the records, or one after another
        sets = own if apart else [_sequence(own)]
        numbered = sorted(part for part, _ in parts) == list(range(len(parts)))
        alike = all(one.n_prices == found[0].n_prices for one in price for found in sets)
        _need(numbered and alike, "parts, and models of each, are not those of the price")
        _need(node.get("parts", "disjoint") == "disjoint", "parts are disjoint, or none")
        for found in sets:
            _pays(price, found, node["law"], unspent)
        each = [fits[0].n for fits in parts.values()]
        self.seen["n_records"] += [sum(each)] if apart else sorted(set(each))
        self.seen["fits"].append(next(iter(parts.values())))


def _check_total(promised: _Node, cost: _Cost) -> str:
    """Compare epsilon and delta with a cost, and return that."""
    epsilon, delta = promised.positive("epsilon"), promised.number("delta")
    gaussian = any(one.n_gaussian for one in cost)
    words = "delta is above 0 where noise is Gaussian, and else 0"
    _need(gaussian == (delta > 0) and delta < 1, words)
    spent = max(_epsilon_of(one, delta) for one in cost)
    words = f"all costs {float(spent):.12g}, and epsilon is {float(epsilon):.12g}"
    _need(epsilon * (1 - _UNSPENT) <= spent <= epsilon * (1 + _ROUNDING), words)
    return f"epsilon {float(spent):.9g}" + (f" at delta {float(delta):.3g}" if delta else "")


def _check_curves(promised: _Node, cost: _Cost) -> None:
    """Compare rho and Renyi divergences with a cost."""
    runs = any(one.runs for one in cost)
    has_rho = all(one.n_gaussian for one in cost) and not runs
    _need(("rho" in promised) == has_rho, "rho is stated where all noise is Gaussian")
    if has_rho:
        _bound(promised.number("rho"), max(one.rho for one in cost), "rho")
    curve, last, least = promised.get("renyi", []), math.inf, None
    _need(bool(curve) == runs, "divergences are those of a search")
    for order, value in reversed(curve):
        _need(1 < order < last, "orders rise from 1 on")
        found = max(_divergence(one, Fraction(order)) for one in cost)
        least, last = found if least is None else min(least, found), order  # higher ones hold
        _bound(_number(value, "a divergence"), least, "a Renyi divergence")


#: Names by which a guarantee states what a fit does.
_OF_FIT = (
    "gradient_sensitivity hessian_trace hessian_rank kappa prior_precision noise_scale n_steps"
)
_OF_FIT += " max_residual link n_intervals n_strata"


def _of_fit(fit: _Fit, name: str) -> Any:
    noises = (fit.stated.get(f"{law}_noise") for law in ("objective", "gradient", "output"))
    known = {**fit.loss, **fit.stated, "max_residual": fit.loss.get("slope")}
    known["noise_scale"] = next(noise for noise in noises if noise)["scale"]
    known |= {"gradient_sensitivity": known["sensitivity"], "prior_precision": known["kappa"]}
    return known.get(name)


def _check_inputs(inputs: _Node, tree: _Tree) -> None:
    """Compare the public numbers that a guarantee states with those of the tree."""
    fits, n_records, runs = (tree.seen[name] for name in ("fits", "n_records", "runs"))
    for name, value in inputs.items():
        unit, of_fit = name.split("_")[0], name.removeprefix("high_level_")
        if unit in ("epsilon", "mu", "rho"):
            known = [
                own**2 / 2 if unit == "rho" else own
                for of, own in tree.seen["prices"]
                if unit in (of, "rho")
            ]
            known += [_ZERO] * name.endswith(("_center", "_recalibration"))
            for stated in inputs.each(name):
                near = any(abs(stated - one) <= _NEAR * one for one in known)
                _need(near, f"no measurement costs {name}, {float(stated):.9g}")
        if fits and of_fit in _OF_FIT.split():
            own = [[_of_fit(fit, of_fit) for fit in each] for each in fits]
            last = own[-1 if name != of_fit else 0]
            if isinstance(value, _Node) and name != "n_steps":  # which neither end bounds
                low, high = sorted(map(value.number, ("from", "to")))
                _need(all(0.95 * low <= one <= 1.05 * high for one in last), f"{name} of a fit")
            elif not isinstance(value, _Node):
                same = value in own if isinstance(value, list) else {value} == {*last}
                _need(same, f"{name} is not that of the fits")
    for unit in ("epsilon", "mu"):
        if f"{unit}_fit" in inputs:
            names = [name for name in inputs if name.startswith(f"{unit}_")]
            parts = [[_Spent.of(unit, value)] for name in names for value in inputs.each(name)]
            _pays(tree.cost, _sequence(parts), "the prices that the guarantee states")
    levels = [inputs[name] for name in ("n_low_level", "n_high_level") if inputs.get(name)]
    n = inputs.get("n_records", inputs.get("n_private"))
    whole = n_records == levels and sum(levels) == n if levels else {*n_records} <= {n}
    _need(whole, "n_records is not that of the fits")
    if runs and "eta" in inputs:
        _need(runs[0] == inputs["eta"], "eta is not that of the runs")
        near = abs(inputs.number("expected_runs") / runs[1] - 1) < 1e-9
        _need(near, "expected_runs are not those of eta and gamma")


# ---- Releases, and pools of them.


def _check_part(promised: _Node, plan: Any, published: bool) -> tuple[_Tree, str]:
    """Compare a guarantee with a plan."""
    status, neighbours = promised.have("status"), str(promised.have("neighbours"))
    relation, said = neighbours, [str(one) for one in promised.have("assumptions")]
    for suffix, words in _SAID.items():
        told = any(one.startswith(words) for one in said)
        _need((suffix in neighbours) == told, f"{neighbours}, and assumptions say otherwise")
        relation = relation.replace(suffix, "")
    _need(relation == "replace-one" and status in _STATUSES, "unknown neighbours or status")
    _need(promised.have("epsilon") != "inf", "epsilon is infinite: nothing is promised", _NEW)
    _need(plan is not None, "no plan is stated, as by older versions", _NEW)
    if "pooled" in promised.part("public_inputs"):
        tree, found = _check_pool(promised, _Node(plan))
    else:
        tree = _Tree(plan, published)
        found = _check_total(promised, tree.cost)
        _check_curves(promised, tree.cost)
        _check_inputs(promised.part("public_inputs"), tree)
    _need(status in ("proved", "asserted"), f"the status is {status!r}, which is no promise", _NEW)
    unknown = sorted({*tree.seen["unknown"]})
    _need(not unknown or status == "asserted", f"a loss of the kind {', '.join(unknown)}", _NEW)
    tree.seen["granted"] += [f"the slope and the curvature of {kind}" for kind in unknown]
    return tree, found


def _check_pool(promised: _Node, plan: _Node) -> tuple[_Tree, str]:
    """Compare a pool with the plan of each release in it, and with their number (pooling.md)."""
    inputs, nodes = promised.part("public_inputs"), plan.several("nodes")
    entries = [*map(_Node, inputs.several("pooled"))]
    _need(len(nodes) == len(entries), "a pool of pools: check each of its releases", _NEW)
    how: Any = {"disjoint": max, "sequence": sum}[plan["node"]]
    told = "no person is in two of the pooled data sets" in promised["assumptions"]
    _need((how is max) == told, "nobody is in two data sets, or costs add up")
    whole = _Tree(_Node(node="sequence", nodes=[]))
    for node, entry in zip(nodes, entries, strict=True):
        tree = _Tree(node)
        _check_total(entry, tree.cost)
        n = entry.count("n_records")
        _need({*tree.seen["n_records"]} <= {n}, "n_records of a part is another")
        for kind, found in tree.seen.items():
            whole.seen[kind] += found
        whole.seen["granted"].append(f"the release {entry['sha256'][:16]} states this plan")
        for name, one in tree.gives.items():
            of_all = whole.gives.setdefault(name, {"law": "sum", "variance": _ZERO})
            of_all["variance"] += _number(one["variance"], "a variance")
    for name in ("sha256", "released"):
        known = {one for e in entries if len(one := bytes.fromhex(e[name])) == 32}
        _need(len(known) == len(entries), "a release is there twice, or has no hash")
    for name in ("epsilon", "delta"):
        each = [entry.number(name) for entry in entries]
        _bound(promised.number(name), Fraction(how(each)), f"{name} of a pool")
    weakest = max((entry["status"] for entry in entries), key=_STATUSES.index)
    _need(promised["status"] == weakest, "the status is not the weakest one")
    _need(not {"rho", "renyi"} & {*promised}, "rho and divergences are not those of a pool")
    total = sum(entry["n_records"] for entry in entries)
    _need(inputs.have("n_records") == total, "n_records is not that of the parts")
    whole.seen["granted"] += ["pooling.md: nobody is in two of the data sets"] * (how is max)
    whole.seen["granted"].append("the values of the pool follow from those of its releases")
    return whole, f"epsilon {float(promised['epsilon']):.9g}"


def _check_noise(release: _Node, tree: _Tree) -> None:
    """Compare law and variance of the noise on values with those of the plan."""
    noise, promised = release.part("noise"), release.part("guarantee")
    if "pooled" not in promised["public_inputs"]:
        _need(noise == tree.gives, "the noise on values is not that of the plan")
        return
    summed = promised["mechanism"].startswith("sum of tables")  # others have no noise by law
    _need(summed == bool(noise), "the noise on sums of tables is missing")
    for name in noise:
        _need(noise[name] == noise[name] | {"law": "sum"}, f"the noise on {name} is that of a sum")
        variance = tree.gives[name]["variance"]
        _bound(noise.part(name).number("variance"), variance, f"the variance of {name}")


def _check_release(text: str | Path) -> Verdict:
    release = _read(text)
    is_evaluation = "integrated_brier" in release and not {"estimator", "noise"} & {*release}
    promised = release.part("guarantee")
    if not is_evaluation:
        _need(release.have("schema_version") == 3, "the layout is not that of version 3", _NEW)
    published = str(release.get("estimator")).startswith("Published")
    tree, found = _check_part(promised, release.get("plan"), published)
    last = tree
    if release.get("fit_guarantee") is not None:
        last, _ = _check_part(release.part("fit_guarantee"), release.get("fit_plan"), published)
        within = any(_covers(price, last.cost) for price in tree.seen["trained"])
        _need(tree.searches and within, "a last fit costs more than a search has for it")
    else:
        alone = not tree.seen["trained"] and release.get("fit_plan") is None
        _need(alone, "a last fit has no guarantee")
    if not is_evaluation:
        _check_noise(release, last)
    granted = [*dict.fromkeys(tree.seen["granted"]), *_GRANTED]
    if tree.seen["fits"]:
        granted.append("rounding.md: roundings and losses at the centre; points are certified")
    name = "an evaluation" if is_evaluation else release.get("estimator")
    words = f"{name}, {found}, {promised['neighbours']}, {promised['status']}"
    return Verdict("verified", words, granted)


def _unrepeated(pairs: Iterable[tuple[str, Any]]) -> _Node:
    pairs = list(pairs)
    _need(len(found := _Node(pairs)) == len(pairs), "a key is there twice")
    return found


def _read(text: str | Path) -> _Node:
    text = text.read_text(encoding="utf-8") if isinstance(text, Path) else text
    found = json.loads(text, object_pairs_hook=_unrepeated)
    _need(isinstance(found, _Node), "a file or a line is no object of JSON")
    return found


def _verdict(check: Callable[..., Verdict], *arguments: Any) -> Verdict:
    try:
        return check(*arguments)
    except _EndError as error:
        return Verdict(*error.args)
    except (OSError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        return Verdict("refuted", f"no file as the program writes it ({type(error).__name__})")
    except sqlite3.Error:
        return Verdict("refuted", "no ledger as the program writes it")


def verify(text: str) -> Verdict:
    """Check the text of a release, or of an evaluation.

    Examples
    --------
    >>> from skdpsurv.verify import verify
    >>> verify("{}").word
    'not covered'
    """
    return _verdict(_check_release, text)


# ---- The folder of a study: what its releases cost together, and the ledger.


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(content: Any) -> str:
    return _sha256(json.dumps(content, separators=(",", ":"), sort_keys=True))


def _own_text(path: Path) -> str:
    """Return the text of a file of a folder, which is there itself."""
    _need(path.is_file() and not path.is_symlink(), f"{path.name} is no file of its own")
    return path.read_text(encoding="utf-8")


def _journal(text: str) -> defaultdict[str, list[_Node]]:
    """Return the lines of a journal by kind; each has a hash of itself and of that before it."""
    found: defaultdict[str, list[_Node]] = defaultdict(list)
    link = "skdpsurv study 1"
    for number, line in enumerate(map(_read, text.splitlines()), 1):
        stated = line.pop("link", None)
        link = _digest([link, line])
        _need(link == stated, f"line {number} of the journal does not follow from that before it")
        found[line.have("what")].append(line)
    return found


def _check_ledger(path: Path, charges: list[_Node], dataset: str, name: str) -> str:
    """Compare the charges of a study with a ledger, and return what that says of these people."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as file:
        file.row_factory = sqlite3.Row
        kinds = dict(file.execute("SELECT name, type FROM sqlite_master").fetchall())
        stored = kinds.get("ledger") == kinds.get("entries") == "table"
        _need(stored, "a ledger's entries are not stored in it")  # a view may never end
        (made,) = file.execute("SELECT * FROM ledger").fetchall()
        rows = [*map(dict, file.execute("SELECT * FROM entries ORDER BY id"))]
    counts = not made["rehearsal"] and not made["moved_to"]
    _need(counts, "a ledger of rehearsals, or one that was moved", _NEW)
    begun = [made[name] for name in ("identity", "epsilon", "delta")]
    begun += [False, bool(made["charge_refusals"]), made["composition"], made["renyi_order"]]
    links = [_digest(["skdpsurv ledger", 4, *begun])]
    for number, row in enumerate(rows, 1):
        key, nonce, *entry, link = row.values()
        links.append(_digest([links[-1], nonce, *entry]))
        _need(key == number and link == links[-1], f"entry {number} of the ledger was altered")
    for charge in charges:
        receipt, promised = charge.part("receipt"), charge.part("guarantee")
        number = receipt.count("entries", 1, len(rows))
        own = {"ledger": made["identity"], "entries": number, "hash": links[number]}
        _need(receipt == own, "a charge is not in this ledger")
        stated = {name: promised[name] for name in ("epsilon", "delta", "status", "neighbours")}
        stated |= {"guarantee": _digest(promised), "dataset": dataset}
        same = stated.items() <= rows[number - 1].items()
        _need(same, f"entry {number} of the ledger is another charge")
    others = sum(row["estimator"].startswith(name) for row in rows)
    _need(others == len(charges), "the ledger has other charges for this protocol")
    all_spent = sum(row["epsilon"] for row in rows if row["dataset"] == dataset)
    return f"the ledger is that of all charges: {dataset}, epsilon {all_spent:.9g} in all"


def _check_charge(charge: _Node, protocol: _Node) -> str:
    """Compare the first charge with what all analyses cost together (study.md)."""
    promised, budget = charge.part("guarantee"), protocol.part("budget")
    n, share = charge.count("n_people"), float(protocol.number("evaluation_share"))
    held_out = round(share * n)
    sizes = {"everybody": n, "training": n - held_out, "evaluation": held_out}
    spent = dict.fromkeys(sizes, _Spent())
    analyses = [*map(_Node, protocol.several("analyses"))]
    evaluated = [one["of"] for one in analyses if one.get("of")]
    relation = "replace-one" + "-person" * (protocol.part("outcome").get("person") is not None)
    relations, expected = {relation}, {"n_records": n, "n_held_out": held_out}
    for one in analyses:
        name, people = one["name"], "training" if one["name"] in evaluated else "everybody"
        people = "evaluation" if one.get("of") else people
        own = charge.part("planned").part(name)
        epsilon, delta = own.positive("epsilon"), own.number("delta")
        _need(not delta or "rho" in own, f"{name} has a delta and no rho", _NEW)
        mu = _root(2 * own.number("rho")) if delta else _ZERO
        price = _Spent.of("mu", mu) if delta else _Spent.of("epsilon", epsilon)
        spent[people] = spent[people].plus(price)
        relations.add(own["neighbours"])
        stated = own.part("public_inputs").get("n_records") == sizes[people] > 0
        _need(stated, f"{name} is not of these people")
        _need(own["status"] == "proved", f"the status of {name} is {own['status']!r}", _NEW)
        expected[f"epsilon_{name}"] = own["epsilon"]
        expected |= {f"delta_{name}": own["delta"]} if delta else {}
    public = relation + "-same-group"
    known = relations <= {relation, public} and promised["neighbours"] == max(relations, key=len)
    _need(known and promised["status"] == "proved", "neighbours or status are not those of all")
    inputs = promised.part("public_inputs")
    same = all(inputs.get(name) == value for name, value in expected.items())
    _need(same, "the charge states other numbers than its analyses")
    epsilon, delta = promised.positive("epsilon"), promised.number("delta")
    cost = [spent["everybody"].plus(spent[people]) for people in ("training", "evaluation")]
    gaussian = any(one.n_gaussian for one in cost)
    _need(gaussian == (delta > 0), "delta is above 0 where noise is Gaussian, and else 0")
    most = max(_epsilon_of(one, delta) for one in cost)
    words = f"all analyses cost {float(most):.12g}, and {float(epsilon):.12g} was charged"
    _need(most <= epsilon * (1 + _ROUNDING), words)
    left = budget.number("epsilon") - budget.number("reserve")
    within = epsilon <= left and delta <= budget.number("delta")
    _need(within, "more was charged than the protocol's budget")
    if "rho" in promised:
        rho = max(one.rho for one in cost)
        holds = promised.number("rho") >= rho * (1 - _ULPS) and all(one.n_gaussian for one in cost)
        _need(holds, "rho is less than that of all analyses")
    _need("renyi" not in promised, "divergences are not those of a study")
    return f" at delta {float(delta):.3g}" * bool(delta) + f", {promised['neighbours']}, proved"


def _check_study(folder: Path, files: Sequence[Path], ledgers: Sequence[Path]) -> Verdict:
    """Compare releases with the journal, and this with the protocol and the ledger."""
    text = _own_text(folder / "protocol.json")
    _need(not (folder / "releases").is_symlink(), "the releases are in another folder")
    _need(all(one.suffix == ".json" for one in files), "a file of the releases is not of JSON")
    releases = {one.stem: _own_text(one) for one in files}
    lines, sha256 = _journal(_own_text(folder / "journal")), _sha256(text)
    protocol, intents, charges = _read(text), lines["intent"], dict[str, _Node]()
    ((first,),) = (lines["study"],)
    _need(first["protocol"] == sha256, "the journal is of another protocol")
    for line in lines["charged"]:
        (intent,) = (one for one in intents if one["nonce"] == line["nonce"])
        own = {"protocol_sha256": sha256, "nonce": intent["nonce"]}
        inputs = intent.part("guarantee").part("public_inputs")
        _need(own.items() <= inputs.items(), "a charge is of another protocol, or of another nonce")
        _need(line["nonce"] not in charges, "a charge is noted twice")
        charges[line["nonce"]] = _Node(intent, receipt=line["receipt"])
    _need(charges, "nothing was charged", _NEW)
    whole, *again = charges.values()
    every = [one["name"] for one in protocol.several("analyses")]
    _need(whole["analyses"] == every == [*dict.fromkeys(every)], "not all analyses were charged")
    found, total = _check_charge(whole, protocol), whole["guarantee"].number("epsilon")
    for charge in again:  # of an analysis whose release was lost
        (name,), promised = charge["analyses"], charge["guarantee"]
        planned, own = whole["planned"][name], {"protocol_sha256": sha256, "nonce": charge["nonce"]}
        own = {**planned, "public_inputs": {**planned["public_inputs"], **own}}
        same = promised == own and not planned["delta"]
        _need(same, f"{name} was charged again at another price")
        total += promised.number("epsilon")
    _need(total <= protocol["budget"].number("epsilon"), "more was charged than the budget")
    started = [(one["nonce"], one["analysis"]) for one in lines["started"]]
    paid = all(name in charges[nonce]["analyses"] for nonce, name in started)
    _need(paid and len({*started}) == len(started), "an analysis ran without a charge of its own")
    marks = {one["analysis"]: one for one in lines["released"]}
    known = {*marks} == {*releases} and len(marks) == len(lines["released"])
    _need(known, "the releases in the folder are not those that the journal marks, once each")
    for name, mark in marks.items():
        release, charge = _read(releases[name]), charges[mark["nonce"]]
        _need((mark["nonce"], name) in started, f"{name} was released and never started")
        _need(mark["sha256"] == _sha256(releases[name]), f"{name} is not the file that was marked")
        same = release["guarantee"] == whole["planned"][name]
        _need(same and release.get("receipt") == charge["receipt"], f"{name} is of another charge")
        about = {"protocol_sha256": sha256, "analysis": name}
        _need(about.items() <= release["study"].items(), f"{name} is of another study")
    granted = ["study.md: people were dealt by coins into two parts, once, and nobody knows how"]
    granted *= whole["guarantee"]["public_inputs"]["n_held_out"] > 0
    read = ("journal", "journal.lock", "protocol.json", "releases")
    others = ", ".join(sorted(path.name for path in folder.iterdir() if path.name not in read))
    granted += [f"not read, and not verified: {others} (never publish private)"] if others else []
    if protocol["budget"]["ledger"] is None:
        granted.append("no ledger counts what else these people cost")
        charged = ledgers or any(one["receipt"] for one in charges.values())
        _need(not charged, "the protocol names no ledger, and there is one")
    else:
        _need(ledgers, "the charges are in a ledger: give its file, too", _NEW)
        for path in ledgers:
            name, dataset = f"Study {sha256[:16]}", protocol["dataset"]
            granted.append(_check_ledger(path, [whole, *again], dataset, name))
    words = f"a study of {len(every)} analyses, of which {len(marks)} are here"
    return Verdict("verified", f"{words}, epsilon {float(total):.9g}{found}", granted)


def checked(paths: Iterable[str | Path]) -> Iterator[tuple[str, Verdict]]:
    """Check releases, and folders of studies; yield names and verdicts.

    A study that was charged to a ledger needs the ledger's file among the paths.
    """
    given = [*map(Path, paths)]
    ledgers = [p for p in given if p.is_file() and p.read_bytes()[:16] == b"SQLite format 3\0"]
    for path in given:
        if path.is_dir():
            files = sorted((path / "releases").glob("*"))
            found = [_verdict(lambda own: _check_release(_own_text(own)), one) for one in files]
            yield from ((_shown(str(one)), own) for one, own in zip(files, found, strict=True))
            whole = _verdict(_check_study, path, files, ledgers)
            if code := worst([whole, *found]):
                word = next(word for word, own in CODES.items() if own == code)
                whole = whole if whole.word == word else Verdict(word, "a release is: see above")
            yield _shown(str(path)), whole
        elif path not in ledgers:
            yield _shown(str(path)), _verdict(_check_release, path)
        elif len(given) > len(ledgers) and not any(one.is_dir() for one in given):
            yield _shown(str(path)), Verdict(_NEW, "a ledger is of the folder of a study")


def worst(verdicts: Iterable[Verdict]) -> int:
    """Return the exit code of several releases together."""
    found = {verdict.word for verdict in verdicts}
    return next((CODES[word] for word in ("refuted", "not covered") if word in found), 0)


def main(arguments: Sequence[str]) -> int:
    """Check files and folders, print the verdicts, and return the exit code."""
    found = [*checked(arguments)]
    if not found:
        print("usage: python -I verify.py RELEASE.json ... or FOLDER LEDGER.sqlite")
        return CODES["not covered"]
    for path, verdict in found:
        print(path, *verdict.lines(), sep="\n")
    return worst(verdict for _, verdict in found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
