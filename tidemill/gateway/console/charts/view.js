// A chart of a result: what it is drawn from is chosen from the columns, and may be chosen anew.

import { h, fill } from "../app/dom.js";
import { count } from "../app/text.js";
import { empty } from "../app/states.js";
import { isNumber, isTime, roughNumber, roughTime } from "../results/types.js";
import { BarChart } from "./bar.js";
import { COLOURS, LineChart } from "./line.js";

const MOST_BARS = 60;
const MOST_POINTS = 2_000;
const ARRIVAL = -1;
const NOTHING = -2;

export class ChartView {
  constructor(result) {
    this.result = result;
    this.numbers = result.columns.map((_, index) => index).filter((index) => isNumber(result.columns[index].logicalType));
    this.drawn = "";
    this.place = h("div", { class: "drawing" });
    this.note = h("p", { class: "muted" });
    if (this.numbers.length === 0) {
      this.element = h("div", { class: "chartview" }, empty("No numbers to draw", "A chart needs a column of numbers."));
      return;
    }
    this.choices = this.chooseFirst();
    this.bar = h("div", { class: "choices" });
    this.element = h("div", { class: "chartview" }, this.bar, this.place, this.note);
    this.controls();
  }

  /** Bars of names; lines over a column of time, or over the moments at which changes came. */
  chooseFirst() {
    const indexes = this.result.columns.map((_, index) => index);
    const type = (index) => this.result.columns[index].logicalType;
    const time = indexes.find((index) => isTime(type(index)));
    const name = indexes.find((index) => !isNumber(type(index)) && !isTime(type(index)));
    const value = this.numbers.at(-1);
    if (time !== undefined) return { kind: "line", x: time, y: value, by: name ?? NOTHING };
    if (name !== undefined) return { kind: "bar", x: name, y: value, by: NOTHING };
    if (this.numbers.length > 1) return { kind: "bar", x: this.numbers[0], y: value, by: NOTHING };
    return { kind: "line", x: ARRIVAL, y: value, by: NOTHING };
  }

  controls() {
    const names = this.result.columns.map(({ name }, index) => [index, name]);
    const { kind } = this.choices;
    fill(this.bar,
      this.choice("Chart", "kind", [["bar", "Bars"], ["line", "Lines"]]),
      this.choice(kind === "bar" ? "Names" : "Across", "x", kind === "bar" ? names : [[ARRIVAL, "time of arrival"], ...names]),
      this.choice("Values", "y", this.numbers.map((index) => names[index])),
      kind === "line" && this.choice("One line for each", "by", [[NOTHING, "—"], ...names]));
  }

  choice(label, name, options) {
    const select = h("select", {}, options.map(([value, text]) => h("option", { value, selected: value === this.choices[name] }, text)));
    select.addEventListener("change", () => {
      this.choices[name] = name === "kind" ? select.value : Number(select.value);
      if (name === "kind") this.choices.x = this.choices.kind === "line" ? this.firstAcross() : Math.max(0, this.choices.x);
      this.controls();
      this.draw();
    });
    return h("label", {}, h("span", {}, label), select);
  }

  firstAcross() {
    const time = this.result.columns.findIndex(({ logicalType }) => isTime(logicalType));
    if (time >= 0) return time;
    const others = this.result.columns.map((_, index) => index).filter((index) => index !== this.choices.y);
    const name = others.find((index) => !isNumber(this.result.columns[index].logicalType)) ?? others[0] ?? -1;
    this.choices.by = name >= 0 ? name : NOTHING;
    return ARRIVAL;
  }

  draw() {
    if (!this.choices) return;
    const { kind } = this.choices;
    if (this.drawn !== kind) {
      this.chart?.end();
      const label = `Chart of ${this.result.columns[this.choices.y].name}`;
      this.chart = kind === "bar" ? new BarChart({ label }) : new LineChart({ label, height: 320 });
      this.drawn = kind;
      fill(this.place, this.chart.element);
    }
    this.note.textContent = kind === "bar" ? this.drawBars() : this.drawLines();
  }

  drawBars() {
    const { x, y } = this.choices;
    const rows = [...this.result.folded.values()];
    const bars = rows.slice(0, MOST_BARS).map(({ row }) => ({
      name: row[x] ?? "NULL", value: roughNumber(row[y]), text: row[y] === null ? "NULL" : /^-?\d+$/.test(row[y]) ? count(row[y]) : row[y],
    }));
    this.chart.show(bars);
    return rows.length > MOST_BARS ? `The first ${MOST_BARS} of ${count(rows.length)} rows.` : "";
  }

  drawLines() {
    const { x, y, by } = this.choices;
    const lines = new Map();
    const put = (row, place) => {
      const name = by === NOTHING ? this.result.columns[y].name : row[by] ?? "NULL";
      if (!lines.has(name)) {
        if (lines.size === COLOURS) return false;
        lines.set(name, { name, points: [] });
      }
      lines.get(name).points.push([place, roughNumber(row[y])]);
      return true;
    };
    const left = x === ARRIVAL ? this.overArrival(put) : this.overColumn(put, x);
    for (const { points } of lines.values()) points.sort(([a], [b]) => a - b);
    const time = x === ARRIVAL || isTime(this.result.columns[x].logicalType);
    this.chart.show([...lines.values()], { time, utc: x !== ARRIVAL });
    return left;
  }

  overArrival(put) {
    const { samples } = this.result.trace;
    let all = true;
    for (const { time, rows } of samples) for (const row of rows) all = put(row, time) && all;
    if (samples.length === 0 && this.result.folded.length > 0) return "The table has too many rows to be followed over time: choose a column.";
    return all ? "" : `The first ${COLOURS} lines.`;
  }

  overColumn(put, x) {
    const place = isTime(this.result.columns[x].logicalType) ? roughTime : roughNumber;
    const rows = [...this.result.folded.values()].slice(-MOST_POINTS);
    let all = true;
    for (const { row } of rows) all = put(row, place(row[x])) && all;
    if (!all) return `The first ${COLOURS} lines.`;
    return this.result.folded.length > MOST_POINTS ? `The last ${count(MOST_POINTS)} rows.` : "";
  }

  end() {
    this.chart?.end();
  }
}
