"""What is asked of records, and the noise that is drawn for it."""

import numpy as np

from skdpsurv.mechanisms import sums


def queries_without_noise(monkeypatch):
    """Release counts and sums as they are; return a list of sensitivity, exact value and epsilon.

    It grows with every query.
    """
    seen = []

    def spy(query, exact, epsilon, source):
        seen.append((query.sensitivity, np.array(exact), epsilon))
        return exact

    monkeypatch.setattr(sums, "_released", spy)
    return seen


def laws_drawn(monkeypatch, law_class):
    """Return a list of the laws of a class that noise was drawn from, with a seed or without.

    It grows with every draw.
    """
    seen = []
    for name in ("draw", "draw_exactly"):
        monkeypatch.setattr(law_class, name, _noting(seen, getattr(law_class, name)))
    return seen


def _noting(seen, honest):
    def spy(law, source):
        seen.append(law)
        return honest(law, source)

    return spy
