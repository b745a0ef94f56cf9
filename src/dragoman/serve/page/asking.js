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
    try {
      const answer = await question(mine.signal);
      if (mine !== last) return;
      hide(false); // before it is filled: what is hidden can have neither a size nor the focus
      show(answer);
      told.clear();
    } catch (error) {
      if (mine !== last) return;
      if (!(error instanceof Problem)) console.error(error);
      hide(true);
      told.problem(error, () => run(begin(), question, show));
    }
    busy(false);
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
