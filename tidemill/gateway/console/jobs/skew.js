// How the rows of each operator are spread over its partitions, and how large its largest key is.

import { h, styled } from "../app/dom.js";
import { count } from "../app/text.js";

const UNEVEN = 2;

/** A card for each operator whose rows came by key; null where there is none. */
export function skew(plan) {
  const found = plan.filter(({ role, partitions }) => role === "operator" && partitions?.some((rows) => rows > 0));
  return found.length ? h("div", { class: "charts" }, found.map(card)) : null;
}

function card({ name, partitions, skew: uneven, largestKey }) {
  const most = Math.max(...partitions);
  const said = partitions.length === 1 ? "one partition" : `fullest of ${partitions.length}: ${uneven.toFixed(1)} × the average`;
  return h("div", {},
    h("h3", {}, h("b", {}, name), " ", h("span", { class: uneven >= UNEVEN ? "problem" : "" }, said)),
    h("div", { class: "partitions", role: "img", "aria-label": `Rows by partition: ${partitions.join(", ")}` },
      partitions.map((rows, place) => h("span", { class: "partition", title: `partition ${place}: ${count(rows)} rows` },
        styled(h("i", { class: rows >= UNEVEN * average(partitions) && partitions.length > 1 ? "full" : "" }), { height: `${Math.max(rows ? 4 : 0, (100 * rows) / most)}%` })))),
    h("p", { class: "muted" }, largestKey ? `Largest key: ${count(largestKey)} rows in its last epoch` : "Rows do not come by key"));
}

const average = (rows) => rows.reduce((sum, one) => sum + one, 0) / rows.length;
