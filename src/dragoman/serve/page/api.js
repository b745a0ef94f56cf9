// Requests to the service.

const RETRYABLE = new Set([429, 502, 503, 504]);
const FORBIDDEN = 403;
const KEY = "api_key";

/** An error response, with the service's own message, or a service that cannot be reached. */
export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.retryable = status === undefined || RETRYABLE.has(status);
    this.needsKey = status === FORBIDDEN;
  }
}

/**
 * Keep the API key until the browser is closed. The frames of reports cannot send headers, so they get a cookie, which is
 * sent for nothing else.
 */
export function setKey(key) {
  sessionStorage.setItem(KEY, key);
  const path = new URL("v1/reports", document.baseURI).pathname;
  document.cookie = `${KEY}=${encodeURIComponent(key)}; path=${path}; samesite=strict`;
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
  const key = sessionStorage.getItem(KEY);
  const headers = { ...options.headers, ...(key && { authorization: `Bearer ${key}` }) };
  const response = await fetch(path, { ...options, headers }).catch(throwUnreachable);
  const body = await response.json().catch(() => null);
  if (response.ok && body !== null) return body;
  throw new ApiError(body?.error ?? `The service sent an invalid answer (${response.status}).`, response.status);
}

function throwUnreachable(error) {
  if (error.name === "AbortError") throw error;
  throw new ApiError("The service cannot be reached. Is it still running?");
}

/** Send a request per model; return each answer, or the error where it failed. Throw if all failed. */
export async function forEachModel(names, send) {
  const results = await Promise.allSettled(names.map(send));
  const failed = results.filter((result) => result.status === "rejected");
  if (failed.length && failed.length === results.length) throw failed[0].reason;
  return results.map((result, index) => ({ model: names[index], answer: result.value, error: result.reason }));
}
