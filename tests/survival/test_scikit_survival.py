"""scikit-survival's own tests, with our estimators in place of its own.

They are under the GPL: pip fetches them, and they are never copied here. These of its test files
are run: all that take any survival estimator, and those of metrics, scorers, step functions and
stacking. ``tests/support/scikit_survival.py`` says what is replaced. Left out are tests of other
classes (forests, boosting, SVMs, elastic nets, kernels, trees), of functions that no estimator
enters (files of data, encoders, its Kaplan-Meier and log-rank functions), and of coefficients of
Cox regression (``test_coxph.py``), which no private fit has.
"""

import os
import subprocess
import sys
import tarfile
import tomllib
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
FILES = ("common", "functions", "survival_function", "pandas_inputs", "polars_estimators")
FILES += ("metrics", "stacking")
#: Version whose failures are listed, each with its reason.
KNOWN = "0.28.0"
LEAST = 137
FAILURES = tomllib.loads((Path(__file__).parent / "scikit_survival_failures.toml").read_text())


@pytest.fixture
def their_tests(tmp_path):
    wanted = f"scikit-survival=={version('scikit-survival')}"
    if not wanted.endswith(KNOWN):
        pytest.skip(f"failures are listed for {KNOWN}, and there is {wanted}")
    pip = [str(Path(sys.base_prefix, "bin", "python3")), "-m", "pip", "download", "--quiet"]
    own = ["--no-deps", "--no-binary", "scikit-survival", "--dest", str(tmp_path), wanted]
    if subprocess.run([*pip, *own], check=False).returncode:
        pytest.skip("pip could not fetch the source distribution")
    (packed,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.glob("*/tests")
    return folder


@pytest.mark.slow
def test_what_fails_is_listed(their_tests):
    found = their_tests / "found.xml"
    plugins = ["-p", "tests.support.scikit_survival", "-p", "no:cacheprovider"]
    options = ["-q", *plugins, "-c", os.devnull]
    files = [f"test_{name}.py" for name in FILES]
    command = [sys.executable, "-m", "pytest", *options, "--rootdir", ".", f"--junitxml={found}"]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    subprocess.run(
        [*command, *files], cwd=their_tests, env={**os.environ, "PYTHONPATH": path}, check=False
    )
    cases = list(ElementTree.parse(found).iter("testcase"))
    failed = {
        f"{case.get('classname')}.{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    }
    print(f"{len(cases) - len(failed)} of {len(cases)} pass")
    listed = {name: set(kind["tests"]) for name, kind in FAILURES.items()}
    assert failed == set().union(*listed.values())
    assert len(cases) - len(failed) >= LEAST
