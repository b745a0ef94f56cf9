// A region that shows the answer of the latest request, and the status line next to its inputs.

import { ApiError } from "./api.js";
import { el } from "./dom.js";

const DELAY = 300; // milliseconds without typing before a request is sent

/** A line that shows progress, an error with a retry button, or nothing. */
export function statusLine(root) {
  const show = (kind, ...children) => {
    root.className = `notice ${kind}`;
    root.replaceChildren(...children);
  };
  const retryButton = (retry) => el("button", { type: "button", class: "quiet", onclick: retry }, "Try again");
  return {
    clear: () => show(""),
    working: (text) => show("working", text),
    error: (error, retry) => show("problem", error.message, ...(error.retryable && retry ? [retryButton(retry)] : [])),
  };
}

/**
 * Run requests so that only the answer of the latest one is shown.
 * @param status where progress and errors are shown, see statusLine
 * @param regions elements that show the answers; hidden while there are none
 */
export function latestRequest(status, regions, workingText = "Working …") {
  let timer, latest;

  const setBusy = (busy) => regions.forEach((region) => region.setAttribute("aria-busy", String(busy)));
  const setHidden = (hidden) => regions.forEach((region) => (region.hidden = hidden));

  function cancel() {
    clearTimeout(timer);
    latest?.abort();
    latest = undefined;
  }

  function begin() {
    cancel();
    status.working(workingText);
    setBusy(true);
    return (latest = new AbortController());
  }

  async function run(controller, send, show) {
    try {
      const answer = await send(controller.signal);
      if (controller !== latest) return;
      setHidden(false); // before the region is filled: a hidden element has no size and cannot have the focus
      show(answer);
      status.clear();
    } catch (error) {
      if (controller !== latest) return;
      if (!(error instanceof ApiError)) console.error(error);
      setHidden(true);
      status.error(error, () => run(begin(), send, show));
    }
    setBusy(false);
  }

  return {
    /** Send a request now, or after a pause in typing. */
    send(request, show, { delayed = false } = {}) {
      const controller = begin();
      if (delayed) timer = setTimeout(() => run(controller, request, show), DELAY);
      else run(controller, request, show);
    },
    /** Cancel the request and hide the regions: there is nothing to ask. */
    reset() {
      cancel();
      status.clear();
      setBusy(false);
      setHidden(true);
    },
  };
}
