"""Who answers in place of samplers does so for fits that are not private anyway."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from skdpsurv.dp import noise, random_source
from skdpsurv.dp.noise import lattice_laplace
from skdpsurv.mechanisms import sums
from tests.support.asked_source import INSTEAD, AskedSource, asked_instead


class Answers:
    def __init__(self):
        self.asked, self.refused = [], False

    def part(self, what, price):
        return self

    def ask(self, draw):
        self.asked.append(draw)
        return draw.given

    def refuse(self):
        self.refused = True


def test_noise_without_a_seed_is_drawn_as_ever():
    answers = Answers()
    with asked_instead(answers):
        source = random_source(None)
        drawn = {lattice_laplace(0, 1e9, source) for _ in range(5)}
    assert len(drawn) > 1
    assert answers.asked == []


def test_a_seeded_source_asks_for_noise_alone():
    answers = Answers()
    with asked_instead(answers):
        assert lattice_laplace(7, 2.0, random_source(0)) == 7
        split = random_source(0, purpose="split").generator.random()
    assert [draw.law for draw in answers.asked] == ["discrete Laplace"]
    assert split == random_source(0, purpose="split").generator.random()
    assert not isinstance(random_source(0), AskedSource)


def test_other_threads_draw_as_ever():
    answers, found = Answers(), []
    with asked_instead(answers):
        thread = threading.Thread(target=lambda: found.append(random_source(0)))
        thread.start()
        thread.join()
    assert not isinstance(found[0], AskedSource)


def test_a_draw_by_itself_is_refused():
    answers = Answers()
    with asked_instead(answers), pytest.raises(TypeError, match="law"):
        random_source(0).bits(3)
    assert answers.refused


def test_whoever_holds_a_sampler_has_the_one_that_asks():
    """Also in a closure: what is planted in place of a sampler calls the one from before."""
    held, answers = sums.lattice_laplace, Answers()
    code = noise.lattice_laplace.__code__
    with asked_instead(answers):
        assert held(7, 1e9, random_source(0)) == 7
        noisy = sums.HISTOGRAM.release(np.array([1, 2]), 1.0, random_source(0))
        assert noisy.tolist() == [1, 2]
    assert held is noise.lattice_laplace
    assert held.__code__ is code
    assert held(7, 1e9, random_source(0)) != 7
    assert not any(name.startswith("_instead_of") for f in INSTEAD for name in f.__globals__)
