// Requests to the service.

const RETRYABLE = new Set([502, 503, 504]);

/** An error response, with the service's own message, or a service that cannot be reached. */
export class ApiError extends Error {
  constructor(message, retryable = false) {
    super(message);
    this.retryable = retryable;
  }
}

export const models = (signal) => request("v1/models", { signal });

export const runs = () => request("v1/runs", {});

export const metrics = (name) => request(resource("metrics", name), {});

/** Return the URL of a model's or run's resource; slashes in names stay. */
export const resource = (kind, name) => `v1/${kind}/${name.split("/").map(encodeURIComponent).join("/")}`;

export const post = (endpoint, body, signal) =>
  request(`v1/${endpoint}`, {
    signal,
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

async function request(path, options) {
  const response = await fetch(path, options).catch(throwUnreachable);
  const body = await response.json().catch(() => null);
  if (response.ok && body !== null) return body;
  throw new ApiError(body?.error ?? `The service sent an invalid answer (${response.status}).`, RETRYABLE.has(response.status));
}

function throwUnreachable(error) {
  if (error.name === "AbortError") throw error;
  throw new ApiError("The service cannot be reached. Is it still running?", true);
}

/** Send a request per model; return each answer, or the error where it failed. Throw if all failed. */
export async function forEachModel(names, send) {
  const results = await Promise.allSettled(names.map(send));
  const failed = results.filter((result) => result.status === "rejected");
  if (failed.length && failed.length === results.length) throw failed[0].reason;
  return results.map((result, index) => ({ model: names[index], answer: result.value, error: result.reason }));
}
