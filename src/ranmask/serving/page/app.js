// The page: when the service is asked, and what is shown of its answers.

import { askedView, keepView } from "./address.js";
import { showAnswer, summary } from "./answer.js";
import { drawChart } from "./chart.js";
import { CHOICES, cardOf, fitChoices, modelChosen, question, showExamples, showModels } from "./choices.js";
import { countFor, showCount, showNow } from "./counter.js";
import { by, counted } from "./dom.js";
import { difference, edits, showEditor, untouched, write, writtenText } from "./editor.js";
import { quiet, tell } from "./problems.js";
import { forget, models, post, replaced, useKey } from "./service.js";

const PAUSE = 350; // milliseconds after the last key before the service is asked
const LONG = 3000; // until a word on why it takes so long
const COPIES = 8;

let explained = null;
let asked = null; // the question that was answered, for predictions and attacks
let begun = false; // whether anything was asked: from then on, choices are answered at once
let attacking = false;
let later = 0;
let slow = 0;
let pending = null; // what waits for a key

// -- asking -----------------------------------------------------------------------------------

// `changes`: what a link says was changed.  `added`: whether the back button leads back from here.
async function explainText({ changes = {}, added = true, focus = false } = {}) {
  stopAsking();
  if (!by("text").value.trim()) {
    tell("error", "Write a text first, or take one of the examples.");
    by("text").focus();
    return;
  }
  if (!by("question").reportValidity()) return;
  begun = true;
  const sent = question();
  busy("Asking the copies …");
  let found;
  try {
    found = await post("explain", { ...sent, copies: COPIES });
  } catch (error) {
    if (replaced(error)) return;
    idle("");
    by("answer").hidden = true;
    by("skip").hidden = true;
    explained = null;
    failed("error", error, () => explainText({ changes, added, focus }));
    return;
  }
  stopAsking();
  asked = sent;
  explained = withNames(found);
  quiet("error", "break-error");
  by("answer").hidden = false;
  by("skip").hidden = false;
  show(changes);
  keepView(asked, edits(), added);
  idle(summary(explained.result));
  if (focus) lookAt("verdict-title");
  if (!untouched()) await predictNow();
}

function withNames(found) {
  if (cardOf(found.model)?.labels) return found;
  const labels = found.labels.map((label) => `class ${label}`);
  return { ...found, labels, result: { ...found.result, label: labels[found.result.label_id] } };
}

function stopAsking() {
  clearTimeout(later);
  forget("predict", "attack");
}

function changedByHand() {
  stopAsking();
  quiet("break-error");
  by("attack-result").textContent = "";
  showStanding(null);
  later = setTimeout(() => {
    predictNow();
    keepView(asked, edits());
  }, PAUSE);
}

async function predictNow() {
  if (untouched()) return;
  const text = writtenText();
  if (!text) {
    by("now").textContent = "There is no word left.";
    return;
  }
  const sent = Array.isArray(asked.text) ? [asked.text[0], text] : text;
  try {
    const answer = await post("predict", { ...asked, text: sent });
    quiet("break-error");
    showNow(answer.results[0].label_id);
  } catch (error) {
    if (replaced(error)) return;
    by("now").textContent = "The answer is not known.";
    failed("break-error", error, predictNow);
  }
}

async function attackWith(budget) {
  if (attacking || by(budget === "radius" ? "attack-within" : "attack-beyond").ariaDisabled === "true") return;
  stopAsking();
  quiet("break-error");
  const about = explained;
  setAttacking(true);
  by("attack-result").textContent = "Trying words …";
  try {
    const outcome = await post("attack", { ...asked, budget, label_id: explained.result.label_id });
    showOutcome(outcome, budget);
  } catch (error) {
    if (about === explained) by("attack-result").textContent = "";
    if (!replaced(error)) failed("break-error", error, () => attackWith(budget));
  }
  setAttacking(false);
}

// -- showing ----------------------------------------------------------------------------------

function show(changes) {
  by("attack-result").textContent = "";
  showAnswer(explained, asked);
  countFor(explained);
  showEditor(explained, changes, changedByHand);
  setAttacking(false);
  showStanding(null);
}

function showStanding(label_id) {
  showCount();
  showNow(label_id);
  redraw();
}

function redraw() {
  drawChart(explained.curves, untouched() ? null : difference().changed, explained.result.threat);
}

function showOutcome(outcome, budget) {
  if (outcome.adversarial === null) {
    by("attack-result").textContent = outcome.status === "skipped"
      ? "There was nothing to break: without a certificate this model gives the text another answer."
      : "This text was not attacked.";
    return;
  }
  const words = [...explained.words];
  for (const change of outcome.changes) if (!change.premise) words[change.position] = change.after;
  write(words);
  showStanding(outcome.final_label);
  const now = explained.labels[outcome.final_label];
  const tried = `${counted(outcome.queries, "text")} tried, ${counted(outcome.words_changed, "word")} changed`;
  const proved = budget === "radius" && explained.result.guarantee;
  by("attack-result").textContent = outcome.status === "succeeded"
    ? `The attack succeeded. ${tried}: the answer is now ${now}.`
    : proved
      ? `The attack failed, as the proof says it must. ${tried}: the answer is still ${now}.`
      : `The attack failed this time. ${tried}: the answer is still ${now}. Beyond the proof it may succeed, but need not.`;
  keepView(asked, edits());
}

// Not `disabled`, which would take the focus away from those who work by keyboard.
function setAttacking(working) {
  attacking = working;
  if (explained === null) return;
  const { radius, words } = explained.result;
  const possible = cardOf(asked.model)?.smoothing === "masks";
  by("attacks").hidden = !possible;
  by("no-attacks").hidden = possible;
  by("attack-within").ariaDisabled = String(working || !radius);
  by("attack-beyond").ariaDisabled = String(working || radius === words);
  by("attack-within").textContent = radius
    ? `Let a machine try, with ${counted(radius, "word")}` : "Nothing to try within the proof";
  by("attack-beyond").textContent = `Let it change ${counted((radius ?? 0) + 1, "word")}`;
}

function lookAt(name) {
  by(name).focus({ preventScroll: true });
  by(name).scrollIntoView({ block: name === "counter" ? "nearest" : "start" });
}

function busy(text) {
  by("answer").ariaBusy = "true";
  by("progress").textContent = text;
  clearTimeout(slow);
  slow = setTimeout(() => {
    by("progress").textContent = "Still asking: long texts and large models take a while …";
  }, LONG);
}

function idle(text) {
  clearTimeout(slow);
  by("answer").ariaBusy = "false";
  by("progress").textContent = text;
}

function failed(place, error, again) {
  const locked = error.status === 401;
  pending = locked ? again : null;
  by("key-form").hidden = !locked;
  tell(place, error.message, error.again ? again : null);
  if (locked) by("key").focus();
}

// -- the address ------------------------------------------------------------------------------

async function recall() {
  const view = askedView();
  if (view === null) return;
  choose("model", view.choices.model);
  modelChosen();
  for (const name of CHOICES) if (name !== "model") choose(name, view.choices[name]);
  by("text").value = view.text;
  by("premise").value = view.premise ?? "";
  if (view.premise !== null) by("pair").open = true;
  fitChoices();
  offerExamples();
  const wanted = view.choices.model;
  if (wanted && wanted !== by("model").value) {
    tell("error", `This link asks for the model ${wanted}, which is not served here. Choose another, and press “Prove it”.`);
    return;
  }
  await explainText({ changes: view.edits, added: false });
}

function choose(name, value) {
  const control = by(name);
  if (control.tagName !== "SELECT") control.value = value;
  else if ([...control.options].some((one) => one.value === value)) control.value = value;
  else if (name !== "model" && name !== "threat") control.selectedIndex = 0;
}

async function copyLink() {
  keepView(asked, edits());
  try {
    await navigator.clipboard.writeText(location.href);
    by("copied").textContent = "Copied.";
  } catch {
    by("copied").textContent = "Copy the address of this page from the address bar.";
  }
}

// -- beginning --------------------------------------------------------------------------------

async function begin() {
  try {
    showModels(await models());
  } catch (error) {
    failed("error", error, begin);
    return;
  }
  quiet("error");
  offerExamples();
  await recall();
}

function offerExamples() {
  showExamples(() => explainText({ focus: true }));
}

function chosen() {
  fitChoices();
  if (begun && by("text").value.trim()) explainText();
}

by("question").addEventListener("submit", (event) => {
  event.preventDefault();
  explainText({ focus: true });
});
by("model").addEventListener("change", () => {
  modelChosen();
  offerExamples();
  chosen();
});
for (const name of ["keep", "ensemble", "certificate", "threat", "threats"]) by(name).addEventListener("change", chosen);
by("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  useKey(by("key").value);
  by("key-form").hidden = true;
  quiet("error", "break-error");
  (pending ?? begin)();
});
by("attack-within").addEventListener("click", () => attackWith("radius"));
by("attack-beyond").addEventListener("click", () => attackWith("radius+1"));
by("restore").addEventListener("click", () => {
  write(explained.words);
  changedByHand();
  clearTimeout(later);
  keepView(asked, edits());
});
for (const [link, target] of [["skip", "verdict-title"], ["skip-words", "counter"]]) {
  by(link).addEventListener("click", (event) => {
    event.preventDefault(); // the address holds the view, not a place on the page
    lookAt(target);
  });
}
by("copy-link").addEventListener("click", copyLink);
addEventListener("hashchange", recall);
new ResizeObserver(() => explained && redraw()).observe(by("chart"));
begin();
