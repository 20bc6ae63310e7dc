"""Tests of the one source of randomness."""

from __future__ import annotations

import copy
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from randomgen import ChaCha

from skdpsurv.dp import random_source


def draws(source, n=8):
    return source.generator.integers(0, 2**63, size=n).tolist()


def test_chacha_is_the_published_cipher():
    """RFC 8439, appendix A.1, test vector 1: zero key, zero nonce, block 0."""
    keystream = b"".join(
        int(word).to_bytes(8, "little") for word in ChaCha(key=0, rounds=20).random_raw(8)
    )
    assert keystream.hex() == (
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
    )


def test_every_bit_of_the_key_matters():
    key = 0x0123456789ABCDEF << 100
    streams = {tuple(ChaCha(key=key ^ (1 << bit)).random_raw(2).tolist()) for bit in range(256)}
    assert len(streams) == 256


def test_entropy_sources_differ_and_are_not_seeded():
    first, second = random_source(None), random_source(None)
    assert not first.seeded
    assert draws(first) != draws(second)


def test_integer_is_reproducible_and_says_so():
    assert random_source(5).seeded
    assert draws(random_source(5)) == draws(random_source(5))
    assert draws(random_source(5)) == draws(random_source(np.int32(5)))
    assert draws(random_source(5)) != draws(random_source(6))


def test_large_integers_do_not_collide():
    assert draws(random_source(1)) != draws(random_source(1 + 2**256))


def test_purposes_have_unrelated_streams():
    noise, split = draws(random_source(5)), draws(random_source(5, purpose="split"))
    assert not set(noise) & set(split)


def test_purpose_and_integer_are_not_confused():
    assert draws(random_source(23, purpose="a1")) != draws(random_source(123, purpose="a"))


@pytest.mark.parametrize("seed", [None, 3])
def test_children_are_distinct_from_each_other_and_the_parent(seed):
    parent = random_source(seed)
    children = parent.spawn(3) + parent.spawn(2)
    assert all(child.seeded is parent.seeded for child in children)
    streams = [tuple(draws(source)) for source in [parent, *children]]
    assert len(set(streams)) == 6


def test_seeded_children_depend_on_index_only():
    one, other = random_source(3), random_source(3)
    draws(one, 100)  # what the parent drew does not matter, nor in how many calls they are made
    spawned = [draws(c) for c in one.spawn(1) + one.spawn(2)]
    assert spawned == [draws(c) for c in other.spawn(3)]


def test_grandchildren_differ_from_children():
    parent = random_source(3)
    children = parent.spawn(2)
    grandchildren = children[0].spawn(2)
    streams = {tuple(draws(s)) for s in [*children, *grandchildren]}
    assert len(streams) == 4


def test_children_serve_threads():
    children = random_source(3).spawn(4)
    with ThreadPoolExecutor(4) as pool:
        parallel = list(pool.map(draws, children))
    assert parallel == [draws(c) for c in random_source(3).spawn(4)]


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_source_cannot_be_duplicated(seed, duplicate):
    with pytest.raises(TypeError, match="cannot be pickled or copied"):
        duplicate(random_source(seed))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_forked_child_cannot_repeat_the_stream():
    source = random_source(None)
    pid = os.fork()
    if pid == 0:  # the child must not return into pytest
        status = 1
        try:
            source.generator.random()
        except RuntimeError:
            try:
                source.spawn(1)
            except RuntimeError:
                status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_repr_shows_no_key():
    assert repr(random_source(3)) == "RandomSource(seeded=True)"
    assert repr(random_source(None)) == "RandomSource(seeded=False)"


@pytest.mark.parametrize(
    "bad",
    [
        True,
        np.True_,
        1.0,
        "1",
        (1, 2),
        np.random.default_rng(0),
        np.random.RandomState(0),
        np.random.SeedSequence(0),
    ],
    ids=lambda bad: type(bad).__name__,
)
def test_only_none_or_int(bad):
    with pytest.raises(TypeError, match="random_state must be None or a non-negative integer, got"):
        random_source(bad)


def test_negative_is_refused():
    with pytest.raises(
        ValueError, match="random_state must be None or a non-negative integer, got -1"
    ):
        random_source(-1)


def test_integers_of_numpy_make_the_same_stream():
    one, other = (random_source(seed).generator.random() for seed in (7, np.uint8(7)))
    assert one == other
