// How trainings go: the loss by update, drawn anew while they run.

import { metrics } from "./api.js";
import { el, svg } from "./dom.js";

const WIDTH = 360;
const HEIGHT = 180;
const EDGE = { left: 40, right: 8, top: 8, bottom: 24 };
const EVERY = 5000; // milliseconds
const LINES = [
  { of: "train_loss", name: "training text", style: "curve faint" },
  { of: "dev_loss", name: "dev text", style: "curve" },
];

/** A section with a picture for each model that was trained by gradients, or is. */
export function curves({ models }) {
  const pictures = el("div", { class: "curves" });
  const none = el("p", {}, "None of these models was trained step by step.");
  const told = new Map();
  const look = async () => {
    for (const { name } of models) await drawnAnew(name, told, pictures).catch(() => {});
    none.hidden = told.size > 0;
  };
  look();
  const timer = setInterval(() => {
    if (!pictures.isConnected) clearInterval(timer);
    else if (pictures.offsetParent !== null && !document.hidden) look();
  }, EVERY);
  return [
    el("h2", {}, "How training went"),
    el("p", { class: "hint" }, "Loss in nats by update, of the training text (faint) and of the dev text. Where a training runs, this goes on."),
    none,
    pictures,
  ];
}

async function drawnAnew(name, told, pictures) {
  const noted = (await metrics(name)).metrics;
  if (!noted.length || told.get(name)?.updates === noted.length) return;
  const figure = picture(name, noted);
  if (told.has(name)) told.get(name).figure.replaceWith(figure);
  else pictures.append(figure);
  told.set(name, { figure, updates: noted.length });
}

function picture(name, noted) {
  const lines = LINES.map((line) => ({ ...line, points: points(noted, line.of) })).filter(({ points }) => points.length);
  const scale = scales(lines.flatMap(({ points }) => points));
  const last = noted.at(-1);
  const summary = `Update ${last.update.toLocaleString("en")}, epoch ${last.epoch}: ${lines.map(({ name, points }) => `${name} ${points.at(-1).y.toFixed(3)}`).join(", ")}`;
  return el("figure", {},
    el("figcaption", {}, el("strong", {}, name), el("br"), summary),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${name}. ${summary}` },
      axes(scale),
      lines.map(({ points, style }) => svg("polyline", { class: style, points: points.map(({ x, y }) => `${scale.x(x)},${scale.y(y)}`).join(" ") }))));
}

const points = (noted, of) => noted.filter((one) => Number.isFinite(one[of])).map((one) => ({ x: one.update, y: one[of] }));

/** From updates and losses to places in the picture. */
function scales(all) {
  const [least, most] = [Math.min(...all.map(({ y }) => y)), Math.max(...all.map(({ y }) => y))];
  const longest = Math.max(1, ...all.map(({ x }) => x));
  const height = HEIGHT - EDGE.top - EDGE.bottom;
  return {
    least, most, longest,
    x: (update) => EDGE.left + (update / longest) * (WIDTH - EDGE.left - EDGE.right),
    y: (loss) => EDGE.top + height * (1 - (loss - least) / (most - least || 1)),
  };
}

function axes({ least, most, longest, x, y }) {
  const label = (text, at) => svg("text", { class: "tick", ...at }, text);
  return [
    svg("line", { class: "axis", x1: x(0), x2: x(longest), y1: y(least) + 4, y2: y(least) + 4 }),
    label(most.toFixed(2), { x: EDGE.left - 6, y: y(most) + 4, "text-anchor": "end" }),
    label(least.toFixed(2), { x: EDGE.left - 6, y: y(least) + 4, "text-anchor": "end" }),
    label("0", { x: x(0), y: HEIGHT - 6 }),
    label(longest.toLocaleString("en"), { x: x(longest), y: HEIGHT - 6, "text-anchor": "end" }),
  ];
}
