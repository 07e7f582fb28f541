// The page: when the service is asked, and what is shown of its answers.
// `pinned` is the text that the proof is about, explained.  The box holds it, or what became of it.
import { askedView, keepView, writeView } from "./address.js";
import { lookAtBox, offerAttacks, play, showOutcome, stopPlaying } from "./attack.js";
import {
  boxText, boxWords, forgetVotes, isAnother, isUntouched, learnVotes, paint, setBox, showChanges, showListed, showReadings, standing,
} from "./box.js";
import { compare, showAssumptions, showMenu } from "./certificates.js";
import {
  CHOICES, allowsEdits, cardOf, choose, examples, fitChoices, modelChosen, question, showExamples, showModels,
} from "./choices.js";
import { nameClasses, sharesOf } from "./classes.js";
import { by, counted, fill, make, say } from "./dom.js";
import { drawEnough, drawVoting } from "./pictures.js";
import { busy, failed, idle, quiet, tell } from "./problems.js";
import { forget, models, post, replaced } from "./service.js";
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
let example = null; // the last one that was taken
let attacking = false;
let took = 0;
let later = 0;
let waiting = 0;

// -- the pinned text ----------------------------------------------------------------------------

// `edited`: what a link says became of it.  `added`: whether the back button leads back from here.
async function prove(text, { edited = null, added = true, kept = false } = {}) {
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

const pinnedText = () => (Array.isArray(asked.text) ? asked.text[1] : asked.text);

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

function noAnswer() {
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

function typed(event) {
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

function setWriting(is) {
  writing = is;
  by("writing").hidden = !is || pinned === null;
  by("breaking").hidden = is || pinned === null;
  say("text-label", is ? "Write a text" : "Change any word");
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
  restore();
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

function restore() {
  stopPlaying();
  stopAsking();
  setBox(pinnedText());
  now = last = pinned;
  refresh();
  keepView(asked, boxText());
}

// -- the address --------------------------------------------------------------------------------

async function recall() {
  const view = askedView();
  if (view === null) return false;
  setWriting(false);
  choose("model", view.choices.model);
  modelChosen();
  for (const name of CHOICES) if (name !== "model") choose(name, view.choices[name]);
  by("premise").value = view.premise ?? "";
  fitChoices();
  offerExamples();
  const wanted = view.choices.model;
  if (wanted && wanted !== by("model").value) {
    setBox(view.text);
    noAnswer();
    tell(`This link asks for the model ${wanted}, which is not served here. Choose another one below.`);
    return true;
  }
  await prove(view.text, { edited: view.edited, added: false });
  return true;
}

async function copyLink() {
  writeView(asked, boxText());
  try {
    await navigator.clipboard.writeText(location.href);
    say("copied", "Copied.");
  } catch {
    say("copied", "Copy the address of this page from the address bar.");
  }
}

// -- beginning ----------------------------------------------------------------------------------

async function begin() {
  try {
    showModels(await models());
  } catch (error) {
    failed(error, begin);
    return;
  }
  quiet();
  offerExamples();
  if (!await recall()) takeFirst();
}

function offerExamples() {
  showExamples(take, () => {
    setBox("");
    prove("");
    by("text").focus();
  });
}

// A solved example to begin with, where there is one for the model's classes.
function takeFirst() {
  const [first] = examples();
  if (first) take(first, false);
  else prove("");
}

function take(text, added = true) {
  example = text.text;
  by("premise").value = text.premise ?? "";
  setWriting(false);
  prove(example, { added });
}

function chosen() {
  fitChoices();
  const text = pinned === null ? boxText() : pinnedText();
  if (text.trim()) prove(text, { edited: boxText() });
  else takeFirst();
}

by("text").addEventListener("input", typed);
document.addEventListener("selectionchange", () => pinned && document.activeElement === by("text") && showListed(pinned));
by("premise").addEventListener("change", chosen);
by("model").addEventListener("change", () => {
  const own = boxText() !== example;
  modelChosen();
  offerExamples();
  if (own || examples().some((one) => one.text === example)) chosen();
  else takeFirst();
});
for (const name of ["keep", "ensemble", "certificate", "threat-substitutions", "threat-edits"]) by(name).addEventListener("change", chosen);
by("done").addEventListener("click", () => {
  setWriting(false);
  refresh();
  by("text").focus();
});
by("attack-within").addEventListener("click", () => attackWith("radius"));
by("attack-beyond").addEventListener("click", () => attackWith("radius+1"));
by("restore").addEventListener("click", () => {
  restore();
  by("attack-result").textContent = "";
  by("text").focus(); // this button is gone now
});
by("renew").addEventListener("click", () => {
  prove(boxText());
  by("text").focus();
});
by("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address holds the view, not a place on the page
  by("text").focus();
});
by("compared").addEventListener("toggle", () => pinned && compare(asked, pinned.result));
by("copy-link").addEventListener("click", copyLink);
addEventListener("hashchange", recall);
new ResizeObserver(() => pinned && now !== undefined && drawPictures(standing(pinned))).observe(by("stairs"));
begin();
