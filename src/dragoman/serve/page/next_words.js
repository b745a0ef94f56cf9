// Bars of the most probable next words, and a panel with alternatives to one token of a translation.

import { post } from "./api.js";
import { el, shade } from "./dom.js";
import { latestRequest, statusLine } from "./request.js";
import { END, joinTokens, percent, quoted } from "./text.js";

const NUM_ALTERNATIVES = 10;

/**
 * A list of words, each with a bar as long as its probability.
 * @param words a list of `{word, prob}`
 * @param maxProb the probability of the longest bar
 * @param onPick called with a word that is chosen
 * @param canPick whether a word may be chosen
 * @param current the word to highlight
 */
export function wordBars(words, { maxProb, onPick, canPick = () => true, current }) {
  const row = ({ word, prob }) => {
    const bar = el("span", { class: "bar" });
    shade(bar, maxProb ? prob / maxProb : 0);
    const attributes = { type: "button", disabled: !canPick(word), "aria-current": word === current ? "true" : null, onclick: () => onPick(word) };
    return el("li", {},
      el("button", attributes, el("span", { class: "word" }, word), bar, el("span", { class: "number" }, percent(prob))));
  };
  return el("ol", { class: "bars" }, words.map(row));
}

/** A panel that shows which other tokens are probable in the place of one. */
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

  /** Show alternatives to `tokens[index]`; `onPick` gets the tokens before it and the chosen one. */
  function open({ model, source, tokens, index, button, onPick }) {
    hide();
    openingButton = button;
    button.setAttribute("aria-expanded", "true");
    const before = tokens.slice(0, index);
    const current = tokens[index] ?? END;
    const place = before.length ? `after ${quoted(joinTokens(before, tokens))}` : "at the start";
    title.textContent = `Instead of ${quoted(current)}, ${place}`;
    list.replaceChildren();
    root.hidden = false;
    request.send(
      (signal) => post("next", { models: [model], source, prefix: before, k: NUM_ALTERNATIVES }, signal),
      ({ models: [{ words }] }) => {
        const pick = (word) => (hide(), onPick([...before, word]));
        list.replaceChildren(wordBars(words, { maxProb: words[0]?.prob, onPick: pick, canPick: (word) => word !== END, current }));
        list.querySelector("button:enabled")?.focus({ preventScroll: true });
      },
    );
  }

  return { open, hide };
}
