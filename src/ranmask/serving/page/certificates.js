// What else is proved of a text: by other certificates, against other threats, and what it assumes.

import { provable } from "./choices.js";
import { nameOf } from "./classes.js";
import { by, counted, fill, make, percent, say } from "./dom.js";
import { forget, post, replaced } from "./service.js";

const NAMES = {
  exact: "exact",
  ablation: "Levine and Feizi",
  "ablation-runner-up": "Levine and Feizi, runner-up",
  paper: "the paper's, corrected",
  "paper-as-printed": "the paper's, as printed",
  "paper-estimated-beta": "the paper's, estimated beta",
};
const COMPARED = ["exact", "ablation", "paper", "paper-as-printed"];

// The question that each threat is, and what is proved of so many steps of it.
const QUESTIONS = {
  insertions: ["May words be added?", (many) => `any ${counted(many, "word")}, anywhere`],
  deletions: ["May words be deleted?", (many) => `any ${counted(many, "word")}`],
  characters: ["May letters and blanks be changed?", (many) => `any ${counted(many, "character")}`],
  span: ["May a run of neighbours be replaced?", (many) => `any ${counted(many, "word")} in a row`],
  synonyms: ["May words become synonyms of its table?", (many) => `any ${counted(many, "word")}`],
};

// Against each further threat that can be proved, asked for beside the answer.
export async function showMenu(asked, result) {
  const threats = provable();
  by("menu").hidden = !threats.length;
  if (!threats.length) return;
  const question = { ...asked, options: { ...asked.options, threats } };
  let radii;
  try {
    radii = (await post("certify", question, "menu")).results[0].radii ?? {};
  } catch (error) {
    if (!replaced(error)) by("menu").hidden = true; // the answer itself stands, or says what is wrong
    return;
  }
  fill(by("menu"), ...threats.map((threat) => {
    const [ask, proved] = QUESTIONS[threat];
    return make("div", {}, make("dt", {}, ask), make("dd", {}, withstood(radii[threat], proved, result)));
  }));
}

function withstood(radius, proved, result) {
  if (radius === null || radius === undefined) return "Nothing is proved.";
  if (radius === 0) return "Not one: only the text as it stands is proved.";
  if (radius >= result.words && proved === QUESTIONS.synonyms[1]) return `Yes, any or all: it stays ${result.label}.`;
  return `Yes, ${proved(radius)}: it stays ${result.label}.`;
}

export function showAssumptions(result) {
  by("assumes").hidden = !result.assumes.length;
  fill(by("assumptions"), ...result.assumes.map((one) => make("li", {}, `${one}.`)));
}

// The table is filled while it is open: each certificate needs votes of its own.
export async function compare(asked, result) {
  forget("compare");
  const some = asked.options.certificate !== undefined;
  by("compared").hidden = !some;
  if (!some || !by("compared").open) return;
  const alone = result.reader || result.threat !== "substitutions";
  const others = alone ? [] : COMPARED;
  const kinds = others.includes(result.certificate) ? others : [...others, result.certificate];
  const rows = new Map(kinds.map((kind) => [kind, make("tr", { class: kind === result.certificate ? "own" : null },
    make("th", { scope: "row" }, NAMES[kind]), make("td", { class: "number" }, "…"), make("td", {}, ""))]));
  fill(by("radii"), ...rows.values());
  say("compared-note", result.reader ? "A model that reads the whole text votes, too; only the exact certificate allows for that."
    : result.threat === "substitutions" ? `All but exact are about a vote of random copies.` : "The other certificates do not cover this kind of change.");
  for (const [kind, row] of rows) {
    const [, words, sure] = row.children;
    const said = kind === result.certificate ? result : await certified(kind, asked);
    if (said === null) return;
    words.textContent = said.error ? "–" : said.radius === null ? "none" : String(said.radius);
    sure.textContent = said.error ? `not shown: ${said.error}`
      : (said.guarantee ? (said.alpha === null ? "yes" : `yes, with ${percent(1 - said.alpha)}`) : "no")
        + (said.label_id === result.label_id ? "" : `; of another answer, ${nameOf(said.label_id)}`);
  }
}

// Null where another comparison took the place of this one.
async function certified(kind, asked) {
  const { ensemble, ...options } = asked.options;
  const own = kind === "exact" && ensemble ? { ensemble } : {};
  try {
    return (await post("certify", { ...asked, options: { ...options, ...own, certificate: kind } }, "compare")).results[0];
  } catch (error) {
    return replaced(error) ? null : { error: error.message };
  }
}
