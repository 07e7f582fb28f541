// The machine's attack: asked for, then played word by word.

import { setBox } from "./box.js";
import { nameOf } from "./classes.js";
import { by, counted } from "./dom.js";
import { withWords } from "./words.js";

const LONGEST = 4000; // milliseconds that the play may take
const STEP = 520; // of one word, where there are few

let playing = 0;

export const stopPlaying = () => { playing += 1; };

const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// On a phone the buttons stand below what they move.
export function lookAtBox() {
  const { top, bottom } = by("box").getBoundingClientRect();
  if (top >= 0 && bottom <= innerHeight) return;
  by("text-label").scrollIntoView({ block: "start", behavior: still() ? "instant" : "smooth" });
}

// Writes one changed word after the other into the box; `step` is called after each, with its
// place, and with null at the end.  False where something else took the box over.
export async function play(text, changes, step) {
  stopPlaying();
  const own = playing;
  const done = new Map();
  const pause = Math.min(STEP, LONGEST / Math.max(1, changes.length));
  const all = changes.filter((change) => !change.premise);
  for (const { position, after } of all) {
    done.set(position, after);
    if (still()) continue;
    setBox(withWords(text, done));
    step(position);
    await new Promise((resolve) => { setTimeout(resolve, pause); });
    if (own !== playing) return false;
  }
  setBox(withWords(text, done));
  step(null);
  return true;
}

export function showOutcome(outcome, proved) {
  const now = nameOf(outcome.final_label);
  const tried = `${counted(outcome.queries, "text")} tried, ${counted(outcome.words_changed, "word")} changed`;
  by("attack-result").className = `attack-result ${outcome.status}`;
  by("attack-result").textContent = outcome.adversarial === null
    ? outcome.status === "skipped"
      ? "There was nothing to break: without a certificate this model gives the text another answer."
      : "This text was not attacked."
    : outcome.status === "succeeded"
      ? `The attack succeeded. ${tried}: the answer is now ${now}.`
      : proved
        ? `The attack failed, as the proof says it must. ${tried}: the answer is still ${now}.`
        : `The attack failed this time. ${tried}: the answer is still ${now}. Beyond the proof it may succeed, but need not.`;
}

// What the buttons offer, for this proof.
export function offerAttacks({ result }, possible, working) {
  const { radius, words } = result;
  by("attacks").hidden = !possible;
  by("no-attacks").hidden = possible;
  // Not `disabled`, which would take the focus away from those who work by keyboard.
  by("attack-within").ariaDisabled = String(working || !radius);
  by("attack-beyond").ariaDisabled = String(working || radius === words);
  by("attack-within").textContent = radius
    ? `Let a machine change ${counted(radius, "word")}` : "Nothing to try within the proof";
  by("attack-beyond").textContent = `Let it change ${radius ? "one more" : counted(1, "word")}`;
}
