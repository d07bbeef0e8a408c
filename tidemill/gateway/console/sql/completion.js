// What may stand at the cursor: the gateway's answer, and keywords. A list below the cursor, by keys alone.

import { call } from "../app/api.js";
import { fill, h, styled } from "../app/dom.js";
import { session } from "../app/session.js";
import { KEYWORDS } from "./words.js";

const WAIT_MILLIS = 120;
const SHOWN = 50;
const BEGUN = /[\w.$]*$/;
const LEAST = 2;

export class Completion {
  constructor(editor) {
    this.editor = editor;
    this.found = [];
    this.place = 0;
    this.moved = false;
    this.list = h("ul", { class: "completion", role: "listbox", id: "completion", hidden: true });
    this.timer = 0;
    this.asked = 0;
    const { area } = editor;
    area.setAttribute("aria-controls", "completion");
    area.setAttribute("aria-autocomplete", "list");
    area.addEventListener("keydown", (event) => this.key(event));
    area.addEventListener("input", () => this.typed());
    area.addEventListener("blur", () => setTimeout(() => this.close(), 100));
    area.addEventListener("click", () => this.close());
    document.body.append(this.list);
  }

  get isOpen() {
    return !this.list.hidden;
  }

  close() {
    this.asked += 1;
    clearTimeout(this.timer);
    this.list.hidden = true;
  }

  typed() {
    clearTimeout(this.timer);
    if (this.begun.length < LEAST) return this.close();
    this.timer = setTimeout(() => this.ask(), WAIT_MILLIS);
    return undefined;
  }

  get begun() {
    const { area } = this.editor;
    return BEGUN.exec(area.value.slice(0, area.selectionStart))[0];
  }

  key(event) {
    if (event.key === " " && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.ask();
      return;
    }
    if (!this.isOpen) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.move(step);
    else if (event.key === "Tab" || (event.key === "Enter" && this.moved && !event.ctrlKey)) this.take();
    else if (event.key === "Escape") this.close();
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  async ask() {
    const { area } = this.editor;
    this.asked += 1;
    const turn = this.asked;
    const begun = this.begun;
    let names = [];
    try {
      const body = { statement: area.value, position: area.selectionStart };
      names = (await call("POST", `/console/api/sessions/${await session()}/complete`, body)).candidates;
    } catch {
      names = []; // a list that is not there must not keep anybody from typing
    }
    if (turn === this.asked) this.show([...names, ...keywords(begun)].slice(0, SHOWN), begun);
  }

  show(found, begun) {
    this.found = found.filter((name) => name !== begun);
    this.place = 0;
    this.moved = false;
    this.list.hidden = this.found.length === 0;
    if (!this.isOpen) return;
    fill(this.list, this.found.map((name, index) =>
      h("li", { role: "option", onmousedown: (event) => { event.preventDefault(); this.place = index; this.take(); } }, name)));
    const at = this.editor.place(this.editor.area.selectionStart - begun.length);
    const below = at.bottom + 220 < innerHeight;
    styled(this.list, {
      left: `${Math.max(4, Math.min(at.left, innerWidth - 260))}px`,
      top: below ? `${at.bottom + 4}px` : "auto",
      bottom: below ? "auto" : `${innerHeight - at.top + 4}px`,
    });
    this.mark();
  }

  move(step) {
    this.moved = true;
    this.place = (this.place + step + this.found.length) % this.found.length;
    this.mark();
  }

  mark() {
    [...this.list.children].forEach((item, index) => item.setAttribute("aria-selected", String(index === this.place)));
    this.list.children[this.place]?.scrollIntoView({ block: "nearest" });
  }

  take() {
    this.editor.insert(this.found[this.place], this.begun.length);
    this.close();
  }
}

function keywords(begun) {
  if (!begun) return [];
  const lower = begun === begun.toLowerCase();
  return KEYWORDS.filter((word) => word.startsWith(begun.toUpperCase())).map((word) => (lower ? word.toLowerCase() : word));
}

