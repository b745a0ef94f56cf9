// The hypotheses of a beam search as a tree: a column per step, the most probable hypothesis at the top.

import { svg } from "./dom.js";
import { END, logProb, textWidth } from "./text.js";

// -- the tree as data ----------------------------------------------------------------------------------------------------

/**
 * Group the nodes of a lattice by step: most probable first, pruned ones last. Each node gets its parent, its children,
 * its step and its row; pruned nodes are placed below the rows of the beam.
 */
export function groupBySteps(nodes, beam) {
  const steps = [];
  const byId = new Map();
  for (const plain of nodes) {
    const parent = byId.get(plain.parent) ?? null;
    const node = { ...plain, parent, children: [], step: parent ? parent.step + 1 : 0 };
    byId.set(node.id, node);
    parent?.children.push(node);
    (steps[node.step] ??= []).push(node);
  }
  return steps.map((step) => assignRows(step, beam));
}

const isPruned = (node) => node.fate === "pruned";

function assignRows(step, beam) {
  const sorted = [...step].sort((a, b) => isPruned(a) - isPruned(b) || b.log_prob - a.log_prob);
  const numKept = sorted.filter((node) => !isPruned(node)).length;
  sorted.forEach((node, index) => (node.row = isPruned(node) ? beam + index - numKept : index));
  return sorted;
}

/** The nodes from the root to a node. */
export function pathTo(node) {
  const path = [];
  for (let ancestor = node; ancestor; ancestor = ancestor.parent) path.unshift(ancestor);
  return path;
}

export const tokensOf = (node) => pathTo(node).slice(1).map(({ word }) => word);

/** The nodes of a sentence, as far as the search followed it. */
export function followTokens([[root]], tokens) {
  const path = [root];
  for (const token of tokens) {
    const next = path.at(-1).children.find(({ word }) => word === token);
    if (!next) break;
    path.push(next);
  }
  return path;
}

/** The path of the most probable hypothesis of a step; for the last step, the path of the translation. */
export function bestPath(steps, step, translation) {
  if (step < steps.length - 1) return pathTo(steps[step][0]);
  return followTokens(steps, [...translation.units, END]);
}

/** All nodes on paths that are kept in a step, or were finished up to it. */
export function survivors(steps, step) {
  const ends = steps.slice(0, step + 1).flat().filter((node) => node.fate === "finished" || (node.step === step && node.fate === "kept"));
  return new Set(ends.flatMap(pathTo));
}

// -- the tree as a picture -----------------------------------------------------------------------------------------------

const MIN_NODE_WIDTH = 104, NODE_HEIGHT = 36;
const COLUMN_GAP = 38, ROW = 44;
const FONT_SIZE = 14; // of words, in pixels, as in the style sheet
const TOP = 26, LEFT = 6;
const PRUNED_GAP = 0.4; // rows between kept and pruned nodes

/**
 * @param steps see groupBySteps
 * @param greedyNodes the nodes of the greedy path
 * @param onPoint called with the node under the pointer, or null
 */
export function drawTree(steps, beam, greedyNodes, onPoint) {
  const nodeWidth = Math.max(MIN_NODE_WIDTH, ...steps.flat().map(({ word }) => 16 + 1.15 * textWidth(word, FONT_SIZE)));
  const columnWidth = nodeWidth + COLUMN_GAP;
  const rowOf = (node) => node.row + (node.row >= beam ? PRUNED_GAP : 0);
  const left = (step) => LEFT + columnWidth * step;
  const top = (node) => TOP + ROW * rowOf(node);

  const width = LEFT + columnWidth * (steps.length - 1) + nodeWidth + 10;
  const height = TOP + ROW * (Math.max(...steps.flat().map(rowOf)) + 1) + 4;
  const prunedLine = TOP + ROW * (beam + PRUNED_GAP / 2) - (ROW - NODE_HEIGHT) / 2;
  const headings = steps.map((_, step) =>
    svg("text", { class: "step", x: left(step) + nodeWidth / 2, y: 14, "text-anchor": "middle" }, step ? String(step) : "start"));
  const drawings = new Map(steps.flat().map((node) => [node, drawNode(node, greedyNodes.has(node))]));

  function drawNode(node, isGreedy) {
    const [x, y] = [left(node.step), top(node)];
    const classes = `${node.fate} ${isGreedy ? "greedy" : ""}`;
    const group = svg("g", { class: `node ${classes}`, onpointerenter: () => onPoint(node), onpointerleave: () => onPoint(null) },
      svg("title", {}, `${node.word || "start"}: ${node.fate}, log-probability ${logProb(node.log_prob)}`),
      svg("rect", { x, y, width: nodeWidth, height: NODE_HEIGHT, rx: node.fate === "finished" ? NODE_HEIGHT / 2 : 5 }),
      svg("text", { class: "word", x: x + nodeWidth / 2, y: y + 15, "text-anchor": "middle" }, node.word || "·"),
      svg("text", { class: "log-prob", x: x + nodeWidth / 2, y: y + 29, "text-anchor": "middle" }, logProb(node.log_prob)),
      isGreedy && node.parent ? svg("circle", { class: "mark", cx: x + nodeWidth, cy: y, r: 5 }) : null);
    return { group, edge: node.parent && svg("path", { class: `edge ${classes}`, d: edgePath(node) }) };
  }

  function edgePath(node) {
    const [x1, y1] = [left(node.step - 1) + nodeWidth, top(node.parent) + NODE_HEIGHT / 2];
    const [x2, y2] = [left(node.step), top(node) + NODE_HEIGHT / 2];
    const middle = (x1 + x2) / 2;
    return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
  }

  function updateClasses(update) {
    for (const [node, { group, edge }] of drawings) {
      for (const element of edge ? [edge, group] : [group]) update(node, element.classList);
    }
  }

  /** Show the tree up to a step, with the surviving nodes and the best path highlighted. */
  function show(step, surviving, best) {
    const onBestPath = new Set(best);
    updateClasses((node, classes) => {
      classes.toggle("later", node.step > step);
      classes.toggle("now", node.step === step);
      classes.toggle("dead", node.fate !== "pruned" && !surviving.has(node));
      classes.toggle("best", onBestPath.has(node));
    });
    headings.forEach((heading, index) => heading.classList.toggle("now", index === step));
  }

  /** Mark the path to a node; null: no path. */
  function mark(node) {
    const path = new Set(pathTo(node));
    updateClasses((other, classes) => classes.toggle("marked", path.has(other)));
  }

  const element = svg("svg",
    { class: "tree", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Hypotheses of each step; the table below lists those of the current step" },
    headings,
    steps.flat().some((node) => node.row >= beam) ? svg("line", { class: "cut", x1: 0, x2: width, y1: prunedLine, y2: prunedLine }) : null,
    [...drawings.values()].map(({ edge }) => edge),
    [...drawings.values()].map(({ group }) => group));

  return { element, show, mark, columnOf: (step) => ({ from: left(step), to: left(step) + nodeWidth }) };
}
