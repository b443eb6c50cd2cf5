// The SQL page: an editor with completion, and results as a table and a chart.

import { h, heading, rowsTable, number, milliseconds } from "./dom.js";
import { chart, fromRows } from "./chart.js";
import { painted } from "./colour.js";
import { names, sql } from "./wire.js";

const MOST_OFFERS = 10, MOST_ROWS = 500, OLD = 30;
const kept = { text: "SELECT * FROM headwater.tables", history: [] };

const SYSTEM = ["blocks", "functions", "indexes", "late_rows", "metrics", "queries", "settings",
  "sinks", "sources", "staleness", "tables", "views"].map((name) => `headwater.${name}`);

// What may follow: names after FROM and the like, columns after a table's name and a dot, else words.
export function offers(text, known) {
  const found = /([\w$]+\.)?([\w$]*)$/.exec(text);
  const owner = found[1]?.slice(0, -1) ?? "", begun = found[2];
  const before = text.slice(0, text.length - found[0].length);
  const tables = Object.keys(known.tables);
  const fits = (list, kind) => list.filter((name) => name.toLowerCase().startsWith(begun.toLowerCase()) && name !== begun)
    .map((name) => ({ name, kind }));
  if (owner) {
    if (owner.toLowerCase() === "headwater") {
      return { begun, list: fits(SYSTEM.map((name) => name.slice(10)), "system table") };
    }
    const table = tables.find((name) => name.toLowerCase() === owner.toLowerCase());
    return { begun, list: table ? fits(known.tables[table], "column") : [] };
  }
  const word = /(\w+)\s+$/.exec(before)?.[1]?.toUpperCase() ?? "";
  const places = fits(tables, "table").concat(fits(SYSTEM, "system table"));
  if (["FROM", "JOIN", "INTO", "UPDATE", "DESCRIBE", "QUERY", "VIEW"].includes(word)) return { begun, list: places };
  const phrases = fits(known.phrases[word] ?? [], "phrase");
  if (!begun) return { begun, list: phrases };
  const used = tables.filter((name) => new RegExp(`\\b${name.replace(/[^\w]/g, "\\$&")}\\b`, "i").test(text));
  const columns = [...new Set((used.length ? used : tables).flatMap((name) => known.tables[name]))];
  return { begun, list: [...phrases, ...fits(columns, "column"), ...fits(tables, "table"),
    ...fits(known.keywords, "keyword"), ...fits(known.functions, "function")] };
}

function completion(area, box, known, taken) {
  let list = [], begun = "", at = 0;
  const close = () => {
    list = [];
    box.hidden = true;
    area.setAttribute("aria-expanded", "false");
    area.removeAttribute("aria-activedescendant");
  };
  const draw = () => {
    box.replaceChildren(...list.map((one, i) => h("li", { id: `offer-${i}`, role: "option", "aria-selected": String(i === at),
      onpointerdown: (event) => { event.preventDefault(); at = i; take(); } }, h("span", {}, one.name), h("i", {}, one.kind))));
    box.hidden = list.length === 0;
    area.setAttribute("aria-expanded", String(list.length > 0));
    if (list.length) area.setAttribute("aria-activedescendant", `offer-${at}`);
  };
  const take = () => {
    const end = area.selectionStart;
    area.setRangeText(list[at].name, end - begun.length, end, "end");
    close();
    taken();
  };
  const open = (asked) => {
    const found = offers(area.value.slice(0, area.selectionStart), known());
    begun = found.begun;
    list = asked || begun.length > 1 ? found.list.slice(0, MOST_OFFERS) : [];
    at = 0;
    place(area, box);
    draw();
  };
  const key = (event) => {
    if (event.key === " " && event.ctrlKey) { event.preventDefault(); open(true); return true; }
    if (!list.length) return false;
    if (event.key === "Escape") { event.preventDefault(); close(); return true; }
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      at = (at + (event.key === "ArrowDown" ? 1 : list.length - 1)) % list.length;
      draw();
      return true;
    }
    if (event.key === "Tab" || (event.key === "Enter" && !event.ctrlKey && !event.metaKey)) {
      event.preventDefault();
      take();
      return true;
    }
    return false;
  };
  return { open, close, key };
}

function place(area, box) {
  const before = area.value.slice(0, area.selectionStart).split("\n");
  const column = before[before.length - 1].length;
  box.style.left = `${Math.min(12 + column * 7.8, area.clientWidth - 260)}px`;
  box.style.top = `${Math.min(12 + before.length * 20 - area.scrollTop, area.clientHeight)}px`;
}

function results() {
  const table = rowsTable("Result"), plot = chart("The result as a chart");
  const summary = h("p", { class: "summary", role: "status" }, "Ctrl+Enter runs the statement.");
  const asTable = h("button", { type: "button", "aria-pressed": "true" }, "Table");
  const asChart = h("button", { type: "button", "aria-pressed": "false" }, "Chart");
  const root = h("section", { class: "panel results" },
    h("div", { class: "bar" }, summary, h("div", { class: "choice" }, asTable, asChart)), table, plot);
  const choose = (which) => {
    table.hidden = which !== "table";
    plot.hidden = which !== "chart";
    asTable.setAttribute("aria-pressed", String(which === "table"));
    asChart.setAttribute("aria-pressed", String(which === "chart"));
  };
  asTable.addEventListener("click", () => choose("table"));
  asChart.addEventListener("click", () => choose("chart"));
  choose("table");
  root.say = (text, bad) => { summary.textContent = text; summary.classList.toggle("bad", Boolean(bad)); };
  root.clear = () => { table.replaceChildren(); plot.show({ series: [] }); };
  root.show = (answer, took) => {
    root.clear();
    const time = milliseconds(took);
    if (!answer.columns) {
      root.say(`${answer.kind}${answer.row_count === null || answer.row_count === undefined ? "" : `, ${number(answer.row_count)} rows`}, ${time}. ${answer.notice ?? ""}`);
      return;
    }
    const cut = answer.rows.length > MOST_ROWS ? `, the first ${MOST_ROWS} shown` : "";
    root.say(`${number(answer.rows.length)} rows in ${time}${cut}`);
    table.show(answer.columns, answer.rows.slice(0, MOST_ROWS));
    plot.show(fromRows(answer.columns, answer.rows.slice(0, 5000)));
  };
  return root;
}

export function editorPage(page) {
  let known = { tables: {}, keywords: [], functions: [], phrases: {} };
  const learn = () => names().then((found) => { known = found; copy.draw(); }, () => {});
  const area = h("textarea", { id: "sql", rows: "9", spellcheck: "false", autocomplete: "off", autocapitalize: "off",
    "aria-label": "SQL", role: "combobox", "aria-autocomplete": "list", "aria-controls": "offers", "aria-expanded": "false", value: kept.text });
  const copy = painted(area, () => known);
  const box = h("ul", { id: "offers", class: "offers", role: "listbox", "aria-label": "Completions", hidden: true });
  const keep = () => { kept.text = area.value; copy.draw(); };
  const help = completion(area, box, () => known, keep);
  const shown = results();
  let running = null;
  const run = h("button", { type: "button", class: "main" }, "Run");
  const stop = h("button", { type: "button", disabled: true }, "Cancel");
  const old = h("select", { "aria-label": "Earlier statements" });
  const remember = () => old.replaceChildren(h("option", { value: "" }, "Earlier statements"),
    ...kept.history.map((text, i) => h("option", { value: String(i) }, text.replace(/\s+/g, " ").slice(0, 70))));
  const act = async () => {
    const part = area.value.slice(area.selectionStart, area.selectionEnd).trim();
    const text = part || area.value.trim();
    if (!text || running) return;
    help.close();
    kept.history = [text, ...kept.history.filter((x) => x !== text)].slice(0, OLD);
    remember();
    running = new AbortController();
    run.disabled = true;
    stop.disabled = false;
    shown.say("runs …");
    const started = performance.now();
    try {
      shown.show(await sql(text, running.signal), performance.now() - started);
      learn();
    } catch (error) {
      shown.clear();
      fail(error, part ? 0 : area.value.length - area.value.trimStart().length);
    } finally {
      running = null;
      run.disabled = false;
      stop.disabled = true;
    }
  };
  const fail = (error, shift) => {
    if (error.name === "AbortError") { shown.say("cancelled"); return; }
    const { sqlstate, line, column, hint, detail, position } = error.said ?? {};
    const where = line ? ` (line ${line}, column ${column})` : "";
    shown.say([`${error.message}${where}`, detail, hint && `Hint: ${hint}`, sqlstate].filter(Boolean).join(" · "), true);
    if (position && !area.value.slice(area.selectionStart, area.selectionEnd)) area.setSelectionRange(position - 1 + shift, position - 1 + shift);
  };
  run.addEventListener("click", act);
  stop.addEventListener("click", () => running?.abort());
  old.addEventListener("change", () => { if (old.value) area.value = kept.history[Number(old.value)]; keep(); old.value = ""; area.focus(); });
  area.addEventListener("input", () => { keep(); help.open(false); });
  area.addEventListener("blur", () => help.close());
  area.addEventListener("keydown", (event) => {
    if (help.key(event)) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); act(); }
  });
  page.root.append(heading("SQL", h("p", {}, "Several statements are separated by semicolons; a selection is run alone. Ctrl+Space completes.")),
    h("section", { class: "panel editor" }, h("div", { class: "area" }, copy, area, box),
      h("div", { class: "bar" }, h("div", { class: "buttons" }, run, stop), old)), shown);
  page.end(() => running?.abort());
  remember();
  learn();
  copy.draw();
  area.focus();
}
