// The frame: pages by address, keys, light and dark, the login.

import { h, heading } from "./dom.js";
import { live, loggedIn, login, logout, names, onLogin } from "./wire.js";
import { overviewPage, queriesPage, tablesPage, sourcesPage, latePage, stalenessPage, errorsPage } from "./pages.js";
import { networkPage } from "./network.js";
import { editorPage } from "./editor.js";
import { objectPage } from "./query.js";
import { roadPage } from "./road.js";

const PAGES = [
  ["overview", "Overview", "o", overviewPage],
  ["network", "Network", "n", networkPage],
  ["sql", "SQL", "s", editorPage],
  ["queries", "Queries", "q", queriesPage],
  ["tables", "Tables", "t", tablesPage],
  ["sources", "Sources, sinks", "r", sourcesPage],
  ["staleness", "Staleness", "a", stalenessPage],
  ["late", "Late rows", "l", latePage],
  ["errors", "Errors", "e", errorsPage],
];
const FURTHER = { road: ["road", "Road", "d", roadPage] }; // where the server has them to show
const main = document.getElementById("main");
const line = document.getElementById("state");
let open = null;

function tell(kind) {
  const words = { live: "live", lost: "the server does not answer", hidden: "paused while hidden" };
  line.textContent = words[kind] ?? "";
  line.dataset.kind = kind;
}

// A page while it is open: where it draws, and what ends with it.
class Page {
  constructor() {
    this.root = h("div", { class: "page" });
    this.ends = [];
  }

  end(act) { this.ends.push(act); }

  every(wait, act) {
    const timer = setInterval(() => { if (!document.hidden) act(); }, wait);
    this.end(() => clearInterval(timer));
  }

  // Follows the channel while the page can be seen; a hidden tab is sent nothing.
  live(show, name, take) {
    let going = null;
    const start = () => {
      going?.abort();
      going = new AbortController();
      live(show, name, going.signal, take, (kind, error) => {
        tell(kind);
        if (error) this.root.replaceChildren(heading("Not here"), h("p", { class: "error", role: "alert" }, error.message));
      });
    };
    const turn = () => {
      if (document.hidden) { going?.abort(); going = null; tell("hidden"); } else if (!going) start();
    };
    document.addEventListener("visibilitychange", turn);
    this.end(() => { document.removeEventListener("visibilitychange", turn); going?.abort(); });
    if (document.hidden) tell("hidden"); else start();
  }

  close() { for (const act of this.ends) act(); }
}

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

function go() {
  const [kind, name] = location.hash.slice(2).split("/");
  open?.close();
  const page = open = new Page();
  main.replaceChildren(page.root);
  main.scrollTop = 0;
  tell("");
  const found = PAGES.find(([id]) => id === kind) ?? PAGES[0];
  const shown = kind === "query" || kind === "view" ? "queries" : found[0];
  for (const a of document.querySelectorAll("#nav a")) {
    if (a.dataset.page === shown) a.setAttribute("aria-current", "page"); else a.removeAttribute("aria-current");
  }
  if (shown === "queries" && name) {
    const called = decoded(name);
    document.title = `${called} · Headwater`;
    objectPage(page, kind, called);
  } else {
    document.title = `${found[1]} · Headwater`;
    found[3](page);
  }
  if (kind !== "sql") main.focus({ preventScroll: true });
}

function askLogin(error) {
  if (document.getElementById("login")) return;
  open?.close();
  open = null;
  document.body.classList.add("out");
  const user = h("input", { id: "user", name: "user", autocomplete: "username", placeholder: "leave empty for a token" });
  const secret = h("input", { id: "secret", type: "password", autocomplete: "current-password", required: true });
  const nobody = Boolean(error?.message?.startsWith("there are no users")); // then no password helps
  const words = nobody ? `${error.message}: ${error.said.hint}` : error?.message ?? "";
  const said = h("p", { class: "error", role: "alert", hidden: !loggedIn() && !nobody }, words);
  const form = h("form", { id: "login", class: "panel login" },
    h("h1", {}, "Log in"), h("label", { for: "user" }, "User"), user,
    h("label", { for: "secret" }, "Password or token"), secret, said,
    h("button", { class: "main", type: "submit" }, "Log in"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const found = await login(user.value.trim(), secret.value);
      document.body.classList.remove("out");
      offer(found.shows);
      who(found);
      go();
    } catch (wrong) {
      said.textContent = wrong.message;
      said.hidden = false;
      secret.value = "";
      secret.focus();
    }
  });
  main.replaceChildren(form);
  user.focus();
}

function who(found) {
  const box = document.getElementById("who");
  const out = h("button", { type: "button", class: "quiet", id: "logout" }, "Log out");
  out.addEventListener("click", () => { logout(); location.reload(); }); // nothing of this user stays in memory
  box.replaceChildren(...(loggedIn() ? [h("span", {}, `${found.user}, ${found.role}`), out] : []));
}

const THEMES = ["system", "light", "dark"];

function paint(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  document.getElementById("theme").textContent = { system: "Auto", light: "Light", dark: "Dark" }[theme];
}

function stored() {
  try { return THEMES.includes(localStorage.theme) ? localStorage.theme : "system"; } catch { return "system"; }
}

function turnTheme() {
  const next = THEMES[(THEMES.indexOf(stored()) + 1) % THEMES.length];
  try { localStorage.theme = next; } catch { /* a browser that keeps nothing */ }
  paint(next);
}

function showKeys() {
  const help = document.getElementById("help");
  const rows = [...PAGES.map(([, title, key]) => [`g ${key}`, title]), ["t", "Light, dark or as the system"],
    ["/", "Filter"], ["Ctrl+Enter", "Run the statement"], ["Ctrl+Space", "Complete"], ["?", "Keys"], ["Esc", "Close"]];
  help.replaceChildren(h("h2", {}, "Keys"), h("dl", { class: "keys" }, rows.map(([key, what]) =>
    h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)))),
  h("form", { method: "dialog" }, h("button", { type: "button", onclick: () => help.close() }, "Close")));
  help.showModal();
}

let before = 0; // when g was pressed
function key(event) {
  const typing = event.target.closest?.("input, textarea, select, dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || document.getElementById("login")) return;
  if (Date.now() - before < 1500) {
    const found = PAGES.find(([, , letter]) => letter === event.key);
    before = 0;
    if (found) { event.preventDefault(); location.hash = `#/${found[0]}`; return; }
  }
  if (event.key === "g") before = Date.now();
  else if (event.key === "t") turnTheme();
  else if (event.key === "?") showKeys();
  else if (event.key === "/") {
    const box = main.querySelector("input[type=search], textarea");
    if (box) { event.preventDefault(); box.focus(); }
  }
}

function drawNav() {
  document.getElementById("nav").replaceChildren(...PAGES.map(([id, title, letter]) =>
    h("a", { href: `#/${id}`, "data-page": id, "aria-keyshortcuts": `g ${letter}` }, h("span", {}, title), h("kbd", { "aria-hidden": "true" }, `g ${letter}`))));
}

function offer(shows) {
  const more = (shows ?? []).map((id) => FURTHER[id]).filter((one) => one && !PAGES.includes(one));
  PAGES.unshift(...more);
  if (more.length) drawNav();
}

drawNav();
document.getElementById("theme").addEventListener("click", turnTheme);
document.getElementById("keys").addEventListener("click", showKeys);
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
document.addEventListener("keydown", key);
window.addEventListener("hashchange", () => { if (!document.getElementById("login")) go(); });
paint(stored());
onLogin(askLogin);
names().then((found) => { offer(found.shows); who(found); go(); }, (error) => { if (error.status !== 401) { go(); tell("lost"); } });
