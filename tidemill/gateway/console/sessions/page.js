// The user's sessions with the statements that they hold, and how to end them.

import { call } from "../app/api.js";
import { fill, h } from "../app/dom.js";
import { session } from "../app/session.js";
import { asked, empty, failed, loading, pill, tell } from "../app/states.js";
import { ago, moment } from "../app/text.js";
import { watched } from "../app/watch.js";

const EVERY_MILLIS = 3_000;
const SHOWN = 200;

export function sessionsPage(root) {
  const place = h("div", {}, loading("Looking for sessions"));
  root.append(h("header", { class: "head" }, h("h1", {}, "Sessions")), place);
  let before = "";
  const look = async () => {
    try {
      const [{ sessions }, mine] = await Promise.all([call("GET", "/console/api/sessions"), session()]);
      const now = JSON.stringify(sessions.map((s) => [s.handle, s.operations.map((o) => [o.handle, o.status])]));
      if (now === before && place.contains(document.activeElement)) return; // a button that is held stays where it is
      before = now;
      fill(place, sessions.length === 0 && empty("No sessions"),
        sessions.length > SHOWN && h("p", { class: "muted" }, `The youngest ${SHOWN} of ${sessions.length}.`),
        sessions.slice(0, SHOWN).map((found) => card(found, found.handle === mine, look)));
    } catch (error) {
      fill(place, failed(error, look));
    }
  };
  return watched(look, EVERY_MILLIS);
}

function card(found, mine, look) {
  const kill = async () => {
    if (!(await asked("Close the session?", "Its queries end. Jobs that its INSERTs have started go on.", "Close it"))) return;
    await done("DELETE", `/v4/sessions/${found.handle}`, undefined, look);
  };
  return h("section", { class: "card" },
    h("header", {}, h("b", {}, found.name || "session"), mine && h("span", { class: "pill mine" }, "this page"),
      h("span", { class: "mono muted" }, found.handle), h("div", { class: "spring" }),
      h("span", { class: "muted", title: moment(found.opened) }, `opened ${ago(found.opened)} · used ${ago(found.used)}`),
      !mine && h("button", { class: "button small danger", onclick: kill }, "Close")),
    found.operations.length === 0 ? h("p", { class: "muted" }, "No statements.") : operations(found, look));
}

function operations(found, look) {
  const base = `/v4/sessions/${found.handle}/operations`;
  const line = (operation) => h("tr", {},
    h("td", {}, pill(operation.status)),
    h("td", { class: "detail" }, h("code", {}, operation.statement || "—"), operation.error && h("div", { class: "problem" }, operation.error)),
    h("td", {}, operation.job && h("a", { href: `#/jobs/${operation.job}` }, "Job")),
    h("td", { title: moment(operation.submitted) }, ago(operation.submitted)),
    h("td", { class: "right" }, ["RUNNING", "PENDING", "INITIALIZED"].includes(operation.status)
      ? h("button", { class: "button small danger", onclick: () => done("POST", `${base}/${operation.handle}/cancel`, {}, look) }, "Cancel")
      : h("button", { class: "button small", onclick: () => done("DELETE", `${base}/${operation.handle}/close`, undefined, look) }, "Free")));
  return h("div", { class: "scroll" }, h("table", { class: "list" },
    h("thead", {}, h("tr", {}, ["Status", "Statement", "Job", "Submitted", ""].map((title) => h("th", { scope: "col" }, title)))),
    h("tbody", {}, found.operations.slice(0, SHOWN).map(line))));
}

async function done(method, path, body, look) {
  try {
    await call(method, path, body);
  } catch (error) {
    tell(error.message, "problem");
  }
  document.activeElement?.blur();
  look();
}
