// Numbers, sizes and times as people read them. Counts may come as text, with more digits than a number has.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** `1234567` or `"1234567"` with its thousands apart. */
export const count = (value) => String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ",");

export function size(bytes) {
  let left = Number(bytes);
  let unit = 0;
  for (; left >= 1024 && unit < UNITS.length - 1; unit += 1) left /= 1024;
  return `${unit === 0 ? left : left.toFixed(1)} ${UNITS[unit]}`;
}

/** A span of `seconds`: `0.42 s`, `12 s`, `3 m 20 s`, `2 h 5 m`, `16 years`. */
export function span(seconds) {
  if (seconds === 0) return "0 s";
  if (seconds < 1) return `${seconds.toFixed(2)} s`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return both(Math.floor(whole / 60), "m", whole % 60, "s");
  if (whole < 86400) return both(Math.floor(whole / 3600), "h", Math.floor((whole % 3600) / 60), "m");
  const days = whole / 86400;
  if (days < 60) return both(Math.floor(days), "d", Math.floor((whole % 86400) / 3600), "h");
  return days < 730.5 ? `${Math.round(days / 30.44)} months` : `${Math.round(days / 365.25)} years`;
}

const both = (large, unit, small, lesser) => (small ? `${large} ${unit} ${small} ${lesser}` : `${large} ${unit}`);

export const ago = (millis) => {
  const seconds = Math.max(0, Math.floor((Date.now() - millis) / 1000));
  if (seconds < 1) return "now";
  return `${seconds < 60 ? `${seconds} s` : span(seconds)} ago`;
};

/** A moment, in the browser's time zone. */
export function moment(millis) {
  const date = new Date(millis);
  const two = (number) => String(number).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(millis)}`;
}

export function clock(millis) {
  const date = new Date(millis);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((n) => String(n).padStart(2, "0")).join(":");
}

/** A moment of event time, in UTC, as watermarks are. */
export const utc = (millis) => new Date(millis).toISOString().replace("T", " ").replace(/\.\d+Z$/, " UTC");

/** A number on an axis. */
export function short(value) {
  const far = Math.abs(value);
  if (far >= 1e12 || (far > 0 && far < 1e-3)) return value.toExponential(1).replace("e+", "e");
  for (const [unit, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (far >= unit) return `${trimmed(value / unit)}${letter}`;
  }
  return trimmed(value);
}

const trimmed = (value) => String(Number(value.toPrecision(4)));
