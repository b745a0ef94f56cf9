// What was found: reports, how trainings go; and what the service has: models and limits. Each section is a function
// from what the service tells to elements.

import { models } from "./api.js";
import { asking } from "./asking.js";
import { curves } from "./curves.js";
import { el, parts } from "./dom.js";
import { languages } from "./format.js";
import { notice } from "./notice.js";
import { reports } from "./reports.js";

const SECTIONS = { Report: reports, Training: curves, Models: shelf, Limits: limits };

const LIMITS = {
  characters: "characters of all texts of a request",
  texts: "texts of a request",
  beam: "the widest beam",
  alternatives: "translations beside the best, or samples",
  body: "bytes of a request",
  queue: "requests that wait",
  seconds: "seconds that a request may take, waiting included",
};

export function ladder(root) {
  const part = parts(root);
  const asked = asking(notice(part.notice), [part.sections], "Asking …");

  async function question(signal) {
    const service = await models(signal);
    return Promise.all(Object.entries(SECTIONS).map(async ([name, section]) => ({ name, element: el("section", {}, await section(service)) })));
  }

  function show(sections) {
    const jump = ({ name, element }) => el("button", { type: "button", class: "quiet", onclick: () => go(element) }, name);
    part.sections.replaceChildren(
      el("nav", { class: "buttons", "aria-label": "Sections" }, sections.map(jump)),
      ...sections.map(({ element }) => element));
  }

  return { open: () => asked.now(question, show), params: () => new URLSearchParams() };
}

/** To a section, with the keyboard as well as with the eye. */
function go(section) {
  const heading = section.querySelector("h2");
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  section.scrollIntoView();
}

function shelf({ models }) {
  return [
    el("h2", {}, "Models"),
    el("p", { class: "hint" }, "A model is loaded when it is first asked for."),
    table(["Name", "Kind", "Languages", "Loaded"], models.map((one) => [one.name, kind(one), languages(one) || "–", state(one)])),
  ];
}

const kind = ({ kind, members }) => (members > 1 ? `${kind}, ensemble of ${members}` : kind);

const state = ({ loaded, problem }) => (problem ? el("span", { class: "problem" }, problem) : loaded ? "yes" : "not yet");

function limits({ limits }) {
  const lines = Object.entries(limits).map(([name, value]) => [value.toLocaleString("en"), LIMITS[name] ?? name]);
  return [el("h2", {}, "Limits"), table(["At most", "Of what"], lines)];
}

function table(heads, lines) {
  return el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": heads.join(", ") },
    el("table", {},
      el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, lines.map((line) => el("tr", {}, line.map((cell) => el("td", {}, cell))))),
    ));
}
