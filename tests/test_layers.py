"""Imports run one way, from the roof to the ground, and never in a circle."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import skdpsurv

#: From the ground. Rooms of one floor do not import each other.
FLOORS = (
    "dp verify",
    "data plotting verify_study",
    "likelihoods release datasets",
    "mechanisms priors",
    "base inference",
    "survival classification hybrid descriptive",
    "published model_selection evaluation pooling",
    "audit report reference",
    "study",
    "cli",
)
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names.split()}

ROOT = Path(skdpsurv.__file__).parent
NAMES = {p: ".".join(p.relative_to(ROOT.parent).with_suffix("").parts) for p in ROOT.rglob("*.py")}
MODULES = {name.removesuffix(".__init__"): path for path, name in NAMES.items()}
#: The front door imports what people ask it for, and is no floor.
DOORS = {"skdpsurv", "skdpsurv.__main__"}


def imports(node: ast.AST):
    """Yield the modules that are imported, inside functions and for types alone, too."""
    for child in ast.walk(node):
        if isinstance(child, ast.Import):
            yield from (name.name for name in child.names)
        elif isinstance(child, ast.ImportFrom):
            whole = "." * child.level + (child.module or "")
            parts = (f"{whole}.{name.name}" for name in child.names)
            yield from (part if part in MODULES else whole for part in parts)


def room(module: str) -> str:
    return module.split(".")[1]


FOUND = {name: set(imports(ast.parse(path.read_text()))) for name, path in MODULES.items()}
OWN = {name: to & set(MODULES) for name, to in FOUND.items() if name not in DOORS}


def test_every_room_has_a_floor():
    homeless = {room(name) for name in OWN} - set(FLOOR)
    assert not homeless, f"enter {homeless} in FLOORS, in tests/test_layers.py"
    assert len(FLOORS) <= 10
    assert len(FLOOR) <= 25  # two of them are the files of the verifier, which run alone


def test_imports_run_downwards():
    assert not [name for to in FOUND.values() for name in to if name.startswith(".")]
    assert not {name for name, to in OWN.items() if to & DOORS}
    pairs = {(room(a), room(b)) for a, to in OWN.items() for b in to}
    assert not {(a, b) for a, b in pairs if a != b and FLOOR[b] >= FLOOR[a]}


def test_there_is_no_circle():
    TopologicalSorter(OWN).prepare()
