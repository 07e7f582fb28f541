// What is left of each proof after each number of changed words.

import { by, counted, draw, fill, make, percent } from "./dom.js";

export const NAMES = {
  exact: "exact",
  ablation: "Levine and Feizi",
  "ablation-runner-up": "Levine and Feizi, runner-up",
  paper: "the paper's, corrected",
  "paper-as-printed": "the paper's, as printed",
  "paper-estimated-beta": "the paper's, estimated beta",
};
const ORDER = ["exact", "ablation", "ablation-runner-up", "paper", "paper-estimated-beta", "paper-as-printed"];
const LOOKS = { exact: 1, ablation: 2, paper: 3, "paper-as-printed": 4, "ablation-runner-up": 5, "paper-estimated-beta": 6 };
const HEIGHT = 300;
const MOST_MARKS = 40; // more would hide the line
const EDGE = { top: 14, right: 16, bottom: 46, left: 54 };

export const kindsOf = (curves) => ORDER.filter((kind) => kind in curves);

// Draws the curves into #chart; `changed` is marked where the user stands, if that is on it.
export function drawChart(curves, changed, threat) {
  const unit = threat === "edits" ? "edit" : "word";
  const box = by("chart");
  const kinds = kindsOf(curves);
  if (!kinds.length) {
    fill(box);
    fill(by("key-list"));
    return;
  }
  const width = Math.max(280, Math.round(box.clientWidth) || 640);
  const all = kinds.flatMap((kind) => curves[kind].margins);
  const most = Math.max(...kinds.map((kind) => lastShown(kind, curves[kind])));
  const [low, high] = [Math.min(-0.05, ...all), Math.max(0.05, ...all)];
  const right = width - EDGE.right;
  const bottom = HEIGHT - EDGE.bottom;
  const x = (words) => EDGE.left + ((right - EDGE.left) * words) / Math.max(most, 1);
  const y = (margin) => bottom - ((bottom - EDGE.top) * (margin - low)) / (high - low);
  const chart = draw("svg", {
    class: "chart", viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-labelledby": "chart-title",
  });
  chart.append(draw("title", { id: "chart-title" }, spoken(curves, kinds, unit)));
  chart.append(draw("rect", {
    class: "lost", x: EDGE.left, y: y(0), width: right - EDGE.left, height: bottom - y(0),
  }));
  axes(chart, { x, y, low, high, most, right, bottom, width, unit });
  if (changed !== null && changed <= most) {
    chart.append(draw("line", { class: "now", x1: x(changed), x2: x(changed), y1: EDGE.top, y2: bottom }));
    const end = changed > most / 2;
    chart.append(draw("text", {
      class: end ? "tick end" : "tick", x: x(changed) + (end ? -5 : 5), y: EDGE.top + 10,
    }, "you"));
  }
  // The first one is what was asked for: nothing is drawn over it.
  for (const kind of [...kinds].reverse()) chart.append(series(kind, curves[kind], x, y));
  fill(box, chart);
  fill(by("key-list"), ...kinds.map((kind) => keyed(kind, curves[kind], unit)));
}

// Of the printed radius there is one mark only: its curve is the corrected one's.
function lastShown(kind, curve) {
  return kind === "paper-as-printed" ? (curve.radius ?? 0) : curve.margins.length - 1;
}

function axes(chart, { x, y, low, high, most, right, bottom, width, unit }) {
  const step = high - low > 0.5 ? 0.2 : high - low > 0.25 ? 0.1 : 0.05;
  for (let place = Math.ceil(low / step); place * step <= high + 1e-9; place += 1) {
    const at = y(place * step);
    chart.append(draw("line", {
      class: place === 0 ? "zero" : "grid", x1: EDGE.left, x2: right, y1: at, y2: at,
    }));
    chart.append(draw("text", { class: "tick end", x: EDGE.left - 7, y: at + 4 }, percent(place * step)));
  }
  const every = Math.ceil((most + 1) / Math.max(4, Math.floor(width / 44)));
  for (let words = 0; words <= most; words += every) {
    chart.append(draw("text", { class: "tick middle", x: x(words), y: bottom + 18 }, String(words)));
  }
  chart.append(draw("text", {
    class: "name middle", x: (EDGE.left + right) / 2, y: HEIGHT - 8,
  }, unit === "edit" ? "edits" : "words changed"));
}

function series(kind, curve, x, y) {
  const group = draw("g", { class: `look${LOOKS[kind]}` });
  const points = curve.margins.map((margin, words) => [x(words), y(margin)]);
  if (kind !== "paper-as-printed") {
    group.append(draw("polyline", { class: "line", points: points.map((one) => one.join(",")).join(" ") }));
  }
  points.forEach(([left, top], words) => {
    const last = words === curve.radius;
    const small = kind !== "paper-as-printed" && points.length <= MOST_MARKS;
    if (last || small) group.append(marker(kind, left, top, last));
  });
  return group;
}

function marker(kind, x, y, last) {
  const size = last ? 6.5 : 2.6;
  const shape = last ? "marker open" : "marker";
  if (kind === "paper-as-printed") {
    const d = `M${x - 6} ${y - 6}L${x + 6} ${y + 6}M${x - 6} ${y + 6}L${x + 6} ${y - 6}`;
    return draw("path", { class: "line cross", d });
  }
  if (LOOKS[kind] === 1) return draw("circle", { class: shape, cx: x, cy: y, r: size });
  if (LOOKS[kind] === 2) {
    return draw("rect", { class: shape, x: x - size, y: y - size, width: 2 * size, height: 2 * size });
  }
  if (LOOKS[kind] === 5) {
    const points = `${x},${y - size * 1.4} ${x + size * 1.4},${y} ${x},${y + size * 1.4} ${x - size * 1.4},${y}`;
    return draw("polygon", { class: shape, points });
  }
  const up = LOOKS[kind] === 3 ? 1 : -1;
  const points = `${x},${y - up * size * 1.2} ${x + size * 1.1},${y + up * size} ${x - size * 1.1},${y + up * size}`;
  return draw("polygon", { class: shape, points });
}

function keyed(kind, curve, unit) {
  const swatch = draw("svg", { width: 34, height: 16, "aria-hidden": "true", class: `look${LOOKS[kind]}` });
  if (kind !== "paper-as-printed") {
    swatch.append(draw("line", { class: "line", x1: 0, x2: 34, y1: 8, y2: 8 }));
  }
  swatch.append(marker(kind, 17, 8, true));
  return make("li", {}, swatch, `${NAMES[kind]}: ${reach(curve, unit)}`);
}

function reach(curve, unit) {
  return curve.radius === null ? "nothing" : counted(curve.radius, unit);
}

function spoken(curves, kinds, unit) {
  const said = kinds.map((kind) => `${NAMES[kind]} ends at ${reach(curves[kind], unit)}`);
  return `Remaining margin by number of ${unit === "edit" ? "edits" : "changed words"}: ${said.join("; ")}. The table below has the numbers.`;
}
