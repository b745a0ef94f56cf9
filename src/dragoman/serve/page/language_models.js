// The Language models view: surprisal of each word, next words and samples, by several models side by side.

import { forEachModel, post } from "./api.js";
import { el, fill, isTranslator, parts, rovingFocus, shade } from "./dom.js";
import { wordBars } from "./next_words.js";
import { latestRequest, statusLine } from "./request.js";
import { connectSampling } from "./sampling.js";
import { END, UNKNOWN, bits, insertWord, quoted, wordPositions, wordsBefore } from "./text.js";
import * as url from "./url.js";

const NUM_NEXT_WORDS = 10;
const MAX_PRESELECTED = 3; // models

export function languageModelsView(root, service, saveInputs) {
  const part = parts(root);
  const models = service.models.filter((model) => !isTranslator(model));
  const scoreRequest = latestRequest(statusLine(part.notice), [part.scored], "Scoring …");
  const nextRequest = latestRequest(statusLine(part.nextnotice), [part.next]);
  let currentParams, currentPrediction;

  part.none.hidden = models.length > 0;
  part.some.hidden = !models.length;
  part.legend.append(surprisalLegend());
  const preselected = preselect(models.filter(({ problem }) => !problem));
  const boxes = models.map((model) =>
    el("input", { type: "checkbox", value: model.name, checked: preselected.has(model), onchange: () => refresh({ isChoice: true }) }));
  part.choices.append(...boxes.map((box, index) => el("span", { class: "choice" },
    el("label", { class: "check" }, box, ` ${box.value}`),
    models[index].has_metrics ? el("a", { href: url.link("ladder", { model: box.value }), "aria-label": `learning curve of ${box.value}` }, "curve") : null)));
  connectSampling(part, models, service.limits, prefix, (text) => {
    part.text.value = text;
    part.text.focus();
    refresh({ isChoice: true });
  });
  fill(part.sampling.elements.model, [...preselected].at(-1)?.name ?? "");

  // -- inputs ----------------------------------------------------------------------------------------------------------

  const selectedModels = () => boxes.filter((box) => box.checked).map((box) => box.value);

  function prefix() {
    return wordsBefore(part.text.value, part.text.selectionEnd);
  }

  function params() {
    const text = [["text", part.text.value], ["at", part.text.selectionEnd]];
    return new URLSearchParams([...selectedModels().map((name) => ["use", name]), ...text]);
  }

  function open(given) {
    if (!models.length || String(given) === currentParams) return;
    if (given.has("use")) for (const box of boxes) box.checked = given.getAll("use").includes(box.value);
    fill(part.text, given.get("text") ?? part.text.value);
    const cursor = Number(given.get("at") ?? part.text.value.length);
    part.text.setSelectionRange(cursor, cursor);
    refresh();
  }

  function refresh({ isChoice = false, typing = false } = {}) {
    score(typing);
    predict({ typing, force: true });
    save(isChoice);
  }

  function save(isChoice) {
    saveInputs(params(), isChoice);
    currentParams = String(params());
  }

  part.text.addEventListener("input", () => refresh({ typing: true }));
  document.addEventListener("selectionchange", () => {
    if (document.activeElement !== part.text) return;
    predict({ typing: true });
    save();
  });

  // -- surprisal -------------------------------------------------------------------------------------------------------

  function score(typing) {
    const [names, text] = [selectedModels(), part.text.value.trimEnd()];
    if (!names.length || !text.trim()) return scoreRequest.reset();
    const send = (signal) => forEachModel(names, (name) => post("score", { models: [name], text }, signal));
    scoreRequest.send(send, showScores, { delayed: typing });
  }

  function showScores(results) {
    const blocks = results.map((result) =>
      result.error ? { element: errorSection(result), lines: [] } : scoredSection(result.model, result.answer.sentences));
    part.surprisals.replaceChildren(...blocks.map(({ element }) => element));

    function scoredSection(model, sentences) {
      const lines = sentences.map(({ words }) => words.slice(0, -1)); // without </s>
      return surprisalSection(model, sentences, (line, index) => moveCursor(lines, line, index), highlight);
    }

    /** Highlight the same word in all models. */
    function highlight(line, index) {
      for (const { lines } of blocks) {
        lines.forEach((tokens, lineNumber) => tokens.forEach((token, position) => token.classList.toggle("marked", lineNumber === line && position === index)));
      }
    }
  }

  /** Put the cursor before a word, to see what was expected there. */
  function moveCursor(lines, line, index) {
    const cursor = wordPositions(part.text.value, lines)[line][index];
    part.text.setSelectionRange(cursor, cursor);
    predict();
    save(true);
    part.where.scrollIntoView({ block: "nearest" });
  }

  // -- next words ------------------------------------------------------------------------------------------------------

  function predict({ typing = false, force = false } = {}) {
    const [names, words] = [selectedModels(), prefix()];
    const prediction = JSON.stringify([names, words]);
    if (prediction === currentPrediction && !force) return;
    currentPrediction = prediction;
    if (!names.length) {
      part.where.textContent = "Select a language model.";
      return nextRequest.reset();
    }
    const place = words ? `after ${quoted(words)}` : "at the start of a sentence";
    part.where.textContent = `At the cursor, ${place}. Choose a word to insert it.`;
    const send = (signal) => forEachModel(names, (name) => post("next", { models: [name], prefix: words, k: NUM_NEXT_WORDS }, signal));
    nextRequest.send(send, showNext, { delayed: typing });
  }

  function showNext(results) {
    const focus = focusedBar();
    const maxProb = Math.max(...results.map(({ answer }) => answer?.models[0].words[0]?.prob ?? 0));
    part.next.replaceChildren(...results.map((result) => (result.error ? errorSection(result) : nextSection(result, maxProb))));
    if (focus) part.next.children[focus.column]?.querySelectorAll("button")[focus.row]?.focus();
  }

  function nextSection({ model, answer }, maxProb) {
    const words = answer.models[0].words.filter(({ word }) => word !== UNKNOWN);
    return el("section", {}, el("h3", {}, model), wordBars(words, { maxProb, onPick: pickWord }));
  }

  /** The position of the focused bar, so that the focus stays there when the bars are replaced. */
  function focusedBar() {
    const column = [...part.next.children].findIndex((section) => section.contains(document.activeElement));
    if (column < 0) return null;
    return { column, row: [...part.next.children[column].querySelectorAll("button")].indexOf(document.activeElement) };
  }

  function pickWord(word, text) {
    insertWord(part.text, word === END ? "\n" : text.trim(), !text.startsWith(" "));
    refresh({ isChoice: true });
  }

  return { open, params };
}

/**
 * Choose the models to compare first: all if they are few. A ladder lists the simplest first: of the first of several
 * directories, the last model of the first kind as a baseline, and the last models of the last kinds.
 */
function preselect(models) {
  if (models.length <= MAX_PRESELECTED) return new Set(models);
  const directory = ({ name }) => name.slice(0, name.lastIndexOf("/") + 1);
  const together = models.filter((model) => directory(model) === directory(models[0]));
  const isLastOfKind = ({ kind }, index) => !together.slice(index + 1).some((other) => other.kind === kind);
  const baseline = together.findLast(({ kind }) => kind === together[0].kind);
  const others = together.filter((model, index) => model !== baseline && isLastOfKind(model, index));
  return new Set([baseline, ...others.slice(1 - MAX_PRESELECTED)]);
}

const errorSection = ({ model, error }) =>
  el("section", {}, el("h3", {}, model), el("p", { class: "notice problem" }, error.message));

// -- a text coloured by surprisal ----------------------------------------------------------------------------------------

const MAX_BITS = 16; // surprisal with the full colour

const colourShare = (value) => (value === null ? 1 : Math.min(1, value / MAX_BITS));

/**
 * @param sentences a list of `{words, bits: [numbers]}` of one model
 * @param onChoose called with the line and the index of a chosen word
 * @param onPoint called with the line and the index of the word under the pointer, or without arguments
 */
function surprisalSection(model, sentences, onChoose, onPoint) {
  const lines = sentences.map(({ words, bits: [values] }, line) =>
    words.map((word, index) => wordButton(word, values[index], () => onChoose(line, index), () => onPoint(line, index), () => onPoint())));
  const text = el("div", { class: "surprisal", role: "group", "aria-label": `Surprisal by ${model}` }, lines.map((line) => el("p", {}, line)));
  rovingFocus(text, lines.flat());
  return { element: el("section", {}, el("h3", {}, model), surprisalSummary(sentences), text), lines };
}

function wordButton(word, value, onclick, on, off) {
  const attributes = { type: "button", class: word === END ? "scored end" : "scored", onclick, onpointerenter: on, onpointerleave: off, onfocus: on, onblur: off };
  const button = el("button", attributes, el("span", {}, word), el("small", {}, bits(value)));
  shade(button, colourShare(value));
  return button;
}

function surprisalSummary(sentences) {
  const values = sentences.flatMap((sentence) => sentence.bits[0]);
  const total = values.includes(null) ? null : values.reduce((sum, value) => sum + value, 0);
  const mean = total === null ? null : total / values.length;
  return el("p", { class: "hint" }, `${bits(total)} bits in total, ${bits(mean)} per word`);
}

function surprisalLegend() {
  const steps = [0, 4, 8, 12, 16].map((value) => {
    const step = el("span", { class: "scored" }, value === MAX_BITS ? `${value}+` : String(value));
    shade(step, colourShare(value));
    return step;
  });
  return el("p", { class: "scale" }, "bits ", steps);
}
