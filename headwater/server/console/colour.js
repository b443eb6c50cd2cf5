// SQL in colours: a copy of the text lies behind the editor's, which shows only its cursor and selection.

import { h } from "./dom.js";

const LONGEST = 20000; // longer texts stay plain
const PARTS = /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*'?)|("(?:[^"]|"")*"?|`(?:[^`]|``)*`?)|(\b\d[\w.]*)|([A-Za-z_]\w*)/g;

// The parts of a text: [kind, text]; a pure function.
export function parts(text, words, functions) {
  const found = [];
  let end = 0;
  if (text.length > LONGEST) return [["", text]];
  for (const match of text.matchAll(PARTS)) {
    const [whole, comment, string, , value, word] = match;
    if (match.index > end) found.push(["", text.slice(end, match.index)]);
    end = match.index + whole.length;
    const calls = word && functions.has(word.toLowerCase()) && /^\s*\(/.test(text.slice(end, end + 9));
    const kind = comment ? "comment" : string ? "string" : value ? "value"
      : calls ? "function" : word && words.has(word.toUpperCase()) ? "word" : "";
    found.push([kind, whole]);
  }
  found.push(["", text.slice(end)]);
  return found;
}

// The coloured copy of a text area; `known` tells SQL's words.
export function painted(area, known) {
  const copy = h("pre", { class: "paint", "aria-hidden": "true" });
  let words = new Set(), functions = new Set(), of = null;
  const draw = () => {
    if (of !== known()) {
      of = known();
      words = new Set(of.keywords);
      functions = new Set(of.functions.map((name) => name.toLowerCase()));
    }
    copy.replaceChildren(...parts(`${area.value}\n`, words, functions).map(([kind, text]) =>
      (kind ? h("span", { class: `sql-${kind}` }, text) : text)));
    copy.scrollTop = area.scrollTop;
  };
  area.addEventListener("scroll", () => { copy.scrollTop = area.scrollTop; });
  copy.draw = draw;
  return copy;
}
