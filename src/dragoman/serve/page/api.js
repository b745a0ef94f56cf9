// Questions to the service.

const AGAIN = new Set([502, 503, 504]);

/** What the service refused, in its own words, or that it could not be reached. */
export class Problem extends Error {
  constructor(message, again = false) {
    super(message);
    this.again = again; // whether it may work if it is tried again
  }
}

export const models = (signal) => ask("v1/models", { signal });

export const runs = () => ask("v1/runs", {});

export const metrics = (name) => ask(named("metrics", name), {});

/** The address of what is told about a model or a run; slashes in names stay. */
export const named = (what, name) => `v1/${what}/${name.split("/").map(encodeURIComponent).join("/")}`;

export const post = (what, question, signal) =>
  ask(`v1/${what}`, {
    signal,
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(question),
  });

async function ask(address, request) {
  const answer = await fetch(address, request).catch(unreachable);
  const told = await answer.json().catch(() => null);
  if (answer.ok && told !== null) return told;
  throw new Problem(told?.error ?? `The service gave an answer that is none (${answer.status}).`, AGAIN.has(answer.status));
}

function unreachable(error) {
  if (error.name === "AbortError") throw error;
  throw new Problem("The service cannot be reached. Is it still running?", true);
}

/** What each of several models answers; where one cannot, its problem. If none can, that is everybody's problem. */
export async function ofEach(names, question) {
  const found = await Promise.allSettled(names.map(question));
  const failed = found.filter((one) => one.status === "rejected");
  if (failed.length && failed.length === found.length) throw failed[0].reason;
  return found.map((one, at) => ({ model: names[at], answer: one.value, problem: one.reason }));
}
