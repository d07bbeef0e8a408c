// A search over a list: a word that its lines have, and a status. It stays as it is while the list is drawn anew.

import { fill, h } from "./dom.js";

export class Filter {
  /** `changed` is called when another word or status is wanted; `statuses`: whether there are any to choose. */
  constructor(what, changed, { statuses = true } = {}) {
    this.word = h("input", { type: "search", placeholder: `Search ${what}`, "aria-label": `Search ${what}`, oninput: changed });
    this.status = h("select", { "aria-label": "Status", onchange: changed }, h("option", { value: "" }, "All"));
    this.known = [];
    this.element = h("div", { class: "filter", role: "search" }, this.word, statuses && this.status);
  }

  /** Of `lines` those that are wanted; `read` gives of one `{texts, status}`. */
  of(lines, read) {
    const found = lines.map(read);
    this.offer(found.map(({ status }) => status));
    const word = this.word.value.trim().toLowerCase();
    return lines.filter((_, index) => {
      const { texts, status } = found[index];
      return (!this.status.value || status === this.status.value) && texts.some((text) => text.toLowerCase().includes(word));
    });
  }

  offer(statuses) {
    const known = [...new Set([...statuses, this.status.value])].filter(Boolean).sort();
    if (known.join() === this.known.join()) return;
    this.known = known;
    const chosen = this.status.value;
    fill(this.status, h("option", { value: "" }, "All"), known.map((name) => h("option", { value: name }, name.toLowerCase())));
    this.status.value = chosen;
  }
}
