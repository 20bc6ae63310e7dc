"use strict";
const GRID = JSON.parse(document.getElementById("grid").textContent);
const SHARES = { table: 1, curves: 1, model: 3 };
const Z = 1.959964, Z_LAPLACE = -Math.log(0.05) / Math.SQRT2;
const at = (id) => document.getElementById(id);
const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

// --- Figures, from a state of the sliders. Python's skdpsurv.report.planner has the same.

function interpolated(table, point) {
  const scaled = (axis, x) => (axis === "events" ? Math.log(x / (1 - x)) : Math.log(x));
  const all = { ...point, budget: point.people * point.epsilon };
  let corners = [[0, 1]];
  for (const [name, axis] of Object.entries(table.axes)) {
    const x = clamp(all[name], axis[0], axis.at(-1));
    let k = 0;
    while (k < axis.length - 2 && x > axis[k + 1]) k++;
    const [low, here, high] = [axis[k], x, axis[k + 1]].map((one) => scaled(name, one));
    const part = (here - low) / (high - low);
    corners = corners.flatMap(([place, weight]) =>
      [[k, 1 - part], [k + 1, part]].map(([own, share]) => [place * axis.length + own, weight * share]));
  }
  const found = {};
  for (const [name, values] of Object.entries(table.values)) {
    const isLog = GRID.logarithmic.includes(name);
    const sum = corners.reduce((total, [i, w]) => total + (w && w * (isLog ? Math.log(values[i]) : values[i])), 0);
    found[name] = isLog ? Math.exp(sum) : sum;
  }
  return found;
}

function smallDelta(n) {
  const power = Math.floor(-2 * Math.log10(n) + 1e-9);
  return Number(`${Math.floor(10 ** (-power) / n ** 2 + 1e-9)}e${power}`);
}

// The epsilon of a rho of zCDP at a delta, by the best order of Renyi divergence; and its inverse.
function epsilonAt(rho, delta) {
  const of = (x) => {
    const order = 1 + Math.exp(x);
    return rho * order + Math.log1p(-1 / order) - (Math.log(delta) + Math.log(order)) / (order - 1);
  };
  const guess = 0.5 * Math.log(-Math.log(delta) / rho);
  let [low, high] = [Math.min(guess - 4, -4), guess + 4];
  for (let i = 0; i < 120; i++) {
    const third = (high - low) / 3;
    if (of(low + third) < of(high - third)) high -= third; else low += third;
  }
  return Math.max(of(low), 0);
}
function rhoFor(epsilon, delta) {
  let [low, high] = [0, 1];
  while (epsilonAt(high, delta) <= epsilon) high *= 2;
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (epsilonAt(middle, delta) <= epsilon) low = middle; else high = middle;
  }
  return low;
}

// Half-widths for the population, of a share of one half and of the mean of an even spread.
function tableHalves(state, epsilon) {
  const inGroup = state.people / state.groups;
  let deviation = Math.SQRT2 * 2 * state.columns / epsilon, isLaplace = true;
  if (state.delta) {
    const gaussian = Math.sqrt(2 * state.columns) / Math.sqrt(2 * rhoFor(epsilon, smallDelta(state.people)));
    if (gaussian < deviation) [deviation, isLaplace] = [gaussian, false];
  }
  const noise = deviation ** 2, of = (variance, z) => Math.min(z * Math.sqrt(variance) / inGroup, 0.5);
  const share = noise / 2 + inGroup / 4;
  // Noise of few cells has the heavier tails of its own law.
  const z = Z + (isLaplace ? 0.125 * (noise / share) ** 2 * (Z_LAPLACE - Z) : 0);
  const m = clamp(Math.round((inGroup / deviation) ** (2 / 3)), 8, 200);
  const mean = noise * m * (m + 1) / (12 * (m - 1)) + inGroup / 12;
  return { share: of(share, z), share_without: of(inGroup / 4, Z), mean: of(mean, Z), mean_without: of(inGroup / 12, Z) };
}

function figures(state) {
  const parts = Object.keys(SHARES).filter((one) => state[one]);
  const whole = parts.reduce((sum, one) => sum + SHARES[one], 0);
  const own = (one) => ({ ...state, epsilon: state.epsilon * SHARES[one] / (state[one] ? whole : 5) });
  const model = interpolated(GRID[state.delta ? "model_with_delta" : "model"], own("model"));
  const model_without = interpolated(GRID.model_without, state);
  // An error of log odds moves a risk most in the middle.
  for (const one of [model, model_without]) one.risk_error = one.log_odds_error * state.events * (1 - state.events);
  if (model.finite < GRID.least_finite) model.width = NaN;
  const factor = whole ? Math.exp(state.epsilon) : 1, odds = factor * state.prior;
  return {
    model, model_without,
    curve: Math.min(interpolated(GRID.curves, own("curves")).half_width, 0.5),
    curve_without: interpolated(GRID.curves_without, state).half_width,
    ...tableHalves(state, own("table").epsilon),
    posterior: odds / (1 - state.prior + odds), least: state.prior / (state.prior + factor * (1 - state.prior)),
  };
}

// --- Cards: a number, that without privacy, a picture, a range and a verdict.

const places = (x) => (Math.abs(100 * x) < 9.95 ? 1 : 0);
const points = (x) => `± ${(100 * x).toFixed(places(x))} points`;
const percent = (x) => `${Math.round(100 * x)} %`;
const byRatio = (one, other) => (one <= Math.max(1.25 * other, 0.02) ? 0 : one <= Math.max(2 * other, 0.05) ? 1 : 2);

function cards(f) {
  const m = f.model, w = f.model_without, loss = w.concordance - m.concordance;
  const half = (one, other, more) => ({
    big: points(one), than: `${points(other)} without privacy`, more,
    rows: [[-one, 0, one], [-other, 0, other]], ends: [-0.2, 0.2],
    label: (x) => `${x < 0 ? "−" : "+"} ${100 * Math.abs(x)} points`, rank: byRatio(one, other),
  });
  // Intervals of ratios are wider on the scale of logarithms.
  const factor = Math.exp(m.width * Math.log(1.25)), [low, high] = [1 / factor, factor].map((x) => x.toFixed(2));
  const width = Number.isNaN(m.width) ? "Hardly any ends: they say nothing."
    : `Those that end are ${m.width.toFixed(1)} times as wide: ${low} to ${high} in place of 0.80 to 1.25.`;
  return {
    concordance: {
      big: m.concordance.toFixed(2), than: `${w.concordance.toFixed(2)} without privacy`,
      more: `8 of 10 studies: ${m.concordance_low.toFixed(2)} to ${m.concordance_high.toFixed(2)}. 0.50 is guessing.`,
      rows: [m, w].map((one) => [one.concordance_low, one.concordance, one.concordance_high]), ends: [0.4, 0.75],
      label: (x) => x.toFixed(2), rank: loss <= 0.01 ? 0 : loss <= 0.03 ? 1 : 2,
    },
    risk: half(m.risk_error, w.risk_error,
      `On average. Events predicted for each that comes: ${m.calibration_low.toFixed(2)} to ${m.calibration_high.toFixed(2)}, in 8 of 10 studies.`),
    finite: {
      big: percent(m.finite), than: "100 % without privacy", more: width, rows: [[0, m.finite, m.finite], [0, 1, 1]],
      ends: [0, 1], label: percent, rank: m.finite >= 0.9 && m.width <= 1.25 ? 0 : m.finite >= 0.5 && m.width <= 5 ? 1 : 2,
    },
    curve: half(f.curve, f.curve_without, "95 % interval, at the end of follow-up."),
    share: half(f.share, f.share_without, "95 % interval, of a share of one half."),
    mean: half(f.mean, f.mean_without, "95 % interval, in hundredths of the column's bounds."),
  };
}

// Two horizontal ranges with a dot each, over an axis.
function ranges(one) {
  const [low, high] = one.ends, x = (value) => 6 + 268 * clamp((value - low) / (high - low), 0, 1);
  const rows = one.rows.map(([from, dot, to], i) => {
    const y = 12 + 20 * i, fill = i ? "#a34700" : "#0072b2";
    const mark = i ? `<path d="M${x(dot)} ${y - 6}l6 6l-6 6l-6-6z" fill="${fill}"/>` : `<circle cx="${x(dot)}" cy="${y}" r="6" fill="${fill}"/>`;
    return `<rect x="${x(from)}" y="${y - 3}" width="${Math.max(x(to) - x(from), 0)}" height="6" rx="3" fill="${fill}" opacity=".55"/>${mark}`;
  });
  const label = `${one.big}; ${one.than}`;
  return `<svg viewBox="0 0 280 60" role="img" aria-label="${label}"><path d="M6 44H274" stroke="#8a97a3"/>${rows.join("")}` +
    `<text x="2" y="57">${one.label(low)}</text><text x="278" y="57" text-anchor="end">${one.label(high)}</text></svg>`;
}

function crowd(f, state) {
  const before = Math.round(100 * state.prior), after = Math.ceil(100 * f.posterior - 1e-9);
  const one = (i) => `<rect x="${(i % 20) * 14 + 1}" y="${Math.floor(i / 20) * 14 + 1}" width="11" height="11" rx="2" ` +
    `fill="${i < before ? "#1b2733" : i < after ? "#d55e00" : "#e3e8ec"}"/>`;
  const label = `Of 100 squares ${before} are suspected before, and at most ${after} after.`;
  return `<svg viewBox="0 0 280 71" role="img" aria-label="${label}">${Array.from({ length: 100 }, (_, i) => one(i)).join("")}</svg>`;
}

// --- The page.

const sliders = ["people", "columns", "events", "groups", "epsilon", "prior"];
const two = (x) => Number(x.toPrecision(2));
const epsilonOf = (place) => two(0.2 * 50 ** (place / 100));
const VERDICTS = [["good", "● Little is lost"], ["fair", "◐ Usable, with care"], ["bad", "○ Too noisy"]];

function read() {
  const raw = Object.fromEntries(sliders.map((one) => [one, Number(at(one).value)]));
  const state = { ...raw, people: two(300 * 100 ** (raw.people / 100)), events: raw.events / 100, epsilon: epsilonOf(raw.epsilon), prior: raw.prior / 100 };
  for (const one of ["delta", "table", "curves", "model"]) state[one] = at(one).checked;
  return state;
}

const shownCards = (state) => Object.entries(cards(figures(state))).filter(([name]) => state[at(name).dataset.of]);

// From which epsilon on nothing that is published is too noisy, and what is so just before.
function answer(state) {
  const noisy = (place) => shownCards({ ...state, epsilon: epsilonOf(place) }).filter(([, one]) => one.rank === 2);
  const named = (found) => found.map(([name]) => `“${at(name).querySelector("h3").textContent}”`).join(", ");
  if (!(state.table || state.curves || state.model)) return "Choose what you will publish.";
  let from = 101;
  while (from > 0 && !noisy(from - 1).length) from--;
  if (from > 100) return `<strong>At no epsilon up to 10</strong> is all of this usable. Too noisy even there: ${named(noisy(100))}. More people, fewer columns or groups, or less to publish would help.`;
  const last = from > 0 ? ` Just below, too noisy: ${named(noisy(from - 1))}.` : "";
  return `<strong>From epsilon ${epsilonOf(from)} on</strong>, nothing here is too noisy.${last}`;
}

function protocol(state) {
  const by = state.groups > 1 ? '\nby = "group"' : "";
  const names = Array.from({ length: state.columns }, (_, i) => `"column_${i + 1}"`).join(", ");
  const arms = state.groups > 1 ? '# For a hazard ratio of "group", add it to these columns; it counts as one more, or several.\n' : "";
  const parts = {
    table: `[[analyses]]\nkind = "table"${by}\n`, curves: `[[analyses]]\nkind = "curves"${by}\n`,
    model: `[[analyses]]\nkind = "regression"\n${arms}columns = [${names}]\nshare = 3\nintervals = ${GRID.about.intervals}\n`,
  };
  const analyses = Object.keys(parts).filter((one) => state[one]).map((one) => parts[one]).join("\n");
  const delta = state.delta ? `delta = ${smallDelta(state.people).toExponential()}\n` : "";
  if (!analyses) return "Choose what you will publish.";
  const command = `skdpsurv study plan protocol.toml --n-people ${state.people} --event-rate ${state.events}`;
  return `# Planned for ${state.people} people:\n# ${command}\ntitle = "Title of the study"\ndataset = "name-of-the-data"\nowner = "Who is responsible"\n` +
    `purpose = "Why it is done"\nschema = "columns.toml"\n\n[outcome]\ntime = "days"\nevent = "died"\nmax_time = 3650\nunit = "days"\n\n` +
    `[budget]\nepsilon = ${state.epsilon}\n${delta}\n${analyses}`;
}

function schema(state) {
  const labels = Array.from({ length: state.groups }, (_, i) => `"group ${i + 1}"`).join(", ");
  const group = state.groups > 1 ? `group = [${labels}]\n` : "";
  const kind = (i) => (i % 3 === 2 ? "{ boolean = true }" : "[0, 100]");
  const lines = Array.from({ length: state.columns }, (_, i) => `column_${i + 1} = ${kind(i)}\n`).join("");
  return `missing = "error"\n\n[columns]\n${group}${lines}`;
}

function draw() {
  const state = read(), f = figures(state), n = state.people.toLocaleString("en");
  const said = { people: n, columns: state.columns, events: percent(state.events), groups: state.groups > 1 ? state.groups : "none", epsilon: state.epsilon, prior: percent(state.prior) };
  for (const [name, text] of Object.entries(said)) {
    at(`${name}-is`).textContent = text;
    at(name).setAttribute("aria-valuetext", text);
  }
  const delta = `1 in ${Math.round(1 / smallDelta(state.people)).toLocaleString("en")}`;
  at("delta-is").textContent = `The promise may then fail with a probability of ${delta}. Noise can be less.`;
  for (const [name, one] of Object.entries(cards(f))) {
    const card = at(name), [tone, verdict] = VERDICTS[one.rank];
    card.hidden = !state[card.dataset.of];
    for (const part of ["big", "than", "more"]) card.querySelector(`.${part}`).textContent = one[part];
    card.querySelector(".picture").innerHTML = ranges(one);
    card.querySelector(".verdict").className = `verdict ${tone}`;
    card.querySelector(".verdict").textContent = verdict;
  }
  at("answer").innerHTML = answer(state);
  at("posterior").textContent = `at most ${Math.ceil(1000 * f.posterior - 1e-9) / 10} %`;
  const added = state.delta ? ` Delta may add ${delta} to the probability of anything published.` : "";
  const sure = f.posterior < 0.95 ? "No one can be sure either way." : "That promises little.";
  at("posterior-more").textContent = `And at least ${Math.floor(1000 * f.least) / 10} %. ${sure}${added}`;
  at("people-picture").innerHTML = crowd(f, state);
  at("protocol").textContent = protocol(state);
  at("schema").textContent = schema(state);
}

document.addEventListener("input", draw);
for (const button of document.querySelectorAll("button")) {
  const text = button.textContent;
  button.addEventListener("click", async () => {
    const copied = at(button.dataset.copies);
    getSelection().selectAllChildren(copied);
    // Files have no clipboard in some browsers: the text stays selected there.
    const done = await navigator.clipboard?.writeText(copied.textContent).then(() => true, () => false);
    button.textContent = done ? "Copied" : "Selected: copy it";
    setTimeout(() => { button.textContent = text; }, 2000);
  });
}
draw();
