-- topic all
CREATE TABLE messages (
  flag BOOLEAN, i32 INT, s32 INT, f32 INT, u32 INT, x32 INT, i64 BIGINT, s64 BIGINT, f64 BIGINT, u64 BIGINT, x64 BIGINT,
  single FLOAT, `double` DOUBLE, text STRING, data BYTES, by_name STRING, by_number INT,
  `inner` ROW<x INT, tags ARRAY<STRING>>, numbers ARRAY<BIGINT>, enums ARRAY<STRING>,
  inners ARRAY<ROW<x INT, tags ARRAY<STRING>>>, counts MAP<STRING, INT>, `rows` MAP<BIGINT, ROW<x INT, tags ARRAY<STRING>>>,
  `left` INT, `right` STRING
) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-all', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'format' = 'protobuf', 'protobuf.message-class-name' = 'test.All'${DESCRIPTORS}
);
CREATE TABLE parts (text STRING, i32 INT, `inner` ROW<x INT>, numbers ARRAY<BIGINT>, counts MAP<STRING, INT>, by_name STRING) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-all', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'format' = 'protobuf', 'protobuf.message-class-name' = 'test.All', 'protobuf.read-default-values' = 'true'${DESCRIPTORS}
);

INSERT INTO messages VALUES
  (TRUE, -2147483648, -1, 7, -1, -2147483648, -9223372036854775808, 9223372036854775807, -5, -2, 9223372036854775807,
   CAST(1.5 AS FLOAT), -0.1e0, 'Zoë', X'00ff', 'WEB', 7,
   ROW(5, ARRAY['a', 'b']), ARRAY[1, -1, 9223372036854775807], ARRAY['VIDEO', 'UNIVERSAL'],
   ARRAY[ROW(1, ARRAY['x']), ROW(2, ARRAY['y', 'z'])], MAP['k', 1], MAP[CAST(9 AS BIGINT), ROW(3, ARRAY['t'])],
   CAST(NULL AS INT), 'chosen'),
  (FALSE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, CAST(0 AS FLOAT), 0e0, '', X'', 'UNIVERSAL', 0,
   ROW(0, ARRAY['']), ARRAY[CAST(0 AS BIGINT)], ARRAY['UNIVERSAL'], ARRAY[ROW(0, ARRAY[''])], MAP['', 0],
   MAP[CAST(0 AS BIGINT), ROW(0, ARRAY[''])], 0, CAST(NULL AS STRING));
INSERT INTO messages (text) VALUES ('alone');
INSERT INTO messages (text, `inner`) VALUES ('empty', ROW(CAST(NULL AS INT), CAST(NULL AS ARRAY<STRING>)));
SELECT * FROM messages;
SELECT * FROM parts;
SELECT text, `inner`.x, `rows`[9].x, CARDINALITY(inners) FROM messages WHERE flag;
