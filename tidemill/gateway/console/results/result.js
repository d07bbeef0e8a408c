// One statement and what it gives: rows are read while somebody looks, and as fast as they can be shown; the
// gateway holds back what is not read.

import { ApiError, call, positionOf, said } from "../app/api.js";
import { events } from "../app/events.js";
import { sessionPath } from "../app/session.js";
import { Trace } from "../charts/trace.js";
import { Bounded } from "./bounded.js";
import { Folded } from "./folded.js";

const FIRST_WAIT = 15;
const LONGEST_WAIT = 500;
const FULL_PAGE = 1_000;
const BREATH_MILLIS = 40;
const AT_A_TIME = 2;
const OPEN = new Set(["RUNNING", "LIVE", "PAUSED"]);

const sleep = (millis) => new Promise((resolve) => { setTimeout(resolve, millis); });

export class Result {
  /** `shown`: the statement as people may see it. */
  constructor(statement, shown) {
    this.statement = statement;
    this.shown = shown;
    this.status = "RUNNING";
    this.error = "";
    this.position = null;
    this.columns = [];
    this.isQuery = false;
    this.job = "";
    this.changes = new Bounded();
    this.folded = new Folded();
    this.trace = new Trace();
    this.total = 0;
    this.updates = false;
    this.begun = Date.now();
    this.ended = 0;
    this.token = 0;
    this.path = "";
    this.wanted = true;
    this.reading = null;
  }

  get isOpen() {
    return OPEN.has(this.status);
  }

  get seconds() {
    return ((this.ended || Date.now()) - this.begun) / 1000;
  }

  /** Submits the statement; returns when its columns are known, or it failed. */
  async run() {
    try {
      const base = await sessionPath();
      const { operationHandle } = await call("POST", `${base}/statements`, { statement: this.statement });
      this.path = `${base}/operations/${operationHandle}`;
      await this.ready();
    } catch (error) {
      this.fail(error);
    }
  }

  async ready() {
    for (let wait = FIRST_WAIT; this.status === "RUNNING"; wait = Math.min(wait * 2, LONGEST_WAIT)) {
      const page = await call("GET", `${this.path}/result/${this.token}?rowFormat=PLAIN_TEXT`);
      if (page.resultType !== "NOT_READY") {
        this.columns = page.results.columns;
        this.isQuery = page.isQueryResult;
        this.job = page.jobID ?? "";
        this.status = "LIVE";
        this.take(page);
        if (this.status === "LIVE") this.read();
        return;
      }
      await sleep(wait);
    }
  }

  /** Reads on from where it stopped, some seconds at a time: what is on its way when it pauses still comes. */
  async read() {
    if (!this.isOpen || !this.path || this.status === "RUNNING") return;
    this.wanted = true;
    this.error = "";
    this.status = "LIVE";
    if (this.reading) return;
    this.reading = new AbortController();
    try {
      while (this.wanted && this.status === "LIVE") await this.readSome(this.reading.signal);
    } catch (error) {
      if (error.status === 0) this.lost();
      else if (error.name !== "AbortError") this.fail(error);
    } finally {
      this.reading = null;
    }
  }

  async readSome(signal) {
    for await (const { name, id, data } of events(`${this.path}/result/${this.token}?rowFormat=PLAIN_TEXT&seconds=${AT_A_TIME}`, signal)) {
      if (name === "at") {
        this.token = Number(id);
        continue;
      }
      if (name === "error") throw failure(JSON.parse(data));
      const rows = this.take(JSON.parse(data));
      if (rows >= FULL_PAGE) await sleep(BREATH_MILLIS);
    }
  }

  /** Reads no more for now: the query waits when it is too far ahead. */
  pause() {
    this.wanted = false;
    if (this.status === "LIVE") this.status = "PAUSED";
  }

  /** Ends the query; the rows that were read stay. */
  async stop() {
    if (!this.isOpen) return;
    const before = this.status;
    this.end("STOPPED");
    this.wanted = false;
    this.reading?.abort();
    if (!this.path) return;
    if (before === "RUNNING") await call("POST", `${this.path}/cancel`, {}).catch(() => {});
    await this.close();
  }

  /** The gateway may forget it. */
  async close() {
    if (this.path) await call("DELETE", `${this.path}/close`).catch(() => {});
  }

  take(page) {
    const { data } = page.results;
    const now = Date.now();
    for (const { kind, fields } of data) {
      this.updates ||= kind !== "INSERT";
      this.changes.add(kind, fields);
      this.folded.change(kind, fields, now);
    }
    this.total += data.length;
    if (data.length) this.trace.sample(now, this.folded);
    const next = /\/result\/(\d+)/.exec(page.nextResultUri ?? "");
    if (next) this.token = Number(next[1]);
    else this.end("FINISHED");
    return data.length;
  }

  /** The line was cut: what was not read is still there. */
  lost() {
    this.error = "The connection to the gateway was lost. Resume reads on where it stopped.";
    this.status = "PAUSED";
  }

  fail(error) {
    if (!this.isOpen) return;
    this.error = error.message;
    this.position = error.position ?? null;
    this.end("ERROR");
  }

  end(status) {
    if (this.isOpen) this.ended = Date.now();
    this.status = status;
  }
}

const failure = ({ errors, position }) => new ApiError(500, said(errors.at(-1)), positionOf(position));
