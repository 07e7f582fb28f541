// Questions to the service.  A question of a sort takes the place of the one before.

const waiting = new Map();
let key = null;

export class ServiceError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export function useKey(given) {
  key = given || null;
}

export const models = () => asked("models", "GET", "v1/models");

export function post(sort, body) {
  return asked(sort, "POST", `v1/${sort}`, JSON.stringify(body));
}

// Whether an error only says that a newer question took the place of this one.
export const replaced = (error) => error.name === "AbortError";

export function forget(sort) {
  waiting.get(sort)?.abort();
}

async function asked(sort, method, path, body) {
  forget(sort);
  const control = new AbortController();
  waiting.set(sort, control);
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key !== null) headers["X-API-Key"] = key;
  let answer;
  try {
    answer = await fetch(path, { method, headers, body, signal: control.signal });
  } catch (error) {
    if (replaced(error)) throw error;
    throw new ServiceError("The service cannot be reached. Is it still running?", 0);
  }
  const found = await answer.json().catch((error) => {
    if (replaced(error)) throw error;
    return null;
  });
  if (answer.ok && found !== null) return found;
  throw new ServiceError(messageOf(answer, found), answer.status);
}

function messageOf(answer, found) {
  const message = found?.error?.message ?? `The service answered with ${answer.status}.`;
  const later = answer.headers.get("Retry-After");
  return later === null ? message : `${message} Try again in ${later} s.`;
}
