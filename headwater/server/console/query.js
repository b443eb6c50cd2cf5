// The page of one query or view: its plan, its numbers, its live result as a table and a chart.

import { h, heading, panel, rowsTable, state, number, bytes, milliseconds, moment, counted, isNumeric } from "./dom.js";
import { chart, MOST_SERIES } from "./chart.js";
import { sql } from "./wire.js";

const MOST_POINTS = 600, MOST_KEYS = 12; // rows of a result that the chart looks at
const ROWS = -1; // in place of a column: how many rows a result has

export const quoted = (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : `\`${name.replaceAll("`", "``")}\``);

// Results of a query over time, as lines: one per key if a result has several rows, else one per column.
export class History {
  constructor() { this.points = []; this.columns = []; this.numeric = []; this.time = true; this.value = null; this.many = false; }

  take({ columns, points }, wall) {
    const own = (c) => !c.name.startsWith("_");
    this.columns = columns;
    this.numeric = columns.map((c, i) => (isNumeric(c.type) && own(c) ? i : -1)).filter((i) => i >= 0);
    this.key = columns.findIndex((c, i) => !this.numeric.includes(i) && own(c));
    for (const { time, rows, row_count: count } of points) {
      this.time = wall || typeof time === "string";
      const x = typeof time === "string" ? Date.parse(time) : wall ? time * 1000 : time;
      this.many ||= rows.length > 1;
      if (Number.isFinite(x)) this.points.push({ x, count, rows: rows.slice(0, MOST_KEYS) });
    }
    this.points.splice(0, this.points.length - MOST_POINTS);
  }

  // Which column identifies a row; a number does only if no other column can.
  keyColumn(value) {
    return this.key >= 0 ? this.key : this.numeric.find((i) => i !== value) ?? -1;
  }

  // What is drawn: the chosen column, else the last number; the number of rows where keys do not come again.
  drawn() {
    if (this.value !== null) return this.value;
    const last = this.numeric.length ? this.numeric[this.numeric.length - 1] : ROWS;
    if (!this.many || last === ROWS) return last;
    const key = this.keyColumn(last), seen = new Set();
    let rows = 0;
    for (const point of this.points) for (const row of point.rows) { seen.add(String(row[key])); rows += 1; }
    return seen.size > 4 * MOST_SERIES && seen.size > rows / 2 ? ROWS : last;
  }

  lines() {
    const lines = new Map();
    const add = (name, x, y) => {
      if (y === null || !Number.isFinite(Number(y))) return;
      const line = lines.get(name) ?? lines.set(name, []).get(name);
      if (line.length && line[line.length - 1][0] === x) line.pop();
      line.push([x, Number(y)]);
    };
    const value = this.drawn(), key = this.keyColumn(value);
    for (const { x, count, rows } of this.points) {
      if (!this.many) for (const i of this.numeric) { if (rows.length) add(this.columns[i].name, x, rows[0][i]); }
      else if (value === ROWS) add("number of rows", x, count);
      else for (const row of rows) add(key < 0 ? this.columns[value].name : String(row[key]), x, row[value]);
    }
    return lines;
  }

  data() {
    const found = [...this.lines().entries()];
    found.sort((a, b) => b[1][b[1].length - 1][1] - a[1][a[1].length - 1][1]);
    const series = found.slice(0, MOST_SERIES).map(([name, points]) => ({ name, points }));
    series.sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
    return { time: this.time, legend: true, series };
  }
}

const PARTS = [
  ["upper", /^(upper:|at each read)/],
  ["stream", /^(fold[ _]\d|stream|at each insert|re-evaluated|evaluated)/],
  ["static", /^\s*(static|tables as of)/],
];

function planLines(rows) {
  let part = "";
  return rows.map(([line]) => {
    const text = String(line);
    const own = PARTS.find(([, shape]) => shape.test(text))?.[0] ?? "";
    if (!text.startsWith(" ")) part = own;
    return h("div", { class: `plan-line ${own || part}` }, text);
  });
}

function numbers(row) {
  const query = row.results !== undefined;
  const found = query ? [
    ["Tier", row.tier], ["Mode", row.mode], ["Sample", row.sample], ["Last instant", moment(row.last_instant)],
    ["Results", number(row.results)], ["Results/s", number(row.rate)], ["Rows waiting", number(row.waiting_rows)],
    ["Waits for", row.waits_for], ["Response", milliseconds(row.response_ms)], ["Worst response", milliseconds(row.worst_response_ms)],
    ["State size", number(row.state_size)], ["Over budget", row.over_budget],
  ] : [
    ["Kind", row.kind], ["Maintenance", row.maintenance], ["Tier", row.tier],
    ["Folded", row.progress === null ? null : `${Math.round(row.progress * 100)} %`],
    ["Rows waiting", number(row.waiting_rows)], ["Groups", number(row.groups)], ["State", bytes(row.state_bytes)],
    ["Spilled", bytes(row.spilled_bytes)], ["Version", number(row.version)], ["Fold", milliseconds(row.fold_ms)],
    ["Shares with", row.shared_with?.join(", ")],
  ];
  return found.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== "–")
    .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)));
}

export function objectPage(page, kind, name) {
  const pill = h("span"), facts = h("dl", { class: "facts" }), text = h("pre", { class: "sql", tabindex: "0" });
  const plan = h("div", { class: "plan", tabindex: "0", role: "region", "aria-label": "Plan" }, "…");
  const table = rowsTable("Live result", true), plot = chart("The live result as a chart");
  const note = h("span", { class: "dim" }), error = h("p", { class: "error", role: "alert", hidden: true });
  const pick = h("select", { "aria-label": "Column of the chart", hidden: true });
  const history = new History();
  pick.addEventListener("change", () => { history.value = Number(pick.value); plot.show(history.data()); });
  page.root.append(heading(name, h("span", { class: "dim" }, kind), pill), error,
    h("div", { class: "two" },
      h("div", { class: "stack" }, h("section", { class: "panel" }, h("div", { class: "bar" }, h("h2", {}, "Live result"), pick), plot),
        h("section", { class: "panel grow" }, h("div", { class: "bar" }, h("h2", {}, "Newest rows"), note), table)),
      h("div", { class: "stack" }, panel("Numbers", facts), panel("Plan", plan), panel("Statement", text))));
  const fail = (message) => { error.textContent = message; error.hidden = !message; };
  const passing = /^\(subscription\/\d+\)$/.test(name); // a select that somebody subscribed to
  const explain = () => (passing ? plan.replaceChildren("A reader's own select: it ends with its reader, who alone is given its results.") : sql(`EXPLAIN ANALYZE ${kind.toUpperCase()} ${quoted(name)}`)
    .then((answer) => plan.replaceChildren(...planLines(answer.rows)), (e) => { plan.textContent = e.message; }));
  explain();
  page.every(5000, explain);
  page.live(kind, name, (said) => {
    if (said.object === null) fail(`There is no ${kind} ${name} any more.`);
    if (said.object) {
      pill.replaceChildren(state(said.object.state));
      facts.replaceChildren(...numbers(said.object));
      text.textContent = said.object.statement;
      fail(said.object.error);
    }
    if (said.failure) fail(said.failure.message);
    if (said.results) show(said.results);
  });
  const show = (results) => {
    history.take(results, kind === "view");
    const last = results.points[results.points.length - 1];
    table.show(results.columns, last.rows);
    const cut = results.row_count > last.rows.length ? `${last.rows.length} of ` : "";
    note.textContent = `${cut}${counted(results.row_count, "row")}${results.skipped ? `, ${number(results.skipped)} results passed over` : ""}`;
    if (pick.options.length !== history.numeric.length + 1) {
      pick.replaceChildren(...history.numeric.map((i) => h("option", { value: String(i) }, results.columns[i].name)),
        h("option", { value: String(ROWS) }, "number of rows"));
    }
    pick.value = String(history.drawn());
    pick.hidden = !history.many;
    plot.show(history.data());
  };
}
