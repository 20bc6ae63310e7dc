"""What epsilon means for one record, and what it does not mean where nothing was proved."""

from __future__ import annotations

from dataclasses import dataclass

from skdpsurv.privacy import PrivacyGuarantee
from skdpsurv.privacy.guarantee import PERSON
from skdpsurv.report.advantage import Advantage
from skdpsurv.report.text import exact, percent_up, up

__all__ = ["Promise", "status_words", "unit_of"]

#: By neighbours: what the attacker knows, what is guessed, and what is changed.
WORLDS = {
    "replace-one": (
        "everything about every other record",
        "which of two versions of one record was in the data",
        "replacing the values of one record by any others",
    ),
    PERSON: (
        "everything about every other person",
        "which of two versions of one person’s records was in the data",
        "replacing all records of one person by any others",
    ),
}
OTHER_WORLDS = (
    "two data sets that are neighbours",
    "which of the two was fitted",
    "going from one of them to the other",
)

#: Bounds at which a guess is nearly always right.
HARDLY_A_LIMIT = 0.9

STATUS = {
    "proved": (
        "Proved",
        "There is a proof about the program that made this release. What it supposes of the "
        "machine is said under “What it rests on” and “Not covered”.",
    ),
    "asymptotic": (
        "No promise: true only at the limit of a sampler",
        "The stated epsilon belongs to the law that a Markov chain tends to. This release is one "
        "state of a chain that ran for a finite number of steps, and nothing is proved about that.",
    ),
    "seeded": (
        "No promise: reproducible, and therefore not private",
        "The noise was drawn from a known integer (random_state). Whoever has that integer can "
        "draw the noise again and subtract it. The stated epsilon is nominal.",
    ),
    "none": (
        "No promise: there is no guarantee",
        "This release may reveal anything about any record. Handle it as you handle the records.",
    ),
}


#: In place of the first, where the proof does not reach the program.
REAL_NUMBERS = (
    "Proved, in real arithmetic",
    "There is a proof about the mechanism in real numbers. That the computer only comes near to "
    "them is not part of it.",
)


def status_words(guarantee: PrivacyGuarantee) -> tuple[str, str]:
    """Return a headline for a guarantee's status, and what it means."""
    if guarantee.status == "proved" and guarantee.in_real_arithmetic:
        return REAL_NUMBERS
    return STATUS[guarantee.status]


def unit_of(guarantee: PrivacyGuarantee) -> str:
    """Return what a guarantee is about: a record, or a person."""
    return "person" if guarantee.neighbours == PERSON else "record"


@dataclass(frozen=True)
class Promise:
    """What is said about a guarantee.

    Parameters
    ----------
    holds : bool
        Whether anything is promised.
    lines : tuple of str
        Paragraphs.
    about : tuple of str
        Which data sets are neighbours.
    bound : Advantage or None
        Only of what is promised.
    """

    holds: bool
    lines: tuple[str, ...]
    about: tuple[str, ...]
    bound: Advantage | None

    @classmethod
    def of(cls, guarantee: PrivacyGuarantee) -> Promise:
        """Return what a guarantee means."""
        if guarantee.status != "proved":
            return cls(False, _nothing(guarantee), _neighbours(guarantee), None)
        bound = Advantage.of(guarantee)
        return cls(True, _something(guarantee, bound), _neighbours(guarantee), bound)


def _nothing(guarantee: PrivacyGuarantee) -> tuple[str, ...]:
    headline, meaning = STATUS[guarantee.status]
    return (
        f"{headline}. {meaning}",
        "So no limit is known on how well somebody can tell from this release what one "
        f"{unit_of(guarantee)}’s values were. No figure is drawn, as there is nothing to draw.",
    )


def _something(guarantee: PrivacyGuarantee, bound: Advantage) -> tuple[str, ...]:
    epsilon, delta = exact(guarantee.epsilon), guarantee.delta
    slip = f", up to a probability of {exact(delta)}" if delta else ""
    stated = f"epsilon = {epsilon}" + (f" and delta = {exact(delta)}" if delta else "")
    knows, guesses, change = WORLDS.get(guarantee.neighbours, OTHER_WORLDS)
    factor = f"exp({epsilon})" if bound.factor is None else up(bound.factor, 3)
    lines = [
        f"Think of somebody who sees this release, knows {knows}, and has to guess {guesses}. Both "
        f"are equally likely. With {stated} the guess is right with a probability of at most "
        f"{percent_up(bound.right)}. A blind guess is right with 50 %.",
        "In other words: the attacker’s advantage, true-positive rate less false-positive rate, is "
        f"at most {percent_up(bound.most)}. A blind guess has 0 %; with 100 % there is no doubt.",
        f"The promise behind these numbers: {change} makes no result more than {factor} times as "
        f"probable{slip}.",
    ]
    if bound.most > HARDLY_A_LIMIT:
        lines.append(
            "An epsilon this large is hardly a limit: on paper, the guess may nearly always be "
            "right."
        )
    of = "a mechanism in real numbers" if guarantee.in_real_arithmetic else "the program"
    lines.append(
        f"All of this is a theorem about {of}, and the bounds are rounded up. It limits "
        f"what is learned from one {unit_of(guarantee)} having taken part. What is true of people "
        "in general can be learned all the same, from the others."
    )
    return tuple(lines)


def _neighbours(guarantee: PrivacyGuarantee) -> tuple[str, ...]:
    others = ("Public records are not protected.",) if "n_public" in guarantee.public_inputs else ()
    return (*_relation(guarantee), *others)


def _relation(guarantee: PrivacyGuarantee) -> tuple[str, ...]:
    if guarantee.neighbours == PERSON:
        return (
            "Neighbours: two data sets of as many people that differ in all records of one person, "
            "also in how many records these are (replace-one-person).",
            "The unit is a person.",
        )
    if guarantee.neighbours == "replace-one":
        # k times an epsilon that promises nothing is no promise either.
        more = ", and with more than k times the delta" if guarantee.delta else ""
        several = f"Somebody with k records is protected with k times the epsilon only{more}."
        return (
            "Neighbours: two data sets with the same number of records that differ in the values "
            "of one record (replace-one).",
            f"The unit is a record. {several if guarantee.status == 'proved' else ''}".strip(),
        )
    return (
        f"Neighbours: by the relation {guarantee.neighbours!r}, which this page cannot explain.",
    )
