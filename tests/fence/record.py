"""Record what settings release and draw, in the checkout that the import path leads to.

Each setting is run three times: with a seed; with a seed and a source that samplers tell what they
draw (``AskedSource``, a checkout's own or the tests'); and without a seed, on keys that are known.
"""

import hashlib
import json
import secrets
import sys
import threading
import time
import warnings
from contextlib import contextmanager
from dataclasses import is_dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd

from tests.fence.places import find

#: What differs between versions by its nature.
_IGNORED = frozenset({"version", "skdpsurv_version", "created"})
_PLAIN = (str, bool, int, type(None), np.bool_, np.integer)


def canonical(value):
    """Return a value with its doubles in hexadecimal; None in place of what has no plain form."""
    if isinstance(value, _PLAIN):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float | np.floating):
        return float(value).hex()
    if isinstance(value, pd.DataFrame | pd.Series | pd.Index):
        return canonical(value.reset_index().to_numpy() if hasattr(value, "loc") else list(value))
    if isinstance(value, np.ndarray):
        return canonical(value.tolist())
    if is_dataclass(value) and not isinstance(value, type):
        return {k: canonical(v) for k, v in vars(value).items() if not k.startswith("_")}
    if isinstance(value, dict) or hasattr(value, "items"):
        return {str(k): canonical(v) for k, v in value.items() if str(k) not in _IGNORED}
    if isinstance(value, list | tuple):
        return [canonical(each) for each in value]
    return None


def digest(value):
    return hashlib.blake2b(repr(canonical(value)).encode(), digest_size=8).hexdigest()


class Draws:
    """What is drawn, by the path of the source: the number of its root, and of each child."""

    def __init__(self):
        self.drawn = {}
        self.paths = {}  # and the source, so that its id stays its own
        self.n_roots, self.lock = 0, threading.RLock()
        self.n_children = {}

    def named(self, source, path=None):
        with self.lock:
            if path is None and id(source) in self.paths:
                return self.paths[id(source)][0]
            if path is None:
                path, self.n_roots = str(self.n_roots), self.n_roots + 1
            self.paths[id(source)] = (path, source)
            return path

    def adopt(self, path, children):
        with self.lock:
            first = self.n_children.get(path, 0)
            self.n_children[path] = first + len(children)
            for i, child in enumerate(children):
                self.named(child, f"{path}.{first + i}")

    def note(self, path, what):
        with self.lock:
            lines = self.drawn.setdefault(path, [])
            if lines and lines[-1][1:] == what:
                lines[-1][0] += 1
            else:
                lines.append([1, *what])


class Noted:
    """A generator that notes what it is asked."""

    def __init__(self, generator, note):
        self._generator, self._note = generator, note

    def __getattr__(self, name):
        method = getattr(self._generator, name)
        if not callable(method):
            return method

        def called(*args, **kwargs):
            plain = canonical([args, kwargs])
            self._note([name, plain if len(repr(plain)) < 200 else digest(plain)])
            return method(*args, **kwargs)

        return called


@contextmanager
def noted_draws(draws):
    """Note each use of each source of randomness."""
    kind = find("RandomSource")
    made, spawned, generator = kind.__init__, kind.spawn, kind.generator.fget

    def init(self, *args, **kwargs):
        made(self, *args, **kwargs)
        if type(self) is kind:  # a source that is asked for parts is no new stream
            draws.named(self)

    def spawn(self, n):
        with draws.lock:
            path, n_roots = draws.named(self), draws.n_roots
            children = spawned(self, n)
            draws.n_roots = n_roots
            draws.adopt(path, children)
        return children

    def noted(self):
        path = draws.named(self)
        return Noted(generator(self), lambda what: draws.note(path, what))

    methods = {"__init__": init, "spawn": spawn, "generator": property(noted)}
    with patch.multiple(kind, **methods):
        yield


class Answers:
    """Notes the law that a sampler draws from, and answers by a draw of the sampler's own."""

    def __init__(self, draws, source=None):
        self.draws, self.source = draws, source

    def part(self, what, price):
        source = find("RandomSource")(2024, seeded=True) if self.source is None else self.source
        return Answers(self.draws, source)

    def ask(self, draw):
        given = draw.given
        size = given if isinstance(given, int) else getattr(given, "dimension", None)
        if isinstance(given, list):
            size = [len(given), digest([str(each) for each in given])]
        path = f"asked {self.draws.named(self.source)}"
        self.draws.note(path, [draw.law, draw.scale.hex(), size])
        # The sampler again, with a source of random numbers.
        if hasattr(draw, "again"):
            drawn = draw.again(self.source)
        else:
            frame = sys._getframe(2)
            code, sampler = frame.f_code, frame.f_globals[frame.f_code.co_name]
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            drawn = sampler(**{**{k: frame.f_locals[k] for k in names}, "source": self.source})
        return np.ravel(drawn).tolist() if draw.law.startswith("discrete") else drawn

    def refuse(self):
        """Draws whose law is not stated are noted by their generator."""


@contextmanager
def asked(draws):
    """Have samplers tell what they draw."""
    kind = find("AskedSource")

    def spawn(self, n):
        children = self._answers.source.spawn(n)
        return [kind(Answers(draws, child), self._independent) for child in children]

    with (
        noted_draws(draws),
        patch.object(kind, "spawn", spawn),
        patch.object(kind, "generator", property(lambda self: self._answers.source.generator)),
        find("asked_instead")(Answers(draws)),
    ):
        yield


@contextmanager
def known_keys(draws):
    """Replay fits without a seed: keys are counted, and OpenDP's noise is of a known generator."""
    import opendp.prelude as dp

    keys, rng = iter(range(1, 2**30)), np.random.default_rng(5)

    def measurement(law):
        def make(domain, metric, scale, *args, **kwargs):
            def measure(exact):
                draws.note("opendp", [law, float(scale).hex(), len(exact), digest(exact)])
                noise = getattr(rng, law)(0.0, min(scale, 2.0**40), len(exact))
                return [value + int(k) for value, k in zip(exact, noise, strict=True)]

            return measure

        return make

    with (
        noted_draws(draws),
        patch.object(secrets, "randbits", lambda bits: next(keys)),
        patch.object(dp.m, "make_laplace", measurement("laplace")),
        patch.object(dp.m, "make_gaussian", measurement("normal")),
    ):
        yield


def released(result):
    """Return the public numbers of a fitted estimator, and its guarantee."""
    found = {}
    if hasattr(result, "release_"):
        found["release"] = canonical(json.loads(result.release_.to_json()))
    for name in sorted({*getattr(result, "__dict__", ()), *dir(type(result))}):
        if not name.startswith("_") and (name.endswith("_") or is_dataclass(result)):
            try:
                value = getattr(result, name)
            except Exception as error:
                value = f"{type(error).__name__}"
            found[name] = None if callable(value) else canonical(value)
    return {name: value for name, value in found.items() if value is not None}


MODES = {"seeded": (noted_draws, 7), "asked": (asked, 7), "unseeded": (known_keys, None)}


def recorded(run, mode):
    instead, random_state = MODES[mode]
    draws = Draws()
    try:
        with warnings.catch_warnings(), instead(draws):
            warnings.simplefilter("ignore")
            values = released(run(random_state))
    except Exception as error:
        unknown = isinstance(error, LookupError) and "places.py" in str(error)
        return {"lacks" if unknown else "error": repr(error)}
    return {"values": values, "draws": dict(sorted(draws.drawn.items()))}


def main(root, out, only=""):
    import skdpsurv
    from tests.fence.settings import settings

    if Path(root).resolve() not in Path(skdpsurv.__file__).resolve().parents:
        raise SystemExit(f"{skdpsurv.__file__} is not in {root}.")
    found = {}
    for name, run in settings():
        if only in name:
            start = time.perf_counter()
            found |= {f"{name} ({mode})": recorded(run, mode) for mode in MODES}
            print(f"{time.perf_counter() - start:6.1f} s  {name}", file=sys.stderr)
    Path(out).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
