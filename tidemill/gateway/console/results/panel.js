// What statements gave: a tab for each that gives rows, and one for messages. Only the result that is looked at is
// read; the others wait where they are.

import { fill, h, say } from "../app/dom.js";
import { pill } from "../app/states.js";
import { clock, count, span } from "../app/text.js";
import { ChartView } from "../charts/view.js";
import { MOST_ROWS } from "./bounded.js";
import { ChangesView, FoldedView } from "./views.js";

const FRAME_MILLIS = 200;
const MOST_TABS = 8;
const VIEWS = [["Table", FoldedView], ["Changes", ChangesView], ["Chart", ChartView]];

export class Panel {
  constructor() {
    this.results = [];
    this.messages = h("ol", { class: "messages" });
    this.shown = null;
    this.view = null;
    this.tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Results" });
    this.content = h("div", { class: "content", role: "tabpanel" });
    this.element = h("section", { class: "results", "aria-label": "Results" }, this.tabs, this.content);
    this.tabs.addEventListener("keydown", (event) => this.key(event));
    this.timer = setInterval(() => this.draw(), FRAME_MILLIS);
    this.show(null);
  }

  /** A line among the messages; returns what changes it. */
  message(status, statement, text) {
    const said = h("div", { class: "said" }, text);
    const word = h("span", {}, pill(status));
    const item = h("li", {}, h("time", {}, clock(Date.now())), word, h("code", {}, statement), said);
    this.messages.append(item);
    while (this.messages.children.length > 200) this.messages.firstChild.remove();
    if (!this.shown) this.show(null);
    return (now, ...what) => {
      fill(word, pill(now));
      fill(said, what);
      item.scrollIntoView({ block: "nearest" });
    };
  }

  /** A tab for a result. */
  add(result) {
    result.number = (this.results.at(-1)?.number ?? 0) + 1;
    this.results.push(result);
    while (this.results.length > MOST_TABS) this.remove(this.results.find((other) => !other.isOpen) ?? this.results[0]);
    this.show(result);
  }

  remove(result) {
    result.stop();
    result.close();
    const index = this.results.indexOf(result);
    this.results.splice(index, 1);
    if (this.shown === result) this.show(this.results[Math.min(index, this.results.length - 1)] ?? null);
    else this.drawTabs();
  }

  /** Looks at a result; null is the messages. */
  show(result) {
    if (this.shown && this.shown !== result) this.shown.pause();
    this.leave();
    this.shown = result;
    this.drawTabs();
    if (result) {
      if (result.status === "PAUSED" && !result.held) result.read();
      this.open(result);
    } else {
      fill(this.content, this.messages.children.length ? this.messages : welcome());
    }
  }

  leave() {
    this.view?.end?.();
    this.view = null;
  }

  open(result) {
    result.looks ??= VIEWS[0][0];
    this.status = h("span", {});
    this.facts = h("span", { class: "facts" });
    this.note = h("p", { class: "note", hidden: true });
    this.hold = h("button", { class: "button small", onclick: () => this.turn(result) });
    this.stop = h("button", { class: "button small", onclick: () => result.stop() }, "Stop");
    const views = VIEWS.map(([name]) => h("button", {
      class: "choice", "aria-pressed": String(result.looks === name),
      onclick: () => { result.looks = name; this.show(result); },
    }, name));
    this.place = h("div", { class: "view" });
    fill(this.content,
      h("div", { class: "resultbar" }, this.status, this.facts,
        result.job && h("a", { href: `#/jobs/${result.job}` }, "Job"),
        h("div", { class: "spring" }), this.hold, this.stop,
        h("div", { class: "switch", role: "group", "aria-label": "View" }, views)),
      this.note, this.place);
    const [, View] = VIEWS.find(([name]) => name === result.looks);
    this.view = new View(result);
    fill(this.place, this.view.element);
    this.state = "";
    this.draw();
  }

  /** Its user holds it, or lets it go on. */
  turn(result) {
    result.held = result.status === "LIVE";
    if (result.held) result.pause();
    else result.read();
    this.draw();
  }

  draw() {
    const result = this.shown;
    if (!result || !this.view || !this.element.isConnected) return;
    const state = `${result.status}${result.total}${result.folded.version}`;
    say(this.facts, facts(result));
    if (this.status.textContent !== result.status.toLowerCase()) {
      fill(this.status, pill(result.status));
      this.drawTabs();
    }
    this.hold.hidden = !(result.status === "LIVE" || result.status === "PAUSED");
    say(this.hold, result.status === "LIVE" ? "Pause" : "Resume");
    this.stop.hidden = !result.isOpen;
    say(this.note, result.error || forgotten(result));
    this.note.hidden = !this.note.textContent;
    this.note.className = result.error ? "note problem" : "note";
    if (state !== this.state || Date.now() - this.changed < 2_000) {
      if (state !== this.state) this.changed = Date.now();
      this.state = state;
      this.view.draw();
    }
  }

  drawTabs() {
    const tab = (result, label, status) => h("span", { class: "tab", "data-current": String(this.shown === result) },
      h("button", {
        role: "tab", "aria-selected": String(this.shown === result), tabindex: this.shown === result ? "0" : "-1",
        onclick: () => this.show(result), title: result?.shown,
      }, status && h("i", { class: `light ${status.toLowerCase()}` }), label),
      result && h("button", { class: "close", "aria-label": `Close ${label}`, onclick: () => this.remove(result) }, "×"));
    fill(this.tabs, tab(null, "Messages"), this.results.map((r) => tab(r, `${r.number}  ${title(r.shown)}`, r.status)));
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const all = [null, ...this.results];
    this.show(all[(all.indexOf(this.shown) + step + all.length) % all.length]);
    this.tabs.querySelector("[aria-selected=true]")?.focus();
  }
}

const title = (statement) => {
  const line = statement.replace(/\s+/g, " ");
  return line.length > 26 ? `${line.slice(0, 25)}…` : line;
};

function facts(result) {
  const rows = result.updates
    ? `${count(result.folded.length)} rows of ${count(result.total)} changes`
    : `${count(result.total)} ${result.total === 1 ? "row" : "rows"}`;
  return `${rows} · ${span(result.seconds)}`;
}

function forgotten(result) {
  if (result.isOpen && result.total === 0) return "Waiting for the first rows…";
  if (result.folded.forgot === 0 && result.changes.gone === 0) return "";
  if (result.folded.forgot === 0) return result.looks === "Changes" ? `The last ${count(result.changes.length)} changes.` : "";
  return `The last ${count(Math.min(MOST_ROWS, result.folded.length))} rows: the page keeps no more.`;
}

function welcome() {
  const example = "SELECT word, COUNT(*) AS n FROM (VALUES ('flink'), ('spark'), ('flink')) AS t (word) GROUP BY word;";
  return h("div", { class: "state" },
    h("h2", {}, "Run a statement"),
    h("p", {}, h("kbd", {}, "Ctrl"), " ", h("kbd", {}, "Enter"), " runs what is in the editor. A query that does not end shows its changes as they come."),
    h("p", {}, h("code", { class: "example" }, example)));
}
