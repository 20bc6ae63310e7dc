"""The planner's page: what it interpolates and shows in a browser; it loads nothing."""

import json
import math
import os
import re
import shutil
from importlib.util import find_spec
from itertools import islice, product

import numpy as np
import pytest

from skdpsurv import DPTableOne
from skdpsurv.cli import app
from skdpsurv.cli.failures import EXIT_CODES
from skdpsurv.data import PublicColumns
from skdpsurv.dp.privacy_cost import rho_for
from skdpsurv.evaluation.forecast import small_delta
from skdpsurv.report import planner
from skdpsurv.report.figures import Advantage
from skdpsurv.study.protocol import Protocol
from skdpsurv.study.study_plan import StudyPlan

GRID = planner.grid()
TABLES = [name for name in GRID if name != "about"]
STATE = {"people": 3000, "columns": 6, "events": 0.3, "groups": 2, "epsilon": 2.0, "prior": 0.1}
STATE |= {"delta": False, "table": True, "curves": True, "model": True}


def points(number):
    """Return points anywhere within the grid, and a little beyond."""
    rng = np.random.default_rng(5)
    for _ in range(number):
        n, size, groups, epsilon = np.exp(
            rng.uniform(np.log([250, 2, 1, 0.08]), np.log([4e4, 20, 8, 12]))
        )
        point = {"people": round(n), "columns": round(size), "groups": round(groups)}
        yield {**point, "events": rng.uniform(0.08, 0.85), "epsilon": epsilon}


# ---- In Python.


def test_the_grid_is_small():
    assert planner.GRID_FILE.stat().st_size <= 300_000


def figures_at(table, **ends):
    """Return figures at a point of the axes of a table."""
    epsilon = ends.get("budget", 1.0) / ends["people"]
    return planner.interpolated(table, {**ends, "epsilon": epsilon})


@pytest.mark.parametrize("name", TABLES)
def test_figures_at_points_of_the_grid_are_those_of_the_grid(name):
    table = GRID[name]
    axes = table["axes"]
    for place, ends in islice(enumerate(product(*axes.values())), 0, None, 7):
        found = figures_at(table, **dict(zip(axes, ends, strict=True)))
        expected = {one: values[place] for one, values in table["values"].items()}
        assert found == pytest.approx(expected, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("name", TABLES)
def test_figures_between_and_beyond_points(name):
    table = GRID[name]
    middle = {axis: math.sqrt(ends[0] * ends[1]) for axis, ends in table["axes"].items()}
    middle["events"] = 0.5
    for axis, ends in table["axes"].items():
        beyond = figures_at(table, **{**middle, axis: ends[0] / 1.1})
        assert beyond == pytest.approx(figures_at(table, **{**middle, axis: ends[0]}), rel=1e-9)
    inside = figures_at(table, **middle)
    low, high = (figures_at(table, **{**middle, "events": end}) for end in (0.35, 0.55))
    for one, values in table["values"].items():
        assert min(values) - 1e-9 <= inside[one] <= max(values) + 1e-9
        ends = sorted((low[one], high[one]))
        assert ends[0] - 1e-9 <= inside[one] <= ends[1] + 1e-9


def test_powers_are_interpolated_exactly():
    axes = {
        "people": [300, 3000],
        "columns": [4, 8],
        "events": [0.1, 0.8],
        "budget": [30, 300, 3e4],
    }

    def of(n, size, events, budget):
        return math.log(n * size**2 / budget) + math.log(events / (1.0 - events))

    table = {"axes": axes, "values": {"one": [of(*ends) for ends in product(*axes.values())]}}
    point = {"people": 1000, "columns": 5, "events": 0.5, "budget": 900.0}
    assert figures_at(table, **point)["one"] == pytest.approx(of(*point.values()), rel=1e-12)


@pytest.mark.parametrize("axis", ["people", "epsilon"])
@pytest.mark.parametrize("has_delta", [False, True])
def test_more_people_or_epsilon_are_hardly_ever_worse(axis, has_delta):
    """Once a part of epsilon is for intervals: from 200 people times epsilon on."""
    for point in points(20):
        other = point["epsilon" if axis == "people" else "people"]
        least = max(200.0 / other, 300 if axis == "people" else 0.0)
        along = [{**point, axis: x} for x in np.geomspace(least, 100.0 * least, 15)]
        found = [planner.model_figures(one, has_delta) for one in along]
        for name, sign in (("concordance", 1), ("finite", 1), ("risk_error", -1)):
            steps = np.diff([sign * one[name] for one in found])
            assert steps.min() > -0.01, (point, name)


def test_a_delta_is_never_worse_by_much_and_helps_many_columns():
    point = {"people": 3000, "columns": 20, "events": 0.3, "epsilon": 1.0}
    without, found = (planner.model_figures(point, one) for one in (False, True))
    assert found["finite"] >= without["finite"]


def test_the_page_loads_nothing_and_is_the_same_twice():
    page = planner.planner_page()
    assert page == planner.planner_page()
    assert not re.search(
        r"https?:|//\w+\.|\bsrc=|@import|url\(|<link|fetch\(|XMLHttp|import ", page
    )
    assert len(page) < 350_000


def test_the_command_writes_the_page_and_overwrites_none(tmp_path, capsys):
    file = tmp_path / "planner.html"
    codes = []
    for _ in range(2):
        with pytest.raises(SystemExit) as ended:
            app(["planner", str(file)])
        codes.append(ended.value.code)
    assert codes == [0, EXIT_CODES["output"]]
    assert file.read_text(encoding="utf-8") == planner.planner_page()
    assert "exists" in capsys.readouterr().err


# ---- In a browser.


def missing():
    """Return why there is no browser, or None."""
    if find_spec("playwright") is None:
        return "playwright is not installed"
    return None if chromium() else "no Chromium here (CHROMIUM=... says where one is)"


def chromium():
    names = "chromium", "chromium-browser", "google-chrome"
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


@pytest.fixture(scope="module")
def browser():
    if reason := missing():
        if os.environ.get("SKDPSURV_TEST_BROWSER"):
            pytest.fail(f"SKDPSURV_TEST_BROWSER is set, and {reason}")
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as running:
        started = running.chromium.launch(executable_path=chromium(), args=options)
        yield started
        started.close()


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    """Return the page, opened from a file on a phone without a network; errors of it fail."""
    file = tmp_path_factory.mktemp("page") / "planner.html"
    file.write_text(planner.planner_page(), encoding="utf-8")
    context = browser.new_context(viewport={"width": 360, "height": 740})
    context.set_offline(True)
    opened = context.new_page()
    opened.asked, opened.wrong = [], []
    opened.on("request", lambda request: opened.asked.append(request.url))
    opened.on("pageerror", lambda error: opened.wrong.append(str(error)))
    opened.goto(file.as_uri())
    opened.own = file.as_uri()
    return opened


@pytest.fixture(autouse=True)
def _nothing_went_wrong(request):
    yield
    if "page" in request.fixturenames:
        opened = request.getfixturevalue("page")
        assert opened.wrong == []
        assert opened.asked == [opened.own]


#: As a finger does.
MOVE = "(e, v) => { e.value = v; e.dispatchEvent(new Event('input', { bubbles: true })); }"


def move(page, **places):
    """Move sliders, or set ticks."""
    for name, place in places.items():
        if isinstance(place, bool):
            page.locator(f"#{name}").set_checked(place)
        else:
            page.locator(f"#{name}").evaluate(MOVE, place)


def start(page):
    move(page, people=50, columns=6, events=30, groups=2, epsilon=59, prior=10)
    move(page, table=True, curves=True, model=True, delta=False)


def test_figures_are_those_of_python(page):
    for point in points(40):
        for has_delta in (False, True):
            state = {**STATE, **point, "delta": has_delta, "table": False, "curves": False}
            shown = page.evaluate("state => figures(state)", state)
            expected = planner.model_figures(point, has_delta)
            for name, value in expected.items():
                got = math.nan if shown["model"][name] is None else shown["model"][name]
                assert got == pytest.approx(value, rel=1e-9, abs=1e-12, nan_ok=True), name
            without = planner.interpolated(GRID["model_without"], point)
            spread = point["events"] * (1.0 - point["events"])
            without["risk_error"] = without["log_odds_error"] * spread
            assert shown["model_without"] == pytest.approx(without, rel=1e-9)
            curve = {**state, "curves": True, "model": False}
            shown = page.evaluate("state => figures(state)", curve)
            expected = planner.interpolated(GRID["curves"], point)["half_width"]
            assert shown["curve"] == pytest.approx(min(expected, 0.5), rel=1e-9)


def test_analyses_share_epsilon_as_their_protocol_does(page):
    shown = page.evaluate("state => figures(state)", STATE)
    alone = {**STATE, "epsilon": 1.2, "table": False, "curves": False}
    assert shown["model"] == page.evaluate("state => figures(state).model", alone)


@pytest.mark.parametrize("has_delta", [False, True])
@pytest.mark.parametrize(
    ("n", "k", "groups", "epsilon"), [(3000, 6, 2, 2.0), (1200, 3, 1, 1.0), (20_000, 20, 4, 1.0)]
)
def test_half_widths_of_table_1_are_those_of_the_library(page, has_delta, n, k, groups, epsilon):
    state = {**STATE, "people": n, "columns": k, "groups": groups, "epsilon": epsilon}
    state |= {"delta": has_delta, "curves": False, "model": False}
    kinds = {f"x{i}": bool if i % 3 == 2 else (0, 1) for i in range(k)}
    by = {"by": "group"} if groups > 1 else {}
    if by:
        kinds["group"] = [f"group {i}" for i in range(groups)]
    delta = small_delta(n) if has_delta else 0.0
    shown = page.evaluate("state => figures(state)", state)
    for one, suffix in ((epsilon, ""), (math.inf, "_without")):
        table = DPTableOne(one, columns=PublicColumns(kinds), delta=delta, **by).expected_table(n)
        part = "group 0" if by else "Overall"
        for name, key in (("share", ("x2", "True", "share")), ("mean", ("x0", "", "mean"))):
            row = table.loc[(*key, part)]
            half = (row.population_high - row.population_low) / 2.0
            assert shown[name + suffix] == pytest.approx(half, rel=0.03), name


@pytest.mark.parametrize(("n", "epsilon"), [(300, 0.2), (3000, 1.0), (30_000, 8.0)])
def test_a_delta_is_worth_what_it_is_worth_to_the_library(page, n, epsilon):
    assert page.evaluate("smallDelta", n) == small_delta(n)
    found = page.evaluate("([e, d]) => rhoFor(e, d)", [epsilon, small_delta(n)])
    assert found == pytest.approx(rho_for(epsilon, small_delta(n)), rel=1e-6)


def test_what_an_attacker_concludes(page):
    for epsilon in (0.2, 1.0, 5.0):
        for prior in (0.01, 0.5, 0.9):
            shown = page.evaluate("s => figures(s)", {**STATE, "epsilon": epsilon, "prior": prior})
            factor = math.exp(epsilon)
            assert shown["posterior"] == pytest.approx(
                factor * prior / (1 - prior + factor * prior)
            )
            assert shown["least"] == pytest.approx(prior / (prior + factor * (1 - prior)))
        even = page.evaluate(
            "s => figures(s).posterior", {**STATE, "epsilon": epsilon, "prior": 0.5}
        )
        assert even == pytest.approx(float(Advantage.at(epsilon).right))


def test_sliders_change_what_is_shown(page):
    start(page)
    cards = page.locator(".card .big")
    before = cards.all_text_contents()
    state = page.evaluate("read()")
    assert state == {**STATE, "epsilon": pytest.approx(2.0, abs=0.05)}
    point = {**state, "epsilon": state["epsilon"] * 3 / 5}
    expected = planner.model_figures(point)
    assert before[0] == f"{expected['concordance']:.2f}"
    assert f"{100 * expected['risk_error']:.1f}" in before[1]
    move(page, epsilon=5)
    after = cards.all_text_contents()
    assert all(one != other for one, other in zip(before, after, strict=True))
    assert page.locator("#posterior").text_content() != "at most 45.2 %"
    start(page)
    page.locator("#epsilon").press("ArrowRight")
    assert page.evaluate("read().epsilon") > state["epsilon"]
    move(page, curves=False)
    assert not page.locator("#curve").is_visible()
    assert page.locator("#concordance").is_visible()


def test_the_answer_is_the_first_epsilon_that_is_not_too_noisy(page):
    start(page)
    stated = float(re.search(r"epsilon ([\d.]+)", page.locator("#answer").text_content())[1])
    worst = "e => Math.max(...shownCards({ ...read(), epsilon: e }).map(([, one]) => one.rank))"
    assert page.evaluate(worst, stated) < 2
    assert page.evaluate(worst, stated * 0.9) == 2
    said = page.locator("#answer").text_content()
    assert "A mean in Table 1" in said
    assert "concordance" not in said
    move(page, people=0, columns=20, groups=8)
    said = page.locator("#answer").text_content()
    assert "At no epsilon" in said
    assert "A share in Table 1" in said
    move(page, table=False, curves=False, groups=2, people=100, columns=2)
    assert "Table 1" not in page.locator("#answer").text_content()


def test_intervals_that_are_wider_have_an_example(page):
    start(page)
    shown = page.locator("#finite .more").text_content()
    width, low, high = map(float, re.findall(r"\d+\.\d+", shown)[:3])
    assert high == pytest.approx(1.25**width, rel=0.02)
    assert low * high == pytest.approx(1.0, abs=0.02)


def test_who_publishes_nothing_reveals_nothing_and_has_no_protocol(page):
    start(page)
    move(page, table=False, curves=False, model=False)
    assert page.locator("#posterior").text_content() == "at most 10 %"
    assert page.locator("#protocol").text_content() == "Choose what you will publish."
    assert page.locator(".card:visible").count() == 0


@pytest.mark.parametrize("width", [320, 360, 768, 1280])
def test_no_page_is_wider_than_its_screen(page, width):
    start(page)
    page.set_viewport_size({"width": width, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 360, "height": 740})


def test_everything_has_a_name_for_those_who_do_not_see_it(page):
    start(page)
    inputs = page.locator("input")
    names = inputs.evaluate_all("all => all.map(one => one.labels[0]?.textContent.trim())")
    assert len(names) == 10
    assert all(names)
    ranges = page.locator("input[type=range]")
    assert all(ranges.evaluate_all("all => all.map(one => one.getAttribute('aria-valuetext'))"))
    pictures = page.locator("svg[role=img]").evaluate_all("all => all.map(one => one.ariaLabel)")
    assert len(pictures) == 7
    assert all(len(one.split()) > 3 for one in pictures)
    assert page.locator("svg:not([role=img])").count() == 0


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("has_delta", [False, True])
@pytest.mark.parametrize("parts", [("table", "curves", "model"), ("model",), ("table", "curves")])
def test_the_protocol_is_one_that_a_study_reads(page, tmp_path, groups, has_delta, parts):
    start(page)
    move(page, groups=groups, delta=has_delta)
    move(page, **{one: one in parts for one in ("table", "curves", "model")})
    for name, file in (("protocol", "protocol.toml"), ("schema", "columns.toml")):
        (tmp_path / file).write_text(page.locator(f"#{name}").text_content(), encoding="utf-8")
    protocol = Protocol.from_toml(tmp_path / "protocol.toml")
    state = page.evaluate("read()")
    assert protocol.epsilon == state["epsilon"]
    command = (tmp_path / "protocol.toml").read_text("utf-8").splitlines()[1]
    assert command.endswith(f"--n-people {state['people']} --event-rate {state['events']}")
    assert protocol.delta == (small_delta(state["people"]) if has_delta else 0.0)
    kinds = {"table": "table", "curves": "curves", "model": "regression"}
    assert [one.kind for one in protocol.analyses] == [kinds[one] for one in parts]
    plan = StudyPlan.of(protocol, state["people"])
    assert plan.guarantee().epsilon == state["epsilon"]
    if not has_delta:
        whole = sum({"table": 1, "curves": 1, "model": 3}[one] for one in parts)
        model = plan.parts.get("regression")
        assert model is None or model.spend.epsilon == pytest.approx(
            3 / whole * state["epsilon"], rel=1e-3
        )


def test_the_protocol_is_copied(page):
    start(page)
    page.locator("button").first.click()
    assert "cop" in page.locator("button").first.text_content().lower()
    assert page.evaluate("getSelection().toString()").startswith("# Planned for")


def test_the_grid_in_the_page_is_that_of_the_package(page):
    shown = json.loads(page.locator("#grid").text_content())
    assert {name: shown[name] for name in GRID} == GRID
