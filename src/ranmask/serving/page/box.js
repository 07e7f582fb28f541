// The box: a text to write in, and behind each word a tile with the colour of its vote.

import { nameOf, toneOf } from "./classes.js";
import { by, fill, make, say, spoken } from "./dom.js";
import { difference, isBlank, piecesOf, wordsAround, wordsOf } from "./words.js";

const MOST_SHOWN = 24;

const known = new Map(); // votes of words that stand alone in a copy: the same in every text

export const boxText = () => by("text").value;

// The words as they are now; `count` is how many the text had that is being changed.
export const boxWords = (count = 0) => wordsAround(boxText(), by("text").selectionStart, count);

export function setBox(text) {
  if (by("text").value !== text) by("text").value = text;
}

// The place of the word in which the caret stands.
const caretWord = () => wordsOf(`${boxText().slice(0, by("text").selectionStart)}.`).length - 1;

export const isUntouched = ({ words }) => boxWords().join(" ") === words.join(" ");

// How the text in the box differs from the one that is proved; `foreign` words are none of the
// synonyms that its proof covers.
export function standing(pinned) {
  const words = boxWords(pinned.words.length);
  const apart = difference(pinned.words, words, pinned.result.threat === "edits");
  const listed = pinned.replacements;
  const foreign = listed && !apart.moved
    ? [...apart.places].filter((place) => words[place] && !listed[place].includes(words[place])).length : 0;
  return { ...apart, words, foreign, untouched: isUntouched(pinned) };
}

// Whether this is no longer the text that was proved, but another one.
export function isAnother(pinned, event) {
  const { words, changed } = standing(pinned);
  if (changed < Math.max(pinned.words.length, words.length)) return null;
  if (event.inputType?.startsWith("insertFrom")) return "pasted";
  return words.length < 2 && pinned.words.length > 2 ? "begun" : null;
}

// What can be done: a text is being written, or its proof stands and may be tried.
export function showTools(writing, ready, label) {
  by("writing").hidden = !writing || !ready;
  by("breaking").hidden = writing || !ready;
  say("text-label", label);
}

export const forgetVotes = () => known.clear();

export function learnVotes({ words, word_votes: votes, result }) {
  if (result.kept === 1) votes.forEach((vote, place) => vote && known.set(words[place], vote));
}

// `answer`: the last one, of whatever text.  `marks`: places of words that are new, critical, hit.
export function paint(answer, { changed, critical = new Set(), hit = new Set() }) {
  let place = -1;
  const read = answer?.result.words_read ?? Infinity;
  fill(by("tiles"), ...piecesOf(boxText()).map((piece) => {
    if (isBlank(piece)) return piece;
    place += 1;
    const vote = (answer?.words[place] === piece ? answer.word_votes[place] : null) ?? known.get(piece);
    const names = ["tile", vote ? toneOf(vote.label_id) : "tone-unknown"];
    if (changed.has(place)) names.push("changed");
    if (critical.has(place)) names.push("critical");
    if (hit.has(place)) names.push("hit");
    if (place >= read) names.push("unread");
    const tile = make("span", { class: names.join(" ") }, piece);
    if (vote) tile.style.setProperty("--lead", vote.lead.toFixed(2));
    return tile;
  }), "\u200b"); // a last line without words has its height, too
}

// Beside the tiles: the voter that reads the whole text, and its parts, each as wide as its words.
export function showReadings({ readings }) {
  by("readings").hidden = !readings.length;
  const rows = []; // the whole text, its halves, ...: each begins anew
  readings.forEach((one, number) => {
    if (number === 0 || one.start < readings[number - 1].stop) rows.push([]);
    rows.at(-1).push(one);
  });
  fill(by("readings"), ...rows.map((row) => make("li", {},
    ...row.map((one, number) => {
      const said = one.label_id === null ? "no answer" : nameOf(one.label_id);
      const part = make("span", { class: `reading ${one.label_id === null ? "tone-unknown" : toneOf(one.label_id)}` },
        row.length === 1 ? "Whole-text voter: " : spoken(`part ${number + 1} of ${row.length}, counts ${one.weight} words: `), said,
        row.length === 1 ? ` · counts ${one.weight} words` : null);
      part.style.flexGrow = String(Math.max(1, one.stop - one.start));
      return part;
    }))));
}

// By synonyms only: what may take the place of the word where the caret is.
export function showListed({ replacements, words }) {
  const place = caretWord();
  const listed = replacements?.[place];
  if (!listed || boxWords(words.length).length !== words.length) {
    say("listed", "");
    return;
  }
  const more = listed.length > MOST_SHOWN ? ` and ${listed.length - MOST_SHOWN} more` : "";
  say("listed", listed.length ? `Listed for “${words[place]}”: ${listed.slice(0, MOST_SHOWN).join(", ")}${more}.`
    : `Nothing is listed for “${words[place]}”.`);
}

// What was changed, word by word.
export function showChanges(pairs) {
  by("changes").hidden = !pairs.length;
  const shown = pairs.slice(0, MOST_SHOWN).map(([before, after]) => make("li", {},
    before ? make("del", {}, before) : null,
    before && after ? make("span", { class: "arrow" }, " → ") : null,
    after ? make("ins", {}, after) : null));
  const more = pairs.length - shown.length;
  fill(by("changes"), ...shown, ...(more > 0 ? [make("li", {}, `and ${more} more`)] : []));
}
