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
from typing import NoReturn

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
    known = int(random_state)
    return RandomSource(_derive_key("seed", purpose, str(known)), seeded=True, seed=known)
