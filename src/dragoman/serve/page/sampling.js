// Sentences drawn from a language model.

import { post } from "./api.js";
import { asking } from "./asking.js";
import { offer } from "./choices.js";
import { el } from "./dom.js";
import { notice } from "./notice.js";

/**
 * @param beginning gives the words to begin with
 * @param use is told a sample that somebody wants as the text
 */
export function sampling(part, models, limits, beginning, use) {
  const form = part.sampling;
  const { model, n, seed, begun, temperature, top_k, top_p } = form.elements;
  const asked = asking(notice(part.samplenotice), [part.samples], "Drawing …");
  n.max = limits.alternatives + 1;
  offer(model, models);

  const question = () => ({
    model: model.value,
    n: Number(n.value),
    seed: Number(seed.value),
    temperature: Number(temperature.value),
    top_k: top_k.value ? Number(top_k.value) : null,
    top_p: Number(top_p.value),
    prefix: begun.checked ? beginning() : "",
  });

  function draw(event) {
    event.preventDefault();
    const wanted = question();
    asked.now((signal) => post("sample", wanted, signal), ({ samples }) => part.samples.replaceChildren(...samples.map(line)));
  }

  const line = (text) =>
    el("li", {}, el("span", {}, text || "(an empty sentence)"),
      " ", el("button", { type: "button", class: "quiet", onclick: () => use(text) }, "Use as text"));

  form.addEventListener("submit", draw);
  part.again.addEventListener("click", () => {
    seed.value = Number(seed.value) + 1;
    form.requestSubmit();
  });
}
