"""One source of randomness: operating-system entropy by default, seeded only when asked.

What is random in this package is drawn from a :class:`RandomSource`, made by
:func:`random_source` from an estimator's ``random_state`` at the start of ``fit`` and dropped at
its end; but for lattice Laplace noise without a seed, which OpenDP draws from a generator of its
own. A source is never stored on an estimator: whoever holds its key can subtract the noise.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np
from randomgen import ChaCha

from skdpsurv.checks import seed

_KEY_BITS = 256
#: What a source is for, if nothing else is said.
NOISE = "noise"


def _derive_key(label: str, *fields: str | bytes) -> int:
    """Hash a label and fields to a ChaCha key; length prefixes make the encoding injective."""
    digest = hashlib.blake2b(digest_size=_KEY_BITS // 8)
    for field in (b"skdpsurv", label, *fields):
        raw = field.encode() if isinstance(field, str) else field
        digest.update(len(raw).to_bytes(8, "big"))
        digest.update(raw)
    return int.from_bytes(digest.digest(), "big")


def _generator(key: int) -> np.random.Generator:
    # key=, not seed=: a seed would be squeezed through a SeedSequence, which is no
    # cryptographic function; the key is ChaCha's own 256-bit key.
    return np.random.Generator(ChaCha(key=key, rounds=20))


class RandomSource:
    """A stream of random numbers that knows whether it may be used for private noise.

    Make one with :func:`random_source`; the constructor is not meant for users.

    Parameters
    ----------
    key : int
        256-bit key of the ChaCha20 stream. Private when ``seeded`` is False.
    seeded : bool
        True when the key comes from an integer ``random_state``: anybody who knows the integer
        can draw the same noise, so nothing drawn from this source is private.

    Notes
    -----
    A source cannot be pickled or copied, and refuses to be used in a forked child: two holders of
    one stream would add the same noise twice, and a difference of two releases would cancel it.
    Give each model its own child with :meth:`spawn`, in the parent.
    """

    __slots__ = ("_children", "_generator", "_key", "_pid", "_seed", "_seeded")

    def __init__(self, key: int, *, seeded: bool, seed: int | None = None) -> None:
        self._seed = seed
        self._generator = _generator(key)
        self._seeded = seeded
        # Only a seeded parent needs its key again, to derive its children.
        self._key = key if seeded else None
        self._children = itertools.count()
        self._pid = os.getpid()

    @property
    def generator(self) -> np.random.Generator:
        """Numpy generator over the ChaCha20 stream."""
        self._refuse_fork()
        return self._generator

    def bits(self, count: int) -> int:
        """Return so many independent fair bits of the stream, as a non-negative integer.

        Parameters
        ----------
        count : int
            Public, at least 1.

        Returns
        -------
        int
        """
        whole, rest = divmod(count, 8)
        drawn = int.from_bytes(self.generator.bytes(whole + (rest > 0)), "big")
        return drawn >> (8 - rest if rest else 0)

    @property
    def seeded(self) -> bool:
        """Whether the stream can be reproduced from a public integer."""
        return self._seeded

    @property
    def exact(self) -> bool:
        """Whether vectors of noise are to be drawn in more digits than doubles have."""
        return not self._seeded

    @property
    def independent(self) -> RandomSource:
        """The source, for a draw that no record has a part in: an audit does not ask for it."""
        return self

    def part(self, what: object, price: object) -> RandomSource:
        """Return the source for one part of a release, which has a price: audits take note.

        Parameters
        ----------
        what : object
            What is asked of the records.
        price : object
            Public: an epsilon, or what Gaussian noise costs.
        """
        return self

    def other(self, purpose: str) -> RandomSource:
        """Return a source for another purpose, unrelated to this one.

        Parameters
        ----------
        purpose : str
            As for :func:`random_source`.

        Returns
        -------
        RandomSource
            Of a source that was made from an integer, what that integer gives for the purpose.
        """
        self._refuse_fork()
        if self._key is None or self._seed is not None:
            return random_source(self._seed, purpose=purpose)
        key = _derive_key("other", self._key.to_bytes(_KEY_BITS // 8, "big"), purpose)
        return RandomSource(key, seeded=True)

    def spawn(self, n: int) -> list[RandomSource]:
        """Return ``n`` independent child sources, one for each model or worker thread.

        Parameters
        ----------
        n : int
            Number of children, at least 0.

        Returns
        -------
        list of RandomSource
            With operating-system entropy each child has a fresh key of its own. The children of
            a seeded source are determined by its key and their index; a second call continues
            the index, so no two children of one source share a stream.
        """
        self._refuse_fork()
        if self._key is None:
            return [RandomSource(secrets.randbits(_KEY_BITS), seeded=False) for _ in range(n)]
        parent = self._key.to_bytes(_KEY_BITS // 8, "big")
        return [
            RandomSource(_derive_key("child", parent, str(next(self._children))), seeded=True)
            for _ in range(n)
        ]

    def _refuse_fork(self) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError(
                "A RandomSource cannot be used in a forked process: parent and child would draw "
                "the same noise. Make a source in each process."
            )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A RandomSource cannot be pickled or copied: a second holder of the stream would "
            "repeat the same noise, and could subtract it. Use spawn() in the parent process."
        )

    def __repr__(self) -> str:
        return f"RandomSource(seeded={self._seeded})"


class Draw(NamedTuple):
    """What a sampler is asked for.

    Parameters
    ----------
    law : str
    scale : float
        Scale or standard deviation of the noise; of a ladder, its epsilon; of a choice, 1.
    given : Any
        Exact integers; of vectors, their dimension, or a law of noise; of choices, the exponents of
        their chances; of a ladder, its rungs and how many there are.
    """

    law: str
    scale: float
    given: Any


class AskedPart(Protocol):
    """Who answers for one part of a release."""

    def part(self, what: object, price: object) -> AskedPart:
        """Begin another part."""

    def ask(self, draw: Draw) -> Any:
        """Return what is drawn."""

    def refuse(self) -> None:
        """Take note of a draw whose law nobody knows."""


class AskedSource(RandomSource):
    """A source that is asked what a sampler is to draw, instead of for random numbers.

    For audits, which replay a fit and look at what each of its samplers is given. Nothing that
    comes of it is private.

    Parameters
    ----------
    answers : AskedPart
    independent : RandomSource or None
        For draws that no record has a part in; None for the same in each replay.
    """

    __slots__ = ("_answers", "_independent")

    def __init__(self, answers: AskedPart, independent: RandomSource | None = None) -> None:
        super().__init__(0, seeded=True)
        self._answers = answers
        self._independent = RandomSource(0, seeded=True) if independent is None else independent

    @property
    def generator(self) -> NoReturn:
        """Refuse: what is drawn from random numbers by itself has a law that is not stated."""
        self._answers.refuse()
        raise TypeError("A draw whose law is not known cannot be asked for.")

    @property
    def exact(self) -> bool:
        """As for a release."""
        return True

    @property
    def independent(self) -> RandomSource:
        """A source of random numbers, the same in each replay."""
        return self._independent

    def part(self, what: object, price: object) -> AskedSource:
        """Return the source for one part of a release."""
        return AskedSource(self._answers.part(what, price), self._independent)

    def spawn(self, n: int) -> list[RandomSource]:
        """Return sources that are answered by the same."""
        return [AskedSource(self._answers, self._independent) for _ in range(n)]

    def ask(self, draw: Draw) -> Any:
        """Return what a sampler is to draw."""
        return self._answers.ask(draw)


#: Who answers in place of the seeded sources of a fit that is replayed.
_ANSWERS: ContextVar[AskedPart | None] = ContextVar("_ANSWERS", default=None)


@contextmanager
def asked_instead(answers: AskedPart) -> Iterator[None]:
    """Have fits with an integer ``random_state``, which are not private anyway, ask for noise.

    Parameters
    ----------
    answers : AskedPart
        A part of its own begins with each source, which has no price.

    Notes
    -----
    A fit without a seed draws its noise as ever. In this thread only.
    """
    token = _ANSWERS.set(answers)
    try:
        yield
    finally:
        _ANSWERS.reset(token)


def random_source(random_state: int | None, *, purpose: str = NOISE) -> RandomSource:
    """Make the source of randomness that ``random_state`` asks for.

    Parameters
    ----------
    random_state : None or int
        None: a ChaCha20 stream under a fresh 256-bit key from the operating system. An int: a
        reproducible stream; what is computed with it is not private, because the noise can be
        drawn again and subtracted.
    purpose : str, default="noise"
        What the stream is for. Streams of one integer for different purposes are unrelated, so
        that publishing a split (``purpose="split"``) says nothing about the noise.

    Returns
    -------
    RandomSource

    Raises
    ------
    TypeError, ValueError
        If ``random_state`` is neither None nor a non-negative integer.

    Examples
    --------
    >>> from skdpsurv.privacy import random_source
    >>> random_source(None)
    RandomSource(seeded=False)
    >>> first, again = random_source(7), random_source(7)
    >>> bool(first.generator.random() == again.generator.random())
    True
    """
    seed("random_state", random_state)
    if random_state is None:
        return RandomSource(secrets.randbits(_KEY_BITS), seeded=False)
    if purpose == NOISE and (answers := _ANSWERS.get()) is not None:
        return AskedSource(answers.part(None, None))
    known = int(random_state)
    return RandomSource(_derive_key("seed", purpose, str(known)), seeded=True, seed=known)
