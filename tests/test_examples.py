"""The examples of the gallery run, draw, and say what they have spent."""

import ast
import re
import warnings
from pathlib import Path

import pytest

import skdpsurv.survival.weibull.fitter as weibull
from skdpsurv import PublicInputWarning

EXAMPLES = sorted((Path(__file__).parents[1] / "docs" / "examples").glob("*.py"))


def _shorter(source: str) -> str:
    """Return a script with fewer repetitions than the page has; what they draw is the same."""
    return re.sub(r"^REPETITIONS = \d+", "REPETITIONS = 2", source, flags=re.MULTILINE)


def test_they_read_as_pages():
    assert len(EXAMPLES) >= 12
    for script in EXAMPLES:
        source = script.read_text(encoding="utf-8")
        title, line, *_ = (ast.get_docstring(ast.parse(source)) or "").splitlines()
        assert line == "=" * len(title), script
        # One sentence to remember, in bold, is the last paragraph.
        last = re.sub(r"\n# ?", "\n", source.rstrip().rsplit("\n#\n# ", 1)[-1])
        assert re.fullmatch(r"\*\*[^*]+\.\*\*", last), last
        assert "random_state" not in source, "a seeded fit is not private"


@pytest.mark.slow  # the documentation's build runs them all
@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_runs_and_draws(script, tmp_path, monkeypatch, capsys, recwarn):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    plt.close("all")
    simulate = weibull.plausible_estimates
    monkeypatch.setattr(
        weibull, "plausible_estimates", lambda public, released, _: simulate(public, released, 20)
    )
    monkeypatch.chdir(tmp_path)
    warnings.simplefilter("always", PublicInputWarning)
    source = script.read_text(encoding="utf-8")
    code = compile(_shorter(source), str(script), "exec")
    try:
        exec(code, {"__name__": "__main__"})
        figures = [plt.figure(number) for number in plt.get_fignums()]
        assert figures
        for figure in figures:
            # What a reader who cannot see the figure is told.
            titles = [ax.get_title(loc) for ax in figure.axes for loc in ("left", "center")]
            assert len(figure.get_suptitle() + "".join(titles)) > 20
    finally:
        plt.close("all")
    assert "Spent: epsilon = " in capsys.readouterr().out
    # A page says why it is asked what it is, and states what would be asked about otherwise.
    asked = [str(one.message) for one in recwarn if one.category is PublicInputWarning]
    assert not asked or "``PublicInputWarning``" in source, asked[0]
    unstated = any(question.startswith("neither columns nor data_norm") for question in asked)
    assert unstated == (script.stem == "wrong_in_silence")
    assert not list(tmp_path.iterdir())
