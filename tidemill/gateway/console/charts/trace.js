// How a small table has changed over time: what a chart of a result that updates is drawn from.

const SAMPLES = 300;
const ROWS = 50;
const LEAST_MILLIS = 250;

export class Trace {
  constructor() {
    this.samples = [];
  }

  /** Keeps the table as it is `now`, unless it is large or the last sample is young: then that is replaced. */
  sample(now, folded) {
    if (folded.length === 0 || folded.length > ROWS) return;
    const rows = [...folded.values()].map(({ row }) => row);
    const last = this.samples.at(-1);
    const before = this.samples.at(-2);
    if (last && before && now - before.time < LEAST_MILLIS) this.samples.pop();
    this.samples.push({ time: now, rows });
    if (this.samples.length > SAMPLES) this.samples.shift();
  }
}
