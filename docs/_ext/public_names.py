"""References to a public name by any of its paths, and only properties among a class's data.

A class stands in the API under the shortest path from which it can be imported, but docstrings say
``skdpsurv.data.PublicColumns`` or, beside it, ``PublicColumns``: both lead to its page.
"""

from __future__ import annotations

from sphinx.util.nodes import make_refnode


def documented(objects, target):
    """Return the one documented name that ends as a target does, or None.

    Methods are compared with their class: of ``Release.load``, both words have to be the same.
    """
    *parents, last = target.removeprefix("~").split(".")
    ending = [last]
    if parents and parents[-1][:1].isupper():
        ending = [parents[-1], last]
    found = {
        name
        for name, entry in objects.items()
        if not entry.aliased
        and name.split(".")[-len(ending) :] == ending
        and (len(ending) == 2 or entry.objtype in {"class", "function", "exception", "data"})
    }
    return found.pop() if len(found) == 1 else None


def resolve(app, env, node, contnode):
    """Return a reference to a name that is documented elsewhere, or None for Sphinx to go on."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or node.get("reftype") == "mod":
        return None
    if "." in target and target.split(".")[0] != "skdpsurv" and not target[:1].isupper():
        return None  # of another package
    objects = env.domains.python_domain.objects
    name = documented(objects, target)
    if name is None:
        return None
    entry = objects[name]
    return make_refnode(
        app.builder, node["refdoc"], entry.docname, entry.node_id, contnode, title=name
    )


def skip(app, objtype, name, obj, skipped, options):
    """Leave plain attributes out of a class's tables: its docstring has them, with their types."""
    return True if objtype == "attribute" else None


def setup(app):
    """Connect the two with Sphinx."""
    app.connect("missing-reference", resolve)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
