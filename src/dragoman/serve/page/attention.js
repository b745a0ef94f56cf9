// What a translation looked at: the units read, the units written, the picture, and a sentence about what is pointed at.

import { el, shade } from "./dom.js";
import { percent, quoted } from "./format.js";
import { heatmap } from "./heatmap.js";
import { roving } from "./roving.js";
import { END, UNKNOWN, shown } from "./units.js";

const NOTHING = { row: null, column: null };
const HINT = "Point at a word or at a cell to see how much was looked at.";
const ABOUT = `Each row is a unit that was written; the fuller the colour of a field, the more the translator looked at that unit of the source while it chose. ${END} ends a sentence.`;
const REPLACED = { copied: "An unknown word: copied from the source", lexicon: "An unknown word: put in by the lexicon" };

/**
 * @param told a translation
 * @param begun how many of its units somebody chose
 * @param open is told the number of a unit that was clicked, and its button
 */
export function attention(told, begun, open) {
  const written = [...shown(told), END];
  const read = [...told.source_units, END];
  const weights = told.attention;
  const sources = read.map((text, column) => el("span", { class: "unit", onpointerenter: () => look({ row: null, column }) }, text || "·"));
  const targets = written.map((text, row) => button(text, row));
  const readouts = [{ "aria-live": "polite" }, { "aria-hidden": "true" }].map((how) => el("p", { class: "readout", ...how }, weights ? HINT : ""));
  const map = weights && heatmap(written.slice(0, weights.length), columns(read, weights), weights, look);

  function button(text, row) {
    const replaced = told.replaced.find((one) => one.place === row);
    const kinds = ["unit", (replaced || text === UNKNOWN) && "replaced", row < begun && "begun", row === begun - 1 && "picked"];
    const point = () => look({ row, column: null });
    return el("button",
      { type: "button", class: kinds.filter(Boolean).join(" "), "aria-expanded": "false", onpointerenter: point, onfocus: point,
        title: replaced ? REPLACED[replaced.rule] : null,
        onclick: (event) => open(row, event.currentTarget) },
      text);
  }

  function look(at) {
    if (!weights) return;
    map.mark(at);
    const row = at.row === null ? null : weights[at.row];
    sources.forEach((source, column) => shade(source, row && at.column === null ? row[column] : column === at.column ? 1 : null));
    targets.forEach((target, line) => {
      const own = at.column === null || !weights[line] ? null : weights[line][at.column];
      shade(target, at.row === null ? own : line === at.row ? 1 : null);
    });
    for (const readout of readouts) readout.textContent = said(at, written, columns(read, weights), weights);
  }

  const words = el("div", { class: "pair", onpointerleave: () => look(NOTHING) },
    el("h3", { class: "label" }, "Read"),
    el("div", { class: "units" }, sources),
    el("h3", { class: "label" }, "Written"),
    el("div", { class: "units", role: "group", "aria-label": "Written" }, targets),
  );
  roving(words, targets);
  return { words: [words, readouts[0]], picture: map ? [about(), el("div", { class: "scroll" }, map.element), readouts[1]] : [none()] };
}

const about = () => el("p", { class: "hint" }, ABOUT);

const columns = (read, weights) => weights[0].map((_, column) => read[column] || "·");

const none = () => el("p", { class: "hint" }, "This translator has no attention that could be shown.");

function said({ row, column }, written, read, weights) {
  if (row === null && column === null) return HINT;
  if (row !== null && column !== null) {
    return `For ${quoted(written[row])}, ${quoted(read[column])} gets ${percent(weights[row][column])} of the attention.`;
  }
  if (row !== null) return `${quoted(written[row])} looks most at ${most(weights[row], read)}.`;
  return `${quoted(read[column])} is looked at most for ${most(weights.map((line) => line[column]), written)}.`;
}

function most(values, names, many = 3) {
  const order = values.map((value, at) => ({ value, name: names[at] })).sort((one, other) => other.value - one.value);
  return order.slice(0, many).map(({ value, name }) => `${quoted(name)} (${percent(value)})`).join(", ");
}
