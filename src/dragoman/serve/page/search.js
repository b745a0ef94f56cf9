// The Search view: a beam search step by step, compared with greedy search.

import { post } from "./api.js";
import {
  NO_TRANSLATOR, VERTICAL, el, fill, fillModels, hasModifier, integerOf, isSelect, isTranslator, parts, rovingFocus, table,
} from "./dom.js";
import { latestRequest, statusLine } from "./request.js";
import { drawTree, bestPath, followTokens, groupBySteps, survivors, tokensOf } from "./search_tree.js";
import { END, count, differingTokens, joinTokens, logProb, wordSeparator } from "./text.js";
import { scores } from "./translate.js";

const FATES = ["kept", "finished", "pruned"];
const LEGEND = [
  ["kept", "kept"],
  ["finished", "finished"],
  ["pruned", "pruned"],
  ["dead", "dropped in a later step"],
  ["best", "most probable in this step; in the last step, the translation"],
  ["greedy", "on the greedy path"],
];

export function searchView(root, service, saveInputs) {
  const part = parts(root);
  const { model, beam, handling, penalty, pruned } = part.form.elements;
  const translators = service.models.filter(isTranslator);
  const status = statusLine(part.notice);
  const request = latestRequest(status, [part.inside], "Searching …");
  const stepper = createStepper(root, part.slider, showStep);
  let result, picture, currentParams;

  beam.max = service.limits.beam;
  part.legend.append(el("ul", { class: "legend" }, LEGEND.map(([kind, text]) => el("li", {}, el("span", { class: `swatch ${kind}` }), text))));

  // -- inputs ----------------------------------------------------------------------------------------------------------

  const length = () => (handling.value === "penalty" ? `penalty:${penalty.value || 0}` : handling.value);

  function params() {
    const inputs = { model: model.value, beam: beam.value, length: length(), pruned: pruned.value, text: part.text.value };
    return new URLSearchParams(result ? { ...inputs, step: stepper.step } : inputs);
  }

  function open(given) {
    fillModels(model, translators, given.get("model"));
    if (String(given) === currentParams) return;
    const [kind, value] = (given.get("length") ?? length()).split(":");
    fill(beam, given.get("beam") ?? beam.value);
    fill(handling, kind);
    fill(penalty, value ?? penalty.value);
    fill(pruned, given.get("pruned") ?? pruned.value);
    fill(part.text, given.get("text") ?? part.text.value);
    refresh({ step: given.get("step") });
  }

  /** Search again, then show a given step, or the last one. */
  function refresh({ isChoice = false, typing = false, step = null } = {}) {
    result = undefined;
    part.penalty.hidden = handling.value !== "penalty";
    const { source, examples = [] } = translators.find(({ name }) => name === model.value) ?? {};
    part.text.lang = source ?? "";
    part.text.placeholder = examples[0] ?? part.text.dataset.placeholder;
    saveInputs(params(), isChoice);
    currentParams = String(params());
    if (model.value && part.text.value.trim()) {
      return request.send(runSearches, (searched) => show(searched, step), { delayed: typing });
    }
    request.reset();
    if (!model.value) status.error(new Error(NO_TRANSLATOR));
  }

  part.form.addEventListener("input", ({ target }) => refresh({ isChoice: isSelect(target), typing: !isSelect(target) }));
  part.form.addEventListener("submit", (event) => event.preventDefault());
  part.text.addEventListener("input", () => refresh({ typing: true }));

  // -- requests and answers --------------------------------------------------------------------------------------------

  async function runSearches(signal) {
    const width = integerOf(beam);
    const options = { model: model.value, text: part.text.value.trim(), length: length() };
    const send = (more) => post("lattice", { ...options, ...more }, signal);
    const [wide, greedy] = await Promise.all([send({ beam: width, pruned: integerOf(pruned) }), send({ beam: 1, pruned: 0 })]);
    return { width, wide: wide.translation, greedy: greedy.translation, steps: groupBySteps(wide.nodes, width) };
  }

  function show(searched, step) {
    result = searched;
    const greedyPath = followTokens(result.steps, [...result.greedy.units, END]);
    picture = drawTree(result.steps, result.width, new Set(greedyPath), mark);
    part.tree.replaceChildren(picture.element);
    part.compared.replaceChildren(...compareSearches(result, greedyPath));
    stepper.reset(result.steps.length - 1, step);
  }

  function showStep(step) {
    if (!result) return;
    const nodes = result.steps[step];
    const best = bestPath(result.steps, step, result.wide);
    picture.show(step, survivors(result.steps, step), best);
    part.counter.textContent = `Step ${step} of ${result.steps.length - 1}: ${countFates(nodes)}`;
    showHypotheses(nodes, best.at(-1));
    scrollIntoColumn(part.tree, picture.columnOf(step));
    saveInputs(params());
    currentParams = String(params());
  }

  function showHypotheses(nodes, best) {
    const focusedRow = [...part.hypotheses.querySelectorAll("tbody tr")].indexOf(document.activeElement);
    part.hypotheses.replaceChildren(hypothesisTable(nodes, best, result.wide.units, mark));
    part.hypotheses.querySelectorAll("tbody tr")[focusedRow]?.focus();
  }

  function mark(node) {
    picture.mark(node);
  }

  return { open, params };
}

function countFates(nodes) {
  const number = (fate) => nodes.filter((node) => node.fate === fate).length;
  return FATES.filter(number).map((fate) => `${number(fate)} ${fate}`).join(", ");
}

/** Scroll a box sideways so that a column and a part of its neighbours are visible. */
function scrollIntoColumn(box, { from, to }) {
  const margin = 60;
  if (to + margin > box.scrollLeft + box.clientWidth) box.scrollLeft = to + margin - box.clientWidth;
  if (from - margin < box.scrollLeft) box.scrollLeft = from - margin;
}

// -- the hypotheses of a step as a table ---------------------------------------------------------------------------------

function hypothesisTable(nodes, best, units, mark) {
  const rows = nodes.map((node) => hypothesisRow(node, node === best, units, mark));
  const element = table(["Hypothesis", "log P", "Score", "Status"], rows);
  element.className = "hypotheses";
  rovingFocus(element, rows, { keys: VERTICAL });
  return element;
}

/** The text of a hypothesis; a finished one ends with the end of the sentence. */
function hypothesisText(tokens, units) {
  const isFinished = tokens.at(-1) === END;
  return joinTokens(isFinished ? tokens.slice(0, -1) : tokens, units) + (isFinished ? ` ${END}` : "");
}

function hypothesisRow(node, isBest, units, mark) {
  const on = () => mark(node);
  const off = () => mark(null);
  return el("tr", { class: `${node.fate} ${isBest ? "best" : ""}`, onpointerenter: on, onpointerleave: off, onfocus: on, onblur: off },
    el("td", { dir: "auto" }, hypothesisText(tokensOf(node), units) || "(start)"),
    el("td", { class: "number" }, logProb(node.log_prob)),
    el("td", { class: "number" }, node.word === END ? logProb(node.score) : "–"),
    el("td", {}, node.fate));
}

// -- beam search and greedy search ---------------------------------------------------------------------------------------

function compareSearches({ width, wide, greedy }, greedyPath) {
  const same = joinTokens(wide.units) === joinTokens(greedy.units);
  return [
    el("div", { class: "ranks" }, searchResult(`beam size ${width}`, wide, greedy), searchResult("greedy", greedy, wide)),
    el("p", { class: "hint" }, same ? "Both find the same translation." : explainDifference(wide, greedy, greedyPath)),
  ];
}

function searchResult(name, translation, other) {
  const [words, otherWords] = [translation, other].map((each) => each.words.map(({ text }) => text));
  const differing = differingTokens(words, otherWords);
  const separator = wordSeparator(translation);
  const marked = words.flatMap((word, index) => [differing.has(index) ? el("mark", {}, word) : word, separator]);
  return el("div", { class: "rank" },
    el("span", { class: "name" }, name),
    el("span", { class: "text", dir: "auto" }, marked),
    scores(translation));
}

function explainDifference(wide, greedy, greedyPath) {
  const gain = wide.log_prob - greedy.log_prob;
  const comparison = `The log-probability of the beam search result is ${logProb(Math.abs(gain))} ${gain >= 0 ? "higher" : "lower"}.`;
  const last = greedyPath.at(-1);
  if (last.fate === "pruned") return `${comparison} Beam search prunes the greedy hypothesis in step ${last.step}.`;
  const isPartial = greedyPath.length <= greedy.units.length + 1;
  return `${comparison} The tree contains ${isPartial ? `the first ${count(last.step, "step")} of the greedy path` : "the whole greedy path"}.`;
}

// -- moving between steps ------------------------------------------------------------------------------------------------

const STEP_KEYS = { ArrowLeft: "previous", ArrowRight: "next", Home: "first", End: "last" };
const INPUTS = "input, textarea, select, [role=tab]"; // elements with their own meaning of the arrow keys

/** Connect buttons, keys and a slider that move between steps. */
function createStepper(root, slider, onStep) {
  const buttons = Object.fromEntries([...root.querySelectorAll("[data-step]")].map((button) => [button.dataset.step, button]));
  const current = () => Number(slider.value);
  const last = () => Number(slider.max);
  const destinations = { first: () => 0, previous: () => current() - 1, next: () => current() + 1, last };

  function go(step) {
    slider.value = Math.max(0, Math.min(last(), step));
    for (const name of ["first", "previous"]) setDisabled(buttons[name], current() === 0);
    for (const name of ["next", "last"]) setDisabled(buttons[name], current() === last());
    onStep(current());
  }

  // A truly disabled button would lose the focus, and with it the arrow keys.
  const setDisabled = (button, disabled) => button.setAttribute("aria-disabled", String(disabled));

  for (const [name, button] of Object.entries(buttons)) button.addEventListener("click", () => go(destinations[name]()));
  slider.addEventListener("input", () => go(current()));
  root.addEventListener("keydown", (event) => {
    const name = STEP_KEYS[event.key];
    if (!name || event.defaultPrevented || event.target.matches(INPUTS) || hasModifier(event)) return;
    event.preventDefault();
    go(destinations[name]());
  });

  return {
    get step() {
      return current();
    },
    /** Set the number of the last step, and show a given step or the last one. */
    reset(lastStep, step) {
      slider.max = lastStep;
      go(step === null ? lastStep : Number(step));
    },
  };
}
