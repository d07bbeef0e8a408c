-- topic once
-- topic least 1 upsert
-- topic best
-- topic given
-- message given {"value": "1,x"}
-- message given {"value": "2,y"}
-- message given {"value": "3,x"}
SET 'execution.checkpointing.interval' = '1 s';
CREATE TABLE given (v INT, k STRING) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-given', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'csv'
);
CREATE TABLE once (v INT, k STRING) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-once', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'csv',
  'properties.isolation.level' = 'read_committed', 'properties.transaction.timeout.ms' = '60000',
  'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '${RUN}-once'
);
CREATE TABLE least (k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '${RUN}-least', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.bounded.mode' = 'latest-offset', 'key.format' = 'json', 'value.format' = 'json',
  'sink.delivery-guarantee' = 'at-least-once'
);
CREATE TABLE best (v INT) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-best', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'csv',
  'sink.delivery-guarantee' = 'none', 'properties.acks' = '1', 'properties.linger.ms' = '5'
);

EXECUTE STATEMENT SET BEGIN
  INSERT INTO once SELECT v, UPPER(k) FROM given;
  INSERT INTO least SELECT k, COUNT(*) FROM given GROUP BY k;
  INSERT INTO best SELECT v FROM given WHERE v > 1;
END;
SELECT * FROM once;
SELECT * FROM least;
SELECT * FROM best;
