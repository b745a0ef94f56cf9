// Translations as one types, and what is inside them.

import * as address from "./address.js";
import { alternatives } from "./alternatives.js";
import { post } from "./api.js";
import { asking } from "./asking.js";
import { attention } from "./attention.js";
import { NONE, isChoice, isTranslator, offer, whole } from "./choices.js";
import { el, fill, parts } from "./dom.js";
import { count, percent, quoted } from "./format.js";
import { nbest } from "./nbest.js";
import { notice } from "./notice.js";
import { UNKNOWN, joined } from "./units.js";

const PRESSES = new Set(["Enter", " "]);
const RULES = {
  copied: ({ word, source, attention }) => `${quoted(word)} was copied from ${quoted(source)}, which was looked at most (${percent(attention)}).`,
  lexicon: ({ word, source, attention }) => `${quoted(word)} is what the lexicon has for ${quoted(source)}, which was looked at most (${percent(attention)}).`,
};

export function translate(root, service, write) {
  const part = parts(root);
  const { model, beam, n } = part.form.elements;
  const translators = service.models.filter(isTranslator);
  const told = notice(part.notice);
  const asked = asking(told, [part.whole, part.inside], "Translating …");
  const other = alternatives(part.alternatives);
  let begins = []; // of `[sentence, units]`: how somebody wants sentences to begin, the latest last
  let sentences = [];
  let looked = 0; // the sentence that is looked at
  let opened;
  let refocus = false; // whether the focus goes back to the words, since what had it is gone

  beam.max = service.limits.beam;
  n.max = service.limits.alternatives + 1;

  // -- the inputs ------------------------------------------------------------------------------------------------------

  function params() {
    const own = { model: model.value, beam: beam.value, n: n.value, text: part.text.value };
    return new URLSearchParams([...Object.entries(own), ...begins.map(([at, units]) => ["begin", [at, ...units].join(" ")])]);
  }

  function open(given) {
    offer(model, translators, given.get("model"));
    if (String(given) === opened) return;
    fill(beam, given.get("beam") ?? beam.value);
    fill(n, given.get("n") ?? n.value);
    fill(part.text, given.get("text") ?? part.text.value);
    begins = given.getAll("begin").map((line) => line.split(" ")).map(([at, ...units]) => [Number(at), units]);
    refresh();
  }

  function refresh({ step = false, typing = false } = {}) {
    write(params(), step);
    opened = String(params());
    other.hide();
    const { source, target } = translators.find((one) => one.name === model.value) ?? {};
    part.text.lang = source ?? "";
    part.whole.lang = target ?? "";
    if (!model.value || !part.text.value.trim()) return rest();
    (typing ? asked.later : asked.now)(question, show);
  }

  function rest() {
    asked.rest();
    if (!model.value) told.problem(new Error(NONE));
  }

  part.form.addEventListener("input", ({ target }) => refresh({ step: isChoice(target), typing: !isChoice(target) }));
  part.form.addEventListener("submit", (event) => event.preventDefault());
  part.text.addEventListener("input", () => {
    begins = [];
    refresh({ typing: true });
  });

  // -- asking ----------------------------------------------------------------------------------------------------------

  async function question(signal) {
    const width = Math.max(whole(beam), whole(n));
    const how = { model: model.value, n: whole(n), beam: Math.min(width, service.limits.beam) };
    const one = async (text, more) => (await post("translate", { ...how, ...more, texts: [text] }, signal)).texts[0].sentences;
    const found = await one(part.text.value);
    await Promise.all([...new Map(begins)].map(async ([at, prefix]) => {
      if (!found[at]) return;
      const [begun] = await one(found[at].source, { prefix });
      found[at] = { ...begun, gap: found[at].gap, begun: prefix };
    }));
    return found;
  }

  // -- showing ---------------------------------------------------------------------------------------------------------

  function show(found) {
    sentences = found;
    looked = Math.min(looked, found.length - 1);
    if (!sentences[looked].source) looked = Math.max(0, found.findIndex((one) => one.source));
    part.whole.replaceChildren(...sentences.flatMap((one, at) => [sentence(one, at), one.gap]));
    lookAt(looked);
    if (refocus) (part.words.querySelector(".picked") ?? part.words.querySelector("button")).focus({ preventScroll: true });
    refocus = false;
  }

  function sentence(one, at) {
    const text = marked(one.translations[0]);
    if (sentences.length === 1) return el("span", {}, text);
    const choose = () => lookAt(at);
    const press = (event) => PRESSES.has(event.key) && (event.preventDefault(), choose());
    return el("span", { role: "button", tabindex: 0, class: "sentence", onclick: choose, onkeydown: press }, text); // buttons break lines
  }

  function lookAt(at) {
    looked = at;
    const { source, translations } = sentences[at];
    for (const [number, button] of part.whole.querySelectorAll(".sentence").entries()) {
      button.setAttribute("aria-pressed", String(number === at));
    }
    part.which.textContent = sentences.length > 1
      ? `Sentence ${at + 1} of ${sentences.length}; choose another in the translation. Click a word that was written to see others.`
      : "Click a word that was written to see what else could stand there.";
    part.tosearch.href = address.link("search", { model: model.value, beam: beam.value, text: source });
    part.nbest.replaceChildren(nbest(translations, (choice) => lookInto(translations[choice])));
    showChosen();
    lookInto(translations[0]);
  }

  function lookInto(told) {
    other.hide();
    const begun = sentences[looked].begun?.length ?? 0;
    const view = attention(told, begun, (place, button) =>
      other.open({ model: model.value, source: sentences[looked].source, units: told.units, place, button, pick }));
    part.words.replaceChildren(...view.words);
    part.attention.replaceChildren(...view.picture);
    part.replaced.replaceChildren(...explained(told));
  }

  function explained({ units, replaced }) {
    const lines = replaced.map((one) => (RULES[one.rule] ?? RULES.copied)(one));
    const left = units.filter((unit, place) => unit === UNKNOWN && !replaced.some((one) => one.place === place)).length;
    if (left) lines.push(`${count(left, "unknown word")} stayed: there is no attention that could tell what to put there.`);
    if (!lines.length) return [];
    return [el("p", { class: "hint" }, "Unknown words, underlined above:"), el("ul", { class: "notes" }, lines.map((line) => el("li", {}, line)))];
  }

  // -- choosing otherwise ----------------------------------------------------------------------------------------------

  function choose(wanted) {
    begins = wanted;
    refocus = true;
    refresh({ step: true });
  }

  const own = ([at]) => at === looked;
  const pick = (units) => choose([...begins, [looked, units]]);
  const undo = () => choose(begins.toSpliced(begins.findLastIndex(own), 1));
  const undoAll = () => choose(begins.filter((one) => !own(one)));

  function showChosen() {
    const { begun, translations } = sentences[looked];
    part.chosen.hidden = !begun;
    if (!begun) return;
    const several = begins.filter(own).length > 1;
    part.chosen.replaceChildren(
      el("p", {}, "You made it begin with ", el("b", {}, joined(begun, translations[0].units)), "."),
      el("button", { type: "button", onclick: undo }, several ? "Undo the last choice" : "Undo"),
      ...(several ? [el("button", { type: "button", class: "quiet", onclick: undoAll }, "Undo all choices")] : []),
    );
  }

  return { open, params };
}

/** A translation as it is printed, with the words marked that stand for unknown ones. */
function marked({ text, replaced }) {
  const found = [];
  let from = 0;
  for (const { word, rule } of replaced) {
    const at = text.toLowerCase().indexOf(word.toLowerCase(), from);
    if (at < 0) continue;
    found.push(text.slice(from, at), el("span", { class: "replaced", title: `unknown; ${rule}` }, text.slice(at, at + word.length)));
    from = at + word.length;
  }
  return [...found, text.slice(from)];
}
