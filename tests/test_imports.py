"""What importing the package loads, and what of it works without the packages of its extras."""

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import skdpsurv

#: Refuses to find some packages, as if they were not installed.
WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {names}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
"""
EXTRAS = ("dask", "dp_accounting", "formulaic", "lifelines", "matplotlib", "psycopg", "sksurv")


def told(script: str, without: tuple[str, ...] = ()) -> str:
    script = WITHOUT.format(names=set(without) or "()") + textwrap.dedent(script)
    root = Path(skdpsurv.__file__).parents[1]
    return subprocess.check_output([sys.executable, "-c", script], text=True, cwd=root).strip()


@pytest.mark.slow
def test_importing_loads_little_and_a_release_finds_what_nobody_has_imported(tmp_path):
    fitter = skdpsurv.DPKaplanMeierFitter(epsilon=5.0, max_time=10.0)
    fitter.fit([2.0, 5.0, 9.5] * 20, [1, 0, 1] * 20).release_.save(tmp_path / "curve.json")
    loaded = told(
        f"""
        import skdpsurv
        heavy = {{"dask", "lifelines", "matplotlib", "sksurv", "typer", "sqlalchemy"}}
        print(sorted(heavy & set(sys.modules)), "skdpsurv.survival" in sys.modules)
        release = skdpsurv.Release.load({str(tmp_path / "curve.json")!r})
        print("skdpsurv.survival" in sys.modules, type(release.to_estimator()).__name__)
        for name in (*skdpsurv.__all__, "evaluation", "plotting", "survival"):
            getattr(skdpsurv, name)
        print(sorted(heavy & set(sys.modules)), set(skdpsurv.__all__) <= set(dir(skdpsurv)))
        """
    )
    assert loaded.split("\n") == ["[] False", "False DPKaplanMeierFitter", "[] True"]


@pytest.mark.slow
def test_the_command_line_imports_what_a_command_needs_as_it_runs():
    found = told(
        """
        import io, sys
        from contextlib import redirect_stdout
        import typer
        from skdpsurv.cli import app

        def run(*given):
            with redirect_stdout(io.StringIO()) as said:
                try:
                    app(given)
                except SystemExit as end:
                    assert end.code == 0
            assert said.getvalue()
            heavy = {"numpy", "pandas", "scipy", "sklearn", "sqlalchemy", "matplotlib"}
            assert not heavy & set(sys.modules), given

        def walk(command, *path):
            run(*path, "--help")
            for name, one in getattr(command, "commands", {}).items():
                walk(one, *path, name)
            count.append(path)

        count = []
        run("--version")
        walk(typer.main.get_command(app))
        print(len(count) > 15)
        """
    )
    assert found == "True"


def test_type_checkers_see_each_public_name_where_it_is():
    """One list is for them, and one for who asks for a name."""
    nodes = ast.walk(ast.parse(Path(skdpsurv.__file__).read_text()))
    imports = [(node.module, node.names) for node in nodes if isinstance(node, ast.ImportFrom)]
    stated = {one.asname: module for module, names in imports for one in names if one.asname}
    assert stated.keys() == set(skdpsurv.__all__)
    for module, names in skdpsurv._LATER.items():
        assert {stated[name] for name in names} == {f"skdpsurv.{module}"}
    with pytest.raises(AttributeError, match="module 'skdpsurv' has no attribute 'DPCox'"):
        skdpsurv.DPCox  # noqa: B018


@pytest.mark.slow
def test_the_package_works_without_its_extras():
    found = told(
        """
        import numpy as np
        from skdpsurv import DPDiscreteTimeSurvival
        from skdpsurv.datasets import load_flchain, make_discrete_time_survival
        from skdpsurv.cli.demo import compare_on_flchain
        from skdpsurv.evaluation import private_survival_metrics
        from skdpsurv.reference import cox_coefficients, fit_weibull
        data = make_discrete_time_survival(500, 2, random_state=0)
        model = DPDiscreteTimeSurvival(1.0, max_time=1.0).fit(data.X, data.y)
        assert model.predict_survival_function(data.X)[0](0.5) <= 1.0
        exact = private_survival_metrics(model, data.X, data.y, np.inf, max_time=1.0)
        assert 0.0 <= exact.c_index.value <= 1.0
        for call in (
            lambda: compare_on_flchain([1.0]),
            load_flchain,
            lambda: cox_coefficients(data.X, data.y),
            lambda: fit_weibull(data.y, max_time=1.0),
        ):
            try:
                call()
            except ImportError as error:
                print(error)
        """,
        without=EXTRAS,
    )
    said = ' needs {}: pip install "skdpsurv[reference]"'.format
    needs = {"The demo": "scikit-survival", "load_flchain": "scikit-survival"}
    needs |= {"fit_cox": "scikit-survival", "fit_weibull": "lifelines"}
    assert found.split("\n") == [name + said(package) for name, package in needs.items()]
