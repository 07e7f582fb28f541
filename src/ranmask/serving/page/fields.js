// The words as fields, and how many of them differ from the text that was certified.

import { by, counted, fill, make, strong } from "./dom.js";

let original = [];
let result = null;
let onChange = () => {};

export function showFields(explained, current, changed) {
  original = explained.words;
  result = explained.result;
  onChange = changed;
  const critical = new Set(result.critical_words);
  fill(by("fields"), ...original.map((word, place) => {
    const field = make("input", {
      type: "text", spellcheck: "false", autocomplete: "off", autocapitalize: "off",
      class: critical.has(place) ? "critical" : null,
      "aria-label": `Word ${place + 1}, ${word}${critical.has(place) ? ", critical" : ""}`,
    });
    field.value = current[place] ?? word;
    field.addEventListener("input", () => typed(field));
    field.addEventListener("keydown", (event) => moved(event, field));
    return field;
  }));
  refresh();
}

const fields = () => [...by("fields").children];

export const written = () => fields().map((field) => field.value);

export function write(words) {
  fields().forEach((field, place) => {
    field.value = words[place] ?? original[place];
  });
  refresh();
}

// One field is one word: whatever the service takes for a blank would make two of it.
export const oneWord = (text) => text.replace(/[\s\x1c-\x1f\x85]+/gu, "");

function typed(field) {
  const joined = oneWord(field.value);
  if (joined !== field.value) field.value = joined;
  refresh();
  onChange();
}

function moved(event, field) {
  const start = field.selectionStart === 0 && field.selectionEnd === 0;
  const end = field.selectionStart === field.value.length && field.selectionEnd === field.value.length;
  let next = null;
  if (event.key === " " || event.key === "Enter" || (event.key === "ArrowRight" && end)) {
    next = field.nextElementSibling;
  } else if ((event.key === "ArrowLeft" || event.key === "Backspace") && start) {
    next = field.previousElementSibling;
  } else {
    return;
  }
  event.preventDefault();
  next?.focus();
  if (event.key === " " || event.key === "Enter") next?.select();
}

function refresh() {
  for (const [place, field] of fields().entries()) {
    field.classList.toggle("changed", field.value !== original[place]);
    field.style.width = `${Math.max(2, field.value.length) * 0.58 + 1.1}em`;
  }
  showCount();
}

// How many words differ, and how many are gone: a text of fewer words is another question.
export function difference() {
  const now = written();
  return {
    changed: now.filter((word, place) => word !== original[place]).length,
    gone: now.filter((word) => word === "").length,
  };
}

export function covered() {
  const { changed, gone } = difference();
  const read = gone === 0 || result.threat === "edits";
  return read && result.radius !== null && changed <= result.radius;
}

function showCount() {
  const { changed, gone } = difference();
  const said = result.guarantee ? "proved" : "claimed, but not proved,";
  const most = result.radius;
  const box = by("counter");
  box.classList.toggle("beyond", !covered());
  box.classList.remove("broken");
  let text;
  if (most === null) {
    text = `${counted(changed, "word")} changed. Nothing is ${result.guarantee ? "proved" : "claimed"} about this text.`;
  } else if (gone > 0 && result.threat !== "edits") {
    text = `${counted(gone, "word")} left out: beyond the proof, which is about words replaced one for one.`;
  } else if (changed === 0) {
    text = `No word changed yet. Up to ${counted(most, "change")} ${most === 1 ? "is" : "are"} ${result.guarantee ? "covered by the proof" : "covered by the claim"}.`;
  } else if (changed <= most) {
    text = `${changed} of ${counted(most, "word")} changed: still ${said} to be ${result.label}.`;
  } else {
    const more = changed - most;
    text = `${counted(changed, "word")} changed, ${more} more than the ${most} covered: beyond the ${result.guarantee ? "proof" : "claim"}.`;
  }
  by("counted").textContent = text;
}

export function showNow(prediction) {
  const { changed } = difference();
  if (changed === 0) {
    fill(by("now"), "The answer is ", strong(result.label), ".");
  } else if (prediction === null) {
    fill(by("now"), "Asking …");
  } else if (prediction.label_id === result.label_id) {
    fill(by("now"), "The answer is still ", strong(prediction.label), ".");
  } else {
    by("counter").classList.add("broken");
    const unheard = covered() && result.guarantee && result.alpha === null;
    fill(by("now"), unheard ? "Within the proof the answer changed to " : "Broken: the answer is now ",
      strong(prediction.label), unheard ? ". That must not happen: please report it with this link." : ".");
  }
}
