// The tree of a search as a picture: a column for each step, in it the hypotheses from the likeliest down.

import { svg } from "./dom.js";
import { logProb } from "./format.js";
import { pathTo } from "./lattice.js";
import { shortened } from "./units.js";

const WIDTH = 104, HEIGHT = 36; // of a node
const COLUMN = 142, ROW = 44;
const TOP = 26, LEFT = 6;
const BELOW = 0.4; // rows between kept and pruned
const SIGNS = 13;

/**
 * @param steps see lattice.js
 * @param greedy the nodes of the greedy path
 * @param point is told the node that is pointed at, or null
 */
export function tree(steps, beam, greedy, point) {
  const rows = Math.max(...steps.flat().map(place)) + 1;
  const width = LEFT + COLUMN * (steps.length - 1) + WIDTH + 10;
  const height = TOP + ROW * rows + 4;
  const drawn = new Map(steps.flat().map((node) => [node, draw(node, greedy.has(node))]));
  const line = TOP + ROW * (beam + BELOW / 2) - (ROW - HEIGHT) / 2;
  const heads = steps.map((_, step) =>
    svg("text", { class: "step", x: left(step) + WIDTH / 2, y: 14, "text-anchor": "middle" }, step ? String(step) : "start"));

  function place(node) {
    return node.row + (node.row >= beam ? BELOW : 0);
  }
  function left(step) {
    return LEFT + COLUMN * step;
  }
  function top(node) {
    return TOP + ROW * place(node);
  }

  function draw(node, isGreedy) {
    const [x, y] = [left(node.step), top(node)];
    const kinds = `node ${node.fate} ${isGreedy ? "greedy" : ""}`;
    const group = svg("g", { class: kinds, onpointerenter: () => point(node), onpointerleave: () => point(null) },
      svg("title", {}, `${node.word || "the beginning"}: ${node.fate}, log-probability ${logProb(node.log_prob)}`),
      svg("rect", { x, y, width: WIDTH, height: HEIGHT, rx: node.fate === "finished" ? HEIGHT / 2 : 5 }),
      svg("text", { class: "word", x: x + WIDTH / 2, y: y + 15, "text-anchor": "middle" }, shortened(node.word || "·", SIGNS)),
      svg("text", { class: "cost", x: x + WIDTH / 2, y: y + 29, "text-anchor": "middle" }, logProb(node.log_prob)),
      isGreedy && node.parent ? svg("circle", { class: "mark", cx: x + WIDTH, cy: y, r: 5 }) : null);
    return { group, edge: node.parent && svg("path", { class: `edge ${kinds.slice(5)}`, d: edge(node) }) };
  }

  function edge(node) {
    const [x, y] = [left(node.step - 1) + WIDTH, top(node.parent) + HEIGHT / 2];
    const [to, down] = [left(node.step), top(node) + HEIGHT / 2];
    const middle = (x + to) / 2;
    return `M${x} ${y}C${middle} ${y} ${middle} ${down} ${to} ${down}`;
  }

  function each(change) {
    for (const [node, { group, edge }] of drawn) for (const one of edge ? [edge, group] : [group]) change(node, one.classList);
  }

  /** A step, with the nodes that live on in it, and its favourite path. */
  function show(step, living, best) {
    const preferred = new Set(best);
    each((node, classes) => {
      classes.toggle("later", node.step > step);
      classes.toggle("now", node.step === step);
      classes.toggle("dead", node.fate !== "pruned" && !living.has(node));
      classes.toggle("best", preferred.has(node));
    });
    heads.forEach((head, at) => head.classList.toggle("now", at === step));
  }

  /** The path to a node, or none. */
  function mark(node) {
    const path = new Set(pathTo(node));
    each((one, classes) => classes.toggle("marked", path.has(one)));
  }

  const edges = [...drawn.values()].map((one) => one.edge).filter(Boolean);
  const element = svg("svg", { class: "tree", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "The hypotheses of each step; the table below has them as words" },
    heads,
    steps.flat().some((node) => node.row >= beam) ? svg("line", { class: "cut", x1: 0, x2: width, y1: line, y2: line }) : null,
    edges,
    [...drawn.values()].map((one) => one.group));

  return { element, show, mark, columnOf: (step) => ({ from: left(step), to: left(step) + WIDTH }) };
}
