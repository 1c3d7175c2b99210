-- 100 files of 10,000 ids, whose order is random. Delete target/logs before you run this again, because COPY adds files.
COPY (SELECT 'trace-' || (value * 48271 % 2147483647) AS trace_id, value, value % 100 AS file FROM range(1000000))
TO 'target/logs/' STORED AS PARQUET PARTITIONED BY (file);
CREATE EXTERNAL TABLE logs (trace_id VARCHAR, value BIGINT) STORED AS PARQUET LOCATION 'target/logs/';
SELECT * FROM bloom_index('logs', 'target/logs.index', 'trace_id');
EXPLAIN SELECT * FROM logs WHERE trace_id = 'trace-96542';
SELECT * FROM logs WHERE trace_id = 'trace-96542';
EXPLAIN ANALYZE SELECT value FROM logs WHERE trace_id IN ('trace-96542', 'trace-48271', 'none');
-- Reads no file, because none has changed.
SELECT * FROM bloom_index('logs', 'target/logs.index', 'trace_id');
CREATE TABLE wanted AS VALUES ('trace-96542'), ('trace-48271'), ('none');
EXPLAIN ANALYZE SELECT value FROM wanted JOIN logs ON trace_id = column1;
