// The Translate view: translates while the user types, and shows n-best lists, attention and alternatives.

import { post } from "./api.js";
import { attentionView } from "./attention.js";
import { NO_TRANSLATOR, el, fill, fillModels, integerOf, isSelect, isTranslator, parts } from "./dom.js";
import { alternativesPanel } from "./next_words.js";
import { latestRequest, statusLine } from "./request.js";
import { UNKNOWN, count, hasPieces, joinTokens, logProb, percent, quoted, tokenName } from "./text.js";
import * as url from "./url.js";

const ACTIVATION_KEYS = new Set(["Enter", " "]);
const RULES = {
  copied: ({ word, source, attention }) => `${quoted(word)} was copied from ${quoted(source)}, the source word with the most attention (${percent(attention)}).`,
  lexicon: ({ word, source, attention }) => `${quoted(word)} is the lexicon’s translation of ${quoted(source)}, the source word with the most attention (${percent(attention)}).`,
};

export function translateView(root, service, saveInputs) {
  const part = parts(root);
  const { model, beam, n } = part.form.elements;
  const translators = service.models.filter(isTranslator);
  const status = statusLine(part.notice);
  const request = latestRequest(status, [part.whole, part.inside], "Translating …");
  const alternatives = alternativesPanel(part.alternatives);
  let prefixes = []; // list of `[sentence index, tokens]`: prefixes that the user chose, the latest last
  let sentences = [];
  let selected = 0; // index of the sentence that is inspected
  let inspected; // the translation that is inspected
  let currentParams;
  let restoreFocus = false; // whether the focus returns to the target tokens, because the focused element is gone

  beam.max = service.limits.beam;
  n.max = service.limits.alternatives + 1;

  // -- inputs ----------------------------------------------------------------------------------------------------------

  function params() {
    const inputs = { model: model.value, beam: beam.value, n: n.value, text: part.text.value };
    if (part.pieces.checked) inputs.pieces = "1";
    return new URLSearchParams([...Object.entries(inputs), ...prefixes.map(([index, tokens]) => ["begin", [index, ...tokens].join(" ")])]);
  }

  function open(given) {
    fillModels(model, translators, given.get("model"));
    if (String(given) === currentParams) return;
    fill(beam, given.get("beam") ?? beam.value);
    fill(n, given.get("n") ?? n.value);
    fill(part.text, given.get("text") ?? part.text.value);
    part.pieces.checked = given.has("pieces");
    prefixes = given.getAll("begin").map((line) => line.split(" ")).map(([index, ...tokens]) => [Number(index), tokens]);
    refresh();
  }

  function refresh({ isChoice = false, typing = false } = {}) {
    saveInputs(params(), isChoice);
    currentParams = String(params());
    alternatives.hide();
    const chosen = translators.find(({ name }) => name === model.value) ?? {};
    part.text.lang = chosen.source ?? "";
    part.whole.lang = chosen.target ?? "";
    showModelLinks(part, chosen, useExample);
    if (model.value && part.text.value.trim()) return request.send(translateText, show, { delayed: typing });
    request.reset();
    part.warning.hidden = true;
    if (!model.value) status.error(new Error(NO_TRANSLATOR));
  }

  part.form.addEventListener("input", ({ target }) => refresh({ isChoice: isSelect(target), typing: !isSelect(target) }));
  part.form.addEventListener("submit", (event) => event.preventDefault());
  part.text.addEventListener("input", () => {
    prefixes = [];
    refresh({ typing: true });
  });

  part.pieces.addEventListener("change", () => {
    saveInputs(params(), true);
    currentParams = String(params());
    inspect(inspected);
  });

  function useExample(text) {
    part.text.value = text;
    prefixes = [];
    refresh({ isChoice: true });
  }

  // -- requests --------------------------------------------------------------------------------------------------------

  async function translateText(signal) {
    const width = Math.min(Math.max(integerOf(beam), integerOf(n)), service.limits.beam);
    const options = { model: model.value, n: integerOf(n), beam: width };
    const send = async (text, more) => (await post("translate", { ...options, ...more, texts: [text] }, signal)).texts[0];
    const { sentences: translated, warning } = await send(part.text.value);
    await Promise.all([...new Map(prefixes)].map(async ([index, prefix]) => {
      if (!translated[index]) return;
      const { sentences: [sentence] } = await send(translated[index].source, { prefix });
      translated[index] = { ...sentence, gap: translated[index].gap, prefix };
    }));
    return { translated, warning };
  }

  // -- answers ---------------------------------------------------------------------------------------------------------

  function show({ translated, warning }) {
    sentences = translated;
    part.warning.hidden = !warning;
    part.warning.textContent = warning ? `Note: ${warning}` : "";
    selected = Math.min(selected, sentences.length - 1);
    if (!sentences[selected].source) selected = Math.max(0, sentences.findIndex(({ source }) => source));
    part.whole.replaceChildren(...sentences.flatMap((sentence, index) => [sentenceElement(sentence, index), sentence.gap]));
    selectSentence(selected);
    if (restoreFocus) (part.words.querySelector(".picked") ?? part.words.querySelector("button")).focus({ preventScroll: true });
    restoreFocus = false;
  }

  function sentenceElement({ translations }, index) {
    const text = markReplaced(translations[0]);
    if (sentences.length === 1) return el("span", {}, text);
    const choose = () => selectSentence(index);
    const press = (event) => ACTIVATION_KEYS.has(event.key) && (event.preventDefault(), choose());
    // Not a button element: its text would not wrap with the other sentences.
    return el("span", { role: "button", tabindex: 0, class: "sentence", onclick: choose, onkeydown: press }, text);
  }

  function selectSentence(index) {
    selected = index;
    const { source, translations } = sentences[index];
    for (const [number, button] of part.whole.querySelectorAll(".sentence").entries()) {
      button.setAttribute("aria-pressed", String(number === index));
    }
    const hint = "Click a target word to see alternatives.";
    part.which.textContent = sentences.length > 1
      ? `Sentence ${index + 1} of ${sentences.length}; select another one in the translation. ${hint}`
      : hint;
    part.tosearch.href = url.link("search", { model: model.value, beam: beam.value, text: source });
    part.nbest.replaceChildren(nBestList(translations, (rank) => inspect(translations[rank])));
    showPrefix();
    inspect(translations[0]);
  }

  function inspect(translation) {
    inspected = translation;
    alternatives.hide();
    const { source, prefix } = sentences[selected];
    part.switch.hidden = !hasPieces(translation);
    part.switchname.textContent = `Show ${tokenName(translation)}`;
    const asTokens = part.pieces.checked || !hasPieces(translation);
    const view = attentionView(translation, prefix?.length ?? 0, part.pieces.checked, (index, button) =>
      alternatives.open({ model: model.value, source, translation, index, asTokens, button, onPick: addPrefix }));
    part.words.replaceChildren(...view.words);
    part.attention.replaceChildren(...view.picture);
    part.replaced.replaceChildren(...explainReplaced(translation));
  }

  // -- prefixes that the user chose ------------------------------------------------------------------------------------

  function setPrefixes(chosen) {
    prefixes = chosen;
    restoreFocus = true;
    refresh({ isChoice: true });
  }

  const isOfSelected = ([index]) => index === selected;
  const addPrefix = (tokens) => setPrefixes([...prefixes, [selected, tokens]]);
  const undo = () => setPrefixes(prefixes.toSpliced(prefixes.findLastIndex(isOfSelected), 1));
  const undoAll = () => setPrefixes(prefixes.filter((prefix) => !isOfSelected(prefix)));

  function showPrefix() {
    const { prefix, translations } = sentences[selected];
    part.chosen.hidden = !prefix;
    if (!prefix) return;
    const several = prefixes.filter(isOfSelected).length > 1;
    part.chosen.replaceChildren(
      el("p", {}, "The translation starts with your choice: ", el("b", {}, joinTokens(prefix, translations[0].units))),
      el("button", { type: "button", onclick: undo }, several ? "Undo the last choice" : "Undo"),
      ...(several ? [el("button", { type: "button", class: "quiet", onclick: undoAll }, "Undo all choices")] : []),
    );
  }

  return { open, params };
}

/** Show examples for a model, and a link to its learning curve. */
function showModelLinks(part, { name, examples = [], has_metrics }, onUse) {
  part.curve.hidden = !has_metrics;
  if (has_metrics) part.curve.href = url.link("ladder", { model: name });
  part.text.placeholder = examples[0] ?? part.text.dataset.placeholder;
  part.examples.hidden = !examples.length;
  part.examples.replaceChildren("Examples: ", ...examples.flatMap((text) => [
    el("button", { type: "button", class: "quiet example", dir: "auto", onclick: () => onUse(text) }, text), " "]));
}

/** The best translations with their scores, as radio buttons. */
function nBestList(translations, onSelect) {
  const row = (translation, rank) =>
    el("label", { class: "rank" },
      el("input", { type: "radio", name: "nbest", checked: rank === 0, onchange: () => onSelect(rank) }),
      el("span", { class: "text", dir: "auto" }, translation.text || "(empty)", translation.finished ? null : el("em", {}, " (cut off)")),
      scores(translation),
    );
  return el("div", { class: "ranks", role: "radiogroup", "aria-label": "Best translations" }, translations.map(row));
}

export const scores = ({ score, log_prob }) =>
  el("span", { class: "figures" }, "score ", el("b", {}, logProb(score)), "log P ", el("b", {}, logProb(log_prob)));

/** The text of a translation, with replacements of unknown words marked. */
function markReplaced({ text, replaced }) {
  const nodes = [];
  let end = 0;
  for (const { word, rule } of replaced) {
    const start = text.toLowerCase().indexOf(word.toLowerCase(), end);
    if (start < 0) continue;
    nodes.push(text.slice(end, start), el("span", { class: "replaced", title: `unknown word; ${rule}` }, text.slice(start, start + word.length)));
    end = start + word.length;
  }
  return [...nodes, text.slice(end)];
}

/** Notes on the unknown words of a translation. */
function explainReplaced({ units, replaced }) {
  const notes = replaced.map((replacement) => (RULES[replacement.rule] ?? RULES.copied)(replacement));
  const remaining = units.filter((token, index) => token === UNKNOWN && !replaced.some(({ place }) => place === index)).length;
  if (remaining) notes.push(`${count(remaining, "unknown word")} could not be replaced, because there are no attention weights.`);
  if (!notes.length) return [];
  return [el("p", { class: "hint" }, "Unknown words (underlined):"), el("ul", { class: "notes" }, notes.map((note) => el("li", {}, note)))];
}
