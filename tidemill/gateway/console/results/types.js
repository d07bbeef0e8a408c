// Types of columns as the protocol describes them, and how their values compare. Values are text, with all their
// digits: a number of the browser's would lose some of a BIGINT's or a DECIMAL's.

const EXACT = new Set(["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DECIMAL"]);
const ROUGH = new Set(["FLOAT", "DOUBLE"]);
const TIMES = new Set(["DATE", "TIMESTAMP_WITHOUT_TIME_ZONE", "TIMESTAMP_WITH_LOCAL_TIME_ZONE"]);
const NAMES = {
  INTEGER: "INT", TIME_WITHOUT_TIME_ZONE: "TIME", TIMESTAMP_WITHOUT_TIME_ZONE: "TIMESTAMP",
  TIMESTAMP_WITH_LOCAL_TIME_ZONE: "TIMESTAMP_LTZ",
};
const STRING = 2147483647;

export const isNumber = (type) => EXACT.has(type.type) || ROUGH.has(type.type);
export const isTime = (type) => TIMES.has(type.type);

/** `DECIMAL(10, 2)`, `ARRAY<INT>`: as in SQL. */
export function typeText(type) {
  const name = NAMES[type.type] ?? type.type;
  if (type.type === "VARCHAR" && type.length === STRING) return "STRING";
  if (type.type === "VARBINARY" && type.length === STRING) return "BYTES";
  if (type.type === "DECIMAL") return `DECIMAL(${type.precision}, ${type.scale})`;
  if (type.length !== undefined) return `${name}(${type.length})`;
  if (type.precision !== undefined && !type.resolution) return `${name}(${type.precision})`;
  if (type.elementType) return `${name}<${typeText(type.elementType)}>`;
  if (type.keyType) return `MAP<${typeText(type.keyType)}, ${typeText(type.valueType)}>`;
  if (type.fields) return `ROW<${type.fields.map((f) => `${f.name} ${typeText(f.fieldType)}`).join(", ")}>`;
  return name;
}

/** The order of two values of a column; NULL comes last. */
export function comparison(type) {
  const compare = EXACT.has(type.type) ? compareExact : ROUGH.has(type.type) ? compareRough : compareText;
  return (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return compare(a, b);
  };
}

const compareText = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const compareRough = (a, b) => {
  const [x, y] = [roughNumber(a), roughNumber(b)];
  if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
  return x - y;
};

/** Of two numbers written out, without any digit being lost. */
export function compareExact(a, b) {
  const [minusA, minusB] = [a.startsWith("-"), b.startsWith("-")];
  if (minusA !== minusB) return minusA ? -1 : 1;
  return minusA ? magnitude(b.slice(1), a.slice(1)) : magnitude(a, b);
}

function magnitude(a, b) {
  const [wholeA, restA = ""] = a.split(".");
  const [wholeB, restB = ""] = b.split(".");
  if (wholeA.length !== wholeB.length) return wholeA.length - wholeB.length;
  if (wholeA !== wholeB) return compareText(wholeA, wholeB);
  const digits = Math.max(restA.length, restB.length);
  return compareText(restA.padEnd(digits, "0"), restB.padEnd(digits, "0"));
}

/** A value as a number to draw, NaN where it is none. */
export const roughNumber = (text) => (text === null ? NaN : Number(text));

/** A moment to draw, in milliseconds, NaN where it is none. */
export function roughTime(text) {
  if (text === null) return NaN;
  const iso = text.trim().replace(" ", "T").replace(/(\.\d{3})\d+/, "$1");
  return Date.parse(iso.includes("T") ? `${iso}Z` : iso);
}
