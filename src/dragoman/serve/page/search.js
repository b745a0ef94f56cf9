// A beam search, step by step, and the greedy one beside it.

import { post } from "./api.js";
import { asking } from "./asking.js";
import { NONE, isChoice, isTranslator, offer, whole } from "./choices.js";
import { unshared } from "./difference.js";
import { el, fill, parts } from "./dom.js";
import { count, logProb } from "./format.js";
import { alive, favourite, follow, stepsOf, wordsOf } from "./lattice.js";
import { figures } from "./nbest.js";
import { notice } from "./notice.js";
import { VERTICAL, roving } from "./roving.js";
import { stepper } from "./stepper.js";
import { tree } from "./tree.js";
import { END, joined } from "./units.js";

const FATES = { kept: "kept", finished: "finished", pruned: "pruned" };
const LEGEND = [
  ["kept", "kept"],
  ["finished", "finished"],
  ["pruned", "pruned"],
  ["dead", "given up later"],
  ["best", "the likeliest in this step; in the end, the translation"],
  ["greedy", "on the greedy path"],
];

export function search(root, service, write) {
  const part = parts(root);
  const { model, beam, handling, penalty, pruned } = part.form.elements;
  const translators = service.models.filter(isTranslator);
  const told = notice(part.notice);
  const asked = asking(told, [part.inside], "Searching …");
  const steps = stepper(root, part, showStep);
  let found, picture, opened;

  beam.max = service.limits.beam;
  part.legend.append(el("ul", { class: "legend" }, LEGEND.map(([kind, text]) => el("li", {}, el("span", { class: `swatch ${kind}` }), text))));

  // -- the inputs ------------------------------------------------------------------------------------------------------

  const length = () => (handling.value === "penalty" ? `penalty:${penalty.value || 0}` : handling.value);

  function params() {
    const own = { model: model.value, beam: beam.value, length: length(), pruned: pruned.value, text: part.text.value };
    return new URLSearchParams(found ? { ...own, step: steps.at } : own);
  }

  function open(given) {
    offer(model, translators, given.get("model"));
    if (String(given) === opened) return;
    const [kind, number] = (given.get("length") ?? length()).split(":");
    fill(beam, given.get("beam") ?? beam.value);
    fill(handling, kind);
    fill(penalty, number ?? penalty.value);
    fill(pruned, given.get("pruned") ?? pruned.value);
    fill(part.text, given.get("text") ?? part.text.value);
    refresh({ at: given.get("step") });
  }

  /** Where the search is looked at afterwards: at a given step, or at its end. */
  function refresh({ step = false, typing = false, at = null } = {}) {
    found = undefined;
    part.penalty.hidden = handling.value !== "penalty";
    part.text.lang = translators.find((one) => one.name === model.value)?.source ?? "";
    write(params(), step);
    opened = String(params());
    if (!model.value || !part.text.value.trim()) return rest();
    (typing ? asked.later : asked.now)(question, (answer) => show(answer, at));
  }

  function rest() {
    asked.rest();
    if (!model.value) told.problem(new Error(NONE));
  }

  part.form.addEventListener("input", ({ target }) => refresh({ step: isChoice(target), typing: !isChoice(target) }));
  part.form.addEventListener("submit", (event) => event.preventDefault());
  part.text.addEventListener("input", () => refresh({ typing: true }));

  // -- asking and showing ----------------------------------------------------------------------------------------------

  async function question(signal) {
    const width = whole(beam);
    const how = { model: model.value, text: part.text.value.trim(), length: length() };
    const one = (more) => post("lattice", { ...how, ...more }, signal);
    const [wide, greedy] = await Promise.all([one({ beam: width, pruned: whole(pruned) }), one({ beam: 1, pruned: 0 })]);
    return { width, wide: wide.translation, greedy: greedy.translation, steps: stepsOf(wide.nodes, width) };
  }

  function show(answer, at) {
    found = answer;
    const greedy = follow(found.steps, [...found.greedy.units, END]);
    picture = tree(found.steps, found.width, new Set(greedy), mark);
    part.tree.replaceChildren(picture.element);
    part.compared.replaceChildren(...compared(found, greedy));
    steps.reset(found.steps.length - 1, at);
  }

  function showStep(step) {
    if (!found) return;
    const nodes = found.steps[step];
    const best = favourite(found.steps, step, found.wide);
    picture.show(step, alive(found.steps, step), best);
    part.counter.textContent = `Step ${step} of ${found.steps.length - 1}: ${tally(nodes)}`;
    showHypotheses(nodes, best.at(-1));
    reveal(part.tree, picture.columnOf(step));
    write(params());
    opened = String(params());
  }

  function showHypotheses(nodes, best) {
    const row = [...part.hypotheses.querySelectorAll("tbody tr")].indexOf(document.activeElement);
    part.hypotheses.replaceChildren(table(nodes, best, mark));
    part.hypotheses.querySelectorAll("tbody tr")[row]?.focus();
  }

  const mark = (node) => picture.mark(node);

  return { open, params };
}

function tally(nodes) {
  const many = (fate) => nodes.filter((node) => node.fate === fate).length;
  return Object.entries(FATES).filter(([fate]) => many(fate)).map(([fate, name]) => `${many(fate)} ${name}`).join(", ");
}

/** Scroll a box sideways so that a column and a bit of the next can be seen. */
function reveal(box, { from, to }) {
  const spare = 60;
  if (to + spare > box.scrollLeft + box.clientWidth) box.scrollLeft = to + spare - box.clientWidth;
  if (from - spare < box.scrollLeft) box.scrollLeft = from - spare;
}

// -- the hypotheses of a step as words -----------------------------------------------------------------------------------

function table(nodes, best, mark) {
  const heads = ["Hypothesis", "log P", "Score", "Fate"];
  const rows = nodes.map((node) => line(node, node === best, mark));
  const body = el("tbody", {}, rows);
  roving(body, rows, { keys: VERTICAL });
  return el("table", { class: "hypotheses" },
    el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
    body);
}

function line(node, isBest, mark) {
  const on = () => mark(node);
  const off = () => mark(null);
  const words = wordsOf(node).join(" ") || "(the beginning)";
  return el("tr", { class: `${node.fate} ${isBest ? "best" : ""}`, onpointerenter: on, onpointerleave: off, onfocus: on, onblur: off },
    el("td", {}, words),
    el("td", { class: "number" }, logProb(node.log_prob)),
    el("td", { class: "number" }, node.word === END ? logProb(node.score) : "–"),
    el("td", {}, FATES[node.fate]));
}

// -- beam and greedy -----------------------------------------------------------------------------------------------------

function compared({ width, wide, greedy }, path) {
  const same = joined(wide.units) === joined(greedy.units);
  return [
    el("div", { class: "ranks" }, told(`beam of ${width}`, wide, greedy), told("greedy", greedy, wide)),
    el("p", { class: "hint" }, same ? "Both find the same." : parting(wide, greedy, path)),
  ];
}

function told(name, own, other) {
  const differing = unshared(own.units, other.units);
  const words = own.units.flatMap((unit, at) => [differing.has(at) ? el("mark", {}, unit) : unit, " "]);
  return el("div", { class: "rank" },
    el("span", { class: "name" }, name),
    el("span", { class: "text" }, words),
    figures(own));
}

function parting(wide, greedy, path) {
  const gain = wide.log_prob - greedy.log_prob;
  const by = `In log-probability the beam’s is ${gain >= 0 ? "better" : "worse"} by ${logProb(Math.abs(gain))}.`;
  const last = path.at(-1);
  if (last.fate === "pruned") return `${by} The beam prunes the greedy one in step ${last.step}.`;
  if (path.length <= greedy.units.length + 1) return `${by} The greedy one is in the tree for ${count(last.step, "step")}.`;
  return `${by} The greedy one is in the tree to its end.`;
}
