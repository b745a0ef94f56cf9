// One line near the inputs that says what is going on.

import { el } from "./dom.js";

export function notice(root) {
  const say = (kind, ...children) => {
    root.className = `notice ${kind}`;
    root.replaceChildren(...children);
  };
  return {
    clear: () => say(""),
    working: (text) => say("working", text),
    problem: (error, again) => say("problem", error.message, ...(error.again && again ? [retry(again)] : [])),
  };
}

const retry = (again) => el("button", { type: "button", class: "quiet", onclick: again }, "Try again");
