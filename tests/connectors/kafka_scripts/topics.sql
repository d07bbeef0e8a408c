-- topic a1
-- topic a2 2
-- topic b1
-- message a1 {"value": "1"}
-- message a2 {"partition": 1, "value": "2"}
-- message a2 {"partition": 0, "value": "3"}
-- message b1 {"value": "4"}
CREATE TABLE listed (v INT, t STRING METADATA FROM 'topic' VIRTUAL, p INT METADATA FROM 'partition' VIRTUAL) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-a1;${RUN}-b1', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'csv'
);
CREATE TABLE matched (v INT, t STRING METADATA FROM 'topic' VIRTUAL, p INT METADATA FROM 'partition' VIRTUAL) WITH (
  'connector' = 'kafka', 'topic-pattern' = '${RUN}-a\d+', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'csv',
  'scan.topic-partition-discovery.interval' = '0 s'
);

SELECT v, SPLIT_INDEX(t, '-', 1), p FROM listed;
SELECT v, SPLIT_INDEX(t, '-', 1), p FROM matched;
SELECT SPLIT_INDEX(t, '-', 1), SUM(v) FROM matched GROUP BY t;
SELECT l.v, m.v FROM listed AS l JOIN matched AS m ON l.t = m.t;
