// The last rows of what may never end: bounded in rows and in characters.

export const MOST_ROWS = 10_000;
export const MOST_CHARACTERS = 16_000_000;

/** How much room a row takes, in characters. */
export function weight(row) {
  let sum = 16;
  for (const value of row) sum += value === null ? 4 : value.length + 8;
  return sum;
}

/** A queue: rows come at its end; the oldest go when there is no room. */
export class Bounded {
  constructor(rows = MOST_ROWS, characters = MOST_CHARACTERS) {
    this.rows = rows;
    this.characters = characters;
    this.held = [];
    this.start = 0;
    this.size = 0;
    this.gone = 0;
  }

  get length() {
    return this.held.length - this.start;
  }

  /** The `index`-th of those that are there. */
  at(index) {
    return this.held[this.start + index];
  }

  add(kind, row) {
    const size = weight(row);
    this.held.push({ kind, row, size });
    this.size += size;
    while (this.length > 1 && (this.length > this.rows || this.size > this.characters)) {
      this.size -= this.held[this.start].size;
      this.held[this.start] = undefined;
      this.start += 1;
      this.gone += 1;
    }
    if (this.start > this.rows) {
      this.held.splice(0, this.start);
      this.start = 0;
    }
  }
}
