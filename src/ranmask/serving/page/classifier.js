// A classifier's view: the text that a proof is about, what became of it, and how it was answered.
// `pinned` is the text that the proof is about, explained.  The box holds it, or what became of it.
import { keepView } from "./address.js";
import { lookAtBox, offerAttacks, play, showOutcome, stopPlaying } from "./attack.js";
import {
  boxText, boxWords, forgetVotes, isAnother, isUntouched, learnVotes, paint, setBox, showChanges, showListed, showReadings, showTools, standing,
} from "./box.js";
import { compare, showAssumptions, showMenu } from "./certificates.js";
import { allowsEdits, cardOf, choose, question } from "./choices.js";
import { nameClasses, sharesOf } from "./classes.js";
import { by, counted, fill, make, say } from "./dom.js";
import { drawEnough, drawVoting } from "./pictures.js";
import { busy, failed, idle, quiet, tell } from "./problems.js";
import { forget, post, replaced } from "./service.js";
import { layBars, showStanding, showVerdict, surely, unitOf } from "./standing.js";

const PAUSE = 40; // milliseconds after the last key before the service is asked
const SLOW = 1000; // from which edits are answered by votes alone, after a longer pause
const LONGER = 400;
const COPIES = 100;

let asked = null; // the question about the pinned text
let pinned = null;
let now = null; // the answer to the text in the box; undefined while an older one is shown
let last = null; // the last text in the box that was explained
let writing = false; // whether the text is still being written: the proof follows it
let attacking = false;
let took = 0;
let later = 0;
let waiting = 0;

// -- the pinned text ----------------------------------------------------------------------------

// `edited`: what a link says became of it.  `added`: whether the back button leads back from here.
export async function prove(text, { edited = null, added = true, kept = false } = {}) {
  stopAsking();
  if (!text.trim()) {
    noText();
    return;
  }
  if (!by("keep").reportValidity()) return;
  if (!by("pair").hidden && !by("premise").value.trim()) {
    repaint();
    tell("Write a premise, too: this model reads pairs of texts.");
    return;
  }
  if (!kept) setBox(edited?.trim() ? edited : text);
  repaint();
  const sent = question(text);
  busy();
  const begun = performance.now();
  let found;
  try {
    found = await post("explain", { ...sent, copies: COPIES });
  } catch (error) {
    if (replaced(error)) return;
    idle("");
    noAnswer();
    failed(error, () => prove(text, { edited, added, kept }));
    return;
  }
  took = performance.now() - begun;
  if (asked === null || key(asked) !== key(sent)) forgetVotes();
  asked = sent;
  pinned = last = withNames(found);
  now = untouched() ? pinned : undefined;
  quiet();
  showPinned();
  refresh();
  keepView(asked, boxText(), added);
  if (!untouched()) await askLive();
}

const key = ({ model, options, text }) => JSON.stringify([model, options, Array.isArray(text) ? text[0] : null]);

export const asksFor = () => asked;

export const pinnedText = () => (pinned === null ? null : Array.isArray(asked.text) ? asked.text[1] : asked.text);

function withNames(found) {
  if (cardOf(found.model)?.labels) return found;
  const labels = found.labels.map((label) => `class ${label}`);
  return { ...found, labels, result: { ...found.result, label: labels[found.result.label_id] } };
}

function showPinned() {
  const { result } = pinned;
  nameClasses(pinned.labels, sharesOf(result));
  learnVotes(pinned);
  for (const name of ["answer", "pictures", "share"]) by(name).hidden = false;
  by("attack-result").textContent = "";
  setWriting(writing);
  showVerdict(result);
  layBars(result);
  showReadings(pinned);
  showAssumptions(result);
  showMenu(asked, result);
  compare(asked, result);
  setAttacking(false);
  idle(result.radius === null ? `${result.label}; nothing is proved.`
    : `${result.label}, ${surely(result, "claimed")} for ${counted(result.radius, unitOf(result))}.`);
}

function noText() {
  forget("explain");
  idle("");
  noAnswer();
  setWriting(true);
  repaint();
  say("text-note", "A word is what stands between blanks.");
}

const repaint = () => paint(last, { changed: new Set() });

// Another view takes the place of this one.
export function leave() {
  stopPlaying();
  stopAsking();
  forget("explain", "menu", "compare");
  noAnswer();
}

export function noAnswer() {
  pinned = null;
  for (const name of ["answer", "pictures", "share", "assumes", "compared", "menu", "breaking", "changes", "readings"]) by(name).hidden = true;
  by("attack-result").textContent = "";
}

// -- the text in the box ------------------------------------------------------------------------

const untouched = () => isUntouched(pinned);

// Shows the text in the box, and what is known of it.  `hit`: the place that an attack just changed.
function refresh({ hit = null, unknown = false } = {}) {
  const state = { ...standing(pinned), unknown };
  const critical = state.moved ? new Set() : new Set(pinned.result.critical_words);
  paint(last, { changed: state.places, critical, hit: new Set(hit === null ? [] : [hit]) });
  const said = now?.result ?? now; // of an explanation, its result
  showStanding(pinned, state, said);
  showChanges(state.pairs);
  by("restore").hidden = by("renew").hidden = state.untouched;
  offerEdits(state);
  if (now !== undefined) drawPictures(state);
}

function drawPictures(state) {
  const explained = now?.curves ? now : null;
  if (explained) {
    drawVoting(explained);
    showReadings(explained);
  }
  const own = explained?.curves[pinned.result.certificate]?.margins[0] ?? null;
  const same = explained?.result.label_id === pinned.result.label_id;
  const margin = own === null || state.untouched || state.moved ? null : same ? own : -own;
  drawEnough(pinned, { changed: margin === null ? null : state.changed, margin });
}

export function typed(event) {
  stopPlaying();
  stopAsking();
  quiet();
  by("attack-result").textContent = "";
  const another = pinned !== null && !writing && isAnother(pinned, event);
  if (!boxText().trim() || another === "begun") setWriting(true);
  if (writing || another || pinned === null) {
    forget("explain");
    repaint();
    later = setTimeout(() => prove(boxText(), { added: another === "pasted", kept: true }), pause());
    return;
  }
  now = untouched() ? pinned : undefined;
  if (now) last = now;
  refresh();
  later = setTimeout(askLive, pause());
}

const pause = () => (took > SLOW ? LONGER : PAUSE);

async function askLive() {
  keepView(asked, boxText());
  const words = boxWords(pinned.words.length);
  if (untouched() || !words.length || words.includes("")) return;
  const about = pinned;
  const text = words.join(" ");
  const sent = { ...asked, text: Array.isArray(asked.text) ? [asked.text[0], text] : text };
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    now = null;
    refresh();
  }, LONGER);
  try {
    const lean = took > SLOW;
    const found = lean ? (await post("predict", sent, "live")).results[0]
      : withNames(await post("explain", { ...sent, copies: COPIES }, "live"));
    if (about !== pinned) return;
    clearTimeout(waiting);
    now = found;
    if (!lean) {
      last = found;
      learnVotes(found);
    }
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
  forget("live", "attack");
}

export function setWriting(is) {
  writing = is;
  showTools(is, pinned !== null, is ? "Write a text" : "Change any word");
}

export function finish() {
  setWriting(false);
  refresh();
}

// Where words were added and the proof could cover that, a way to ask for it.
function offerEdits({ moved }) {
  const can = moved && allowsEdits();
  const { words, words_read: read } = pinned.result;
  const note = "Colours: what each word votes for. Dotted: what the answer hangs on most.";
  const unread = words > read ? ` Struck out: ${counted(words - read, "word")} that the model does not read.` : "";
  if (!can) {
    say("text-note", note + unread);
    return;
  }
  if (by("allow-edits")) return;
  const allow = make("button", { type: "button", id: "allow-edits", class: "link" }, "Prove it against those, too");
  allow.addEventListener("click", () => {
    choose("threat", "edits");
    prove(pinnedText(), { edited: boxText() });
    by("text").focus();
  });
  fill(by("text-note"), "Words were added or left out. ", allow);
}

// -- attacks ------------------------------------------------------------------------------------

async function attackWith(budget) {
  if (attacking || by(budget === "radius" ? "attack-within" : "attack-beyond").ariaDisabled === "true") return;
  stopAsking();
  quiet();
  const about = pinned;
  setAttacking(true);
  putBack();
  lookAtBox();
  say("attack-result", "Trying words …");
  try {
    const outcome = await post("attack", { ...asked, budget, label_id: pinned.result.label_id });
    if (about === pinned) await showAttack(outcome, budget);
  } catch (error) {
    if (about === pinned) say("attack-result", "");
    if (!replaced(error)) failed(error, () => attackWith(budget));
  }
  if (about === pinned) setAttacking(false);
}

async function showAttack(outcome, budget) {
  by("box").classList.remove("searching");
  if (outcome.adversarial !== null) {
    say("attack-result", `${counted(outcome.queries, "text")} tried. The best one that it found:`);
    const step = (place) => {
      now = undefined;
      refresh({ hit: place });
      if (place === null || took < SLOW) askLive();
    };
    if (!await play(pinnedText(), outcome.changes, step)) return;
  }
  showOutcome(outcome, budget === "radius" && pinned.result.guarantee);
}

function setAttacking(working) {
  attacking = working;
  by("box").classList.toggle("searching", working);
  if (pinned !== null) offerAttacks(pinned, cardOf(asked.model)?.smoothing === "masks", working);
}

export function restore() {
  by("attack-result").textContent = "";
  putBack();
}

function putBack() {
  stopPlaying();
  stopAsking();
  setBox(pinnedText());
  now = last = pinned;
  refresh();
  keepView(asked, boxText());
}

document.addEventListener("selectionchange", () => pinned && document.activeElement === by("text") && showListed(pinned));
by("attack-within").addEventListener("click", () => attackWith("radius"));
by("attack-beyond").addEventListener("click", () => attackWith("radius+1"));
by("compared").addEventListener("toggle", () => pinned && compare(asked, pinned.result));
new ResizeObserver(() => pinned && now !== undefined && drawPictures(standing(pinned))).observe(by("stairs"));
