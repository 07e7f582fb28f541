// A detector's view: the text that is flagged, what was put around it since, and what that changes.
// `pinned` is what is said of the text that the proof is about; the box holds it, or what became of it.
import { keepView } from "./address.js";
import { lookAtBox } from "./attack.js";
import { boxText, isAnother, setBox, showTools } from "./box.js";
import { showAssumptions } from "./certificates.js";
import { question } from "./choices.js";
import { by, say } from "./dom.js";
import { HARMLESS } from "./examples.js";
import { apartFrom, learnValues, paintFlag, showFlag, showNow, showPromises, spokenFlag } from "./flagged.js";
import { busy, failed, idle, quiet } from "./problems.js";
import { forget, post, replaced } from "./service.js";
import { wordsOf } from "./words.js";

const PAUSE = 40; // milliseconds after the last key before the service is asked
const LATE = 400; // until an answer that has not come is no longer the one of before

let asked = null; // the question about the pinned text
let pinned = null;
let now = null; // what is said of the text in the box; undefined while an older answer is shown
let writing = false; // whether the text is still being written: the proof follows it
let added = 0; // how many sentences were put around it again
let later = 0;
let waiting = 0;

export const asksFor = () => asked;

export const pinnedText = () => (pinned === null ? null : asked.text);

// `edited`: what became of it.  `added`: whether the back button leads back from here.
export async function prove(text, { edited = null, added: leadsBack = true, kept = false } = {}) {
  stopAsking();
  if (!text.trim()) {
    noText();
    return;
  }
  if (!kept) setBox(edited?.trim() ? edited : text);
  const { model } = question(text);
  busy("Asking the detector …");
  let found;
  try {
    found = await answerTo(model, text, "pinned");
  } catch (error) {
    if (replaced(error)) return;
    idle("");
    noAnswer();
    failed(error, () => prove(text, { edited, added: leadsBack, kept }));
    return;
  }
  if (!found.flagged && boxText() !== text) { // nothing to get past: what was made of it counts
    await prove(boxText(), { added: leadsBack, kept: true });
    return;
  }
  asked = { model, text };
  pinned = { result: found, words: wordsOf(text) };
  now = isUntouched() ? found : undefined;
  quiet();
  for (const name of ["flag", "share"]) by(name).hidden = false;
  setWriting(writing || !found.flagged); // there is nothing yet to get past
  showFlag(pinned);
  showPromises(found);
  showAssumptions(found);
  idle(spokenFlag(found));
  refresh();
  keepView(asked, boxText(), leadsBack);
  if (!isUntouched()) await askLive();
}

async function answerTo(model, text, sort) {
  const { results: [found] } = await post("detect", { model, text, word_values: true }, sort);
  learnValues(model, text, found);
  return found;
}

const isUntouched = () => wordsOf(boxText()).join(" ") === pinned.words.join(" ");

// Shows the text in the box, and what is known of it.
function refresh(state = {}) {
  const apart = apartFrom(pinned, wordsOf(boxText()));
  paintFlag(now ?? null, apart);
  showNow(pinned, { ...apart, untouched: isUntouched(), writing }, now, state);
  by("restore").hidden = by("renew").hidden = isUntouched();
}

export function typed(event) {
  stopAsking();
  quiet();
  const another = pinned !== null && !writing && isAnother(pinned, event);
  if (!boxText().trim() || another === "begun") setWriting(true);
  if (writing || another || pinned === null) {
    forget("pinned");
    paintFlag(null, null);
    later = setTimeout(() => prove(boxText(), { added: another === "pasted", kept: true }), PAUSE);
    return;
  }
  now = isUntouched() ? pinned.result : undefined;
  refresh();
  later = setTimeout(askLive, PAUSE);
}

async function askLive() {
  keepView(asked, boxText());
  if (isUntouched()) return;
  const about = pinned;
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    now = null;
    refresh();
  }, LATE);
  try {
    const found = await answerTo(asked.model, boxText(), "live");
    if (about !== pinned) return;
    clearTimeout(waiting);
    now = found;
    quiet();
    refresh();
  } catch (error) {
    if (replaced(error)) return;
    clearTimeout(waiting);
    now = null;
    refresh({ unknown: true });
    failed(error, askLive);
  }
}

function stopAsking() {
  clearTimeout(later);
  clearTimeout(waiting);
  forget("live");
}

function noText() {
  forget("pinned");
  idle("");
  noAnswer();
  setWriting(true);
  paintFlag(null, null);
  say("text-note", "A word is what stands between blanks.");
}

export function noAnswer() {
  pinned = null;
  for (const name of ["flag", "reason", "share", "assumes", "breaking", "paddings"]) by(name).hidden = true;
}

// Another view takes the place of this one.
export function leave() {
  stopAsking();
  forget("pinned");
  noAnswer();
}

export function setWriting(is) {
  writing = is;
  const ready = pinned?.result.flagged ?? false;
  showTools(is, ready, is ? "Write a text" : "Add and change what you like");
  by("paddings").hidden = is || !ready;
  by("attacks").hidden = true;
}

export function finish() {
  setWriting(false);
  refresh();
}

export function restore() {
  stopAsking();
  setBox(asked.text);
  now = pinned.result;
  refresh();
  keepView(asked, boxText());
}

// Another harmless sentence, in front of what is there or behind it.
function pad(place) {
  const text = boxText().trim();
  const sentence = HARMLESS.find((one) => !text.includes(one)) ?? HARMLESS[added++ % HARMLESS.length];
  setBox(place === "before" ? `${sentence} ${text}` : `${text} ${sentence}`);
  stopAsking();
  now = undefined;
  refresh();
  lookAtBox();
  askLive();
}

by("pad-before").addEventListener("click", () => pad("before"));
by("pad-behind").addEventListener("click", () => pad("behind"));
