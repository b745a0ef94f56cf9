// The views as tabs.

import { roving } from "./roving.js";

export function tabs(list, choose) {
  const all = [...list.querySelectorAll("[role=tab]")];
  const panel = (tab) => document.getElementById(tab.getAttribute("aria-controls"));
  roving(list, all, { arrived: (at) => choose(panel(all[at]).id) });
  for (const tab of all) tab.addEventListener("click", () => choose(panel(tab).id));

  return function select(view) {
    for (const tab of all) {
      const chosen = panel(tab).id === view;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      panel(tab).hidden = !chosen;
    }
  };
}
