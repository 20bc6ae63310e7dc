"""Check the arithmetic of a release without trusting the program that wrote it.

This file needs the standard library alone: ``python -I verify.py release.json`` ends with 0 for
verified, 9 refuted, 10 not covered. It reads the tree of measurements that a release states, each
with its query or loss, sensitivity, law, scale and price, computes sensitivities and prices again,
adds these up, and compares the sum with the guarantee. Numbers are exact rationals, as a double is
one; logarithms and roots are rounded upwards. What no file can show is taken for granted, and
printed: that the program drew the noise that is stated, and that a record moves an answer by no
more than its query or loss says. What several releases cost together, as a pool or as a study,
is checked by verify_study.py, if that is beside this file.
"""

from __future__ import annotations

import json
import math
import runpy
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

#: What a release may be, and the exit codes that say so.
CODES = {"verified": 0, "refuted": 9, "not covered": 10}
NEW = "not covered"
BESIDE = "a pool, a ledger or a folder needs verify_study.py beside this file"
#: Relative allowances: for the doubles of a bound and of a price, for numbers that follow from
#: others, for what a tree may leave unspent (a missing measurement leaves more), and for a solver.
ULPS, ROUNDING, NEAR = Fraction(1, 2**48), Fraction(1, 2**40), Fraction(1, 10**11)
_UNSPENT, _SOLVER = Fraction(1, 10**6), Fraction(1, 50)
_DIGITS, _PAD, ZERO = Context(prec=60), Fraction(1, 10**50), Fraction(0)
STATUSES = ("proved", "asymptotic", "asserted", "seeded", "none")
_SAID = {"-person": "person names whose", "-same-group": "the group of each record"}
#: By law: unit of the price and norm of the sensitivity of an answer; the theorem in docs/proofs.
_LAWS = {
    "laplace": ("epsilon", "L1", "noise.md: discrete Laplace noise on integers"),
    "gaussian": ("mu", "squared L2", "gaussian.md: discrete Gaussian noise on integers"),
    "spherical laplace": ("epsilon", "L2", "noise.md: L2-Laplace noise on vectors"),
    "spherical gaussian": ("mu", "L2", "gaussian.md: Gaussian noise on vectors"),
    "semidefinite laplace": ("epsilon", "traces", "noise.md: noise on symmetric matrices"),
    "objective perturbation": ("", "", "objective_perturbation.md: perturbed minimisers"),
    "output perturbation": ("", "", "output_perturbation.md: noise on a minimiser"),
    "noisy gradients": ("", "", "gaussian.md: noisy gradients"),
    "permute-and-flip": ("", "", "noise.md: choices by permute-and-flip"),
    "ladder": ("", "", "ladder.md: drawn at its epsilon, and a record moves it by one level"),
    "that of each fit": ("", "", "the fit of every candidate costs no more than is stated"),
}
#: Links, and the largest curvature of an event.
_LINKS = {"logit": Fraction(0.25), "cloglog": Fraction(0.4128), "probit": Fraction(1)}
#: What a guarantee states of fits, and where the plan states it.
_OF_FIT = {name: name for name in ("hessian_trace", "hessian_rank", "kappa", "n_steps", "link")}
_OF_FIT |= {"n_intervals": "n_intervals", "n_strata": "n_strata", "prior_precision": "kappa"}
_OF_FIT |= {"gradient_sensitivity": "sensitivity", "noise_scale": "scale", "max_residual": "slope"}
#: Released numbers, and the queries or law without which there are none.
_ASKED = {"recalibration_shift": "Histogram CellSums", "tuning": "Sum Sum"}
_ASKED |= {"inference_covariance": "Histogram SecondMoments", "integrated_brier": "Histogram Sum"}
_ASKED |= {"group_sizes": "none", "n_events": "ladder", "lambda": "Sum", "rho": "Sum"}
_ASKED |= dict.fromkeys(("counts", "entries", "follow_up", "n_bins"), "Histogram")
_ASKED |= dict.fromkeys(("risk_offsets", "time_offsets", "entry_offsets"), "CellSums")
#: Other numbers, which follow or are public, after what has them; and the fields of a file.
_KNOWN = """fits evidence_coef evidence_error max_cumulative_hazard max_residual row_center
    row_scale row_radius; DPHistogram() edges; HybridMEstimator() curve n_cells public_index signed
    weights; PerturbedHistogramMEstimator() weights; lambda log_covariance; intercept
    recalibration_slope; inference_covariance inference_estimate inference_hidden inference_known
    mean_weight; recalibration_shift recalibration_knots recalibration_slope; integrated_brier brier
    risk_edges table time_edges"""
_FIELDS = """columns estimator feature_names_in fit_guarantee fit_plan guarantee made_with noise
    n_features_in parameters plan receipt schema_version study target_names values"""
_OF_EVALUATION = """c_index cause expected_observed groups guarantee integrated_brier level max_time
    plan receipt released study times uncensored"""


class EndError(Exception):
    """A word of ``CODES``, and the reason for it."""


def need(holds: object, otherwise: str, word: str = "refuted") -> None:
    if not holds:
        raise EndError(word, otherwise)


@dataclass
class Verdict:
    """What was found: ``word`` is one of ``CODES``."""

    word: str
    reason: str = ""
    granted: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yield the verdict as text."""
        yield shown(f"{self.word}: {self.reason}")
        yield from (shown(f"  taken for granted: {what}") for what in self.granted)


def shown(text: str) -> str:
    """Return a text without what would move a cursor or begin a line: a file may hold it."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


# ---- Numbers of a file, and functions of them.
def number_of(value: Any, what: str, least: float = 0.0) -> Fraction:
    good = isinstance(value, int | float) and type(value) is not bool and math.isfinite(value)
    need(good and value >= least, f"{what} is no number from {least:g} on")
    return Fraction(value)


class Node(dict[str, Any]):
    """An object of JSON, whose fields are read as what they must be."""

    def __init__(self, pairs: Iterable[Any]) -> None:
        super().__init__(pairs := [*pairs])
        need(len(self) == len(pairs), "a key is there twice")

    def have(self, name: str) -> Any:
        need(name in self, f"{name!r} is not stated, as by older versions", NEW)
        return self[name]

    def number(self, name: str, least: float = 0.0) -> Fraction:
        return number_of(self.have(name), name, least)

    def positive(self, name: str) -> Fraction:
        return self.number(name, 5e-324)

    def count(self, name: str, least: float = 1, most: float = math.inf) -> int:
        need(type(self.have(name)) is int and self[name] <= most, f"{name} is no such integer")
        return int(self.number(name, least))

    def several(self, name: str) -> list[Any]:
        found = self.have(name)
        return found if isinstance(found, list) else [found]

    def each(self, name: str) -> list[Fraction]:
        return [number_of(one, name) for one in self.several(name)]

    def parts(self, name: str) -> list[Node]:
        need(all(isinstance(one, Node) for one in self.several(name)), f"{name} is no object")
        return self.several(name)

    def part(self, name: str) -> Node:
        need(not isinstance(self.have(name), list), f"{name} is no object")
        return self.parts(name)[0]

    def n_people(self) -> int:
        return self.count("n_records" if "n_records" in self else "n_private")


def _log(value: Fraction) -> Fraction:
    exact = _DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))
    found = Fraction(_DIGITS.ln(exact))  # right to its last digit
    return found + _PAD * (1 + abs(found))


def root(value: Fraction | int) -> Fraction:
    return Fraction(math.isqrt(math.ceil(value * 2**400)) + 1, 2**200)


def follows(own: Any, found: Any, what: str, above: Any = NEAR, below: Any = ULPS) -> None:
    """Compare a stated number with what it follows as: it may be hardly less, or more."""
    holds = found * (1 - below) <= own <= found * (1 + above)
    need(holds, f"{what} is {float(own):.12g}, and follows as {float(found):.12g}")


class Spent(NamedTuple):
    """Prices of measurements of the same people, each an epsilon or a mu of Gaussian noise."""

    epsilon: Fraction = ZERO  # of those without a delta
    rho: Fraction = ZERO  # of all, as an epsilon is worth as much as a mu
    rho_of_mu: Fraction = ZERO  # of those with a delta

    @classmethod
    def of(cls, unit: str, value: Fraction) -> Spent:
        rho = value**2 / 2
        return cls(ZERO, rho, rho) if unit == "mu" else cls(value, rho)

    @property
    def size(self) -> tuple[str, Fraction]:
        return ("mu", self.rho) if self.rho_of_mu else ("epsilon", self.epsilon)

    def covers(self, other: Spent) -> bool:
        """Say whether this allows the other, in each unit, or all of it as a mu."""
        pairs = (*zip(self, other, strict=True),), ((self.rho_of_mu, other.rho),)
        return any(all(own <= most * (1 + ROUNDING) ** 2 for most, own in some) for some in pairs)


def sequence(spent: Iterable[Spent]) -> Spent:
    columns: Any = zip(Spent(), *spent, strict=True)
    return Spent(*(sum(column) for column in columns))


def disjoint(spent: list[Spent]) -> Spent:
    """Return what those spend of several sets of people, who share nobody, that spend most."""
    most = max(spent, key=lambda one: one[::-1])
    need(all(map(most.covers, spent)), "no set of people spends most in each unit", NEW)
    return most


def pays(price: Spent, found: Spent, what: str, unspent: Any = _UNSPENT) -> None:
    """Compare a price with what its noise costs."""
    (unit, most), (own, spent) = price.size, found.size
    need(unit == own, f"{what}: its price is in another unit than its noise")
    follows(spent, most, f"{what}: the cost of its noise", ROUNDING, unspent)
    need(price.covers(found), f"{what}: its price is of other noise")


def epsilon_of(spent: Spent, delta: Fraction) -> Fraction:
    """Return an epsilon at delta: that of any order holds (Canonne et al. 2020)."""

    def at(a: Any, rho: Any, log: Callable[[Any], Any]) -> Any:  # of the order 1 + a
        return rho * (1 + a) + log(a / (1 + a)) + (log(1 / delta) + log(1 / (1 + a))) / a

    def least(rho: Fraction) -> Fraction:
        low, high, double = -40.0, 40.0, float(rho)
        for _ in range(90):  # there is one minimum, which doubles find
            third = (high - low) / 3
            left, right = (at(math.exp(x), double, math.log) for x in (low + third, high - third))
            low, high = (low, high - third) if left < right else (low + third, high)
        return max(ZERO, at(Fraction(math.exp(low)), rho, _log)) if rho else ZERO

    if not spent.rho_of_mu:
        return spent.epsilon
    return min(least(spent.rho), least(spent.rho_of_mu) + spent.epsilon)


def _integers(query: Node, law: str) -> tuple[list[Fraction], list[Fraction]]:
    """Return the sensitivity, in L1 or in L2, and the lattice of each part of an answer."""
    kind = query.have("kind")
    step = Fraction(2) ** (query.count("exponent", -1000, 1000) if "exponent" in query else 0)
    if kind in ("Histogram", "Histograms"):  # a record leaves one cell, and is in another
        one = kind == "Histogram"
        units = [query.number("sensitivity") / 2] if one else query.each("units")
        need(all(u >= 1 == u.denominator for u in units), "units of a histogram are no integers")
        moves = [2 * u if law == "laplace" else u * root(2) for u in units]
        return moves, [Fraction(1)] if one else [1 / u for u in units]
    if kind == "Sum":
        far = apart = Fraction(query.count("high", -math.inf) - query.count("low", -math.inf))
    elif kind == "Sums":
        n, each = query.count("number", most=1000), query.count("each")
        need(each * step >= 1, "a record moves each sum by less than a loss may be")
        far, apart = Fraction(n * each), root(n) * each
    else:
        need(kind == "CellSums", f"a query of the kind {kind!r:.40}", NEW)
        far = apart = Fraction(2 * round(query.positive("size") / step))
        if query.get("distance") is not None:
            apart = Fraction(round(query.number("distance", query["size"]) / step) + 2)
    return [far if law == "laplace" else apart], [step]


def _vectors(query: Node, law: str) -> tuple[Fraction, Fraction]:
    """Return the sensitivity of a mean or of second moments, and its variance at scale 1."""
    kind, n = query.have("kind"), query.count("n_records")
    error = Fraction(1, 2**31) + Fraction(n, 2**52)  # of a row and of a sum, by entry
    if kind == "MeanOfRows":
        d = query.count("n_features")
        move = 2 * (1 + root(d) * error) * query.positive("data_norm") / n
    elif kind == "ColumnMoments":
        columns, squares = query.count("n_columns"), query.count("n_squares", 0)
        squared, d = query.count("squared_move"), columns + squares
        least = 4 * squares + min(8, 4 * (columns - squares))  # noise.md: if others are one group
        light = not squares or query.number("square_weight") <= Fraction(1.665)
        need(light and 4 * squares <= least <= squared <= 4 * columns, "columns move by more")
        move = (root(squared) + 2 * root(d) * error) / n
    else:
        need(kind == "SecondMoments", f"a query of the kind {kind!r:.40}", NEW)
        w, norm = query.count("width"), query.number("norm", 1.0)
        d = w * (w + 1) // 2
        move = (norm + root(w) / 2**16) ** 2 + w * root(w) * n / 2**50
        if law == "semidefinite laplace":
            square = Fraction(w + 3, 2 * w * (d + 1)) * (1 + Fraction(d, d + 2))
            return move, 2 * d * (2 * d + 1) * (square - Fraction(2 * d, (d + 1) * w**2))
        move *= root(2)
    return move, Fraction({"spherical laplace": d + 1, "spherical gaussian": 1}[law])


def _lattice(scale: Fraction) -> Fraction:
    return Fraction(2) ** (math.frexp(scale / 256)[1] - 1)


def _check_query(node: Node, price: Spent, is_released: bool) -> None:
    """Compare sensitivity, lattice, variance and price of an answer with its query and scale."""
    law, query, scales = node["law"], node.part("query"), node.each("scale")
    unit, norm, _ = _LAWS[law]
    need(node.have("norm") == norm and all(scales), f"{law}: its norm or scale")
    if law in ("laplace", "gaussian"):
        (moves, steps), variance = _integers(query, law), Fraction(2 if law == "laplace" else 1)
        n = len(scales) if len(moves) == 1 else 1  # one question may have several answers
        largest = max(scale * step for scale, step in zip(scales, steps * n, strict=True))
    else:
        ((move, variance), (largest,)), n = (_vectors(query, law), scales), 1
        moves, steps = [move], [_lattice(largest)]
    seen = not is_released or all(move * step >= 1 for move, step in zip(moves, steps, strict=True))
    need(seen and all(moves), "a record moves no answer, or by less than it may")
    for own, step in zip(node.each("lattice"), steps, strict=True):
        follows(own, step, "a lattice")
    for own, move in zip(node.each("sensitivity"), moves, strict=True):
        follows(own, move**2 if norm == "squared L2" else move, "a sensitivity")
    follows(node.number("variance"), variance * largest**2, "a variance")
    spent = (Spent.of(unit, a / b) for a, b in zip(moves * n, scales, strict=True))
    pays(price, sequence(spent), f"{law} noise")


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
    return Fraction(min(y * (y - low), 1.0)) * (1 - 10 * NEAR)


def _constants(loss: Node) -> tuple[Fraction, Fraction, int, list[tuple[str, int]]]:
    """Return S, tau, r and rows of coefficients, by name and length (discrete_hazard.md)."""
    norm, d = loss.positive("data_norm"), loss.count("n_features", 0)
    need(loss.have("kind") in ("hazard", "LogisticLoss"), f"a loss of the kind {loss['kind']}", NEW)
    if loss["kind"] == "LogisticLoss":
        slope, bend = loss.positive("slope"), Fraction(1, 4)
        need(slope <= 1 and loss.number("curvature") == bend, "a logistic loss is not as steep")
        return 2 * slope * norm, bend * norm**2, 1, [("coef", d)]
    slope, radius, diameter = map(loss.positive, ("event_slope", "radius", "diameter"))
    q, n_basis, link = loss.count("n_intervals"), loss.count("n_basis"), loss.have("link")
    known = link in _LINKS and (slope == 1 or link == "probit") and diameter <= 2 * radius
    need(known, "radius, diameter, link and slope do not fit together")
    strata = loss.count("n_strata", most=10**4) if "n_strata" in loss else 1
    diameter = max(diameter, root(2 * radius**2)) if strata > 1 else diameter
    caps = [slope * (q if cap is None else number_of(cap, "a cap")) for cap in loss.several("caps")]
    need(link == "logit" or None not in loss["caps"], "without a cap a gradient has no bound")
    need(len(caps) <= 100, "more causes than are looked at here", NEW)
    caps = [min(cap, Fraction(q)) for cap in caps] if link == "logit" else caps
    bends = _LINKS[link] + q * sum(_curvature(link, cap / q) for cap in caps)
    weights = (0, 1) if loss.have("weighted") else (1,)
    reach, width, n_functions, n_terms = ZERO, ZERO, 0, 0
    if "n_terms" in loss:  # functions of time: their norm, their distance, and their numbers
        reach, width = loss.positive("reach"), loss.positive("width")
        n_functions, n_terms = loss.count("n_functions"), loss.count("n_terms")
        need(width <= 2 * reach and n_terms <= n_functions * d, "functions of time do not fit")
        need(len(caps) == 1, "causes whose effects change", NEW)

    def length(u: Fraction, v: Fraction) -> Fraction:  # discrete_hazard.md, effects that change
        return root((u - v) ** 2 + (min(u, v) * width + abs(u - v) * reach) ** 2)

    def largest(cap: Fraction, sign: int, v: Fraction, v2: Fraction) -> Fraction:
        found = []
        for u, u2, w, w2 in product((ZERO, cap), (ZERO, cap), weights, weights):
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
    rows = [("baseline_coef", n_basis)] * (len(caps) if strata == 1 else strata)
    rows += [("coef", d)] * len(caps) + [("over_time_coef", n_terms)] * (n_terms > 0)
    trace = bends * (radius**2 + norm**2 * (1 + reach**2))
    return root(square), trace, len(caps) * min(q, n_basis + n_functions), rows


def _units(loss: Node) -> tuple[Fraction, Fraction]:
    """Return k and m, the units of 2^-53 by which a gradient may be rounded (rounding.md)."""
    d = Fraction(loss["n_features"])
    if loss["kind"] != "hazard":
        return Fraction(170), d
    q, strata, n_causes = loss["n_intervals"], loss.get("n_strata", 0), len(loss["caps"])
    sums = 512 + Fraction(2**16, min(256, max(1, 2**15 // q))) + 2 + 2 * q
    k = 1502 + 4 * q + max(sums, Fraction(322)) + (strata if strata > 1 else 0)
    m = d + loss["n_basis"] + (44 if loss["link"] == "probit" else 14)
    m += loss["n_terms"] + 4 if "n_terms" in loss else 0
    return k * (root(n_causes) if n_causes > 1 else 1), m


# ---- Perturbed minimisers, and noisy gradients.
class _Fit:
    """One perturbed fit, with its constants computed again."""

    def __init__(self, stated: Node, published: bool) -> None:
        self.stated, self.loss, self.n = stated, stated.part("loss"), stated.count("n_records")
        self.S, self.tau = stated.number("sensitivity"), stated.number("hessian_trace")
        self.r, self.kappa = stated.count("hessian_rank"), stated.positive("kappa")
        S, tau, r, self.rows = _constants(self.loss)
        self.n_params = sum(n for _, n in self.rows)
        hazard = self.loss["kind"] == "hazard"  # whose published sensitivity is larger
        digits = 100 * NEAR if self.loss.get("link") == "probit" else NEAR
        follows(self.S, S, "the sensitivity of a gradient", 1000 if published and hazard else NEAR)
        follows(self.tau, tau, "the trace of a Hessian", digits)
        need(self.r == r, "the rank of a Hessian is another")
        self.rounding = [stated.number(name) for name in ("rounding", "predictor_rounding")]
        for own, units in zip(self.rounding, _units(self.loss), strict=True):
            follows(own, units, "the rounding of a gradient")
        self.noise: dict[str, tuple[str, Fraction]] = {}
        for name in ("objective", "gradient", "output"):
            if f"{name}_noise" in stated:
                noise = stated.part(f"{name}_noise")
                unit, norm, _ = _LAWS.get(noise.have("law"), ("", "", ""))
                need(norm == "L2", f"{name} perturbed by noise of another law", NEW)
                need(noise.count("dimension") == self.n_params, "noise is not as long as a fit")
                self.noise[name] = unit, noise.positive("scale")
        (_, first), *_ = self.noise.values()
        self.known = {**self.loss, **stated, "scale": first}

    def error(self, distance: Fraction, kappa: Fraction, noise: Fraction) -> Fraction:
        """Return the largest error of a computed gradient (rounding.md)."""
        (k, m), far = self.rounding, self.stated.number("center_norm")
        total, bend = self.n * self.S, self.n * self.tau
        ridge = 6 * (kappa * (2 * distance + far) + noise + total)
        lengths = (m * bend + 2 * (bend + kappa)) * (distance + far)
        return Fraction(1001, 1000) * ((k + 40) * total + lengths + ridge) / 2**53

    def solver(self) -> Fraction:
        """Return how far a certified point may be from the minimiser (rounding.md)."""
        noise, stated, loss = ZERO, self.stated, self.stated.have("center_loss")
        if "objective" in self.noise:
            length = self.n_params + root(200 * self.n_params) + 100
            noise = self.noise["objective"][1] * length
        distance = 2 * (self.n * self.S + noise) / self.kappa
        if loss is None and stated.have("loss_at_zero") != "inf":
            loss = float(stated.number("loss_at_zero") + self.S * stated.number("center_norm"))
        if loss is not None:
            by_loss = root(2 * self.n * number_of(loss, "center_loss") / self.kappa)
            distance = min(distance, 2 * noise / self.kappa + by_loss)
        error = self.error(distance * Fraction(1001, 1000), self.kappa, noise)
        tolerance = stated.number("tolerance")
        follows(tolerance, max(4 * error, Fraction(1e-9)), "a solver's tolerance")
        return tolerance / self.kappa

    def cost(self, law: str) -> Spent:
        """Return the least price, by the theorem in ``_LAWS``."""
        if law == "noisy gradients":
            unit, scale = self.noise["gradient"]
            need(unit == "mu", "gradients with Laplace noise", NEW)
            moved = self.S + 2 * self.error(2000 * self.S / self.tau, ZERO, ZERO)
            return Spent.of(unit, root(self.stated.count("n_steps")) * moved / scale)
        unit, scale = self.noise["output"]
        follows(self.stated.number("lattice"), _lattice(scale), "a lattice")
        solver = 2 * self.solver()
        if law == "output perturbation":
            return Spent.of(unit, (self.S / self.kappa + solver) / scale)
        pure, noise = self.noise["objective"]
        need(pure == unit == "epsilon", "objective perturbation by Gaussian noise", NEW)
        curvature = self.r * _log(1 + self.tau / (self.r * self.kappa))
        return Spent.of(unit, self.S / noise + curvature + solver / scale)


# ---- The tree of measurements, and the guarantee.
class Tree:
    """A plan that a release states: its cost, the noise on values, and what else was seen in it."""

    def __init__(self, plan: Node, estimator: str = "") -> None:
        self.estimator, self.published = estimator, estimator.startswith("Published")
        self.gives: dict[str, Any] = {}
        self.seen: defaultdict[str, list[Any]] = defaultdict(list)
        self.cost = self.walk(plan)

    def price(self, stated: Node) -> Spent:
        """Return a stated price, which a guarantee may state, too."""
        ((unit, value),) = stated.items()
        if unit == "sequence":
            cost = sequence(self.price(one) for one in stated.parts(unit))
        else:
            need(unit in ("epsilon", "mu"), "a price in another unit", NEW)
            need(value != "inf", "a price is infinite: nothing is promised", NEW)
            cost = Spent.of(unit, stated.number(unit))
        unit, spent = cost.size
        value = root(2 * spent) if unit == "mu" else spent
        self.seen[unit].append(value)
        self.seen["rho"].append(value**2 / 2)
        return cost

    def walk(self, node: Node, above: str = "") -> Spent:
        """Return the cost of a node, with all below it checked."""
        kind, sizes = node.have("node"), self.seen["n_records"]
        if kind == "measurement":
            return self.measured(node, self.price(node.part("price")), above == "disjoint")
        costs, before = [], [len(sizes)]
        for one in node.parts("nodes"):
            costs.append(self.walk(one, kind))
            before.append(len(sizes))
        if kind == "random number of runs":
            ((unit, spent),) = (one.size for one in costs)
            need(unit == "epsilon", "the best of a random number of runs with a delta", NEW)
            eta, gamma = float(node.number("eta", -1.0)), float(node.positive("gamma"))
            need(-1 < eta <= 1 and gamma <= 1, "eta or gamma is beyond its range")
            odds = max(-math.log(gamma), 1e-12)  # one run, if gamma is 1
            mean = (eta / -math.expm1(-eta * odds) if eta else 1 / odds) * math.expm1(odds)
            self.seen["runs"] += [("eta", eta), ("expected_runs", mean)]
            return Spent.of(unit, (2 + Fraction(eta)) * spent)
        if kind == "disjoint":
            laws = [above, *(one["node"] == "measurement" and one["law"] for one in node["nodes"])]
            self.split(laws, costs, before)
            return disjoint(costs)
        need(kind in ("sequence", "choice"), f"a node of the kind {kind!r:.40}", NEW)
        found = sequence(costs)
        if "total" not in node and kind == "sequence":
            return found
        total = self.price(node.part("total"))
        pays(total, found, f"a {kind}")
        return total

    def split(self, laws: list[Any], costs: list[Spent], before: list[int]) -> None:
        """Look at parts that share nobody: those of a search, or of a stack with its sizes."""
        self.seen["granted"].append("composition.md: the parts of a split share nobody")
        if "that of each fit" in laws:
            best = {"random number of runs": "laplace gaussian", "sequence": "permute-and-flip"}
            one = laws[1:-1] == ["that of each fit"] and laws[-1] in best.get(laws[0], "").split()
            need(one, "a search has candidates, and one choice of the best")
            pays(costs[0], costs[1], "what tells the best candidate")
            self.seen["candidates"].append(self.seen["trained"].pop())
        else:
            # Other parts of an honest sum, said to share nobody, would count the largest alone.
            own = before == [*range(before[0], before[0] + len(before))]
            need(own, "a part of a split does not state its n_records")
            parts = self.seen["n_records"][before[0] :]
            self.seen["n_records"][before[0] :] = [sum(parts)]
            self.seen["levels"] += parts

    def measured(self, node: Node, price: Spent, is_released: bool) -> Spent:
        law, (unit, most) = node.have("law"), price.size
        if law == "none" and not most:
            need(not {"query", "gives", "fits"} & {*node}, "an answer about records has no noise")
            self.seen["asked"].append(law)
            self.seen["public"].append(f"public, and no answer about records: {node.have('name')}")
            return price
        need(law in _LAWS, f"a measurement of the law {law!r:.60}", NEW)
        _, norm, theorem = _LAWS[law]
        self.seen["granted"].append(theorem)
        if norm:
            _check_query(node, price, is_released or "gives" in node)
            query, n = node["query"], len(node.several("scale"))
            kind = query["kind"].replace("Histograms", "Histogram")
            self.seen["asked"] += [kind] * (query["number"] if kind == "Sums" else n)
            self.seen["n_records"] += [n for key, n in query.items() if key == "n_records"]
        elif law == "that of each fit":
            self.seen["trained"].append(price)
        elif law in ("permute-and-flip", "ladder"):
            spent = node.each("epsilon")
            self.seen["asked"] += [law] * len(spent)
            if law != "ladder":  # a loss up to 1, or evaluation.md: ranks of quartiles and of bands
                n, moves = len(spent), node.each("sensitivity")
                known = [2**30] * n, *([] if self.estimator else ([4, 2, 4], [n + 1] * n))
                need(moves in known and len(moves) == n, "a record moves a loss by another number")
            pays(price, sequence(Spent.of(unit, one) for one in spent), law)
        else:
            self.perturbed(node, price)
        if "gives" in node:
            self.gives[node["gives"]] = {"law": law, "variance": node["variance"]}
        return price

    def perturbed(self, node: Node, price: Spent) -> None:
        """Compare the calibration of fits with their price: on parts of the people, or on all."""
        stated, apart, law = node.parts("fits"), node.get("parts") == "disjoint", node["law"]
        alone = [one.have("part") for one in stated] == [*range(len(stated))]
        need(alone, "models of one part that share what a record moves (stacking.md)", NEW)
        fits = [_Fit(one, self.published) for one in stated]
        costs = [sequence([fit.cost(law)] * fit.stated.count("models", most=1000)) for fit in fits]
        for found in costs if apart else [sequence(costs)]:
            need(not self.published or price.covers(found), "a price by the rows of a basis", NEW)
            pays(price, found, law, 1 if self.published else _SOLVER)
        self.seen["n_records"] += [sum(fit.n for fit in fits)] if apart else {fit.n for fit in fits}
        self.seen["granted"] += ["stacking.md: the parts of the rows share nobody"] * apart
        self.seen["parts"] += stated * apart
        self.seen["fits"] += fits


def check_total(promised: Node, cost: Spent) -> str:
    """Compare epsilon and delta with a cost, and return that."""
    epsilon, delta = promised.positive("epsilon"), promised.number("delta")
    right = 0 < delta < 1 if cost.rho_of_mu else delta == 0
    need(right, "delta is above 0 where noise is Gaussian, and else 0")
    spent = epsilon_of(cost, delta)
    follows(spent, epsilon, "the cost of all", ROUNDING, _UNSPENT)
    return cost_in_words(spent, delta)


def cost_in_words(epsilon: Fraction, delta: Fraction) -> str:
    need(delta < 1, "a delta of 1 promises nothing")
    return f"epsilon {float(epsilon):.9g}" + f" at delta {float(delta):.3g}" * (delta > 0)


def _check_inputs(inputs: Node, tree: Tree) -> None:
    """Compare the public numbers that a guarantee states with those of the tree."""
    for name, value in inputs.items():
        unit, of_fit = name.split("_")[0], name.removeprefix("high_level_")
        if unit in ("epsilon", "mu", "rho"):
            known = tree.seen[unit] + [ZERO] * name.endswith(("_center", "_recalibration"))
            for stated in inputs.each(name):
                need(any(abs(stated - one) <= NEAR * one for one in known), f"nothing costs {name}")
        if of_fit in _OF_FIT and tree.seen["fits"]:
            own = tree.seen["fits"][0 if name == of_fit else -1].known.get(_OF_FIT[of_fit])
            if not isinstance(value, Node):
                need(value in (own, [own]), f"{name} is not that of the fits")
            elif name != "n_steps":  # which neither end bounds
                low, high = sorted(map(value.number, ("from", "to")))
                need(0.95 * low <= own <= 1.05 * high, f"{name} of a fit")
    if {"epsilon_fit", "mu_fit"} & {*inputs}:
        names = [name for name in inputs if name.startswith(("epsilon_", "mu_"))]
        each = [Spent.of(name.split("_")[0], one) for name in names for one in inputs.each(name)]
        pays(tree.cost, sequence(each), "the prices that the guarantee states")
    n = inputs.n_people()
    levels = [inputs[name] for name in ("n_low_level", "n_high_level") if inputs.get(name)]
    split = tree.seen["levels"] or [n] * bool(levels)  # a stack may have one part
    need({*tree.seen["n_records"]} <= {n} and split == levels, "n_records is not that of the fits")
    for name, found in (*tree.seen["runs"],) if "eta" in inputs else ():
        need(abs(inputs.number(name, -1.0) - Fraction(found)) <= 1e-9 * abs(found), "other runs")


# ---- Releases.
def check_words(promised: Node) -> None:
    """Look at neighbours and status of a guarantee, and at whether it promises anything."""
    status, relation, told = promised.have("status"), promised.have("neighbours"), "replace-one"
    need(isinstance(promised.have("assumptions"), list), "assumptions are no list")
    for suffix, words in _SAID.items():
        told += suffix * any(str(one).startswith(words) for one in promised["assumptions"])
    need(relation == told, f"{relation}, and assumptions say otherwise")
    need(promised.have("epsilon") != "inf", "epsilon is infinite: nothing is promised", NEW)
    need(status in ("proved", "asserted"), f"the status is {status!r}, which is no promise", NEW)
    need(not promised.get("not_covered"), "the guarantee says that it does not cover all", NEW)


def _check_guarantee(release: Node, of: str = "") -> tuple[Tree, str]:
    """Compare a guarantee of a release with its plan."""
    promised = release.part(f"{of}guarantee")
    check_words(promised)
    need(release.get(f"{of}plan") is not None, "no plan is stated, as by older versions", NEW)
    tree = Tree(release.part(f"{of}plan"), str(release.get("estimator", "")))
    found = check_total(promised, tree.cost)
    rho = tree.cost.rho if tree.cost.rho_of_mu else ZERO
    follows(promised.number("rho") if rho or "rho" in promised else rho, rho, "rho")
    need(not promised.get("renyi"), "divergences are those of a search")
    _check_inputs(promised.part("public_inputs"), tree)
    return tree, found


def _rows(value: Any) -> list[Any]:
    nested = any(isinstance(one, list) for one in value)
    return [row for one in value for row in _rows(one)] if nested else [value]


def _of_model(release: Node) -> tuple[Node, Node]:
    """Return what is released, by a fit or by an evaluation, and parameters of predictions."""
    kind = "values" if "estimator" in release else "released"
    return release.part(kind), release.get("parameters", Node(()))


def check_values(release: Node, tree: Tree) -> None:
    """Compare what is released with the measurements of it, none of which may be missing."""
    values, parameters = _of_model(release)
    ends = [name for name in values if name.endswith("intercept")]
    fitted = [name for name in values if "coef" in name and name != "evidence_coef"]
    fields = _FIELDS if release.get("estimator") else _OF_EVALUATION
    has = {*values, *release, f"{release.get('estimator')}()", "fits" * bool(fitted)}
    known = [one for by, *names in map(str.split, _KNOWN.split(";")) if by in has for one in names]
    new = {*values} - {*_ASKED, *ends, *fitted, *known} | {*release} - {*fields.split()}
    need(not new, f"no rule for {min(new, default='')}, which is released", NEW)
    need('"' not in json.dumps([*values.values()]), "what is released is more than numbers")
    wanted = " ".join(_ASKED.get(name, "") for name in (*values, *parameters, *release)).split()
    wanted += ["Histogram", "CellSums"] * (len(_rows(values.get("recalibration_knots", []))) - 1)
    if "grid" in parameters or release.get("estimator") == "DPTableOne":
        columns = release.part("columns").part("parameters").parts("columns")
        by = len(values["counts"]) > 1  # and there is one above
        wanted += ["Histogram"] * (sum("interaction" not in one for one in columns) - by - 1)
    if tree.estimator == "HybridMEstimator" and parameters.have("method") != "subset":
        wanted += ["Histogram" if values.number("n_cells") else "MeanOfRows"]
    elif tree.estimator == "HybridMEstimator":  # an order, counts of candidates, and one choice
        inputs = (release.get("fit_guarantee") or release["guarantee"])["public_inputs"]
        wanted += ["Histogram"] * (1 + len(inputs.several("candidate_sizes")))
        wanted += ["Sums"] * len(values.get("curve", [])) or ["permute-and-flip"]
    caps = values.get("max_cumulative_hazard", [])
    if any(values.get("row_center", [])) and not release.get("columns"):  # with public centres
        wanted += ["MeanOfRows"] + ["Histogram"] * ("causes" in parameters or len(caps) > 1)
    elif len({*caps}) > 1:
        wanted += ["Histogram"]  # caps of causes follow from a life table
    missing = Counter(wanted) - Counter(tree.seen["asked"])
    need(not missing, f"the plan has not all that is released: no {min(missing, default='')}")
    fits, split = tree.seen["fits"], sum(name.startswith("low_level_coef_") for name in values)
    split *= parameters.get("partition") == "samples"  # not on groups of columns
    same = split == len(tree.seen["parts"]) and (split or not tree.seen["levels"])
    need(same, "people are split for other models than are released")
    one = bool(ends and parameters.get("fit_intercept", True))
    rows = ((name, row) for name in fitted for row in _rows(values[name]))
    found = Counter(("coef" if "_level_" in name else name, one + len(row)) for name, row in rows)
    models = [row for fit in fits for row in fit.rows * fit.stated["models"]]
    numbers = [n for name in ends for row in _rows([values[name]]) for n in row]
    long = found == Counter(models) and (len(numbers) == len(models) if one else not any(numbers))
    need(long, "there are more or fewer coefficients than the fits have")


def _check_losses(release: Node, tree: Tree) -> None:
    """Compare bounds, links and kinds of losses with those that predictions are made by."""
    (values, parameters), below = _of_model(release), len(tree.seen["parts"])  # models of a stack
    for number, loss in enumerate(fit.loss for fit in tree.seen["fits"]):
        hazard = loss["kind"] == "hazard"
        ends = not (hazard or tree.published) and parameters.get("fit_intercept", True)
        last = parameters.number("intercept_scaling") if ends else 0  # a constant column
        need(loss.get("weighted", 1) or "inference_covariance" not in values, "rows are weighted")
        need(loss["data_norm"] ** 2 >= (1 + last**2) * (1 - NEAR), "rows beyond their bound", NEW)
        bounds = "max_cumulative_hazard" if hazard else "max_residual"
        stated = values.several(bounds) if bounds in values else [None]
        same = stated == loss["caps"] if hazard else stated[-(number >= below)] == loss["slope"]
        need(same, f"{bounds} is not that of the fits")
        for name in ("link", "n_intervals") if hazard else ():
            need(parameters.get(name, "logit") == loss[name], f"{name} of predictions is another")


def _check_last(release: Node, tree: Tree, last: Tree) -> None:
    """Compare a last fit with the search that has paid for it."""
    promised, own = release.part("guarantee"), release.part("fit_guarantee")
    weaker = STATUSES.index(own["status"]) > STATUSES.index(promised["status"])
    public = ["-same-group" in one["neighbours"] for one in (own, promised)]
    need(public[0] == public[1] and not weaker, "a last fit has other neighbours or status")
    refit, candidates = tree.seen["trained"], tree.seen["candidates"]
    within = candidates and all(price.covers(last.cost) for price in refit or candidates)
    need(within, "a last fit costs more than a search has for it")
    need(not last.seen["trained"] + last.seen["candidates"], "a last fit has no noise")
    need(not tree.seen["levels"], "a search is split as a stack")
    n, inputs = own.part("public_inputs").n_people(), promised.part("public_inputs")
    left = inputs.n_people() - (0 if refit else inputs.count("n_scored"))
    need(n == left if refit else n <= left, "a last fit is of people that it has not paid for")
    for kind in ("public", "granted", "fits"):
        tree.seen[kind] += last.seen[kind]


def verified(name: str, promised: Node, tree: Tree, found: str) -> Verdict:
    """Return the verdict on a guarantee that is that of a tree."""
    need("-same-group" in promised["neighbours"] or not tree.seen["public"], "no groups are public")
    granted = [*dict.fromkeys(tree.seen["public"] + tree.seen["granted"])]
    granted.append("the program drew this noise, once, and published nothing else")
    granted.append("a record is clipped and counted as its queries and losses say")
    if tree.seen["fits"]:
        granted.append("rounding.md: roundings and losses at the centre; points are certified")
    words = f"{name}, {found}, {promised['neighbours']}, {promised['status']}"
    return Verdict("verified", words, granted)


def check_release(source: str | Path | Node) -> Verdict:
    """Check a release, or an evaluation, which has no estimator and no noise on values."""
    release = read(source)
    is_evaluation = "estimator" not in release and "integrated_brier" in release
    promised = release.part("guarantee")
    need("pooled" not in promised.part("public_inputs"), BESIDE, NEW)
    need(is_evaluation or release.have("schema_version") == 3, "a layout of another version", NEW)
    tree, found = _check_guarantee(release)
    last = tree
    if release.get("fit_guarantee") is not None:  # of a search
        last, _ = _check_guarantee(release, "fit_")
        _check_last(release, tree, last)
    else:
        trained = tree.seen["trained"] + tree.seen["candidates"]
        need(not trained and release.get("fit_plan") is None, "a last fit has no guarantee")
    check_values(release, last)
    _check_losses(release, last)
    tree.seen["granted"] += ["evaluation.md: edges without a choice are public"] * is_evaluation
    need(is_evaluation or release.part("noise") == last.gives, "the noise on values is another")
    return verified(str(release.get("estimator", "an evaluation")), promised, tree, found)


def read(source: str | Path | Node) -> Node:
    """Return the object of JSON that a text, or a file, holds."""
    if isinstance(source, Path):
        content = b"SQLite" if source.is_dir() else source.read_bytes()
        need(not content.startswith(b"SQLite"), BESIDE, NEW)
        source = content.decode("utf-8")
    how = {"object_pairs_hook": Node, "parse_constant": int}  # NaN is no JSON, and no integer
    found = source if isinstance(source, Node) else json.loads(source, **how)
    need(isinstance(found, Node), "a file or a line is no object of JSON")
    return found


def judged(check: Callable[..., Verdict], *arguments: Any) -> Verdict:
    """Return the verdict of a check, which ends early where something is amiss."""
    try:
        return check(*arguments)
    except EndError as error:
        return Verdict(*error.args)
    except Exception as error:
        return Verdict("refuted", f"no file as the program writes it ({type(error).__name__})")


def verify(text: str) -> Verdict:
    """Check the text of a release, or of an evaluation.

    Examples
    --------
    >>> from skdpsurv.verify import verify
    >>> verify("{}").word
    'not covered'
    """
    return judged(check_release, text)


def worst(verdicts: Iterable[Verdict]) -> int:
    """Return the exit code of several releases together."""
    return max((CODES[one.word] for one in verdicts), key=[0, 10, 9].index, default=0)


def report(found: list[tuple[str, Verdict]]) -> int:
    """Print names and verdicts, and return the exit code of all."""
    for name, verdict in found:
        print(name, *verdict.lines(), sep="\n")
    if not found:
        print("usage: python -I verify.py RELEASE.json ... or FOLDER LEDGER.sqlite")
    return worst(verdict for _, verdict in found) if found else CODES[NEW]


def main(arguments: Sequence[str]) -> int:
    """Check files, by the file beside this one if it is there."""
    beside = Path(__file__).with_name("verify_study.py")
    if beside.is_file():  # which knows pools and folders, too
        return report([*runpy.run_path(str(beside))["checked"](arguments)])
    return report([(shown(str(one)), judged(check_release, Path(one))) for one in arguments])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
