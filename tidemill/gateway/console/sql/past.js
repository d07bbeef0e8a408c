// Statements that were run before: by Alt and the arrow keys, or from a list.

import { h } from "../app/dom.js";
import { forgetHistory, history } from "./history.js";

/** Alt ↑ and Alt ↓ put them into the editor; below the last one is what was being written. */
export function walkHistory(editor) {
  let place = -1;
  let draft = "";
  editor.area.addEventListener("keydown", (event) => {
    const step = event.altKey && { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const kept = history();
    if (place < 0) draft = editor.text;
    place = Math.max(-1, Math.min(kept.length - 1, place + step));
    editor.text = place < 0 ? draft : kept[place];
  });
  editor.area.addEventListener("input", () => { place = -1; });
}

export function showHistory(editor) {
  const list = h("ul", {});
  const draw = (word) => list.replaceChildren(...history()
    .filter((text) => text.toLowerCase().includes(word.toLowerCase()))
    .map((text) => h("li", {}, h("button", { onclick: () => { dialog.close(); editor.text = text; } }, h("code", {}, text)))));
  const filter = h("input", { type: "search", placeholder: "Search", "aria-label": "Search", oninput: () => draw(filter.value) });
  const dialog = h("dialog", { class: "dialog past", "aria-label": "History" },
    h("h2", {}, "History"), filter, list,
    h("div", { class: "buttons" },
      h("button", { class: "button", onclick: () => { forgetHistory(); draw(""); } }, "Forget all"),
      h("button", { class: "button primary", onclick: () => dialog.close() }, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  draw("");
  document.body.append(dialog);
  dialog.showModal();
}
