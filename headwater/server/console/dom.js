// Elements, numbers as texts, and tables. Texts only ever become text nodes: no markup is made from data.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(3)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

export const h = (tag, attributes, ...children) =>
  fill(document.createElement(tag), attributes, children);

export const s = (tag, attributes, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

export function number(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return (value / 1e9).toFixed(size >= 1e10 ? 1 : 2) + " G";
  if (size >= 1e7) return (value / 1e6).toFixed(1) + " M";
  return Number.isInteger(value) || size >= 1000 ? plain.format(value) : fine.format(value);
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit += 1; }
  return `${unit && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export function milliseconds(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 1000) return `${fine.format(value / 1000)} s`;
  return `${value >= 100 ? Math.round(value) : fine.format(value)} ms`;
}

export const seconds = (value) =>
  value === null || value === undefined ? "–" : milliseconds(value * 1000);

export function span(value) {
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  for (let i = 0; i < parts.length; i += 1) {
    const [size, unit] = parts[i];
    if (value >= size || unit === "s") {
      const rest = i + 1 < parts.length ? Math.floor((value % size) / parts[i + 1][0]) : 0;
      return `${Math.floor(value / size)} ${unit}` + (rest ? ` ${rest} ${parts[i + 1][1]}` : "");
    }
  }
  return "";
}

// A time as the system tables write it, to the second.
export function moment(text) {
  if (text === null || text === undefined) return "–";
  return String(text).replace(/^(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(\.\d+)?(\+00:00|Z)?$/, "$1");
}

export const counted = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

export function cell(value) {
  if (value === null || value === undefined) return h("span", { class: "null" }, "NULL");
  if (typeof value === "object") return JSON.stringify(value);
  return String(value);
}

export const isNumeric = (type) =>
  /^(TINYINT|SMALLINT|INT|INTEGER|BIGINT|FLOAT|DOUBLE|DECIMAL)/i.test(type);
export const isTime = (type) => /^(TIMESTAMP|DATE)/i.test(type);

export function state(value) {
  const kind = { running: "good", failed: "bad", damaged: "bad", retrying: "warm", paused: "idle" }[value] ?? "idle";
  return h("span", { class: `pill ${kind}` }, value ?? "–");
}

// A table of objects. Columns: {name, title, show?, right?}. Rows are replaced, the focus stays.
export function grid(caption, columns) {
  const body = h("tbody");
  const empty = h("p", { class: "empty", hidden: true });
  const head = columns.map((c) => h("th", { scope: "col", class: c.right && "right" }, c.title));
  const table = h("table", {}, h("caption", { class: "hidden" }, caption),
    h("thead", {}, h("tr", {}, head)), body);
  const root = h("div", { class: "scroll" }, table, empty);
  root.show = (rows, nothing = "nothing here") => {
    const focused = body.contains(document.activeElement)
      ? document.activeElement.getAttribute("href") : null;
    body.replaceChildren(...rows.map((row) => h("tr", {}, columns.map((c) =>
      h("td", { class: c.right && "right" }, c.show ? c.show(row) : cell(row[c.name]))))));
    table.hidden = rows.length === 0;
    empty.hidden = rows.length > 0;
    empty.textContent = nothing;
    if (focused) body.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  };
  return root;
}

// A table of arrays, as statements give them.
// `rounded`: numbers with a fraction are shown to nine digits, whole in their title.
export function rowsTable(caption, rounded) {
  const show = (value) => {
    const long = rounded && typeof value === "number" && !Number.isInteger(value);
    return long ? h("span", { title: String(value) }, String(Number(value.toPrecision(9)))) : cell(value);
  };
  const root = h("div", { class: "scroll rows", tabindex: "0", role: "region", "aria-label": caption });
  root.show = (columns, rows) => {
    const right = columns.map((c) => isNumeric(c.type) && "right");
    const head = columns.map((c, i) =>
      h("th", { scope: "col", class: right[i], title: c.type }, c.name));
    root.replaceChildren(h("table", {},
      h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, head)),
      h("tbody", {}, rows.map((row) =>
        h("tr", {}, row.map((value, i) => h("td", { class: right[i] }, show(value))))))));
  };
  return root;
}

export const panel = (title, ...children) =>
  h("section", { class: "panel" }, h("h2", {}, title), children);

export const heading = (title, ...more) => h("header", { class: "head" }, h("h1", {}, title), more);

export const link = (kind, name) =>
  h("a", { href: `#/${kind}/${encodeURIComponent(name)}` }, name);
