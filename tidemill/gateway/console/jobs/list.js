// The jobs that INSERTs have started, the youngest first.

import { call } from "../app/api.js";
import { fill, h } from "../app/dom.js";
import { empty, failed, loading, pill } from "../app/states.js";
import { ago, count, moment, span } from "../app/text.js";
import { watched } from "../app/watch.js";

const EVERY_MILLIS = 2_000;

export function jobsPage(root) {
  const place = h("div", {}, loading("Looking for jobs"));
  root.append(h("header", { class: "head" }, h("h1", {}, "Jobs")), place);
  const look = async () => {
    try {
      const { jobs } = await call("GET", "/console/api/jobs");
      fill(place, jobs.length ? table(jobs) : empty("No jobs", "An INSERT starts one; it goes on when its session has ended, and after the gateway was restarted.", h("a", { class: "button", href: "#/sql" }, "Write SQL")));
    } catch (error) {
      fill(place, failed(error, look));
    }
  };
  return watched(look, EVERY_MILLIS);
}

const HEAD = [["Job"], ["Status"], ["Started"], ["Epochs", 1], ["Rows in", 1], ["Rows out", 1], ["Last epoch", 1], ["Behind", 1]];

const table = (jobs) => h("div", { class: "scroll" }, h("table", { class: "list" },
  h("thead", {}, h("tr", {}, HEAD.map(([title, right]) => h("th", { scope: "col", class: right ? "right" : "" }, title)))),
  h("tbody", {}, jobs.map(line))));

function line(job) {
  const right = (text) => h("td", { class: "right" }, text);
  return h("tr", {},
    h("td", {}, h("a", { href: `#/jobs/${job.id}` }, h("b", {}, job.name)), h("div", { class: "muted mono" }, job.id)),
    h("td", {}, pill(job.status)),
    h("td", { title: moment(job.started) }, ago(job.started)),
    right(count(job.epochsDone)), right(count(job.rowsIn)), right(count(job.rowsOut)),
    right(job.last ? span(job.last.seconds) : "—"),
    right(job.last?.behind === null || job.last?.behind === undefined ? "—" : span(Math.max(0, job.last.behind))));
}
