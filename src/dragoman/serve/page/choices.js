// Models to choose from.

import { el } from "./dom.js";
import { languages } from "./format.js";

export const NONE = "This service has no translator; start it with one: dragoman serve MODEL.";

export const isTranslator = (model) => model.kind === "translator";

/** Fill a select with models; one that is asked for but not there is named all the same, so that its problem is told. */
export function offer(select, models, wanted) {
  const chosen = wanted || select.value || models[0]?.name || "";
  const missing = chosen && !models.some((one) => one.name === chosen);
  select.replaceChildren(
    ...models.map((one) => el("option", { value: one.name }, title(one))),
    ...(missing ? [el("option", { value: chosen }, `${chosen} (not here)`)] : []),
  );
  select.value = chosen;
}

function title(model) {
  const notes = [languages(model), model.problem && "cannot be loaded"].filter(Boolean);
  return notes.length ? `${model.name} (${notes.join("; ")})` : model.name;
}

/** Whether a field is changed by one choice, and not letter by letter. */
export const isChoice = (field) => field.tagName === "SELECT";

/** A whole number from a field, within its bounds. */
export function whole(field) {
  const value = Math.round(Number(field.value)) || 0;
  return Math.max(Number(field.min), Math.min(Number(field.max || Infinity), value));
}
