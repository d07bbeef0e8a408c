// One job: what it is made of, what each part has done, its epochs over time, what made it fail.

import { call } from "../app/api.js";
import { fill, h, say } from "../app/dom.js";
import { asked, empty, failed, loading, pill, tell } from "../app/states.js";
import { ago, clock, count, moment, size, span, utc } from "../app/text.js";
import { watched } from "../app/watch.js";
import { LineChart } from "../charts/line.js";
import { sizeTicks, spanTicks } from "../charts/scale.js";
import { PlanGraph } from "./graph.js";
import { skew } from "./skew.js";
import { checkpoints, told } from "./told.js";

const EVERY_MILLIS = 2_000;
const EPOCHS_SHOWN = 15;
const CHARTS = [
  { label: "Rows of an epoch", value: (epoch) => epoch.rowsIn },
  { label: "Seconds of an epoch", value: (epoch) => epoch.seconds, format: span, round: spanTicks },
  { label: "State", value: (epoch) => epoch.stateBytes, format: size, round: sizeTicks },
  { label: "Watermark behind the clock", value: (epoch) => epoch.behind, format: (seconds) => span(Math.max(0, seconds)), round: spanTicks },
];

export function jobPage(root, [id]) {
  const place = h("div", {});
  root.append(place);
  const page = new JobPage(place, id);
  const end = watched(() => page.look(), EVERY_MILLIS);
  return () => {
    end();
    page.end();
  };
}

class JobPage {
  constructor(root, id) {
    Object.assign(this, { root, id, made: false });
    fill(root, loading("Looking at the job"));
  }

  async look() {
    try {
      const job = await call("GET", `/console/api/jobs/${this.id}`);
      if (!this.made) this.build();
      this.draw(job);
    } catch (error) {
      this.made = false;
      fill(this.root, error.status === 404
        ? empty("No such job", "The gateway knows nothing of it, or no more.", h("a", { class: "button", href: "#/jobs" }, "All jobs"))
        : failed(error, () => this.look()));
    }
  }

  build() {
    this.end();
    this.made = true;
    this.before = "";
    this.title = h("h1", {});
    this.status = h("span", {});
    this.stop = h("div", { class: "buttons" },
      h("button", { class: "button", onclick: () => this.savepoint({ stops: false }) }, "Savepoint"),
      h("button", { class: "button", onclick: () => this.savepoint({ stops: true }) }, "Stop with savepoint"),
      h("button", { class: "button danger", onclick: () => this.cancel() }, "Stop"));
    this.facts = h("dl", { class: "tiles" });
    this.problem = h("section", { class: "problem-box", role: "alert", hidden: true });
    this.failures = h("ol", { class: "failures", hidden: true });
    this.graph = new PlanGraph((node) => this.mark(node));
    this.nodes = h("tbody", {});
    this.charts = CHARTS.map(({ value, ...given }) => ({ value, chart: new LineChart({ ...given, height: 150 }) }));
    this.epochs = h("tbody", {});
    this.past = h("p", {});
    [this.told, this.skew, this.checkpoints] = [h("div", {}), h("section", {}), h("section", {})];
    fill(this.root,
      h("header", { class: "head" }, h("a", { href: "#/jobs", class: "back" }, "Jobs"), this.title, this.status, h("div", { class: "spring" }), this.stop),
      h("p", { class: "mono muted" }, this.id), this.problem, this.facts, this.failures, this.past, this.told,
      this.planPart = h("section", {}, h("h2", {}, "Plan"), this.graph.element, list(["Node", "What it does", "Rows in", "Rows out", "State", "Late rows"], this.nodes)), this.skew,
      h("section", {}, h("h2", {}, "Epochs"),
        h("div", { class: "charts" }, this.charts.map(({ chart }, index) => h("div", {}, h("h3", {}, CHARTS[index].label), chart.element))),
        list(["Epoch", "At", "Rows in", "Rows out", "Took", "State", "Late rows", "Watermark"], this.epochs)), this.checkpoints);
  }

  draw(job) {
    const runs = ["RUNNING", "RESTARTING"].includes(job.status);
    say(this.title, job.name || "Query");
    fill(this.status, job.status ? pill(job.status) : null);
    this.stop.hidden = !runs;
    fill(this.problem, h("h2", {}, "What made it fail"), h("pre", {}, job.error));
    this.problem.hidden = !job.error;
    fill(this.facts, tiles(job));
    fill(this.failures, job.failures.toReversed().map(failureLine));
    this.failures.hidden = job.failures.length === 0;
    this.planPart.hidden = job.plan.length === 0;
    fill(this.past, !runs && job.status && h("a", { href: `#/history/${this.id}` }, "How it ran, in the history"));
    if (job.plan.length) this.graph.show(job.plan);
    fill(this.nodes, job.plan.map(nodeLine));
    const spread = skew(job.plan);
    fill(this.skew, spread && [h("h2", {}, "Skew"), spread]);
    this.tell(job);
    fill(this.checkpoints, h("h2", {}, "Checkpoints"), checkpoints(job));
    for (const { value, chart } of this.charts) {
      chart.show([{ name: "", points: job.epochs.map((epoch) => [epoch.time, value(epoch) ?? NaN]) }], { time: true });
    }
    fill(this.epochs, job.epochs.slice(-EPOCHS_SHOWN).reverse().map(epochLine));
  }

  /** Once: what was opened or selected stays so. */
  tell(job) {
    const now = JSON.stringify([job.statement, job.options]);
    if (now !== this.before) fill(this.told, told(job));
    this.before = now;
  }

  mark(node) {
    const line = [...this.nodes.children].find(({ dataset }) => dataset.node === node);
    line?.scrollIntoView({ block: "center", behavior: "smooth" });
    line?.classList.add("fresh");
    setTimeout(() => line?.classList.remove("fresh"), 1_500);
  }

  async cancel() {
    if (await asked("Stop the job?", "It stops after the epoch that it is in. What was committed stays.", "Stop it")) this.ask({});
  }

  savepoint({ stops }) {
    const place = h("input", { id: "place", required: true, placeholder: "/var/savepoints" });
    const drain = h("input", { type: "checkbox", id: "drain" });
    const name = stops ? "Stop with savepoint" : "Savepoint";
    const what = () => stops ? this.ask({ savepointDirectory: place.value, drain: drain.checked }) : this.ask({ savepointDirectory: place.value }, "savepoint");
    const dialog = h("dialog", { class: "dialog", "aria-label": name },
      h("h2", {}, name),
      h("form", { method: "dialog", onsubmit: what },
        h("label", { for: "place" }, "Folder for savepoints, as the gateway sees it"), place,
        stops && h("label", { class: "check" }, drain, "First let go of what waits for time to pass (drain)"),
        h("div", { class: "buttons" },
          h("button", { class: "button", type: "button", onclick: () => dialog.close() }, stops ? "Keep it" : "No"),
          h("button", { class: stops ? "button danger" : "button", type: "submit" }, stops ? "Stop it" : "Write it"))));
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  }

  async ask(body, how = "stop") {
    try {
      const { savepoint } = await call("POST", `/console/api/jobs/${this.id}/${how}`, body);
      tell(savepoint ? `The savepoint lies at ${savepoint}` : "The job stops after its epoch.");
    } catch (error) {
      tell(error.message, "problem");
    }
    this.look();
  }

  end() {
    for (const { chart } of this.charts ?? []) chart.end();
  }
}

function tiles(job) {
  const { last } = job;
  const facts = [
    ["Started", job.started ? ago(job.started) : "—", job.started ? moment(job.started) : ""],
    ["Epochs", count(job.epochsDone), job.resumed === null ? "" : `resumed after epoch ${job.resumed}`],
    ["Rows in", count(job.rowsIn)], ["Rows out", count(job.rowsOut)],
    ["State", last ? size(last.stateBytes) : "—", last ? `${count(last.stateRows)} rows` : ""],
    ["Late rows", count(job.late)],
    ["Watermark", last?.watermark === null || !last ? "—" : span(Math.max(0, last.behind)), last?.watermark ? `behind the clock · ${utc(last.watermark)}` : ""],
  ];
  if (job.running) facts.push(["Under way", `epoch ${job.running.epoch}`]);
  return facts.map(([name, value, more]) => h("div", {}, h("dt", {}, name), h("dd", {}, value, more && h("small", {}, more))));
}

const list = (titles, body) => h("div", { class: "scroll" }, h("table", { class: "list" },
  h("thead", {}, h("tr", {}, titles.map((title, index) => h("th", { scope: "col", class: index > 1 ? "right" : "" }, title)))), body));

const right = (text) => h("td", { class: "right" }, text);

const nodeLine = (node) => h("tr", { "data-node": node.id },
  h("td", {}, h("b", {}, node.name), h("div", { class: "muted" }, node.role)),
  h("td", { class: "detail" }, h("code", {}, node.detail)),
  right(node.role === "lookup" || node.rowsIn === null ? "—" : count(node.rowsIn)),
  right(node.role === "operator" ? count(node.rowsOut) : "—"),
  right(node.role === "operator" ? `${count(node.stateRows)} rows, ${size(node.stateBytes)}` : "—"),
  right(node.role === "operator" ? count(node.late) : "—"));

const failureLine = ({ at, error, wait }) => h("li", {},
  h("b", {}, `Failed ${ago(at)}`), wait === null ? ", not started again" : `, started again after ${span(wait)}`,
  h("pre", {}, error));

const epochLine = (epoch) => h("tr", {},
  h("td", {}, count(epoch.epoch)), h("td", { title: moment(epoch.time) }, clock(epoch.time)),
  right(count(epoch.rowsIn)), right(count(epoch.rowsOut)), right(span(epoch.seconds)), right(size(epoch.stateBytes)),
  right(count(epoch.late)), right(epoch.watermark === null ? "—" : utc(epoch.watermark)));
