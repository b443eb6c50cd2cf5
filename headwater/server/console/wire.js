// The server: statements, names, the live channel. A login lives in this module's memory alone:
// no cookie that another site's page could use, nothing in the browser's storage.

let authorization = null;
let askLogin = null;

export class Failure extends Error {
  constructor(status, said) {
    super(said?.message ?? `the server answered ${status}`);
    this.status = status;
    this.said = said ?? {};
  }
}

export const onLogin = (act) => { askLogin = act; };
export const loggedIn = () => authorization !== null;
export const logout = () => { authorization = null; };

function headers(more) {
  return authorization ? { ...more, Authorization: authorization } : { ...more };
}

function encoded(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

export async function login(user, secret) {
  const value = user ? `Basic ${encoded(`${user}:${secret}`)}` : `Bearer ${secret}`;
  const answer = await fetch("/console/names", { headers: { Authorization: value }, credentials: "omit" });
  if (!answer.ok) throw await failure(answer);
  authorization = value;
  return answer.json();
}

async function failure(answer) {
  let said = null;
  try { said = (await answer.json()).error; } catch { /* an answer without a body */ }
  return new Failure(answer.status, said);
}

async function ask(path, options = {}) {
  const answer = await fetch(path, { credentials: "omit", ...options, headers: headers(options.headers) });
  if (answer.ok) return answer;
  const error = await failure(answer);
  if (answer.status === 401 && !options.signal?.aborted) askLogin?.(error);
  throw error;
}

export async function sql(text, signal) {
  const body = JSON.stringify({ sql: text });
  const kind = { "Content-Type": "application/json" };
  return (await ask("/sql", { method: "POST", body, headers: kind, signal })).json();
}

export const names = async () => (await ask("/console/names")).json();

// Follows what a page shows until `signal` ends it; comes again when the connection breaks.
export async function live(page, name, signal, take, tell) {
  const path = `/console/live?show=${page}&name=${encodeURIComponent(name ?? "")}`;
  let wait = 500;
  while (!signal.aborted) {
    try {
      const answer = await ask(path, { signal });
      tell("live");
      wait = 500;
      await events(answer.body, take);
      if (!signal.aborted) tell("lost");
    } catch (error) {
      if (signal.aborted || error.status === 401) return;
      if (error.status && error.status < 500) { tell("failed", error); return; }
      tell("lost");
    }
    await new Promise((done) => setTimeout(done, wait));
    wait = Math.min(wait * 2, 8000);
  }
}

async function events(body, take) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    held += value;
    let end;
    while ((end = held.indexOf("\n\n")) >= 0) {
      const text = held.slice(0, end);
      held = held.slice(end + 2);
      if (text.startsWith("data: ")) take(JSON.parse(text.slice(6)));
    }
  }
}
