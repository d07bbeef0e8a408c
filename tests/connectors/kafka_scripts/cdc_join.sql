-- topic customers
-- topic orders
-- topic bills 2 upsert
-- message customers {"key": "{\"id\":1}", "value": "{\"id\":1,\"name\":\"anna\"}"}
-- message customers {"key": "{\"id\":2}", "value": "{\"id\":2,\"name\":\"ben\"}"}
-- message customers {"key": "{\"id\":1}", "value": "{\"id\":1,\"name\":\"Anna\"}"}
-- message orders {"value": "{\"before\":null,\"after\":{\"id\":10,\"customer\":1,\"amount\":5},\"op\":\"c\"}"}
-- message orders {"value": "{\"before\":null,\"after\":{\"id\":11,\"customer\":2,\"amount\":6},\"op\":\"c\"}"}
-- message orders {"value": "{\"before\":null,\"after\":{\"id\":12,\"customer\":3,\"amount\":7},\"op\":\"c\"}"}
-- message orders {"value": "{\"before\":{\"id\":10,\"customer\":1,\"amount\":5},\"after\":{\"id\":10,\"customer\":1,\"amount\":8},\"op\":\"u\"}"}
-- message orders {"value": "{\"before\":{\"id\":11,\"customer\":2,\"amount\":6},\"after\":null,\"op\":\"d\"}"}
CREATE TABLE customers (id INT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '${RUN}-customers', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.bounded.mode' = 'latest-offset', 'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE orders (id INT, customer INT, amount INT, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-orders', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'debezium-json'
);
CREATE TABLE bills (order_id INT, name STRING, amount INT, PRIMARY KEY (order_id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '${RUN}-bills', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.bounded.mode' = 'latest-offset', 'key.format' = 'raw', 'value.format' = 'json',
  'value.fields-include' = 'EXCEPT_KEY', 'value.json.encode.ignore-null-fields' = 'true'
);

INSERT INTO bills SELECT o.id, c.name, o.amount FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id
ON CONFLICT DO DEDUPLICATE;
SELECT * FROM bills;
SELECT name, SUM(amount) FROM bills GROUP BY name;
