// The classes of a model: their names, and the colour of each.

const COLOURS = 8; // of the style sheet; further classes are grey

let names = [];
let colours = new Map();

// Few classes have their colours by number; of many, those that got most of this text's votes.
export function nameClasses(labels, shares) {
  names = labels;
  const order = labels.map((_, number) => number);
  if (order.length > COLOURS) order.sort((one, other) => shares[other] - shares[one]);
  colours = new Map(order.slice(0, COLOURS).map((number, place) => [number, place]));
}

// What a copy votes for: null is no class.
export const nameOf = (number) => (number === null ? "none" : names[number]);

export const toneOf = (number) => `tone${colours.get(number) ?? "-none"}`;

// What decides: mean scores, or shares of the votes.
export function sharesOf({ scores, votes }) {
  if (scores) return scores;
  const total = votes.reduce((sum, count) => sum + count, 0) || 1;
  return votes.map((count) => count / total);
}
