"""Imports run one way, from the roof to the ground, and never in a circle."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import skdpsurv

#: From the ground. A name stands for a module or for all of a package; those of a line may import
#: each other. Concordance lies low, since `score` needs it and it needs no estimator.
FLOORS = (
    "types version pieces",
    "checks lazy references other_names",
    "privacy",
    "preprocessing",
    "scoring",
    "rows progress column_index blocks shape plan release target labels",
    "dask_blocks",
    "frame_chunks sources person",
    "concordance",
    "likelihoods",
    "mechanisms inference priors",
    "base",
    "tabular",
    "survival classification regression hybrid datasets",
    "published",
    "model_selection metrics reference plotting statistics pooling",
    "audit publishing report forecast",
    "skdpsurv",
    "cli __main__",
)
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names.split()}
#: Upward imports inside a function. A fitted model draws itself, where matplotlib is,
#: and a release reads itself out, where whoever reads wants that.
LAZY = {("survival", "plotting"), ("inference", "plotting"), ("release", "report")}

ROOT = Path(skdpsurv.__file__).parent
NAMES = {p: ".".join(p.relative_to(ROOT.parent).with_suffix("").parts) for p in ROOT.rglob("*.py")}
MODULES = {name.removesuffix(".__init__"): path for path, name in NAMES.items()}


def imports(node: ast.AST, lazy: bool = False):
    """Yield imported modules, and whether only a function imports them; no types' imports."""
    if isinstance(node, ast.Import):
        yield from ((name.name, lazy) for name in node.names)
    elif isinstance(node, ast.ImportFrom):
        whole = "." * node.level + (node.module or "")
        parts = (f"{whole}.{name.name}" for name in node.names)
        yield from ((part if part in MODULES else whole, lazy) for part in parts)
    lazy = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    only_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    for child in node.orelse if only_types else ast.iter_child_nodes(node):
        yield from imports(child, lazy)


def test_imports_run_downwards_and_in_no_circle():
    found = {name: set(imports(ast.parse(path.read_text()))) for name, path in MODULES.items()}
    place = {name: (name.split(".") * 2)[1] for name in found}
    homeless = {name for name in found if place[name] not in FLOOR}
    assert not homeless, f"enter {homeless} in FLOORS, in tests/test_layers.py"
    own = {a: {(b, z) for b, z in to if b in found} for a, to in found.items()}
    assert not [name for to in found.values() for name, _ in to if name.startswith(".")]
    up = {(a, b, z) for a in own for b, z in own[a] if FLOOR[place[b]] > FLOOR[place[a]]}
    assert {(place[a], place[b]) for a, b, z in up if z} == LAZY
    assert not {edge for edge in up if not edge[2]}
    TopologicalSorter({a: {b for b, _ in to} for a, to in own.items()}).prepare()
