// Which tables the jobs read and write, over all jobs: those that run, and those that have ended.

import { call } from "../app/api.js";
import { fill, h } from "../app/dom.js";
import { Filter } from "../app/filter.js";
import { empty, failed, loading } from "../app/states.js";
import { count } from "../app/text.js";
import { watched } from "../app/watch.js";
import { PlanGraph } from "./graph.js";

const EVERY_MILLIS = 5_000;
const INSERT = "insert-into_";

export function lineagePage(root) {
  const place = h("div", {}, loading("Looking at jobs and tables"));
  const graph = new PlanGraph((id) => go(found.nodes.find((node) => node.id === id)));
  let found = null;
  const draw = () => found && fill(place, shown(found, filter, graph));
  const filter = new Filter("tables and jobs", draw);
  root.append(h("header", { class: "head" }, h("h1", {}, "Lineage"), h("div", { class: "spring" }), filter.element), place);
  const look = async () => {
    try {
      found = await call("GET", "/console/api/lineage");
      draw();
    } catch (error) {
      fill(place, failed(error, look));
    }
  };
  return watched(look, EVERY_MILLIS);
}

function shown({ nodes, circles }, filter, graph) {
  if (!nodes.length) return empty("No tables yet", "What INSERTs read and write is here, from the first one on.");
  const wanted = new Set(filter.of(nodes, ({ name, detail, status }) => ({ texts: [name, detail], status: status ?? "" })).map(({ id }) => id));
  const kept = connected(nodes, wanted);
  if (!kept.length) return empty("Nothing like that", `None of ${count(nodes.length)} tables and jobs.`);
  graph.show(kept.map((node) => ({ ...node, name: short(node), said: said(node) })));
  return [graph.element, circles.map(([from, to]) => h("p", { class: "muted" }, `${from} → ${to} closes a circle, and is not drawn.`))];
}

/** An INSERT's job is called after its tables with all their names. */
const short = ({ role, name }) => (role === "job" && name.startsWith(INSERT)
  ? `insert into ${name.slice(INSERT.length).split(",").map((path) => path.split(".").at(-1)).join(", ")}` : name);

const said = ({ role, detail, status, runs, past }) => (role === "table" ? [detail.split(".").slice(0, 2).join("."), ""]
  : [`${status.toLowerCase()}${runs > 1 ? ` · ${count(runs)} runs` : ""}`, past ? "in the history" : ""]);

/** What is wanted, and all that it comes from or that comes of it. */
function connected(nodes, wanted) {
  const up = new Set(wanted);
  for (const node of nodes.toReversed()) if (up.has(node.id)) for (const id of node.inputs) up.add(id);
  const down = new Set(wanted);
  for (const node of nodes) if (node.inputs.some((id) => down.has(id))) down.add(node.id);
  return nodes.filter(({ id }) => up.has(id) || down.has(id));
}

function go(node) {
  if (node.role === "job") location.hash = `#/${node.past ? "history" : "jobs"}/${node.job}`;
  else location.hash = `#/catalogs/${node.detail.split(".").map(encodeURIComponent).join("/")}`;
}
