"""Sphinx configuration."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "skdpsurv"
author = "The skdpsurv developers"
copyright = "2026, The skdpsurv developers"
release = installed_version("skdpsurv")
version = ".".join(release.split(".")[:2])

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "numpydoc",
    "public_names",
    "planner_page",
    "sphinx_gallery.gen_gallery",
    "thumbnails",
]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
# Headers and scripts of the gallery are read from where the gallery is generated. Tables of
# benchmarks are included where they are discussed; alone they have no title.
exclude_patterns = ["_build", "examples", "benchmarks/tables"]

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",  # all are run
    # Shown on the page about extending, and run by its tests.
    "ignore_pattern": r"[\\/]extending[\\/]",
    # From a first model to what goes wrong; a new example says where it belongs.
    "within_subsection_order": ExplicitOrder(
        [
            "first_model.py",
            "curves_by_age_flchain.py",
            "table_one_flchain.py",
            "trial_gbsg2.py",
            "competing_causes_flchain.py",
            "weibull_flchain_by_sex.py",
            "hazard_ratios_flchain.py",
            "calibration_flchain.py",
            "choosing_epsilon.py",
            "how_many_records.py",
            "wrong_in_silence.py",
            "paid_search.py",
            "images_of_digits.py",
            "two_hospitals.py",
            "eight_sites.py",
            "eight_sites_odds.py",
            "consented_records.py",
            "chunks_of_a_file.py",
            "release_alone.py",
            "attack.py",
        ]
    ),
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("skdpsurv",),
    "remove_config_comments": True,
    "write_computation_times": False,
    "min_reported_time": 1_000_000,
    "show_memory": False,
    "show_signature": False,
    # Values of expressions are not shown, but printed where they matter.
    "capture_repr": (),
}

templates_path = ["_templates"]

# The index of the API (docs/api/index.rst) lists what packages export in __all__, each on its own
# page, made by the templates in _templates/autosummary; a test compares the two.
autosummary_context = {
    "members_first": [
        *("fit", "fit_transform", "transform", "inverse_transform"),
        *("predict", "predict_proba", "predict_survival_function", "score"),
        *("print_summary", "plot", "confidence_interval"),
    ],
    "members_last": ["to_json", "from_json", "from_release", "get_params", "set_params"],
    # Of Python's and scikit-learn's machinery, and of no use to a reader.
    "members_hidden": [
        *("__init__", "count", "index", "add_note", "with_traceback", "get_metadata_routing"),
        "set_output",  # its docstring has links into scikit-learn
    ],
}
autodoc_typehints = "none"  # numpydoc sections state the types, with shapes and units
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# A page is about one class: its name before each of its methods would only make the lines longer.
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 80  # a longer one has a line for each parameter

html_theme = "furo"
html_title = f"skdpsurv {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
