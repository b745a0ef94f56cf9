// A text coloured by what each of its words costs.

import { el, shade } from "./dom.js";
import { bits } from "./format.js";
import { roving } from "./roving.js";
import { END } from "./units.js";

const DEAR = 16; // bits, at which a word has the full colour

const share = (value) => (value === null ? 1 : Math.min(1, value / DEAR));

/**
 * @param sentences of `{words, bits: [numbers]}` by one model
 * @param choose is told which word of which sentence was chosen
 * @param point is told the same of one that is pointed at, or nothing
 */
export function coloured(model, sentences, choose, point) {
  const lines = sentences.map(({ words, bits: [costs] }, line) => words.map((word, at) => token(word, costs[at], () => choose(line, at), () => point(line, at), point)));
  const text = el("div", { class: "surprisal", role: "group", "aria-label": `Surprisal by ${model}` }, lines.map((line) => el("p", {}, line)));
  roving(text, lines.flat());
  return { element: el("section", {}, el("h3", {}, model), summary(sentences), text), tokens: lines };
}

function token(word, cost, choose, on, off) {
  const button = el("button",
    { type: "button", class: word === END ? "token end" : "token", onclick: choose, onpointerenter: on, onpointerleave: () => off(), onfocus: on, onblur: () => off() },
    el("span", {}, word), el("small", {}, bits(cost)));
  shade(button, share(cost));
  return button;
}

function summary(sentences) {
  const costs = sentences.flatMap((one) => one.bits[0]);
  const total = costs.includes(null) ? null : costs.reduce((sum, cost) => sum + cost, 0);
  const mean = total === null ? null : total / costs.length;
  return el("p", { class: "hint" }, `${bits(total)} bits in all, ${bits(mean)} a word, each ${END} counted as one`);
}

export function legend() {
  const steps = [0, 4, 8, 12, 16].map((value) => {
    const step = el("span", { class: "token" }, value === DEAR ? `${value}+` : String(value));
    shade(step, share(value));
    return step;
  });
  return el("p", { class: "scale" }, "bits ", steps);
}
