// The text, to be changed: a field a word; or, where words may come and go, one field for all.

import { by, counted, fill, make } from "./dom.js";
import { exchanged, oneWord, wordsOf } from "./words.js";

const MOST_SHOWN = 24;

let original = [];
let free = false;
let listed = null; // by synonyms only: what may take each word's place
let onChange = () => {};

export function showEditor({ words, result, replacements }, edits, changed) {
  original = words;
  free = result.threat === "edits";
  listed = replacements ?? null;
  onChange = changed;
  by("fields").hidden = free;
  by("free").hidden = !free;
  by("fields").dir = getComputedStyle(by("shown-text")).direction;
  by("how-to-break").textContent = free
    ? "Change the text as you like: replace words, add some, delete some. Their order does not matter."
    : listed !== null
      ? "Every word below is a field. The proof covers words that the model's table lists for a word, and no others."
      : "Every word below is a field. Replace as many as you like, by whatever you like.";
  by("listed").textContent = "";
  if (free) {
    fill(by("fields"));
    by("free").value = edits.text ?? words.join(" ");
  } else {
    const critical = new Set(result.critical_words);
    const own = edits.words ?? {};
    fill(by("fields"), ...words.map((word, place) => field(word, place, own[place] ?? word, critical.has(place))));
  }
  refresh();
}

function field(word, place, value, critical) {
  const one = make("input", {
    type: "text", spellcheck: "false", autocomplete: "off", autocapitalize: "off",
    class: critical ? "critical" : null,
    "aria-label": `Word ${place + 1}, ${word}${critical ? ", critical" : ""}`,
  });
  one.value = value;
  one.addEventListener("input", () => typed(one));
  one.addEventListener("keydown", (event) => moved(event, one));
  if (listed !== null) one.addEventListener("focus", () => showListed(place));
  return one;
}

const fields = () => [...by("fields").children];

// The words as they are now; an empty one is gone.
export const written = () => (free ? wordsOf(by("free").value) : fields().map((one) => one.value));

export const writtenText = () => written().filter(Boolean).join(" ");

export const untouched = () => {
  const now = written();
  return now.length === original.length && now.every((word, place) => word === original[place]);
};

export function write(words) {
  if (free) by("free").value = words.join(" ");
  else fields().forEach((one, place) => { one.value = words[place]; });
  refresh();
}

// What a link needs to make these changes again.
export function edits() {
  if (untouched()) return {};
  if (free) return { text: by("free").value };
  const changed = written().map((word, place) => [place, word]).filter(([place, word]) => word !== original[place]);
  return { words: Object.fromEntries(changed) };
}

// How far from the text that was certified: `changed` counts what its radius counts, `gone` and
// `foreign` are changes that its proof does not know.
export function difference() {
  const now = written();
  if (free) return { changed: exchanged(original, now).edits, gone: 0, foreign: 0 };
  const places = now.flatMap((word, place) => (word === original[place] ? [] : [place]));
  return {
    changed: places.length,
    gone: now.filter((word) => word === "").length,
    foreign: listed === null ? 0 : places.filter((place) => !allowed(now[place], place)).length,
  };
}

const allowed = (word, place) => word === "" || listed[place].includes(word);

function showListed(place) {
  const words = listed[place];
  const more = words.length > MOST_SHOWN ? ` and ${words.length - MOST_SHOWN} more` : "";
  by("listed").textContent = words.length
    ? `Listed for “${original[place]}”: ${words.slice(0, MOST_SHOWN).join(", ")}${more}.`
    : `Nothing is listed for “${original[place]}”.`;
}

function typed(one) {
  const joined = oneWord(one.value);
  if (joined !== one.value) one.value = joined;
  changed();
}

function changed() {
  refresh();
  onChange();
}

function moved(event, one) {
  if (event.isComposing) return;
  const start = one.selectionStart === 0 && one.selectionEnd === 0;
  const end = one.selectionStart === one.value.length && one.selectionEnd === one.value.length;
  const [back, on] = by("fields").dir === "rtl" ? ["ArrowRight", "ArrowLeft"] : ["ArrowLeft", "ArrowRight"];
  let next = null;
  if (event.key === " " || event.key === "Enter" || (event.key === on && end)) {
    next = one.nextElementSibling;
  } else if ((event.key === back || event.key === "Backspace") && start) {
    next = one.previousElementSibling;
  } else {
    return;
  }
  event.preventDefault();
  next?.focus();
  if (event.key === " " || event.key === "Enter") next?.select();
}

function refresh() {
  const sized = CSS.supports("field-sizing", "content");
  for (const [place, one] of fields().entries()) {
    one.classList.toggle("changed", one.value !== original[place]);
    one.classList.toggle("foreign", listed !== null && one.value !== original[place] && !allowed(one.value, place));
    if (!sized) one.style.width = `${Math.max(2, one.value.length) * 0.58 + 1.1}em`;
  }
  showChanges();
}

function showChanges() {
  const now = written();
  const pairs = free ? inTurn(exchanged(original, now))
    : now.flatMap((word, place) => (word === original[place] ? [] : [[original[place], word]]));
  by("changes").hidden = !pairs.length;
  const shown = pairs.slice(0, MOST_SHOWN).map(([before, after]) => make("li", {},
    before ? make("del", {}, before) : null,
    before && after ? make("span", { class: "arrow" }, " → ") : null,
    after ? make("ins", {}, after) : null));
  const more = pairs.length - shown.length;
  fill(by("changes"), ...shown, ...(more > 0 ? [make("li", {}, `and ${counted(more, "more", "more")}`)] : []));
}

function inTurn({ went, came, edits: all }) {
  return Array.from({ length: all }, (_, place) => [went[place], came[place]]);
}

by("free").addEventListener("input", changed);
