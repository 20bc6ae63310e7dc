"""The index of the API lists every public name once, and each has a docstring.

What is not listed is private, by an underscore or by its room.
"""

import importlib
import inspect
import re
from collections import Counter
from pathlib import Path

import skdpsurv

INDEX = Path(__file__).parents[1] / "docs" / "api" / "index.rst"


def listed():
    """Return the names below the index's ``autosummary``, with the package in front."""
    tables = re.findall(r"^\.\. autosummary::\n.*\n\n((?:   \S+\n)+)", INDEX.read_text(), re.M)
    return [f"skdpsurv.{name}" for table in tables for name in table.split()]


def found(name):
    """Return what a listed name stands for; numbers are told apart by their place."""
    module, _, last = name.rpartition(".")
    value = getattr(importlib.import_module(module), last)
    return value if callable(value) else (module, last)


def test_every_name_at_the_top_is_listed_and_none_twice():
    counts = Counter(map(found, listed()))
    assert not [value for value, count in counts.items() if count > 1]
    assert {f"skdpsurv.{name}" for name in skdpsurv.__all__ if name[0] != "_"} <= set(listed())


def test_documented_by_a_summary():
    """Every listed function and class, and each of its own public methods."""
    for name in listed():
        value, own = found(name), {}
        if inspect.isclass(value):
            own = {k: v for k, v in vars(value).items() if callable(v) and not k.startswith("_")}
        for member in (value, *own.values()):
            first = (inspect.getdoc(member) or "").split("\n\n")[0]
            assert not callable(member) or first.endswith((".", ":", "?", "!")), (name, member)


def test_what_is_imported_from_the_top_states_its_parameters():
    for name in skdpsurv.__all__:
        value = getattr(skdpsurv, name)
        own = value.__init__ if inspect.isclass(value) else value
        if not inspect.isfunction(own):
            continue
        parameters = [n for n in inspect.signature(own).parameters if n not in {"self", "args"}]
        text = inspect.getdoc(value)
        assert not parameters or "Parameters\n----------" in text, name
        undocumented = [n for n in parameters if not re.search(rf"^[\w *,]*\b{n}\b.*:", text, re.M)]
        assert not undocumented, name
        if inspect.isfunction(value):
            assert "Returns\n-------" in text or "Raises\n------" in text, name
        if "fit" in vars(value) and hasattr(value, "from_release"):
            assert all(part in text for part in ("Attributes\n", "Examples\n", "release_")), name
