// The likeliest words, each with a bar as long as it is likely.

import { el, shade } from "./dom.js";
import { percent } from "./format.js";

/**
 * @param words of `{word, prob}`
 * @param most the probability of the longest bar
 * @param pick what to do with a word that is chosen
 * @param can whether a word can be chosen
 */
export function bars(words, { most, pick, can = () => true, current }) {
  return el("ol", { class: "bars" }, words.map((one) => el("li", {}, bar(one, most, pick, can(one.word), current))));
}

function bar({ word, prob }, most, pick, can, current) {
  const line = el("span", { class: "bar" });
  shade(line, most ? prob / most : 0);
  return el(
    "button",
    { type: "button", disabled: !can, "aria-current": word === current ? "true" : null, onclick: () => pick(word) },
    el("span", { class: "word" }, word),
    line,
    el("span", { class: "number" }, percent(prob)),
  );
}
