// The best translations with their scores; one of them is looked at.

import { el } from "./dom.js";
import { logProb } from "./format.js";

export function nbest(translations, choose) {
  const line = (told, at) =>
    el("label", { class: "rank" },
      el("input", { type: "radio", name: "nbest", checked: at === 0, onchange: () => choose(at) }),
      el("span", { class: "text" }, told.text || "(nothing)", told.finished ? null : el("em", {}, " (did not end)")),
      figures(told),
    );
  return el("div", { class: "ranks", role: "radiogroup", "aria-label": "The best translations" }, translations.map(line));
}

export const figures = ({ score, log_prob }) =>
  el("span", { class: "figures" }, "score ", el("b", {}, logProb(score)), "log P ", el("b", {}, logProb(log_prob)));
