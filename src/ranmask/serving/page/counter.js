// How many words differ from the text that was certified, and whether the proof still covers them.

import { by, counted, fill, percent, strong } from "./dom.js";
import { difference, untouched } from "./editor.js";

let explained = null;

export function countFor(answer) {
  explained = answer;
}

export function covered() {
  const { changed, gone, foreign } = difference();
  const { radius } = explained.result;
  return gone === 0 && foreign === 0 && radius !== null && changed <= radius;
}

export function showCount() {
  by("counter").classList.toggle("beyond", !covered());
  by("counter").classList.remove("broken");
  by("counted").textContent = standing();
}

function standing() {
  const { result } = explained;
  const { changed, gone, foreign } = difference();
  const edits = result.threat === "edits";
  const [one, done] = edits ? ["edit", ""] : ["word", " changed"];
  const proof = result.guarantee ? "proof" : "claim";
  const most = result.radius;
  if (most === null) {
    return `${counted(changed, one)}${done}. Nothing is ${result.guarantee ? "proved" : "claimed"} about this text.`;
  }
  if (gone > 0) {
    return `${counted(gone, "word")} left out: beyond the ${proof}, which is about words replaced one for one.`;
  }
  if (foreign > 0) {
    return `${counted(foreign, "word")} ${foreign === 1 ? "is" : "are"} not among the listed synonyms: beyond the ${proof}, which covers no others.`;
  }
  if (changed === 0) {
    const still = untouched() ? `No ${edits ? "edit" : "word changed"} yet.` : "Only the order is another, which costs nothing.";
    return `${still} Up to ${counted(most, edits ? "edit" : "change")} ${most === 1 ? "is" : "are"} covered by the ${proof}.`;
  }
  if (changed <= most) {
    const said = surely(result, "claimed, but not proved,");
    return `${changed} of ${counted(most, one)}${done}: still ${said} to be ${result.label}.`;
  }
  return `${counted(changed, one)}${done}, ${changed - most} more than the ${most} covered: beyond the ${proof}.`;
}

// How sure a certificate is of what it covers.
export function surely({ guarantee, alpha }, otherwise) {
  return !guarantee ? otherwise : alpha === null ? "proved" : `${percent(1 - alpha)} sure`;
}

// What the service says of the text as it is now; null while it is asked.
export function showNow(label_id) {
  const { result, labels } = explained;
  if (untouched()) {
    fill(by("now"), "The answer is ", strong(result.label), ".");
  } else if (label_id === null) {
    fill(by("now"), "Asking …");
  } else if (label_id === result.label_id) {
    fill(by("now"), "The answer is still ", strong(labels[label_id]), ".");
  } else {
    by("counter").classList.add("broken");
    const unheard = covered() && result.guarantee && result.alpha === null;
    const said = covered() && !result.guarantee ? "Broken, though the paper claims it cannot be" : "Broken";
    fill(by("now"), unheard ? "Within the proof the answer changed to " : `${said}: the answer is now `,
      strong(labels[label_id]), unheard ? ". That must not happen: please report it with this link." : ".");
  }
}
