// The view and its inputs in the address, so that reloading and the back button work.

const PAUSE = 250; // milliseconds; browsers refuse to change the address too often

let timer, waiting;

/** Which view the address names, and its inputs. */
export function read() {
  forget();
  const hash = location.hash.slice(1);
  const cut = hash.indexOf("?");
  const [view, query] = cut < 0 ? [hash, ""] : [hash.slice(0, cut), hash.slice(cut + 1)];
  return { view, params: new URLSearchParams(query) };
}

export function link(view, params) {
  const query = new URLSearchParams(params).toString();
  return query ? `#${view}?${query}` : `#${view}`;
}

/** Typing replaces the address; a choice (step) is one that the back button takes back. */
export function write(view, params, step = false) {
  const hash = link(view, params);
  if (step) {
    flush();
    if (hash !== location.hash) history.pushState(null, "", hash);
  } else {
    forget();
    waiting = hash;
    timer = setTimeout(flush, PAUSE);
  }
}

function flush() {
  if (waiting) history.replaceState(null, "", waiting);
  forget();
}

function forget() {
  clearTimeout(timer);
  waiting = undefined;
}

addEventListener("pagehide", flush);
