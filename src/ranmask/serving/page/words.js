// What the service takes for a word, and what is different between two texts.

// The blanks of the service, which are not quite those of JavaScript.
const BLANK = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const BLANKS = new RegExp(`[${BLANK}]+`, "gu");
const PIECES = new RegExp(`[${BLANK}]+|[^${BLANK}]+`, "gu");

export const wordsOf = (text) => text.split(BLANKS).filter(Boolean);

// Words and blanks in turn, as they stand.
export const piecesOf = (text) => text.match(PIECES) ?? [];

export const isBlank = (piece) => piece.replace(BLANKS, "") === "";

// The words of a text that is being written.  Where one word of `count` is missing and the caret
// stands between blanks, its next letter begins that word: its place is kept, empty.
export function wordsAround(text, caret, count) {
  const words = wordsOf(text);
  const [before, after] = [text.slice(0, caret), text.slice(caret)];
  if (words.length !== count - 1 || !isBlank(before.slice(-1)) || !isBlank(after.slice(0, 1))) return words;
  return words.toSpliced(wordsOf(before).length, 0, "");
}

// Which words went and which came, in whatever order.  A word that went and one that came are one
// edit, a replacement; any other is an edit of its own.
export function exchanged(before, after) {
  const left = new Map();
  for (const word of before) left.set(word, (left.get(word) ?? 0) + 1);
  const came = after.flatMap((word, place) => {
    const more = left.get(word) ?? 0;
    if (more) left.set(word, more - 1);
    return more ? [] : [place];
  });
  const went = [...left].flatMap(([word, times]) => Array(times).fill(word));
  return { went, came, edits: Math.max(went.length, came.length) };
}

// How far `after` is from `before`: `changed` counts what a radius counts, `places` are those of
// the words that are new, `pairs` what went with what came.  `moved`: words were added or left out,
// which a proof about replaced words does not know.
export function difference(before, after, edits) {
  const moved = !edits && before.length !== after.length;
  if (edits || moved) {
    const { went, came, edits: changed } = exchanged(before, after);
    const pairs = Array.from({ length: changed }, (_, place) => [went[place], after[came[place]]]);
    return { changed, moved, places: new Set(came), pairs };
  }
  const places = after.flatMap((word, place) => (word === before[place] ? [] : [place]));
  return { changed: places.length, moved, places: new Set(places), pairs: places.map((place) => [before[place], after[place]]) };
}

// The text with other words in some places, all blanks as they were.
export function withWords(text, changes) {
  let place = -1;
  return piecesOf(text).map((piece) => (isBlank(piece) ? piece : changes.get(place += 1) ?? piece)).join("");
}

const MOST_COMPARED = 1 << 23; // pairs of words: a tenth of a second or so

// How `before` stands inside `after`: what is in front of it and behind it costs nothing.  A word
// that was replaced or deleted costs 1; what was put in between costs 1 for each "word" or each
// "block", or is "free".  `edits`: the least that it costs; `replaced` and `deleted` words of `before`;
// `places`: where those stand that are left.  Where there is too much to compare, `edits` is infinite.
export function embedded(before, after, gap) {
  const [rows, columns] = [before.length + 1, after.length + 1];
  if (rows * columns > MOST_COMPARED) return { edits: Infinity, replaced: 0, deleted: before.length, places: new Set() };
  const [open, more] = { word: [1, 1], block: [1, 0], free: [0, 0] }[gap];
  const far = 1 << 15;
  const at = (row, column) => row * columns + column;
  // Costs where the last word was one of `before`, and where it was put in between.
  const own = new Uint16Array(rows * columns).fill(far);
  const between = new Uint16Array(rows * columns).fill(far);
  const best = (row, column) => Math.min(own[at(row, column)], between[at(row, column)]);
  own.fill(0, 0, columns);
  for (let row = 1; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      let least = best(row - 1, column) + 1;
      if (column) {
        const other = before[row - 1] === after[column - 1] ? 0 : 1;
        least = Math.min(least, best(row - 1, column - 1) + other);
        const put = Math.min(own[at(row, column - 1)] + open, between[at(row, column - 1)] + more);
        if (row < rows - 1) between[at(row, column)] = put;
      }
      own[at(row, column)] = least;
    }
  }
  const last = own.subarray(at(rows - 1, 0));
  const edits = Math.min(...last);
  const places = new Set();
  let [replaced, deleted] = [0, 0];
  let inside = false; // whether the way back is between two words of `before`
  for (let [row, column] = [rows - 1, last.lastIndexOf(edits)]; row;) {
    if (inside) {
      inside = between[at(row, column)] !== own[at(row, column - 1)] + open;
      column -= 1;
      continue;
    }
    const cost = own[at(row, column)];
    const other = column && before[row - 1] === after[column - 1] ? 0 : 1;
    const paired = column && cost === best(row - 1, column - 1) + other;
    if (paired && !other) places.add(column - 1);
    replaced += paired ? other : 0;
    deleted += paired ? 0 : 1;
    row -= 1;
    if (paired) column -= 1;
    inside = row > 0 && between[at(row, column)] < own[at(row, column)];
  }
  return { edits, replaced, deleted, places };
}
