// What the service takes for a word, and what is different between two texts.

// The blanks of the service, which are not quite those of JavaScript.
const BLANKS = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/gu;

export const wordsOf = (text) => text.split(BLANKS).filter(Boolean);

export const oneWord = (text) => text.replace(BLANKS, "");

// Which words went and which came, in whatever order.  A word that went and one that came are one
// edit, a replacement; any other is an edit of its own.
export function exchanged(before, after) {
  const left = new Map();
  for (const word of before) left.set(word, (left.get(word) ?? 0) + 1);
  const came = after.filter((word) => {
    const more = left.get(word) ?? 0;
    if (more) left.set(word, more - 1);
    return !more;
  });
  const went = [...left].flatMap(([word, times]) => Array(times).fill(word));
  return { went, came, edits: Math.max(went.length, came.length) };
}
