// The page for SQL: an editor, and below it what its statements gave. It is made once and stays as its user left
// it, whatever page is looked at.

import { call } from "../app/api.js";
import { h, say } from "../app/dom.js";
import { session, sessionPath } from "../app/session.js";
import { tell } from "../app/states.js";
import { Panel } from "../results/panel.js";
import { Completion } from "./completion.js";
import { Editor } from "./editor.js";
import { showHistory, walkHistory } from "./past.js";
import { offsetOf, Runner } from "./runner.js";

const MODE = "execution.runtime-mode";
let made = null;

export function sqlPage(root) {
  made ??= new SqlPage();
  root.append(made.element);
  made.shown();
  return () => made.hidden();
}

/** Puts a statement into the editor and goes there. */
export function edit(statement) {
  made ??= new SqlPage();
  made.editor.text = statement;
  location.hash = "#/sql";
}

class SqlPage {
  constructor() {
    this.editor = new Editor();
    this.panel = new Panel();
    this.completion = new Completion(this.editor);
    this.runner = new Runner(this.panel, () => this.drawBar(), (offset) => this.editor.mark(offset));
    walkHistory(this.editor);
    this.editor.area.addEventListener("keydown", (event) => this.key(event));
    this.go = h("button", { class: "button primary", onclick: () => this.turn(), title: "Ctrl Enter" });
    this.mode = h("select", { "aria-label": "Mode", title: MODE, onchange: () => this.changeMode() },
      h("option", { value: "streaming" }, "Streaming"), h("option", { value: "batch" }, "Batch"));
    const bar = h("div", { class: "bar" }, this.go,
      h("button", { class: "button", onclick: () => this.explain() }, "Explain"), this.mode,
      h("div", { class: "spring" }),
      h("button", { class: "button", onclick: () => showHistory(this.editor) }, "History"));
    this.element = h("div", { class: "sqlpage" }, bar, this.editor.element, this.panel.element);
    this.drawBar();
  }

  shown() {
    this.panel.show(this.panel.shown);
    this.readMode();
    if (matchMedia("(min-width: 720px)").matches) this.editor.area.focus();
  }

  hidden() {
    this.completion.close();
    this.panel.shown?.pause();
  }

  key(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.completion.close();
      if (event.shiftKey) this.runAtCursor();
      else this.runChosen();
    } else if (event.key === "Escape") {
      this.editor.area.blur();
    }
  }

  turn() {
    if (this.runner.running) this.runner.stop();
    else this.runChosen();
  }

  runChosen() {
    this.runner.run(this.editor.chosen, this.editor.chosenAt);
  }

  async runAtCursor() {
    const found = await this.atCursor();
    if (found) this.runner.run(`${found.text};`, this.placeOf(found));
  }

  placeOf(piece) {
    return offsetOf(this.editor.text, piece);
  }

  /** The last statement that begins before the cursor. */
  async atCursor() {
    const { area } = this.editor;
    const before = area.value.slice(0, area.selectionStart);
    const line = before.split("\n").length;
    const column = before.length - before.lastIndexOf("\n");
    try {
      const { statements } = await call("POST", "/console/api/split", { script: area.value });
      return statements.findLast((piece) => piece.line < line || (piece.line === line && piece.column <= column)) ?? statements[0];
    } catch (error) {
      this.panel.show(null);
      this.panel.message("ERROR", "", error.message);
      this.editor.mark(error.position && offsetOf(this.editor.text, error.position));
      return null;
    }
  }

  async explain() {
    const found = await this.atCursor();
    if (!found) return;
    this.panel.show(null);
    const before = /^explain\b/i.test(found.text) ? "" : "EXPLAIN ";
    this.runner.run(`${before}${found.text};`, this.placeOf(found) - before.length);
  }

  async readMode() {
    try {
      const { properties } = await call("GET", await sessionPath());
      this.mode.value = (properties[MODE] ?? "streaming").toLowerCase();
    } catch {
      await session().catch((error) => tell(error.message, "problem"));
    }
  }

  async changeMode() {
    try {
      await call("POST", `${await sessionPath()}/configure-session`, { statement: `SET '${MODE}' = '${this.mode.value}';` });
    } catch (error) {
      tell(error.message, "problem");
    }
  }

  drawBar() {
    say(this.go, this.runner?.running ? "Stop" : "Run");
    this.go.classList.toggle("danger", Boolean(this.runner?.running));
  }
}
