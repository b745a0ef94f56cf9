// The view of training and reports: learning curves, reports of runs, the list of models and the limits of the service.

import { models, resource, runs } from "./api.js";
import { el, parts, table } from "./dom.js";
import { learningCurves } from "./learning_curves.js";
import { latestRequest, statusLine } from "./request.js";
import { languagePair } from "./text.js";

// Each section is a function from the answer of /v1/models to a list of elements.
const SECTIONS = { "Learning curves": learningCurves, Report: reportSection, Models: modelSection, Limits: limitSection };

const LIMITS = {
  characters: "characters per request, all texts together",
  texts: "texts per request",
  beam: "beam size",
  alternatives: "alternative translations, or additional samples",
  body: "bytes per request",
  queue: "waiting requests",
  seconds: "seconds per request, including the time in the queue",
  write_seconds: "seconds until a client has read a response",
  requests_per_minute: "requests per minute of each key or address",
  characters_per_minute: "characters per minute of each key or address",
  connections: "open connections",
};

export function ladderView(root) {
  const part = parts(root);
  const request = latestRequest(statusLine(part.notice), [part.sections], "Loading …");
  let model; // whose learning curve the user wants to see

  async function loadSections(signal) {
    const service = await models(signal);
    return Promise.all(Object.entries(SECTIONS).map(async ([name, section]) => ({ name, element: el("section", {}, await section(service)) })));
  }

  function show(sections) {
    const jumpButton = ({ name, element }) => el("button", { type: "button", class: "quiet", onclick: () => jumpTo(element) }, name);
    part.sections.replaceChildren(
      el("nav", { class: "buttons", "aria-label": "Sections" }, sections.map(jumpButton)),
      ...sections.map(({ element }) => element));
    if (model) jumpTo([...part.sections.querySelectorAll("figure")].find(({ dataset }) => dataset.model === model), "figcaption");
  }

  function open(given) {
    model = given.get("model");
    request.send(loadSections, show);
  }

  return { open, params: () => new URLSearchParams(model ? { model } : {}) };
}

/** Scroll to a section or figure and move the keyboard focus there. */
function jumpTo(section, headingName = "h2") {
  const heading = section?.querySelector(headingName);
  if (!heading) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  section.scrollIntoView();
}

// -- models and limits ---------------------------------------------------------------------------------------------------

function modelSection({ models }) {
  return [
    el("h2", {}, "Models"),
    el("p", { class: "hint" }, "A model is loaded when it is used for the first time."),
    textTable(["Name", "Kind", "Languages", "Loaded"], models.map((model) => [model.name, modelKind(model), languagePair(model) || "–", loadState(model)])),
  ];
}

const modelKind = ({ kind, members }) => (members > 1 ? `${kind}, ensemble of ${members}` : kind);

const loadState = ({ loaded, problem }) => (problem ? el("span", { class: "problem" }, problem) : loaded ? "yes" : "not yet");

function limitSection({ limits }) {
  const rows = Object.entries(limits).filter(([, value]) => value !== null).map(([name, value]) => [value.toLocaleString("en"), LIMITS[name] ?? name]);
  return [el("h2", {}, "Limits"), textTable(["Maximum", "Of"], rows)];
}

function textTable(headings, rows) {
  return el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": headings.join(", ") },
    table(headings, rows.map((cells) => el("tr", {}, cells.map((cell) => el("td", {}, cell))))));
}

// -- reports -------------------------------------------------------------------------------------------------------------

const NO_REPORT = "There is no report. Demos and ladders write one into their directory. Serve such a directory: ";
const COLOURS = { "--paper": "--paper", "--raised": "--raised", "--ink": "--ink", "--quiet": "--soft", "--rule": "--line", "--link": "--accent" };
const DARK = matchMedia("(prefers-color-scheme: dark)");

/** The report of a run; if there are several, the user chooses one. */
async function reportSection() {
  const names = (await runs()).runs.filter(({ report }) => report).map(({ name }) => name);
  const heading = el("h2", {}, "Report");
  if (!names.length) return [heading, el("p", {}, NO_REPORT, el("code", {}, "dragoman serve runs/demo"))];
  const container = el("div", {});
  const show = (name) => container.replaceChildren(...reportFrame(name));
  show(names[0]);
  return [heading, ...(names.length > 1 ? [runSelect(names, show)] : []), container];
}

const runSelect = (names, onSelect) =>
  el("form", { class: "settings", onsubmit: (event) => event.preventDefault() },
    el("label", { class: "wide" }, "Run ",
      el("select", { onchange: (event) => onSelect(event.target.value) }, names.map((name) => el("option", {}, name)))));

function reportFrame(name) {
  const src = resource("reports", name);
  const frame = el("iframe", { class: "report", title: `Report of ${name}`, sandbox: "allow-same-origin", src });
  frame.addEventListener("load", () => adaptFrame(frame));
  return [
    el("p", { class: "hint" }, `Report of ${name}. `, el("a", { href: src, target: "_blank", rel: "noopener" }, "Open in a new tab")),
    frame,
  ];
}

/** Give a report the colours of the page, and its frame the height of the report. */
function adaptFrame(frame) {
  const inner = frame.contentDocument;
  const style = inner.createElement("style");
  const applyColours = () => (style.textContent = reportStyle(getComputedStyle(document.documentElement)));
  applyColours();
  inner.head.append(style);
  DARK.addEventListener("change", applyColours);
  const fitHeight = () => (frame.style.height = `${Math.ceil(inner.documentElement.getBoundingClientRect().height)}px`);
  new ResizeObserver(fitHeight).observe(inner.documentElement);
}

function reportStyle(pageStyle) {
  const colours = Object.entries(COLOURS).map(([name, from]) => `${name}: ${pageStyle.getPropertyValue(from)};`).join(" ");
  const headingFont = `font-family: ${pageStyle.getPropertyValue("--serif")};`;
  return `:root { ${colours} } html { overflow: hidden } body { max-width: none; padding: 0 1px; background: transparent }
    h1, h2 { ${headingFont} } h1 { font-size: 1.35rem } table { font-size: 0.9rem } table:not(.heat) :is(th, td) { padding: 0.3rem 0.5rem }`;
}
