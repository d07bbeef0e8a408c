// Bars that lie, one a row, in SVG: names have room, and there may be many.

import { fill, h, s } from "../app/dom.js";
import { linear } from "./scale.js";

const ROW = 26;
const BAR = 16;
const LETTER = 7.3;
const LONGEST_NAME = 28;

export class BarChart {
  constructor({ label }) {
    this.canvas = s("svg", { role: "img", "aria-label": label });
    this.element = h("figure", { class: "chart bars", tabindex: "0" }, h("div", { class: "plot" }, this.canvas));
    this.bars = [];
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(this.element);
  }

  /** `bars`: `{name, value, text}`; `text` has all the digits of the value. */
  show(bars) {
    this.bars = bars.filter(({ value }) => Number.isFinite(value));
    this.draw();
  }

  draw() {
    const width = this.element.clientWidth;
    if (!width) return;
    const { bars } = this;
    const height = Math.max(80, bars.length * ROW + 12);
    this.canvas.setAttribute("width", width);
    this.canvas.setAttribute("height", height);
    if (bars.length === 0) {
      fill(this.canvas, s("text", { class: "none", x: width / 2, y: 40 }, "Nothing to draw yet"));
      return;
    }
    const names = Math.min(LONGEST_NAME, Math.max(...bars.map(({ name }) => name.length))) * LETTER + 12;
    const left = Math.min(names, width * 0.4);
    const room = Math.max(...bars.map(({ text }) => text.length)) * LETTER + 12;
    const low = Math.min(0, ...bars.map(({ value }) => value));
    const high = Math.max(0, ...bars.map(({ value }) => value));
    const x = linear(low, low === high ? low + 1 : high, left, Math.max(left + 20, width - room));
    fill(this.canvas, s("line", { class: "rule", x1: x(0), x2: x(0), y1: 4, y2: height - 8 }),
      bars.map((bar, index) => this.bar(bar, 6 + index * ROW, x, left)));
  }

  bar({ name, value, text }, top, x, left) {
    const shown = name.length * LETTER > left - 10 ? `${name.slice(0, Math.floor((left - 10) / LETTER) - 1)}…` : name;
    const [from, to] = value < 0 ? [x(value), x(0)] : [x(0), x(value)];
    return s("g", {}, s("title", {}, `${name}: ${text}`),
      s("text", { class: "mark name right", x: left - 8, y: top + BAR - 4 }, shown),
      s("rect", { class: "bar", x: from, y: top, width: Math.max(1, to - from), height: BAR, rx: 2 }),
      s("text", { class: "mark value", x: x(Math.max(0, value)) + 6, y: top + BAR - 4 }, text));
  }

  end() {
    this.sizes.disconnect();
  }
}
