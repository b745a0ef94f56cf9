// What else could stand in the place of a unit.

import { post } from "./api.js";
import { asking } from "./asking.js";
import { bars } from "./bars.js";
import { el } from "./dom.js";
import { quoted } from "./format.js";
import { notice } from "./notice.js";
import { END, joined } from "./units.js";

const MANY = 10;

export function alternatives(root) {
  const title = el("h3", {});
  const hint = el("p", { class: "hint" }, "Pick one, and the translator goes on from there.");
  const told = el("div", { class: "notice", role: "status" });
  const list = el("div", {});
  const asked = asking(notice(told), [list]);
  let opener;
  root.append(el("button", { type: "button", class: "quiet close", onclick: close }, "Close"), title, hint, told, list);
  root.addEventListener("keydown", (event) => event.key === "Escape" && close());

  function close() {
    if (root.contains(document.activeElement)) opener?.focus();
    hide();
  }

  function hide() {
    opener?.setAttribute("aria-expanded", "false");
    asked.rest();
    root.hidden = true;
  }

  /** The units before the place are kept; `pick` is told them and the one that was picked. */
  function open({ model, source, units, place, button, pick }) {
    hide();
    opener = button;
    button.setAttribute("aria-expanded", "true");
    const before = units.slice(0, place);
    const current = units[place] ?? END;
    title.textContent = heading(joined(before, units), current);
    list.replaceChildren();
    root.hidden = false;
    asked.now(
      (signal) => post("next", { models: [model], source, prefix: before, k: MANY }, signal),
      ({ models: [{ words }] }) => {
        const choose = (word) => (hide(), pick([...before, word]));
        list.replaceChildren(bars(words, { most: words[0]?.prob, pick: choose, can: (word) => word !== END, current }));
        list.querySelector("button:enabled")?.focus({ preventScroll: true });
      },
    );
  }

  return { open, hide };
}

const heading = (before, current) => `Instead of ${quoted(current)}, ${before ? `after ${quoted(before)}` : "at the beginning"}`;
