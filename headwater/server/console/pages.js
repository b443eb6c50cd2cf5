// The overview and the lists: queries and views, tables, sources, late rows, staleness, errors.

import { h, grid, heading, link, panel, state, number, bytes, milliseconds, seconds, span, moment, counted } from "./dom.js";
import { spark } from "./chart.js";

const KEPT = 60;
const past = new Map(); // of the tiles, so that the lines go on when one comes back

const right = true;
const TABLES = [
  { name: "name", title: "Table", show: (r) => h("b", {}, r.name) },
  { name: "kind", title: "Kind" },
  { name: "row_count", title: "Rows", right, show: (r) => number(r.row_count) },
  { name: "rate", title: "Rows/s", right, show: (r) => number(r.rate) },
  { name: "tail_rows", title: "In the tail", right, show: (r) => number(r.tail_rows) },
  { name: "unsealed_bytes", title: "Unsealed", right, show: (r) => bytes(r.unsealed_bytes) },
  { name: "clock", title: "Clock", show: (r) => moment(r.clock) },
  { name: "closed", title: "Complete to", show: (r) => moment(r.closed) },
  { name: "update_key", title: "Update key", show: (r) => r.update_key ?? "–" },
];
const QUERIES = [
  { name: "name", title: "Query", show: (r) => link("query", r.name) },
  { name: "state", title: "State", show: (r) => state(r.state) },
  { name: "reads", title: "Reads", show: (r) => r.reads.join(", ") },
  { name: "tier", title: "Tier", show: (r) => r.tier ?? "–" },
  { name: "mode", title: "Mode", show: (r) => r.mode ?? "–" },
  { name: "results", title: "Results", right, show: (r) => number(r.results) },
  { name: "rate", title: "Results/s", right, show: (r) => number(r.rate) },
  { name: "waiting_rows", title: "Waiting", right, show: (r) => number(r.waiting_rows) },
  { name: "readers", title: "Readers", right, show: (r) => number(r.readers) },
  { name: "response_ms", title: "Response", right, show: (r) => milliseconds(r.response_ms) },
  { name: "last_instant", title: "Last instant", show: (r) => moment(r.last_instant) },
];
const VIEWS = [
  { name: "name", title: "View", show: (r) => link("view", r.name) },
  { name: "state", title: "State", show: (r) => state(r.state) },
  { name: "reads", title: "Reads", show: (r) => r.reads.join(", ") },
  { name: "maintenance", title: "Kept", show: (r) => r.maintenance ?? r.kind },
  { name: "tier", title: "Tier", show: (r) => r.tier ?? "–" },
  { name: "groups", title: "Groups", right, show: (r) => number(r.groups) },
  { name: "state_bytes", title: "State", right, show: (r) => bytes(r.state_bytes) },
  { name: "spilled_bytes", title: "Spilled", right, show: (r) => bytes(r.spilled_bytes) },
  { name: "waiting_rows", title: "Rows waiting", right, show: (r) => number(r.waiting_rows) },
  { name: "fold_ms", title: "Fold", right, show: (r) => milliseconds(r.fold_ms) },
];
const SOURCES = [
  { name: "name", title: "Source", show: (r) => h("b", {}, r.name) },
  { name: "state", title: "State", show: (r) => state(r.state) },
  { name: "table_name", title: "Feeds" },
  { name: "url", title: "From" },
  { name: "row_count", title: "Rows", right, show: (r) => number(r.row_count) },
  { name: "rows_per_second", title: "Rows/s", right, show: (r) => number(r.rows_per_second) },
  { name: "lag_s", title: "Lag", right, show: (r) => seconds(r.lag_s) },
  { name: "last_error", title: "Last error", show: (r) => r.last_error ?? "–" },
];
const SINKS = [
  { name: "name", title: "Sink", show: (r) => h("b", {}, r.name) },
  { name: "state", title: "State", show: (r) => state(r.state) },
  { name: "query", title: "Reads", show: (r) => link("query", r.query) },
  { name: "url", title: "To" },
  { name: "row_count", title: "Rows", right, show: (r) => number(r.row_count) },
  { name: "rate", title: "Rows/s", right, show: (r) => number(r.rate) },
  { name: "waiting_results", title: "Results waiting", right, show: (r) => number(r.waiting_results) },
  { name: "last_error", title: "Last error", show: (r) => r.last_error ?? "–" },
];
const LATE = [
  { name: "name", title: "Table", show: (r) => h("b", {}, r.name) },
  { name: "policy", title: "Policy" },
  { name: "late_count", title: "Late rows", right, show: (r) => number(r.late_count) },
  { name: "row_count", title: "Rows", right, show: (r) => number(r.row_count) },
  { name: "part", title: "Part", right, show: (r) => (r.row_count ? `${number((100 * r.late_count) / r.row_count)} %` : "–") },
  { name: "closed", title: "Complete to", show: (r) => moment(r.closed) },
];
const STALE = [
  { name: "query_name", title: "Update query", show: (r) => link("query", r.query_name) },
  { name: "policy", title: "Policy", show: (r) => r.policy ?? "–" },
  { name: "queue_staleness_s", title: "Queue", right, show: (r) => seconds(r.queue_staleness_s) },
  { name: "application_staleness_s", title: "Application", right, show: (r) => seconds(r.application_staleness_s) },
  { name: "mean_application_staleness_s", title: "Mean", right, show: (r) => seconds(r.mean_application_staleness_s) },
  { name: "rows_in", title: "Rows in", right, show: (r) => number(r.rows_in) },
  { name: "processed", title: "Processed", right, show: (r) => number(r.processed) },
  { name: "superseded", title: "Superseded", right, show: (r) => number(r.superseded) },
  { name: "shed", title: "Shed", right, show: (r) => number(r.shed) },
  { name: "waiting", title: "Waiting", right, show: (r) => number(r.waiting) },
];
const ERRORS = [
  { name: "kind", title: "What" },
  { name: "name", title: "Name", show: (r) => (["source", "sink"].includes(r.kind) ? h("a", { href: "#/sources" }, r.name) : r.kind === "table" ? h("a", { href: "#/tables" }, r.name) : link(r.kind, r.name)) },
  { name: "state", title: "State", show: (r) => state(r.state) },
  { name: "error", title: "Error", show: (r) => h("span", { class: "wrap" }, r.error) },
];
const BUSY_TABLES = TABLES.filter((c) => ["name", "row_count", "rate", "unsealed_bytes", "clock"].includes(c.name));
const BUSY_QUERIES = [
  { name: "name", title: "Query or view", show: (r) => link(r.kind, r.name) },
  ...QUERIES.filter((c) => ["state", "tier", "waiting_rows"].includes(c.name)),
  { name: "rate", title: "Results/s", right, show: (r) => number(r.rate) },
  { name: "response_ms", title: "Response", right, show: (r) => milliseconds(r.response_ms ?? r.fold_ms) },
];

function tile(name, show, note) {
  const value = h("div", { class: "value" }, "–"), line = spark(), more = h("div", { class: "note" });
  const root = h("div", { class: "tile" }, h("h2", {}, name), value, more, line);
  if (!past.has(name)) past.set(name, []);
  root.take = (said, all) => {
    value.textContent = show(said);
    more.textContent = note ? note(all) : "";
    const values = past.get(name);
    if (Number.isFinite(said)) values.push(said);
    if (values.length > KEPT) values.shift();
    line.show(values);
  };
  return root;
}

const TILES = [
  ["Rows in", (x) => `${number(x)} /s`, "rows_per_s", (t) => counted(t.tables, "table")],
  ["Results out", (x) => `${number(x)} /s`, "results_per_s", (t) => `${counted(t.queries, "query", "queries")}, ${counted(t.views, "view")}`],
  ["Rows waiting", number, "waiting_rows", () => "for queries and views"],
  ["Response", milliseconds, "response_ms", () => "slowest query's mean"],
  ["Lag of sources", seconds, "lag_s", (t) => counted(t.sources, "source")],
  ["Staleness", seconds, "staleness_s", () => "stalest update query"],
  ["Memory", bytes, "resident_bytes", (t) => `views hold ${bytes(t.state_bytes)}`],
  ["Late rows", number, "late_rows", (t) => `${bytes(t.unsealed_bytes)} not in blocks`],
];

export function overviewPage(page) {
  const line = h("p", {}), tiles = TILES.map(([name, show, , note]) => tile(name, show, note));
  const bad = h("p", { class: "error", hidden: true }, h("a", { href: "#/errors" }, ""));
  const tables = grid("Busiest tables", BUSY_TABLES), queries = grid("Queries and views", BUSY_QUERIES);
  page.root.append(heading("Overview", line), bad, h("div", { class: "tiles" }, tiles),
    h("div", { class: "halves" }, panel("Queries and views", queries), panel("Tables", tables)));
  const all = {};
  page.live("overview", null, (said) => {
    Object.assign(all, said.process, said.totals);
    if (said.process || said.totals) TILES.forEach(([, , column], i) => tiles[i].take(all[column], all));
    line.textContent = `version ${all.version}, up ${span(all.uptime_s)}, Spark ${all.spark ? "runs" : `is ${all.spark_state}`}, `
      + `${counted(all.connections, "connection")}, log ${bytes(all.wal_bytes)}`;
    bad.hidden = !all.failed;
    bad.firstChild.textContent = `${counted(all.failed, "error")}: see what failed`;
    if (said.busiest) {
      tables.show(said.busiest.tables, "no tables yet");
      queries.show(said.busiest.queries, "no queries or views yet");
    }
  });
}

function filtered(columns, caption, nothing) {
  const table = grid(caption, columns);
  let rows = [];
  const box = h("input", { type: "search", placeholder: "Filter", "aria-label": `Filter ${caption}` });
  const draw = () => {
    const word = box.value.toLowerCase();
    const fits = word ? rows.filter((r) => columns.some((c) => String(r[c.name] ?? "").toLowerCase().includes(word))) : rows;
    table.show(fits, rows.length ? "nothing fits" : nothing);
  };
  box.addEventListener("input", draw);
  const count = h("span", { class: "dim" });
  const root = h("section", { class: "panel" },
    h("div", { class: "bar" }, h("h2", {}, caption, " ", count), box), table);
  root.take = (next) => { rows = next; count.textContent = number(next.length); draw(); };
  return root;
}

export function queriesPage(page) {
  const queries = filtered(QUERIES, "Continuous queries", "no queries: CREATE CONTINUOUS QUERY q AS …");
  const views = filtered(VIEWS, "Views", "no views: CREATE VIEW v AS …");
  page.root.append(heading("Queries and views"), queries, views);
  page.live("queries", null, (said) => {
    if (said.queries) queries.take(said.queries);
    if (said.views) views.take(said.views);
  });
}

export function sourcesPage(page) {
  const sources = filtered(SOURCES, "Sources", "no sources: CREATE SOURCE s INTO t FROM '…'");
  const sinks = filtered(SINKS, "Sinks", "no sinks: CREATE SINK s FROM q INTO '…'");
  page.root.append(heading("Sources and sinks"), sources, sinks);
  page.live("sources", null, (said) => {
    if (said.sources) sources.take(said.sources);
    if (said.sinks) sinks.take(said.sinks);
  });
}

function listPage(title, about, caption, show, part, columns, nothing, pick = (rows) => rows) {
  return (page) => {
    const list = filtered(columns, caption, nothing);
    page.root.append(heading(title, h("p", {}, about)), list);
    page.live(show, null, (said) => { if (said[part]) list.take(pick(said[part])); });
  };
}

const lateOnes = (rows) => rows.filter((r) => r.late_count !== null)
  .sort((a, b) => b.late_count - a.late_count || a.name.localeCompare(b.name));

export const tablesPage = listPage("Tables", "Baskets: rows that came, and how far their time is.", "All tables", "tables", "tables", TABLES,
  "no tables: CREATE STREAMING TABLE t (…) TIMESTAMP BY …");
export const latePage = listPage("Late rows", "Rows that came after their time was complete, and what is done with them.", "Streaming tables", "late", "tables", LATE,
  "no streaming tables", lateOnes);
export const stalenessPage = listPage("Staleness", "How old the newest processed update of a key is, and where the rows went.", "Update queries", "staleness", "staleness", STALE,
  "no update queries: CREATE STREAMING TABLE … UPDATE KEY (…), then a query that reads it");
export const errorsPage = listPage("Errors", "What has failed, or is being tried again.", "Errors now", "errors", "errors", ERRORS, "no errors");
