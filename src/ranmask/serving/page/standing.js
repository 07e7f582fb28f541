// The answer, how many changes are left before the proof ends, and the votes.

import { nameOf, sharesOf, toneOf } from "./classes.js";
import { by, counted, fill, make, percent, say, strong } from "./dom.js";

const FEW_CLASSES = 8;
const MOST_PIPS = 24;

const SCORES = {
  score: "Mean score, from 0 to 1; the largest decides. A model may judge each class by itself, so scores are no shares of a whole.",
  logit: "Mean of scaled logits, from -1 to 1, no bar below 0; the largest decides. They are no shares of a whole.",
};

let bars = []; // of each class, what is moved when words are edited

export const unitOf = (result) => (result.threat === "edits" ? "edit" : "word");

// How sure a certificate is of what it covers.
export function surely({ guarantee, alpha }, otherwise) {
  return !guarantee ? otherwise : alpha === null ? "proved" : `${percent(1 - alpha)} sure`;
}

export function isCovered(pinned, { changed, moved, foreign }) {
  const { radius } = pinned.result;
  return !moved && !foreign && radius !== null && changed <= radius;
}

// `now`: what is said of the text in the box; null where that is not known; undefined where it will
// be in a moment: then only what is counted here moves, and nothing flickers.
export function showStanding(pinned, state, now) {
  const { result } = pinned;
  const { changed, untouched } = state;
  const covered = isCovered(pinned, state);
  const answer = by("answer");
  const left = covered ? result.radius - changed : 0;
  answer.classList.toggle("beyond", !covered);
  answer.classList.toggle("claimed", !result.guarantee);
  showMeter(result, left, covered);
  say("counted", standing(pinned, state));
  const was = answer.classList.contains("broken");
  if (now === undefined && was) return;
  const label = now?.label_id ?? result.label_id;
  const broken = label !== result.label_id;
  answer.classList.toggle("broken", broken);
  by("label").className = `chip ${toneOf(label)}`;
  say("label", nameOf(label));
  say("was", broken ? `was ${result.label}` : "");
  const edit = result.threat === "edits" ? "edit" : "change";
  if (broken) {
    say("left", "Broken");
    say("left-unit", `after ${counted(changed, edit)}`);
  } else if (result.radius === null) {
    say("left", "Nothing");
    say("left-unit", `is ${result.guarantee ? "proved" : "claimed"}`);
  } else {
    say("left", left.toLocaleString("en"));
    say("left-unit", `${left === 1 ? edit : `${edit}s`} left before the ${result.guarantee ? "proof" : "claim"} ends`);
  }
  if (now === undefined) return;
  showNow(pinned, state, now, covered);
  showBars(now ?? result, untouched ? null : result);
}

function showMeter(result, left, covered) {
  const most = result.radius ?? 0;
  const meter = by("meter");
  meter.ariaValueMax = String(most);
  meter.ariaValueNow = String(left);
  meter.ariaValueText = covered ? `${left} of ${most} left` : "beyond the proof";
  meter.hidden = most === 0;
  if (most > MOST_PIPS) {
    if (meter.firstElementChild?.className !== "rest") fill(meter, make("span", { class: "rest" }));
    meter.firstElementChild.style.width = `${(100 * left) / most}%`;
    return;
  }
  if (meter.querySelectorAll(".pip").length !== most) {
    fill(meter, ...Array.from({ length: most }, () => make("span", { class: "pip" })));
  }
  [...meter.children].forEach((pip, place) => pip.classList.toggle("used", place >= left));
}

export function showVerdict(result) {
  const { radius, label } = result;
  const said = [];
  if (radius === null) {
    said.push("Nothing is proved about this answer.");
  } else if (radius === 0) {
    said.push(strong("One"), ` changed ${unitOf(result)} might turn it.`);
  } else if (!result.guarantee) {
    said.push("The paper would claim ", strong(counted(radius, "word")), ".");
  } else if (result.threat === "synonyms" && radius >= result.words) {
    said.push("It stays ", label, " if ", strong("any or all"), " words are replaced by synonyms that its table lists.");
  } else {
    const how = result.threat === "synonyms" ? "replace them by synonyms that its table lists"
      : result.threat === "edits" ? "replace, add or delete them" : "change them to anything at all";
    said.push("Take any ", strong(counted(radius, "word")), `, ${radius === 1 ? how.replace("them", "it") : how}: the answer stays ${label}.`);
  }
  fill(by("verdict"), ...said, " ", make("span", { class: "how" }, sureness(result)));
}

function sureness(result) {
  const { radius } = result;
  if (!result.guarantee) {
    return "That is no guarantee: the paper's test does not bound what an attacker can choose. The exact certificate does.";
  }
  const many = counted(result.masks, "copy", "copies");
  if (radius === null) return `The ${many} are too evenly split, or too few, to prove anything.`;
  if (radius === 0) return "It is proved for the text as it stands only.";
  const sure = result.alpha === null ? "That is proved, not estimated, whoever tries."
    : `That is true with a probability of at least ${percent(1 - result.alpha)} over the random copies.`;
  const more = { edits: " The order of words does not matter.",
    synonyms: " It says nothing of any other word." }[result.threat] ?? "";
  return sure + more;
}

function standing({ result }, { changed, untouched, moved, foreign }) {
  const edits = result.threat === "edits";
  const [one, done] = edits ? ["edit", ""] : ["word", " changed"];
  const proof = result.guarantee ? "proof" : "claim";
  const most = result.radius;
  if (untouched) return `No ${edits ? "edit" : "word changed"} yet. Change one, and watch.`;
  if (most === null) return `${counted(changed, one)}${done}. Nothing is ${result.guarantee ? "proved" : "claimed"} about this text.`;
  if (moved) return `Words were added or left out: beyond the ${proof}, which is about words replaced one for one.`;
  if (foreign) {
    return `${counted(foreign, "word")} ${foreign === 1 ? "is" : "are"} not among the listed synonyms: beyond the ${proof}, which covers no others.`;
  }
  if (changed === 0) return "Only the order is another, which costs nothing.";
  if (changed <= most) {
    return `${changed} of ${counted(most, one)}${done}: still ${surely(result, "claimed, but not proved,")} to be ${result.label}.`;
  }
  return `${counted(changed, one)}${done}, ${changed - most} more than the ${most} covered: beyond the ${proof}.`;
}

function showNow({ result }, { untouched, unknown }, now, covered) {
  const place = by("now");
  if (untouched) {
    fill(place);
  } else if (unknown) {
    say("now", "The answer is not known.");
  } else if (now === null) {
    say("now", "Asking …");
  } else if (now.label_id === result.label_id) {
    say("now", `The answer is still ${nameOf(now.label_id)}.`);
  } else {
    const unheard = covered && result.guarantee && result.alpha === null;
    const said = covered && !result.guarantee ? "Broken, though the paper claims it cannot be" : "Broken";
    say("now", unheard
      ? `Within the proof the answer changed to ${nameOf(now.label_id)}. That must not happen: please report it with this link.`
      : `${said}: the answer is now ${nameOf(now.label_id)}.`);
  }
}

// A bar for each class, in the order of this text's votes: they stay in place while words change.
export function layBars(result) {
  const shares = sharesOf(result);
  const order = shares.map((_, number) => number);
  order.sort((one, other) => shares[other] - shares[one] || (one === result.label_id ? -1 : 1));
  bars = order.map((number) => {
    const [bar, ghost] = [make("span", { class: "length" }), make("span", { class: "ghost", hidden: "" })];
    const count = make("span", { class: "count" });
    const row = make("li", { class: toneOf(number) },
      make("span", { class: "name" }, nameOf(number)),
      make("span", { class: "bar", "aria-hidden": "true" }, bar, ghost), count);
    return { number, row, bar, ghost, count };
  });
  const few = bars.length > FEW_CLASSES + 2 ? FEW_CLASSES : bars.length;
  fill(by("votes"), ...bars.slice(0, few).map((one) => one.row));
  fill(by("other-votes"), ...bars.slice(few).map((one) => one.row));
  by("others").hidden = few === bars.length;
  by("others-title").textContent = `${bars.length - few} more classes`;
  const what = result.kept === 1 && result.family !== "distinct" ? "words" : "copies";
  by("votes-title").textContent = result.scores ? `How its ${what} score` : `How its ${what} vote`;
  by("votes-note").textContent = result.scores ? SCORES[result.ensemble] ?? SCORES.score
    : result.uncertain ? `${counted(result.uncertain, "vote")} could turn by rounding and counted against the answer.` : "";
}

// `before`: what was said of the text that the proof is about, for a mark on each bar.
function showBars(said, before) {
  const shares = sharesOf(said);
  const total = said.votes.reduce((sum, votes) => sum + votes, 0);
  const width = (share) => `${(100 * Math.min(1, Math.max(0, share))).toFixed(2)}%`;
  for (const { number, row, bar, ghost, count } of bars) {
    row.classList.toggle("won", number === said.label_id);
    bar.style.width = width(shares[number]);
    ghost.hidden = before === null;
    if (before !== null) ghost.style.insetInlineStart = width(sharesOf(before)[number]);
    const text = said.scores ? shares[number].toFixed(2) : `${said.votes[number].toLocaleString("en")} of ${total.toLocaleString("en")}`;
    if (count.textContent !== text) count.textContent = text;
  }
}
