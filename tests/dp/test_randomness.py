"""Tests of the one source of randomness."""

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


def test_integer_is_reproducible_and_says_so():
    assert repr(random_source(5)) == "RandomSource(seeded=True)"
    assert draws(random_source(5)) == draws(random_source(np.uint8(5)))
    others = [(5, "noise"), (6, "noise"), (5 + 2**256, "noise")]
    others += [(5, "split"), (23, "a1"), (123, "a")]
    streams = [set(draws(random_source(seed, purpose=word))) for seed, word in others]
    assert len(set.union(*streams)) == 48


@pytest.mark.parametrize("seed", [None, 3])
def test_children_are_distinct_from_each_other_and_the_parent(seed):
    parent, same = random_source(seed), random_source(seed)
    assert (draws(parent) == draws(same)) == parent.seeded == (seed is not None)
    children = parent.spawn(3) + parent.spawn(2)
    children += children[0].spawn(2)
    assert all(child.seeded is parent.seeded for child in children)
    assert len({tuple(draws(source)) for source in [parent, *children]}) == 8


def test_seeded_children_depend_on_index_only():
    one, other = random_source(3), random_source(3)
    draws(one, 100)  # what the parent drew does not matter, nor in how many calls they are made
    with ThreadPoolExecutor(3) as pool:
        spawned = list(pool.map(draws, one.spawn(1) + one.spawn(2)))
    assert spawned == [draws(c) for c in other.spawn(3)]


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
        refused = 0
        try:
            for call in (lambda: source.generator, lambda: source.bits(8), lambda: source.spawn(1)):
                with pytest.raises(RuntimeError):
                    call()
                refused += 1
        finally:
            os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3


def test_only_none_or_int():
    made = np.random.default_rng(0), np.random.RandomState(0), np.random.SeedSequence(0)
    for bad in (True, np.True_, 1.0, "1", (1, 2), -1, *made):
        with pytest.raises((TypeError, ValueError), match="random_state"):
            random_source(bad)
