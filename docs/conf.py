"""Sphinx configuration."""

from __future__ import annotations

from importlib.metadata import version as installed_version

project = "skdpsurv"
author = "The skdpsurv developers"
copyright = "2026, The skdpsurv developers"
release = installed_version("skdpsurv")
version = ".".join(release.split(".")[:2])

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "numpydoc",
]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

# A page lists what a package exports in __all__, so that the page cannot fall behind the code.
autodoc_default_options = {
    "members": True,
    "imported-members": True,
    "show-inheritance": True,
    # Written by scikit-learn, with links into its own documentation.
    "exclude-members": (
        "set_fit_request, set_predict_request, set_score_request, set_transform_request, "
        "set_inverse_transform_request, set_partial_fit_request, "
        "get_metadata_routing, get_params, set_params"
    ),
}
autodoc_typehints = "none"  # numpydoc sections state the types, with shapes and units
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "furo"
html_title = f"skdpsurv {release}"
