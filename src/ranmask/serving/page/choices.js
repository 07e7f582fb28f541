// What can be chosen, for the model that is: which controls mean something, and the question.

import { by, fill, make, say } from "./dom.js";
import { DETECTORS, KINDS } from "./examples.js";

export const CHOICES = ["model", "certificate", "threat", "keep", "ensemble"];

const OF_MASKS = ["certificate", "keep", "ensemble"];
const NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
const FEW_NAMES = 6;

let cards = new Map();

export function showModels(found) {
  cards = new Map(found.models.map((card) => [card.name, card]));
  fill(by("model"), ...found.models.map(({ name, positive }) => make("option", { value: name },
    positive === undefined ? name : `${name}: flags ${positive}`)));
  by("model").value = found.default;
  modelChosen();
}

// The threat is chosen by an answer to a question, everything else in a field.
export const chosen = (name) => (name === "threat"
  ? (by("threat-edits").checked ? "edits" : "substitutions") : by(name).value);

export function choose(name, value) {
  const control = by(name);
  if (name === "threat") {
    by(value === "edits" ? "threat-edits" : "threat-substitutions").checked = true;
  } else if (control.tagName !== "SELECT") {
    control.value = /^\d+$/.test(value) ? value : "";
  } else if ([...control.options].some((one) => one.value === value)) {
    control.value = value;
  } else if (name !== "model") {
    control.selectedIndex = 0;
  }
}

export const cardOf = (name) => cards.get(name);

const card = () => cards.get(by("model").value);

export const isDetector = () => card()?.kind === "detector";

const byMasks = () => card()?.smoothing === "masks";

// A model that reads the whole text votes beside the copies.
const hasReader = () => Boolean(card()?.reader);

// It may vote on parts of the text, too, which are cut by place: no word may move then.
const readsParts = () => (card()?.options?.reader_weights ?? []).length > 1;

// Another model: its own settings are the ones to begin with.
export function modelChosen() {
  const saved = card()?.options ?? {};
  by("keep").value = "";
  by("keep").placeholder = saved.keep ? `as saved: ${saved.keep}`
    : saved.mask_rate ? `as saved: ${Math.round(100 * (1 - saved.mask_rate))} %` : "as saved";
  choose("threat", card()?.order_free ? saved.threat : "substitutions");
  showPremise();
  fitChoices();
}

function showPremise() {
  by("pair").hidden = !readsPairs();
}

const readsPairs = () => !isDetector() && (card()?.pairs ?? labelsOf().includes("entailment"));

const labelsOf = () => card()?.labels ?? [];

// The kind of text that the model's classes are about; none for classes that nobody here knows.
const kindOf = () => KINDS.find((kind) => kind.labels.length === labelsOf().length
  && kind.labels.every((label) => labelsOf().includes(label)) && Boolean(kind.pairs) === readsPairs());

const flaggedKind = () => DETECTORS.find((kind) => kind.positive === card()?.positive);

// What the page is about, in its first lines.
function saysWhatItFlags() {
  by("lead").hidden = isDetector();
  by("flag-lead").hidden = !isDetector();
  say("title", isDetector() ? "Try to get past it" : "Try to break it");
  say("done", `Now ${by("title").textContent.toLowerCase()}`);
  document.title = `${by("title").textContent}: ranmask`;
  if (!isDetector()) return;
  say("looks-for", card().flags ?? flaggedKind()?.looksFor ?? `texts of the class ${card().positive}`);
  say("added-where", card().detector === "words" ? "before it, behind it or between its words" : "before it or behind it");
}

function saysWhatItSorts() {
  const labels = labelsOf();
  const many = NUMBERS[labels.length] ?? labels.length;
  const names = labels.length && labels.length <= FEW_NAMES ? `: ${labels.slice(0, -1).join(", ")} or ${labels.at(-1)}` : "";
  by("sorts").textContent = kindOf()?.sorts ?? (labels.length ? `${readsPairs() ? "pairs of texts" : "texts"} into ${many} classes${names}` : "texts");
}

const THREATS = ["insertions", "deletions", "characters", "span", "synonyms"];

const shownWords = () => Number(by("keep").value) || card()?.options?.keep;

// The further threats that can be proved as things are chosen.
export function provable() {
  if (!byMasks() || by("certificate").value !== "exact") return [];
  const single = shownWords() === 1 && !readsParts();
  const possible = { span: true, synonyms: single && Boolean(card().synonyms) };
  return THREATS.filter((name) => possible[name] ?? (single && Boolean(card().order_free)));
}

export function allowsEdits() {
  return byMasks() && Boolean(card().order_free) && by("certificate").value === "exact"
    && shownWords() === 1 && !readsParts();
}

// Which choices go together; those that do not are switched off, and a note says why.
export function fitChoices() {
  if (hasReader()) by("certificate").value = "exact";
  by("certificate").disabled = hasReader();
  const exact = by("certificate").value === "exact";
  if (!allowsEdits()) choose("threat", "substitutions");
  for (const name of ["threat-edits", "threat-substitutions"]) by(name).disabled = !allowsEdits();
  if (!exact && by("ensemble").value !== "vote") by("ensemble").value = "";
  by("ensemble").disabled = !exact;
  for (const name of OF_MASKS) by(name).closest("p").hidden = !byMasks();
  by("attacker").hidden = !byMasks();
  by("covered").textContent = byMasks() ? "to anything at all" : "to a synonym that its table lists";
  saysWhatItSorts();
  saysWhatItFlags();
  const notes = isDetector() ? [] : [
    byMasks() ? "" : "This model is smoothed by synonyms: its copies show all words, each replaced at random by one that a table lists. It has one certificate, which counts votes.",
    hasReader() ? "Beside the copies votes a model that reads the whole text; only the exact certificate allows for that." : "",
    byMasks() && !exact ? "This certificate counts votes, so each copy gives one vote." : "",
  ].filter(Boolean);
  by("choice-note").textContent = notes.join(" ");
  by("choice-note").hidden = !notes.length;
  by("threat-note").textContent = !byMasks() || allowsEdits() ? "" : readsParts()
    ? "This model reads parts of the text, too, which are cut by place: added or deleted words are not covered."
    : card().order_free
      ? "Words added or deleted are covered by the exact certificate only, with one word in each copy."
      : "This model minds the order of words: added or deleted ones are not covered.";
}

export function question(text) {
  const options = {};
  if (byMasks()) {
    options.certificate = by("certificate").value;
    options.threat = chosen("threat");
    if (by("keep").value) options.keep = Number(by("keep").value);
    if (by("ensemble").value) options.ensemble = by("ensemble").value;
  }
  return { model: by("model").value, text: readsPairs() ? [by("premise").value, text] : text, options };
}

export const examples = () => (isDetector() ? flaggedKind() : kindOf())?.examples ?? [];

// Buttons for texts of the model's kind, and for one's own.
export function showExamples(take, own) {
  const buttons = examples().map((one) => {
    const button = make("button", { type: "button" }, one.name);
    button.addEventListener("click", () => take(one));
    return button;
  });
  const write = make("button", { type: "button", id: "own" }, "Your own text");
  write.addEventListener("click", own);
  fill(by("example-buttons"), ...buttons, write);
}
