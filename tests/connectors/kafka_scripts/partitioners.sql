-- topic fixed 3
-- topic turns
-- topic keyed 3
CREATE TABLE fixed (k INT, v STRING) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-fixed', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'json',
  'sink.partitioner' = 'fixed', 'sink.parallelism' = '1'
);
CREATE TABLE turns (k INT, v STRING) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-turns', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'json',
  'sink.partitioner' = 'round-robin', 'sink.parallelism' = '1'
);
CREATE TABLE keyed (k INT, v STRING) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-keyed', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'key.format' = 'json', 'key.fields' = 'k', 'value.format' = 'json', 'sink.partitioner' = 'default'
);

INSERT INTO fixed VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd');
INSERT INTO turns VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd');
INSERT INTO keyed VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e'), (1, 'f'), (-100, 'g');
SELECT * FROM fixed;
SELECT * FROM turns;
SELECT * FROM keyed;
