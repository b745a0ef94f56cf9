// Elements, form fields and keyboard focus. Text always becomes text nodes, never markup.

import { languagePair } from "./text.js";

const SVG = "http://www.w3.org/2000/svg";

// -- elements ----------------------------------------------------------------------------------------------------------

export const el = (tag, attributes, ...children) => build(document.createElement(tag), attributes, children);

export const svg = (tag, attributes, ...children) => build(document.createElementNS(SVG, tag), attributes, children);

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null));
  return element;
}

export function table(headings, rows) {
  return el("table", {},
    el("thead", {}, el("tr", {}, headings.map((heading) => el("th", { scope: "col" }, heading)))),
    el("tbody", {}, rows));
}

/** Return the elements of a view that have a `data-part` attribute, by its value. */
export const parts = (root) =>
  Object.fromEntries([...root.querySelectorAll("[data-part]")].map((element) => [element.dataset.part, element]));

/** Set the share, from 0 to 1, by which the style sheet colours an element; null: no colour. */
export function shade(element, share) {
  element.classList.toggle("shaded", share != null);
  if (share != null) element.style.setProperty("--share", `${(100 * share).toFixed(1)}%`);
}

// -- form fields -------------------------------------------------------------------------------------------------------

export const NO_TRANSLATOR = "This service has no translator. Start it with one: dragoman serve MODEL.";

export const isTranslator = (model) => model.kind === "translator";

/** Set a field's value without moving the cursor if it is the same. */
export function fill(field, value) {
  if (field.value !== String(value)) field.value = value;
}

/** Fill a select with models. A requested model that does not exist is listed as well, so that its error is shown. */
export function fillModels(select, models, requested) {
  const selected = requested || select.value || models[0]?.name || "";
  const missing = selected && !models.some((model) => model.name === selected);
  select.replaceChildren(
    ...models.map((model) => el("option", { value: model.name }, modelTitle(model))),
    ...(missing ? [el("option", { value: selected }, `${selected} (not available)`)] : []),
  );
  select.value = selected;
}

function modelTitle(model) {
  const notes = [languagePair(model), model.problem && "cannot be loaded"].filter(Boolean);
  return notes.length ? `${model.name} (${notes.join("; ")})` : model.name;
}

/** Whether a field changes by one choice, rather than letter by letter. */
export const isSelect = (field) => field.tagName === "SELECT";

/** Return the integer of a field, within its bounds. */
export function integerOf(field) {
  const value = Math.round(Number(field.value)) || 0;
  return Math.max(Number(field.min), Math.min(Number(field.max || Infinity), value));
}

// -- keyboard ----------------------------------------------------------------------------------------------------------

export const VERTICAL = { ArrowUp: -1, ArrowDown: 1 };
const BOTH = { ...VERTICAL, ArrowLeft: -1, ArrowRight: 1 };

export const hasModifier = (event) => event.ctrlKey || event.altKey || event.metaKey;

/** Make several items one stop of the Tab key; arrow keys, Home and End move between them. */
export function rovingFocus(group, items, { keys = BOTH, onMove = () => {} } = {}) {
  const setStop = (index) => items.forEach((item, other) => (item.tabIndex = other === index ? 0 : -1));
  const destination = (key, index) => {
    if (key === "Home") return 0;
    if (key === "End") return items.length - 1;
    return key in keys ? (index + keys[key] + items.length) % items.length : -1;
  };
  group.addEventListener("keydown", (event) => {
    const index = items.indexOf(event.target);
    const next = index < 0 || hasModifier(event) ? -1 : destination(event.key, index);
    if (next < 0) return;
    event.preventDefault();
    items[next].focus();
    onMove(next);
  });
  group.addEventListener("focusin", (event) => {
    if (items.includes(event.target)) setStop(items.indexOf(event.target));
  });
  setStop(0);
}
