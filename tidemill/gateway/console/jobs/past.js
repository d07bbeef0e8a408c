// Jobs that have ended: the list, and of one how it ran: its plan, the stages in Spark, what was slow.

import { call } from "../app/api.js";
import { fill, h } from "../app/dom.js";
import { Filter } from "../app/filter.js";
import { list as cards } from "../app/list.js";
import { empty, failed, loading, pill } from "../app/states.js";
import { ago, count, moment, size, span } from "../app/text.js";
import { watched } from "../app/watch.js";
import { PlanGraph } from "./graph.js";
import { skew } from "./skew.js";
import { told } from "./told.js";

const EVERY_MILLIS = 5_000;
const LISTED = 200;

export function historyPage(root, [id]) {
  const place = h("div", {}, loading("Looking at what has ended"));
  let jobs = null;
  const draw = () => jobs && fill(place, list(jobs, filter));
  const filter = new Filter("what has ended", draw);
  if (!id) root.append(h("header", { class: "head" }, h("h1", {}, "History"), h("div", { class: "spring" }), filter.element));
  root.append(place);
  const look = async () => {
    try {
      if (id) fill(place, job(await call("GET", `/console/api/history/${encodeURIComponent(id)}`)));
      else {
        ({ jobs } = await call("GET", `/console/api/history?last=${LISTED}`));
        draw();
      }
    } catch (error) {
      fill(place, error.status === 404
        ? empty("No such job", "Its history is not kept, or no more.", h("a", { class: "button", href: "#/history" }, "All that has ended"))
        : failed(error, look));
    }
  };
  if (!id) return watched(look, EVERY_MILLIS);
  look(); // what has ended does not change
  return undefined;
}

const right = (text) => h("td", { class: "right" }, text);
const seconds = (job) => span((job.ended - job.begun) / 1000);

function table(titles, lines) {
  return h("div", { class: "scroll" }, h("table", { class: "list" },
    h("thead", {}, h("tr", {}, titles.map((title) => h("th", { scope: "col" }, title)))),
    h("tbody", {}, lines)));
}

const known = (value) => (value === null ? "—" : count(value));

const COLUMNS = [
  { title: "Job" }, { title: "Status" }, { title: "Mode" }, { title: "Rows in", right: true }, { title: "Rows out", right: true },
  { title: "Began" }, { title: "Took", right: true },
];

function list(jobs, filter) {
  if (!jobs.length) return empty("Nothing has ended yet", "Queries and INSERTs are here when they have ended.");
  const found = filter.of(jobs, (one) => ({ texts: [one.name, one.id, one.mode, one.statement], status: one.status }));
  if (!found.length) return empty("No such job", `None of the last ${count(jobs.length)} is like that.`);
  return cards(COLUMNS, found.map((one) => [
    [h("a", { href: `#/history/${one.id}` }, h("b", {}, one.name)), h("div", { class: "muted mono" }, one.id)],
    pill(one.status), one.mode, known(one.rows_in), known(one.rows_out),
    { content: ago(one.begun), tip: moment(one.begun) }, seconds(one),
  ]));
}

function job(one) {
  const graph = new PlanGraph(() => {});
  const plan = one.plan.map((node) => shown(node, one.nodes[node.id]));
  if (plan.length) graph.show(plan);
  const uneven = skew(plan);
  return [
    h("header", { class: "head" }, h("a", { href: "#/history", class: "back" }, "History"), h("h1", {}, one.name), pill(one.status)),
    h("p", { class: "mono muted" }, one.id),
    one.error && h("section", { class: "problem-box", role: "alert" }, h("h2", {}, "What made it fail"), h("pre", {}, one.error)),
    h("dl", { class: "tiles" }, tile("Began", moment(one.begun)), tile("Took", seconds(one)), tile("Mode", one.mode),
      one.epochs_done > 0 && tile("Epochs", count(one.epochs_done)),
      counted(one) && [tile("Rows in", count(one.rows_in)), tile("Rows out", count(one.rows_out))]),
    told(one),
    one.plan.length > 0 && h("section", {}, h("h2", {}, "Plan"), graph.element),
    uneven && h("section", {}, h("h2", {}, "Skew"), uneven),
    one.operators?.length > 0 && h("section", {}, h("h2", {}, "Rows in Spark"), h("pre", { class: "operators" },
      one.operators.map(({ name, depth, rows }) => `${"  ".repeat(depth)}${name}${rows === null ? "" : `  ${count(rows)} rows`}\n`))),
    one.savepoints?.map(({ path }) => h("p", {}, "Savepoint at ", h("code", {}, path))),
    one.partitions.map(({ table: name, read, of }) => h("p", {}, `Read ${count(read)} of ${count(of)} partitions of ${name}`)),
    one.stages.length > 0 && h("section", {}, h("h2", {}, "Stages"), table(
      ["Stage", "Tasks", "Failed", "Copies", "Took", "Longest task", "Rows read", "Read", "Shuffled", "Spilled", "Skew", "Excluded"], one.stages.map(stage))),
    one.slow.length > 0 && h("section", {}, h("h2", {}, "Slow tasks"), table(
      ["Stage", "Task", "Host", "What it was", "Took", "Median", "Read", "Median"], one.slow.map(slow))),
    one.slow_nodes?.map((node) => h("p", {}, `${node.host} got no tasks from ${moment(node.begun * 1000)} for `
      + `${span(node.ended - node.begun)}: a copy of its task ${node.task} of stage ${node.stage} came first`)),
  ];
}

/** Records of earlier versions do not know how many rows a batch job had. */
const counted = (one) => one.mode !== "batch" || one.statement !== undefined;

const tile = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));

function shown({ id, role, name, detail, inputs }, totals) {
  if (!totals) return { id, role, name, detail, inputs, rowsIn: null, rowsOut: null, stateBytes: null };
  const partitions = Object.entries(totals.partitions ?? {}).sort(([a], [b]) => a - b).map(([, rows]) => rows);
  const sum = partitions.reduce((all, rows) => all + rows, 0);
  return {
    id, role, name, detail, inputs, partitions, rowsIn: totals.rows_in, rowsOut: totals.rows_out, stateBytes: totals.state_bytes,
    largestKey: totals.largest_key ?? 0, skew: sum ? (Math.max(...partitions) * partitions.length) / sum : 0,
  };
}

function stage(one) {
  return h("tr", {}, h("td", { title: one.name }, one.attempt ? `${one.stage}.${one.attempt}` : one.stage),
    right(count(one.tasks)), right(count(one.failed)), right(count(one.copies)), right(span(one.seconds)), right(span(one.longest_seconds)), right(count(one.rows_read)),
    right(size(one.bytes_read + one.shuffle_read)), right(size(one.shuffle_written)), right(size(one.spilled)),
    right(one.skew.toFixed(1)), h("td", {}, one.excluded.join(", ")));
}

function slow(one) {
  const seen = Math.max(one.bytes, one.median_bytes) >= 65536;
  const what = one.copy ? "second attempt" : one.more ? "more to read" : seen ? "slow" : "long";
  return h("tr", {}, right(one.stage), right(one.task), h("td", {}, one.host), h("td", {}, `${what}, ${one.status}`),
    right(span(one.seconds)), right(span(one.median_seconds)), right(size(one.bytes)), right(size(one.median_bytes)));
}
