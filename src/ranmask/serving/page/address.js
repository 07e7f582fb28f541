// The address of the page holds the view: what was asked, and the text as it was changed since.

import { CHOICES, cardOf, chosen } from "./choices.js";
import { by } from "./dom.js";

const PAUSE = 300; // milliseconds: browsers refuse an address that changes with every key

let shown = null;
let later = 0;

// `added`: a view of its own, which the back button leaves again.
export function keepView(asked, text, added = false) {
  clearTimeout(later);
  if (added) writeView(asked, text, added);
  else later = setTimeout(writeView, PAUSE, asked, text);
}

export function writeView(asked, text, added = false) {
  clearTimeout(later);
  const state = new URLSearchParams();
  for (const name of CHOICES) if (used(name)) state.set(name, chosen(name));
  const [premise, own] = Array.isArray(asked.text) ? asked.text : [null, asked.text];
  state.set("text", own);
  if (premise !== null) state.set("premise", premise);
  if (text !== own) state.set("edited", text);
  const link = `#${state}`;
  if (added && shown !== null && link !== shown) history.pushState(null, "", link);
  else history.replaceState(null, "", link);
  shown = location.hash;
}

function used(name) {
  if (name === "threat") return cardOf(chosen("model"))?.smoothing === "masks";
  return by(name).value && !by(name).disabled && !by(name).closest("p").hidden;
}

// The view that the address asks for; null where it is shown already, or asks for none.
export function askedView() {
  const state = new URLSearchParams(location.hash.slice(1));
  if (location.hash === shown || !state.has("text")) return null;
  clearTimeout(later);
  shown = location.hash;
  return {
    choices: Object.fromEntries(CHOICES.map((name) => [name, state.get(name) ?? ""])),
    text: state.get("text"),
    premise: state.get("premise"),
    edited: state.get("edited"),
  };
}
