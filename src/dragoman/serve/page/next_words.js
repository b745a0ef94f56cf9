// Bars of the most probable next words, and a panel with alternatives to one token of a translation.

import { post } from "./api.js";
import { el, shade } from "./dom.js";
import { latestRequest, statusLine } from "./request.js";
import { END, joinTokens, percent, quoted } from "./text.js";

const NUM_ALTERNATIVES = 10;

/**
 * A list of words, each with a bar as long as its probability.
 * @param words a list of `{word, prob}`, with `prefix` (of a translator) or `text` (of a language model)
 * @param maxProb the probability of the longest bar
 * @param onPick called with a word that is chosen, and its `prefix` or `text` if it has one
 * @param canPick whether a word may be chosen
 * @param current the word to highlight
 */
export function wordBars(words, { maxProb, onPick, canPick = () => true, current }) {
  const row = ({ word, prob, prefix, text }) => {
    const bar = el("span", { class: "bar" });
    shade(bar, maxProb ? prob / maxProb : 0);
    const attributes = { type: "button", disabled: !canPick(word), "aria-current": word === current ? "true" : null, onclick: () => onPick(word, prefix ?? text ?? undefined) };
    return el("li", {},
      el("button", attributes, el("span", { class: "word" }, word), bar, el("span", { class: "number" }, percent(prob))));
  };
  return el("ol", { class: "bars" }, words.map(row));
}

/** A panel that shows which other words or tokens are probable in the place of one. */
export function alternativesPanel(root) {
  const title = el("h3", {});
  const hint = el("p", { class: "hint" }, "Choose one, and the translator continues from it.");
  const status = el("div", { class: "notice", role: "status" });
  const list = el("div", {});
  const request = latestRequest(statusLine(status), [list]);
  let openingButton;
  root.append(el("button", { type: "button", class: "quiet close", onclick: close }, "Close"), title, hint, status, list);
  root.addEventListener("keydown", (event) => event.key === "Escape" && close());

  function close() {
    if (root.contains(document.activeElement)) openingButton?.focus();
    hide();
  }

  function hide() {
    openingButton?.setAttribute("aria-expanded", "false");
    request.reset();
    root.hidden = true;
  }

  /** Show alternatives to the word or token that starts at token `index`; `onPick` gets the tokens up to the chosen one. */
  function open({ model, source, translation, index, asTokens, button, onPick }) {
    const tokens = translation.units;
    hide();
    openingButton = button;
    button.setAttribute("aria-expanded", "true");
    const before = tokens.slice(0, index);
    const current = index === tokens.length ? END : asTokens ? tokens[index] : translation.words.find(({ first }) => first === index).text;
    const place = before.length ? `after ${quoted(joinTokens(before, tokens))}` : "at the start";
    title.textContent = `Instead of ${quoted(current)}, ${place}`;
    list.replaceChildren();
    root.hidden = false;
    request.send(
      (signal) => post("next", { models: [model], source, prefix: before, k: NUM_ALTERNATIVES, whole_words: !asTokens }, signal),
      ({ models: [{ words }] }) => {
        const pick = (word, prefix) => (hide(), onPick(prefix ?? [...before, word]));
        list.replaceChildren(wordBars(words, { maxProb: words[0]?.prob, onPick: pick, canPick: (word) => word !== END, current }));
        list.querySelector("button:enabled")?.focus({ preventScroll: true });
      },
    );
  }

  return { open, hide };
}
