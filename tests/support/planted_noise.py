"""Less noise in one part of a fit that is replayed, by the number of the part and of its draw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np

from skdpsurv.dp.exact_vectors import ExactVector
from skdpsurv.mechanisms import sums, vector_noise
from skdpsurv.mechanisms.perturbation import Problem
from tests.support.asked_source import AskedSource

#: The number of a part and, where a part has several sorts of noise, of its draw.
Place = tuple[int, int]


def _place(source: Any) -> Place:
    part = source._answers
    two_sorts = isinstance(part.what, Problem) and part.what.calibration.linear is not None
    two_sorts = two_sorts and part.what.calibration.output is not None
    return part.replay.parts.index(part), len(part.drawn) if two_sorts else 0


def _half_of_integers(honest: Callable[..., Any], value: Any, scale: float, source: Any) -> Any:
    return honest(value, scale / 2, source)


def _half_of_vectors(honest: Callable[..., Any], size: int, scale: float, source: Any) -> Any:
    return honest(size, scale / 2, source)


def _twice_the_price(
    honest: Callable[..., Any], scores: Any, epsilon: float, sensitivity: float, source: Any
) -> Any:
    return honest(scores, 2 * epsilon, sensitivity, source)


#: Where noise is drawn, and what half of it is, or none.
HALF = {
    (sums, "lattice_laplace"): _half_of_integers,
    (sums, "lattice_gaussian"): _half_of_integers,
    (sums, "permute_and_flip"): _twice_the_price,
    (vector_noise, "exact_spherical_laplace"): _half_of_vectors,
    (vector_noise, "exact_spherical_gaussian"): _half_of_vectors,
}
NONE = {
    (sums, "lattice_laplace"): lambda honest, value, scale, source: value,
    (sums, "lattice_gaussian"): lambda honest, value, scale, source: value,
    (sums, "permute_and_flip"): lambda honest, scores, *others: int(np.argmax(scores)),
    (vector_noise, "exact_spherical_laplace"): lambda honest, size, scale, source: ExactVector(
        [0] * size, scale
    ),
    (vector_noise, "exact_spherical_gaussian"): lambda honest, size, scale, source: ExactVector(
        [0] * size, scale
    ),
}


@contextmanager
def less_noise(place: Place | None, how: dict[Any, Callable[..., Any]]) -> Iterator[list[Place]]:
    """Plant less noise in one place, or nowhere; yield the places where noise is drawn."""
    seen: list[Place] = []

    def planted(honest: Callable[..., Any], faulty: Callable[..., Any]) -> Callable[..., Any]:
        def draw(*arguments: Any) -> Any:
            if not isinstance(arguments[-1], AskedSource):  # what is made of a release
                return honest(*arguments)
            here = _place(arguments[-1])
            if here not in seen:
                seen.append(here)
            return faulty(honest, *arguments) if here == place else honest(*arguments)

        return draw

    with ExitStack() as stack:
        for (module, name), faulty in how.items():
            honest = getattr(module, name)
            stack.enter_context(mock.patch.object(module, name, planted(honest, faulty)))
        yield seen
