// Of several questions, only the last one's answer is shown.

import { Problem } from "./api.js";

const PAUSE = 300; // milliseconds without typing, after which it is asked

/**
 * @param told where problems are told, see notice.js
 * @param regions what shows the answers; hidden while there are none
 */
export function asking(told, regions, doing = "Working …") {
  let timer, last;

  const busy = (is) => regions.forEach((region) => region.setAttribute("aria-busy", String(is)));
  const hide = (is) => regions.forEach((region) => (region.hidden = is));

  function stop() {
    clearTimeout(timer);
    last?.abort();
    last = undefined;
  }

  function begin() {
    stop();
    told.working(doing);
    busy(true);
    return (last = new AbortController());
  }

  async function run(mine, question, show) {
    let answer, problem;
    try {
      answer = await question(mine.signal);
      if (mine === last) show(answer);
    } catch (error) {
      problem = error;
    }
    if (mine !== last) return;
    busy(false);
    hide(Boolean(problem));
    if (!problem) return told.clear();
    if (!(problem instanceof Problem)) console.error(problem);
    told.problem(problem, () => run(begin(), question, show));
  }

  return {
    now: (question, show) => run(begin(), question, show),
    later(question, show) {
      const mine = begin();
      timer = setTimeout(() => run(mine, question, show), PAUSE);
    },
    /** There is nothing to ask. */
    rest() {
      stop();
      told.clear();
      busy(false);
      hide(true);
    },
  };
}
