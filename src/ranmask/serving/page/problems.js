// What is said while the service is asked, and what went wrong, with a way to try again.

import { by, fill, make, say } from "./dom.js";
import { useKey } from "./service.js";

const SOON = 300; // milliseconds: an answer that comes before is worth no word
const LONG = 3000; // until a word on why it takes so long

let waiting = 0;
let pending = null; // what waits for a key

const answers = document.querySelectorAll(".answer");

export function busy(asking = "Asking the copies …") {
  for (const answer of answers) answer.ariaBusy = "true";
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    by("progress").className = "note";
    say("progress", asking);
    waiting = setTimeout(() => say("progress", "Still asking: long texts and large models take a while …"), LONG);
  }, SOON);
}

// `text`: the answer in a line, for those who do not see it.
export function idle(text) {
  clearTimeout(waiting);
  for (const answer of answers) answer.ariaBusy = "false";
  by("progress").className = "spoken";
  say("progress", text);
}

export function tell(message, again = null) {
  const box = by("error");
  box.hidden = false;
  fill(box, make("p", {}, message));
  if (again === null) return;
  const button = make("button", { type: "button" }, "Try again");
  button.addEventListener("click", () => {
    quiet();
    again();
  });
  box.append(button);
}

export function quiet() {
  by("error").hidden = true;
  fill(by("error"));
}

// A question that was not answered: `again` asks it once more.
export function failed(error, again) {
  if (error.status === undefined) throw error; // not the service's, but a fault of this page
  const locked = error.status === 401;
  pending = locked ? again : null;
  by("key-form").hidden = !locked;
  tell(error.message, error.again ? again : null);
  if (locked) by("key").focus();
}

by("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  useKey(by("key").value);
  by("key-form").hidden = true;
  quiet();
  pending?.();
});
