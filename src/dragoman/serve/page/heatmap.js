// Attention as a picture: a row for each unit that was written, a column for each that was read.

import { svg } from "./dom.js";
import { percent } from "./format.js";
import { shortened } from "./units.js";

const CELL = 30;
const LABEL = 14; // signs of a label, at most
const SIGN = 7.4; // the width of one
const SLANT = 60; // degrees
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/**
 * @param look is told `{row, column}` of what is looked at: a cell, a whole row (column is null), a whole column (row is
 * null), or nothing (both are)
 */
export function heatmap(rows, columns, weights, look) {
  const left = 18 + SIGN * longest(rows);
  const top = 14 + SIGN * longest(columns) * Math.sin((SLANT * Math.PI) / 180);
  const width = left + CELL * columns.length + SIGN * longest(columns.slice(-3)) * 0.5 + 8;
  const height = top + CELL * rows.length + 4;
  const x = (column) => left + CELL * column;
  const y = (row) => top + CELL * row;

  const heads = columns.map((text, column) =>
    svg("g", { class: "head", "data-column": column },
      svg("rect", { class: "touch", x: x(column), y: 0, width: CELL, height: top }),
      svg("text", { transform: `translate(${x(column) + CELL / 2 + 3} ${top - 7}) rotate(${-SLANT})` }, shortened(text, LABEL)),
    ));
  const sides = rows.map((text, row) =>
    svg("g", { class: "side", "data-row": row },
      svg("rect", { class: "touch", x: 0, y: y(row), width: left, height: CELL }),
      svg("text", { x: left - 8, y: y(row) + CELL / 2, "text-anchor": "end", "dominant-baseline": "central" }, shortened(text, LABEL)),
    ));
  const cells = weights.map((line, row) => line.map((weight, column) =>
    svg("g", { class: "cell", "data-row": row, "data-column": column },
      svg("rect", { class: "touch", x: x(column), y: y(row), width: CELL, height: CELL }),
      svg("rect", { class: "heat", x: x(column) + 1, y: y(row) + 1, width: CELL - 2, height: CELL - 2, "fill-opacity": weight.toFixed(3) }),
      svg("title", {}, `${rows[row]}, ${columns[column]}: ${percent(weight)}`),
    )));
  const bands = ["row", "column"].map((way) => svg("rect", { class: `band ${way}` }));

  const element = svg("svg",
    { class: "heatmap", width, height, viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "application",
      "aria-label": "Attention. The arrow keys go from cell to cell; at the edges are whole rows and columns." },
    heads, sides, cells.flat(), bands);
  let here = { row: null, column: null };

  function mark(at) {
    here = at;
    heads.forEach((head, column) => head.classList.toggle("marked", column === at.column));
    sides.forEach((side, row) => side.classList.toggle("marked", row === at.row));
    place(bands[0], at.row !== null, { x: left, y: y(at.row), width: CELL * columns.length, height: CELL });
    place(bands[1], at.column !== null, { x: x(at.column), y: top, width: CELL, height: CELL * rows.length });
  }

  element.addEventListener("pointerover", (event) => look(placeOf(event.target.closest("[data-row], [data-column]"))));
  element.addEventListener("pointerleave", () => look({ row: null, column: null }));
  element.addEventListener("focus", () => here.row === null && here.column === null && look({ row: 0, column: null }));
  element.addEventListener("blur", () => look({ row: null, column: null }));
  element.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (!move) return;
    event.preventDefault();
    const to = moved(here, move, rows.length, columns.length);
    look(to);
    (cells[to.row]?.[to.column] ?? sides[to.row] ?? heads[to.column]).scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  return { element, mark };
}

const longest = (texts) => Math.max(1, ...texts.map((text) => Math.min(LABEL, [...text].length)));

const numbered = (text) => (text === undefined ? null : Number(text));

const placeOf = (found) => ({ row: numbered(found?.dataset.row), column: numbered(found?.dataset.column) });

/** Beyond the first cell of a row is the row itself, beyond the first of a column the column. */
function moved({ row, column }, [down, right], rows, columns) {
  const next = (at, step, most) => Math.min(most - 1, (at ?? -1) + step);
  const [to, across] = [next(row, down, rows), next(column, right, columns)];
  if (to < 0 && across < 0) return { row, column };
  return { row: to < 0 ? null : to, column: across < 0 ? null : across };
}

function place(band, visible, box) {
  band.classList.toggle("visible", visible);
  if (visible) for (const [name, value] of Object.entries(box)) band.setAttribute(name, value);
}
