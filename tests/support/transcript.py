"""transcript_audit: replay a fit on two neighbours, and compare the laws of all that it draws.

No transcript shows whether drawn noise follows its stated law, draws that no record has a part in,
and what is released without a mechanism, unless it changes the release of the pair.
"""

import functools
import inspect
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdpsurv.audit.epsilon import released_numbers
from skdpsurv.audit.subject import Subject, at_most, check_neighbours
from skdpsurv.dp.input_errors import suppressed_float_errors
from skdpsurv.dp.thread_warnings import suppressed_warnings
from tests.support.asked_source import asked_instead
from tests.support.draw_ratio import best_answer, comparable
from tests.support.part_ratio import AuditedPart, audited_parts, whole_of
from tests.support.replay import Replay

#: Public fits within a private one may draw, as of a tree: in each replay the same.
PUBLIC_SEED = 0


@dataclass(frozen=True)
class TranscriptResult:
    """How far the laws of all draws of two fits are apart, part by part and together."""

    parts: tuple[AuditedPart, ...]
    total: float
    claimed: float
    price: float
    unit: str
    follows: bool
    released: Mapping[str, Any]

    @property
    def refuted(self):
        """What does not hold, in words; nothing if the claim was not refuted."""
        found = [
            f"{part.name}: {part.found:.4g} of {part.allowed:.4g}"
            for part in self.parts
            if not part.passed
        ]
        if not self.follows:
            found.append("the release does not follow from what was drawn")
        if not at_most(self.total, self.claimed):
            found.append(f"all draws together: {self.total:.4g} of {self.claimed:.4g}")
        if not at_most(self.price, self.claimed):
            found.append(f"prices of all parts: {self.price:.4g} of {self.claimed:.4g}")
        return tuple(found)

    @property
    def passed(self):
        """Whether no part, and not all together, exceeds what it may cost."""
        return not self.refuted


def transcript_audit(estimator, data, neighbour, *, n_cells=512):
    """Compare the laws of all that two fits draw, part by part, without sampling.

    Where no record moves a part, nothing is found out of it: its ``found`` is 0.
    """
    if isinstance(estimator, functools.partial):
        parameters = inspect.signature(estimator).parameters
        arguments = [dict(zip(parameters, each, strict=False)) for each in (data, neighbour)]
        epsilon = float(parameters["epsilon"].default)
        run = lambda named: estimator(**named, random_state=0)  # noqa: E731
    else:
        subject = Subject.of(estimator)
        named = ((data, "data"), (neighbour, "neighbour"))
        arguments = [subject.fit_arguments(*each) for each in named]
        epsilon, run = subject.epsilon, functools.partial(_fit, subject)
    check_neighbours(*arguments)
    return _both_ways(run, arguments, epsilon, n_cells)


def _fit(subject, named):
    # A seed: what is replayed was never private, and says so.
    model = subject.seeded(0)
    for name, value in model.get_params().items():
        match name.split("__")[-1]:
            case "n_jobs":  # answers are for this thread
                model.set_params(**{name: 1})
            case "verbose":
                model.set_params(**{name: type(value)(0)})
    return model.fit(**named)


def _both_ways(run, arguments, epsilon, n_cells):
    ways = [_one_way(run, *two, epsilon, n_cells) for two in (arguments, arguments[::-1])]
    # What is not drawn in both ways depends on the records: then the release does not follow.
    both = list(zip(*(way.parts for way in ways), strict=False))
    return replace(
        max(ways, key=lambda way: way.total),
        parts=tuple(max(each, key=lambda part: part.found) for each in both),
        price=max(way.price for way in ways),
        follows=all(way.follows for way in ways),
    )


def _one_way(run, data, neighbour, epsilon, n_cells):
    """Compare with the answers of the first data set."""
    chosen = {}
    while True:
        one, fitted = _replayed(run, data, Replay(chosen))
        answers = [each.answer for each in one.drawn]
        other, again = _replayed(run, neighbour, Replay(chosen, answers))
        pairs = list(zip(one.drawn, other.drawn, strict=False))
        open_ = [
            i
            for i, pair in enumerate(pairs)
            if i not in chosen and pair[0].is_choice and comparable(*pair)
        ]
        if not open_:
            break
        # What is drawn later may depend on a choice; what follows at once does not.
        place = open_[0]
        while place in open_:
            chosen[place] = best_answer(*pairs[place], n_cells, len(chosen))
            place += 1
    parts, released = audited_parts(one, other, n_cells), _released(fitted)
    whole = whole_of(fitted, parts, epsilon)
    same = len(one.drawn) == len(other.drawn) and _same(released, _released(again))
    whole = whole if same else whole._replace(total=np.inf)
    return TranscriptResult(tuple(parts), *whole, same, released)


def _replayed(run, named, replay):
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    np.random.seed(PUBLIC_SEED)  # noqa: NPY002
    random.seed(PUBLIC_SEED)
    try:
        with suppressed_warnings(), suppressed_float_errors(), asked_instead(replay):
            fitted = run(named)
    except Exception:
        if not replay.refused:
            raise
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)
    if replay.refused:
        raise TypeError(
            "estimator draws from a law that is not known, such as that of a Markov chain's state: "
            "there is no transcript to compare."
        )
    return replay, fitted


def _released(fitted):
    found = getattr(fitted, "released", None)
    return found if isinstance(found, Mapping) else released_numbers(fitted)


def _same(one, other):
    return one.keys() == other.keys() and all(
        np.array_equal(np.asarray(one[name], float), np.asarray(other[name], float), equal_nan=True)
        for name in one
    )
