// The jobs that INSERTs have started, the youngest first.

import { call } from "../app/api.js";
import { fill, h } from "../app/dom.js";
import { Filter } from "../app/filter.js";
import { list } from "../app/list.js";
import { empty, failed, loading, pill } from "../app/states.js";
import { ago, count, moment, span } from "../app/text.js";
import { watched } from "../app/watch.js";

const EVERY_MILLIS = 2_000;

export function jobsPage(root) {
  const place = h("div", {}, loading("Looking for jobs"));
  let jobs = null;
  const draw = () => jobs && fill(place, shown(jobs, filter));
  const filter = new Filter("jobs", draw);
  root.append(h("header", { class: "head" }, h("h1", {}, "Jobs"), h("div", { class: "spring" }), filter.element), place);
  const look = async () => {
    try {
      ({ jobs } = await call("GET", "/console/api/jobs"));
      draw();
    } catch (error) {
      fill(place, failed(error, look));
    }
  };
  return watched(look, EVERY_MILLIS);
}

function shown(jobs, filter) {
  if (!jobs.length) return empty("No jobs", "An INSERT starts one; it goes on when its session has ended, and after the gateway was restarted.", h("a", { class: "button", href: "#/sql" }, "Write SQL"));
  const found = filter.of(jobs, ({ name, id, status }) => ({ texts: [name, id], status }));
  return found.length ? list(COLUMNS, found.map(line)) : empty("No such job", `None of ${count(jobs.length)} is like that.`);
}

const COLUMNS = [
  { title: "Job" }, { title: "Status" }, { title: "Started" }, { title: "Epochs", right: true }, { title: "Rows in", right: true },
  { title: "Rows out", right: true }, { title: "Last epoch", right: true }, { title: "Behind", right: true },
];

const line = (job) => [
  [h("a", { href: `#/jobs/${job.id}` }, h("b", {}, job.name)), h("div", { class: "muted mono" }, job.id)],
  pill(job.status),
  { content: ago(job.started), tip: moment(job.started) },
  count(job.epochsDone), count(job.rowsIn), count(job.rowsOut),
  job.last ? span(job.last.seconds) : "—",
  job.last?.behind === null || job.last?.behind === undefined ? "—" : span(Math.max(0, job.last.behind)),
];
