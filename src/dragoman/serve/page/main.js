// Start the page: load the list of models, connect the tabs and open the view that the URL names.

import * as api from "./api.js";
import { rovingFocus } from "./dom.js";
import { ladderView } from "./ladder.js";
import { languageModelsView } from "./language_models.js";
import { statusLine } from "./request.js";
import { searchView } from "./search.js";
import { translateView } from "./translate.js";
import * as url from "./url.js";

const VIEWS = { translate: translateView, search: searchView, models: languageModelsView, ladder: ladderView };
const DEFAULT_VIEW = "translate";

const status = statusLine(document.getElementById("notice"));
const keyForm = document.getElementById("key");
const openViews = {};
const selectTab = connectTabs(document.getElementById("tabs"), showView);
let service; // the answer of /v1/models

/** Return a view, created on first use. A view is `{open(params), params()}`. */
function getView(name) {
  const saveInputs = (params, isChoice) => url.write(name, params, isChoice);
  return (openViews[name] ??= VIEWS[name](document.getElementById(name), service, saveInputs));
}

function showView(name) {
  if (!service) return;
  url.write(name, getView(name).params(), true);
  followUrl();
}

function followUrl() {
  const { view, params } = url.read();
  const name = Object.hasOwn(VIEWS, view) ? view : DEFAULT_VIEW;
  selectTab(name);
  getView(name).open(params);
}

/** Let clicks and arrow keys choose a tab; return a function that marks the tab of a view as selected. */
function connectTabs(list, onChoose) {
  const tabs = [...list.querySelectorAll("[role=tab]")];
  const panelOf = (tab) => document.getElementById(tab.getAttribute("aria-controls"));
  rovingFocus(list, tabs, { onMove: (index) => onChoose(panelOf(tabs[index]).id) });
  for (const tab of tabs) tab.addEventListener("click", () => onChoose(panelOf(tab).id));

  return function select(view) {
    for (const tab of tabs) {
      const selected = panelOf(tab).id === view;
      tab.setAttribute("aria-selected", String(selected));
      tab.tabIndex = selected ? 0 : -1;
      panelOf(tab).hidden = !selected;
    }
  };
}

async function start() {
  status.working("Loading the list of models …");
  try {
    service = await api.models();
  } catch (error) {
    keyForm.hidden = !error.needsKey;
    return status.error(error, start);
  }
  keyForm.hidden = true;
  status.clear();
  followUrl();
  addEventListener("popstate", followUrl);
}

keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  api.setKey(keyForm.elements.key.value.trim());
  keyForm.reset();
  start();
});

start();
