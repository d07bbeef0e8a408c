// A changelog folded to the table that it makes. An update takes the place of what it updates; of more rows than
// there is room for the oldest are forgotten, and what is said of them later changes nothing.

import { MOST_CHARACTERS, MOST_ROWS, weight } from "./bounded.js";

const ADDS = new Set(["INSERT", "UPDATE_AFTER"]);

export class Folded {
  constructor(rows = MOST_ROWS, characters = MOST_CHARACTERS) {
    this.rows = rows;
    this.characters = characters;
    /** Rows by their places, in the order of these. */
    this.places = new Map();
    this.byRow = new Map();
    this.vacated = [];
    this.size = 0;
    this.next = 0;
    this.forgot = 0;
    this.version = 0;
  }

  get length() {
    return this.places.size;
  }

  /** One change; `stamp` tells later which rows are new. */
  change(kind, row, stamp) {
    this.version += 1;
    if (kind !== "UPDATE_AFTER" && kind !== "UPDATE_BEFORE") this.settle();
    if (ADDS.has(kind)) this.add(row, stamp, kind === "UPDATE_AFTER" ? this.vacated.shift() : undefined);
    else this.remove(row, kind === "UPDATE_BEFORE");
  }

  /** What was updated away, and came back as nothing, is gone. */
  settle() {
    for (const place of this.vacated) this.places.delete(place);
    this.vacated.length = 0;
  }

  values() {
    return this.places.values();
  }

  add(row, stamp, place) {
    const at = place ?? this.next++;
    const key = JSON.stringify(row);
    this.places.set(at, { row, stamp, key });
    const same = this.byRow.get(key);
    if (same) same.push(at);
    else this.byRow.set(key, [at]);
    this.size += weight(row);
    while (this.places.size > 1 && (this.places.size > this.rows || this.size > this.characters)) this.forget();
  }

  remove(row, updated) {
    const key = JSON.stringify(row);
    const same = this.byRow.get(key);
    if (!same) return;
    const place = same.pop();
    if (same.length === 0) this.byRow.delete(key);
    this.size -= weight(row);
    if (updated) this.vacated.push(place);
    else this.places.delete(place);
  }

  forget() {
    const [place, { row, key }] = this.places.entries().next().value;
    this.places.delete(place);
    const vacated = this.vacated.indexOf(place);
    if (vacated >= 0) {
      this.vacated.splice(vacated, 1);
      return;
    }
    const same = this.byRow.get(key).filter((other) => other !== place);
    if (same.length) this.byRow.set(key, same);
    else this.byRow.delete(key);
    this.size -= weight(row);
    this.forgot += 1;
  }
}
