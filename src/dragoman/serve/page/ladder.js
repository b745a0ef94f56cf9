// What the service has: models, how their trainings went, and limits. Each section is a function from what the service
// tells to elements.

import { models } from "./api.js";
import { asking } from "./asking.js";
import { curves } from "./curves.js";
import { el, parts } from "./dom.js";
import { languages } from "./format.js";
import { notice } from "./notice.js";

const SECTIONS = [curves, shelf, limits];

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
  const open = () => asked.now(models, (service) => part.sections.replaceChildren(...SECTIONS.flatMap((section) => section(service))));
  return { open, params: () => new URLSearchParams() };
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
