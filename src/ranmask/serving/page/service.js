// Questions to the service.  A question of a sort takes the place of the one before.

const waiting = new Map();
let key = null;

// `message` is for people; `again` says whether the same question may be answered later.
export class ServiceError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
    this.again = status === 0 || status === 408 || status === 429 || status >= 500;
  }
}

export function useKey(given) {
  key = given || null;
}

export const models = () => asked("models", "GET", "v1/models");

// `sort`: what it takes the place of; by default, the last question of this path.
export function post(path, body, sort = path) {
  return asked(sort, "POST", `v1/${path}`, JSON.stringify(body));
}

// Whether an error only says that a newer question took the place of this one.
export const replaced = (error) => error.name === "AbortError";

export function forget(...sorts) {
  for (const sort of sorts) waiting.get(sort)?.abort();
}

async function asked(sort, method, path, body) {
  forget(sort);
  const control = new AbortController();
  waiting.set(sort, control);
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key !== null) headers["X-API-Key"] = key;
  let answer;
  let found;
  try {
    answer = await fetch(path, { method, headers, body, signal: control.signal });
    found = await answer.text();
  } catch (error) {
    if (replaced(error)) throw error;
    throw new ServiceError("The service cannot be reached. Is it still running?", 0);
  }
  const read = parsed(found);
  if (answer.ok && read !== null) return read;
  throw new ServiceError(messageOf(answer, read), answer.status);
}

// Something between here and the service may answer with a page.
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function messageOf(answer, found) {
  const { status } = answer;
  if (status === 401) return "This service asks for a key.";
  if (status === 429) {
    const later = answer.headers.get("Retry-After");
    return `The service has too much to do just now.${later ? ` Try again in ${later} s.` : ""}`;
  }
  if (status === 504) {
    return "There was no answer in time. A shorter text, or fewer words in each copy, takes less.";
  }
  const message = found?.error?.message ?? `the service answered with ${status}`;
  return `${message[0].toUpperCase()}${message.slice(1)}${/[.!?]$/.test(message) ? "" : "."}`;
}
