// Draws pages in a frame, one after the other, and posts what is wrong with each to /report.
const WIDTHS = [390, 1280];
const LEAST_CONTRAST = 4.5;
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

function numbers(color) {
  const parts = color.match(/[\d.]+/g).map(Number);
  const whole = color.startsWith("color(") ? parts.map((x, i) => (i < 3 ? 255 * x : x)) : parts;
  return [whole[0], whole[1], whole[2], whole[3] ?? 1];
}

const over = (top, below) => [0, 1, 2].map((i) => top[3] * top[i] + (1 - top[3]) * below[i]);

function background(element, view) {
  const layers = [];
  for (let e = element; e; e = e.parentElement) {
    const layer = numbers(view.getComputedStyle(e).backgroundColor);
    layers.push(layer);
    if (layer[3] === 1) break;
  }
  return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
}

function luminance(color) {
  const [r, g, b] = color.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrasts(page, view) {
  const low = {};
  const walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || !element.getClientRects().length) continue;
    const style = view.getComputedStyle(element);
    if (style.visibility !== "visible" || element.closest("script, style, noscript, mjx-assistive-mml")) continue;
    const below = background(element, view);
    const [a, b] = [luminance(over(numbers(style.color), below)), luminance(below)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const name = `${element.tagName.toLowerCase()}.${element.className} in .${element.parentElement.className}`;
    if (ratio < LEAST_CONTRAST && ratio < (low[name]?.ratio ?? 99)) {
      low[name] = { ratio, text: node.textContent.trim().slice(0, 30), color: style.color };
    }
  }
  return Object.entries(low).map(([name, l]) => `${l.ratio.toFixed(2)}:1 of ${name} (${l.text}, ${l.color})`);
}

async function look(frame, address, width) {
  const found = [];
  frame.style.width = `${width}px`;
  await new Promise((done) => { frame.onload = done; frame.src = address; });
  const view = frame.contentWindow;
  const page = view.document;
  const still = page.createElement("style");
  still.textContent = "* { transition: none !important; animation: none !important }";
  page.head.append(still);
  const formulas = page.querySelectorAll("span.math, div.math").length;
  if (formulas) {
    for (let i = 0; i < 100 && !view.MathJax?.startup?.promise; i++) await pause(100);
    await view.MathJax?.startup?.promise;
    const drawn = page.querySelectorAll("mjx-container").length;
    if (drawn < formulas) found.push(`${drawn} of ${formulas} formulas are drawn`);
    const wrong = page.querySelectorAll("mjx-merror").length;
    if (wrong) found.push(`${wrong} formulas have errors`);
  }
  const wide = page.documentElement.scrollWidth;
  if (wide > view.innerWidth) found.push(`${wide} pixels wide, on ${width}`);
  if (width === WIDTHS.at(-1)) {
    for (const theme of ["light", "dark"]) {
      page.body.dataset.theme = theme;
      found.push(...contrasts(page, view).map((low) => `${theme}: ${low}`));
    }
  }
  return found;
}

(async () => {
  const frame = document.querySelector("iframe");
  for (const address of await (await fetch("/pages")).json()) {
    const found = [];
    for (const width of WIDTHS) {
      try { found.push(...(await look(frame, address, width))); } catch (error) { found.push(String(error)); }
    }
    await fetch("/report", { method: "POST", body: JSON.stringify([address, found]) });
  }
  await fetch("/report", { method: "POST", body: "null" });
})();
