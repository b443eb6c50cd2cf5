// The network as a picture: receptors, baskets, factories, emitters in four columns; flows between them.

import { h, s, counted, heading, number } from "./dom.js";

const WIDE = 208, HIGH = 46, GAP = 14, TOP = 34, MOST = 24, MANY = 10;
const TITLES = ["Receptors", "Tables (baskets)", "Queries and views (factories)", "Emitters"];

const node = (id, column, name, more) => ({ id, column, name, edges: 0, ...more });

// The nodes and edges of the system tables; a pure function.
export function graph({ sources, tables, queries, views, sinks }) {
  const nodes = new Map(), edges = [];
  const add = (one) => nodes.set(one.id, one);
  const tie = (from, to, rate) => {
    if (nodes.has(from) && nodes.has(to)) edges.push({ from, to, rate: rate ?? 0 });
  };
  const lower = (name) => String(name).toLowerCase();
  for (const t of tables) {
    add(node(`t:${lower(t.name)}`, 1, t.name, { href: "#/tables", queue: t.tail_rows, unit: "rows in the tail",
      note: t.rate === null ? counted(t.row_count, "row") : `${number(t.rate)} rows/s`, rate: t.rate ?? 0 }));
  }
  for (const q of queries) {
    add(node(`q:${lower(q.name)}`, 2, q.name, { href: `#/query/${encodeURIComponent(q.name)}`, queue: q.waiting_rows,
      unit: "rows wait", note: q.tier ?? q.state, bad: q.state === "failed", idle: q.state === "paused", rate: q.rate ?? 0 }));
  }
  for (const v of views) {
    add(node(`q:${lower(v.name)}`, 2, v.name, { href: `#/view/${encodeURIComponent(v.name)}`, queue: v.waiting_rows,
      unit: "rows wait", note: `view, ${v.maintenance ?? v.kind}`, bad: v.state === "failed", rate: 0 }));
  }
  const fed = new Set();
  for (const source of sources) {
    add(node(`s:${source.name}`, 0, source.name, { href: "#/sources", note: `${number(source.rows_per_second)} rows/s`,
      bad: source.state === "failed", idle: source.state === "paused", rate: source.rows_per_second ?? 0 }));
    tie(`s:${source.name}`, `t:${lower(source.table_name)}`, source.rows_per_second);
    fed.add(lower(source.table_name));
  }
  const streams = tables.filter((t) => t.kind === "streaming table" && !fed.has(lower(t.name)));
  if (streams.length) {
    const rate = streams.reduce((sum, t) => sum + (t.rate ?? 0), 0);
    add(node("s:", 0, "clients", { note: `inserts, ${number(rate)} rows/s`, rate }));
    for (const t of streams) tie("s:", `t:${lower(t.name)}`, t.rate);
  }
  for (const one of [...queries, ...views]) {
    for (const read of one.reads) {
      const table = nodes.get(`t:${lower(read)}`);
      tie(table ? table.id : `q:${lower(read)}`, `q:${lower(one.name)}`, one.state === "running" ? table?.rate : 0);
    }
  }
  const written = (q) => sinks.filter((x) => lower(x.query) === lower(q.name) && x.state === "running").length;
  const stored = new Set(tables.filter((t) => t.kind === "materialized view").map((t) => lower(t.name)));
  for (const q of queries) {
    if (stored.has(lower(q.name))) tie(`q:${lower(q.name)}`, `t:${lower(q.name)}`, q.rate);
    if (q.state === "failed" || (stored.has(lower(q.name)) && !q.readers)) continue;
    const readers = q.readers - Math.min(written(q), q.readers);
    add(node(`e:${q.name}`, 3, `results of ${q.name}`, { of: `q:${lower(q.name)}`, href: `#/query/${encodeURIComponent(q.name)}`,
      note: `${number(q.rate)} results/s${readers ? `, ${counted(readers, "reader")}` : ""}`, rate: q.rate ?? 0 }));
    tie(`q:${lower(q.name)}`, `e:${q.name}`, q.rate);
  }
  for (const sink of sinks) {
    add(node(`o:${sink.name}`, 3, `sink ${sink.name}`, { of: `q:${lower(sink.query)}`, href: "#/sources", queue: sink.waiting_results,
      unit: "results wait", note: `${String(sink.url).split(":")[0]}, ${number(sink.rate)} rows/s`,
      bad: Boolean(sink.last_error), rate: sink.rate ?? 0 }));
    tie(`q:${lower(sink.query)}`, `o:${sink.name}`, sink.rate);
  }
  return { nodes: [...nodes.values()], edges };
}

function placed(found, width) {
  const columns = [[], [], [], []];
  for (const one of found.nodes) columns[one.column].push(one);
  const tallest = Math.min(MOST, Math.max(...columns.map((c) => c.length), 1));
  const wide = Math.min(WIDE, (width - 90) / 4);
  const order = new Map();
  columns.forEach((column, x) => {
    const pull = (one) => {
      const before = found.edges.filter((e) => e.to === one.id && order.has(e.from)).map((e) => order.get(e.from));
      return before.length ? before.reduce((a, b) => a + b) / before.length : 1e9;
    };
    const near = (one) => (x === 3 && columns[2].length > MOST && !order.has(one.of) ? 1 : 0);
    const busiest = [...column].sort((a, b) => near(a) - near(b) || (b.bad ?? 0) - (a.bad ?? 0)
      || (b.queue ?? 0) - (a.queue ?? 0) || b.rate - a.rate || a.name.localeCompare(b.name)).slice(0, MOST);
    const shown = busiest.map((one) => [one, pull(one)]);
    shown.sort((a, b) => a[1] - b[1] || a[0].name.localeCompare(b[0].name));
    const start = tallest > MANY ? TOP : TOP + ((tallest - shown.length) * (HIGH + GAP)) / 2;
    shown.forEach(([one], y) => {
      one.x = x * ((width - wide) / 3);
      one.y = start + y * (HIGH + GAP);
      one.wide = wide;
      order.set(one.id, one.y);
    });
  });
  return { columns, wide, height: TOP + tallest * (HIGH + GAP) + 6 };
}

function clipped(text, wide) {
  const most = Math.floor((wide - 22) / 7);
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function drawNode(one, longest) {
  const part = one.queue ? Math.max(0.03, Math.min(1, Math.log1p(one.queue) / Math.log1p(Math.max(longest, 100)))) : 0;
  const kind = one.bad ? "bad" : one.idle ? "idle" : "";
  const queue = one.queue ? `, ${number(one.queue)} ${one.unit}` : "";
  const box = s("g", { class: `node k${one.column} ${kind}`, transform: `translate(${one.x.toFixed(1)},${one.y})` },
    s("title", {}, `${one.name}: ${one.note ?? ""}${queue}`),
    s("rect", { class: "body", width: one.wide, height: HIGH, rx: 6 }),
    s("rect", { class: "mark", width: 4, height: HIGH, rx: 2 }),
    s("text", { class: "name", x: 14, y: 19 }, clipped(one.name, one.wide)),
    s("text", { class: "note", x: 14, y: 34 }, clipped(one.note ?? "", one.wide * 1.1)),
    part > 0 && s("rect", { class: "queue", x: 14, y: HIGH - 7, width: (one.wide - 28) * part, height: 3, rx: 1.5 }),
    one.queue > 0 && s("text", { class: "count", x: one.wide - 9, y: 34, "text-anchor": "end" }, number(one.queue)));
  return one.href ? s("a", { href: one.href, "aria-label": `${one.name}: ${one.note ?? ""}${queue}` }, box) : box;
}

function drawEdge(edge, from, to) {
  const back = to.column < from.column; // a view's rows go into its own table
  const x1 = back ? from.x : from.x + from.wide, x2 = back ? to.x + to.wide : to.x;
  const y1 = from.y + HIGH / 2 + (back ? 9 : 0), y2 = to.y + HIGH / 2 + (back ? 9 : 0);
  const bend = from.column === to.column ? 60 : (x2 - x1) / 2;
  const end = from.column === to.column ? to.x + to.wide : x2;
  const c2 = from.column === to.column ? end + bend : x2 - bend;
  const d = `M${x1},${y1}C${x1 + bend},${y1} ${c2},${y2} ${end},${y2}`;
  const width = edge.rate > 0 ? 1.5 + Math.min(4, Math.log10(1 + edge.rate)) : 1.2;
  return [s("path", { class: "edge", d, "stroke-width": width }),
    edge.rate > 0 && s("path", { class: back ? "flow back" : "flow", d, "stroke-width": Math.min(width, 2.4) })];
}

export function networkPage(page) {
  const picture = h("div", { class: "network panel" });
  const parts = { sources: [], tables: [], queries: [], views: [], sinks: [] };
  const filter = h("input", { type: "search", placeholder: "Filter queries", "aria-label": "Filter queries and views", class: "end" });
  page.root.append(heading("Network", h("p", {}, "Rows flow from left to right. A bar is a queue; moving dashes are rows on their way."), filter), picture);
  const wanted = () => {
    const word = filter.value.toLowerCase(), fits = (one) => one.name.toLowerCase().includes(word);
    if (!word) return parts;
    const queries = parts.queries.filter(fits), views = parts.views.filter(fits);
    const read = new Set([...queries, ...views].flatMap((one) => one.reads.map((name) => name.toLowerCase())));
    const tables = parts.tables.filter((t) => read.has(t.name.toLowerCase()));
    const sinks = parts.sinks.filter((x) => queries.some((q) => q.name.toLowerCase() === x.query.toLowerCase()));
    return { queries, views, tables, sinks, sources: parts.sources.filter((x) => read.has(x.table_name.toLowerCase())) };
  };
  const draw = () => {
    const width = Math.max(picture.clientWidth - 28, 640);
    const found = graph(wanted());
    if (!found.nodes.length) {
      picture.replaceChildren(h("p", { class: "empty" }, filter.value ? "Nothing fits." : "No tables yet: CREATE STREAMING TABLE in the SQL page makes one."));
      return;
    }
    const { columns, wide, height } = placed(found, width);
    const longest = Math.max(...found.nodes.map((one) => one.queue ?? 0));
    const known = new Map(found.nodes.filter((one) => one.x !== undefined).map((one) => [one.id, one]));
    const focused = picture.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    const root = s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "The network" });
    TITLES.forEach((title, x) => {
      const more = columns[x].length - MOST;
      root.append(s("text", { class: "column", x: x * ((width - wide) / 3), y: 16 },
        more > 0 ? `${title}, ${more} more` : title));
    });
    for (const edge of found.edges) {
      const from = known.get(edge.from), to = known.get(edge.to);
      if (from && to) root.append(...drawEdge(edge, from, to).filter(Boolean));
    }
    for (const one of known.values()) root.append(drawNode(one, longest));
    picture.replaceChildren(root);
    if (focused) picture.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  };
  filter.addEventListener("input", draw);
  new ResizeObserver(draw).observe(picture);
  page.live("network", null, (said) => { Object.assign(parts, said); draw(); });
}
