// Learning curves: training and dev loss by update, redrawn during training. The names are those of the training log.

import { metrics, models, runs } from "./api.js";
import { el, svg } from "./dom.js";
import { textWidth } from "./text.js";

const WIDTH = 360;
const HEIGHT = 190;
const MARGIN = { left: 34, right: 10, top: 8, bottom: 34 };
const TICK_SIZE = 10.5; // pixels, as in the style sheet
const MAX_LOSS = 20; // nats; the perplexity of a higher loss is written as a power of e
const INTERVAL = 5000; // milliseconds between updates
const RECENT = 60; // seconds; a training run with a later entry is shown as running
const NUM_TICKS = 4;
const LINES = [
  { key: "train_loss", name: "train", style: "curve faint" },
  { key: "dev_loss", name: "dev", style: "curve" },
];

/** A section with a figure for each model that has training metrics. */
export async function learningCurves() {
  const figures = el("div", { class: "curves" });
  const empty = el("p", {}, "None of these models has training metrics.");
  const drawn = new Map(); // by name: `{figure, update, running}`
  const update = async () => {
    for (const name of await namesWithMetrics()) await updateFigure(name, drawn, figures).catch(() => {});
    empty.hidden = drawn.size > 0;
  };
  await update();
  const timer = setInterval(() => {
    if (!figures.isConnected) clearInterval(timer);
    else if (figures.offsetParent !== null && !document.hidden) update().catch(() => {}); // the service may be back later
  }, INTERVAL);
  return [
    el("h2", {}, "Learning curves"),
    el("p", { class: "hint" }, "The perplexity of the training log is e to the power of the loss. The curves are updated during training."),
    el("ul", { class: "legend" }, LINES.map(({ name, style }) => el("li", {}, el("span", { class: `swatch ${style}` }), name))),
    empty,
    figures,
  ];
}

/** Names of all models, including new ones, and of all runs: a run may train several models together. */
async function namesWithMetrics() {
  const [{ models: listed }, { runs: directories }] = await Promise.all([models(), runs()]);
  return new Set([...listed, ...directories].map(({ name }) => name));
}

async function updateFigure(name, drawn, figures) {
  const { metrics: entries, seconds_ago, token } = await metrics(name);
  if (!entries.some((entry) => LINES.some(({ key }) => Number.isFinite(entry[key])))) return;
  const previous = drawn.get(name);
  const running = seconds_ago !== null && seconds_ago < RECENT;
  const { update } = entries.at(-1);
  if (previous?.update === update && previous.running === running) return;
  const figure = drawFigure(name, entries, running, token);
  if (previous) previous.figure.replaceWith(figure);
  else figures.append(figure);
  drawn.set(name, { figure, update, running });
}

/** The perplexity of a loss, as in the training log. */
const perplexity = (loss) =>
  loss < MAX_LOSS ? Math.exp(loss).toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 }) : `e^${loss.toFixed(0)}`;

/** The epoch of the last entry, counted from 1: an entry counts the epochs that were completed before it. */
function currentEpoch(entries) {
  const [previous, last] = [entries.at(-2), entries.at(-1)];
  const isComplete = last.epoch > 0 && last.epoch > (previous?.epoch ?? 0) && Number.isFinite(last.dev_loss);
  return last.epoch + (isComplete ? 0 : 1);
}

function drawFigure(name, entries, running, token) {
  const lines = LINES.map((line) => ({ ...line, points: pointsOf(entries, line.key) })).filter(({ points }) => points.length);
  const scale = createScale(lines.flatMap(({ points }) => points));
  const { update } = entries.at(-1);
  const measure = token === "word" ? "perplexity by class" : `perplexity per ${token ?? "token"}`;
  const values = lines.map(({ name, points }) => `${name} ${perplexity(points.at(-1).y)}`).join(", ");
  const summary = `epoch ${currentEpoch(entries)}, update ${update.toLocaleString("en")}: ${measure} ${values}`;
  return el("figure", { "data-model": name },
    el("figcaption", {},
      el("strong", {}, name), running ? el("span", { class: "running" }, "running") : null,
      el("br"), summary),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${name}. ${summary}` },
      drawAxes(token, scale),
      lines.map((line) => drawLine(line, scale))));
}

function drawLine({ points, style }, scale) {
  const end = points.at(-1);
  return svg("g", { class: style },
    svg("polyline", { points: points.map(({ x, y }) => `${scale.x(x).toFixed(1)},${scale.y(y).toFixed(1)}`).join(" ") }),
    svg("circle", { cx: scale.x(end.x), cy: scale.y(end.y), r: 2.5 }));
}

const pointsOf = (entries, key) =>
  entries.filter((entry) => Number.isFinite(entry[key])).map((entry) => ({ x: entry.update, y: entry[key] }));

/** The map from updates and losses to coordinates, with the range of the axes. */
function createScale(points) {
  const losses = points.map(({ y }) => y);
  const height = HEIGHT - MARGIN.top - MARGIN.bottom;
  const max = Math.max(...losses);
  const step = roundUp((max - Math.min(...losses)) / NUM_TICKS);
  const min = step * Math.floor(Math.min(...losses) / step);
  const lastUpdate = Math.max(1, ...points.map(({ x }) => x));
  const left = Math.max(MARGIN.left, 8 + textWidth(max.toFixed(digitsOf(step)), TICK_SIZE));
  const right = Math.max(MARGIN.right, textWidth(lastUpdate.toLocaleString("en"), TICK_SIZE) / 8);
  return {
    min, max, lastUpdate, step, left,
    x: (update) => left + (update / lastUpdate) * (WIDTH - left - right),
    y: (loss) => MARGIN.top + height * (1 - (loss - min) / (max - min || 1)),
  };
}

/** The digits after the point of multiples of a step. */
const digitsOf = (step) => Math.max(0, -Math.floor(Math.log10(step)));

/** The next 1, 2, 5 or 10 times a power of ten. */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value || 1));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= value);
}

function drawAxes(token, { min, max, lastUpdate, step, left, x, y }) {
  const label = (text, attributes) => svg("text", { class: "tick", ...attributes }, text);
  const digits = digitsOf(step);
  const ticks = Array.from({ length: Math.floor((max - min) / step) + 1 }, (_, index) => min + index * step);
  const [baseline, middle] = [HEIGHT - MARGIN.bottom + 14, Math.round(lastUpdate / 2)];
  return [
    ticks.map((loss) => svg("line", { class: "axis", x1: x(0), x2: x(lastUpdate), y1: y(loss), y2: y(loss) })),
    ticks.map((loss) => label(loss.toFixed(digits), { x: left - 6, y: y(loss) + 4, "text-anchor": "end" })),
    label("0", { x: x(0), y: baseline, "text-anchor": "middle" }),
    label(middle.toLocaleString("en"), { x: x(middle), y: baseline, "text-anchor": "middle" }),
    label(lastUpdate.toLocaleString("en"), { x: x(lastUpdate), y: baseline, "text-anchor": "end" }),
    label(`updates; loss in nats per ${token ?? "token"}`, { x: x(middle), y: HEIGHT - 5, "text-anchor": "middle" }),
  ];
}
