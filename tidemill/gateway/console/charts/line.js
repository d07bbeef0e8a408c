// Lines over numbers or moments, in SVG. Where the pointer is, or an arrow key goes, the values are shown.

import { fill, h, s, styled } from "../app/dom.js";
import { short } from "../app/text.js";
import { linear, ticks, timeText, timeTicks } from "./scale.js";

const MARGIN = { top: 10, right: 14, bottom: 24, left: 44 };
/** How wide a character of a label is, at most. */
const LETTER = 7;
/** What there is to both sides of a moment that is alone. */
const MOMENT_MILLIS = 2_000;
export const COLOURS = 8;

export class LineChart {
  /** `label`: what it shows, for those who do not see it. `format`: of a value; `round`: values for the axis. */
  constructor({ label, format = short, round = ticks, height = 260 }) {
    Object.assign(this, { format, round, height });
    this.lines = [];
    this.axis = { time: false };
    this.canvas = s("svg", { role: "img", "aria-label": label, height });
    this.legend = h("ul", { class: "legend" });
    this.tip = h("div", { class: "tip", hidden: true });
    this.element = h("figure", { class: "chart", tabindex: "0" }, h("div", { class: "plot" }, this.canvas, this.tip), this.legend);
    this.element.addEventListener("pointermove", (event) => this.point(event.clientX - this.canvas.getBoundingClientRect().left));
    this.element.addEventListener("pointerleave", () => this.leave());
    this.element.addEventListener("blur", () => this.leave());
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(this.element);
  }

  /** `lines`: `{name, points: [[x, y], ...]}` by growing x; `axis`: `{time, utc}`. */
  show(lines, axis = {}) {
    this.lines = lines.map(({ name, points }) => ({ name, points: points.filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y)) }));
    this.axis = axis;
    this.draw();
  }

  draw() {
    const width = this.element.clientWidth;
    if (!width) return;
    this.canvas.setAttribute("width", width);
    const points = this.lines.flatMap((line) => line.points);
    if (points.length === 0) {
      fill(this.canvas, s("text", { class: "none", x: width / 2, y: this.height / 2 }, "Nothing to draw yet"));
      fill(this.legend);
      return;
    }
    this.scales(points, width);
    fill(this.canvas, this.grid(width), this.lines.map((line, index) => this.path(line, index)), this.marks = s("g", {}));
    fill(this.legend, this.lines.length > 1 ? this.lines.map(({ name }, index) => h("li", {}, h("i", { class: `swatch c${index % COLOURS}` }), name)) : []);
  }

  scales(points, width) {
    let [left, right, low, high] = [Infinity, -Infinity, 0, 0];
    for (const [x, y] of points) {
      left = Math.min(left, x);
      right = Math.max(right, x);
      low = Math.min(low, y);
      high = Math.max(high, y);
    }
    if (left === right && this.axis.time) [left, right] = [left - MOMENT_MILLIS, right + MOMENT_MILLIS];
    const rough = linear(low, high, 0, 1);
    this.rows = this.round(rough.low, rough.high, Math.max(2, Math.floor(this.height / 55)));
    const step = this.rows[1] - this.rows[0];
    const top = step > 0 && rough.high > this.rows.at(-1) ? this.rows.at(-1) + step : rough.high;
    if (top > this.rows.at(-1)) this.rows.push(top);
    this.y = linear(rough.low, top, this.height - MARGIN.bottom, MARGIN.top);
    this.left = Math.max(MARGIN.left, ...this.rows.map((value) => 12 + LETTER * this.format(value).length));
    this.x = linear(left, right, this.left, width - MARGIN.right);
  }

  grid(width) {
    const wanted = Math.max(2, Math.floor((width - this.left) / 110));
    const { low, high } = this.x;
    const columns = this.axis.time ? timeTicks(low, high, wanted) : ticks(low, high, wanted);
    const text = this.axisText();
    return [
      this.rows.map((value) => [
        s("line", { class: "rule", x1: this.left, x2: width - MARGIN.right, y1: this.y(value), y2: this.y(value) }),
        s("text", { class: "mark right", x: this.left - 8, y: this.y(value) + 4 }, this.format(value)),
      ]),
      columns.map((value) => s("text", { class: "mark middle", x: within(this.x(value), text(value), width), y: this.height - 6 }, text(value))),
    ];
  }

  axisText() {
    return this.axis.time ? timeText(this.x.high - this.x.low, this.axis.utc) : short;
  }

  path({ points }, index) {
    const text = points.map(([x, y], n) => `${n ? "L" : "M"}${this.x(x).toFixed(1)} ${this.y(y).toFixed(1)}`).join("");
    if (points.length === 1) return s("circle", { class: `dot c${index % COLOURS}`, cx: this.x(points[0][0]), cy: this.y(points[0][1]), r: 3 });
    return s("path", { class: `line c${index % COLOURS}`, d: text });
  }

  point(place) {
    if (!this.marks || !this.lines.length) return;
    const near = this.lines.map(({ points }) => nearest(points, (point) => Math.abs(this.x(point[0]) - place)));
    const best = near.reduce((a, b) => (b && (!a || Math.abs(this.x(b[0]) - place) < Math.abs(this.x(a[0]) - place)) ? b : a), null);
    if (!best) return;
    this.at = best[0];
    const here = near.map((point) => (point && point[0] === best[0] ? point : null));
    fill(this.marks, s("line", { class: "cross", x1: this.x(best[0]), x2: this.x(best[0]), y1: MARGIN.top, y2: this.height - MARGIN.bottom }),
      here.map((point, index) => point && s("circle", { class: `dot c${index % COLOURS}`, cx: this.x(point[0]), cy: this.y(point[1]), r: 3.5 })));
    fill(this.tip, h("b", {}, this.axisText()(best[0])),
      here.map((point, index) => point && h("span", {}, h("i", { class: `swatch c${index % COLOURS}` }), `${this.lines[index].name} `, h("em", {}, this.format(point[1])))));
    this.tip.hidden = false;
    const left = this.x(best[0]);
    styled(this.tip, { left: `${Math.min(left + 12, this.element.clientWidth - this.tip.offsetWidth - 4)}px`, top: "8px" });
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || !this.lines.length) return;
    event.preventDefault();
    const places = [...new Set(this.lines.flatMap(({ points }) => points.map(([x]) => x)))].sort((a, b) => a - b);
    const now = places.indexOf(this.at);
    const next = places[Math.max(0, Math.min(places.length - 1, now < 0 ? places.length - 1 : now + step))];
    if (next !== undefined) this.point(this.x(next));
  }

  leave() {
    this.tip.hidden = true;
    if (this.marks) fill(this.marks);
  }

  end() {
    this.sizes.disconnect();
  }
}

/** Where the middle of a label stands that is not to be cut at the right. */
const within = (x, text, width) => Math.min(x, width - 2 - (LETTER * text.length) / 2);

function nearest(points, distance) {
  let best = null;
  for (const point of points) if (!best || distance(point) < distance(best)) best = point;
  return best;
}
