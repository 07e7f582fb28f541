// What is shown of one explained text; nothing here asks the service.

import { NAMES, kindsOf } from "./chart.js";
import { surely } from "./counter.js";
import { by, counted, fill, make, percent, spoken, strong } from "./dom.js";

const FEW_CLASSES = 8;
const LONG_TEXT = 60; // words from which runs of hidden ones are drawn in short
const LONG_RUN = 6;

const SCORES = {
  score: "Bars and first numbers: the mean score, from 0 to 1; the largest decides. A model may judge each class by itself, so scores are no shares of a whole. Then: for how many copies this class is the best.",
  logit: "Bars and first numbers: the mean of scaled logits, from -1 to 1, no bar below 0; the largest decides. They are no shares of a whole. Then: for how many copies this class is the best.",
};

// What so many steps of a threat are, beside the one that the verdict is about.
const STEPS = {
  substitutions: (many) => `${counted(many, "word")} replaced by anything`,
  edits: (many) => `${counted(many, "word")} replaced, added or deleted`,
  insertions: (many) => `${counted(many, "word")} added, anywhere`,
  deletions: (many) => `${counted(many, "word")} deleted`,
  characters: (many) => `${counted(many, "character")} added, deleted or replaced, blanks too`,
  span: (many) => `${counted(many, "neighbouring word")} replaced by as many`,
  synonyms: (many) => `${counted(many, "word")} replaced by synonyms that its table lists`,
};

const unitOf = (result) => (result.threat === "edits" ? "edit" : "word");

export function showAnswer(explained, asked) {
  const { result, labels, words, copies, curves, refused = {} } = explained;
  showVerdict(result);
  showText(words, result, Array.isArray(asked.text) ? asked.text[0] : null);
  showVotes(result, labels);
  showMenu(result);
  showAssumptions(result);
  showRadii(result, curves, refused, labels);
  showCopies(result, copies, words, labels);
}

// The verdict in a line, for those who are elsewhere on the page.
export function summary(result) {
  if (result.radius === null) return `${result.label}; nothing is proved.`;
  return `${result.label}, ${surely(result, "claimed")} for ${counted(result.radius, unitOf(result))}.`;
}

function showVerdict(result) {
  const { radius, label } = result;
  const verdict = by("verdict");
  const claimed = radius !== null && !result.guarantee;
  verdict.className = `verdict ${radius === null ? "nothing" : claimed ? "claimed" : "proved"}`;
  if (radius === null) {
    fill(verdict, "The answer is ", strong(label), ", and nothing is proved about it.");
  } else if (radius === 0) {
    fill(verdict, "The answer is ", strong(label), ", but ", strong("one"), ` ${unitOf(result)} might change it.`);
  } else if (claimed) {
    fill(verdict, "The answer is ", strong(label), ". The paper would claim ",
      strong(counted(radius, "word")), ".");
  } else if (result.threat === "synonyms" && radius >= result.words) {
    fill(verdict, "The answer is ", strong(label), ". It stays ", label, " if ", strong("any or all"),
      " words are replaced by synonyms that its table lists.");
  } else {
    const how = result.threat === "synonyms" ? "replaced by synonyms that its table lists"
      : result.threat === "edits" ? "replaced, added or deleted" : "changed to anything at all";
    fill(verdict, "The answer is ", strong(label), ". It stays ", label, " if any ",
      strong(counted(radius, "word")), radius === 1 ? " is " : " are ", how, ".");
  }
  by("verdict-how").textContent = sureness(result);
}

function sureness(result) {
  const { radius } = result;
  if (!result.guarantee) {
    return "That is no guarantee: the paper's test does not bound what an attacker can choose. The exact certificate does.";
  }
  const many = counted(result.masks, "copy", "copies");
  if (radius === null) return `The ${many} are too evenly split, or too few, to prove anything.`;
  if (radius === 0) return "It is proved for the text as it stands only.";
  const sure = result.alpha === null
    ? "This is proved, not estimated: no choice of words, by anyone who knows everything about the model, can break it."
    : `This is true with a probability of at least ${percent(1 - result.alpha)} over the random copies.`;
  const more = { edits: " It counts edits, and any order of the words is as good as another.",
    synonyms: " It says nothing of any other word." }[result.threat] ?? "";
  return sure + more;
}

function showText(words, result, premise) {
  by("shown-premise").hidden = premise === null;
  fill(by("shown-premise"), make("span", { class: "role" }, "Premise, which stays as it is: "), premise ?? "");
  const critical = new Set(result.critical_words);
  const shown = [];
  words.forEach((word, place) => {
    const read = place < result.words_read;
    if (critical.has(place)) shown.push(make("mark", {}, word));
    else shown.push(read ? word : make("span", { class: "unread" }, word));
    shown.push(" ");
  });
  fill(by("shown-text"), ...shown);
  const unread = result.words - result.words_read;
  const beyond = unread > 0 ? ` Struck out: ${counted(unread, "word")} that the model does not read.` : "";
  const hangs = critical.size === 0 ? "" : critical.size === 1
    ? "Underlined: the word that the answer hangs on most."
    : `Underlined: the ${critical.size} words that the answer hangs on most. To break it, an attacker has to change at least so many, and best these.`;
  by("critical-note").textContent = hangs + beyond;
}

function showVotes(result, labels) {
  const total = result.votes.reduce((sum, votes) => sum + votes, 0) || 1;
  const weight = (place) => (result.scores ? result.scores[place] : result.votes[place] / total);
  const order = result.votes.map((_, place) => place);
  order.sort((one, other) => weight(other) - weight(one) || (one === result.label_id ? -1 : 1));
  const rows = order.map((place) => {
    const bar = make("span");
    bar.style.width = percent(Math.min(1, Math.max(0, weight(place))), 2).replace(" ", "");
    const votes = `${result.votes[place].toLocaleString("en")} of ${total.toLocaleString("en")}`;
    const said = result.scores ? `${result.scores[place].toFixed(3)} · best for ${votes}` : votes;
    return make("li", { class: place === result.label_id ? "won" : null },
      make("span", { class: "name" }, labels[place]),
      make("span", { class: "bar", "aria-hidden": "true" }, weight(place) > 0 ? bar : null),
      make("span", { class: "count" }, said));
  });
  const few = rows.length > FEW_CLASSES + 2 ? FEW_CLASSES : rows.length;
  fill(by("votes"), ...rows.slice(0, few));
  fill(by("other-votes"), ...rows.slice(few));
  by("others").hidden = few === rows.length;
  by("others-title").textContent = `${rows.length - few} more classes`;
  by("votes-title").textContent = result.scores ? "How the copies scored it" : "How the copies voted";
  by("votes-note").textContent = result.scores ? SCORES[result.ensemble]
    : result.uncertain ? `${counted(result.uncertain, "vote")} could turn by rounding and counted against the answer.` : "";
}

function showMenu(result) {
  const others = Object.entries(result.radii ?? {}).filter(([threat]) => threat !== result.threat);
  by("menu").hidden = !others.length;
  fill(by("menu-radii"), ...others.map(([threat, radius]) => make("li", {}, withstood(threat, radius, result.words))));
}

function withstood(threat, radius, words) {
  if (radius === null) return `${threat}: nothing is proved.`;
  if (radius === 0) return `${threat}: not one; only the text as it stands.`;
  if (threat === "synonyms" && radius >= words) return "synonyms: any or all words replaced by those that its table lists.";
  return `${threat}: any ${STEPS[threat](radius)}.`;
}

function showAssumptions(result) {
  by("assumes").hidden = !result.assumes.length;
  fill(by("assumptions"), ...result.assumes.map((one) => make("li", {}, `${one}.`)));
}

// Each row is what choosing that certificate gives.
function showRadii(result, curves, refused, labels) {
  const kinds = kindsOf(curves);
  by("radii").closest("section").hidden = !kinds.length;
  by("radii-unit").textContent = `${unitOf(result)}s`;
  fill(by("radii"), ...kinds.map((kind) => {
    const curve = curves[kind];
    const other = curve.label_id === result.label_id ? "" : ` (for ${labels[curve.label_id]})`;
    const voted = curve.ensemble === result.ensemble ? "" : curve.ensemble === "vote" ? ", of a vote" : ", of scores";
    const sure = !curve.guarantee ? "no" : curve.alpha === null ? "yes, a proof" : `yes, with ${percent(1 - curve.alpha)}`;
    return make("tr", { class: kind === result.certificate ? "own" : null },
      make("th", { scope: "row" }, NAMES[kind]),
      make("td", { class: "number" }, curve.radius === null ? "none" : String(curve.radius)),
      make("td", {}, sure + voted + other));
  }), ...Object.entries(refused).map(([kind, why]) => make("tr", {},
    make("th", { scope: "row" }, NAMES[kind]), make("td", { class: "number" }, "–"),
    make("td", {}, `not shown: ${why}`))));
  const estimated = kinds.find((kind) => kind !== "exact");
  const bounded = kinds.some((kind) => curves[kind].known.includes(false));
  const printed = curves["paper-as-printed"];
  by("chart-note").textContent = [
    `Open marks: the radius of each certificate, the last number of ${unitOf(result)}s it covers.`,
    printed && printed.radius !== null ? "The cross is the paper's radius as printed: it lies where the paper's own curve has already failed." : "",
    estimated ? `All but exact are about a vote of random copies, of which they read ${curves[estimated].masks.toLocaleString("en")}.` : "",
    kinds.length === 1 && !Object.keys(refused).length ? "The other certificates do not cover this kind of change." : "",
    bounded ? "Somewhere the search gave up: the exact curve is then a lower bound." : "",
  ].filter(Boolean).join(" ");
}

function showCopies(result, copies, words, labels) {
  by("copies").closest("section").hidden = !copies.length;
  const read = words.slice(0, result.words_read);
  const direction = getComputedStyle(by("shown-text")).direction;
  by("copies-note").textContent = `${copies.length} of ${counted(result.masks, "copy", "copies")}. Each shows ${counted(result.kept, "word")} of ${result.words_read}.`;
  fill(by("copies"), ...copies.map((copy) => {
    const agrees = copy.label_id === result.label_id;
    return make("li", {},
      make("span", { class: "copy", dir: direction }, spoken("Shows: "), ...seen(read, new Set(copy.kept))),
      make("span", { class: agrees ? "vote for" : "vote" }, spoken("Votes for "),
        make("span", { "aria-hidden": "true" }, agrees ? "✓ " : "✗ "), labels[copy.label_id]));
  }));
}

// A copy: its words, and a block for each hidden one.
function seen(words, kept) {
  const shown = [];
  let run = [];
  const hide = () => {
    const short = words.length > LONG_TEXT && run.length > LONG_RUN;
    const [head, tail] = short ? [run.slice(0, 2), run.slice(-2)] : [run, []];
    shown.push(...head.flatMap(block));
    if (short) shown.push(make("span", { class: "run", "aria-hidden": "true" }, `${run.length - 4} more`), " ");
    shown.push(...tail.flatMap(block));
    run = [];
  };
  words.forEach((word, place) => {
    if (!kept.has(place)) {
      run.push(word);
      return;
    }
    hide();
    shown.push(make("b", {}, word), " ");
  });
  hide();
  return shown;
}

function block(word) {
  const hidden = make("span", { class: "hidden-word", "aria-hidden": "true" });
  hidden.style.width = `${Math.max(0.8, word.length * 0.52)}em`;
  return [hidden, " "];
}
