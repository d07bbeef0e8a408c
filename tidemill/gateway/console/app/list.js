// A list in columns; on a phone each line is a card: its first cell with its second beside, the others below.

import { h } from "./dom.js";

/** `columns`: `{title, right}`; `lines`: arrays of cells, each what `td` gives or its content. */
export const list = (columns, lines) => h("div", { class: "scroll" }, h("table", { class: "list cards" },
  h("thead", {}, h("tr", {}, columns.map(({ title, right }) => h("th", { scope: "col", class: right ? "right" : "" }, title)))),
  h("tbody", {}, lines.map((cells) => h("tr", {}, cells.map((cell, place) => {
    const { title, right } = columns[place];
    const { content, tip } = cell?.content === undefined ? { content: cell } : cell;
    return h("td", { class: right ? "right" : "", "data-name": place > 1 ? title : null, title: tip }, content);
  }))))));
