// A text area with its text in colours: a layer below shows the same text, in the same place, and tells where on
// the screen a character stands.

import { fill, h, styled } from "../app/dom.js";
import { pieces } from "./words.js";

const COLOURED = 60_000;
const DRAFT = "tidemill.draft";

export class Editor {
  constructor() {
    this.layer = h("pre", { class: "layer", "aria-hidden": "true" });
    this.area = h("textarea", {
      spellcheck: "false", autocapitalize: "off", autocomplete: "off", autocorrect: "off", wrap: "off",
      "aria-label": "SQL statements", placeholder: "SELECT …   statements end with a semicolon",
    });
    this.wrong = h("i", { class: "wrong", hidden: true });
    this.sheet = h("div", { class: "sheet" }, this.layer, this.wrong, this.area);
    this.element = h("div", { class: "editor" }, this.sheet);
    this.area.addEventListener("input", () => {
      this.mark(null);
      this.colour();
    });
    this.area.value = sessionStorage.getItem(DRAFT) ?? "";
    this.colour();
  }

  get text() {
    return this.area.value;
  }

  /** What is selected, or all. */
  get chosen() {
    const { value, selectionStart, selectionEnd } = this.area;
    return selectionStart === selectionEnd ? value : value.slice(selectionStart, selectionEnd);
  }

  /** Where that begins. */
  get chosenAt() {
    const { selectionStart, selectionEnd } = this.area;
    return selectionStart === selectionEnd ? 0 : selectionStart;
  }

  /** Marks the word at `offset` as wrong, until something is written; null: none is. */
  mark(offset = null) {
    this.wrong.hidden = offset === null;
    this.area.toggleAttribute("aria-invalid", offset !== null);
    if (offset === null) return;
    const word = /^(?:[\w$.]+|`[^`]*`?|'[^']*'?|\S)/.exec(this.text.slice(offset))?.[0] ?? " ";
    const [first, last] = [this.place(offset), this.place(offset + word.length - 1)];
    const sheet = this.sheet.getBoundingClientRect();
    const wide = last.top === first.top ? last.right - first.left : first.width;
    styled(this.wrong, {
      left: `${first.left - sheet.left}px`, top: `${first.top - sheet.top}px`, width: `${Math.max(8, wide)}px`, height: `${first.height}px`,
    });
    this.wrong.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  set text(text) {
    this.mark(null);
    this.area.value = text;
    this.colour();
    this.area.focus();
    this.area.setSelectionRange(text.length, text.length);
  }

  /** Puts `text` in place of `length` characters before the cursor, so that the browser can undo it. */
  insert(text, length = 0) {
    const end = this.area.selectionStart;
    this.area.focus();
    this.area.setSelectionRange(end - length, this.area.selectionEnd);
    if (!document.execCommand("insertText", false, text)) this.area.setRangeText(text, end - length, this.area.selectionEnd, "end");
    this.colour();
  }

  colour() {
    const { value } = this.area;
    sessionStorage.setItem(DRAFT, value.slice(0, COLOURED));
    const parts = value.length > COLOURED ? [["", value]] : pieces(value);
    fill(this.layer, [...parts].map(([kind, text]) => (kind ? h("span", { class: `sql-${kind}` }, text) : text)), "\n ");
  }

  /** Where the character at `offset` stands, in the window's pixels. */
  place(offset) {
    const range = document.createRange();
    let left = offset;
    const walker = document.createTreeWalker(this.layer, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (left <= node.length) {
        range.setStart(node, left);
        range.setEnd(node, Math.min(left + 1, node.length));
        return range.getBoundingClientRect();
      }
      left -= node.length;
    }
    return this.layer.getBoundingClientRect();
  }
}
