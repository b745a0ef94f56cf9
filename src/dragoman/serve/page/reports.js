// Reports of runs, each a page of its own that is shown within this one.

import { named, runs } from "./api.js";
import { el } from "./dom.js";

const NONE = "No report is here. A demo or a ladder writes one into its directory; serve that: ";
const COLOURS = { "--paper": "--paper", "--raised": "--raised", "--ink": "--ink", "--quiet": "--soft", "--rule": "--line", "--link": "--accent" };
const DARK = matchMedia("(prefers-color-scheme: dark)");

/** A section with the report of one run; of several, the one that is chosen. */
export async function reports() {
  const names = (await runs()).runs.filter((one) => one.report).map((one) => one.name);
  const heading = el("h2", {}, "Report");
  if (!names.length) return [heading, el("p", {}, NONE, el("code", {}, "dragoman serve runs/demo"))];
  const shown = el("div", {});
  const show = (name) => shown.replaceChildren(...report(name));
  show(names[0]);
  return [heading, ...(names.length > 1 ? [choice(names, show)] : []), shown];
}

const choice = (names, show) =>
  el("form", { class: "settings", onsubmit: (event) => event.preventDefault() },
    el("label", { class: "wide" }, "Run ",
      el("select", { onchange: (event) => show(event.target.value) }, names.map((name) => el("option", {}, name)))));

/** It is as high as what is in it, and has the colours of this page. */
function report(name) {
  const src = named("reports", name);
  const frame = el("iframe", { class: "report", title: `Report of ${name}`, sandbox: "allow-same-origin", src });
  frame.addEventListener("load", () => settle(frame));
  return [
    el("p", { class: "hint" }, `What ${name} found. `, el("a", { href: src, target: "_blank", rel: "noopener" }, "Open it alone")),
    frame,
  ];
}

function settle(frame) {
  const inside = frame.contentDocument;
  const style = inside.createElement("style");
  const colour = () => (style.textContent = dress(getComputedStyle(document.documentElement)));
  colour();
  inside.head.append(style);
  DARK.addEventListener("change", colour);
  const fit = () => (frame.style.height = `${Math.ceil(inside.documentElement.getBoundingClientRect().height)}px`);
  new ResizeObserver(fit).observe(inside.documentElement);
}

function dress(own) {
  const colours = Object.entries(COLOURS).map(([name, from]) => `${name}: ${own.getPropertyValue(from)};`).join(" ");
  const headings = `font-family: ${own.getPropertyValue("--serif")};`;
  return `:root { ${colours} } html { overflow: hidden } body { max-width: none; padding: 0 1px; background: transparent }
    h1, h2 { ${headings} } h1 { font-size: 1.35rem } table { font-size: 0.9rem } table:not(.heat) :is(th, td) { padding: 0.3rem 0.5rem }`;
}
