// How trainings go: the loss by update, drawn anew while they run.

import { metrics, models, runs } from "./api.js";
import { el, svg } from "./dom.js";
import { count } from "./format.js";

const WIDTH = 360;
const HEIGHT = 190;
const EDGE = { left: 34, right: 10, top: 8, bottom: 34 };
const EVERY = 5000; // milliseconds
const FRESH = 60; // seconds without a note after which a training is not said to run
const TICKS = 4;
const LINES = [
  { of: "train_loss", name: "training text", style: "curve faint" },
  { of: "dev_loss", name: "dev text", style: "curve" },
];

/** A section with a picture for each model that was trained by gradients, or is. */
export async function curves() {
  const pictures = el("div", { class: "curves" });
  const none = el("p", {}, "None of these models was trained step by step.");
  const told = new Map();
  const look = async () => {
    for (const name of await trained()) await drawnAnew(name, told, pictures).catch(() => {});
    none.hidden = told.size > 0;
  };
  await look();
  const timer = setInterval(() => {
    if (!pictures.isConnected) clearInterval(timer);
    else if (pictures.offsetParent !== null && !document.hidden) look().catch(() => {}); // gone for a moment, perhaps
  }, EVERY);
  return [
    el("h2", {}, "How training went"),
    el("p", { class: "hint" }, "Loss in nats a word, by update. Where a training runs, its curve goes on by itself."),
    el("ul", { class: "legend" }, LINES.map(({ name, style }) => el("li", {}, el("span", { class: `swatch ${style}` }), name))),
    none,
    pictures,
  ];
}

/** All that may have been trained: models, also those that came since, and runs that train several together. */
async function trained() {
  const [there, served] = await Promise.all([models(), runs()]);
  return new Set([...there.models, ...served.runs].map((one) => one.name));
}

async function drawnAnew(name, told, pictures) {
  const { metrics: noted, seconds_ago } = await metrics(name);
  if (!noted.some((one) => LINES.some(({ of }) => Number.isFinite(one[of])))) return;
  const before = told.get(name);
  const running = seconds_ago !== null && seconds_ago < FRESH;
  if (before?.update === noted.at(-1).update && before.running === running) return;
  const figure = picture(name, noted, running);
  if (before) before.figure.replaceWith(figure);
  else pictures.append(figure);
  told.set(name, { figure, update: noted.at(-1).update, running });
}

function picture(name, noted, running) {
  const lines = LINES.map((line) => ({ ...line, points: points(noted, line.of) })).filter(({ points }) => points.length);
  const scale = scales(lines.flatMap(({ points }) => points));
  const last = noted.at(-1);
  const summary = `${count(last.update, "update")}, epoch ${last.epoch}: ${lines.map(({ name, points }) => `${name} ${points.at(-1).y.toFixed(3)}`).join(", ")}`;
  return el("figure", {},
    el("figcaption", {},
      el("strong", {}, name), running ? el("span", { class: "running" }, "within the last minute") : null,
      el("br"), summary),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${name}. ${summary}` },
      axes(scale),
      lines.map((line) => drawn(line, scale))));
}

function drawn({ points, style }, scale) {
  const end = points.at(-1);
  return svg("g", { class: style },
    svg("polyline", { points: points.map(({ x, y }) => `${scale.x(x).toFixed(1)},${scale.y(y).toFixed(1)}`).join(" ") }),
    svg("circle", { cx: scale.x(end.x), cy: scale.y(end.y), r: 2.5 }));
}

const points = (noted, of) => noted.filter((one) => Number.isFinite(one[of])).map((one) => ({ x: one.update, y: one[of] }));

/** From updates and losses to places in the picture. */
function scales(all) {
  const height = HEIGHT - EDGE.top - EDGE.bottom;
  const most = Math.max(...all.map(({ y }) => y));
  const step = even((most - Math.min(...all.map(({ y }) => y))) / TICKS);
  const least = step * Math.floor(Math.min(...all.map(({ y }) => y)) / step);
  const longest = Math.max(1, ...all.map(({ x }) => x));
  return {
    least, most, longest, step,
    x: (update) => EDGE.left + (update / longest) * (WIDTH - EDGE.left - EDGE.right),
    y: (loss) => EDGE.top + height * (1 - (loss - least) / (most - least || 1)),
  };
}

/** A round number that is not less. */
function even(least) {
  const power = 10 ** Math.floor(Math.log10(least || 1));
  return power * [1, 2, 5, 10].find((one) => one * power >= least);
}

function axes({ least, most, longest, step, x, y }) {
  const label = (text, at) => svg("text", { class: "tick", ...at }, text);
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  const heights = Array.from({ length: Math.floor((most - least) / step) + 1 }, (_, at) => least + at * step);
  const [under, middle] = [HEIGHT - EDGE.bottom + 14, Math.round(longest / 2)];
  return [
    heights.map((loss) => svg("line", { class: "axis", x1: x(0), x2: x(longest), y1: y(loss), y2: y(loss) })),
    heights.map((loss) => label(loss.toFixed(digits), { x: EDGE.left - 6, y: y(loss) + 4, "text-anchor": "end" })),
    label("0", { x: x(0), y: under, "text-anchor": "middle" }),
    label(middle.toLocaleString("en"), { x: x(middle), y: under, "text-anchor": "middle" }),
    label(longest.toLocaleString("en"), { x: x(longest), y: under, "text-anchor": "end" }),
    label("updates", { x: x(middle), y: HEIGHT - 5, "text-anchor": "middle" }),
  ];
}
