// What the service has, and the views of it.

import * as address from "./address.js";
import * as api from "./api.js";
import { ladder } from "./ladder.js";
import { languageModels } from "./models.js";
import { notice } from "./notice.js";
import { search } from "./search.js";
import { tabs } from "./tabs.js";
import { translate } from "./translate.js";

const VIEWS = { translate, search, models: languageModels, ladder };
const FIRST = "translate";

const told = notice(document.getElementById("notice"));
const views = {};
const select = tabs(document.getElementById("tabs"), choose);

/** Views are made when they are first opened; each is `{open(params), params()}`. */
function view(name) {
  const write = (params, step) => address.write(name, params, step);
  return (views[name] ??= VIEWS[name](document.getElementById(name), service, write));
}

function choose(name) {
  if (!service) return;
  address.write(name, view(name).params(), true);
  follow();
}

function follow() {
  const { view: asked, params } = address.read();
  const name = Object.hasOwn(VIEWS, asked) ? asked : FIRST;
  select(name);
  view(name).open(params);
}

let service;

async function begin() {
  told.working("Asking which models there are …");
  try {
    service = await api.models();
  } catch (error) {
    return told.problem(error, begin);
  }
  told.clear();
  follow();
  addEventListener("popstate", follow);
}

begin();
