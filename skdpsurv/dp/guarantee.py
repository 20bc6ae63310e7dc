"""Privacy guarantees: statements of public values alone, frozen."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import ROUND_CEILING, Context
from numbers import Integral, Real
from typing import Any

import numpy as np

from skdpsurv.dp.checks import check_each, instance, number_in, optional, rule_of
from skdpsurv.dp.exact_vectors import program_delta
from skdpsurv.dp.privacy_cost import epsilon_at, pure_to_rdp, rdp_to_epsilon
from skdpsurv.dp.references import WORDS, phrase

#: Statuses in words, from the strongest to the weakest.
_STATUSES = WORDS["statuses"]
#: Neighbours that differ in one record, or in all records of one person.
RECORD = "replace-one"
PERSON = "replace-one-person"
#: End of the name of a neighbour relation in which nobody changes group: groups are public.
SAME_GROUP = "-same-group"


class FrozenMapping(Mapping[str, object]):
    """A read-only, hashable dict; unlike MappingProxyType it can be pickled and copied."""

    def __init__(self, items: Mapping[str, object]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: str) -> object:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)


#: Python's own type for each kind of value, tried in this order.
_PLAIN: dict[Any, Callable[[Any], object]] = {
    (bool, np.bool_): bool,
    str: str,
    Integral: int,
    Real: float,
}


def immutable(name: str, value: object, *keys: str) -> Any:
    """Return an immutable copy made of Python's own types, which JSON can hold.

    ``keys`` lead to the value, for messages.
    """
    if value is None:
        return None
    for kind, plain in _PLAIN.items():
        if isinstance(value, kind):
            converted = plain(value)
            if converted != converted:
                raise ValueError(f"{_place(name, keys)} must not hold NaN.")
            return converted
    if isinstance(value, np.ndarray):
        return immutable(name, value.tolist(), *keys)
    if isinstance(value, list | tuple):
        return tuple(immutable(name, v, *keys) for v in value)
    if isinstance(value, Mapping):
        return FrozenMapping({str(k): immutable(name, v, *keys, str(k)) for k, v in value.items()})
    raise TypeError(
        f"{_place(name, keys)} must be made of numbers, strings, None, sequences and mappings, "
        f"got {type(value).__name__}."
    )


def _place(name: str, keys: Sequence[str]) -> str:
    return name + "".join(f"[{key[:40]!r}]" for key in keys[:9])


def as_json(value: object, leaf: Callable[[Any], object] = lambda value: value) -> Any:
    """Return frozen values as dicts and lists, at any depth, each leaf converted."""
    if isinstance(value, Mapping):
        return {key: as_json(one, leaf) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(one, leaf) for one in value]
    return leaf(value)


def weakest_status(statuses: Iterable[str]) -> str:
    """Return the weakest of the statuses of several results.

    Examples
    --------
    >>> weakest_status(["proved", "none", "seeded"])
    'none'
    """
    return max(statuses, key=list(_STATUSES).index)


class PrivacyLeakWarning(UserWarning):
    """Something that happens to private records is not covered by the stated guarantee."""


_TEXT = instance(str, "a string")
_TEXTS = rule_of("a tuple of strings, not one string", kind=lambda v: not isinstance(v, str))
_RULES = {
    "epsilon": number_in(0.0, math.inf),
    "delta": number_in(0.0, 1.0, closed="left"),
    "rho": optional(number_in(0.0, math.inf, closed="left")),
    "neighbours": _TEXT,
    "mechanism": _TEXT,
    "source": _TEXT,
    # Not of a subclass, which may compare as it likes.
    "status": rule_of(
        f"one of {', '.join(map(repr, _STATUSES))}",
        holds=lambda value: type(value) is str and value in _STATUSES,
    ),
    "public_inputs": instance(Mapping, "a mapping of names to public values"),
    "assumptions": _TEXTS,
    "not_covered": _TEXTS,
}


@dataclass(frozen=True, repr=False)
class PrivacyGuarantee:
    """The differential-privacy guarantee of one released result.

    Parameters
    ----------
    epsilon : float
        Privacy loss; ``numpy.inf`` promises nothing.
    delta : float, default=0.0
        Probability with which the bound by epsilon may fail; 0 for pure differential privacy.
    neighbours : str, default="replace-one"
        "replace-one" record, or "replace-one-person" with all records of that person.
    mechanism : str
        Released statistics, and how they were perturbed.
    status : {"proved", "asymptotic", "asserted", "seeded", "none"}, default="proved"
        "proved": a theorem about the program, or in real arithmetic where the assumptions say so;
        "asymptotic": true only at the limit of the sampler; "seeded": the noise came from a known
        integer, so epsilon is nominal; "none": no guarantee.
    public_inputs : mapping of str to object
        Values taken to be public: numbers, strings, None, sequences and mappings. Frozen.
    assumptions : tuple of str
        Other conditions of the theorem.
    source : str
        Theorem, equation or page with the proof.
    not_covered : tuple of str
        Influences on this result past the mechanism, such as a step that learned from the records.
    rho : float or None, default=None
        The mechanism is rho-zCDP (Bun and Steinke 2016); epsilon at delta follows from it.
    renyi : tuple of (float, float), default=()
        Orders above 1, ascending, and upper bounds on the Renyi divergence of each.

    Examples
    --------
    >>> from skdpsurv.dp import PrivacyGuarantee
    >>> guarantee = PrivacyGuarantee(1.0, mechanism="lattice Laplace", public_inputs={"n": 100})
    >>> guarantee
    PrivacyGuarantee(epsilon=1.0, delta=0.0, neighbours='replace-one', \
mechanism='lattice Laplace', status='proved', public_inputs={'n': 100})
    >>> PrivacyGuarantee.from_dict(guarantee.to_dict()) == guarantee
    True
    """

    epsilon: float
    delta: float = 0.0
    neighbours: str = RECORD
    mechanism: str = ""
    status: str = "proved"
    public_inputs: Mapping[str, object] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    source: str = ""
    not_covered: tuple[str, ...] = ()
    rho: float | None = None
    renyi: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        check_each(_RULES, self)
        stated = {
            "epsilon": float(self.epsilon) + 0.0,  # no -0.0, which databases keep as 0.0
            "delta": float(self.delta) + 0.0,
            "rho": None if self.rho is None else float(self.rho),
            "assumptions": tuple(map(str, self.assumptions)),
            "not_covered": tuple(map(str, self.not_covered)),
            "public_inputs": immutable("public_inputs", self.public_inputs),
            "renyi": _checked_curve(self.renyi, float(self.epsilon), float(self.delta)),
        }
        for name, value in stated.items():
            # The dataclass is frozen, also to its own __post_init__.
            object.__setattr__(self, name, value)
        epsilon, delta = self.epsilon, self.delta
        rho = self.rho
        if rho is not None and (not delta or epsilon_at(rho, delta) > _with_slack(epsilon)):
            raise ValueError(
                "rho must be worth no more than epsilon at delta, which must be positive; "
                f"got {self.rho}."
            )
        if math.isinf(epsilon) and self.status not in ("seeded", "none"):
            raise ValueError(
                f"status {self.status!r} promises something, which epsilon=inf does not; "
                "use status='none'."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of JSON values, with "inf" for infinity and without empty rho and renyi."""
        stated = {f.name: as_json(getattr(self, f.name), _infinity_as_text) for f in fields(self)}
        return {k: v for k, v in stated.items() if v is not None and (k != "renyi" or v)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PrivacyGuarantee:
        """Make a guarantee from the dict of :meth:`to_dict`; other keys are a ValueError."""
        known = {f.name for f in fields(cls)}
        values: dict[str, Any] = {"rho": None, "renyi": (), **data}
        if unknown := sorted(set(data) - known):
            raise ValueError(f"unknown key(s) in a privacy guarantee: {', '.join(unknown)}.")
        if missing := sorted(known - set(values)):
            raise ValueError(f"missing key(s) in a privacy guarantee: {', '.join(missing)}.")
        numeric = ("epsilon", "delta", "rho", "public_inputs")
        values.update({k: as_json(values[k], _text_as_infinity) for k in numeric})
        return cls(**values)

    def renyi_at(self, order: float) -> float:
        """Return the least known upper bound on the Renyi divergence of an order, or infinity.

        Examples
        --------
        >>> from skdpsurv.dp import PrivacyGuarantee
        >>> round(PrivacyGuarantee(0.1).renyi_at(10.0), 3)
        0.044
        >>> PrivacyGuarantee(1.0, 1e-6).renyi_at(10.0)
        inf
        """
        known = [] if self.delta else [pure_to_rdp(self.epsilon, order)]
        if self.rho is not None:
            known.append(math.nextafter(self.rho * order, math.inf))
        # Divergences grow with the order: that of a higher one holds.
        known += [value for at, value in self.renyi if at >= order]
        return min(known, default=math.inf)

    @property
    def n_protected(self) -> int | None:
        """Number of protected records, or people if these are; None if it is not stated."""
        found = self.public_inputs.get("n_records", self.public_inputs.get("n_private"))
        return found if type(found) is int else None

    @property
    def limits(self) -> tuple[str, ...]:
        """Limits of the guarantee, whatever epsilon is: of this result, then of any."""
        added = program_delta(self.epsilon)
        here = f" (here {added:.2g})" if added >= 1e-20 else ""
        return (
            *self.not_covered,
            *(limit.replace("{here}", here) for limit in WORDS["limits"]["any"]),
        )

    def describe(self) -> str:
        """Describe the promise, about whom it is, and its limits, in lines of plain text."""
        said = (("How", self.mechanism), ("Proof", self.source))
        how = " ".join(f"{what}: {text}." for what, text in said if text)
        paragraphs = (self._headline(), self._promise(), self._about_whom(), how)
        lines = [textwrap.fill(paragraph, width=88) for paragraph in paragraphs if paragraph]
        public = [f"{k} = {_show(v)}" for k, v in sorted(self.public_inputs.items())]
        for what, items in (
            ("Assumed public (known to everybody, chosen without looking at the data)", public),
            ("It also rests on", self.assumptions),
            ("Not covered, whatever epsilon is", self.limits),
        ):
            if items:
                lines.append(f"{what}:\n{_bullets(items)}")
            elif items is public:
                lines.append("Assumed public: nothing was listed.")
        return "\n\n".join(lines)

    def _headline(self) -> str:
        delta = f", delta = {self.delta:g}" if self.delta else ""
        if self.rho is not None:
            delta += f" (rho = {self.rho:.4g}, zCDP)"
        status = self.status + (self._of_what_numbers if self.status == "proved" else "")
        return f"Differential privacy with epsilon = {self.epsilon:g}{delta}: status {status}."

    @property
    def in_real_arithmetic(self) -> bool:
        """Whether the theorem is about real numbers, not about the program."""
        return any(a.startswith("real arithmetic") for a in self.assumptions)

    @property
    def _of_what_numbers(self) -> str:
        return str(WORDS["promise"]["numbers"]) if self.in_real_arithmetic else ""

    @property
    def meaning(self) -> str:
        """Meaning of the status, in a few words."""
        numbers = self._of_what_numbers if self.status not in ("seeded", "none") else ""
        return f"{_STATUSES[self.status]}{numbers}"

    def _promise(self) -> str:
        words = WORDS["promise"]
        if self.status in ("seeded", "none"):
            return str(words[self.status])
        unit, values = "record", "one record"
        if self.neighbours.removesuffix(SAME_GROUP) == PERSON:
            unit, values = "person's records", "all records of one person"
        kept = self.neighbours.endswith(SAME_GROUP)
        said = words["kept"].format(
            unit=unit,
            values=values,
            group=words["group"] * kept,
            same=words["same"] * kept,
            epsilon=self.epsilon,
            factor=_rounded_up(math.exp(self.epsilon)) if self.epsilon < 700 else "inf",
            slack=words["slack"].format(delta=self.delta) if self.delta else "",
            numbers=self._of_what_numbers,
        )
        return f"{said}{words.get(self.status, '')}"

    def _about_whom(self) -> str:
        words, relation = WORDS["about"], self.neighbours.removesuffix(SAME_GROUP)
        known = relation if relation in (RECORD, PERSON) else "other"
        said = words[known].format(relation=relation, more=words["more"] if self.delta else "")
        return f"{said}{words['group'] if relation != self.neighbours else ''}"

    def __repr__(self) -> str:
        shown = ("epsilon", "delta", "neighbours", "mechanism", "status", "public_inputs")
        return f"PrivacyGuarantee({', '.join(f'{k}={getattr(self, k)!r}' for k in shown)})"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.describe())}</pre>"


def _checked_curve(pairs: Any, epsilon: float, delta: float) -> tuple[tuple[float, float], ...]:
    """Return orders and divergences as numbers, or raise if they are inconsistent."""
    if isinstance(pairs, str) or not all(
        isinstance(pair, tuple | list) and [isinstance(x, Real) for x in pair] == [True, True]
        for pair in pairs
    ):
        raise TypeError("renyi must be a tuple of pairs: orders, and their Renyi divergences.")
    curve = tuple((float(order), float(value)) for order, value in pairs)
    orders, values = [order for order, _ in curve], [value for _, value in curve]
    ascending = sorted(set(orders)) == orders and sorted(values) == values
    if not ascending or not all(1.0 < a < math.inf and 0.0 <= v < math.inf for a, v in curve):
        raise ValueError(
            "renyi must hold finite orders above 1, ascending, and divergences that are finite, "
            "not negative, and do not fall."
        )
    if curve and not delta:
        raise ValueError("renyi must be empty where delta is 0: it follows from epsilon.")
    if curve and min(rdp_to_epsilon(v, delta, a) for a, v in curve) > _with_slack(epsilon):
        raise ValueError("renyi must be worth no more than epsilon at delta.")
    return curve


def _with_slack(epsilon: float) -> float:
    """Return an epsilon that its rounded conversions do not exceed."""
    return epsilon * (1.0 + 1e-9) + 1e-9


def _rounded_up(bound: float) -> str:
    """Return a bound with four digits, never below it."""
    # exp is not exact itself: one more unit in the last place of the double.
    context = Context(prec=4, rounding=ROUND_CEILING)
    return f"{float(context.create_decimal(math.nextafter(bound, math.inf))):.4g}"


def _infinity_as_text(value: object) -> object:
    return repr(value) if isinstance(value, float) and math.isinf(value) else value


def _text_as_infinity(value: object) -> object:
    return float(value) if isinstance(value, str) and value in ("inf", "-inf") else value


def _show(value: object) -> str:
    """Show a public value on one line; a long grid is abbreviated."""
    if isinstance(value, tuple) and len(value) > 8:
        head = ", ".join(_show(v) for v in value[:3])
        return f"[{head}, ..., {_show(value[-1])}] ({len(value)} values)"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_show(v)}' for name, v in value.items())}}}"
    if isinstance(value, tuple):
        return f"[{', '.join(_show(v) for v in value)}]"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(
        textwrap.fill(item, width=88, initial_indent="  - ", subsequent_indent="    ")
        for item in items
    )


def epsilon_warnings(epsilon: float) -> list[str]:
    """Return a warning about an epsilon so large that it hardly limits anything."""
    return [phrase("epsilon", epsilon=epsilon)] if 10.0 <= epsilon < math.inf else []


def delta_warnings(delta: float, used: bool, n_records: int) -> list[str]:
    """Return a warning about a delta that is large for so many records, or not used."""
    n = float(n_records)
    if delta and not used:
        return [phrase("unused_delta", delta=delta)]
    if delta * n >= 1.0:
        return [phrase("whole_record", delta=delta, bound=1.0 / n)]
    return [phrase("large_delta", delta=delta, bound=1.0 / n**2)] if delta * n**2 > 1.0 else []
