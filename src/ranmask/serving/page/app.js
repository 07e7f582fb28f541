// The page: what is chosen, what is asked, and the address that reproduces it.

import { showAnswer } from "./answer.js";
import { drawChart } from "./chart.js";
import { by, counted, fill, make } from "./dom.js";
import { EXAMPLES } from "./examples.js";
import { difference, oneWord, showFields, showNow, write, written } from "./fields.js";
import { forget, models, post, replaced, useKey } from "./service.js";

const PAUSE = 350; // milliseconds after the last key before the service is asked
const COPIES = 8;
const CHOICES = ["model", "keep", "ensemble", "certificate"];

let cards = new Map();
let explained = null;
let asked = null; // the question that was answered, for predictions and attacks
let later = 0;
let shownLink = null;

const textOf = (text, premise) => (premise ? [premise, text] : text);

function question() {
  const options = { certificate: by("certificate").value };
  if (by("keep").value) options.keep = Number(by("keep").value);
  const votes = options.certificate !== "exact";
  if (votes) options.ensemble = "vote";
  else if (by("ensemble").value) options.ensemble = by("ensemble").value;
  const card = cards.get(by("model").value);
  if (card && card.smoothing !== "masks") {
    for (const name of ["certificate", "keep"]) delete options[name];
  }
  return { model: by("model").value, text: textOf(by("text").value, by("premise").value), options };
}

// -- asking -----------------------------------------------------------------------------------

async function explainText(words = []) {
  forget("predict");
  forget("attack");
  clearTimeout(later);
  if (!by("text").value.trim()) {
    showError("Write a text first, or take one of the examples.");
    by("text").focus();
    return false;
  }
  if (!by("question").reportValidity()) return false;
  const sent = question();
  busy(true, "Asking the copies …");
  try {
    explained = await post("explain", { ...sent, copies: COPIES });
  } catch (error) {
    if (!replaced(error)) {
      by("answer").hidden = true;
      explained = null;
      failed(error);
    }
    return false;
  }
  asked = sent;
  busy(false, "");
  showError("");
  by("answer").hidden = false;
  by("attack-result").textContent = "";
  showAnswer(explained);
  showFields(explained, words, changedByHand);
  attackButtons();
  redraw();
  showNow(null);
  if (difference().changed) await predictNow();
  remember();
  return true;
}

function changedByHand() {
  by("attack-result").textContent = "";
  forget("predict");
  forget("attack");
  showNow(null);
  redraw();
  clearTimeout(later);
  later = setTimeout(() => {
    predictNow();
    remember();
  }, PAUSE);
}

async function predictNow() {
  const words = written();
  if (!difference().changed) return;
  const text = words.filter(Boolean).join(" ");
  if (!text) {
    by("now").textContent = "There is no word left.";
    return;
  }
  const premise = Array.isArray(asked.text) ? asked.text[0] : "";
  try {
    const answer = await post("predict", { ...asked, text: textOf(text, premise) });
    const [found] = answer.results;
    if (found.error) by("now").textContent = found.error;
    else showNow(found);
    showError("");
  } catch (error) {
    if (!replaced(error)) {
      by("now").textContent = "";
      failed(error);
    }
  }
}

async function attackWith(budget) {
  clearTimeout(later);
  forget("predict");
  attackButtons(true);
  by("attack-result").textContent = "Trying words …";
  try {
    const label_id = explained.result.label_id;
    const outcome = await post("attack", { ...asked, budget, label_id });
    showOutcome(outcome, budget);
  } catch (error) {
    by("attack-result").textContent = "";
    if (!replaced(error)) failed(error);
  }
  if (explained) attackButtons();
}

function showOutcome(outcome, budget) {
  if (outcome.status === "error" || outcome.adversarial === null) {
    by("attack-result").textContent = outcome.error ?? "This text was not attacked.";
    return;
  }
  const after = Array.isArray(outcome.adversarial) ? outcome.adversarial[1] : outcome.adversarial;
  const words = [...explained.words];
  const changes = outcome.changes.filter((change) => !change.premise);
  for (const change of changes) words[change.position] = change.after;
  write(words.join(" ") === after || changes.length ? words : explained.words);
  redraw();
  const names = explained.labels;
  const tried = `${counted(outcome.queries, "text")} tried, ${counted(outcome.words_changed, "word")} changed`;
  const within = budget === "radius" && explained.result.guarantee;
  by("attack-result").textContent = outcome.status === "succeeded"
    ? `The attack succeeded. ${tried}: the answer is now ${names[outcome.final_label]}.`
    : within
      ? `The attack failed, as the proof says it must. ${tried}: the answer is still ${names[outcome.final_label]}.`
      : `The attack failed this time. ${tried}: the answer is still ${names[outcome.final_label]}. Beyond the proof it may succeed, but need not.`;
  showNow({ label_id: outcome.final_label, label: names[outcome.final_label] });
  showError("");
  remember();
}

// -- showing ----------------------------------------------------------------------------------

function redraw() {
  const { changed } = difference();
  drawChart(explained.curves, changed || null);
}

function attackButtons(working = false) {
  const card = cards.get(asked?.model);
  const possible = !card || card.smoothing === "masks";
  const radius = explained.result.radius;
  by("attack-within").disabled = working || !possible || !radius;
  by("attack-beyond").disabled = working || !possible;
  by("attack-within").textContent = radius
    ? `Let a machine try, with ${counted(radius, "word")}` : "Nothing to try within the proof";
  by("attack-beyond").textContent = `Let it change ${counted((radius ?? 0) + 1, "word")}`;
}

function busy(working, text) {
  by("certify").disabled = working;
  by("progress").textContent = text;
}

function failed(error) {
  busy(false, "");
  by("key-form").hidden = error.status !== 401;
  showError(error.status === 401 ? "This service asks for a key." : error.message);
  if (error.status === 401) by("key").focus();
}

function showError(message) {
  by("error").textContent = message;
  by("error").hidden = !message;
}

function showExamples() {
  const card = cards.get(by("model").value);
  const labels = card?.labels ?? [];
  const own = EXAMPLES.filter((one) => labels.includes(one.label));
  by("examples").hidden = !own.length;
  fill(by("example-buttons"), ...own.map((one) => {
    const button = make("button", { type: "button" }, one.name);
    button.addEventListener("click", () => {
      by("text").value = one.text;
      by("premise").value = "";
      explainText();
    });
    return button;
  }));
  const keep = card?.options?.keep;
  by("keep").placeholder = keep ? `as saved: ${keep}` : "as saved";
}

function choiceNotes() {
  const votes = by("certificate").value !== "exact";
  by("choice-note").hidden = !votes;
  by("ensemble").disabled = votes;
}

// -- the address ------------------------------------------------------------------------------

function remember() {
  const state = new URLSearchParams();
  for (const name of CHOICES) if (by(name).value) state.set(name, by(name).value);
  // What was answered: the field may hold the beginning of another text.
  const [premise, text] = Array.isArray(asked.text) ? asked.text : ["", asked.text];
  state.set("text", text);
  if (premise) state.set("premise", premise);
  if (difference().changed) state.set("words", JSON.stringify(written()));
  shownLink = `#${state}`;
  history.replaceState(null, "", shownLink);
  by("copied").textContent = "";
}

async function recall() {
  if (location.hash === shownLink) return;
  const state = new URLSearchParams(location.hash.slice(1));
  if (!state.has("text")) return;
  shownLink = location.hash;
  for (const name of CHOICES) choose(by(name), state.get(name) ?? "");
  if (!by("certificate").value) by("certificate").value = "exact";
  by("text").value = state.get("text");
  by("premise").value = state.get("premise") ?? "";
  by("pair").open = Boolean(by("premise").value);
  showExamples();
  choiceNotes();
  await explainText(wordsIn(state.get("words")));
}

function choose(control, value) {
  const known = control.tagName !== "SELECT" || [...control.options].some((one) => one.value === value);
  if (known) control.value = value;
}

function wordsIn(text) {
  try {
    const words = JSON.parse(text ?? "[]");
    return Array.isArray(words) ? words.map((word) => oneWord(String(word))) : [];
  } catch {
    return [];
  }
}

async function copyLink() {
  remember();
  try {
    await navigator.clipboard.writeText(location.href);
    by("copied").textContent = "Copied.";
  } catch {
    by("copied").textContent = "Copy the address of this page from the address bar.";
  }
}

// -- beginning --------------------------------------------------------------------------------

async function begin() {
  let found;
  try {
    found = await models();
  } catch (error) {
    failed(error);
    return;
  }
  by("key-form").hidden = true;
  showError("");
  cards = new Map(found.models.map((card) => [card.name, card]));
  fill(by("model"), ...[...cards.keys()].map((name) => make("option", { value: name }, name)));
  by("model").value = found.default;
  showExamples();
  choiceNotes();
  await recall();
}

// A choice is answered at once where there is an answer to change.
function chosen() {
  choiceNotes();
  if (explained) explainText();
}

by("question").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (await explainText()) by("answer").focus();
});
by("model").addEventListener("change", () => {
  by("keep").value = "";
  showExamples();
  chosen();
});
for (const name of ["keep", "ensemble", "certificate"]) by(name).addEventListener("change", chosen);
by("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  useKey(by("key").value);
  begin();
});
by("attack-within").addEventListener("click", () => attackWith("radius"));
by("attack-beyond").addEventListener("click", () => attackWith("radius+1"));
by("restore").addEventListener("click", () => {
  write(explained.words);
  changedByHand();
  clearTimeout(later);
  showNow(null);
  remember();
});
by("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address holds the view, not a place on the page
  by("answer").focus();
});
by("copy-link").addEventListener("click", copyLink);
addEventListener("hashchange", recall);
new ResizeObserver(() => explained && redraw()).observe(by("chart"));
begin();
