// A table of any length, of which only the rows that can be seen are there. Rows have one height; what does not fit
// into its column is cut, and shown whole when its row is opened.

import { fill, h, styled } from "../app/dom.js";

const HEIGHT = 28;
const BEYOND = 6;
const NARROWEST = 6;
const WIDEST = 44;
const LONGEST = 300;

/**
 * `columns`: `{name, title, right}`. `source`: `length`, and `at(index)` with `{row, mark, fresh}`: its texts, what
 * stands before them, whether it is new. `sorted`: called with a column's index.
 */
export class Table {
  constructor({ columns, source, label, marked = false, sorted = null, open = () => {} }) {
    Object.assign(this, { columns, source, marked, sorted, open });
    this.widths = columns.map(({ name }) => Math.min(WIDEST, Math.max(NARROWEST, name.length + 3)));
    this.active = -1;
    this.order = null;
    this.head = h("tr", {});
    this.group = h("colgroup", {});
    this.body = h("tbody", {});
    this.table = h("table", { "aria-label": label }, this.group, h("thead", {}, this.head), this.body);
    this.element = h("div", { class: "grid", tabindex: "0" }, this.table);
    this.element.addEventListener("scroll", () => this.draw(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(this.element);
    this.titles();
  }

  titles() {
    const cell = ({ name, title, right }, index) => {
      const order = this.order?.index === index ? (this.order.down ? "descending" : "ascending") : null;
      const sign = order ? (this.order.down ? " ↓" : " ↑") : "";
      const inside = this.sorted ? h("button", { onclick: () => this.sorted(index) }, name, sign) : name;
      return h("th", { scope: "col", title, class: right ? "right" : "", "aria-sort": order }, inside);
    };
    fill(this.head, this.marked && h("th", { scope: "col", class: "kind" }, "op"), this.columns.map(cell));
  }

  /** Draws the rows that can be seen; cheap enough to be called whenever something may have changed. */
  draw() {
    const { length } = this.source;
    const first = Math.max(0, Math.floor(this.element.scrollTop / HEIGHT) - BEYOND);
    const last = Math.min(length, Math.ceil((this.element.scrollTop + this.element.clientHeight) / HEIGHT) + BEYOND);
    const rows = [];
    for (let index = first; index < last; index += 1) rows.push(this.line(index, this.source.at(index)));
    fill(this.body, gap(first), rows, gap(length - last));
    this.table.setAttribute("aria-rowcount", String(length));
    this.layOut();
  }

  line(index, { row, mark, fresh }) {
    const cells = row.map((value, place) => {
      const text = value === null ? "NULL" : value.length > LONGEST ? `${value.slice(0, LONGEST)}…` : value;
      this.widths[place] = Math.max(this.widths[place], Math.min(WIDEST, text.length + 3));
      return h("td", { class: `${this.columns[place].right ? "right" : ""}${value === null ? " null" : ""}` }, text);
    });
    const state = `${fresh ? "fresh" : ""}${index === this.active ? " active" : ""}`;
    return h("tr", { class: state, "aria-rowindex": index + 1, onclick: () => this.open(row) },
      this.marked && h("td", { class: `kind ${mark.toLowerCase()}` }, KINDS[mark]), cells);
  }

  layOut() {
    const wanted = [...(this.marked ? [5] : []), ...this.widths];
    const same = this.group.children.length === wanted.length && this.laid?.every((width, index) => width === wanted[index]);
    if (same) return;
    this.laid = wanted;
    fill(this.group, wanted.map((width) => styled(h("col", {}), { width: `${width}ch` })));
    styled(this.table, { width: `${wanted.reduce((sum, width) => sum + width, 0)}ch` });
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Enter" && event.target === this.element && this.active >= 0 && this.active < this.source.length) this.open(this.source.at(this.active).row);
    else if (step) this.go(Math.max(0, Math.min(this.source.length - 1, this.active + step)));
    else return;
    event.preventDefault();
  }

  go(index) {
    this.active = index;
    const top = index * HEIGHT;
    const seen = this.element.clientHeight - 2 * HEIGHT;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top > this.element.scrollTop + seen) this.element.scrollTop = top - seen;
    this.draw();
  }

  get isAtEnd() {
    return this.element.scrollTop + this.element.clientHeight >= this.element.scrollHeight - HEIGHT;
  }

  toEnd() {
    this.element.scrollTop = this.source.length * HEIGHT;
    this.draw();
  }

  end() {
    this.sizes.disconnect();
  }
}

export const KINDS = { INSERT: "+I", UPDATE_BEFORE: "-U", UPDATE_AFTER: "+U", DELETE: "-D" };

const gap = (rows) => (rows > 0 ? h("tr", { class: "gap", "aria-hidden": "true" }, styled(h("td", { colspan: "99" }), { height: `${rows * HEIGHT}px` })) : null);

/** All values of a row, whole. */
export function showRow(columns, row) {
  const dialog = h("dialog", { class: "dialog row", "aria-label": "A row" },
    h("dl", {}, columns.map(({ name, title }, index) => [
      h("dt", { title }, name),
      h("dd", { class: row[index] === null ? "null" : "" }, row[index] ?? "NULL"),
    ])),
    h("div", { class: "buttons" }, h("button", { class: "button primary", onclick: () => dialog.close() }, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
