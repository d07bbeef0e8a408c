// Runs statements one after the other: those that give rows get a tab, of the others a message is said. The first
// that fails ends the run.

import { call } from "../app/api.js";
import { h } from "../app/dom.js";
import { isGone } from "../app/session.js";
import { span } from "../app/text.js";
import { Result } from "../results/result.js";
import { remember } from "./history.js";

export class Runner {
  /** `changed` hears when a run begins and ends; `wrong` where in the editor an error is. */
  constructor(panel, changed, wrong) {
    Object.assign(this, { panel, changed, wrong, running: null, stopped: false });
  }

  /** `at`: where in the editor the script begins; it may be before it, for words that are not written there. */
  async run(script, at = 0) {
    if (this.running || !script.trim()) return;
    this.wrong(null);
    this.place = (position) => position && at + offsetOf(script, position);
    this.stopped = false;
    this.running = true;
    this.changed();
    try {
      for (const piece of await this.statements(script)) {
        if (this.stopped || !(await this.one(piece))) break;
      }
    } finally {
      this.running = null;
      this.changed();
    }
  }

  async statements(script) {
    try {
      if (await isGone()) this.panel.message("NEW", "", "The session had been closed: this is a new one, without its temporary objects.");
      return (await call("POST", "/console/api/split", { script })).statements;
    } catch (error) {
      this.panel.show(null);
      this.panel.message("ERROR", "", error.message);
      this.wrong(this.place(error.position));
      return [];
    }
  }

  stop() {
    this.stopped = true;
    this.running?.stop?.();
  }

  /** Whether the statement succeeded, as far as is known when its first rows are there. */
  async one({ text, shown, line, column }) {
    remember(`${shown};`);
    const say = this.panel.message("RUNNING", shown, "");
    const result = new Result(`${text};`, shown);
    this.running = result;
    await result.run();
    if (result.status === "ERROR" || result.status === "STOPPED") {
      this.panel.show(null);
      const { position } = result;
      this.wrong(this.place(position && {
        line: line + position.line - 1,
        column: position.line === 1 ? column + position.column - 1 : position.column,
      }));
      say(result.status, result.error);
      return false;
    }
    if (result.isQuery || !isMessage(result)) {
      say("DONE", `Result ${(this.panel.results.at(-1)?.number ?? 0) + 1}`);
      this.panel.add(result);
      return true;
    }
    say("DONE", ...spoken(result), h("span", { class: "muted" }, ` ${span(result.seconds)}`));
    result.close();
    return true;
  }
}

/** Whether there is no table to look at: OK, a text, the id of a job. */
const isMessage = ({ columns }) => columns.length === 1 && ["result", "job id"].includes(columns[0].name);

function spoken(result) {
  if (result.columns[0].name === "job id") return ["Started ", h("a", { href: `#/jobs/${result.job}` }, `job ${result.job}`)];
  const lines = [...result.folded.values()].map(({ row }) => row[0] ?? "");
  const text = lines.join("\n").trimEnd();
  return [text.includes("\n") ? h("pre", { class: "text" }, text) : text];
}

/** How many characters are before a place in `text`, of which a column is one or, outside of the first plane, two. */
export function offsetOf(text, { line, column }) {
  const lines = text.split("\n");
  const before = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  return before + [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
}
