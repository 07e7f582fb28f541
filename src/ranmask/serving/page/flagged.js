// What a detector says of a text: the words by which it is flagged, what is proved, what is left of it.

import { boxText } from "./box.js";
import { by, counted, fill, make, percent, say } from "./dom.js";
import { embedded, exchanged, isBlank, piecesOf, wordsOf } from "./words.js";

const MOST_WORDS = 6; // that are listed with their weights
const MOST_PASSAGES = 4;

const LEAST = 0.05; // of what is needed: words that bring less are not coloured

const known = new Map(); // what words add to the score: the same in every text
let model = null; // whose values they are

export function learnValues(name, text, { word_values: values, threshold }) {
  if (model?.name !== name) known.clear();
  model = { name, threshold, values: values !== null };
  const words = wordsOf(text);
  values?.forEach((value, place) => known.set(words[place], value));
}

// By what a text is flagged; of neighbours, without those in front that are not needed for it.
function passages({ spans, word_values: values, threshold, detector }) {
  if (detector !== "segments") return spans;
  return spans.map(([, stop]) => {
    let [start, sum] = [stop, 0];
    while (sum < threshold) sum += values[start -= 1];
    return [start, stop];
  });
}

// How the text in the box differs from the one that is flagged: `changed` counts what a proof counts,
// `added` the words that came, `places` are those that stand where they were.
export function apartFrom({ result, words }, after) {
  const anywhere = result.additions === "anywhere";
  const gap = anywhere ? "free" : result.detector === "windows" ? "block" : "word";
  const around = embedded(words, after, gap);
  const { went, came } = exchanged(words, after);
  const loose = result.detector === "words"; // no matter in which order
  const changed = loose ? went.length : around.edits;
  return {
    changed,
    added: loose ? came.length - Math.min(around.replaced, went.length, came.length)
      : after.length - around.places.size - around.replaced,
    places: around.places,
    covered: result.radius !== null && (changed <= result.radius || putInOnly(result, words, after)),
  };
}

// Whether nothing was done but to put texts in between, at no more places than is proved.
function putInOnly({ additions, insertions }, words, after) {
  if (additions !== "ends") return false;
  const { edits, replaced, deleted } = embedded(words, after, "block");
  return replaced + deleted === 0 && (insertions === null || edits <= insertions);
}

// -- the box --------------------------------------------------------------------------------------

// `found`: what is said of the text in the box; null where that is not known.  `apart`: how it differs
// from the one that is flagged.
export function paintFlag(found, apart) {
  const spans = found ? passages(found) : [];
  const carrying = new Set(spans.flatMap(([start, stop]) => range(start, stop)));
  const starts = new Set(spans.map(([start]) => start));
  const joined = (place) => carrying.has(place) && !starts.has(place);
  let place = -1;
  fill(by("tiles"), ...piecesOf(boxText()).map((piece) => {
    if (isBlank(piece)) return joined(place + 1) ? make("span", { class: "between" }, piece) : piece;
    place += 1;
    const carries = carrying.has(place);
    // Of windows nothing is known word by word: all words of one that is flagged speak for it.
    const share = model?.values ? (known.get(piece) ?? 0) / model.threshold : carries ? 0.5 : 0;
    const tone = share >= LEAST ? "tone-flag" : share <= -LEAST ? "tone-against" : "tone-unknown";
    const added = apart && !apart.places.has(place);
    const tile = make("span", { class: `tile ${tone}${carries ? " carries" : ""}${added ? " added" : ""}` }, piece);
    if (tone !== "tone-unknown") tile.style.setProperty("--lead", Math.min(1, Math.abs(share)).toFixed(2));
    return tile;
  }), "\u200b");
}

const range = (start, stop) => Array.from({ length: stop - start }, (_, place) => start + place);

// -- the answer -----------------------------------------------------------------------------------

const COUNTS = {
  words: "Red: words that count, the more the redder. Underlined: these alone are enough for the flag. Dotted: new.",
  segments: "Red: words that count for a flag; green: against it. Underlined: neighbours that are enough for the flag. Dotted: new.",
  windows: "Underlined: passages that are flagged by themselves. Dotted: new.",
};

// What does not change while the text in the box does.
export function showFlag({ result }) {
  say("text-note", COUNTS[result.detector]);
}

function verdict({ flagged, positive, radius, additions, detector, insertions }, { covered, changed }) {
  if (!flagged) return [`This text is not flagged as ${positive}, and nothing is promised: a detector only vouches for what it flags.`];
  if (radius === null) return ["It is flagged, but nothing is proved: the text is too short, or too close to the threshold."];
  const least = counted(radius + 1, "word");
  if (!covered) {
    const were = changed < Infinity ? ` ${changed.toLocaleString("en")} ${changed === 1 ? "was" : "were"}.` : "";
    return [`To undo the flag, at least ${least} had to be changed.${were} Nothing is proved any more.`];
  }
  const where = additions === "anywhere" ? "before it, behind it or between its words" : "before it or behind it";
  const undo = additions === "anywhere" ? "changed or deleted."
    : detector === "windows" ? "changed or deleted, or as many texts put between its words."
      : `changed, deleted or put in between${insertions === null ? "; words that are put in do not do it alone." : "."}`;
  return [make("strong", {}, `Whatever anyone adds ${where}, it stays flagged. `),
    make("span", { class: "how" }, `To undo the flag, at least ${least} must be ${undo}`)];
}

export const spokenFlag = ({ flagged, positive, radius }) => (!flagged ? `Not flagged as ${positive}.`
  : radius === null ? `Flagged as ${positive}; nothing is proved.`
    : `Flagged as ${positive}; at least ${counted(radius + 1, "word")} must be changed to undo it.`);

// `now`: what is said of the text in the box; null where that is not known; undefined where it will be
// in a moment: then only what is counted here moves.
export function showNow({ result }, apart, now, { unknown = false } = {}) {
  const { changed, covered, untouched } = apart;
  const flag = by("flag");
  const proved = result.radius !== null;
  const left = covered ? Math.max(1, result.radius + 1 - Math.min(changed, result.radius)) : 0;
  flag.classList.toggle("beyond", proved && !covered);
  by("flag-counter").hidden = !result.flagged;
  fill(by("flag-verdict"), ...verdict(result, apart));
  say("flag-counted", standing(result, apart));
  if (now === undefined && flag.classList.contains("broken")) return;
  const flagged = now?.flagged ?? result.flagged;
  const broken = result.flagged && !flagged;
  flag.classList.toggle("broken", broken);
  by("flag-label").className = `chip ${flagged ? "tone-flag" : "tone-none"}`;
  say("flag-label", flagged ? `Flagged: ${result.positive}` : "Not flagged");
  by("flag-left-line").hidden = !result.flagged || !proved;
  say("flag-left", broken ? "Past it" : left ? String(left) : "Beyond");
  say("flag-left-unit", broken ? `after ${counted(Math.min(changed, result.words), "change")}`
    : !left ? "the proof: nothing is promised of this" : `${changed ? "more " : ""}${left === 1 ? "word" : "words"} must be changed at least to get past it`);
  if (now === undefined) return;
  say("flag-now", untouched ? "" : unknown ? "The answer is not known." : now === null ? "Asking …"
    : !broken ? "It is still flagged."
      : covered ? "Within the proof the flag is gone. That must not happen: please report it with this link."
        : "The flag is gone: you got past it.");
  if (now) showScore(now);
}

function standing({ radius }, { changed, added, covered, untouched }) {
  if (untouched) return "Nothing added or changed yet. Add what you like, and watch.";
  const came = added ? `${counted(added, "word")} added` : "";
  const went = changed && changed < Infinity ? `${counted(changed, "word")} changed` : "";
  const done = [came, went].filter(Boolean).join(", ") || "The order is another";
  if (radius === null) return `${done}. Nothing is proved about this text.`;
  return covered ? `${done}: still proved to stay flagged.` : `${done}: beyond the proof.`;
}

function showScore(found) {
  const { score, threshold, word_values: values, detector, flagged } = found;
  const spans = passages(found);
  const share = score / threshold;
  const scale = Math.max(2, share * 1.15);
  by("score-bar").style.width = `${(100 * share) / scale}%`;
  by("score-line").style.insetInlineStart = `${100 / scale}%`;
  const meter = by("score");
  meter.ariaValueMax = (100 * scale).toFixed(0);
  meter.ariaValueNow = (100 * share).toFixed(0);
  meter.ariaValueText = `${percent(share)} of what is needed for a flag`;
  say("score-note", `${percent(share)} of what is needed for a flag (the line).`);
  showPassages(spans, detector, flagged);
  showWeights(values, threshold, spans, detector);
}

const ENOUGH = {
  words: ["This word alone is enough: ", "These words alone are enough: "],
  segments: ["These neighbours are enough: ", "Each of these runs of neighbours is enough: "],
  windows: ["This passage is flagged by itself: ", "Each of these passages is flagged by itself: "],
};

// The words by which it is flagged, for those who do not see the box, too.
function showPassages(spans, detector, flagged) {
  by("flag-by").hidden = !flagged;
  const words = wordsOf(boxText());
  const shown = spans.slice(0, MOST_PASSAGES).map(([start, stop]) => `“${words.slice(start, stop).join(" ")}”`);
  const more = spans.length > shown.length ? `, and ${spans.length - shown.length} more` : "";
  say("flag-by", `${ENOUGH[detector][spans.length === 1 ? 0 : 1]}${shown.join(", ")}${more}.`);
}

const NOTES = {
  words: "What each word brings, of what is needed. A word counts once, however often it is there, and no word takes anything away.",
  segments: "What each word brings, of what is needed. Words that speak against a flag count only among their neighbours.",
};

function showWeights(values, threshold, spans, detector) {
  const words = wordsOf(boxText());
  const weights = new Map(values?.map((value, place) => [words[place], value]));
  const sorted = [...weights].filter(([, value]) => value / threshold >= 0.01).sort(([, one], [, other]) => other - one);
  by("weights-title").hidden = by("weights").hidden = by("weights-note").hidden = !sorted.length;
  const enough = new Set(spans.flatMap(([start, stop]) => words.slice(start, stop)));
  fill(by("weights"), ...sorted.slice(0, MOST_WORDS).map(([word, value]) => {
    const bar = make("span", { class: "length" });
    bar.style.width = `${Math.min(100, (100 * value) / threshold)}%`;
    return make("li", { class: `tone-flag${enough.has(word) ? " won" : ""}` },
      make("span", { class: "name" }, word),
      make("span", { class: "bar", "aria-hidden": "true" }, bar),
      make("span", { class: "count" }, percent(value / threshold)));
  }));
  const rest = sorted.length - MOST_WORDS;
  say("weights-note", `${rest > 0 ? `And ${counted(rest, "more word", "more words")}. ` : ""}${NOTES[detector] ?? ""}`);
}

// -- below the text -------------------------------------------------------------------------------

const REASONS = {
  words: "The detector adds up what the words of a text weigh, and flags it where the sum reaches the line. No word weighs less than nothing. So words that are added can only raise the sum: padding, however harmless, does not bring it down.",
  segments: "The detector looks for neighbouring words that together reach the line. What stands before them or behind them is no part of that sum. So padding around a text, however harmless, leaves those neighbours as they are.",
  windows: "A model reads every passage of a few words by itself. What stands before a passage or behind it is not in it. So padding around a text, however harmless, leaves flagged passages as they are.",
};

export function showPromises(result) {
  const { detector, flagged, radius } = result;
  by("reason").hidden = !flagged || radius === null;
  if (by("reason").hidden) return;
  say("reason-text", REASONS[detector]);
  fill(by("promises"), ...promises(result).map(([ask, said]) => make("div", {}, make("dt", {}, ask), make("dd", {}, said))));
}

function promises({ radius, insertions, characters, additions, positive }) {
  const stays = `it stays flagged as ${positive}.`;
  const any = (number, one) => (number === 1 ? `any one ${one}` : `any ${counted(number, one)}`);
  const many = (number, one) => (number ? `Yes, ${any(number, one)}: ${stays}` : "Not one is proved to be harmless.");
  const inside = additions === "anywhere" || insertions === null ? `Yes, any amount: ${stays}`
    : insertions ? `Yes, at ${any(insertions, "place")}: ${stays}` : "Not that: it may cut apart what is flagged.";
  return [
    ["May text be added before or behind?", `Yes, any amount: ${stays}`],
    ["May text be put between its words?", inside],
    ["May words be changed or deleted?", many(radius, "word")],
    ["May letters and blanks be changed?", many(characters, "character")],
  ];
}
