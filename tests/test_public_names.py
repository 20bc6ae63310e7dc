"""Public names and their signatures are those of a recorded list.

What is renamed or taken away is warned of during two minor versions first (docs/api). The list is
written anew by ``python -m tests.test_public_names``; its difference belongs into the changelog.
"""

import inspect
from importlib import import_module
from pathlib import Path

RECORDED = Path(__file__).with_name("public_names.txt")
#: Modules whose names docs/api lists.
MODULES = (
    "skdpsurv", "audit", "base", "classification", "data", "datasets", "descriptive", "dp",
    "evaluation", "hybrid", "inference", "likelihoods", "model_selection", "plotting", "pooling",
    "priors", "published", "release", "report", "study", "survival",
)  # fmt: skip


def signature(found):
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):  # warnings and errors of Python
        return ""
    # Annotations are for type checkers, and print differently from one Python to another.
    plain = [one.replace(annotation=one.empty) for one in parameters]
    return str(inspect.Signature(plain))


def own_names(kind):
    """Yield the public methods and properties that a class has from this package."""
    for name, found in sorted(inspect.getmembers(kind)):
        owner = next((c for c in inspect.getmro(kind) if name in vars(c)), object)
        is_routing = name.startswith("set_") and name.endswith("_request")  # scikit-learn's
        if name[0] == "_" or is_routing or not owner.__module__.startswith("skdpsurv"):
            continue
        shown = signature(found) if callable(found) else ""
        yield f"    .{name}{shown}"


def public_names():
    lines, seen = [], set()
    for module in MODULES:
        path = module if module == "skdpsurv" else f"skdpsurv.{module}"
        room = import_module(path)
        for name in sorted(room.__all__):
            found = getattr(room, name)
            lines.append(f"{path}.{name}{signature(found) if callable(found) else ''}")
            if inspect.isclass(found) and found not in seen:  # members stand once
                seen.add(found)
                lines += own_names(found)
    return "\n".join(lines) + "\n"


def test_public_names_and_signatures_are_those_of_the_list():
    assert public_names() == RECORDED.read_text(encoding="utf-8")


if __name__ == "__main__":
    RECORDED.write_text(public_names(), encoding="utf-8")
