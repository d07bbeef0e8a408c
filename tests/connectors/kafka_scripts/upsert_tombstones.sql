-- topic prices 2
-- topic copies 2 upsert
-- message prices {"partition": 0, "key": "{\"item\":\"a\",\"shop\":1}", "value": "{\"item\":\"a\",\"price\":1.5,\"shop\":1}", "timestamp": 1600000000000}
-- message prices {"partition": 1, "key": "{\"item\":\"b\",\"shop\":1}", "value": "{\"item\":\"b\",\"price\":2.5,\"shop\":1}", "timestamp": 1600000001000}
-- message prices {"partition": 0, "key": "{\"item\":\"a\",\"shop\":1}", "value": "{\"item\":\"a\",\"price\":1.75,\"shop\":1}", "timestamp": 1600000002000}
-- message prices {"partition": 1, "key": "{\"item\":\"b\",\"shop\":1}", "value": null, "timestamp": 1600000003000}
-- message prices {"partition": 0, "key": "{\"item\":\"c\",\"shop\":2}", "value": null, "timestamp": 1600000004000}
-- message prices {"partition": 0, "key": "{\"item\":\"d\",\"shop\":2}", "value": "{\"item\":\"d\",\"price\":null,\"shop\":2}", "timestamp": 1600000005000}
-- message prices {"partition": 0, "key": "{\"item\":\"e\",\"shop\":2}", "value": "{\"item\":\"e\",\"price\":5,\"shop\":2}", "timestamp": 1600000006000}
-- message prices {"partition": 0, "key": "{\"item\":\"e\",\"shop\":2}", "value": null, "timestamp": 1600000007000}
-- message prices {"partition": 0, "key": "{\"item\":\"e\",\"shop\":2}", "value": "{\"item\":\"e\",\"price\":6,\"shop\":2}", "timestamp": 1600000008000}
CREATE TABLE prices (
  shop INT, price DECIMAL(6, 2), item STRING, ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL,
  PRIMARY KEY (shop, item) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = '${RUN}-prices', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.bounded.mode' = 'latest-offset', 'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE copies (
  c_shop INT, c_item STRING, price DECIMAL(6, 2), PRIMARY KEY (c_shop, c_item) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = '${RUN}-copies', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.bounded.mode' = 'latest-offset', 'key.format' = 'json', 'key.fields-prefix' = 'c_', 'value.format' = 'json',
  'value.fields-include' = 'EXCEPT_KEY'
);

SELECT shop, item, price, ts FROM prices;
SELECT shop, COUNT(*), SUM(price) FROM prices GROUP BY shop;
INSERT INTO copies SELECT shop, item, price FROM prices;
SELECT * FROM copies;
