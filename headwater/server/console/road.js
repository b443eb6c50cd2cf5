// The page of the Linear Road demo: the expressway, tolls and accidents as they come, questions about the past.

import { h, s, heading, panel, rowsTable, number, milliseconds, seconds } from "./dom.js";
import { chart, spark } from "./chart.js";
import { sql } from "./wire.js";

const MILES = 100, LEFT = 92, HIGH = 30, MARK = 16, TOP_SPEED = 80, MOST_ROWS = 200;
const LIMITS = [20, 30, 40]; // below 40 mph there may be tolls
const arrow = (dir) => (dir ? "←" : "→");
const kindOf = (speed) => (speed === null ? "none" : `v${LIMITS.filter((limit) => speed >= limit).length}`);

function drawLane(lane, width, top) {
  const cell = (width - LEFT - 8) / MILES, parts = [];
  const known = lane.speeds.filter((speed) => speed !== null);
  const mean = known.length ? `${Math.round(known.reduce((a, b) => a + b) / known.length)} mph` : "";
  parts.push(s("text", { class: "way", x: 0, y: top + 13 }, `x${lane.xway} ${arrow(lane.dir)}`),
    s("text", { class: "tick", x: 0, y: top + 27 }, mean));
  lane.speeds.forEach((speed, mile) => {
    const bar = speed === null ? 2 : 4 + (HIGH - 4) * Math.min(speed / TOP_SPEED, 1);
    const x = LEFT + mile * cell, said = speed === null ? "no cars" : `${speed} mph`;
    parts.push(s("g", { class: `mile ${kindOf(speed)}` },
      s("title", {}, `mile ${mile} ${arrow(lane.dir)}: ${said}`),
      s("rect", { class: "lane", x, y: top, width: cell - 1, height: HIGH }),
      s("rect", { class: "bar", x, y: top + HIGH - bar, width: cell - 1, height: bar })));
  });
  for (const mile of lane.accidents) {
    const x = LEFT + (mile + 0.5) * cell;
    parts.push(s("g", { class: "crash" }, s("title", {}, `accident in mile ${mile} ${arrow(lane.dir)}`),
      s("circle", { cx: x, cy: top - 8, r: 7 }),
      s("path", { d: `M${x - 3},${top - 11}l6,6m0,-6l-6,6` }), s("path", { class: "stem", d: `M${x},${top}v${HIGH}` })));
  }
  return parts;
}

function strip() {
  const box = h("div", { class: "strip" });
  let lanes = [];
  const draw = () => {
    const width = box.clientWidth, step = HIGH + MARK + 6;
    if (width < 300) return;
    const height = lanes.length * step + 24, cell = (width - LEFT - 8) / MILES;
    const crashes = lanes.reduce((sum, lane) => sum + lane.accidents.length, 0);
    const root = s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": `The expressway: ${lanes.length} directions, ${crashes} accidents` });
    lanes.forEach((lane, i) => root.append(...drawLane(lane, width, MARK + i * step)));
    for (let mile = 0; mile < MILES; mile += 10) {
      root.append(s("text", { class: "tick", x: LEFT + mile * cell, y: height - 6 }, mile ? String(mile) : "mile 0"));
    }
    box.replaceChildren(root);
  };
  new ResizeObserver(draw).observe(box);
  box.show = (next) => { lanes = next; draw(); };
  return box;
}

const LEGEND = [["v0", "under 20 mph"], ["v1", "20–30"], ["v2", "30–40"], ["v3", "40 and more"], ["crash", "accident"]];

function figure(name, show) {
  const value = h("div", { class: "value" }, "–"), line = spark(), past = [];
  const root = h("div", { class: "tile" }, h("h2", {}, name), value, line);
  root.take = (said) => {
    value.textContent = show(said);
    if (Number.isFinite(said)) past.push(said);
    if (past.length > 60) past.shift();
    line.show(past);
  };
  return root;
}

// One-click questions: the statement is shown, and its answer as a table.
function questions(chosen) {
  const buttons = h("div", { class: "buttons" }), table = rowsTable("Answer");
  const text = h("pre", { class: "sql", tabindex: "0" }, "Each button runs a statement while traffic flows.");
  const said = h("p", { class: "summary", role: "status" });
  const root = h("section", { class: "panel asks" }, h("div", { class: "bar" }, h("h2", {}, "Ask about the past"), buttons), text, said, table);
  let list = [], asking = null;
  const ask = async (question) => {
    asking?.abort();
    asking = new AbortController();
    const own = asking, statement = question.sql.replace("{place}", chosen()?.place ?? "");
    text.textContent = statement;
    said.textContent = `${question.what} …`;
    said.classList.remove("bad");
    const started = performance.now();
    try {
      const answer = await sql(statement, own.signal);
      said.textContent = `${question.what} ${number(answer.rows.length)} rows in ${milliseconds(performance.now() - started)}.`;
      table.show(answer.columns, answer.rows.slice(0, MOST_ROWS));
    } catch (error) {
      if (own.signal.aborted) return;
      table.replaceChildren();
      said.textContent = error.message;
      said.classList.add("bad");
    }
  };
  root.take = (next) => {
    if (!list.length) {
      list = next.map((question) => [question, h("button", { type: "button", title: question.what, onclick: () => ask(question) }, question.title)]);
      buttons.replaceChildren(...list.map(([, button]) => button));
    }
    for (const [question, button] of list) button.disabled = question.sql.includes("{place}") && !chosen();
  };
  root.end = () => asking?.abort();
  return root;
}

// Accidents, the newest first; the chosen one is what the questions are about.
function accidents() {
  const body = h("ul", { class: "choices", "aria-label": "Accidents" });
  const root = h("section", { class: "panel" }, h("h2", {}, "Accidents: choose one to ask about"), body);
  let list = [], place = null, drawn = "";
  const of = () => list.find((one) => one.place === place) ?? list[0];
  const draw = () => {
    const text = JSON.stringify([list, place]);
    if (text === drawn) return;
    drawn = text;
    const focused = body.contains(document.activeElement) ? document.activeElement.dataset.place : null;
    body.replaceChildren(...list.map((one) => h("li", {}, h("button", { type: "button", class: "quiet", "data-place": one.place,
      "aria-pressed": String(one === of()), onclick: () => { place = one.place; draw(); } },
    h("span", {}, `mile ${one.seg} ${arrow(one.dir)}`), h("span", { class: "dim" }, `since ${one.clock}`),
    h("span", { class: one.now ? "pill bad" : "pill" }, one.now ? "now" : "cleared")))));
    if (!list.length) body.replaceChildren(h("li", { class: "empty" }, "none yet"));
    if (focused) [...body.querySelectorAll("button")].find((x) => x.dataset.place === focused)?.focus();
  };
  root.take = (next) => { list = next; draw(); };
  root.chosen = of;
  return root;
}

function series(moments, columns) {
  return columns.map(([name, at]) => ({ name, points: moments.filter((m) => m[at] !== null).map((m) => [m[0], m[at] * 1000]) }))
    .filter((one) => one.points.length);
}

export function roadPage(page) {
  const pace = h("p", {}), road = strip(), crashes = accidents(), asks = questions(crashes.chosen);
  const tiles = [figure("Reports", (x) => `${number(x)} /s`), figure("Tolls charged", (x) => x.toLocaleString("en")),
    figure("Accidents now", number), figure("Freshness", seconds)];
  const responses = chart("Response times"), fresh = chart("Freshness");
  const tolls = h("ul", { class: "feed", "aria-label": "Tolls" });
  const legend = h("div", { class: "legend" }, LEGEND.map(([kind, text]) => h("span", { class: `swatch ${kind}` }, text)));
  page.root.append(heading("Road", pace),
    h("section", { class: "panel" }, h("div", { class: "bar" }, h("h2", {}, "Average speed by mile, last 30 seconds on the road"), legend), road),
    h("div", { class: "tiles" }, tiles),
    h("div", { class: "two" },
      h("div", { class: "stack" }, asks,
        h("div", { class: "halves even" }, panel("Response: slowest answer, ms", responses), panel("Freshness, ms", fresh))),
      h("div", { class: "stack" }, crashes, panel("Tolls: the highest of each second", tolls))));
  page.end(asks.end);
  page.live("road", null, ({ road: said }) => {
    if (said === undefined) return;
    if (said === null) { pace.textContent = "No expressway here: headwater demo has one."; return; }
    pace.textContent = said.steps.length ? `starting: ${said.steps[said.steps.length - 1]}`
      : `road time ${said.clock}, ${said.speed} × real time, ${number(said.reports)} reports so far`;
    road.show(said.lanes);
    const now = said.lanes.reduce((sum, lane) => sum + lane.accidents.length, 0);
    [said.reports_per_s, said.tolls_charged, now, said.freshness_s].forEach((value, i) => tiles[i].take(value));
    crashes.take(said.accidents);
    asks.take(said.questions);
    tolls.replaceChildren(...said.tolls.slice(0, 12).map(([clock, car, speed, toll]) => h("li", {},
      h("span", { class: "dim" }, clock), h("span", {}, `car ${car}`), h("span", { class: "dim" }, speed === null ? "" : `${speed} mph`), h("b", {}, number(toll)))));
    responses.show({ legend: true, series: series(said.moments, said.outputs.map((name, i) => [name, 2 + i])) });
    fresh.show({ legend: true, series: series(said.moments, [["freshness", 1]]) });
  });
}
