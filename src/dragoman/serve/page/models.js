// Language models side by side: what words cost, what may come next, and samples.

import { ofEach, post } from "./api.js";
import { asking } from "./asking.js";
import { bars } from "./bars.js";
import { isTranslator } from "./choices.js";
import { before, insert, lines } from "./cursor.js";
import { el, fill, parts } from "./dom.js";
import { quoted } from "./format.js";
import { notice } from "./notice.js";
import { sampling } from "./sampling.js";
import { coloured, legend } from "./surprisal.js";
import { END, UNKNOWN } from "./units.js";

const MANY = 10; // next words
const AT_FIRST = 3; // models that are chosen before somebody chooses

export function languageModels(root, service, write) {
  const part = parts(root);
  const all = service.models.filter((one) => !isTranslator(one));
  const scored = asking(notice(part.notice), [part.scored], "Scoring …");
  const next = asking(notice(part.nextnotice), [part.next], "Asking …");
  let opened, where;

  part.none.hidden = all.length > 0;
  part.some.hidden = !all.length;
  part.legend.append(legend());
  const boxes = all.map((one, at) => el("input", { type: "checkbox", value: one.name, checked: at < AT_FIRST, onchange: () => refresh({ step: true }) }));
  part.choices.append(...boxes.map((box) => el("label", { class: "check" }, box, ` ${box.value}`)));
  sampling(part, all, service.limits, prefix, (text) => {
    part.text.value = text;
    part.text.focus();
    refresh({ step: true });
  });

  // -- the inputs ------------------------------------------------------------------------------------------------------

  const chosen = () => boxes.filter((box) => box.checked).map((box) => box.value);

  function prefix() {
    return before(part.text.value, part.text.selectionEnd);
  }

  function params() {
    const own = [["text", part.text.value], ["at", part.text.selectionEnd]];
    return new URLSearchParams([...chosen().map((name) => ["use", name]), ...own]);
  }

  function open(given) {
    if (!all.length || String(given) === opened) return;
    if (given.has("use")) for (const box of boxes) box.checked = given.getAll("use").includes(box.value);
    fill(part.text, given.get("text") ?? part.text.value);
    const at = Number(given.get("at") ?? part.text.value.length);
    part.text.setSelectionRange(at, at);
    refresh();
  }

  function refresh({ step = false, typing = false } = {}) {
    score(typing);
    predict(typing, true);
    note(step);
  }

  function note(step) {
    write(params(), step);
    opened = String(params());
  }

  part.text.addEventListener("input", () => refresh({ typing: true }));
  document.addEventListener("selectionchange", () => {
    if (document.activeElement !== part.text) return;
    predict(true);
    note();
  });

  // -- what words cost -------------------------------------------------------------------------------------------------

  function score(typing) {
    const [names, text] = [chosen(), part.text.value.trimEnd()];
    if (!names.length || !text.trim()) return scored.rest();
    const question = (signal) => ofEach(names, (name) => post("score", { models: [name], text }, signal));
    (typing ? scored.later : scored.now)(question, showScores);
  }

  function showScores(found) {
    const blocks = found.map((one) => (one.problem ? trouble(one) : coloured(one.model, one.answer.sentences, moveTo, point)));
    part.surprisals.replaceChildren(...blocks.map((block) => block.element));

    function point(line, at) {
      for (const { tokens } of blocks) {
        tokens.forEach((own, number) => own.forEach((token, place) => token.classList.toggle("marked", number === line && place === at)));
      }
    }
  }

  const trouble = ({ model, problem }) => ({
    element: el("section", {}, el("h3", {}, model), el("p", { class: "notice problem" }, problem.message)),
    tokens: [],
  });

  /** The cursor before a word, to see what was expected there. */
  function moveTo(line, at) {
    const words = lines(part.text.value)[line];
    const last = words.at(-1);
    const place = words[at]?.at ?? (last ? last.at + last.word.length : 0);
    part.text.setSelectionRange(place, place);
    predict(false);
    note(true);
    part.where.scrollIntoView({ block: "nearest" });
  }

  // -- what may come next ----------------------------------------------------------------------------------------------

  function predict(typing, always = false) {
    const [names, words] = [chosen(), prefix()];
    const asked = JSON.stringify([names, words]);
    if (asked === where && !always) return;
    where = asked;
    part.where.textContent = `${words ? `After ${quoted(words)}` : "At the beginning of a sentence"}, where the cursor is. Choose a word to put it there.`;
    if (!names.length) {
      part.where.textContent = "Choose a language model.";
      return next.rest();
    }
    const question = (signal) => ofEach(names, (name) => post("next", { models: [name], prefix: words, k: MANY }, signal));
    (typing ? next.later : next.now)(question, showNext);
  }

  function showNext(found) {
    const focus = focused();
    const most = Math.max(...found.map((one) => one.answer?.models[0].words[0]?.prob ?? 0));
    part.next.replaceChildren(...found.map((one) => (one.problem ? trouble(one).element : column(one, most))));
    if (focus) part.next.children[focus.column]?.querySelectorAll("button")[focus.row]?.focus();
  }

  function column({ model, answer }, most) {
    const how = { most, pick: choose, can: (word) => word !== UNKNOWN };
    return el("section", {}, el("h3", {}, model), bars(answer.models[0].words, how));
  }

  /** Which bar has the focus: choosing one word after the other should not lose it. */
  function focused() {
    const column = [...part.next.children].findIndex((one) => one.contains(document.activeElement));
    if (column < 0) return null;
    return { column, row: [...part.next.children[column].querySelectorAll("button")].indexOf(document.activeElement) };
  }

  function choose(word) {
    insert(part.text, word === END ? "\n" : word);
    refresh({ step: true });
  }

  return { open, params };
}
