// A job's plan as a graph: sources on the left, sinks on the right, with what each node has done.

import { h, s, say, styled } from "../app/dom.js";
import { count, size } from "../app/text.js";
import { laidOut, NODE } from "./layout.js";

export class PlanGraph {
  /** `chosen` is called with the id of a node that its user looks at. */
  constructor(chosen) {
    this.chosen = chosen;
    this.shape = "";
    this.texts = new Map();
    this.element = h("div", { class: "graph", tabindex: "-1" });
  }

  /** Draws the plan anew only where it has changed: else the counts alone. */
  show(plan) {
    const shape = JSON.stringify(plan.map(({ id, inputs, name }) => [id, inputs, name]));
    if (shape !== this.shape) this.build(plan);
    this.shape = shape;
    for (const node of plan) {
      const [rows, state] = this.texts.get(node.id);
      say(rows, rowsText(node));
      say(state, stateText(node));
    }
  }

  build(plan) {
    const { nodes, edges, width, height } = laidOut(plan);
    this.texts.clear();
    const canvas = s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
      edges.map((path) => s("path", { class: "edge", d: path })));
    const boxes = nodes.map(({ node, x, y }) => {
      const rows = h("span", { class: "rows" });
      const state = h("span", { class: "state-size" });
      this.texts.set(node.id, [rows, state]);
      const box = h("button", { class: `node ${node.role}`, title: node.detail, onclick: () => this.chosen(node.id) },
        h("span", { class: "role" }, node.role), h("b", {}, node.name), rows, state);
      return styled(box, { left: `${x}px`, top: `${y}px`, width: `${NODE.width}px`, height: `${NODE.height}px` });
    });
    this.element.replaceChildren(styled(h("div", { class: "sheet" }, canvas, boxes), { width: `${width}px`, height: `${height}px` }));
  }
}

/** `said`: the two lines of a node that is no part of a job's plan. */
function rowsText(node) {
  if (node.said) return node.said[0];
  if (node.role === "lookup" || node.rowsIn === null) return "";
  if (node.role === "source") return `${count(node.rowsIn)} rows read`;
  if (node.role === "sink") return `${count(node.rowsIn)} rows`;
  return `${count(node.rowsIn)} → ${count(node.rowsOut)} rows`;
}

const stateText = (node) => (node.said ? node.said[1] : node.role === "operator" && node.stateBytes !== null ? `state ${size(node.stateBytes)}` : "");
