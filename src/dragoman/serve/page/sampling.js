// The form that draws sentences from a language model.

import { post } from "./api.js";
import { el, fillModels } from "./dom.js";
import { latestRequest, statusLine } from "./request.js";

/**
 * @param part the elements of the view
 * @param getPrefix returns the words that a sample starts with, if the user chose that
 * @param onUse called with a sample that the user wants as the text
 */
export function connectSampling(part, models, limits, getPrefix, onUse) {
  const form = part.sampling;
  const { model, n, seed, prefixed, temperature, top_k, top_p } = form.elements;
  const request = latestRequest(statusLine(part.samplenotice), [part.samples], "Drawing samples …");
  n.max = limits.alternatives + 1;
  fillModels(model, models);

  const inputs = () => ({
    model: model.value,
    n: Number(n.value),
    seed: Number(seed.value),
    temperature: Number(temperature.value),
    top_k: top_k.value ? Number(top_k.value) : null,
    top_p: Number(top_p.value),
    prefix: prefixed.checked ? getPrefix() : "",
  });

  const row = (text) =>
    el("li", {}, el("span", {}, text || "(empty sentence)"),
      " ", el("button", { type: "button", class: "quiet", onclick: () => onUse(text) }, "Use as text"));

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const body = inputs();
    request.send((signal) => post("sample", body, signal), ({ samples }) => part.samples.replaceChildren(...samples.map(row)));
  });
  part.again.addEventListener("click", () => {
    seed.value = Number(seed.value) + 1;
    form.requestSubmit();
  });
}
