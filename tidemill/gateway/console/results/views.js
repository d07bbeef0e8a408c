// The ways to look at a result: the table that its changes make, and the changes as they came.

import { showRow, Table } from "./table.js";
import { comparison, isNumber, typeText } from "./types.js";

const FRESH_MILLIS = 1_200;

const shownColumns = (result) =>
  result.columns.map(({ name, logicalType }) => ({ name, title: `${name} ${typeText(logicalType)}`, right: isNumber(logicalType) }));

/** The folded table, in the order that its user chose, or in that of its rows. */
export class FoldedView {
  constructor(result) {
    this.result = result;
    this.version = -1;
    this.rows = [];
    const columns = shownColumns(result);
    const view = this;
    this.table = new Table({
      columns, label: "Result", sorted: (index) => this.sort(index), open: (row) => showRow(columns, row),
      source: {
        get length() { return view.rows.length; },
        at: (index) => view.line(view.rows[index]),
      },
    });
    this.element = this.table.element;
  }

  line({ row, stamp }) {
    return { row, fresh: this.result.updates && Date.now() - stamp < FRESH_MILLIS };
  }

  sort(index) {
    const { order } = this.table;
    this.table.order = order?.index !== index ? { index, down: false } : order.down ? null : { index, down: true };
    this.version = -1;
    this.table.titles();
    this.draw();
  }

  draw() {
    const { folded } = this.result;
    if (folded.version !== this.version) {
      this.version = folded.version;
      this.rows = [...folded.values()];
      const { order } = this.table;
      if (order) {
        const compare = comparison(this.result.columns[order.index].logicalType);
        const sign = order.down ? -1 : 1;
        this.rows.sort((a, b) => sign * compare(a.row[order.index], b.row[order.index]));
      }
    }
    this.table.draw();
  }

  end() {
    this.table.end();
  }
}

/** The changelog; follows its end while its user looks at the end. */
export class ChangesView {
  constructor(result) {
    this.result = result;
    const columns = shownColumns(result);
    this.table = new Table({
      columns, label: "Changes", marked: true, open: (row) => showRow(columns, row),
      source: {
        get length() { return result.changes.length; },
        at: (index) => ({ row: result.changes.at(index).row, mark: result.changes.at(index).kind }),
      },
    });
    this.element = this.table.element;
    this.total = 0;
  }

  draw() {
    const follows = this.table.isAtEnd || this.total === 0;
    const came = this.result.total !== this.total;
    this.total = this.result.total;
    this.table.draw();
    if (came && follows) this.table.toEnd();
  }

  end() {
    this.table.end();
  }
}

