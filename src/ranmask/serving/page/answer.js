// What is shown of one explained text; nothing here asks the service.

import { NAMES, kindsOf } from "./chart.js";
import { by, counted, fill, make, percent, strong } from "./dom.js";

export function showAnswer(explained) {
  const { result, labels, words, copies, curves } = explained;
  showVerdict(result);
  showText(words, result);
  showVotes(result, labels);
  showAssumptions(result);
  showRadii(result, curves, labels);
  showCopies(result, copies, words, labels);
}

function showVerdict(result) {
  const { radius, label } = result;
  const verdict = by("verdict");
  const claimed = radius !== null && !result.guarantee;
  verdict.className = `verdict ${radius === null ? "nothing" : claimed ? "claimed" : "proved"}`;
  if (radius === null) {
    fill(verdict, "The answer is ", strong(label), ", and nothing is proved about it.");
  } else if (radius === 0) {
    fill(verdict, "The answer is ", strong(label), ", but ", strong("one"), " word might change it.");
  } else if (claimed) {
    fill(verdict, "The answer is ", strong(label), ". The paper would claim ",
      strong(counted(radius, "word")), ".");
  } else {
    const how = result.threat === "synonyms" ? "replaced by listed synonyms"
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
  const proof = result.alpha === null
    ? "This is proved, not estimated: no choice of words, by anyone who knows everything about the model, can break it."
    : `This is true with a probability of at least ${percent(1 - result.alpha)} over the random copies.`;
  return radius === 0 ? "It is proved for the text as it stands only." : proof;
}

function showText(words, result) {
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
  const order = result.votes.map((_, place) => place);
  const weight = (place) => (result.scores ? result.scores[place] : result.votes[place] / total);
  order.sort((one, other) => weight(other) - weight(one));
  fill(by("votes"), ...order.map((place) => {
    const bar = make("span");
    bar.style.width = percent(Math.min(1, Math.max(0, weight(place))), 2).replace(" ", "");
    const votes = `${result.votes[place].toLocaleString("en")} of ${total.toLocaleString("en")}`;
    const said = result.scores ? `${percent(result.scores[place], 1)} · ${votes}` : votes;
    return make("li", { class: place === result.label_id ? "won" : null },
      make("span", { class: "name" }, labels[place]),
      make("span", { class: "bar", "aria-hidden": "true" }, bar),
      make("span", { class: "count" }, said));
  }));
  by("votes-note").textContent = result.scores
    ? "Bars: the mean score, which decides. After it: how many copies find this class best."
    : result.uncertain ? `${counted(result.uncertain, "vote")} could turn by rounding and counted against the answer.` : "";
}

function showAssumptions(result) {
  by("assumes").hidden = !result.assumes.length;
  fill(by("assumptions"), ...result.assumes.map((one) => make("li", {}, `${one}.`)));
}

function showRadii(result, curves, labels) {
  const kinds = kindsOf(curves);
  by("radii").closest("section").hidden = !kinds.length;
  fill(by("radii"), ...kinds.map((kind) => {
    const curve = curves[kind];
    const other = curve.label_id === result.label_id ? "" : ` (for ${labels[curve.label_id]})`;
    const voted = curve.ensemble === result.ensemble ? "" : ", of a vote";
    const sure = !curve.guarantee ? "no" : curve.alpha === null ? "yes, a proof" : `yes, with ${percent(1 - curve.alpha)}`;
    return make("tr", { class: kind === result.certificate ? "own" : null },
      make("th", { scope: "row" }, NAMES[kind]),
      make("td", { class: "number" }, curve.radius === null ? "none" : String(curve.radius)),
      make("td", {}, sure + voted + other));
  }));
  const mixed = new Set(kinds.map((kind) => curves[kind].ensemble)).size > 1;
  const bounded = kinds.some((kind) => curves[kind].known.includes(false));
  const printed = curves["paper-as-printed"];
  by("chart-note").textContent = [
    "Open marks: the radius of each certificate, the last number of words it covers.",
    printed && printed.radius !== null ? "The cross is the paper's radius as printed: it lies where the paper's own curve has already failed." : "",
    mixed ? `All but exact count votes, so theirs are drawn for a vote of ${counted(curves.paper.masks, "random copy", "random copies")}.` : "",
    kinds.length === 1 ? "The other certificates do not cover this kind of change." : "",
    bounded ? "Somewhere the search gave up: the exact curve is then a lower bound." : "",
  ].filter(Boolean).join(" ");
}

function showCopies(result, copies, words, labels) {
  by("copies").closest("section").hidden = !copies.length;
  by("copies-note").textContent = `${copies.length} of ${result.masks.toLocaleString("en")} copies. Each shows ${counted(result.kept, "word")} of ${result.words_read}.`;
  fill(by("copies"), ...copies.map((copy) => {
    const kept = new Set(copy.kept);
    const shown = [];
    words.slice(0, result.words_read).forEach((word, place) => {
      if (kept.has(place)) shown.push(make("b", {}, word));
      else {
        const block = make("span", { class: "hidden-word", "aria-hidden": "true" });
        block.style.width = `${Math.max(0.8, word.length * 0.52)}em`;
        shown.push(block);
      }
      shown.push(" ");
    });
    const agrees = copy.label_id === result.label_id;
    return make("li", {},
      make("span", { class: "copy" }, make("span", { class: "spoken" }, "Shows: "), ...shown),
      make("span", { class: agrees ? "vote for" : "vote" },
        make("span", { class: "spoken" }, "Votes for "), `${agrees ? "✓" : "✗"} ${labels[copy.label_id]}`));
  }));
}
