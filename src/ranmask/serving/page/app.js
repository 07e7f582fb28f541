// The page: which view answers, for the model that is chosen; examples, the address, the buttons.
import { askedView, writeView } from "./address.js";
import { boxText, setBox } from "./box.js";
import { CHOICES, choose, examples, fitChoices, isDetector, modelChosen, showExamples, showModels } from "./choices.js";
import * as classifier from "./classifier.js";
import * as detector from "./detector.js";
import { by, say } from "./dom.js";
import { failed, quiet, tell } from "./problems.js";
import { models } from "./service.js";

let view = classifier; // of the model that is chosen
let example = null; // the text of the last one that was taken

// Another model: another kind of it has another view.
function showModel() {
  modelChosen();
  const other = isDetector() ? detector : classifier;
  if (other !== view) view.leave();
  view = other;
  offerExamples();
}

// -- the address --------------------------------------------------------------------------------

async function recall() {
  const asked = askedView();
  if (asked === null) return false;
  choose("model", asked.choices.model);
  showModel();
  view.setWriting(false);
  for (const name of CHOICES) if (name !== "model") choose(name, asked.choices[name]);
  by("premise").value = asked.premise ?? "";
  fitChoices();
  const wanted = asked.choices.model;
  if (wanted && wanted !== by("model").value) {
    setBox(asked.text);
    view.noAnswer();
    tell(`This link asks for the model ${wanted}, which is not served here. Choose another one below.`);
    return true;
  }
  await view.prove(asked.text, { edited: asked.edited, added: false });
  return true;
}

async function copyLink() {
  writeView(view.asksFor(), boxText());
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
    quiet();
    showModel();
  } catch (error) {
    failed(error, begin);
    return;
  } finally {
    by("head").className = "";
  }
  if (!await recall()) takeFirst();
}

function offerExamples() {
  showExamples(take, () => {
    setBox("");
    view.prove("");
    by("text").focus();
  });
}

// A solved example to begin with, where there is one for the model's classes.
function takeFirst() {
  const [first] = examples();
  if (first) take(first, false);
  else view.prove("");
}

// Around some stand harmless words, as if somebody had put them there.
const whole = ({ before, text, behind }) => [before, text, behind].filter(Boolean).join(" ");

function take(one, added = true) {
  example = whole(one);
  by("premise").value = one.premise ?? "";
  view.setWriting(false);
  view.prove(one.text, { edited: example, added });
}

function chosen() {
  fitChoices();
  const text = view.pinnedText() ?? boxText();
  if (text.trim()) view.prove(text, { edited: boxText() });
  else takeFirst();
}

by("text").addEventListener("input", (event) => view.typed(event));
by("premise").addEventListener("change", chosen);
by("model").addEventListener("change", () => {
  const own = boxText() !== example;
  const before = view.pinnedText();
  showModel();
  const kept = own || examples().some((one) => whole(one) === example);
  if (!kept) takeFirst();
  else if (before === null) chosen();
  else view.prove(before, { edited: boxText() });
});
for (const name of ["keep", "ensemble", "certificate", "threat-substitutions", "threat-edits"]) by(name).addEventListener("change", chosen);
by("done").addEventListener("click", () => {
  view.finish();
  by("text").focus();
});
by("restore").addEventListener("click", () => {
  view.restore();
  by("text").focus(); // this button is gone now
});
by("renew").addEventListener("click", () => {
  view.prove(boxText());
  by("text").focus();
});
by("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address holds the view, not a place on the page
  by("text").focus();
});
by("copy-link").addEventListener("click", copyLink);
addEventListener("hashchange", recall);
begin();
