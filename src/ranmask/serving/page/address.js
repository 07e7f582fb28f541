// The address of the page holds the view: what was asked, and what was changed since.

import { CHOICES } from "./choices.js";
import { by } from "./dom.js";
import { oneWord } from "./words.js";

let shown = null;

// `added`: a view of its own, which the back button leaves again.
export function keepView(asked, edits, added = false) {
  const state = new URLSearchParams();
  for (const name of CHOICES) if (by(name).value && used(by(name))) state.set(name, by(name).value);
  // What was answered: the field may hold the beginning of another text.
  const [premise, text] = Array.isArray(asked.text) ? asked.text : [null, asked.text];
  state.set("text", text);
  if (premise !== null) state.set("premise", premise);
  if (edits.words) state.set("words", JSON.stringify(edits.words));
  if (edits.text) state.set("edited", edits.text);
  const link = `#${state}`;
  if (added && shown !== null && link !== shown) history.pushState(null, "", link);
  else history.replaceState(null, "", link);
  shown = location.hash;
}

const used = (control) => !control.disabled && !control.closest("p").hidden;

// The view that the address asks for; null where it is shown already, or asks for none.
export function askedView() {
  const state = new URLSearchParams(location.hash.slice(1));
  if (location.hash === shown || !state.has("text")) return null;
  shown = location.hash;
  return {
    choices: Object.fromEntries(CHOICES.map((name) => [name, state.get(name) ?? ""])),
    text: state.get("text"),
    premise: state.get("premise"),
    edits: { words: wordsIn(state.get("words")), text: state.get("edited") },
  };
}

// Words by their places; links are written by anyone.
function wordsIn(text) {
  try {
    const words = Object.entries(JSON.parse(text ?? "{}") ?? {});
    return Object.fromEntries(words.map(([place, word]) => [place, oneWord(String(word))]));
  } catch {
    return {};
  }
}
