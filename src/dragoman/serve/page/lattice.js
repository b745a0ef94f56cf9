// What a search did, as a tree: every hypothesis is a node, which continues its parent by one word.

import { END } from "./units.js";

/**
 * The nodes step by step, the best of each step first, those that were pruned last. A node knows its parent, its
 * children, its step, and its row: pruned ones stand below all that a beam can hold.
 */
export function stepsOf(nodes, beam) {
  const steps = [];
  const byId = new Map();
  for (const plain of nodes) {
    const parent = byId.get(plain.parent) ?? null;
    const node = { ...plain, parent, children: [], step: parent ? parent.step + 1 : 0 };
    byId.set(node.id, node);
    parent?.children.push(node);
    (steps[node.step] ??= []).push(node);
  }
  return steps.map((step) => ranked(step, beam));
}

const isPruned = (node) => node.fate === "pruned";

function ranked(step, beam) {
  const order = [...step].sort((one, other) => isPruned(one) - isPruned(other) || other.log_prob - one.log_prob);
  const kept = order.filter((node) => !isPruned(node)).length;
  order.forEach((node, at) => (node.row = isPruned(node) ? beam + at - kept : at));
  return order;
}

/** From the beginning to a node. */
export function pathTo(node) {
  const path = [];
  for (let at = node; at; at = at.parent) path.unshift(at);
  return path;
}

export const wordsOf = (node) => pathTo(node).slice(1).map((one) => one.word);

/** The nodes of a sentence, as far as the search came along it. */
export function follow([[root]], words) {
  const path = [root];
  for (const word of words) {
    const next = path.at(-1).children.find((child) => child.word === word);
    if (!next) break;
    path.push(next);
  }
  return path;
}

/** The path that a step likes best; the last step that of the translation. */
export function favourite(steps, step, translation) {
  if (step < steps.length - 1) return pathTo(steps[step][0]);
  return follow(steps, [...translation.units, END]);
}

/** Nodes that are part of something kept in a step, or finished before it. */
export function alive(steps, step) {
  const ends = steps.slice(0, step + 1).flat().filter((node) => node.fate === "finished" || (node.step === step && node.fate === "kept"));
  return new Set(ends.flatMap(pathTo));
}
