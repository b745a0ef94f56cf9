// The view and its inputs are kept in the URL, so that reloading, bookmarks and the back button work.

const DELAY = 250; // milliseconds; browsers limit how often the URL may change

let timer, pendingHash;

/** Return the view that the URL names, and its inputs. */
export function read() {
  cancel();
  const hash = location.hash.slice(1);
  const separator = hash.indexOf("?");
  const [view, query] = separator < 0 ? [hash, ""] : [hash.slice(0, separator), hash.slice(separator + 1)];
  return { view, params: new URLSearchParams(query) };
}

export function link(view, params) {
  const query = new URLSearchParams(params).toString();
  return query ? `#${view}?${query}` : `#${view}`;
}

/** Write the inputs. Typing replaces the current history entry; a choice adds one for the back button. */
export function write(view, params, isChoice = false) {
  const hash = link(view, params);
  if (isChoice) {
    flush();
    if (hash !== location.hash) history.pushState(null, "", hash);
  } else {
    cancel();
    pendingHash = hash;
    timer = setTimeout(flush, DELAY);
  }
}

function flush() {
  if (pendingHash) history.replaceState(null, "", pendingHash);
  cancel();
}

function cancel() {
  clearTimeout(timer);
  pendingHash = undefined;
}

addEventListener("pagehide", flush);
