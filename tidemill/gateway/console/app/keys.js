// Keys that work everywhere. Two of them one after the other go to a page, as `g j` does; none is taken away from
// somebody who types.

import { h } from "./dom.js";

const PAUSE_MILLIS = 1_000;
const known = new Map();
let before = "";
let since = 0;

/** `keys`: `?`, or `g j`. */
export function onKeys(keys, means, run) {
  known.set(keys, { means, run });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyped(event.target)) return;
  if (document.querySelector("dialog[open]")) return;
  const both = Date.now() - since < PAUSE_MILLIS ? `${before} ${event.key}` : event.key;
  const found = known.get(both) ?? known.get(event.key);
  before = event.key;
  since = Date.now();
  if (found) {
    event.preventDefault();
    found.run();
  }
});

const isTyped = (element) => element.matches("input, textarea, select, [contenteditable]");

const EDITOR = [
  ["Ctrl Enter", "run the selection, or all statements"],
  ["Ctrl Shift Enter", "run the statement at the cursor"],
  ["Ctrl Space", "complete; Tab takes what is chosen"],
  ["Alt ↑ / Alt ↓", "statements that were run before"],
  ["Esc", "leave the list, then the editor"],
];

/** The list of all keys. */
export function showKeys() {
  const entries = [...[...known].map(([keys, { means }]) => [keys, means]), ...EDITOR];
  const dialog = h("dialog", { class: "dialog keys", "aria-label": "Keys" },
    h("h2", {}, "Keys"),
    h("dl", {}, entries.map(([keys, means]) => [
      h("dt", {}, keys.split(" ").map((key) => (key === "/" ? " / " : h("kbd", {}, key)))),
      h("dd", {}, means),
    ])),
    h("div", { class: "buttons" }, h("button", { class: "button primary", onclick: () => dialog.close() }, "Close")),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
