// Text in the colours of its parts. A rough reading, for the eye alone: the gateway reads it properly.

const TOKEN = /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*(?:'|$))|(`(?:[^`]|``)*(?:`|$))|(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)|([A-Za-z_$][\w$]*)/g;
const KINDS = ["comment", "string", "name", "number", "word"];

export const KEYWORDS = `ADD ALL ALTER ANALYZE AND ARRAY AS ASC BEGIN BETWEEN BY CASE CAST CATALOG CATALOGS COLUMN
COLUMNS COMMENT COMPUTE CONSTRAINT CREATE CROSS CUBE CUMULATE CURRENT DATABASE DATABASES DELETE DESC DESCRIBE DISTINCT
DROP ELSE END ENFORCED ESCAPE EXCEPT EXECUTE EXISTS EXPLAIN FALSE FETCH FIRST FOR FROM FULL FUNCTION FUNCTIONS GROUP
GROUPING HAVING HOP IF IN INNER INSERT INTERSECT INTERVAL INTO IS JOB JOBS JOIN KEY LAST LATERAL LEFT LIKE LIMIT
MATCH_RECOGNIZE METADATA NATURAL NOT NULL NULLS OF ON OR ORDER OUTER OVER OVERWRITE PARTITION PARTITIONED PARTITIONS
PATTERN PRIMARY RANGE RENAME RESET RIGHT ROLLUP ROW ROWS SAVEPOINT SAVEPOINTS SELECT SESSION SET SETS SHOW STATEMENT STOP
SYSTEM_TIME TABLE TABLES TEMPORARY THEN TO TRUE TUMBLE UNION UNIQUE UNNEST USE USING VALUES VIEW VIEWS VIRTUAL
WATERMARK WHEN WHERE WINDOW WITH WITHIN BIGINT BINARY BOOLEAN BYTES CHAR DATE DECIMAL DOUBLE FLOAT INT INTEGER MAP
MULTISET SMALLINT STRING TIME TIMESTAMP TIMESTAMP_LTZ TINYINT VARBINARY VARCHAR`.split(/\s+/);
const KEYWORD = new Set(KEYWORDS);

/** Pieces `[kind, text]` that make up `text`; kind '' is plain. */
export function* pieces(text) {
  let place = 0;
  for (const match of text.matchAll(TOKEN)) {
    if (match.index > place) yield ["", text.slice(place, match.index)];
    const kind = KINDS[match.slice(1).findIndex((group) => group !== undefined)];
    yield [kind === "word" ? (KEYWORD.has(match[0].toUpperCase()) ? "keyword" : "") : kind, match[0]];
    place = match.index + match[0].length;
  }
  if (place < text.length) yield ["", text.slice(place)];
}
