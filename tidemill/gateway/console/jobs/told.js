// What a job was told to do: its statement and its options; and where its checkpoints lie.

import { h } from "../app/dom.js";
import { list } from "../app/list.js";
import { count, moment, size, span } from "../app/text.js";
import { pieces } from "../sql/words.js";

const CHECKPOINTS_SHOWN = 10;

/** Sections for the statement and the options, none for what is not known. */
export function told({ statement, options }) {
  const chosen = Object.entries(options ?? {});
  return [
    statement && h("section", {}, h("h2", {}, "SQL"), h("pre", { class: "statement" },
      [...pieces(statement)].map(([kind, text]) => (kind ? h("span", { class: `sql-${kind}` }, text) : text)))),
    chosen.length > 0 && h("details", { class: "options" }, h("summary", {}, `Options (${chosen.length})`),
      h("dl", {}, chosen.map(([key, value]) => [h("dt", { class: "mono" }, key), h("dd", { class: "mono" }, value)]))),
  ];
}

const COLUMNS = [
  { title: "Checkpoint" }, { title: "Kind" }, { title: "Made" }, { title: "Took", right: true }, { title: "State", right: true },
  { title: "Rows in state", right: true },
];

/** Each epoch that is committed is a checkpoint, which takes the place of the one before; savepoints stay. */
export function checkpoints({ epochs, savepoints, directory }) {
  const last = epochs.at(-1)?.epoch;
  const lines = [
    ...savepoints.map(({ path, at }) => ({ at, cells: [h("code", {}, path), kind("savepoint", "done"), moment(at), "—", "—", "—"] })),
    ...epochs.map((epoch) => ({
      at: epoch.time,
      cells: [`epoch ${count(epoch.epoch)}`, epoch.epoch === last ? kind("restart point", "running") : kind("replaced", ""),
        moment(epoch.time), span(epoch.seconds), size(epoch.stateBytes), count(epoch.stateRows)],
    })),
  ].sort((a, b) => b.at - a.at).slice(0, CHECKPOINTS_SHOWN);
  return [
    h("p", { class: "muted" }, directory ? ["The job goes on from the last one, after a failure and when it is started again. They lie in ", h("code", {}, directory)]
      : "The state goes with the job: no directory was named for it."),
    lines.length ? list(COLUMNS, lines.map(({ cells }) => cells)) : h("p", { class: "muted" }, "None yet."),
  ];
}

const kind = (name, colour) => h("span", { class: `pill ${colour}` }, name);
