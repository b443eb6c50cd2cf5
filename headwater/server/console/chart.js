// Charts by hand, in SVG: lines over time or numbers, bars over names, and small lines in tiles.

import { h, s, number, isNumeric, isTime } from "./dom.js";

const MARGIN = { left: 54, right: 14, top: 10, bottom: 24 };
export const MOST_SERIES = 8;

function steps(low, high, count) {
  const rough = (high - low) / Math.max(count, 1) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((m) => m >= rough) ?? power * 10;
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(at);
  return found;
}

const SPANS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400];

function timeSteps(low, high, count) {
  const rough = (high - low) / 1000 / Math.max(count, 1);
  const step = (SPANS.find((x) => x >= rough) ?? Math.ceil(rough / 86400) * 86400) * 1000;
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
  return found;
}

function timeText(at, range) {
  const text = new Date(at).toISOString();
  if (range > 3 * 86400e3) return text.slice(5, 10);
  return range > 600e3 ? text.slice(11, 16) : text.slice(11, 19);
}

// data: {series: [{name, points: [[x, y], …]}], time: whether x is in ms, bars: whether x are names}
export function chart(label) {
  const legend = h("div", { class: "legend" });
  const tip = h("div", { class: "tip", hidden: true });
  const box = h("div", { class: "plot", role: "img", "aria-label": label });
  const root = h("div", { class: "chart" }, legend, box, tip);
  let data = { series: [] };
  const draw = () => {
    const width = box.clientWidth, height = box.clientHeight;
    if (width < 80 || height < 60) return;
    if (!data.series.some((x) => x.points.length)) {
      box.replaceChildren(h("p", { class: "empty" }, "nothing to draw yet"));
      delete box.dataset.points;
      return;
    }
    box.replaceChildren(data.bars ? drawBars(data, width, height) : drawLines(data, width, height));
    box.dataset.points = data.series.reduce((n, x) => n + x.points.length, 0);
  };
  new ResizeObserver(draw).observe(box);
  root.show = (next) => {
    data = next;
    legend.replaceChildren(...next.series.map((x, i) =>
      h("span", { class: `key c${i % MOST_SERIES}` }, x.name)));
    legend.hidden = next.series.length < 2 && !next.legend;
    tip.hidden = true;
    draw();
  };
  box.addEventListener("pointermove", (event) => showTip(event, data, box, tip));
  box.addEventListener("pointerleave", () => { tip.hidden = true; });
  return root;
}

function showTip(event, data, box, tip) {
  if (data.bars || !data.scale) return;
  const frame = box.getBoundingClientRect();
  const x = data.scale.back(event.clientX - frame.left);
  const lines = [];
  let at = null;
  data.series.forEach((one, i) => {
    const near = one.points.reduce((a, b) =>
      (a && Math.abs(a[0] - x) <= Math.abs(b[0] - x) ? a : b), null);
    if (!near) return;
    at = near[0];
    lines.push(h("div", { class: `key c${i % MOST_SERIES}` }, `${one.name}: ${number(near[1])}`));
  });
  if (at === null) { tip.hidden = true; return; }
  const when = data.time ? new Date(at).toISOString().replace("T", " ").slice(0, 19) : number(at);
  tip.replaceChildren(h("b", {}, when), ...lines);
  tip.hidden = false;
  const left = event.clientX - frame.left;
  tip.style.left = `${left > frame.width / 2 ? left - tip.offsetWidth - 12 : left + 14}px`;
}

function range(values, zero) {
  let low = Infinity, high = -Infinity;
  for (const value of values) { if (value < low) low = value; if (value > high) high = value; }
  if (!Number.isFinite(low)) return [0, 1];
  if (zero) { low = Math.min(low, 0); high = Math.max(high, 0); }
  if (low === high) return [low - (low ? Math.abs(low) * 0.1 : 0), high + (high ? Math.abs(high) * 0.1 : 1)];
  return [low, high];
}

function drawLines(data, width, height) {
  const all = data.series.flatMap((x) => x.points);
  const [x0, x1] = range(all.map((p) => p[0]), false);
  let [y0, y1] = range(all.map((p) => p[1]), false);
  if (y0 > 0 && y0 < y1 * 0.5) y0 = 0;
  else if (y0 < 0 || y0 > 0) y0 -= (y1 - y0) * 0.06;
  y1 += (y1 - y0) * 0.05;
  const x = (v) => MARGIN.left + ((v - x0) / (x1 - x0 || 1)) * (width - MARGIN.left - MARGIN.right);
  const y = (v) => height - MARGIN.bottom - ((v - y0) / (y1 - y0 || 1)) * (height - MARGIN.top - MARGIN.bottom);
  data.scale = { back: (px) => x0 + ((px - MARGIN.left) / (width - MARGIN.left - MARGIN.right)) * (x1 - x0) };
  const root = s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  for (const v of steps(y0, y1, Math.max(2, Math.floor(height / 50)))) {
    root.append(s("line", { class: "rule", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(v), y2: y(v) }),
      s("text", { class: "tick", x: MARGIN.left - 8, y: y(v) + 4, "text-anchor": "end" }, number(Number(v.toPrecision(6)))));
  }
  const ticks = (data.time ? timeSteps : steps)(x0, x1, Math.max(2, Math.floor(width / (data.time ? 110 : 55))));
  for (const v of ticks.filter((at) => x(at) < width - 26)) {
    root.append(s("text", { class: "tick", x: x(v), y: height - 7, "text-anchor": "middle" },
      data.time ? timeText(v, x1 - x0) : number(Number(v.toPrecision(8)))));
  }
  data.series.forEach((one, i) => {
    const path = one.points.map((p, n) => `${n ? "L" : "M"}${x(p[0]).toFixed(1)},${y(p[1]).toFixed(1)}`).join("");
    if (path) root.append(s("path", { class: `line c${i % MOST_SERIES}`, d: path }));
    const last = one.points[one.points.length - 1];
    if (last) root.append(s("circle", { class: `dot c${i % MOST_SERIES}`, cx: x(last[0]), cy: y(last[1]), r: 2.8 }));
  });
  return root;
}

function drawBars(data, width, height) {
  const points = data.series[0]?.points.slice(0, 60) ?? [];
  const [y0, y1] = range(points.map((p) => p[1]), true);
  const inner = width - MARGIN.left - MARGIN.right;
  const y = (v) => height - MARGIN.bottom - ((v - y0) / (y1 - y0 || 1)) * (height - MARGIN.top - MARGIN.bottom);
  const wide = inner / Math.max(points.length, 1);
  const root = s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  for (const v of steps(y0, y1, Math.max(2, Math.floor(height / 50)))) {
    root.append(s("line", { class: "rule", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(v), y2: y(v) }),
      s("text", { class: "tick", x: MARGIN.left - 8, y: y(v) + 4, "text-anchor": "end" }, number(Number(v.toPrecision(6)))));
  }
  const every = Math.ceil(points.length / Math.max(inner / 90, 1));
  points.forEach(([name, value], i) => {
    const left = MARGIN.left + i * wide, bar = Math.min(wide * 0.7, 54);
    root.append(s("rect", { class: "stave c0", x: left + (wide - bar) / 2, width: bar, rx: 2,
      y: Math.min(y(value), y(0)), height: Math.max(Math.abs(y(value) - y(0)), 1) },
    s("title", {}, `${name}: ${number(value)}`)));
    if (i % every === 0) {
      root.append(s("text", { class: "tick", x: left + wide / 2, y: height - 7, "text-anchor": "middle" },
        String(name).slice(0, Math.max(4, Math.floor((wide * every) / 7)))));
    }
  });
  return root;
}

// A small line for a tile.
export function spark() {
  const root = s("svg", { class: "spark", viewBox: "0 0 120 28", preserveAspectRatio: "none", "aria-hidden": "true" });
  root.show = (values) => {
    const [low, high] = range(values, true);
    const x = (i) => (120 * (i + 60 - values.length)) / 59;
    const y = (v) => 26 - (24 * (v - low)) / (high - low || 1);
    const path = values.map((v, i) => `${i ? "L" : "M"}${x(i).toFixed(1)},${y(v).toFixed(1)}`).join("");
    if (values.length < 2) return root.replaceChildren();
    const from = x(0).toFixed(1), to = x(values.length - 1).toFixed(1);
    return root.replaceChildren(s("path", { class: "under", d: `${path}L${to},28L${from},28Z` }),
      s("path", { class: "over", d: path }));
  };
  return root;
}

const milliseconds = (value) => (typeof value === "string" ? Date.parse(value) : value);

// Rows of one statement as a chart: lines over a time or number, else bars over the first column.
export function fromRows(columns, rows) {
  const numeric = columns.map((c, i) => (isNumeric(c.type) ? i : -1)).filter((i) => i >= 0);
  const time = columns.findIndex((c) => isTime(c.type));
  const y = (row, i) => (row[i] === null ? null : Number(row[i]));
  if (time < 0 && columns.length && !isNumeric(columns[0].type) && numeric.length) {
    const points = rows.map((row) => [row[0], y(row, numeric[0])]).filter((p) => p[1] !== null);
    return { bars: true, legend: true, series: [{ name: columns[numeric[0]].name, points }] };
  }
  const x = time >= 0 ? time : numeric.length > 1 ? numeric[0] : -1;
  const series = numeric.filter((i) => i !== x).slice(0, MOST_SERIES).map((i) => ({
    name: columns[i].name,
    points: rows.map((row, n) => [x < 0 ? n : milliseconds(row[x]), y(row, i)])
      .filter((p) => Number.isFinite(p[0]) && Number.isFinite(p[1]) && p[1] !== null)
      .sort((a, b) => a[0] - b[0]),
  }));
  return { time: time >= 0 && x === time, legend: true, series };
}
