// From values to places on the screen, and round numbers between.

/** A scale from `[low, high]` to `[start, end]`; a range without width gets one. */
export function linear(low, high, start, end) {
  const [from, to] = low === high ? [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2] : [low, high];
  const scale = (value) => start + ((value - from) / (to - from)) * (end - start);
  scale.low = from;
  scale.high = to;
  return scale;
}

const STEPS = [1, 2, 5, 10];

/** About `wanted` round values from `low` to `high`. */
export function ticks(low, high, wanted) {
  const rough = (high - low) / Math.max(1, wanted);
  if (!(rough > 0) || !Number.isFinite(rough)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = STEPS.map((factor) => factor * power).find((candidate) => candidate >= rough) ?? 10 * power;
  return multiples(low, high, step);
}

/** About `wanted` round sizes, in bytes. */
export function sizeTicks(low, high, wanted) {
  const rough = Math.max(1, (high - low) / Math.max(1, wanted));
  return multiples(low, high, 2 ** Math.ceil(Math.log2(rough)));
}

const SPANS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000, 7776000, 31536000]
  .map((seconds) => seconds * 1000);

/** About `wanted` round moments, in milliseconds. */
export function timeTicks(low, high, wanted) {
  const rough = (high - low) / Math.max(1, wanted);
  if (rough < 500) return ticks(low, high, wanted);
  return multiples(low, high, SPANS.find((span) => span >= rough) ?? rough);
}

function multiples(low, high, step) {
  const found = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9 && found.length < 100; n += 1) found.push(n * step + 0);
  return found;
}

/** About `wanted` round spans of time, in seconds. */
export function spanTicks(low, high, wanted) {
  const rough = (high - low) / Math.max(1, wanted);
  if (rough < 1) return ticks(low, high, wanted);
  return multiples(low, high, (SPANS.find((span) => span >= rough * 1000) ?? 31_557_600_000 * Math.ceil(rough / 31_557_600)) / 1000);
}

/** How a moment is written on an axis that has this `span`. */
export function timeText(span, utc) {
  const part = (date, name) => String(date[`get${utc ? "UTC" : ""}${name}`]()).padStart(2, "0");
  const day = (date) => `${String(Number(part(date, "Month")) + 1).padStart(2, "0")}-${part(date, "Date")}`;
  return (millis) => {
    const date = new Date(millis);
    if (span > 200 * 86_400_000) return `${part(date, "FullYear")}-${day(date).slice(0, 2)}`;
    if (span > 2 * 86_400_000) return day(date);
    const time = `${part(date, "Hours")}:${part(date, "Minutes")}`;
    return span > 3 * 3_600_000 ? time : `${time}:${part(date, "Seconds")}`;
  };
}
