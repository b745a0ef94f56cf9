// The attention of one translation: source tokens, target tokens, a heat map, and a sentence about the current selection.

import { el, rovingFocus, shade, svg } from "./dom.js";
import { END, UNKNOWN, hasCharacters, hasPieces, percent, quoted, spansOf, textWidth, tokenSpans } from "./text.js";

const NOTHING = { row: null, column: null };
const HINT = "Point at a word or a cell to see its attention weights.";
const explanation = (unit) =>
  `Each row is a ${unit} of the translation; a stronger colour means more attention to the source ${unit} of that column. ${END} marks the end of a sentence.`;
const SUMMED = " The weights of the pieces of a source word are added up, those of a target word averaged.";
const NO_ATTENTION = "There are no attention weights to show for this translation.";
const REPLACED = {
  copied: "Unknown word, copied from the source",
  lexicon: "Unknown word, translated by the lexicon",
};

/**
 * @param translation a translation as the service returns it
 * @param numChosen how many of its first tokens the user chose
 * @param asTokens whether to show tokens instead of words
 * @param onClick called with the index of the first token of a clicked target word, and its button
 * @returns `{words, picture}`, lists of elements
 */
export function attentionView(translation, numChosen, asTokens, onClick) {
  const weights = asTokens ? translation.attention : translation.word_attention;
  const numTokens = translation.units.length;
  const spans = [...(asTokens ? tokenSpans(translation) : translation.words), { text: END, first: numTokens, end: numTokens + 1 }];
  const targetTexts = spans.map(({ text }) => text || "·");
  const sourceSpans = asTokens ? spansOf(translation.source_units) : translation.source_words;
  const sourceTexts = [...sourceSpans.map(({ text }) => text || "·"), END];
  const columnTexts = weights ? sourceTexts.slice(0, weights[0].length) : [];
  const sources = sourceTexts.map((text, column) =>
    el("span", { class: "token", onpointerenter: () => select({ row: null, column }) }, text));
  const targets = targetTexts.map(targetButton);
  // The second one stands below the heat map; a screen reader needs only one of them.
  const readouts = [{ "aria-live": "polite" }, { "aria-hidden": "true" }].map((attributes) =>
    el("p", { class: "readout", ...attributes }, weights ? HINT : ""));
  const map = weights && heatmap(targetTexts.slice(0, weights.length), columnTexts, weights, select);

  function targetButton(text, row) {
    const { first, end } = spans[row];
    const replaced = translation.replaced.find(({ place }) => place === first);
    const classes = ["token", (replaced || text === UNKNOWN) && "replaced", first < numChosen && "fixed", first < numChosen && numChosen <= end && "picked"];
    const selectRow = () => select({ row, column: null });
    return el("button",
      { type: "button", class: classes.filter(Boolean).join(" "), "aria-expanded": "false", onpointerenter: selectRow, onfocus: selectRow,
        title: replaced ? REPLACED[replaced.rule] : null,
        onclick: (event) => onClick(first, event.currentTarget) },
      text);
  }

  function select(cell) {
    const { row, column } = cell;
    if (!weights || (row !== null && !weights[row])) return; // an unfinished translation has no row for its end
    map.mark(cell);
    sources.forEach((source, at) => shade(source, row !== null && column === null ? weights[row][at] : at === column ? 1 : null));
    targets.forEach((target, at) => {
      const columnWeight = column === null || !weights[at] ? null : weights[at][column];
      shade(target, row === null ? columnWeight : at === row ? 1 : null);
    });
    for (const readout of readouts) readout.textContent = describe(cell, targetTexts, columnTexts, weights);
  }

  const words = el("div", { class: "pair", onpointerleave: () => select(NOTHING) },
    el("h3", { class: "label" }, "Source"),
    el("div", { class: "tokens", dir: "auto" }, sources),
    el("h3", { class: "label" }, "Target"),
    el("div", { class: "tokens", dir: "auto", role: "group", "aria-label": "Target" }, targets),
  );
  rovingFocus(words, targets);
  const areJoined = !asTokens && hasPieces(translation);
  const areWords = areJoined || (!asTokens && !hasCharacters(translation));
  const hint = explanation(areWords ? "word" : "token") + (areJoined ? SUMMED : "");
  const picture = map
    ? [el("p", { class: "hint" }, hint), el("div", { class: "scroll" }, map.element), readouts[1]]
    : [el("p", { class: "hint" }, NO_ATTENTION)];
  return { words: [words, readouts[0]], picture };
}

/** Describe the attention of a cell, a row or a column in a sentence. */
function describe({ row, column }, targets, sources, weights) {
  if (row === null && column === null) return HINT;
  if (row !== null && column !== null) {
    return `For ${quoted(targets[row])}, ${quoted(sources[column])} gets ${percent(weights[row][column])} of the attention.`;
  }
  if (row !== null) return `${quoted(targets[row])} attends most to ${listLargest(weights[row], sources)}.`;
  return `${quoted(sources[column])} gets most attention for ${listLargest(weights.map((line) => line[column]), targets)}.`;
}

function listLargest(values, names, number = 3) {
  const sorted = values.map((value, index) => ({ value, name: names[index] })).sort((a, b) => b.value - a.value);
  return sorted.slice(0, number).map(({ value, name }) => `${quoted(name)} (${percent(value)})`).join(", ");
}

// -- the heat map --------------------------------------------------------------------------------------------------------

const MIN_CELL = 18, MAX_CELL = 30; // pixels; in a narrow window cells are smaller
const FONT_SIZE = 13; // pixels, as in the style sheet
const GAP = 8; // pixels between a label and the cells
const SLANT = (60 * Math.PI) / 180; // of the labels of columns
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/**
 * Draw attention weights: a row per target token, a column per source token.
 * @param onSelect called with `{row, column}`: a cell, a whole row (column is null), a whole column (row is null), or
 * nothing (both are null)
 */
function heatmap(rows, columns, weights, onSelect) {
  const columnWidths = columns.map(labelWidth);
  const left = GAP + Math.max(...rows.map(labelWidth)) + GAP;
  const top = FONT_SIZE + Math.max(...columnWidths) * Math.sin(SLANT) + GAP;
  const available = document.querySelector("main").clientWidth - left - columnWidths.at(-1) * Math.cos(SLANT) - FONT_SIZE;
  const cell = Math.max(MIN_CELL, Math.min(MAX_CELL, Math.floor(available / columns.length)));
  const reach = columnWidths.map((length, column) => cell * (column + 0.5) + length * Math.cos(SLANT) + FONT_SIZE);
  const width = left + Math.max(cell * columns.length, ...reach) + 4;
  const height = top + cell * rows.length + 4;
  const x = (column) => left + cell * column;
  const y = (row) => top + cell * row;

  const columnLabels = columns.map((text, column) =>
    svg("g", { class: "head", "data-column": column },
      svg("rect", { class: "touch", x: x(column), y: 0, width: cell, height: top }),
      svg("text", { transform: `translate(${x(column) + cell / 2 + 3} ${top - GAP}) rotate(-60)` }, text),
    ));
  const rowLabels = rows.map((text, row) =>
    svg("g", { class: "side", "data-row": row },
      svg("rect", { class: "touch", x: 0, y: y(row), width: left, height: cell }),
      svg("text", { x: left - GAP, y: y(row) + cell / 2, "text-anchor": "end", "dominant-baseline": "central" }, text),
    ));
  const cells = weights.map((line, row) => line.map((weight, column) =>
    svg("g", { class: "cell", "data-row": row, "data-column": column },
      svg("rect", { class: "touch", x: x(column), y: y(row), width: cell, height: cell }),
      svg("rect", { class: "heat", x: x(column) + 1, y: y(row) + 1, width: cell - 2, height: cell - 2, "fill-opacity": weight.toFixed(3) }),
      svg("title", {}, `${rows[row]}, ${columns[column]}: ${percent(weight)}`),
    )));
  const bands = ["row", "column"].map((direction) => svg("rect", { class: `band ${direction}` }));

  const element = svg("svg",
    { class: "heatmap", width, height, viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "application",
      "aria-label": "Attention. The arrow keys move between cells; beyond the first cell is the whole row or column." },
    columnLabels, rowLabels, cells.flat(), bands);
  let selected = NOTHING;

  function mark(chosen) {
    selected = chosen;
    columnLabels.forEach((label, column) => label.classList.toggle("marked", column === chosen.column));
    rowLabels.forEach((label, row) => label.classList.toggle("marked", row === chosen.row));
    placeBand(bands[0], chosen.row !== null, { x: left, y: y(chosen.row), width: cell * columns.length, height: cell });
    placeBand(bands[1], chosen.column !== null, { x: x(chosen.column), y: top, width: cell, height: cell * rows.length });
  }

  element.addEventListener("pointerover", (event) => onSelect(cellOf(event.target.closest("[data-row], [data-column]"))));
  element.addEventListener("pointerleave", () => onSelect(NOTHING));
  element.addEventListener("focus", () => selected.row === null && selected.column === null && onSelect({ row: 0, column: null }));
  element.addEventListener("blur", () => onSelect(NOTHING));
  element.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (!move) return;
    event.preventDefault();
    const next = moveSelection(selected, move, rows.length, columns.length);
    onSelect(next);
    (cells[next.row]?.[next.column] ?? rowLabels[next.row] ?? columnLabels[next.column]).scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  return { element, mark };
}

/** The width of a label in bold type, which a selected row or column has. */
const labelWidth = (text) => 1.1 * textWidth(text, FONT_SIZE);

const numberOrNull = (text) => (text === undefined ? null : Number(text));

const cellOf = (element) => ({ row: numberOrNull(element?.dataset.row), column: numberOrNull(element?.dataset.column) });

/** Left of the first cell of a row is the whole row, above the first cell of a column the whole column. */
function moveSelection({ row, column }, [down, right], numRows, numColumns) {
  const next = (index, step, length) => Math.min(length - 1, (index ?? -1) + step);
  const [nextRow, nextColumn] = [next(row, down, numRows), next(column, right, numColumns)];
  if (nextRow < 0 && nextColumn < 0) return { row, column };
  return { row: nextRow < 0 ? null : nextRow, column: nextColumn < 0 ? null : nextColumn };
}

function placeBand(band, visible, box) {
  band.classList.toggle("visible", visible);
  if (visible) for (const [name, value] of Object.entries(box)) band.setAttribute(name, value);
}
