// Runs statements one after the other: those that give rows get a tab, of the others a message is said. The first
// that fails ends the run.

import { call } from "../app/api.js";
import { h } from "../app/dom.js";
import { isGone } from "../app/session.js";
import { span } from "../app/text.js";
import { Result } from "../results/result.js";
import { remember } from "./history.js";

export class Runner {
  /** `changed` hears when a run begins and ends. */
  constructor(panel, changed) {
    Object.assign(this, { panel, changed, running: null, stopped: false });
  }

  async run(script) {
    if (this.running || !script.trim()) return;
    this.stopped = false;
    this.running = true;
    this.changed();
    try {
      for (const { text, shown } of await this.statements(script)) {
        if (this.stopped || !(await this.one(text, shown))) break;
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
      return [];
    }
  }

  stop() {
    this.stopped = true;
    this.running?.stop?.();
  }

  /** Whether the statement succeeded, as far as is known when its first rows are there. */
  async one(text, shown) {
    remember(`${shown};`);
    const say = this.panel.message("RUNNING", shown, "");
    const result = new Result(`${text};`, shown);
    this.running = result;
    await result.run();
    if (result.status === "ERROR" || result.status === "STOPPED") {
      this.panel.show(null);
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
