"""The recipe of a conda package follows conda's schema, and says what pyproject.toml says."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from rattler_build import Stage0Recipe, VariantConfig

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "conda" / "recipe.yaml"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def rendered():
    (variant,) = Stage0Recipe.from_file(FILE).render(VariantConfig())
    return variant.recipe.to_dict()


def listed(requirements):
    """Return requirements of Python's packages as conda writes them: by name, without extras."""
    each = [Requirement(text) for text in requirements]
    return {canonicalize_name(one.name): str(one.specifier) for one in each}


def in_recipe(kind):
    names = (text.partition(" ") for text in rendered()["requirements"][kind])
    return {name: version for name, _, version in names}


def test_it_says_what_pyproject_says():
    project, recipe = PROJECT["project"], rendered()
    assert recipe["package"] == {"name": project["name"], "version": project["version"]}
    python = {"python": project["requires-python"]}
    assert in_recipe("run") == python | listed(project["dependencies"])
    extras = [text for name, texts in project["optional-dependencies"].items()
              for text in texts if name != "all"]  # fmt: skip
    assert in_recipe("run_constraints") == listed(extras)
    host = in_recipe("host")
    assert host.pop("python") == project["requires-python"].removeprefix(">=") + ".*"
    assert host.pop("pip") == ""
    assert host == listed(PROJECT["build-system"]["requires"])
    commands = [f"{name} = {where}" for name, where in project["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == commands
    assert recipe["about"]["license"] == project["license"]
    assert recipe["about"]["license_file"] == project["license-files"]
    assert recipe["about"]["summary"] == project["description"]


def test_it_builds_this_checkout():
    (source,) = rendered()["source"]
    assert (FILE.parent / source["path"]).resolve() == ROOT


@pytest.mark.parametrize(
    ("where", "wrong", "words"),
    [
        (("build", "noarch"), "pythn", "noarch"),
        (("build", "numbr"), 0, "numbr"),
        (("about", "license"), "BSD-3", "SPDX"),
        (("requirements", "run"), ["numpy >=>1"], "version spec"),
        (("requirements", "runn"), [], "runn"),
        (("tests",), [{"pyton": {}}], "test"),
    ],
)
def test_the_schema_refuses_what_is_wrong(where, wrong, words):
    recipe = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    *parents, last = where
    part = recipe
    for name in parents:
        part = part[name]
    part[last] = wrong
    with pytest.raises(Exception, match=re.escape(words)) as caught:
        Stage0Recipe.from_dict(recipe)
    assert type(caught.value).__name__ == "PyRecipeParseError"
