// Two pictures, drawn from the votes of the text on the screen: how hidden copies vote, and why a
// few changed words cannot turn enough of them.

import { nameOf, toneOf } from "./classes.js";
import { by, counted, draw, fill, make, percent, spoken } from "./dom.js";
import { unitOf } from "./standing.js";

const SAMPLES = 4; // copies that are shown one by one
const WIDEST = 40; // words of a copy around those that it shows
const MOST_BALLOTS = 36; // of a class
const MOST_NAMED = 8; // of the words that the answer hangs on
const HEIGHT = 260;
const EDGE = { top: 22, right: 8, bottom: 62, left: 8 };

// -- how hidden copies vote ---------------------------------------------------------------------

export function drawVoting(explained) {
  const { result, copies, words } = explained;
  by("voting").hidden = !copies.length;
  if (!copies.length) return;
  const kept = counted(result.kept, "word");
  by("voting-lead").textContent = `The model reads ${counted(result.masks, "copy", "copies")} of the text. Each shows ${kept} and hides the rest.`
    + ` The copies vote${result.scores ? ", each by its scores" : ""}${result.reader ? ", and one voter more, which reads the whole text" : ""}.`;
  const shown = samples(explained);
  fill(by("copies"), ...shown.map((copy) => make("li", {},
    strip(words.slice(0, result.words_read), copy),
    make("span", { class: "arrow", "aria-hidden": "true" }, "→"),
    make("span", { class: `chip small ${toneOf(copy.label_id)}` }, spoken("votes for "), nameOf(copy.label_id)))));
  const more = result.masks - shown.length;
  by("copies-note").textContent = `${more > 0 ? `And so on, ${more.toLocaleString("en")} more. ` : ""}${
    result.kept === 1 ? "All words, by the class that each is for:" : "The first copies, by the class that each is for:"}`;
  drawPiles(explained);
}

// The clearest of either opinion.
function samples({ copies, word_votes: votes, result }) {
  const clear = (copy) => Math.max(...copy.kept.map((place) => votes[place]?.lead ?? 0), 0);
  const clearest = [...copies].sort((one, other) => clear(other) - clear(one));
  const agree = clearest.filter((copy) => copy.label_id === result.label_id);
  const against = clearest.filter((copy) => copy.label_id !== result.label_id);
  const some = Math.min(against.length, Math.max(1, SAMPLES - agree.length, Math.round((SAMPLES * against.length) / copies.length)));
  const chosen = [...agree.slice(0, SAMPLES - some), ...against.slice(0, some)];
  return chosen.sort((one, other) => one.kept[0] - other.kept[0]);
}

// A copy in a line: its words, and a block for each hidden one.
function strip(words, copy) {
  const kept = new Set(copy.kept);
  const middle = copy.kept[Math.floor(copy.kept.length / 2)] ?? 0;
  const start = Math.max(0, Math.min(middle - WIDEST / 2, words.length - WIDEST));
  const line = make("span", { class: "strip" }, spoken("shows: "));
  words.slice(start, start + WIDEST).forEach((word, number) => {
    if (kept.has(start + number)) {
      line.append(make("b", { class: `tile ${toneOf(copy.label_id)}` }, word), spoken(" "));
      return;
    }
    const hidden = make("span", { class: "hidden-word", "aria-hidden": "true" });
    hidden.style.flexGrow = String(word.length);
    line.append(hidden);
  });
  return line;
}

// Votes as tiles: the words themselves where a copy shows one.
function drawPiles({ result, copies, words, word_votes: votes }) {
  const single = result.kept === 1;
  const ballots = single
    ? votes.flatMap((vote, place) => (vote ? [{ ...vote, word: words[place] }] : []))
    : copies.map(({ label_id }) => ({ label_id, lead: 1, word: "" }));
  const classes = [...new Set(ballots.map((one) => one.label_id))];
  const count = (number) => ballots.filter((one) => one.label_id === number).length;
  classes.sort((one, other) => count(other) - count(one));
  fill(by("piles"), ...classes.map((number) => {
    const own = ballots.filter((one) => one.label_id === number).sort((one, other) => other.lead - one.lead);
    const tiles = own.slice(0, MOST_BALLOTS).map(({ word, lead }) => {
      const tile = make("span", { class: `${word ? "ballot" : "ballot blank"} ${toneOf(number)}` }, word);
      tile.style.setProperty("--lead", lead.toFixed(2));
      return tile;
    });
    const rest = own.length - tiles.length;
    return make("li", { class: toneOf(number) },
      make("span", { class: "pile-name" }, make("b", {}, nameOf(number)), ` ${own.length}`),
      make("span", { class: "pile" }, ...tiles.flatMap((tile) => [tile, " "]), rest > 0 ? `and ${rest} more` : null));
  }));
}

// -- why d changed words cannot turn enough of them ---------------------------------------------

// `changed`: where the text in the box stands, and `margin` what is left of its lead, if known.
export function drawEnough(pinned, { changed, margin }) {
  const { result, curves } = pinned;
  const curve = curves[result.certificate];
  by("enough").hidden = !curve;
  if (!curve) return;
  const { radius, label } = result;
  const unit = unitOf(result);
  by("enough-title").textContent = !result.guarantee ? "What the paper supposes of changed words" : radius ? `Why ${counted(radius, `changed ${unit}`)} ${radius === 1 ? "is" : "are"} not enough`
    : `Why one changed ${unit} may be enough`;
  const share = result.kept / Math.max(1, result.words_read);
  by("enough-lead").textContent = `A copy that shows no changed word votes as before. So a changed word can only turn the copies that show it`
    + `: ${result.family === "all" ? "" : "about "}${percent(share)} of them${result.reader ? ", and the voter that reads the whole text" : ""}.`
    + (result.guarantee ? " Suppose all of those turn, and the words were chosen as badly as can be:"
      : " The paper supposes that they are chosen at random. An attacker does not, so this proves nothing:");
  by("stairs").replaceChildren(stairs(pinned, curve, changed, margin));
  const worst = result.critical_words.slice(0, MOST_NAMED).map((place) => `“${pinned.words[place]}”`);
  const more = result.critical_words.length - worst.length;
  by("enough-note").textContent = [
    radius && result.guarantee ? `After ${radius} the answer is still ahead, whichever words they were.` : "",
    result.guarantee && curve.margins.length > (radius ?? 0) + 1 ? `After ${(radius ?? -1) + 1} it need not be.` : "",
    worst.length ? `The worst choice: ${worst.join(", ")}${more > 0 ? ` and ${more} more` : ""}.` : "",
    changed !== null ? "The dot is your text: what your changes really did." : "",
    curve.known.includes(false) ? "Somewhere the search gave up: the bars are then lower bounds." : "",
  ].filter(Boolean).join(" ");
  by("stairs").firstChild.setAttribute("aria-label", `What is left of the lead of ${label} after each number of changed ${unit}s: `
    + `${curve.margins.map((left, words) => `${words}: ${lead(left)}`).join(", ")}.`);
}

// A copy that changes sides takes two from the lead: a margin is half of it.
const lead = (margin) => percent(2 * margin).replace("-", "−");

function stairs({ result }, curve, changed, margin) {
  const width = Math.max(280, Math.round(by("stairs").clientWidth) || 560);
  const { margins } = curve;
  const high = Math.max(0.02, ...margins, margin ?? 0);
  const low = Math.min(-high / 4, ...margins, margin ?? 0);
  const bottom = HEIGHT - EDGE.bottom;
  const y = (left) => bottom - ((bottom - EDGE.top) * (left - low)) / (high - low);
  const step = (width - EDGE.left - EDGE.right) / margins.length;
  const bar = Math.max(2, Math.min(56, step * 0.78));
  const x = (words) => EDGE.left + step * (words + 0.5);
  const chart = draw("svg", { class: `stair-chart ${toneOf(result.label_id)}`, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img" });
  const few = step >= 30;
  margins.forEach((left, words) => {
    const [top, end] = left > 0 ? [y(left), y(0)] : [y(0), y(left)];
    chart.append(draw("rect", {
      class: left > 0 ? "ahead" : "behind", x: x(words) - bar / 2, y: top, width: bar, height: Math.max(1.5, end - top), rx: 3,
    }));
    if (few) chart.append(draw("text", { class: "value", x: x(words), y: left > 0 ? top - 6 : end + 14 }, lead(left)));
  });
  chart.append(draw("line", { class: "zero", x1: EDGE.left, x2: width - EDGE.right, y1: y(0), y2: y(0) }));
  const every = Math.ceil(22 / step);
  margins.forEach((_, words) => {
    if (words % every === 0) chart.append(draw("text", { class: "tick", x: x(words), y: HEIGHT - 24 }, String(words)));
  });
  chart.append(draw("text", { class: "tick", x: width / 2, y: HEIGHT - 6 },
    result.threat === "edits" ? "edits" : "words changed"));
  chart.append(draw("text", { class: "axis", x: width - EDGE.right, y: EDGE.top - 6 }, `lead of ${result.label}${result.guarantee ? ", at worst" : ""}`));
  if (margin !== null && changed < margins.length) {
    chart.append(draw("line", { class: "you", x1: x(changed), x2: x(changed), y1: y(margin), y2: y(0) }));
    chart.append(draw("circle", { class: "you", cx: x(changed), cy: y(margin), r: 6 }));
  }
  return chart;
}
