// What can be chosen, for the model that is: which controls mean something, and the question.

import { by, fill, make } from "./dom.js";
import { EXAMPLES } from "./examples.js";

export const CHOICES = ["model", "certificate", "threat", "threats", "keep", "ensemble"];

const OF_MASKS = CHOICES.slice(1);

let cards = new Map();

export function showModels(found) {
  cards = new Map(found.models.map((card) => [card.name, card]));
  fill(by("model"), ...[...cards.keys()].map((name) => make("option", { value: name }, name)));
  by("model").value = found.default;
  modelChosen();
}

export const cardOf = (name) => cards.get(name);

const card = () => cards.get(by("model").value);

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
  by("threat").value = saved.threat === "edits" ? "edits" : "substitutions";
  if (!card()?.order_free) by("threat").value = "substitutions";
  showPremise();
  fitChoices();
}

function showPremise() {
  const pair = by("pair");
  const labels = card()?.labels ?? [];
  pair.hidden = card()?.pairs === false;
  by("premise").required = card()?.pairs === true;
  pair.open ||= card()?.pairs ?? labels.includes("entailment");
}

const THREATS = ["insertions", "deletions", "characters", "span", "synonyms"];

// The other threats that can be proved as things are chosen.
function provable() {
  if (!byMasks() || by("certificate").value !== "exact") return [];
  const keep = Number(by("keep").value) || card()?.options?.keep;
  const single = keep === 1 && !readsParts();
  const possible = { span: true, synonyms: single && Boolean(card().synonyms) };
  return THREATS.filter((name) => possible[name] ?? (single && Boolean(card().order_free)));
}

// Which choices go together; those that do not are switched off, and a note says why.
export function fitChoices() {
  if (hasReader()) by("certificate").value = "exact";
  by("certificate").disabled = hasReader();
  const exact = by("certificate").value === "exact";
  const keep = Number(by("keep").value) || card()?.options?.keep;
  const edits = byMasks() && Boolean(card().order_free) && exact && keep === 1 && !readsParts();
  if (!edits) by("threat").value = "substitutions";
  by("threat").disabled = !edits;
  const others = provable();
  for (const one of by("threats").options) one.disabled = THREATS.includes(one.value) && !others.includes(one.value);
  if (by("threats").selectedOptions[0]?.disabled || !others.length) by("threats").value = "";
  by("threats").disabled = !others.length;
  if (!exact && by("ensemble").value !== "vote") by("ensemble").value = "";
  by("ensemble").disabled = !exact;
  for (const name of OF_MASKS) by(name).closest("p").hidden = !byMasks();
  by("covered").textContent = byMasks() ? "to anything at all" : "to a synonym that its table lists";
  const notes = [
    byMasks() ? "" : "This model is smoothed by synonyms: its copies show all words, each replaced at random by one that a table lists. It has one certificate, which counts votes.",
    hasReader() ? "Beside the copies votes a model that reads the whole text; only the exact certificate allows for that." : "",
    byMasks() && !exact ? "This certificate counts votes, so each copy gives one vote." : "",
    !byMasks() || edits ? "" : readsParts()
      ? "That model reads parts of the text, too, which are cut by place, so that added or deleted words are not covered."
      : card().order_free
      ? "Words added or deleted are covered by the exact certificate only, with one word in each copy."
      : "This model minds the order of words, so that added or deleted ones are not covered.",
  ].filter(Boolean);
  by("choice-note").textContent = notes.join(" ");
  by("choice-note").hidden = !notes.length;
}

export function question() {
  const options = {};
  if (byMasks()) {
    options.certificate = by("certificate").value;
    options.threat = by("threat").value;
    const others = by("threats").value;
    if (others) options.threats = others === "all" ? provable() : [others];
    if (by("keep").value) options.keep = Number(by("keep").value);
    if (by("ensemble").value) options.ensemble = by("ensemble").value;
  }
  return { model: by("model").value, text: writtenText(), options };
}

function writtenText() {
  const premise = by("pair").hidden || !by("pair").open ? "" : by("premise").value;
  return premise || card()?.pairs ? [premise, by("text").value] : by("text").value;
}

// Buttons for texts of the model's classes; `taken` is called once one is in the fields.
export function showExamples(taken) {
  const labels = card()?.labels ?? [];
  const pairs = card()?.pairs ?? labels.includes("entailment");
  const own = EXAMPLES.filter((one) => labels.includes(one.label) && Boolean(one.premise) === pairs);
  by("examples").hidden = !own.length;
  fill(by("example-buttons"), ...own.map((one) => {
    const button = make("button", { type: "button" }, one.name);
    button.addEventListener("click", () => {
      by("text").value = one.text;
      by("premise").value = one.premise ?? "";
      taken();
    });
    return button;
  }));
}
