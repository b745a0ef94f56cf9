// Elements are made here. Texts become text nodes and never markup.

const SVG = "http://www.w3.org/2000/svg";

export const el = (tag, attributes, ...children) => furnish(document.createElement(tag), attributes, children);

export const svg = (tag, attributes, ...children) => furnish(document.createElementNS(SVG, tag), attributes, children);

function furnish(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null));
  return element;
}

/** The elements of a view that have a `data-part`, by its value. */
export const parts = (root) =>
  Object.fromEntries([...root.querySelectorAll("[data-part]")].map((element) => [element.dataset.part, element]));

/** A share from 0 to 1, by which the style sheet colours an element. */
export function shade(element, share) {
  element.classList.toggle("shaded", share != null);
  if (share != null) element.style.setProperty("--share", `${(100 * share).toFixed(1)}%`);
}

/** Set a field's value, unless somebody is typing the same. */
export function fill(field, value) {
  if (field.value !== String(value)) field.value = value;
}
